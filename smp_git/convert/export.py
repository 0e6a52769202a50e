"""Memories written in other formats: JSON lines, JSON, YAML, one Markdown document, other programs' own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.convert import bundle, elsewhere
from smp_git.convert.files import whole
from smp_git.convert.own import JSON, MARK
from smp_git.format import jsontext, yamlfile
from smp_git.git import disk
from smp_git.keep import stores
from smp_git.keep.anonymize import mask_of, nameless, origin_of
from smp_git.keep.every import opened
from smp_git.keep.mask import Switches
from smp_git.model.errors import AlreadyExistsError, InvalidError
from smp_git.model.memory import KINDS, VALUE, Memory, MemoryId, Value
from smp_git.model.times import format_time
from smp_git.read.counts import with_access
from smp_git.write.handle import GLOBAL, Handle, Home

MOST: Final = 1_000_000
# The version of what is written here; it is in every export.
VERSION: Final = 1


class _What(NamedTuple):
    """What is exported: what the session says of itself, and its memories in order."""

    session: dict[str, Value]
    memories: Sequence[Memory]


def export(
    handle: Handle,
    as_format: str,
    to: str | PathLike[str] | None,
    ids: Sequence[MemoryId] | None,
    *,
    anonymous: bool = False,
) -> Iterator[str]:
    """Yield the text of an export, or write it to a path that is not there yet."""
    if as_format not in FORMATS:
        raise InvalidError(f"no format {as_format!r}", hint=f"formats are {', '.join(FORMATS)}")
    place = Path(to).absolute() if to is not None else None
    if place is not None and place.exists():
        raise AlreadyExistsError(f"{place} exists", hint="name a file or folder that does not")
    if place is not None:
        with disk.reporting(f"to session {handle.name}"):
            handle.reader.local.note_export(place, handle.clock())
    if as_format == "bundle":
        if ids is not None or anonymous:
            raise InvalidError(
                "a bundle holds the whole session with its history",
                hint="use jsonl for a part, or without names",
            )
        bundle.write(handle, _needed(place, as_format))
        return iter(())
    what = _what(handle, ids)
    if anonymous:
        what = _nameless(handle, what)
    if as_format in elsewhere.FOLDERS:
        # What a program keeps for itself has no place in them.
        what = what._replace(memories=[each for each in what.memories if each.kind != VALUE])
        elsewhere.write_folder(
            elsewhere.FOLDERS[as_format](what.session, what.memories), _needed(place, as_format)
        )
        return iter(())
    text = map(_encodable, _TEXTS[as_format](what))
    if place is None:
        return text
    _write(place, text)
    return iter(())


def _encodable(text: str) -> str:
    """Return a text with the halves of characters escaped that a value may hold, as in JSON."""
    return text.encode("utf-8", "backslashreplace").decode()


def _needed(place: Path | None, as_format: str) -> Path:
    if place is None:
        raise InvalidError(f"{as_format} is not one text", hint="name where it goes with -o PATH")
    return place


def _write(place: Path, text: Iterator[str]) -> None:
    """Write a file whole or not at all."""
    with whole(place) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as file:
        scratch.chmod(0o600)
        file.writelines(text)


def _what(handle: Handle, ids: Sequence[MemoryId] | None) -> _What:
    snapshot = handle.reader.snapshot()
    uses = handle.accesses.totals()
    chosen = snapshot.memories() if ids is None else [snapshot.get(name) for name in ids]
    return _What(_session(handle), [with_access(each, uses.get(each.id)) for each in chosen])


def _nameless(handle: Handle, what: _What) -> _What:
    """Return the same without the names of people and projects, and without paths."""
    switches, origin = Switches(), origin_of(handle.metadata)
    mask = mask_of([(origin, handle.reader.snapshot().memories())], switches)
    clean = nameless(origin, what.memories, mask, switches)
    told: dict[str, Value] = {
        "id": "anonymous",
        "created_at": what.session["created_at"],
        "user": clean.origin.user,
        "agents": list(clean.origin.agents),
        "tags": list(clean.origin.tags),
        "context": dict(clean.origin.context),
    }
    return _What({k: v for k, v in told.items() if v not in (None, [], {})}, clean.memories)


def _session(handle: Handle) -> dict[str, Value]:
    said = handle.metadata
    told: dict[str, Value] = {
        "id": handle.name,
        "created_at": format_time(said.created_at),
        "user": said.user,
        "agents": list(said.agents),
        "tags": list(said.tags),
        "context": dict(said.context),
        "overrides": dict(said.settings),
        "commit": handle.reader.snapshot().id,
    }
    return {name: value for name, value in told.items() if value not in (None, [], {})}


# What is no property of the memory, but of where it was read.
_NOT_KEPT: Final = ("path", "size_bytes", "life")


def memory_as_json(memory: Memory) -> dict[str, object]:
    """Return a memory as an export has it: with all that an import needs."""
    said = memory.as_json()
    return {
        name: value for name, value in said.items() if name not in _NOT_KEPT and value is not None
    }


def _lines(what: _What) -> Iterator[str]:
    yield _json({MARK: VERSION, "session": what.session}) + "\n"
    for memory in what.memories:
        yield _json(memory_as_json(memory)) + "\n"


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _object(what: _What) -> Iterator[str]:
    yield f'{{"{MARK}": {VERSION}, "session": {_json(what.session)}, "memories": ['
    for number, memory in enumerate(what.memories):
        yield (",\n" if number else "\n") + _json(memory_as_json(memory))
    yield "\n]}\n"


def _yaml(what: _What) -> Iterator[str]:
    yield yamlfile.written({MARK: VERSION, "session": what.session}) + "\n"
    yield "memories:\n" if what.memories else "memories: []\n"
    for memory in what.memories:
        said = json.loads(_json(memory_as_json(memory)))
        if memory.kind == VALUE and VALUE in memory.fields:
            # As text, since YAML does not hold everything that JSON does.
            said["fields"][JSON] = jsontext.write(said["fields"].pop(VALUE))
        yield "- " + "\n  ".join(yamlfile.written(said).split("\n")) + "\n"


_HEADINGS: Final = {
    "turn": "Conversation", "decision": "Decisions", "finding": "Findings",
    "preference": "Preferences", "learning": "Learnings", "state": "Agents",
    "artifact": "Artifacts", "value": "Values",
}  # fmt: skip


def _markdown(what: _What) -> Iterator[str]:
    """Yield one document that a person reads from top to bottom."""
    yield f"# Session {what.session['id']}\n\n"
    for name in ("created_at", "user", "agents", "tags"):
        value = what.session.get(name)
        if value:
            shown = ", ".join(map(str, value)) if isinstance(value, list) else value
            yield f"- **{name.replace('_at', '').capitalize()}:** {shown}\n"
    for kind in KINDS:
        found = [memory for memory in what.memories if memory.kind == kind]
        if found:
            yield f"\n## {_HEADINGS[kind]}\n"
        for memory in found:
            yield from _section(memory)


def _section(memory: Memory) -> Iterator[str]:
    yield f"\n### {memory.id}: {memory.title}\n\n"
    said = [f"{memory.agent}, {format_time(memory.created_at)}", *map(str, memory.tags)]
    yield f"*{' · '.join(said)}*\n"
    if memory.content.strip() and memory.content.strip() != memory.title:
        yield f"\n{memory.content.rstrip()}\n"
    rows = [f"- **{name}:** {elsewhere.in_words(value)}" for name, value in memory.fields.items()]
    rows += [f"- **{link.relation}:** {link.target}" for link in memory.links]
    if rows:
        yield "\n" + "\n".join(rows) + "\n"


def _log(what: _What) -> Iterator[str]:
    for entry in elsewhere.as_000(what.memories):
        yield _json(entry) + "\n"


_TEXTS: Final[Mapping[str, Callable[[_What], Iterator[str]]]] = {
    "jsonl": _lines,
    "json": _object,
    "yaml": _yaml,
    "markdown": _markdown,
    "000": _log,
}
FORMATS: Final = (*_TEXTS, *elsewhere.FOLDERS, "bundle")


# Where programs of a format look for its sessions in a folder.
_INSIDE: Final = {"001": "sessions", "003": "active", "004": "sessions"}
_ENDINGS: Final = {"markdown": ".md", "000": ".jsonl", "bundle": ".zip"}


def export_all(home: Home, as_format: str, to: str | PathLike[str] | None) -> Iterator[str]:
    """Yield every session as JSON lines, or write each into a folder that is not there yet."""
    shared = (GLOBAL,) if (home.path / GLOBAL / ".git").is_dir() else ()
    names = (*stores.session_ids(home.path), *shared)
    if to is None and as_format != "jsonl":
        raise InvalidError(
            f"several sessions are not one text in {as_format}", hint="name a folder with -o PATH"
        )
    if to is not None:
        _folder(home, names, as_format, Path(to).absolute())
        return iter(())
    return _one_by_one(home, names)


def _one_by_one(home: Home, names: Sequence[str]) -> Iterator[str]:
    for name in names:
        with opened(home, name) as handle:
            yield from export(handle, "jsonl", None, None)


def _folder(home: Home, names: Sequence[str], as_format: str, place: Path) -> None:
    if place.exists():
        raise AlreadyExistsError(f"{place} exists", hint="name a folder that does not")
    inner = place / _INSIDE.get(as_format, "")
    with disk.reporting(f"the export to {place}"):
        inner.mkdir(mode=0o700, parents=True)
    ending = "" if as_format in elsewhere.FOLDERS else _ENDINGS.get(as_format, f".{as_format}")
    for name in names:
        with opened(home, name) as handle:
            export(handle, as_format, inner / f"{name}{ending}", None)
