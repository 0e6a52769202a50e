"""The file that keeps segments from one process to the next: the only owner of sqlite3."""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final
from zlib import crc32

# Raised with every change to how segments are written, or to what their words are.
_FORMAT: Final = 2
# Segments hold numbers in the machine's own byte order.
_VERSION: Final = _FORMAT * 2 + (sys.byteorder == "big")
# Reading and writing each wait once, and an answer must not take 200 ms longer for it.
_TIMEOUT_SECONDS: Final = 0.08
# Segments no longer in use stay for a while: a query on the past, or another process at
# another commit, asks for most of them again.
_KEPT_UNUSED: Final = 64
_BUSY: Final = frozenset({sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED})

_SELECT_VECTORS: Final = "SELECT name, vectors_checksum, vectors FROM segment"
_SCHEMA: Final = f"""
    CREATE TABLE segment (
        number INTEGER PRIMARY KEY,
        name TEXT NOT NULL UNIQUE,
        checksum INTEGER NOT NULL,
        body BLOB NOT NULL,
        vectors_checksum INTEGER,
        vectors BLOB
    );
    PRAGMA user_version = {_VERSION};
"""


class CacheNotErasedError(Exception):
    """The cache file could be neither cleaned nor removed."""


class CacheFile:
    """Segments by name, in a file that may vanish, break or be busy at any time.

    A name stands for one content for ever, and every body carries a checksum. So what
    is read is right or absent, whatever other processes do, and a body that was not
    written is merely computed again. Each call opens the file and closes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.problems: list[str] = []

    def read(self, names: Collection[str]) -> dict[str, bytes]:
        """Return the bodies of those of `names` that the file holds unharmed."""
        return self._read("SELECT name, checksum, body FROM segment WHERE name = ?", names)

    def vectors(self, names: Collection[str]) -> dict[str, bytes]:
        """Return the vectors kept with those of `names` that have any."""
        return self._read(f"{_SELECT_VECTORS} WHERE name = ?", names)

    def vectors_of_pages(self, keys: Collection[str]) -> list[bytes]:
        """Return the vectors kept with any version of the pages with `keys`."""
        found = self._read(f"{_SELECT_VECTORS} WHERE name GLOB ?", [f"{key} *" for key in keys])
        return list(found.values())

    def write_vectors(self, bodies: Mapping[str, bytes]) -> bool:
        """Keep vectors with the segments of these names; return False if it did not work."""
        return self._change(
            "UPDATE segment SET vectors_checksum = ?, vectors = ? WHERE name = ?",
            [(_checksum(name, body), body, name) for name, body in bodies.items()],
        )

    def write(self, added: Mapping[str, bytes], used: Collection[str]) -> bool:
        """Add segments, and drop old ones not in `used`; return False if it did not work."""
        return self._change(
            "INSERT OR REPLACE INTO segment (name, checksum, body) VALUES (?, ?, ?)",
            [(name, _checksum(name, body), body) for name, body in added.items()],
            used,
        )

    def _change(
        self, statement: str, rows: Sequence[Sequence[object]], used: Collection[str] | None = None
    ) -> bool:
        try:
            with self._connection() as connection, _transaction(connection):
                connection.executemany(statement, rows)
                if used is not None:
                    _drop_unused(connection, used)
        except sqlite3.DatabaseError as error:
            if _code(error) in _BUSY:
                self._report("is in use elsewhere: nothing was saved")
            else:
                self._replace(error)
            return False
        return True

    def erase(self, is_doomed: Callable[[bytes], bool]) -> None:
        """Remove the segments whose body `is_doomed`, leaving no byte of them behind.

        Damaged ones go too, for nobody knows what they hold. A file that cannot be cleaned is removed.
        """
        if not self._is_there():
            return
        try:
            with self._connection() as connection, _transaction(connection):
                rows = connection.execute("SELECT number, name, checksum, body FROM segment")
                doomed = [
                    (number,)
                    for number, name, checksum, body in rows
                    if checksum != _checksum(name, body) or is_doomed(body)
                ]
                connection.executemany("DELETE FROM segment WHERE number = ?", doomed)
        except sqlite3.DatabaseError as error:
            self._replace(error)
            if self._is_there():
                raise CacheNotErasedError(
                    f"the search cache {self._path} could not be erased: {error}"
                ) from error

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Open the file, made anew if it is of another version."""
        connection = sqlite3.connect(self._path, timeout=_TIMEOUT_SECONDS, isolation_level=None)
        with closing(connection):
            # Nothing here needs to survive a power cut, and what a torn write leaves is
            # found by its checksum. A journal on disk would keep erased text.
            connection.execute("PRAGMA page_size = 16384")
            connection.execute("PRAGMA journal_mode = MEMORY")
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("PRAGMA secure_delete = ON")
            self._ensure_schema(connection)
            yield connection

    def _ensure_schema(self, connection: sqlite3.Connection) -> None:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == _VERSION:
            return
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if tables:
            raise sqlite3.DatabaseError(f"its version is {version}, not {_VERSION}")
        connection.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
        # Another process may have removed the file again.
        with suppress(OSError):
            self._path.chmod(0o600)

    def _is_there(self) -> bool:
        try:
            self._path.stat()
        except OSError:
            return False
        return True

    def _read(self, query: str, wanted: Collection[str]) -> dict[str, bytes]:
        """Return by name what `query` finds unharmed of each of `wanted`."""
        if not self._is_there():
            return {}
        try:
            with self._connection() as connection:
                return self._sound(connection, query, wanted)
        except sqlite3.DatabaseError as error:
            if _code(error) not in _BUSY:
                self._replace(error)
                return {}
        return self._read_despite_lock(query, wanted)

    def _sound(
        self, connection: sqlite3.Connection, query: str, wanted: Collection[str]
    ) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for each in wanted:
            for name, checksum, body in connection.execute(query, (each,)):
                if checksum == _checksum(name, body or b""):
                    found[name] = body
                elif body is not None:
                    self._report("holds a damaged segment, which is rebuilt")
        return found

    def _read_despite_lock(self, query: str, wanted: Collection[str]) -> dict[str, bytes]:
        """Return what can be read without a lock: checksums tell what is whole."""
        self._report("is locked: it is read, not updated")
        address = f"{self._path.absolute().as_uri()}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as connection:
                return self._sound(connection, query, wanted)
        except sqlite3.DatabaseError:
            return {}

    def _replace(self, error: sqlite3.DatabaseError) -> None:
        """Remove a file that is of no use, if that is allowed."""
        self._report(f"is unusable and is rebuilt: {error}")
        try:
            self._path.unlink(missing_ok=True)
            self._path.with_name(f"{self._path.name}-journal").unlink(missing_ok=True)
        except OSError as refusal:
            self._report(f"cannot be removed: {refusal}")

    def _report(self, problem: str) -> None:
        sentence = f"the search cache {self._path} {problem}"
        if sentence not in self.problems:
            self.problems.append(sentence)


@contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Write at once or not at all; leaving by an exception closes, and so undoes."""
    connection.execute("BEGIN IMMEDIATE")
    yield
    connection.execute("COMMIT")


def _drop_unused(connection: sqlite3.Connection, used: Collection[str]) -> None:
    rows = connection.execute("SELECT number, name FROM segment ORDER BY number DESC")
    unused = [(number,) for number, name in rows if name not in used]
    connection.executemany("DELETE FROM segment WHERE number = ?", unused[_KEPT_UNUSED:])


def _checksum(name: str, body: bytes) -> int:
    return crc32(body, crc32(name.encode("utf-8", "surrogatepass")))


def _code(error: sqlite3.DatabaseError) -> int | None:
    """Return SQLite's primary error code, or None if the error is our own."""
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF
