"""Revisions: commits, tags, dates and relative times, as snapshots of the session."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime
from typing import Final, TypeVar

from smp_git.model import times
from smp_git.model.errors import InvalidRevisionError
from smp_git.model.memory import aware
from smp_git.read import history
from smp_git.read.snapshot import Reader, Snapshot

_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")
_T = TypeVar("_T")


def moment(at: datetime | str, now: datetime) -> datetime:
    """Return the time that is meant; raise InvalidRevisionError."""
    if isinstance(at, datetime):
        return aware(at)
    try:
        return times.parse_time(str(at), now)
    except ValueError as error:
        raise InvalidRevisionError(str(error)) from None


def find(reader: Reader, revision: str | datetime, now: datetime) -> Snapshot:
    """Return the session as it was at a commit, tag, branch or time."""
    text = revision if isinstance(revision, str) else None
    if text is not None and not (times.is_relative(text) or _DATE.match(text)):
        return reader.at(reader.repository.resolve(text, reader.ref))
    newest = reader.snapshot()
    found = history.at_time(newest, moment(revision, now))
    if found is None:
        first = list(history.log(newest))[-1]
        raise InvalidRevisionError(
            f"session {reader.path.name} did not exist at {revision}",
            hint=f"it was created at {times.format_time(first.at)}",
        )
    return reader.at(found)


def read(
    reader: Reader, at: str | datetime | None, now: datetime, answer: Callable[[Snapshot], _T]
) -> _T:
    """Return an answer on the present session, or on an earlier one."""
    if at is None:
        return reader.read(answer)
    return reader.read(lambda _: answer(find(reader, at, now)))
