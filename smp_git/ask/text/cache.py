"""Search over the pages of a session, kept in a file between processes: the only owner of sqlite3."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, Final, TypeVar
from zlib import crc32

from smp_git.ask.text.batches import Batch, Document, encode
from smp_git.ask.text.index import Index
from smp_git.ask.text.ranking import Likeness, Reason, TextHit, TextSearch, similar

_HAS_SQLITE: Final = find_spec("_sqlite3") is not None
if _HAS_SQLITE:  # Python can be built without it
    import sqlite3

Load = Callable[[str], Iterable[Document]]
Progress = Callable[[int, int], None]
MayKeep = Callable[[], bool]
# Raised with every change to how batches are written, or to what their words are.
_FORMAT: Final = 5
# Postings are numbers in the machine's own byte order.
_VERSION: Final = _FORMAT * 2 + (sys.byteorder == "big")
# Reading and writing each wait once, and an answer must not take 200 ms longer for it.
_TIMEOUT_SECONDS: Final = 0.08
# Batches that are not in use stay for a while: a query on the past, or another process at
# another commit, asks for some of them again.
_KEPT_UNUSED: Final = 16
_BUSY: Final = frozenset({5, 6})  # SQLITE_BUSY, SQLITE_LOCKED
_BATCH_BITS, _PART_BITS = 30, 32
# SQLite of old takes no more.
_KEYS_AT_ONCE: Final = 900
# Where writing is not allowed, or there is no room.
_REFUSED: Final = frozenset({3, 8, 10, 13})  # SQLITE_PERM, _READONLY, _IOERR, _FULL
_SCHEMA: Final = (
    "CREATE TABLE batch (age INTEGER PRIMARY KEY, number INTEGER UNIQUE)",
    "CREATE TABLE part (number INTEGER PRIMARY KEY, checksum INTEGER, body BLOB)",
    f"PRAGMA user_version = {_VERSION}",
)


class _CacheDamagedError(Exception):
    """A part of a batch is not in the file as it was written."""

    def __init__(self, file: _CacheFile) -> None:
        super().__init__()
        self.file = file


class _CacheFile:
    """Batches by number, in a file that may vanish, break or be busy.

    Numbers are random and every body carries a checksum, so that what is read is right or
    missing, whatever other processes do. What could not be written is held in memory. Each
    call opens the file and closes it.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._is_locked = False
        self._held: dict[int, Sequence[bytes]] = {}
        self.problems: list[str] = []
        if path is not None and not _HAS_SQLITE:
            self._report("cannot be kept: this Python has no sqlite3, so each process indexes anew")
            self._path = None

    def batches(self) -> list[int]:
        """Return the numbers of all batches, the oldest first."""
        self._is_locked = False
        rows = self._reading("SELECT number FROM batch ORDER BY age")
        return [*(number for (number,) in rows), *self._held]

    def read(self, batch: int, parts: Sequence[int]) -> list[bytes]:
        """Return parts of a batch, raising CacheDamagedError if one is not as it was."""
        if batch in self._held:
            return [self._held[batch][part] for part in parts]
        keys = [batch << _PART_BITS | part for part in parts]
        found = self._sound("SELECT number, checksum, body FROM part WHERE number", keys)
        if not found.keys() >= set(keys):
            raise _CacheDamagedError(self)
        return [found[key] for key in keys]

    def add(self, parts: Sequence[bytes], used: Collection[int], may_keep: MayKeep) -> int:
        """Keep a batch, drop old ones that are not `used`, and return its number."""
        number = int.from_bytes(os.urandom(4)) >> 32 - _BATCH_BITS
        live = {*used, number}
        self._held = {each: held for each, held in self._held.items() if each in live}
        self._held[number] = parts
        if self._writing(lambda connection: self._save(connection, live), may_keep):
            self._held.clear()
        return number

    def _save(self, connection: sqlite3.Connection, used: Collection[int]) -> None:
        known = connection.execute("SELECT number FROM batch ORDER BY age").fetchall()
        unused = [number for (number,) in known if number not in used]
        for number in unused[: max(0, len(unused) - _KEPT_UNUSED)]:
            ends = number << _PART_BITS, (number + 1) << _PART_BITS
            connection.execute("DELETE FROM batch WHERE number = ?", (number,))
            connection.execute("DELETE FROM part WHERE number >= ? AND number < ?", ends)
        for number, parts in self._held.items():
            rows = enumerate(parts, number << _PART_BITS)
            connection.execute("INSERT INTO batch (number) VALUES (?)", (number,))
            connection.executemany(
                "INSERT INTO part VALUES (?, ?, ?)",
                ((key, _checksum(key, body), body) for key, body in rows),
            )

    def remove(self, reason: object = "a part of it is missing") -> None:
        """Remove a file that is of no use; where that is not allowed, do without."""
        self._report(f"is unusable and is rebuilt: {reason}")
        if self._path is None:
            return
        try:
            for ending in ("", "-journal", "-wal", "-shm"):
                self._path.with_name(f"{self._path.name}{ending}").unlink(missing_ok=True)
        except OSError as refusal:
            self._report(f"cannot be removed: {refusal}")
            self._path = None

    def _sound(self, query: str, keys: Sequence[int]) -> dict[int, bytes]:
        every = [
            keys[start : start + _KEYS_AT_ONCE] for start in range(0, len(keys), _KEYS_AT_ONCE)
        ]
        rows = chain.from_iterable(
            self._reading(f"{query} IN ({', '.join('?' * len(some))})", some) for some in every
        )
        return {
            key: body
            for key, checksum, body in rows
            if isinstance(body, bytes) and checksum == _checksum(key, body)
        }

    def _reading(self, query: str, keys: Sequence[int] = ()) -> list[tuple[Any, ...]]:
        if self._path is None or not self._path.exists():
            return []
        try:
            with self._connection(self._path, is_locked=self._is_locked) as connection:
                return connection.execute(query, keys).fetchall()
        except sqlite3.DatabaseError as error:
            if self._is_locked or not self._is_of_lock(error, "it is read, not updated"):
                self._judge(error)
                return []
        # Checksums tell what is whole.
        self._is_locked = True
        return self._reading(query, keys)

    def _writing(self, act: Callable[[sqlite3.Connection], object], may_keep: MayKeep) -> bool:
        """Write at once or not at all; return whether it worked."""
        if self._path is None or self._is_locked:
            return False
        try:
            with self._connection(self._path) as connection:
                # Asked once the file is open: a deletion from now on unlinks this very file.
                if not may_keep():
                    return False
                connection.execute("BEGIN IMMEDIATE")
                act(connection)
                connection.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            if not self._is_of_lock(error, "nothing was saved"):
                self._judge(error)
            return False
        return True

    @contextmanager
    def _connection(self, path: Path, *, is_locked: bool = False) -> Iterator[sqlite3.Connection]:
        """Open the file, made anew if it is of another version."""
        address = f"{path.absolute().as_uri()}{'?mode=ro&immutable=1' if is_locked else ''}"
        connection = sqlite3.connect(
            address, timeout=_TIMEOUT_SECONDS, isolation_level=None, uri=True
        )
        with closing(connection):
            # Nothing here needs to survive a power cut, and what a torn write leaves is
            # found by its checksum. A journal on disk would keep erased text.
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA secure_delete = ON")
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version != _VERSION:
                self._make(connection, version)
                # Another process may have removed the file again; what a link names is not ours.
                with suppress(OSError):
                    if not path.is_symlink():
                        path.chmod(0o600)
            yield connection

    def _make(self, connection: sqlite3.Connection, version: int) -> None:
        connection.execute("BEGIN IMMEDIATE")
        if connection.execute("PRAGMA user_version").fetchone() == (_VERSION,):
            connection.execute("COMMIT")
            return
        if connection.execute("SELECT count(*) FROM sqlite_master").fetchone() != (0,):
            raise sqlite3.DatabaseError(f"its version is {version}, not {_VERSION}")
        for statement in _SCHEMA:
            connection.execute(statement)
        connection.execute("COMMIT")

    def _is_of_lock(self, error: sqlite3.DatabaseError, consequence: str) -> bool:
        if _code(error) not in _BUSY:
            return False
        self._report(f"is locked: {consequence}")
        return True

    def _judge(self, error: sqlite3.DatabaseError) -> None:
        if _code(error) in _REFUSED:
            self._report(f"cannot be used: {error}")
            self._path = None
        else:
            self.remove(error)

    def _report(self, problem: str) -> None:
        sentence = f"the search cache {self._path} {problem}"
        if sentence not in self.problems:
            self.problems.append(sentence)


