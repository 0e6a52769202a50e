"""Memories in JSON lines and JSON: the minimal log (000), session folders (001), memory folders (004)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from smp_git.convert import overrides
from smp_git.convert.checksums import checksums
from smp_git.convert.entries import (
    KINDS_THERE,
    ForeignArchive,
    ForeignDeletion,
    ForeignMemory,
    ForeignSession,
    Item,
    Trouble,
    as_text,
    as_time,
    ids_of,
    made,
    storable,
)
from smp_git.convert.files import JsonRow, is_plain, json_lines, json_object
from smp_git.convert.unpacking import opened_archive
from smp_git.format.imports import GIVEN
from smp_git.model.errors import InvalidFileError

# The text of a memory under the names that these formats give it.
_TEXTS: Final = {
    "turn": ("content", "message", "text"),
    "decision": ("decision", "content", "text"),
    "finding": ("finding", "issue", "description", "content", "text"),
    "preference": ("preference", "content", "text"),
    "learning": ("learning", "content", "text"),
    "artifact": ("content", "text"),
}
_PEOPLE: Final = {"decision": "made_by", "finding": "discovered_by"}


def text_in(kind: str, raw: dict[str, object]) -> str:
    """Take the main text out of what a source says, under whatever name it has there."""
    for name in _TEXTS[kind]:
        value = raw.get(name)
        if isinstance(value, str) and value.strip():
            del raw[name]
            return value
    if kind == "preference" and "key" in raw:
        return f"{as_text(raw['key'])}: {as_text(raw.get('value'))}"
    return ""


def writer_in(kind: str, raw: Mapping[str, object]) -> object:
    """Return who wrote it, as far as a source says."""
    named = _PEOPLE.get(kind, "")
    role = raw.get("role")
    return raw.get(named) or raw.get("by") or raw.get("agent_id") or raw.get("speaker") or role


# 000: one line a memory


def read_minimal(path: Path) -> Iterator[ForeignSession]:
    """Yield the session of a file `{session}.jsonl`, or those of a folder of such files."""
    files = [path] if path.is_file() else sorted(path.glob("*.jsonl"))
    for file in files:
        if is_plain(file):
            yield ForeignSession(format="000", id=file.stem, place=file, items=_minimal(file))


def is_minimal(row: Mapping[str, object]) -> bool:
    """Whether a line is of the minimal log."""
    return "id" in row and "ts" in row and ("data" in row or row.get("deleted") is True)


def _minimal(file: Path) -> Iterator[Item]:
    gone = {
        as_text(row.value.get("id"))
        for row in json_lines(file, file.name)
        if isinstance(row, JsonRow) and row.value.get("deleted") is True
    }
    yield from map(ForeignDeletion, sorted(gone))
    for row in json_lines(file, file.name):
        if isinstance(row, Trouble):
            yield row
        elif as_text(row.value.get("id")) not in gone:
            yield _minimal_entry(row)


def _minimal_entry(row: JsonRow) -> Item:
    raw = dict(row.value)
    data, kind = raw.pop("data", None), KINDS_THERE.get(as_text(raw.pop("type", "")))
    if kind is None or not isinstance(data, dict):
        return Trouble(where=row.where, reason="not a memory: it needs a known type and data")
    fields = {**{k: v for k, v in data.items() if k not in ("id", "ts", "access")}, **raw}
    who = writer_in(kind, data)
    name, at, reads = fields.pop("id", ""), fields.pop("ts", None), fields.pop("access", 0)
    text = text_in(kind, fields)
    return made(
        kind, name, text, fields, where=row.where, agent=who, at=at, reads=reads, last_read=at
    )


# 001: a folder a session, a file a kind

_FILES_001: Final = {
    "conversation.jsonl": "turn",
    "decisions.jsonl": "decision",
    "findings.jsonl": "finding",
    "preferences.jsonl": "preference",
}
# What is computed anew, and so not kept.
_COMPUTED: Final = ("decay_factor", "current_relevance", "checksum", "schema_version", "session_id")


def read_folders(path: Path) -> Iterator[ForeignSession]:
    """Yield the sessions of a session folder with a manifest, or of the folder around several."""
    if (path / "manifest.json").is_file():
        yield _folder_001(path, {})
        return
    config, trouble = _config(path)
    settings = overrides.of_001(config)
    for manifest in sorted((path / "sessions").glob("*/manifest.json")):
        yield _folder_001(manifest.parent, settings)
    for archive in sorted((path / "archive").glob("*.tar.gz")):
        with opened_archive(archive, is_session) as (folder, why):
            yield _archived_001(archive, folder, why, settings)
    if trouble:
        yield ForeignSession(format="001", id="", items=iter(trouble))
    if (path / "shared").is_dir():
        yield ForeignSession(format="001", id="shared", items=_shared(path / "shared"), shared=True)


def is_session(folder: Path) -> bool:
    """Whether a folder is a session with a manifest."""
    return (folder / "manifest.json").is_file()


def _config(path: Path) -> tuple[dict[str, object], list[Item]]:
    place = path / "config.json"
    return _told(place) if is_plain(place) else ({}, [])


def _archived_001(
    archive: Path, folder: Path | None, why: str, settings: Mapping[str, object]
) -> ForeignSession:
    """Return an archived session; what its archive cannot tell, the manifest beside it tells."""
    name = archive.name.removesuffix(".tar.gz")
    beside = archive.with_name(f"{name}.manifest.json")
    said, _ = _told(beside) if is_plain(beside) else ({}, [])
    if folder is None:
        trouble = Trouble(where=f"{archive.parent.name}/{archive.name}", reason=why)
        found = ForeignSession(format="001", id=name, items=iter((trouble,)))
    else:
        found = _folder_001(folder, settings)
    return replace(found, archived=ForeignArchive(as_time(said.get("archived_at"))))


def _folder_001(folder: Path, settings: Mapping[str, object]) -> ForeignSession:
    said, trouble = _told(folder / "manifest.json")
    about = said.pop("metadata", None)
    context = dict(about) if isinstance(about, dict) else {}
    return ForeignSession(
        format="001",
        id=as_text(said.get("session_id") or folder.name),
        items=_items_001(folder, trouble),
        created_at=as_time(said.get("created_at")),
        user=as_text(said.get("user_id")) or None,
        agents=tuple(ids_of(said.get("agent_ids"))),
        context=context,
        tags=tuple(ids_of(context.pop("tags", None))),
        overrides=settings,
    )


def _told(path: Path) -> tuple[dict[str, object], list[Item]]:
    try:
        return json_object(path, f"{path.parent.name}/{path.name}"), []
    except InvalidFileError as error:
        return {}, [Trouble(where=f"{path.parent.name}/{path.name}", reason=error.message)]


def _items_001(folder: Path, trouble: list[Item]) -> Iterator[Item]:
    yield from trouble
    for name, kind in _FILES_001.items():
        file = folder / name
        for row in json_lines(file, f"{folder.name}/{name}") if is_plain(file) else ():
            if isinstance(row, Trouble):
                yield row
            elif row.value.get("deleted") is True:
                yield ForeignDeletion(as_text(row.value.get("id")))
            else:
                yield entry_001(kind, row)


def entry_001(kind: str, row: JsonRow) -> ForeignMemory:
    """Return the memory of a line of a session folder."""
    raw = {name: value for name, value in row.value.items() if name not in _COMPUTED}
    links: list[tuple[str, str]] = []
    if kind == "turn":
        for part in ("context", "metadata"):
            inner = raw.get(part)
            if isinstance(inner, dict):
                raw = {**{k: v for k, v in raw.items() if k != part}, **inner}
        if "references" in raw:
            raw["memory_refs"] = ids_of(raw.pop("references"))
    else:
        links = [("references", each) for each in ids_of(raw.pop("references", None))]
    if kind == "finding" and "finding" not in raw and "description" in raw:
        raw["finding"] = raw.pop("description")
    name, at = raw.pop("id", ""), raw.pop("timestamp", None)
    who, tags = writer_in(kind, raw), raw.pop("tags", ())
    raw.pop("agent_id", None)
    last, reads = raw.pop("last_accessed", None), raw.pop("access_count", 0)
    return made(
        kind,
        name,
        text_in(kind, raw),
        raw,
        where=row.where,
        agent=who,
        at=at,
        tags=tags,
        links=links,
        reads=reads,
        last_read=last,
    )


def _shared(folder: Path) -> Iterator[Item]:
    """Yield what holds across sessions: the user's preferences, what agents learned."""
    for name, kind in (("user-preferences", "preference"), ("agent-knowledge", "learning")):
        file = folder / f"{name}.json"
        if not is_plain(file):
            continue
        said, trouble = _told(file)
        yield from trouble
        for number, (key, value) in enumerate(_listed(said)):
            where = f"shared/{file.name}:{number + 1}"
            raw = dict(value) if isinstance(value, dict) else {"key": key, "value": value}
            yield _shared_entry(kind, f"{name}/{key}", raw, where)


