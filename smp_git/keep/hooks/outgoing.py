"""What a plain `git push` is about to send: nothing that was deleted leaves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from smp_git.format.records import Tombstones
from smp_git.git import references
from smp_git.git.objects import COMMIT
from smp_git.keep.hooks.gate import Gate
from smp_git.model.errors import RefusedError
from smp_git.model.ids import parse_path
from smp_git.remove.history import tombstones
from smp_git.remove.history.rewrite import NOTHING, Gone, History, Read, Rewriter, Step, raw_commit

_NONE: Final = "0" * 40
_SHOWN: Final = 5


class Update(NamedTuple):
    """One reference of a remote: where it is, and where it shall be."""

    ref: str
    old: str
    new: str


def updates(said: str) -> list[Update]:
    """Return what Git tells a pre-push hook, without references that go."""
    rows = (line.split() for line in said.splitlines())
    return [Update(ref, old, new) for _, new, ref, old in rows if new != _NONE]


def check(gate: Gate, remote: str, pushed: Iterable[Update]) -> None:
    """Raise RefusedError if what is pushed holds anything deleted."""
    known = tombstones.effective(gate.reader)
    if not known:
        return
    repository = gate.reader.repository
    there = references.read(repository.git)
    tips = [tip for ref, tip in there.items() if ref.startswith(f"refs/remotes/{remote}/")]
    wanted = list(pushed)
    sent = [tip for tip in (*tips, *(each.old for each in wanted)) if repository.has(tip)]
    for each in wanted:
        found = held(repository.raw, known, each, sent)
        if found is not None:
            raise RefusedError(
                f"{each.ref.removeprefix('refs/heads/')} holds what was deleted{found}",
                hint="smp sync takes it out of the history and pushes the rest",
            )


def held(read: Read, known: Tombstones, update: Update, clean: Iterable[str] = ()) -> str | None:
    """Say which deleted memories a reference would hold, None if there are none.

    Nothing that the `clean` commits reach is looked at.
    """
    rewriter = Rewriter(read, known)
    for name in set(clean) - {update.new}:
        _take_as_clean(rewriter, bytes.fromhex(name))
    tip = bytes.fromhex(update.new)
    if rewriter.rewritten(History({update.ref: tip})).refs.get(update.ref) == tip:
        return None
    names = sorted(set(_named(rewriter)))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f": {', '.join(names[:_SHOWN])}{more}" if names else ""


def _take_as_clean(rewriter: Rewriter, name: bytes) -> None:
    kind, data = rewriter.read(name)
    if kind == COMMIT:
        tree = raw_commit(data).tree
        rewriter.steps[name] = Step(name, name, tree, tree, NOTHING, dropped=False, touches=False)


def _named(rewriter: Rewriter) -> Iterator[str]:
    for step in rewriter.steps.values():
        for item in step.loss:
            place = parse_path(item.path) if isinstance(item, Gone) else None
            if place is not None:
                yield place.text
