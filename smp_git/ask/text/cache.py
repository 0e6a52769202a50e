"""The search over the pages of a session, kept up to date as they change."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Final, TypeVar

from smp_git.ask.text.batches import Batch, encode
from smp_git.ask.text.cachefile import CacheDamagedError, CacheFile
from smp_git.ask.text.documents import Document, Reason, TextHit
from smp_git.ask.text.index import Index
from smp_git.ask.text.ranking import Likeness, TextSearch, similar

Load = Callable[[str], Iterable[Document]]
T = TypeVar("T")
# Slots of a batch are numbers of 19 bits, and a page has up to a hundred documents.
_PAGES_TOGETHER: Final = 4_096


class SearchCache:
    """What is indexed of a session's pages, in a file or, if there can be none, in memory.

    Answers depend on the followed documents alone. The file only saves time: whatever
    happens to it is told in `problems`, and answers stay right.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = CacheFile(path)
        self._pages: dict[str, str] = {}
        self._load: Load = dict[str, tuple[Document, ...]]().__getitem__
        self._batches: dict[int, Batch] = {}
        self._built: Index | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """What went wrong with the file so far, one sentence each."""
        return tuple(self._file.problems)

    def follow(self, pages: Mapping[str, str], load: Load) -> None:
        """Make `pages` (key to content id) what is searched.

        `load` is called with the key of each page that is not known by its content id.
        An id stands for the same documents for ever, and a document is on one page.
        """
        before = self._pages, self._load, self._built
        if pages != self._pages:
            self._pages, self._load, self._built = dict(pages), load, None
        try:
            _repeated([self], lambda: self.index)
        except BaseException:
            self._pages, self._load, self._built = before
            raise

    @property
    def index(self) -> Index:
        """What is indexed of the followed pages."""
        if self._built is None:
            self._built = self._build()
        return self._built

    def _build(self) -> Index:
        names = {f"{key} {content}": key for key, content in sorted(self._pages.items())}
        numbers = self._file.batches()
        self._batches = {number: self._batch(number) for number in numbers}
        homes = self._homes(names)
        lacking = [name for name in names if name not in homes]
        for start in range(0, len(lacking), _PAGES_TOGETHER):
            pages = {name: self._load(names[name]) for name in lacking[start:][:_PAGES_TOGETHER]}
            number = self._file.add(encode(pages), {batch for batch, _ in homes.values()})
            self._batches[number] = self._batch(number)
            homes = self._homes(names)
        slots: dict[int, list[range]] = {}
        for number, found in homes.values():
            slots.setdefault(number, []).append(found)
        return Index([self._batches[number] for number in slots], list(slots.values()))

    def _batch(self, number: int) -> Batch:
        return self._batches.get(number) or Batch(number, self._file.read)

    def _homes(self, names: Collection[str]) -> dict[str, tuple[int, range]]:
        """Return the batch and the slots of each page that is indexed."""
        return {
            name: (number, slots)
            for number, batch in self._batches.items()
            for name, slots in batch.pages()
            if name in names
        }

    def renew(self, damaged: CacheFile, *, anew: bool) -> None:
        """Forget what was read of a file, if it is this cache's, or make the file anew."""
        if damaged is self._file:
            if anew:
                self._file.remove()
            self._batches, self._built = {}, None

    def search(
        self,
        question: str,
        *,
        limit: int,
        allowed: Collection[str] | None = None,
        now: datetime | None = None,
    ) -> list[TextHit]:
        """Return the best `limit` answers among the `allowed` ids, the best first.

        `now` gives words such as "yesterday" their meaning.
        """
        members = None if allowed is None else self.members(allowed)
        return [hit for _, hit in search([self], question, now=now).hits(limit, [members])]

    def members(self, ids: Iterable[str]) -> list[int]:
        """Return what a search knows some ids by, until the next `follow`."""
        places = self.index.place_of
        return [places[name] for name in ids if name in places]

    def similar(
        self,
        text: str,
        *,
        limit: int,
        exclude: str | None = None,
        likeness: Likeness | None = None,
    ) -> list[tuple[TextHit, Reason]]:
        """Return the `limit` documents most like `text`, without the one it comes from."""
        return _repeated(
            [self],
            lambda: similar(self.index, text, limit=limit, exclude=exclude, likeness=likeness),
        )


def search(
    caches: Sequence[SearchCache],
    question: str,
    *,
    now: datetime | None = None,
    weak: Collection[str] = (),
    likeness: Sequence[Likeness | None] = (),
) -> TextSearch:
    """Return what several caches answer to a question, and why.

    All documents together decide how rare a word is and what a score is relative to.
    The words in `weak` count little. `likeness` is that of each cache's documents, if known.
    """

    def asked() -> TextSearch:
        indexes = [cache.index for cache in caches]
        return TextSearch(indexes, question, now=now, likeness=likeness, weak=weak)

    return _repeated(caches, asked)


def _repeated(caches: Sequence[SearchCache], act: Callable[[], T]) -> T:
    """Return what `act` returns; what it finds damaged is read again, then made again."""
    for anew in (False, True):
        try:
            return act()
        except CacheDamagedError as error:
            for cache in caches:
                cache.renew(error.file, anew=anew)
    return act()
