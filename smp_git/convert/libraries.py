"""Memories that other libraries keep for agents: exports of mem0, and the store of LangGraph."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final

from smp_git.convert.entries import ForeignSession, Item, Trouble, as_text, made
from smp_git.convert.files import LONGEST, JsonRow, JsonRows, json_lines, json_list
from smp_git.model.errors import InvalidError

# mem0


def is_mem0(value: Mapping[str, object]) -> bool:
    """Whether an object is a memory as mem0 returns it."""
    return isinstance(value.get("memory"), str) and "id" in value and "kind" not in value


def is_mem0_answer(value: Mapping[str, object]) -> bool:
    """Whether an object is what mem0 returns for all memories."""
    found = value.get("results")
    first = found[0] if isinstance(found, list) and found else None
    return isinstance(first, dict) and is_mem0(first)


def read_mem0(path: Path) -> Iterator[ForeignSession]:
    """Yield a file of what mem0 returns for all memories: an object, a list, or a line for each."""
    yield ForeignSession(format="mem0", id=path.stem, place=path, items=_of_mem0(path))


def _of_mem0(path: Path) -> Iterator[Item]:
    for row in _rows(path):
        if isinstance(row, Trouble):
            yield row
        elif is_mem0(row.value):
            yield _learned(row)
        else:
            yield Trouble(where=row.where, reason="not a memory of mem0")


def _rows(path: Path) -> JsonRows:
    if path.suffix.lower() != ".json":
        yield from json_lines(path, path.name)
        return
    with path.open("rb") as file:
        for row in json_list(file, path.name):
            if isinstance(row, JsonRow) and is_mem0_answer(row.value):
                results = row.value["results"]
                assert isinstance(results, list)  # noqa: S101 - that is what an answer has
                yield from _numbered(results, path.name)
            else:
                yield row


def _numbered(items: list[object], shown: str) -> JsonRows:
    for number, item in enumerate(items):
        where = f"{shown}[{number + 1}]"
        if isinstance(item, dict):
            yield JsonRow(where, item)
        else:
            yield Trouble(where=where, reason="not a JSON object")


def _learned(row: JsonRow) -> Item:
    raw = {name: value for name, value in row.value.items() if name not in _READ}
    return made(
        "learning",
        row.value.get("id"),
        row.value.get("memory"),
        raw,
        where=row.where,
        agent=row.value.get("agent_id"),
        at=row.value.get("created_at"),
        tags=row.value.get("categories") or (),
    )


# The hash and the score are of mem0's own search.
_READ: Final = ("id", "memory", "hash", "score", "created_at", "categories")


# LangGraph

_STARTS: Final = b"SQLite format 3\0"
_TEXTS: Final = ("content", "text", "memory", "data")


def is_sqlite(path: Path) -> bool:
    """Whether a file is a database of SQLite."""
    with path.open("rb") as file:
        return file.read(len(_STARTS)) == _STARTS


def is_langgraph(path: Path) -> bool:
    """Whether a database is the store of LangGraph; raise InvalidError if it has checkpoints alone."""
    try:
        with closing(_opened(path)) as base:
            tables = {name: sql or "" for name, sql in base.execute(_TABLES)}
    except sqlite3.Error as error:
        raise InvalidError(f"{path} cannot be read as a database: {error}") from None
    if "store" in tables and tables["store"].startswith("CREATE TABLE"):
        return True
    if "checkpoints" in tables:
        raise InvalidError(
            f"{path} holds checkpoints of LangGraph, which only its own classes can read",
            hint="docs/how-to/import-and-export.md shows how its conversations come out",
        )
    return False


_TABLES: Final = "SELECT name, sql FROM sqlite_master WHERE type = 'table'"
# In the order of the table, so that rows before a damaged page come in.
_ROWS: Final = "SELECT prefix, key, value, created_at, updated_at FROM store"


def _opened(path: Path) -> sqlite3.Connection:
    """Open a database of somebody else: nothing is written, and nothing in it is run."""
    base = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    base.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
    base.execute("PRAGMA trusted_schema = OFF")
    return base


def read_langgraph(path: Path) -> Iterator[ForeignSession]:
    """Yield the store of LangGraph: an item is a learning, its namespace a tag."""
    yield ForeignSession(format="langgraph", id=path.stem, place=path, items=_of_store(path))


def _of_store(path: Path) -> Iterator[Item]:
    try:
        with closing(_opened(path)) as base:
            for row in base.execute(_ROWS):
                yield _item(path.name, *map(_text, row))
    except sqlite3.Error as error:
        yield Trouble(where=path.name, reason=f"the database cannot be read further: {error}")


def _item(file: str, space: str, key: str, value: str, created: str, updated: str) -> Item:
    where = f"{file}:{space}/{key}"
    try:
        said = json.loads(value)
    except (ValueError, RecursionError):
        return Trouble(where=where, reason="its value is not JSON")
    fields = dict(said) if isinstance(said, dict) else {"value": said}
    text = _main(fields)
    raw = {
        **fields,
        "title": key,
        "namespace": space,
        "changed_at": updated if updated != created else None,
    }
    return made(
        "learning", f"{space}/{key}", text, raw, where=where, at=f"{created}+00:00", tags=[space]
    )


def _text(value: object) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else as_text(value)


def _main(fields: dict[str, object]) -> str:
    """Take the text out of a value: under one of the usual names, or else the whole value."""
    for name in _TEXTS:
        inner = fields.get(name)
        if isinstance(inner, str) and inner.strip():
            return as_text(fields.pop(name))
        if isinstance(inner, dict) and isinstance(inner.get("content"), str):
            return as_text(inner["content"])
    return as_text(fields)
