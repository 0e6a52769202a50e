"""Requirements of a workflow: what its agents may read and write, and what they are to recall."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.agents.rules import AccessRule, parse_rule
from smp_git.format import yamlfile
from smp_git.model.errors import InvalidError, NotFoundError, shown

_ACCESS: Final = ("read_access", "write_access")
_KNOWN: Final = frozenset((*_ACCESS, "memory_hints"))
_VISIBILITY: Final = ("all_agents_can_read", "agent_private")
_FENCED = re.compile(r"^```ya?ml\s*\n(.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_FRONT = re.compile(r"\A---\n(.*?)^---\s*$", re.MULTILINE | re.DOTALL)

# What may be given as requirements.
Given = Mapping[str, object] | str | PathLike[str]


class Usage(NamedTuple):
    """What a workflow wants to know at some point: in words, or as a query; and what for."""

    query: str | Mapping[str, object]
    purpose: str = ""
    type: str = "read"


class Phase(NamedTuple):
    """One phase of a workflow and how it uses memory."""

    name: str
    usage: tuple[Usage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What a workflow asks of memory; `reads` and `writes` are None where all is allowed."""

    reads: tuple[AccessRule, ...] | None = None
    writes: tuple[AccessRule, ...] | None = None
    hints: tuple[Usage, ...] = ()
    phases: tuple[Phase, ...] = ()

    def phase(self, name: str) -> Phase:
        """Return the phase of that name, or the only one whose name holds it."""
        exact = [each for each in self.phases if each.name == name]
        folded = name.casefold()
        near = exact or [each for each in self.phases if folded in each.name.casefold()]
        if len(near) == 1:
            return near[0]
        names = ", ".join(each.name for each in near or self.phases) or "none"
        matches = "matches several phases" if near else "is not a phase of the workflow"
        raise NotFoundError(f"{shown(name)} {matches}", hint=f"phases are: {names}")


def required(given: Given | None, agent: str) -> Requirements:
    """Return what is required of an agent: by a mapping, or a workflow's YAML or Markdown file."""
    if given is None:
        return Requirements()
    if isinstance(given, (str, PathLike)):
        return _checked(_read(Path(given)), agent, str(given))
    if not isinstance(given, Mapping):
        raise InvalidError(f"requirements must be a mapping or a file, not {type(given).__name__}")
    return _checked(given, agent, "requirements")


def _read(path: Path) -> Mapping[str, object]:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InvalidError(f"cannot read {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise InvalidError(f"{path} is not UTF-8 at byte {error.start}") from None
    if path.suffix.lower() not in (".md", ".markdown"):
        return yamlfile.read(text, str(path))
    parts = [*_FRONT.findall(text), *_FENCED.findall(text)]
    for part in parts:
        if "memory_requirements" in part or "party_mode_memory" in part:
            return yamlfile.read(part, str(path))
    raise InvalidError(
        f"{path} has no memory_requirements", hint="in its front matter, or in a block of YAML"
    )


def _checked(given: Mapping[str, object], agent: str, what: str) -> Requirements:
    whole = _mapping(given.get("workflow", given), f"{what}: workflow")
    if "party_mode_memory" in given:
        return _of_party(_mapping(given["party_mode_memory"], f"{what}: party_mode_memory"), agent)
    is_bare = "memory_requirements" not in whole and bool(_KNOWN & whole.keys())
    said = whole if is_bare else _mapping(whole.get("memory_requirements", {}), what)
    if unknown := sorted(map(str, said.keys() - _KNOWN - {"phases"})):
        raise InvalidError(
            f"{what}: memory_requirements has no {unknown[0]}",
            hint=f"it has {', '.join(sorted(_KNOWN))}",
        )
    # Who says what may be read has said what may be written: nothing, unless it is there.
    is_limited = any(name in said for name in _ACCESS)
    reads, writes = (
        _rules(said.get(name, ()), agent, f"{what}: {name}") if is_limited else None
        for name in _ACCESS
    )
    if counted := next((rule for rule in writes or () if rule.last is not None), None):
        raise InvalidError(
            f"{what}: write_access: {counted.text!r} counts, and what is written is always new",
            hint="name the kind",
        )
    return Requirements(
        reads=reads,
        writes=writes,
        hints=tuple(_usages(said.get("memory_hints", ()), f"{what}: memory_hints")),
        phases=tuple(_phases(whole.get("phases", ()), f"{what}: phases")),
    )


def _of_party(said: Mapping[str, object], agent: str) -> Requirements:
    """Return what an agent of a party may read: what is everybody's, and what is its own."""
    shown_to = _mapping(said.get("memory_visibility", {}), "memory_visibility")
    lists = [_rules(shown_to.get(name, ()), agent, name) for name in _VISIBILITY]
    return Requirements(reads=(*lists[0], *lists[1]) if shown_to else None)


def _rules(value: object, agent: str, what: str) -> tuple[AccessRule, ...]:
    try:
        return tuple(parse_rule(item, agent) for item in _items(value, what))
    except InvalidError as error:
        raise InvalidError(f"{what}: {error.message}", hint=error.hint) from None


def _phases(value: object, what: str) -> Iterator[Phase]:
    for number, item in enumerate(_items(value, what), 1):
        said = _mapping(item, f"{what}, number {number}")
        name = said.get("name", said.get("id", f"phase {number}"))
        usages = _usages(said.get("memory_usage", ()), f"{what}: {name}: memory_usage")
        yield Phase(str(name), tuple(usages))


def _usages(value: object, what: str) -> Iterator[Usage]:
    for item in _items(value, what):
        if isinstance(item, str) and item.strip():
            yield Usage(item.strip())
            continue
        said = _mapping(item, what)
        query, purpose, kind = (said.get(name) for name in ("query", "purpose", "type"))
        if not isinstance(query, (str, Mapping)) or not query:
            raise InvalidError(f"{what}: a use of memory needs a query, not {shown(query)}")
        if kind not in (None, "read", "write"):
            raise InvalidError(f"{what}: type must be read or write, not {shown(kind)}")
        yield Usage(query, str(purpose or ""), str(kind or "read"))


def _items(value: object, what: str) -> Sequence[object]:
    if value is None:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, Sequence):
        return value
    raise InvalidError(f"{what} must be a list, not {shown(value)}")


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise InvalidError(f"{what} must be a mapping, not {shown(value)}")
