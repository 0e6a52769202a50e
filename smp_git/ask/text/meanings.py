"""Which documents have vectors, and what they say of a text."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from time import monotonic
from typing import TYPE_CHECKING, Final

from smp_git.ask.text.cachefile import CacheFile
from smp_git.ask.text.corpus import Corpus
from smp_git.ask.text.documents import Document
from smp_git.ask.text.encoder import Encoder, EncoderUnfitError
from smp_git.ask.text.segments import DIGEST_BYTES, Segment, digest, meaning_text

if TYPE_CHECKING:
    from smp_git.ask.text.minilm import Matrix

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
