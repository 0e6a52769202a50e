"""Formats that can be taken in, and the recognition of a path by its content."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.convert import accounts, bundle, chats, documents, libraries, logs, notes, own
from smp_git.convert.entries import ForeignSession
from smp_git.convert.files import (
    JsonRow,
    is_plain,
    json_lines,
    json_list,
    yaml_object,
)
from smp_git.model.errors import InvalidError, NotFoundError, SmpError
from smp_git.remove.forgotten import origin_at


class Format(NamedTuple):
    """A format: what it is, in words, and its reader."""

    about: str
    read: Callable[[Path], Iterator[ForeignSession]]


FORMATS: Final[Mapping[str, Format]] = {
    "000": Format("a log, one JSON line a memory", logs.read_minimal),
    "001": Format("session folders with manifest.json", logs.read_folders),
    "003": Format("session folders of YAML and Markdown", documents.read),
    "004": Format("memory folders with memory.jsonl", logs.read_memory_folders),
    "claude-code": Format("transcripts of Claude Code", chats.read_transcripts),
    "chatgpt": Format("an export of a ChatGPT account", accounts.read_chatgpt),
    "claude": Format("an export of a Claude account", accounts.read_claude),
    "mcp-memory": Format("memory.jsonl of the MCP memory server", notes.read_graph),
    "notes": Format("a folder of Markdown notes", notes.read_notes),
    "mem0": Format("what mem0 returns for all memories, as JSON", libraries.read_mem0),
    "langgraph": Format("the SQLite store of LangGraph", libraries.read_langgraph),
    "jsonl": Format("JSON lines, as smp export writes them", own.read_lines),
    "json": Format("one JSON object, as smp export writes it", own.read_json),
    "yaml": Format("one YAML document, as smp export writes it", own.read_yaml),
}
# A session with its history is no list of memories, and taken in as a clone.
BUNDLE: Final = "bundle"
_SNIFFED: Final = 50


def format_of(path: Path, as_format: str | None) -> str:
    """Return the format of a path; raise an error that says the way out."""
    if not path.exists():
        raise NotFoundError(f"{path} does not exist", hint="name a file or a folder")
    if not path.is_dir() and not path.is_file():
        raise InvalidError(f"{path} is neither a file nor a folder", hint="name a file or a folder")
    if as_format is not None and as_format not in (*FORMATS, BUNDLE):
        raise InvalidError(f"no format {as_format!r}", hint=f"formats are {', '.join(FORMATS)}")
    name = as_format or recognised(path)
    if name is None:
        raise InvalidError(
            f"{path} is of no known format", hint=f"say which with --as: {', '.join(FORMATS)}"
        )
    return name


def recognised(path: Path) -> str | None:
    """Return the format of a path by what is in it, None if it is none."""
    with suppress(OSError, UnicodeError):
        return _of_folder(path) if path.is_dir() else _of_file(path)
    return None


def _of_folder(path: Path) -> str | None:
    if _is_ours(path):
        raise InvalidError(
            f"{path} is a session or store of smp-git", hint="smp clone or smp sync takes it"
        )
    if accounts.is_export(path):
        return accounts.format_of(path)
    told = {
        "003": documents.is_session(path) or _has_sessions(path),
        "001": logs.is_session(path)
        or any(path.glob("sessions/*/manifest.json"))
        or any(path.glob("archive/*.manifest.json")),
        "004": (path / "metadata.json").is_file() or any(path.glob("sessions/*/memory.jsonl")),
    }
    return next((name for name, found in told.items() if found), None) or _of_files_in(path)


def _is_ours(path: Path) -> bool:
    """Whether a folder is a session or a store; any other may be in Git as well."""
    is_session = (path / ".git").exists() and bool(origin_at(path).uid)
    return is_session or any(path.glob("active/*/.git"))


def _of_files_in(path: Path) -> str | None:
    for file in islice(path.rglob("*.jsonl"), _SNIFFED):
        found = _of_lines(file) if is_plain(file) else None
        if found in ("000", "claude-code"):
            return found
    return "notes" if any(map(notes.is_note, path.rglob("*"))) else None


def _has_sessions(path: Path) -> bool:
    folders = (*path.glob("active/*"), *path.glob("archived/*"))
    return any(documents.is_session(each) or documents.is_archived(each) for each in folders)


def _of_file(path: Path) -> str | None:
    suffix = path.suffix.lower()
    if libraries.is_sqlite(path):
        return "langgraph" if libraries.is_langgraph(path) else None
    if suffix == ".zip" or zipfile.is_zipfile(path):
        return _of_zip(path)
    if suffix == ".json":
        return _of_json(path)
    if suffix in (".yaml", ".yml"):
        return _of_yaml(path)
    if notes.is_note(path):
        return "003" if documents.is_log(path) else "notes"
    return _of_lines(path)


def _of_yaml(path: Path) -> str | None:
    with suppress(SmpError):
        return "yaml" if own.is_memory(yaml_object(path, path.name)) else None
    return None


def _of_zip(path: Path) -> str | None:
    try:
        with zipfile.ZipFile(path) as archive:
            return BUNDLE if bundle.is_bundle(archive) else accounts.format_of(path)
    except zipfile.BadZipFile as error:
        raise InvalidError(f"{path} cannot be read as a zip: {error}") from None


def _of_json(path: Path) -> str | None:
    with path.open("rb") as file:
        for row in islice(json_list(file, path.name), 1):
            if isinstance(row, JsonRow):
                if libraries.is_mem0(row.value) or libraries.is_mem0_answer(row.value):
                    return "mem0"
                if own.is_memory(row.value):
                    return "json"
    return accounts.format_of(path)


def _of_lines(path: Path) -> str | None:
    """Return the format of JSON lines, by the first of them that tells."""
    rows = (
        row.value
        for row in islice(json_lines(path, path.name), _SNIFFED)
        if isinstance(row, JsonRow)
    )
    for value in rows:
        if logs.is_minimal(value):
            return "000"
        if notes.is_graph(value):
            return "mcp-memory"
        if libraries.is_mem0(value):
            return "mem0"
        if own.is_memory(value):
            return "jsonl"
        if chats.is_transcript(value):
            return "claude-code"
    return None
