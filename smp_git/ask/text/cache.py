"""Search over the pages of a session, kept in a file between processes: the only owner of sqlite3."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar
from zlib import crc32

from smp_git.ask.text.batches import Batch, Document, encode
from smp_git.ask.text.index import Index
from smp_git.ask.text.ranking import Likeness, Reason, TextHit, TextSearch, similar

_HAS_SQLITE: Final = find_spec("_sqlite3") is not None
if _HAS_SQLITE:  # Python can be built without it
    import sqlite3

Load = Callable[[str], Iterable[Document]]
Progress = Callable[[int, int], None]
Test = Callable[[], bool]
T = TypeVar("T")

# Raised with every change to how batches are written, or to what their words are.
_FORMAT: Final = 10
# Postings are numbers in the machine's own byte order.
_VERSION: Final = _FORMAT * 2 + (sys.byteorder == "big")
# Reading and writing each wait once, and an answer must not take 200 ms longer for it.
_TIMEOUT_SECONDS: Final = 0.08
# Batches that are not in use stay for a while: a query on the past, or another process at
# another commit, asks for some of them again.
_KEPT_UNUSED: Final = 16
_LOCKED: Final = frozenset({5, 6})  # SQLITE_BUSY, SQLITE_LOCKED
# Where writing is not allowed, or there is no room.
_REFUSED: Final = frozenset({3, 8, 10, 13, 14})  # SQLITE_PERM, _READONLY, _IOERR, _FULL, _CANTOPEN
_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS batch (age INTEGER PRIMARY KEY, number INTEGER UNIQUE);
CREATE TABLE IF NOT EXISTS part
    (batch INTEGER, name TEXT, checksum INTEGER, body BLOB, PRIMARY KEY (batch, name));
PRAGMA user_version = {_VERSION};
COMMIT;
"""


class _DamagedError(Exception):
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
        self._path = path if _HAS_SQLITE else None
        self._is_locked = False
        self._held: dict[int, Mapping[str, bytes]] = {}
        self.problems: list[str] = []
        if path != self._path:
            self._report(
                f"{path} cannot be kept: this Python has no sqlite3, so each process indexes anew"
            )

    def batches(self) -> list[int]:
        """Return the numbers of all batches, the oldest first."""
        self._is_locked = False
        rows = self._rows("SELECT number FROM batch ORDER BY age", [()])
        return [*(number for (number,) in rows), *self._held]

    def read(self, batch: int, names: Sequence[str]) -> list[bytes]:
        """Return parts of a batch, raising _DamagedError if one is not as it was."""
        if batch in self._held:
            return [self._held[batch][name] for name in names]
        keys = [(batch, name) for name in names]
        rows = self._rows("SELECT checksum, body FROM part WHERE batch = ? AND name = ?", keys)
        bodies = [
            body
            for key, (checksum, body) in zip(keys, rows, strict=False)
            if isinstance(body, bytes) and checksum == _checksum(key, body)
        ]
        if len(bodies) != len(names):
            raise _DamagedError(self)
        return bodies

    def add(self, parts: Mapping[str, bytes], used: Collection[int], may_keep: Test) -> int:
        """Keep a batch, drop old ones that are not `used`, and return its number."""
        number = int.from_bytes(os.urandom(7))
        live = {*used, number}
        self._held = {each: held for each, held in self._held.items() if each in live}
        self._held[number] = parts
        if self._path is not None and not self._is_locked:
            try:
                self._save(self._path, live, may_keep)
            except (OSError, sqlite3.DatabaseError) as error:
                self._judge(error, "nothing was saved")
        return number

    def _save(self, path: Path, live: Collection[int], may_keep: Test) -> None:
        if not path.exists():
            path.touch(0o600)
        with self._connection(path, "rw") as connection:
            # Asked once the file is open: a deletion from now on unlinks this very file.
            if not may_keep():
                return
            # Nothing here needs to survive a power cut, and what a torn write leaves is
            # found by its checksum. A journal on disk would keep erased text.
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA secure_delete = ON")
            connection.executescript(_SCHEMA)
            connection.execute("BEGIN IMMEDIATE")
            known = connection.execute("SELECT number FROM batch ORDER BY age").fetchall()
            unused = [number for (number,) in known if number not in live]
            for number in unused[: max(0, len(unused) - _KEPT_UNUSED)]:
                connection.execute("DELETE FROM batch WHERE number = ?", (number,))
                connection.execute("DELETE FROM part WHERE batch = ?", (number,))
            for number, parts in self._held.items():
                connection.execute("INSERT INTO batch (number) VALUES (?)", (number,))
                connection.executemany(
                    "INSERT INTO part VALUES (?, ?, ?, ?)",
                    (
                        (number, name, _checksum((number, name), body), body)
                        for name, body in parts.items()
                    ),
                )
            connection.execute("COMMIT")
        self._held.clear()

    def _rows(self, query: str, several: Iterable[tuple[object, ...]]) -> list[tuple[Any, ...]]:
        # What somebody else has locked is read as it is: checksums tell what is whole.
        for mode in ("ro", "ro&immutable=1")[self._is_locked :]:
            try:
                if self._path is None or not self._path.stat().st_size:
                    return []
                with self._connection(self._path, mode) as connection:
                    return [row for keys in several for row in connection.execute(query, keys)]
            except FileNotFoundError:
                return []
            except (OSError, sqlite3.DatabaseError) as error:
                self._judge(error, "it is read, not updated")
                if not self._is_locked:
                    break
        return []

    @contextmanager
    def _connection(self, path: Path, mode: str) -> Iterator[sqlite3.Connection]:
        address = f"{path.absolute().as_uri()}?mode={mode}"
        connection = sqlite3.connect(
            address, timeout=_TIMEOUT_SECONDS, isolation_level=None, uri=True
        )
        with closing(connection):
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, _VERSION):
                raise sqlite3.DatabaseError(f"its version is {version}, not {_VERSION}")
            yield connection

    def _judge(self, error: Exception, consequence: str) -> None:
        """Say what is wrong with the file, and remove it or do without it if need be."""
        code = getattr(error, "sqlite_errorcode", 0) & 0xFF
        self._is_locked = code in _LOCKED
        if self._is_locked:
            self._report(f"{self._path} is locked: {consequence}")
        elif isinstance(error, OSError) or code in _REFUSED:
            why = error.strerror if isinstance(error, OSError) and error.strerror else error
            self._report(f"{self._path} cannot be used: {why}")
            self._path = None
        else:
            self.remove(error)

    def remove(self, reason: object = "a part of it is missing") -> None:
        """Remove a file that is of no use; where that is not allowed, do without."""
        self._report(f"{self._path} is unusable and is rebuilt: {reason}")
        if self._path is None:
            return
        try:
            for ending in ("", "-journal", "-wal", "-shm"):
                self._path.with_name(f"{self._path.name}{ending}").unlink(missing_ok=True)
        except OSError as refusal:
            self._judge(refusal, "")

    def _report(self, problem: str) -> None:
        sentence = f"the search cache {problem}"
        if sentence not in self.problems:
            self.problems.append(sentence)


