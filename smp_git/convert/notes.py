"""Notes: a folder of Markdown with front matter and links, and the graph of the MCP memory server."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final
from urllib.parse import unquote

from smp_git.convert.entries import (
    ForeignSession,
    Item,
    PassedOver,
    Trouble,
    as_relation,
    as_text,
    made,
)
from smp_git.convert.files import JsonRow, is_plain, json_lines, text_of
from smp_git.format import yamlfile
from smp_git.model.errors import InvalidFileError

_WIKI: Final = re.compile(r"!?\[\[([^\[\]|#^\n]+)(?:[#^][^\[\]|\n]*)?(?:\|[^\[\]\n]*)?\]\]")
_LINK: Final = re.compile(r"\]\(<?([^()<>\s]+\.md)(?:#[^()\s]*)?>?\)")
_RELATION: Final = re.compile(
    r"^[-*] ([a-z][a-z0-9_ -]{0,40}) \[\[([^\[\]|#\n]+)", re.MULTILINE | re.IGNORECASE
)
_TAG: Final = re.compile(r"(?<![\w#/&])#([A-Za-z][\w/-]{0,60})")
_CODE: Final = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_HEADING: Final = re.compile(r"^# +(.+?) *$", re.MULTILINE)
_SUFFIXES: Final = (".md", ".markdown")


def is_note(path: Path) -> bool:
    """Whether a path is a file of Markdown."""
    return path.suffix.lower() in _SUFFIXES and is_plain(path)


def read_notes(path: Path) -> Iterator[ForeignSession]:
    """Yield a folder of notes, or one note, as a session."""
    whole = path.absolute()
    # Claude Code keeps a folder of this name for each project.
    label = f"{whole.parent.name}-{whole.name}" if whole.name == "memory" else whole.name
    yield ForeignSession(format="notes", id=label, place=path, items=_notes(path))


def _notes(path: Path) -> Iterator[Item]:
    root = path.parent if path.is_file() else path
    files = [path] if path.is_file() else list(_files(root))
    known = _names(files, root)
    for file in files:
        shown = file.relative_to(root).as_posix()
        try:
            front, body = _parts(text_of(file, shown), shown)
        except InvalidFileError as error:
            yield Trouble(where=shown, reason=error.message.removeprefix(f"{shown}: "))
            continue
        if isinstance(front, Trouble):
            yield front
            front = {}
        yield _note(file, shown, front, body, known)
    if path.is_dir():
        yield from _others(root)


def _files(root: Path) -> Iterator[Path]:
    for path in sorted(root.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(root).parts)
        if not hidden and is_note(path):
            yield path


def _others(root: Path) -> Iterator[Item]:
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if any(part.startswith(".") for part in parts) or path.is_dir() or is_note(path):
            continue
        yield PassedOver("files that are not Markdown" if is_plain(path) else "links and odd files")


def _names(files: list[Path], root: Path) -> dict[str, str]:
    """Return what notes are called by in links, and the id of each: by their place, then their title."""
    out: dict[str, str] = {}
    titles: list[tuple[str, str]] = []
    for file in files:
        shown = file.relative_to(root).as_posix()
        for name in (shown, shown.rpartition(".")[0], file.name, file.stem):
            out.setdefault(name.casefold(), shown)
        with suppress(InvalidFileError):
            front, _ = _parts(text_of(file, shown), shown)
            said = front if isinstance(front, dict) else {}
            titles += [
                (str(said[key]), shown) for key in ("title", "permalink", "name") if key in said
            ]
    for title, shown in titles:
        out.setdefault(title.casefold(), shown)
    return out


def _note(
    file: Path, shown: str, front: dict[str, object], body: str, known: Mapping[str, str]
) -> Item:
    plain = _CODE.sub(" ", body)
    given = front.pop("tags", None) or front.pop("tag", None) or []
    tags = [given] if isinstance(given, str) else list(given) if isinstance(given, list) else []
    tags += [tag for tag in _TAG.findall(plain) if tag not in tags]
    heading = _HEADING.search(plain)
    at = front.pop("created", None) or front.pop("date", None) or file.stat().st_mtime
    title = as_text(front.pop("title", None) or (heading[1] if heading else file.stem))
    kept = {
        k + "_given" if k in ("type", "name", "topic", "status") else k: v for k, v in front.items()
    }
    return made(
        "artifact",
        shown,
        body,
        {"title": title, "name": shown, "type": "note", "media_type": "text/markdown", **kept},
        where=shown,
        at=at,
        tags=tags,
        links=list(_links(plain, shown, known)),
    )


def _parts(text: str, shown: str) -> tuple[dict[str, object] | Trouble, str]:
    end = yamlfile.front_end(text)
    if end is None:
        return {}, text
    try:
        front = yamlfile.read(text[4 : end + 1], shown, 2)
    except InvalidFileError as error:
        return Trouble(where=shown, reason=f"front matter: {error.message}"), text
    return dict(front), text[end + 5 :].lstrip("\n")


def _links(text: str, shown: str, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    typed = {}
    for word, name in _RELATION.findall(text):
        typed[name.strip().casefold()] = as_relation(word)
    for name in _WIKI.findall(text):
        target = known.get(name.strip().casefold())
        if target and target != shown:
            yield typed.get(name.strip().casefold(), "references"), target
    here = shown.rpartition("/")[0]
    for name in _LINK.findall(text):
        plain = unquote(name)
        beside = posixpath.normpath(posixpath.join(here, plain))
        target = known.get(beside.casefold()) or known.get(plain.casefold())
        if target and target != shown:
            yield "references", target


# The graph of the MCP memory server: entities with observations, and relations between them


def is_graph(value: Mapping[str, object]) -> bool:
    """Whether a line is of a graph."""
    kind = value.get("type")
    return (kind == "entity" and "observations" in value) or (
        kind == "relation" and "from" in value
    )


def read_graph(path: Path) -> Iterator[ForeignSession]:
    """Yield the graph of a `memory.jsonl` as a session: an entity is a learning."""
    yield ForeignSession(
        format="mcp-memory",
        id=path.absolute().parent.name + "-" + path.stem,
        place=path,
        items=_graph(path),
    )


def _graph(path: Path) -> Iterator[Item]:
    relations: dict[str, list[tuple[str, str]]] = {}
    for row in json_lines(path, path.name):
        if isinstance(row, JsonRow) and row.value.get("type") == "relation":
            word = as_text(row.value.get("relationType") or "references")
            source, target = as_text(row.value.get("from")), as_text(row.value.get("to"))
            relations.setdefault(source, []).append((word, target))
    for row in json_lines(path, path.name):
        if isinstance(row, Trouble):
            yield row
        elif row.value.get("type") == "entity":
            yield _entity(row, relations)
        elif row.value.get("type") != "relation":
            yield Trouble(where=row.where, reason="neither an entity nor a relation")


def _entity(row: JsonRow, relations: Mapping[str, list[tuple[str, str]]]) -> Item:
    name = as_text(row.value.get("name"))
    seen = row.value.get("observations")
    lines = [as_text(each) for each in seen] if isinstance(seen, list) else []
    text = "\n".join([name, *(f"- {line}" for line in lines)])
    links = relations.get(name, [])
    words = {as_relation(word): word for word, _ in links if as_relation(word) != word}
    rest = {
        k: v
        for k, v in row.value.items()
        if k not in ("type", "name", "observations", "entityType")
    }
    kind = as_text(row.value.get("entityType"))
    raw = {"title": name, "category": kind or None, "relation_names": words or None, **rest}
    return made(
        "learning", name, text, raw, where=row.where, tags=[kind] if kind else (), links=links
    )
