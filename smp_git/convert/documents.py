"""Session folders of YAML and Markdown (003): metadata, conversation.md, decisions, findings, states."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from smp_git.convert.entries import (
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
)
from smp_git.convert.files import is_plain, text_of, yaml_object
from smp_git.convert.unpacking import opened_archive
from smp_git.format.metadata import PATH as METADATA
from smp_git.model.errors import InvalidFileError

_LISTS: Final = {
    "decisions.yaml": ("decision", "decisions"),
    "findings.yaml": ("finding", "findings"),
    "preferences.yaml": ("preference", "preferences"),
    "learnings.yaml": ("learning", "learnings"),
}
# What of a session's metadata has a place of its own here, or is computed anew.
_TOLD: Final = (
    "id", "created_at", "last_accessed", "status", "storage", "decay", "participants", "context",
)  # fmt: skip
_PARTS: Final = (METADATA, "conversation.md", *_LISTS, "agent-states", "artifacts")
_TURN: Final = re.compile(r"^## Turn (\d+) - (.+?)\s*$", re.MULTILINE)
_ABOUT: Final = re.compile(r"\*\*([A-Z][A-Za-z-]*):\*\*[ \t]*(.*)")
# A line that only looks like the beginning of a turn, as it is written in a text.
_KEPT_APART: Final = re.compile(r"^\\(\\*## Turn \d+ - )", re.MULTILINE)
_COUNTS: Final = ("tokens", "processing_time_ms")
# What the priority of each kind starts from where nothing else is said.
_BASES: Final = {"decision": 0.95, "finding": 0.9, "preference": 0.85}
_REFS: Final = re.compile(r"[A-Za-z]+-[A-Za-z0-9-]+")
_END: Final = re.compile(r"\n+---\s*(?:\n<!--.*?-->\s*)?\Z", re.DOTALL)
# A line of a "Memory Stored" block: - Finding: Missing MFA requirement [FIND-001]
_STORED: Final = re.compile(
    r"[-*] (?:(?:Decision|Finding|Preference|Learning)(?:: | to | that )?)?(.+?) \[(DEC|FIND|PREF|LEARN)(-[A-Za-z0-9-]+)\]"
)
_PREFIXES: Final = {
    "DEC": "decision",
    "FIND": "finding",
    "PREF": "preference",
    "LEARN": "learning",
}
_LAST: Final = re.compile(r"\n<!-- Conversation continues.*?-->\s*\Z", re.DOTALL)


def is_session(folder: Path) -> bool:
    """Whether a folder is a session of YAML and Markdown that no Git repository holds."""
    if (folder / ".git").exists():
        return False
    named = (folder / METADATA).is_file() or (folder / "conversation.md").is_file()
    return named and any((folder / part).exists() for part in _PARTS)


def is_archived(folder: Path) -> bool:
    """Whether a folder is what is left of a session that was archived."""
    return (folder / "summary.yaml").is_file() or (folder / "archive.tar.gz").is_file()


def read(path: Path) -> Iterator[ForeignSession]:
    """Yield the sessions of a session folder, or of the folder around active and archived ones."""
    if path.is_file():
        yield _log(path)
        return
    if is_session(path):
        yield _session(path, set())
        return
    for part in ("active", "archived"):
        for folder in sorted(each for each in (path / part).glob("*") if each.is_dir()):
            gone = _deleted(path / "deleted" / folder.name)
            if is_session(folder):
                found = _session(folder, gone)
                is_put_away = part == "archived" and found.archived is None
                yield replace(found, archived=ForeignArchive()) if is_put_away else found
            elif is_archived(folder):
                yield from _archived(folder, gone)
    if (path / "global").is_dir() and not (path / "global" / ".git").exists():
        yield ForeignSession(format="003", id="global", items=_global(path / "global"), shared=True)


def is_log(path: Path) -> bool:
    """Whether a file is a conversation, turn by turn."""
    try:
        return _TURN.search(text_of(path, path.name)) is not None
    except InvalidFileError:
        return False


def _log(path: Path) -> ForeignSession:
    """Return a conversation that stands alone as a session."""
    said = dict(_ABOUT.findall(text_of(path, path.name)[:2000].partition("\n## ")[0]))
    people = [each.strip() for each in said.get("Participants", "").split(",") if each.strip()]
    name = said.get("Session", "").strip()
    return ForeignSession(
        format="003",
        id=name or path.stem,
        place=None if name else path,
        items=_of_log(path),
        created_at=as_time(said.get("Started")),
        agents=tuple(people),
    )


def _of_log(path: Path) -> Iterator[Item]:
    known = set[str]()
    for item in _turns(path, path.name):
        yield item
        if isinstance(item, ForeignMemory):
            yield from _stored(item, known)


def _deleted(folder: Path) -> set[str]:
    """Return the ids that the record of a deletion names."""
    names = set()
    for file in sorted(folder.glob("*deletion-record.yaml")) if folder.is_dir() else ():
        try:
            said = yaml_object(file, file.name).get("deletion")
        except InvalidFileError:
            continue
        items = said.get("deleted_items") if isinstance(said, dict) else None
        for item in items if isinstance(items, list) else ():
            if isinstance(item, dict):
                names.add(as_text(item.get("id")))
    return names


def _session(folder: Path, gone: set[str]) -> ForeignSession:
    trouble: list[Item] = []
    told = _mapping(folder / METADATA, folder.name, trouble)
    session = told.get("session")
    said = dict(session) if isinstance(session, dict) else {}
    people = said.get("participants")
    who = dict(people) if isinstance(people, dict) else {}
    agents = who.get("agents")
    about = said.get("context")
    context = {name: value for name, value in said.items() if name not in _TOLD}
    context |= dict(about) if isinstance(about, dict) else {}
    return ForeignSession(
        format="003",
        id=as_text(said.get("id") or folder.name),
        items=_items(folder, trouble, gone),
        created_at=as_time(said.get("created_at")),
        user=as_text(who.get("user_id")) or None,
        agents=tuple(
            as_text(each.get("agent_id") if isinstance(each, dict) else each)
            for each in (agents if isinstance(agents, list) else ())
        ),
        tags=tuple(ids_of(context.pop("tags", None))),
        context=context,
        archived=ForeignArchive() if said.get("status") == "archived" else None,
    )


def _mapping(path: Path, folder: str, trouble: list[Item]) -> dict[str, object]:
    if not path.exists():
        return {}
    where = f"{folder}/{path.name}"
    try:
        return yaml_object(path, where)
    except InvalidFileError as error:
        trouble.append(_trouble(where, error))
        return {}


def _trouble(where: str, error: InvalidFileError) -> Trouble:
    place, _, reason = error.message.partition(": ")
    named = reason and place.startswith(where)
    return Trouble(where=place if named else where, reason=reason if named else error.message)


def _items(folder: Path, trouble: list[Item], gone: set[str]) -> Iterator[Item]:
    yield from trouble
    # A turn is called by its number in one place, and turn-42 in another.
    names = gone | {f"turn-{int(name)}" for name in gone if name.isdigit()}
    yield from map(ForeignDeletion, sorted(gone))
    for item in _whole(folder):
        if not (isinstance(item, ForeignMemory) and item.id in names):
            yield item


def _whole(folder: Path) -> Iterator[Item]:
    known = set[str]()
    for name in _LISTS:
        for item in _each_of(folder, name, _listed):
            if isinstance(item, ForeignMemory):
                known.add(item.id)
            yield item
    for item in _each_of(folder, "conversation.md", _turns):
        yield item
        if isinstance(item, ForeignMemory):
            yield from _stored(item, known)
    for file in sorted((folder / "agent-states").glob("*.yaml")):
        yield from _each_of(folder / "agent-states", file.name, _state)
    for file in sorted((folder / "artifacts").glob("*.md")):
        yield from _each_of(folder / "artifacts", file.name, _artifact)


def _each_of(
    folder: Path, name: str, read_one: Callable[[Path, str], Iterator[Item]]
) -> Iterator[Item]:
    path = folder / name
    if not path.exists():
        return
    where = f"{folder.name}/{name}"
    try:
        yield from read_one(path, where)
    except InvalidFileError as error:
        yield _trouble(where, error)


def _turns(path: Path, where: str) -> Iterator[Item]:
    """Yield the turns of a conversation, each from its heading to the next."""
    text = text_of(path, where)
    heads = list(_TURN.finditer(text))
    line, known = 1, 0
    for number, head in enumerate(heads):
        line += text.count("\n", known, head.start())
        known = head.start()
        end = heads[number + 1].start() if number + 1 < len(heads) else len(text)
        yield _turn(head, text[head.end() : end], f"{where}:{line}")
    if not heads and text.strip() and not text.startswith("# Conversation History"):
        yield Trouble(where=where, reason="no turn begins with '## Turn 1 - TIME'")


def _turn(head: re.Match[str], body: str, where: str) -> ForeignMemory:
    about, text = _about(body)
    raw: dict[str, object] = {"type": about.pop("Type", "message")}
    who = about.pop("Speaker", "")
    raw["speaker"] = who
    refs = _REFS.findall(about.pop("Memory-Refs", ""))
    if refs:
        raw["memory_refs"] = refs
    tags = [tag.strip() for tag in about.pop("Tags", "").strip("[]").split(",") if tag.strip()]
    for name, value in about.items():
        plain = name.lower().replace("-", "_")
        is_count = plain in _COUNTS and value.isdecimal() and value.isascii()
        raw[plain] = int(value) if is_count else value
    return made("turn", f"turn-{head[1]}", text, raw, where=where, agent=who, at=head[2], tags=tags)


def _stored(turn: ForeignMemory, known: set[str]) -> Iterator[ForeignMemory]:
    """Yield the memories that a turn says were stored, if nothing else says more of them."""
    _, block, lines = turn.text.partition("**Memory Stored:**")
    for line in lines.split("\n") if block else ():
        found = _STORED.fullmatch(line.strip())
        kind = _PREFIXES.get(found[2]) if found else None
        if found is None or kind is None or found[2] + found[3] in known:
            continue
        known.add(found[2] + found[3])
        raw: dict[str, object] = {"turn_ref": turn.id}
        text = found[1].strip().rstrip(":")
        yield made(
            kind,
            found[2] + found[3],
            text[:1].upper() + text[1:],
            raw,
            where=turn.where,
            agent=turn.fields.get("speaker") or turn.agent,
            at=turn.at,
        )


def _about(body: str) -> tuple[dict[str, str], str]:
    """Return what the lines under a heading say of a turn, and the text after them."""
    about: dict[str, str] = {}
    lines = body.lstrip("\n").split("\n")
    while lines and (found := _ABOUT.fullmatch(lines[0].rstrip())):
        about[found[1]] = found[2]
        del lines[0]
    text = _END.sub("", _LAST.sub("", "\n".join(lines))).strip("\n")
    return about, _KEPT_APART.sub(r"\1", text)


def _listed(path: Path, where: str) -> Iterator[Item]:
    kind, key = _LISTS[path.name]
    items = yaml_object(path, where).get(key)
    if items is None:
        return
    if not isinstance(items, list):
        yield Trouble(where=where, reason=f"{key} is not a list")
        return
    for number, item in enumerate(items):
        place = f"{where}[{number + 1}]"
        if isinstance(item, dict):
            yield entry_003(kind, dict(item), place)
        else:
            yield Trouble(where=place, reason="not a mapping of keys to values")


def entry_003(kind: str, raw: dict[str, object], where: str) -> ForeignMemory:
    """Return the memory of an item of a list."""
    decay = raw.pop("decay", None)
    known = dict(decay) if isinstance(decay, dict) else {}
    if "base_priority" in known and known["base_priority"] != _BASES.get(kind):
        raw["importance"] = known["base_priority"]
    name, at = raw.pop("id", ""), raw.pop("timestamp", None)
    tags, text = raw.pop("tags", ()), raw.pop(kind, None) or raw.pop("content", "")
    who = raw.get("made_by") or raw.get("discovered_by") or raw.get("created_by") or ""
    ref = raw.get("turn_ref")
    if ref is not None:
        raw["turn_ref"] = f"turn-{as_text(ref).removeprefix('turn-')}"
    links = list(_related(raw))
    return made(
        kind,
        name,
        text,
        raw,
        where=where,
        agent=who,
        at=at,
        tags=tags,
        links=links,
        reads=known.get("access_count", 0),
        last_read=known.get("last_accessed"),
    )


def _related(raw: dict[str, object]) -> Iterator[tuple[str, str]]:
    """Take out the relations of a memory, which are kept as links."""
    found = raw.pop("relationships", None)
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and "target" in each:
            yield as_text(each.get("relationship") or "references"), as_text(each["target"])
    for word in ("resolves", "led_to", "influenced", "contradicts"):
        value = raw.get(word)
        if isinstance(value, (str, list)) and ids_of(value):
            del raw[word]
            yield from ((word, each) for each in ids_of(value))


def _state(path: Path, where: str) -> Iterator[Item]:
    said = yaml_object(path, where)
    inner = said.get("agent_state")
    raw = dict(inner) if isinstance(inner, dict) else dict(said)
    who = as_text(raw.pop("agent_id", "") or path.stem)
    raw.pop("session_id", None)
    at, decay = raw.pop("last_updated", None), raw.pop("decay", None)
    last = decay.get("last_accessed") if isinstance(decay, dict) else None
    yield made("state", f"state-{who}", "", raw, where=where, agent=who, at=at, last_read=last)


def _artifact(path: Path, where: str) -> Iterator[Item]:
    text = text_of(path, where)
    raw: dict[str, object] = {"name": path.name, "media_type": "text/markdown"}
    yield made("artifact", path.stem, text, raw, where=where)


_SHARED: Final[Mapping[str, tuple[str, str]]] = {
    "cross-session-preferences.yaml": ("preference", "preferences"),
    "learned-patterns.yaml": ("learning", "patterns"),
    "user-profile.yaml": ("preference", "profile"),
}


def _global(folder: Path) -> Iterator[Item]:
    """Yield what holds across sessions; the format's description leaves the form to the writer."""
    for name, (kind, key) in _SHARED.items():
        trouble: list[Item] = []
        said = _mapping(folder / name, folder.name, trouble)
        yield from trouble
        inner = said.get(key, next(iter(said.values()), None) if len(said) == 1 else said)
        where = f"{folder.name}/{name}"
        if isinstance(inner, list):
            for number, item in enumerate(inner):
                raw = dict(item) if isinstance(item, dict) else {kind: item}
                raw.setdefault("id", f"{path_stem(name)}-{number + 1}")
                yield entry_003(kind, raw, f"{where}[{number + 1}]")
        elif isinstance(inner, dict):
            for word, value in inner.items():
                yield _told(kind, path_stem(name), as_text(word), value, where)


