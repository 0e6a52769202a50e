"""Sessions of a store by what they were imported from: active, archived, deleted and purged ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.convert import transcripts
from smp_git.convert.entries import APART, ForeignSession, as_agent
from smp_git.format import imports
from smp_git.keep import stores
from smp_git.model.errors import InvalidError
from smp_git.model.names import ARCHIVED
from smp_git.read import archives
from smp_git.read.imported import Taken
from smp_git.remove import forgotten, sessions
from smp_git.write.handle import GLOBAL, Home

# The folder that a session was imported from, in its context.
FOLDER: Final = "folder"
_LONGEST_ID: Final = 60
# With a number and that of a part it is as long.
_LONGEST_BASE: Final = 50
# Formats whose sessions have names that are kept.
_NAMED: Final = ("000", "001", "003", "004", "smp")


class SessionPart(NamedTuple):
    """A session that has a source, or a part of one that is too large for one session."""

    name: str
    taken: Taken = Taken()
    is_archived: bool = False
    is_deleted: bool = False


class Ledger:
    """The sessions of a store, as one import finds them.

    With `again`, what was deleted with a whole session is not told, and comes in once more.
    """

    def __init__(self, home: Home, *, again: bool) -> None:
        self._home = home
        self._again = again
        self._active = set(stores.session_ids(home.path))
        self._archived = set(archives.names(home.path))
        self._trash: dict[str, list[Path]] = {}
        for record in () if again else sessions.deleted(home):
            place = forgotten.place_of(home.path, record)
            self._trash.setdefault(record.session_id, []).append(place)
        self._purged = frozenset() if again else forgotten.purged(home.path)
        self._recorded: list[Taken] | None = None

    def name_for(self, source: ForeignSession) -> str | None:
        """Return the id of the session that a source becomes, None if it was deleted here."""
        plain = _plain_name(source)
        for name, base in self._like(plain):
            if self._is_of(name, source):
                return base
        if self._was_deleted(source, plain):
            return None
        taken = {each.lower() for each in (*self._active, *self._archived, GLOBAL)}
        for name in _numbered(plain):
            if name.lower() not in taken:
                return name
        raise InvalidError(
            f"no name is left for session {source.id}", hint="name one with --session"
        )

    def parts(self, name: str, source: ForeignSession | None = None) -> Iterator[SessionPart]:
        """Yield the sessions that are a session or parts of it, in order, deleted ones among them.

        With a source, only those that it became.
        """
        store = self._home.path
        for each in (name, *self._later_parts(name)):
            is_ours = each == name or source is None or self._is_of(each, source)
            if is_ours and self.is_there(each):
                yield SessionPart(each, forgotten.taken_at(stores.place_of(self._home, each)))
            elif is_ours and each in self._archived:
                place = store / ARCHIVED / each
                yield SessionPart(each, forgotten.taken_at(place), is_archived=True)
            for place in self._trash.get(each, ()):
                if source is None or _is_origin(forgotten.origin_at(place), source):
                    yield SessionPart(each, forgotten.taken_at(place), is_deleted=True)

    def known_as(self, name: str, source: ForeignSession) -> ForeignSession:
        """Return a source as a session knows it that was imported before its folder was moved."""
        if source.place is None:
            return source
        origin = self._origin(name)
        known, folder = origin.source or "", origin.context.get(FOLDER)
        is_like_it = known.startswith(f"{source.format}:{source.id}{APART}")
        if not is_like_it or (isinstance(folder, str) and Path(folder).exists()):
            return source
        return replace(source, id=known.partition(":")[2], place=None)

    def note_active(self, name: str) -> None:
        """Note that a session was made or restored."""
        self._active.add(name)
        self._archived.discard(name)

    def is_taken(self, name: str) -> bool:
        """Whether a session has this id, or had it when it was deleted."""
        return name in self._active or name in self._archived or name in self._trash

    def is_there(self, name: str) -> bool:
        """Whether a session can be opened."""
        return name in self._active or self._is_shared(name)

    def was_purged(self, source: str) -> bool:
        """Whether a memory was in a session that is purged."""
        return bool(self._purged) and imports.digest("", source) in self._purged

    def is_recorded(self, source: str) -> bool:
        """Whether a hook recorded a turn, in whatever session it was used in, deleted since or not."""
        if self._recorded is None:
            self._recorded = list(self._of_hooks())
        name = imports.own_name(source)
        return any(name in each.ids or each.has_had(source) for each in self._recorded)

    def _of_hooks(self) -> Iterator[Taken]:
        """Yield what sessions have of transcripts that are no import of one."""
        store = self._home.path
        places = [store / "active" / name for name in sorted(self._active)]
        places += [store / ARCHIVED / name for name in sorted(self._archived)]
        places += [place for found in self._trash.values() for place in found]
        for place in places:
            if forgotten.origin_at(place).source is None:
                known = forgotten.taken_at(place)
                own = {
                    imports.own_name(source): name
                    for source, name in known.ids.items()
                    if source.startswith(f"{transcripts.FORMAT}:")
                }
                if own or known.removed or known.digests:
                    yield known._replace(ids=own)

    def _is_shared(self, name: str) -> bool:
        return name == GLOBAL and (self._home.path / GLOBAL / ".git").is_dir()

    def _like(self, plain: str) -> list[tuple[str, str]]:
        """Return the sessions that a source of this name may have become, each with its first part."""
        one, several = re.escape(plain), re.escape(plain[:_LONGEST_BASE])
        fits = re.compile(rf"({one}|{several}-\d+)(?:-p\d+)?")
        known = sorted((*self._active, *self._archived))
        return [(each, found[1]) for each in known if (found := fits.fullmatch(each))]

    def _is_of(self, name: str, source: ForeignSession) -> bool:
        return _is_origin(self._origin(name), source)

    def _origin(self, name: str) -> forgotten.ImportOrigin:
        folder = "active" if name in self._active else ARCHIVED
        return forgotten.origin_at(self._home.path / folder / name)

    def _was_deleted(self, source: ForeignSession, plain: str) -> bool:
        if imports.digest("", source.name) in self._purged:
            return True
        return any(
            _is_origin(forgotten.origin_at(place), source)
            for name, places in self._trash.items()
            if name.startswith(plain[:_LONGEST_BASE])
            for place in places
        )

    def _later_parts(self, name: str) -> list[str]:
        stem = part_of(name, 2).removesuffix("2")
        known = (*self._active, *self._archived, *self._trash)
        numbers = {
            int(rest)
            for each in known
            if each.startswith(stem) and (rest := each.removeprefix(stem)).isdigit()
        }
        return [f"{stem}{number}" for number in sorted(numbers) if number > 1]


def _is_origin(origin: forgotten.ImportOrigin, source: ForeignSession) -> bool:
    """Whether a session was imported from a source, or is itself what was exported there."""
    return origin.source == source.name or (bool(source.uid) and origin.uid == source.uid)


def part_of(name: str, number: int) -> str:
    """Return the id of a part of a session."""
    return name if number == 1 else f"{name[: _LONGEST_ID - 4]}-p{number}"


def _numbered(plain: str) -> Iterator[str]:
    yield plain
    for number in range(2, 1000):
        yield f"{plain[:_LONGEST_BASE]}-{number}"


def _plain_name(source: ForeignSession) -> str:
    """Return what the session of a source is called if no other one has that name."""
    label = source.id
    if source.format in _NAMED and re.fullmatch(r"[\w-]+", label, re.ASCII):
        name = label
    else:
        name = as_agent(label.rpartition("/")[2]) or "session"
        if source.format not in _NAMED:
            name = f"{source.format}-{name}"
    return name[:_LONGEST_ID].strip("-_") or "session"
