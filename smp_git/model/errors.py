"""Errors, as one tree: code, exit status, recoverable, hint.

SmpError
├── InvalidError            a value is not acceptable
│   ├── InvalidFileError    a file of the session does not parse
│   ├── InvalidRevisionError
│   └── InvalidQueryError
│       └── QueryTimeoutError    a pattern of the query takes too long
├── UsageError              a command line that cannot be read
├── NotFoundError
│   ├── MemoryNotFoundError
│   └── SessionNotFoundError
├── AlreadyExistsError
├── NotStoreError
├── FormatError             a store or repository this program cannot open
├── ConflictError           somebody else changed it; nothing was written
├── LockedError             the session stayed locked
├── RefusedError            needs a safer state
│   ├── AccessError         a rule keeps it from this agent
│   ├── SessionArchivedError
│   ├── QuotaExceededError  the session has no room for it; nothing was written
│   └── CompactionFailedError
├── DamagedError            the session is not sound
├── StorageError            the disk said no
│   └── StorageFullError
├── GitMissingError         the git command is not installed
└── SyncError               a remote
    ├── RemoteUnreachableError
    ├── RemoteNotFoundError no repository at its address
    ├── RemoteAuthError     it does not let us in, or is not who it was
    ├── RemoteRefusedError  it said no
    └── UntrustedError      what it holds cannot be taken in
        └── UnfoundedError  what it says of lives and what it holds do not go together
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import ClassVar, Final

# A value of a megabyte would bury the sentence that it is in.
_SHOWN_LENGTH: Final = 80


def shown(value: object) -> str:
    """Return `value` as a message shows it: as Python writes it, cut short."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN_LENGTH else text[: _SHOWN_LENGTH - 1] + "…"


