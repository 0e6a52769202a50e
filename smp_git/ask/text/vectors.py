"""The file that keeps the vectors of memories, each under the blob of the memory's file."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Final
from zlib import crc32

from smp_git.git import disk

# Half precision: 384 numbers.
VECTOR_BYTES: Final = 768
# Raised with every change to how vectors are written, or to the text that they are made of.
_MAGIC: Final = b"smp-vectors-1\n\0\0"
_MODEL_BYTES: Final = 32
_HEAD_BYTES: Final = len(_MAGIC) + _MODEL_BYTES
_BLOB_BYTES: Final = 20
_CHECK_BYTES: Final = 4
_ENTRY_BYTES: Final = _BLOB_BYTES + VECTOR_BYTES + _CHECK_BYTES
_BLOB: Final = re.compile(r"[0-9a-f]{40}")


class VectorFile:
    """Vectors by blob, in a file that may vanish or break at any time.

    It is read without a lock, for an entry carries a checksum; it is written under the
    session's. A file of another model is one without entries.
    """

    def __init__(self, path: Path, model: bytes) -> None:
        self._path = path
        self._head = _MAGIC + model
        self._seen: object = None

    def changed(self) -> dict[str, bytes] | None:
        """Return what the file holds, or None if that is as it was when last asked."""
        try:
            state = self._path.stat()
        except OSError:
            return {}
        seen = state.st_ino, state.st_size, state.st_mtime_ns
        if seen == self._seen:
            return None
        self._seen = seen
        data = disk.content(self._path) or b""
        if not data.startswith(self._head):
            return {}
        return {blob.hex(): vector for blob, vector in _entries(data)}

    def add(self, vectors: Mapping[str, bytes]) -> None:
        """Add vectors; the caller holds the session's lock. Raises OSError."""
        added = b"".join(
            _entry(bytes.fromhex(blob), vector)
            for blob, vector in vectors.items()
            if _BLOB.fullmatch(blob)
        )
        if not self._has_head():
            disk.replace_file(self._path, self._head + added, _scratch(self._path))
            return
        with self._path.open("r+b") as file:
            # Whoever died while adding left a part of an entry.
            whole = (file.seek(0, 2) - _HEAD_BYTES) // _ENTRY_BYTES
            file.truncate(_HEAD_BYTES + whole * _ENTRY_BYTES)
            file.seek(0, 2)
            file.write(added)

    def _has_head(self) -> bool:
        try:
            with self._path.open("rb") as file:
                return file.read(_HEAD_BYTES) == self._head
        except OSError:
            return False


def keep_vectors(path: Path, blobs: Collection[bytes]) -> None:
    """Write the file anew with the vectors of some blobs alone, or remove it if it has others' form."""
    data = disk.content(path)
    if data is None:
        return
    if not data.startswith(_MAGIC) or len(data) < _HEAD_BYTES:
        path.unlink(missing_ok=True)
        return
    entries = (_entry(blob, vector) for blob, vector in _entries(data) if blob in blobs)
    kept = b"".join((data[:_HEAD_BYTES], *entries))
    if kept != data:
        disk.replace_file(path, kept, _scratch(path))


def _scratch(path: Path) -> Path:
    return path.with_name(f"{path.name}.tmp")


def _entry(blob: bytes, vector: bytes) -> bytes:
    body = blob + vector
    return body + crc32(body).to_bytes(_CHECK_BYTES, "big")


def _entries(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the blob and the vector of each entry that is whole."""
    for at in range(_HEAD_BYTES, len(data) - _ENTRY_BYTES + 1, _ENTRY_BYTES):
        body = data[at : at + _ENTRY_BYTES - _CHECK_BYTES]
        if crc32(body) == int.from_bytes(data[at + len(body) : at + _ENTRY_BYTES], "big"):
            yield body[:_BLOB_BYTES], body[_BLOB_BYTES:]