def _listed(said: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    for key, value in said.items():
        if isinstance(value, list):
            for number, item in enumerate(value):
                yield f"{key}-{number + 1}", item
        else:
            yield key, value


def _shared_entry(kind: str, name: str, raw: dict[str, object], where: str) -> ForeignMemory:
    word = name.rpartition("/")[2]
    text = text_in(kind, raw) or f"{word}: {as_text(storable(raw.get('value', raw)))}"
    at, tags = raw.pop("timestamp", None), raw.pop("tags", ())
    return made(
        kind, raw.pop("id", name), text, raw, where=where, at=at, tags=tags, agent=raw.get("agent")
    )


# 004: a folder a session, one file of all memories


def read_memory_folders(path: Path) -> Iterator[ForeignSession]:
    """Yield the sessions of a folder with `memory.jsonl`, or of the folder around several."""
    if (path / "memory.jsonl").is_file():
        yield _folder_004(path, {})
        return
    config, trouble = _config(path)
    for file in sorted((path / "sessions").glob("*/memory.jsonl")):
        yield _folder_004(file.parent, config)
    if trouble:
        yield ForeignSession(format="004", id="", items=iter(trouble))


def _folder_004(folder: Path, config: Mapping[str, object]) -> ForeignSession:
    said, trouble = (
        _told(folder / "metadata.json") if is_plain(folder / "metadata.json") else ({}, [])
    )
    return ForeignSession(
        format="004",
        id=as_text(said.get("session_id") or folder.name),
        items=_items_004(folder, trouble),
        created_at=as_time(said.get("created_at")),
        user=as_text(said.get("user_id")) or None,
        overrides=overrides.of_004(config, said),
    )


def _items_004(folder: Path, trouble: list[Item]) -> Iterator[Item]:
    yield from trouble
    gone = set[str]()
    dead = folder / "tombstones.jsonl"
    for row in json_lines(dead, f"{folder.name}/{dead.name}") if is_plain(dead) else ():
        if isinstance(row, Trouble):
            yield row
        else:
            gone.add(as_text(row.value.get("id")))
    yield from map(ForeignDeletion, sorted(gone))
    file = folder / "memory.jsonl"
    for row in json_lines(file, f"{folder.name}/{file.name}"):
        if isinstance(row, Trouble):
            yield row
        elif as_text(row.value.get("id")) not in gone:
            yield entry_004(row)


def entry_004(row: JsonRow) -> Item:
    """Return the memory of a line of `memory.jsonl`, unless its checksum tells it was changed."""
    raw = dict(row.value)
    checksum = raw.pop("checksum", None)
    if isinstance(checksum, str) and checksum not in checksums(raw):
        return Trouble(where=row.where, reason="the checksum does not fit: the line was changed")
    kind = KINDS_THERE.get(as_text(raw.pop("type", "")))
    if kind is None:
        return Trouble(where=row.where, reason="not a memory: it has no known type")
    content = raw.pop("content", None)
    fields = {k: v for k, v in raw.items() if k not in _COMPUTED}
    name, at = fields.pop("id", ""), fields.pop("timestamp", None)
    tags, refs = fields.pop("tags", ()), ids_of(fields.pop("references", None))
    reads, last = fields.pop("access_count", 0), fields.pop("last_accessed", None)
    inner = dict(content) if isinstance(content, dict) else {"content": as_text(content)}
    extra = inner.pop("metadata", None)
    if isinstance(extra, dict):
        inner |= {k if k not in inner else k + GIVEN: v for k, v in extra.items()}
    text = text_in(kind, inner)
    return made(
        kind,
        name,
        text,
        {**inner, **fields},
        where=row.where,
        agent=writer_in(kind, inner),
        at=at,
        tags=tags,
        links=[("references", each) for each in refs],
        reads=reads,
        last_read=last,
    )
