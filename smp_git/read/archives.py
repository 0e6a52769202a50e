"""Archived sessions, as their summaries tell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import yamlfile
from smp_git.model.errors import SessionArchivedError, SmpError
from smp_git.model.memory import Value
from smp_git.model.names import ARCHIVED

SUMMARY: Final = "summary.yaml"
ARCHIVE: Final = "archive.tar.gz"


class Line(NamedTuple):
    """What a summary keeps of one memory."""

    id: str
    kind: str
    at: str
    agent: str
    title: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Archived:
    """A session in the archive: what its summary says.

    >>> archived = store.archive_session("shop", reason="done")
    >>> [each.session for each in store.archived_sessions()]
    ['shop']
    """

    session: str
    said: Mapping[str, Value]

    def text(self, name: str) -> str | None:
        """Return what the summary says under a name."""
        value = self.said.get(name)
        return str(value) if value is not None else None

    def number(self, name: str) -> int:
        """Return a number that the summary gives, 0 if it gives none."""
        value = self.said.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) else 0

    def moment(self, name: str) -> datetime | None:
        """Return a time that the summary gives."""
        with suppress(ValueError):
            return datetime.fromisoformat(self.text(name) or "")
        return None

    @property
    def lines(self) -> Iterator[Line]:
        """What it keeps of memories."""
        found = self.said.get("memories")
        for each in found if isinstance(found, list) else []:
            if isinstance(each, dict):
                tags = each.get("tags")
                yield Line(
                    id=str(each.get("id", "")),
                    kind=str(each.get("kind", "")),
                    at=str(each.get("at", "")),
                    agent=str(each.get("agent", "")),
                    title=str(each.get("title", "")),
                    tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
                )


def archived_error(name: str) -> SessionArchivedError:
    """Return the error that says how an archived session comes back."""
    error = SessionArchivedError(
        f"session {name} is archived",
        hint=f"smp unarchive {name} restores it; with auto_restore it comes back by itself",
    )
    error.session_id = name
    return error


def names(store: Path) -> tuple[str, ...]:
    """Return the ids of the archived sessions, sorted."""
    try:
        folders = list((store / ARCHIVED).iterdir())
    except FileNotFoundError:
        return ()
    return tuple(sorted(each.name for each in folders if is_archived(store, each.name)))


def is_archived(store: Path, name: str) -> bool:
    """Whether a session is in the archive and not among the active ones.

    Both are there if a process died between two steps: then it is active.
    """
    return (
        not name.startswith(".")
        and (store / ARCHIVED / name / ARCHIVE).is_file()
        and not (store / "active" / name).exists()
    )


def read(store: Path, name: str) -> Archived:
    """Return an archived session; raise InvalidFileError if its summary cannot be read."""
    path = store / ARCHIVED / name / SUMMARY
    text = path.read_bytes().decode("utf-8", "replace") if path.exists() else ""
    return Archived(session=name, said=yamlfile.read(text, str(path)))


def every(store: Path) -> tuple[list[Archived], list[str]]:
    """Return the archived sessions, and which summaries cannot be read."""
    found, problems = [], []
    for name in names(store):
        try:
            found.append(read(store, name))
        except (SmpError, OSError) as error:
            problems.append(f"{name}: {error}")
    return found, problems
