"""Errors, as one tree: code, exit status, recoverable, hint.

SmpError
├── InvalidError            a value is not acceptable
│   ├── InvalidFileError    a file of the session does not parse
│   ├── InvalidRevisionError
│   └── InvalidQueryError
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
│   └── SessionArchivedError
├── DamagedError            the session is not sound
├── StorageError            the disk said no
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
    """An expected failure: one sentence, the thing concerned, and a way out."""

    code: ClassVar[str] = "error"
    seed_code: ClassVar[str | None] = None
    exit_status: ClassVar[int] = 1
    recoverable: ClassVar[bool] = False

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints for this error."""
        return {
            "code": self.code,
            "seed_code": self.seed_code,
            "message": self.message,
            "hint": self.hint,
            "recoverable": self.recoverable,
        }


class InvalidError(SmpError):
    """A value that was given is not acceptable."""

    code = "invalid"
    exit_status = 4
    recoverable = True


class InvalidFileError(InvalidError):
    """A file of the session does not parse or does not fit its place."""

    code = "invalid_file"
    seed_code = "MEM_E003"


class InvalidRevisionError(InvalidError):
    """A text names no revision of this session."""

    code = "invalid_revision"


class InvalidQueryError(InvalidError):
    """A part of a query is not acceptable."""

    code = "invalid_query"
    seed_code = "MEM_E004"


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
    seed_code = "MEM_E005"


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
    exit_status = 5
    recoverable = True


class LockedError(SmpError, TimeoutError):
    """The session stayed locked for longer than the limit."""

    code = "locked"
    seed_code = "MEM_E002"
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
    recoverable = True
    # Which session it is.
    session = ""


class DamagedError(SmpError):
    """The session is not sound."""

    code = "damaged"
    seed_code = "MEM_E003"
    exit_status = 9


class StorageError(SmpError, OSError):
    """The disk refused: full, read-only, or not permitted."""

    code = "storage"
    exit_status = 11
    recoverable = True

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        SmpError.__init__(self, message, hint=hint)

    def __str__(self) -> str:
        return self.message


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

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        SmpError.__init__(self, message, hint=hint)

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