class SmpError(Exception):
    """An expected failure: one sentence, the thing concerned, and a way out.

    >>> from smp_git import SmpError
    >>> try:
    ...     session.get("DEC-0009")
    ... except SmpError as error:
    ...     print(error.code, error.exit_status)
    memory_not_found 3
    """

    code: ClassVar[str] = "error"
    # What the specifications of session memory call it.
    seed_codes: ClassVar[tuple[str, ...]] = ()
    exit_status: ClassVar[int] = 1
    # Whether the same call can succeed later; an error that knows better says so itself.
    recoverable: bool = False

    def __init__(
        self, message: str, *, hint: str | None = None, recoverable: bool | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.session_id: str | None = None
        if recoverable is not None:
            self.recoverable = recoverable

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints for this error."""
        return {
            "code": self.code,
            "seed_codes": list(self.seed_codes),
            "session": self.session_id,
            "message": self.message,
            "hint": self.hint,
            "recoverable": self.recoverable,
        }


@contextmanager
def naming(session_id: str) -> Iterator[None]:
    """Let an error that leaves the block name the session."""
    try:
        yield
    except SmpError as error:
        error.session_id = error.session_id or session_id
        raise


class InvalidError(SmpError):
    """A value that was given is not acceptable."""

    code = "invalid"
    seed_codes: ClassVar[tuple[str, ...]] = ("E_SCHEMA_INVALID",)
    exit_status = 4
    recoverable = True


class InvalidFileError(InvalidError):
    """A file of the session does not parse or does not fit its place."""

    code = "invalid_file"
    seed_codes = ("MEM_E003", "E_INVALID_FORMAT")


class InvalidRevisionError(InvalidError):
    """A text names no revision of this session."""

    code = "invalid_revision"
    seed_codes = ()
    exit_status = 3


class InvalidQueryError(InvalidError):
    """A part of a query is not acceptable."""

    code = "invalid_query"
    seed_codes: ClassVar[tuple[str, ...]] = ("MEM_E004", "E_INVALID_QUERY")


class QueryTimeoutError(InvalidQueryError, TimeoutError):
    """A part of a query takes longer than it may."""

    code = "query_timeout"
    seed_codes = ("E_QUERY_TIMEOUT",)


class UsageError(SmpError):
    """A command line that cannot be read."""

    code = "usage"
    exit_status = 2
    recoverable = True


class NotFoundError(SmpError, LookupError):
    """What was asked for is not there."""

    code = "not_found"
    exit_status = 3


class MemoryNotFoundError(NotFoundError):
    """No memory has this id."""

    code = "memory_not_found"


class SessionNotFoundError(NotFoundError):
    """No session has this id."""

    code = "session_not_found"
    seed_codes = ("MEM_E005", "E_SESSION_NOT_FOUND")


class AlreadyExistsError(SmpError):
    """What was to be made is there already."""

    code = "already_exists"
    exit_status = 5


class NotStoreError(SmpError):
    """There is no store at this path."""

    code = "no_store"
    exit_status = 8


class FormatError(SmpError):
    """A store, a session or a repository is of a form this program cannot open."""

    code = "unknown_format"
    exit_status = 8


class ConflictError(SmpError):
    """Somebody else changed the same thing; nothing was written."""

    code = "conflict"
    seed_codes = ("E_CONCURRENT_MOD",)
    exit_status = 5
    recoverable = True


class LockedError(SmpError, TimeoutError):
    """The session stayed locked for longer than the limit."""

    code = "locked"
    seed_codes = ("MEM_E002", "E_LOCK_TIMEOUT")
    exit_status = 6
    recoverable = True


class RefusedError(SmpError):
    """The request needs a confirmation or a safer state."""

    code = "refused"
    exit_status = 7


class AccessError(RefusedError):
    """A rule keeps a memory from this agent, or an agent from writing it."""

    code = "access_denied"


class SessionArchivedError(RefusedError):
    """The session is in the archive."""

    code = "session_archived"
    seed_codes = ("E_SESSION_ARCHIVED",)
    recoverable = True


class QuotaExceededError(RefusedError):
    """The session would grow beyond its quota; nothing was written."""

    code = "quota_exceeded"
    seed_codes = ("MEM_E001", "E_SIZE_LIMIT")
    exit_status = 13
    recoverable = True


class CompactionFailedError(RefusedError):
    """A compaction could not be done; nothing was changed by it."""

    code = "compaction_failed"
    seed_codes = ("MEM_E006",)
    exit_status = 13
    recoverable = True


class DamagedError(SmpError):
    """The session is not sound."""

    code = "damaged"
    seed_codes = ("MEM_E003", "E_STORAGE_CORRUPT", "E_SESSION_CORRUPT")
    exit_status = 9


class StorageError(SmpError, OSError):
    """The disk refused: full, read-only, or not permitted."""

    code = "storage"
    seed_codes = ("E_STORAGE_IO",)
    exit_status = 11
    recoverable = True

    def __init__(
        self, message: str, *, hint: str | None = None, recoverable: bool | None = None
    ) -> None:
        SmpError.__init__(self, message, hint=hint, recoverable=recoverable)

    def __str__(self) -> str:
        return self.message


class StorageFullError(StorageError):
    """The disk, or what of it may be used, is full."""

    code = "storage_full"
    seed_codes = ("E_STORAGE_FULL",)


class GitMissingError(SmpError):
    """The git command is not installed."""

    code = "git_missing"
    exit_status = 12


class SyncError(SmpError):
    """An exchange with a remote did not come about."""

    code = "remote"
    exit_status = 10


class RemoteUnreachableError(SyncError, ConnectionError):
    """A remote does not answer, or stopped in the middle."""

    code = "remote_unreachable"
    recoverable = True

    def __init__(
        self, message: str, *, hint: str | None = None, recoverable: bool | None = None
    ) -> None:
        SmpError.__init__(self, message, hint=hint, recoverable=recoverable)

    def __str__(self) -> str:
        return self.message


class RemoteNotFoundError(SyncError):
    """There is no repository at the address of a remote."""

    code = "remote_not_found"


class RemoteAuthError(SyncError):
    """A remote does not let us in, or is not the one that was known."""

    code = "remote_auth"


class RemoteRefusedError(SyncError):
    """A remote said no."""

    code = "remote_refused"


class UntrustedError(SyncError):
    """What a remote holds cannot be taken in."""

    code = "untrusted"


class UnfoundedError(UntrustedError):
    """What a remote says of the lives of a memory does not go together with what it holds."""

    code = "unfounded"


def nearest(word: str, known: Iterable[str]) -> str:
    """Return the words that were perhaps meant, e.g. for a hint; empty if none is near."""
    from difflib import get_close_matches  # noqa: PLC0415 - only after a mistake

    return " or ".join(get_close_matches(word, list(known), 2))
