"""Writes docs/reference/python-api.md from the package: `python -m tests.api_reference`."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Callable, Iterator
from typing import ForwardRef, is_typeddict

import smp_git
from smp_git.agents.joint import Likeness
from smp_git.agents.messages import Injection
from smp_git.agents.transaction import AgentTransaction
from smp_git.agents.workflow import Prepared, Prepares
from smp_git.format.messages import Touch
from smp_git.format.metadata import Metadata
from smp_git.keep.forecast import ForecastEvent, ForecastPoint
from smp_git.keep.info import Participant
from smp_git.write.transaction import Transaction
from tests.cli_reference import sentences
from tests.support import ROOT

PAGE = ROOT / "docs/reference/python-api.md"

_HEAD = """\
# Python API

This page is generated from the package by `python -m tests.api_reference`.

Import from `smp_git`; the errors are in `smp_git.errors` and listed under [exit statuses](exit-statuses.md).
[Adapters](adapters.md) of frameworks are in `smp_git.integrations`; other modules are private.
Results are immutable.
Times are aware `datetime`s in UTC.
Where a time is taken (`When`), it is a `datetime` with a zone, a `date`, a `timedelta` for how long ago, or a text like `2 days ago`; a `datetime` without a zone is refused.
A revision (`at`, `old`, `new`, `revision`) is a time, or a text like `HEAD~3` or a commit.
Other keyword arguments of `add`, `edit` and `supersede` are the [fields](fields.md) of the memory, which type checkers know as `GivenFields`.
Fields of your own go through a mapping that they do not look into: `more: dict[str, Any] = {"ticket": 17}`, `session.add("finding", "Too slow", **more)`.
`NewKind` is `"turn"`, `"decision"`, `"finding"`, `"preference"`, `"learning"` or `"artifact"`; `Kind` is also `"state"` and `"value"`.
A session that was closed still tells its `id`, its `path` and what its use came upon (`left_alone`, `passed_over`), and refuses everything else.
`smp_git.__version__` is the version of the package.
"""

_DOORS = (
    smp_git.Store,
    smp_git.Session,
    Transaction,
    smp_git.Values,
    smp_git.Writing,
    smp_git.SeenValues,
    smp_git.Agent,
    AgentTransaction,
    smp_git.View,
)
_VALUES = (
    smp_git.Memory, smp_git.Link, smp_git.Change, Touch, smp_git.Version, smp_git.MemoryDiff,
    smp_git.FieldChange, smp_git.VersionChange, smp_git.BlamedField, smp_git.Culprit, smp_git.SessionInfo, Participant, Metadata,
    smp_git.Problem, smp_git.SizeReport, smp_git.Compaction, smp_git.Compacted, smp_git.RecallResult, smp_git.Configured,
    smp_git.Forecast, ForecastPoint, ForecastEvent,
    smp_git.FieldChange, smp_git.BlamedField, smp_git.Culprit, smp_git.SessionInfo, Participant, Metadata,
    smp_git.HandEdit, smp_git.Problem, smp_git.SizeReport, smp_git.Compaction, smp_git.Compacted, smp_git.RecallResult, smp_git.Configured,
    smp_git.Receipt, smp_git.Restored, smp_git.Purged, smp_git.Redaction,
    smp_git.SessionReceipt, smp_git.Switches, smp_git.Anonymized, smp_git.Branch, smp_git.Tag,
    smp_git.MergeResult, smp_git.MergePlan, smp_git.Conflict, smp_git.Contested, smp_git.Dropped,
    smp_git.StoredValue, smp_git.ListedValue, smp_git.ValueVersion,
    Prepared, Prepares, Injection, Likeness,
    smp_git.SyncResult, smp_git.Synced, smp_git.Remote, smp_git.RemoteState,
)  # fmt: skip
# What is not in one of the lists above, by name.
_OTHERS = [
    one
    for name in smp_git.__all__
    if name != "SmpError" and (one := getattr(smp_git, name)) not in (*_DOORS, *_VALUES)
]


def text() -> str:
    """Return the page."""
    lines = [_HEAD]
    for one in (*_DOORS, *dict.fromkeys(_VALUES), *_OTHERS):
        lines += [f"## {one.__name__}", "", _summary(one), "", *_fields(one), *_members(one)]
    return "\n".join(lines).rstrip() + "\n"


def _summary(thing: object) -> str:
    text, mark, example = (inspect.getdoc(thing) or "").partition(">>> ")
    shown = f"\n\n```pycon\n{mark}{example.rstrip()}\n```" if mark else ""
    return sentences(text.rstrip()) + shown


def _fields(one: type) -> Iterator[str]:
    if not (dataclasses.is_dataclass(one) or hasattr(one, "_fields") or is_typeddict(one)):
        return
    types = {name: kind for name, kind in one.__annotations__.items() if not name.startswith("_")}
    yield from ("| field | type |", "|---|---|")
    yield from (f"| `{name}` | `{_type(kind)}` |" for name, kind in types.items())
    yield ""


def _type(kind: object) -> str:
    name = kind.__forward_arg__ if isinstance(kind, ForwardRef) else str(kind)
    return name.replace("|", "\\|")


def _members(one: type) -> Iterator[str]:
    for name in _public(one):
        member = inspect.getattr_static(one, name)
        if isinstance(member, property):
            yield from (f"### {one.__name__}.{name}", "", _summary(member), "")
        elif callable(getattr(one, name)):
            shape = _signature(name, getattr(one, name))
            yield from (f"### {one.__name__}.{name}", "", "```text", shape, "```", "")
            yield from (_summary(getattr(one, name)), "")


def _public(one: type) -> list[str]:
    """Return the names of what a class and its bases in this package define, in order."""
    names: dict[str, None] = {}
    for base in (one, *one.__mro__):
        if base.__module__.startswith("smp_git"):
            names.update(dict.fromkeys(name for name in vars(base) if not name.startswith("_")))
    hidden = {*getattr(one, "__annotations__", {})}
    return [name for name in names if name not in hidden]


class _Plain(str):
    """An annotation, which is text already and is shown without quotes."""

    __slots__ = ()
    __repr__ = str.__str__


def _signature(name: str, function: Callable[..., object]) -> str:
    signature = inspect.signature(function)
    kept = [
        one.replace(annotation=_Plain(one.annotation))
        for one in signature.parameters.values()
        if one.name not in ("self", "clock")
    ]
    result = _Plain(signature.return_annotation)
    text = f"{name}{signature.replace(parameters=kept, return_annotation=result)}"
    # A default that is a function prints its address.
    text = re.sub(r"<function .*? at 0x[0-9a-f]+>", "…", text)
    return text.replace("mappingproxy({})", "{}")


if __name__ == "__main__":
    PAGE.write_text(text())