def path_stem(name: str) -> str:
    """Return the name of a file without its ending."""
    return name.rpartition(".")[0]


def _told(kind: str, topic: str, word: str, value: object, where: str) -> ForeignMemory:
    raw: dict[str, object] = {"topic": topic, "value": value}
    if kind == "preference":
        raw["key"] = word
    text = f"{word}: {as_text(value)}"
    return made(kind, f"{topic}/{word}", text, raw, where=f"{where}:{word}")


def _archived(folder: Path, gone: set[str]) -> Iterator[ForeignSession]:
    """Yield an archived session with what its tar holds, or else what its summary says."""
    trouble: list[Item] = []
    summary = _mapping(folder / "summary.yaml", folder.name, trouble)
    told = ForeignArchive(
        as_time(summary.get("archived_at")),
        as_text(summary.get("archived_by")) or None,
        as_text(summary.get("reason")) or None,
    )
    archive = folder / "archive.tar.gz"
    if not is_plain(archive):
        yield ForeignSession(
            format="003", id=folder.name, items=_summary(folder, summary, trouble), archived=told
        )
        return
    with opened_archive(archive, is_session) as (inner, why):
        if inner is not None:
            yield replace(_session(inner, gone), archived=told)
            return
        trouble.append(Trouble(where=f"{folder.name}/{archive.name}", reason=why))
        yield ForeignSession(
            format="003", id=folder.name, items=_summary(folder, summary, trouble), archived=told
        )


def _summary(folder: Path, said: dict[str, object], trouble: list[Item]) -> Iterator[Item]:
    yield from trouble
    if said:
        text = as_text(said.get("summary") or "") or f"Archived session {folder.name}"
        yield made(
            "artifact", "summary", text, {"name": "summary.yaml", "type": "summary", **said},
            where=f"{folder.name}/summary.yaml",
        )  # fmt: skip
