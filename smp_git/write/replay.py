"""Replay of the write-ahead log that earlier versions kept, so that no write of theirs is lost."""

from __future__ import annotations

import json
import os
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from smp_git.git import disk
from smp_git.git.locks import locked
from smp_git.git.objects import Object
from smp_git.git.repository import drop_own_ref_lock
from smp_git.git.storage import Written, store
from smp_git.model.errors import SmpError
from smp_git.read.replica import Local

_LOG: Final = "smp/redo"
_FRAME: Final = struct.Struct(">4sII")
_MAGIC: Final = b"smp1"
# A writer that is at work has the lock for milliseconds.
_PATIENCE_SECONDS: Final = 5.0

# The head of a record: where a reference was and goes, the counters, and what is in its body.
_Head = dict[str, Any]


def before_reading(path: Path) -> None:
    """Bring back what only the log has, before anybody looks at the session at `path`."""
    if (path / ".git" / _LOG).exists():
        deadline, lock = time.monotonic() + _PATIENCE_SECONDS, Local(path / ".git").lock_path
        # What cannot be brought back now, on a disk that is read-only, is by the next writer.
        with (
            suppress(SmpError),
            disk.reporting(f"to session {path.name}"),
            locked(lock, deadline, "recovering"),
        ):
            replay(path / ".git")


def replay(git: Path) -> None:
    """Make durable what the log has, if there is one, and remove it; the caller holds the lock."""
    log = f"{git}/{_LOG}"
    if not os.access(log, os.F_OK):
        return
    records = list(_records(Path(log).read_bytes()))
    heads = [head for head, _ in records]
    objects = {item.id: item for _, body in records for item in body}
    with Written(git / "objects") as written:
        store(git / "objects", list(objects.values()), written)
        _recount(Local(git), heads, written)
        written.force()
    for ref in {head["ref"]: None for head in heads}:
        _move(git, ref, [head for head in heads if head["ref"] == ref])
    Path(log).unlink()


def _records(data: bytes) -> Iterator[tuple[_Head, list[Object]]]:
    """Yield the whole records, oldest first; the check of each goes on from the one before."""
    at = total = 0
    while len(frame := data[at : at + _FRAME.size]) == _FRAME.size:
        magic, length, expected = _FRAME.unpack(frame)
        body = data[at + _FRAME.size : at + _FRAME.size + length]
        total = zlib.crc32(body, total)
        if magic != _MAGIC or total != expected:
            return
        yield _read(body)
        at += _FRAME.size + length


def _read(body: bytes) -> tuple[_Head, list[Object]]:
    line, _, rest = body.partition(b"\n")
    head: _Head = json.loads(line)
    objects = []
    for _, length in head["objects"]:
        kind, _, data = zlib.decompress(rest[:length]).partition(b"\0")
        objects.append(Object(kind.partition(b" ")[0], data))
        rest = rest[length:]
    return head, objects


def _recount(local: Local, heads: list[_Head], written: Written) -> None:
    counters = local.counters()
    for head in heads:
        counters |= {
            prefix: max(number, counters.get(prefix, 0))
            for prefix, number in head["counters"].items()
        }
    if counters:
        local.keep_counters(counters, written)


def _move(git: Path, ref: str, heads: list[_Head]) -> None:
    """Move a reference to the newest write, unless somebody else put it where it is."""
    drop_own_ref_lock(git, ref)
    new = heads[-1]["new"]
    if _is_lost(git, ref, heads):
        disk.replace_durably(git / ref, f"{new}\n".encode(), git / "smp" / "ref.tmp")


def _is_lost(git: Path, ref: str, heads: list[_Head]) -> bool:
    """Whether a power cut took the last move of a reference.

    A reference that Git moved is a file of which no record knows the time.
    """
    file, last = git / ref, heads[-1]
    try:
        text = file.read_bytes().strip().decode("ascii", "replace")
        time_ns = file.stat().st_mtime_ns
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        packed = git / "packed-refs"
        seen = packed.stat().st_mtime_ns if packed.exists() else None
        return str(last["boot"]) != disk.boot() and seen == last["stood"][2]
    if len(text) != len(last["new"]) or not text.isalnum():
        return True
    return bool(text != last["new"]) and any(head["stood"][:2] == [text, time_ns] for head in heads)
