"""The search over the pages of a session, kept up to date as they change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Self

from smp_git.ask.text import ranking
from smp_git.ask.text.cachefile import CacheFile
from smp_git.ask.text.corpus import Corpus
from smp_git.ask.text.documents import Document, TextHit
from smp_git.ask.text.meanings import Encoder, Meanings
from smp_git.ask.text.segments import Segment, encode


class SearchCache:
    """What is indexed of a session's pages, in memory and, unless private, in a file.

    Answers depend on the followed documents alone. The file only saves time: whatever
    happens to it is told in `problems`, and answers stay right.
    """

    def __init__(self, file: CacheFile | None, encoder: Encoder | None) -> None:
        self._file = file
        self._meanings = None if encoder is None else Meanings(encoder, file)
        self._pages: dict[str, str] | None = {}
        self._segments: dict[str, Segment] = {}
        self._saved: set[str] = set()
        self._corpus = Corpus([])

    @classmethod
    def open(cls, path: Path | None, *, encoder: Encoder | None = None) -> Self:
        """Return a cache kept in the file at `path`, or in memory if that is None.

        With an `encoder`, meaning counts as soon as every document has a vector.
        """
        return cls(None if path is None else CacheFile(path), encoder)

    @property
    def problems(self) -> tuple[str, ...]:
        """What went wrong with the file so far, one sentence each."""
        sources = (self._file, self._meanings)
        return tuple(each for source in sources if source is not None for each in source.problems)

    @property
    def missing_vectors(self) -> int:
        """How many documents have yet to get a vector before meaning counts."""
        return 0 if self._meanings is None else self._meanings.missing

    def follow(self, pages: Mapping[str, str], load: Callable[[str], Iterable[Document]]) -> None:
        """Make `pages` (key to content id) what is searched.

        `load` is called with the key of each page that is not known by its content id.
        An id stands for the same documents for ever, and a document is on one page.
        With an encoder, each call makes some of the vectors that are missing.
        """
        if pages == self._pages and not self.missing_vectors:
            return
        names = {key: f"{key} {content}" for key, content in sorted(pages.items())}
        if pages != self._pages:
            self._index(pages, names, load)
        if self._meanings is not None:
            paged = {key: (name, self._segments[name]) for key, name in names.items()}
            self._meanings.follow(paged, load)

    def _index(
        self,
        pages: Mapping[str, str],
        names: Mapping[str, str],
        load: Callable[[str], Iterable[Document]],
    ) -> None:
        known = self._segments | self._stored(set(names.values()) - self._segments.keys())
        self._segments = {
            name: known[name] if name in known else Segment(encode(load(key)))
            for key, name in names.items()
        }
        self._save()
        self._corpus = Corpus(list(self._segments.values()))
        self._pages = dict(pages)

    def search(
        self,
        question: str,
        *,
        limit: int,
        allowed: Collection[str] | None = None,
        now: datetime | None = None,
        explain: bool = True,
    ) -> list[TextHit]:
        """Return the best `limit` answers among the `allowed` ids, the best first.

        `now` gives words such as "yesterday" their meaning. Without `explain` the hits
        have no parts, which saves time.
        """
        return ranking.search(
            self._corpus,
            question,
            limit=limit,
            allowed=allowed,
            now=now,
            likeness=self._likeness(question),
            explain=explain,
        )

    def members(self, ids: Iterable[str]) -> bytes:
        """Return what `search_all` knows some ids by, until the next `follow`."""
        return self._corpus.members(ids)

    @staticmethod
    def search_all(
        caches: Sequence[SearchCache],
        question: str,
        *,
        limit: int,
        allowed: Sequence[bytes | None],
        now: datetime | None = None,
        explain: bool = True,
    ) -> list[tuple[int, TextHit]]:
        """Return the best answers of several caches, each with the number of its cache.

        All documents together decide how rare a word is and what a score is relative to.
        Meaning counts if it does in every cache.
        """
        cosines = [cache._likeness(question) for cache in caches]  # noqa: SLF001 - of its own kind
        known = [each for each in cosines if each is not None]
        return ranking.search_all(
            [cache._corpus for cache in caches],  # noqa: SLF001 - of its own kind
            question,
            limit=limit,
            allowed=allowed,
            now=now,
            likeness=known if known and len(known) == len(caches) else None,
            explain=explain,
        )

    def similar(self, text: str, *, limit: int, exclude: str | None = None) -> list[TextHit]:
        """Return the `limit` documents most like `text`, without the one it comes from."""
        return ranking.similar(
            self._corpus, text, limit=limit, exclude=exclude, likeness=self._likeness(text)
        )

    def erase(self, ids: Collection[str]) -> None:
        """Remove documents so that no byte of them stays in the file.

        The other documents of their pages come back with the next `follow`. Raises
        CacheNotErasedError if the file can be neither cleaned nor removed.
        """
        doomed = set(ids)
        self._pages = None
        self._segments = {
            name: segment
            for name, segment in self._segments.items()
            if doomed.isdisjoint(segment.ids)
        }
        self._corpus = Corpus(list(self._segments.values()))
        self._saved.clear()
        if self._meanings is not None:
            self._meanings.forget()
        if self._file is not None:
            self._file.erase(lambda body: not doomed.isdisjoint(Segment(body).ids))

    def _likeness(self, text: str) -> list[float] | None:
        return None if self._meanings is None else self._meanings.likeness(self._corpus, text)

    def _stored(self, names: Collection[str]) -> dict[str, Segment]:
        if self._file is None or not names:
            return {}
        found = self._file.read(names)
        self._saved |= found.keys()
        return {name: Segment(body) for name, body in found.items()}

    def _save(self) -> None:
        """Write what the file lacks; what cannot be written now is tried again later."""
        added = {
            name: segment.body
            for name, segment in self._segments.items()
            if name not in self._saved
        }
        if added and self._file is not None and self._file.write(added, self._segments):
            self._saved |= added.keys()
        self._saved &= self._segments.keys()
