"""Memories written in other formats: JSON lines, JSON, YAML, one Markdown document, other programs' own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, cast

from smp_git.ask import questions
from smp_git.ask.desk import Desk
from smp_git.ask.ranking import facts_of
from smp_git.ask.request import QueryParts
from smp_git.convert import bundle, document_files, log_files
from smp_git.convert.files import scratch_of, whole
from smp_git.convert.own import JSON, MARK
from smp_git.convert.shared import Exported, Files, Worth
from smp_git.format import jsontext, yamlfile
from smp_git.git import disk
from smp_git.keep import archive
from smp_git.keep.anonymize import mask_of, nameless, origin_of
from smp_git.keep.every import names, opened
from smp_git.keep.mask import Mask, Switches
from smp_git.model.decay import priority
from smp_git.model.errors import AlreadyExistsError, DamagedError, InvalidError, SmpError
from smp_git.model.memory import KINDS, VALUE, Memory, MemoryId, Value
from smp_git.model.relevance import scales
from smp_git.model.times import format_time
from smp_git.read import archives
from smp_git.read.counts import with_access
from smp_git.write.handle import Handle, Home

_MOST: Final = 1_000_000
# The version of what is written here; it is in every export.
VERSION: Final = 1


class ExportOptions(NamedTuple):
    """What is exported of a session, and how: what matches a query, with or without names."""

    format: str = "jsonl"
    text: str | None = None
    parts: QueryParts = cast("QueryParts", MappingProxyType({}))
    switches: Switches | None = None

    @property
    def is_part(self) -> bool:
        """Whether only what matches is exported."""
        return self.text is not None or bool(self.parts)


def export(
    handle: Handle,
    wanted: ExportOptions,
    to: str | PathLike[str] | None,
    *,
    mask: Mask | None = None,
) -> Iterator[str]:
    """Yield the text of an export, or write it to a path that is not there yet.

    Without a `mask`, names are those that the session itself tells.
    """
    name = wanted.format
    if name not in FORMATS:
        raise InvalidError(f"no format {name!r}", hint=f"formats are {', '.join(FORMATS)}")
    place = Path(to).absolute() if to is not None else None
    if place is not None and place.exists():
        raise AlreadyExistsError(f"{place} exists", hint="name a file or folder that does not")
    if name == "bundle" and (wanted.is_part or wanted.switches is not None):
        raise InvalidError(
            "a bundle holds the whole session with its history",
            hint="use jsonl for a part, or without names",
        )
    if place is None:
        _refuse_text(name)
        return map(_encodable, _TEXTS[name](_exported(handle, wanted, mask)))
    _note(handle, place)
    if name == "bundle":
        bundle.write(handle, place)
    else:
        _written(_exported(handle, wanted, mask), name, place)
    # Another export meanwhile forgot what was not there yet.
    _note(handle, place)
    return iter(())


def _note(handle: Handle, place: Path) -> None:
    """Remember a copy, and what is left of it if it is not finished, for receipts to name."""
    handle.reader.local.note_exports((place, scratch_of(place)), handle.clock())


def _written(what: Exported, name: str, place: Path) -> None:
    if name in _FOLDERS:
        # What a program keeps for itself has no place in them.
        what = what._replace(memories=[each for each in what.memories if each.kind != VALUE])
        _write_folder(_FOLDERS[name](what), place)
    else:
        _write(place, map(_encodable, _TEXTS[name](what)))


def _encodable(text: str) -> str:
    """Return a text with the halves of characters escaped that a value may hold, as in JSON."""
    return text.encode("utf-8", "backslashreplace").decode()


def _refuse_text(as_format: str) -> None:
    if as_format not in _TEXTS:
        raise InvalidError(f"{as_format} is not one text", hint="name where it goes with -o PATH")


def _write(place: Path, text: Iterator[str]) -> None:
    """Write a file whole or not at all."""
    with whole(place) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as file:
        scratch.chmod(0o600)
        file.writelines(text)


def _write_folder(files: Files, place: Path) -> None:
    """Write a folder whole or not at all."""
    with whole(place) as scratch:
        scratch.mkdir(mode=0o700, parents=True)
        for name, text in files.items():
            target = scratch / name
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.write_text(text, "utf-8", newline="\n")
            target.chmod(0o600)


def _exported(handle: Handle, wanted: ExportOptions, mask: Mask | None) -> Exported:
    snapshot, uses = handle.reader.snapshot(), handle.accesses.totals()
    memories = [with_access(each, uses.get(each.id)) for each in snapshot.memories()]
    part, worth = memories, dict[str, Worth]()
    desk = Desk(handle)
    try:
        if wanted.is_part:
            chosen = _chosen(desk, wanted)
            part = [memory for memory in memories if memory.id in chosen]
        if wanted.format not in _OWN:
            worth = _worth(desk)
    finally:
        desk.close()
    what = Exported(_session(handle), part, worth)
    if wanted.switches is None:
        return what
    if mask is None:
        origin = origin_of(handle.metadata)
        mask = mask_of([(origin, memories)], wanted.switches, {handle.name: _ANONYMOUS})
    return _nameless(handle, what, mask, wanted.switches)


def _worth(desk: Desk) -> dict[str, Worth]:
    """Return the priority of each memory: what it starts from, and what it is now."""
    handle, found = desk.handle, dict[str, Worth]()
    now, snapshot, settings = handle.clock(), handle.reader.snapshot(), handle.settings
    preset = scales(settings.decay, settings.relevance, settings.file).preset
    uses = handle.accesses.totals()
    with desk.asking(snapshot, now) as side:
        catalogue = side.catalogue
        catalogue.follow(snapshot, KINDS)
        for row in catalogue.rows:
            name, superseded = row.entry.id, catalogue.is_superseded(row)
            facts = facts_of(row, uses.get(name), superseded=superseded)
            base = (
                preset.rules[row.kind].base if facts.base_priority is None else facts.base_priority
            )
            found[name] = Worth(base, priority(facts, now, preset).value)
    return found


def _chosen(desk: Desk, wanted: ExportOptions) -> set[MemoryId]:
    parts: QueryParts = {**wanted.parts, "limit": wanted.parts.get("limit") or _MOST}
    return {hit.memory.id for hit in questions.query(desk, wanted.text, None, None, None, parts)}


# What a session is called whose name is taken out.
_ANONYMOUS: Final = "anonymous"


def _nameless(handle: Handle, what: Exported, mask: Mask, switches: Switches) -> Exported:
    """Return the same without the names of people and projects, and without paths."""
    clean = nameless(origin_of(handle.metadata), what.memories, mask, switches)
    told: dict[str, Value] = {
        "id": mask.session(handle.name),
        "created_at": what.session["created_at"],
        "user": clean.origin.user,
        "agents": list(clean.origin.agents),
        "tags": list(clean.origin.tags),
        "context": dict(clean.origin.context),
        "overrides": dict(clean.origin.overrides),
    }
    ids = zip(what.memories, clean.memories, strict=True)
    worth: dict[str, Worth] = {
        now.id: what.worth[old.id] for old, now in ids if old.id in what.worth
    }
    return Exported(_said(told), clean.memories, worth)


def _session(handle: Handle) -> dict[str, Value]:
    said = handle.metadata
    return _said(
        {
            "id": handle.name,
            "uid": said.uid,
            "created_at": format_time(said.created_at),
            "user": said.user,
            "agents": list(said.agents),
            "tags": list(said.tags),
            "context": dict(said.context),
            "overrides": dict(said.settings),
            "commit": handle.reader.snapshot().id,
        }
    )


def _said(told: Mapping[str, Value]) -> dict[str, Value]:
    return {name: value for name, value in told.items() if value not in (None, [], {})}


# What is no property of the memory, but of where it was read.
_NOT_KEPT: Final = ("path", "size_bytes", "life")


def memory_as_json(memory: Memory) -> dict[str, object]:
    """Return a memory as an export has it: with all that an import needs."""
    said = memory.as_json()
    return {
        name: value for name, value in said.items() if name not in _NOT_KEPT and value is not None
    }


def _lines(what: Exported) -> Iterator[str]:
    yield _json({MARK: VERSION, "session": what.session}) + "\n"
    for memory in what.memories:
        yield _json(memory_as_json(memory)) + "\n"


def _json(value: Mapping[str, object]) -> str:
    return json.dumps(value, ensure_ascii=False)


def _object(what: Exported) -> Iterator[str]:
    yield f'{{"{MARK}": {VERSION}, "session": {_json(what.session)}, "memories": ['
    for number, memory in enumerate(what.memories):
        yield (",\n" if number else "\n") + _json(memory_as_json(memory))
    yield "\n]}\n"


def _yaml(what: Exported) -> Iterator[str]:
    yield yamlfile.written({MARK: VERSION, "session": dict(what.session)}) + "\n"
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


def _markdown(what: Exported) -> Iterator[str]:
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
    rows = [f"- **{name}:** {in_words(value)}" for name, value in memory.fields.items()]
    rows += [f"- **{link.relation}:** {link.target}" for link in memory.links]
    if rows:
        yield "\n" + "\n".join(rows) + "\n"


def _log(what: Exported) -> Iterator[str]:
    for entry in log_files.as_000(what):
        yield _json(entry) + "\n"


def in_words(value: Value) -> str:
    """Return a value as a person reads it."""
    if isinstance(value, list):
        return ", ".join(in_words(each) for each in value)
    if isinstance(value, dict):
        return "; ".join(f"{name}: {in_words(each)}" for name, each in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else str(value)


_TEXTS: Final[Mapping[str, Callable[[Exported], Iterator[str]]]] = {
    "jsonl": _lines,
    "json": _object,
    "yaml": _yaml,
    "markdown": _markdown,
    "000": _log,
}
_FOLDERS: Final[Mapping[str, Callable[[Exported], Files]]] = {
    "001": log_files.as_001,
    "003": document_files.as_003,
    "004": log_files.as_004,
}
# Formats that say nothing of priorities.
_OWN: Final = ("jsonl", "json", "yaml", "markdown")
FORMATS: Final = (*_TEXTS, *_FOLDERS, "bundle")


# Where programs of a format look for its sessions in a folder.
_INSIDE: Final = {"001": "sessions", "003": "active", "004": "sessions"}
_ENDINGS: Final = {"markdown": ".md", "000": ".jsonl", "bundle": ".zip"}


def export_all(home: Home, wanted: ExportOptions, to: str | PathLike[str] | None) -> Iterator[str]:
    """Yield every session as JSON lines, or write each into a folder that is not there yet.

    Archived ones are among them. One that cannot be read is named at the end, when all
    the others are written.
    """
    if to is None and wanted.format != "jsonl":
        raise InvalidError(
            f"several sessions are not one text in {wanted.format}",
            hint="name a folder with -o PATH",
        )
    found = (*names(home), *archives.names(home.path))
    mask = _mask_of_all(home, found, wanted.switches)
    if to is not None:
        _folder(home, found, wanted, mask, Path(to).absolute())
        return iter(())
    return _one_by_one(home, found, wanted, mask)


@contextmanager
def _within(home: Home, name: str) -> Iterator[Handle]:
    """Open a session for as long as the block lasts, an archived one too."""
    if archives.is_archived(home.path, name):
        with archive.opened_within(home, name) as handle:
            yield handle
    else:
        with opened(home, name) as handle:
            yield handle


def _mask_of_all(home: Home, found: Sequence[str], switches: Switches | None) -> Mask | None:
    """Return one mask for all sessions: a name has the same placeholder in each of them."""
    if switches is None:
        return None
    told = []
    for name in found:
        with _within(home, name) as handle:
            told.append((origin_of(handle.metadata), handle.reader.snapshot().memories()))
    new = {name: f"{_ANONYMOUS}-{number}" for number, name in enumerate(found, 1)}
    return mask_of(told, switches, new)


class _Failures(list[str]):
    """Sessions that could not be exported, and why."""

    @contextmanager
    def noting(self, name: str) -> Iterator[None]:
        """Go on past a session that cannot be read."""
        try:
            yield
        except SmpError as error:
            self.append(f"{name}: {error.message}")

    def tell(self) -> None:
        """Raise DamagedError if there are any."""
        if self:
            raise DamagedError(
                f"not in the export: {'; '.join(self)}", hint="all other sessions are; smp repair"
            )


def _one_by_one(
    home: Home, found: Sequence[str], wanted: ExportOptions, mask: Mask | None
) -> Iterator[str]:
    failures = _Failures()
    for name in found:
        with failures.noting(name), _within(home, name) as handle:
            yield from export(handle, wanted, None, mask=mask)
    failures.tell()


def _folder(
    home: Home, found: Sequence[str], wanted: ExportOptions, mask: Mask | None, place: Path
) -> None:
    if place.exists():
        raise AlreadyExistsError(f"{place} exists", hint="name a folder that does not")
    if wanted.format not in FORMATS:
        raise InvalidError(f"no format {wanted.format!r}", hint=f"formats are {', '.join(FORMATS)}")
    inner = place / _INSIDE.get(wanted.format, "")
    with disk.reporting(f"the export to {place}"):
        inner.mkdir(mode=0o700, parents=True)
    ending = "" if wanted.format in _FOLDERS else _ENDINGS.get(wanted.format, f".{wanted.format}")
    failures = _Failures()
    for name in found:
        shown = mask.session(name) if mask is not None else name
        with failures.noting(name), _within(home, name) as handle:
            export(handle, wanted, inner / f"{shown}{ending}", mask=mask)
    failures.tell()