def _checksum(key: int, body: bytes) -> int:
    return crc32(body, crc32(b"%d" % key))


def _code(error: sqlite3.DatabaseError) -> int | None:
    """Return SQLite's primary error code, or None if the error is our own."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


T = TypeVar("T")
# Slots of a batch are numbers of 19 bits, and a page has up to a hundred documents.
_PAGES_TOGETHER: Final = 4_096


class SearchCache:
    """An index of a session's pages, in a file or, if there can be none, in memory.

    Answers depend on the followed documents alone. The file only saves time: whatever
    happens to it is told in `problems`, and answers stay right.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = _CacheFile(path)
        self._pages: dict[str, str] = {}
        self._load: Load = dict[str, tuple[Document, ...]]().__getitem__
        self._batches: dict[int, Batch] = {}
        self._built: Index | None = None
        self._progress: Progress | None = None
        self._may_keep: MayKeep = lambda: True
        self._still: Callable[[], bool] = lambda: True

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems with the file so far, one sentence each."""
        return tuple(self._file.problems)

    def follow(
        self,
        pages: Mapping[str, str],
        load: Load,
        progress: Progress | None = None,
        may_keep: MayKeep = lambda: True,
        still: Callable[[], bool] = lambda: True,
    ) -> None:
        """Make `pages` (key to content id) what is searched.

        `load` is called with the key of each page that is not known by its content id;
        `progress` with how many of these are read, and how many there are. Nothing is
        written once `may_keep` says no: the documents may have been deleted meanwhile.
        An id stands for the same documents for ever, and a document is on one page. What
        was loaded is kept if the ids are `still` those of the pages.
        """
        before = self._pages, self._load, self._built
        if pages != self._pages:
            self._pages, self._load, self._built = dict(pages), load, None
        self._still = still
        try:
            self._progress, self._may_keep = progress, may_keep
            _repeated([self], lambda: self.index)
        except BaseException:
            self._pages, self._load, self._built = before
            raise
        finally:
            self._progress = None

    @property
    def index(self) -> Index:
        """The index of the followed pages."""
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
            pages = {}
            for read, name in enumerate(lacking[start:][:_PAGES_TOGETHER], start + 1):
                pages[name] = list(self._load(names[name]))
                if self._progress is not None:
                    self._progress(read, len(lacking))
            if not self._still():
                break
            used = {batch for batch, _ in homes.values()}
            number = self._file.add(encode(pages), used, self._may_keep)
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

    def renew(self, damaged: _CacheFile, *, anew: bool) -> None:
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
        except _CacheDamagedError as error:
            for cache in caches:
                cache.renew(error.file, anew=anew)
    return act()