def _checksum(key: tuple[int, str], body: bytes) -> int:
    return crc32(body, crc32(repr(key).encode("utf-8", "backslashreplace")))


class Followed(NamedTuple):
    """Pages to be searched: their content ids by key, and what is asked of their owner.

    An id stands for the same documents for ever, and a document is on one page. `load` is
    called with the key of each page that is not known by its id, `progress` with how many of
    these are read, and how many there are. Nothing is written once `may_keep` says no, for
    the documents may have been deleted meanwhile; what was loaded is kept if the ids are
    `still` those of the pages.
    """

    ids: Mapping[str, str]
    load: Load
    may_keep: Test = lambda: True
    still: Test = lambda: True
    progress: Progress = lambda read, every: None


class SearchCache:
    """An index of a session's pages, in a file or, if there can be none, in memory.

    Answers depend on the followed documents alone. The file only saves time: whatever
    happens to it is told in `problems`, and answers stay right.
    """

    def __init__(self, path: Path | None) -> None:
        self._file = _CacheFile(path)
        self._pages = Followed({}, lambda key: ())
        self._batches: dict[int, Batch] = {}
        self._built: Index | None = None

    @property
    def problems(self) -> tuple[str, ...]:
        """Problems with the file so far, one sentence each."""
        return tuple(self._file.problems)

    def follow(self, pages: Followed) -> None:
        """Make some pages what is searched."""
        if self._built is None or pages.ids != self._pages.ids:
            self._built = _repeated([self], lambda: self._build(pages))
        # What is read again later is no progress of this.
        self._pages = Followed(*pages[:-1])

    @property
    def index(self) -> Index:
        """The index of the followed pages."""
        if self._built is None:
            self._built = self._build(self._pages)
        return self._built

    def _build(self, pages: Followed) -> Index:
        names = {f"{key} {content}": key for key, content in sorted(pages.ids.items())}
        self._batches = {
            number: self._batches.get(number) or Batch(number, self._file.read)
            for number in self._file.batches()
        }
        homes = self._homes(names)
        lacking = [name for name in names if name not in homes]
        fresh = {}
        for read, name in enumerate(lacking, 1):
            fresh[name] = list(pages.load(names[name]))
            pages.progress(read, len(lacking))
        if fresh and pages.still():
            used = {batch for batch, _ in homes.values()}
            number = self._file.add(encode(fresh), used, pages.may_keep)
            self._batches[number] = Batch(number, self._file.read)
            homes = self._homes(names)
        slots: dict[int, list[range]] = {}
        for number, found in homes.values():
            slots.setdefault(number, []).append(found)
        return Index([self._batches[number] for number in slots], list(slots.values()))

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

    @property
    def blobs(self) -> list[str]:
        """The blob of each document, in the order in which likeness is told."""
        return _repeated([self], lambda: self.index.blobs)

    def members(self, ids: Iterable[str]) -> list[int]:
        """Return what a search knows some ids by, until the next `follow`."""
        places = self.index.place_of
        return [places[name] for name in ids if name in places]

    def similar(self, text: str, likeness: Likeness | None = None) -> list[tuple[TextHit, Reason]]:
        """Return the documents like a text, the most like it first, and why."""
        return _repeated([self], lambda: similar(self.index, text, likeness))


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
        except _DamagedError as error:
            for cache in caches:
                cache.renew(error.file, anew=anew)
    return act()
