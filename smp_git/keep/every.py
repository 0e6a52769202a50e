"""Work on every session of a store: opened, checked, purged; and sessions cloned into it.

This loads what syncs and removes, which a store that is only opened does not need.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path

from smp_git.keep import opening
from smp_git.keep.archive import opened_within
from smp_git.keep.check import check
from smp_git.keep.stores import naming, new_id, open_by_id, session_ids
from smp_git.model.errors import (
    AlreadyExistsError,
    SmpError,
)
from smp_git.model.times import When
from smp_git.read import archives
from smp_git.remove import archive as rooms
from smp_git.remove import sessions
from smp_git.remove.purge import Purged, moment_before, purge_due
from smp_git.remove.trash import Trash
from smp_git.sync import integrate, remotes
from smp_git.write.handle import GLOBAL, Handle, Home


@contextmanager
def opened(home: Home, name: str) -> Iterator[Handle]:
    """Open a session for as long as the block lasts."""
    handle = open_by_id(home, name)
    try:
        yield handle
    finally:
        opening.close(handle)


def names(home: Home) -> tuple[str, ...]:
    """Return every session that can be opened: the active ones, and the global one."""
    shared = (GLOBAL,) if (home.path / GLOBAL).is_dir() else ()
    return (*session_ids(home.path), *shared)


def check_all(home: Home) -> tuple[str, ...]:
    """Return everything that is wrong with any session."""
    found = []
    for name in names(home):
        try:
            with opened(home, name) as handle:
                handle.keeper.flush()
                found += [f"{name}: {problem.message}" for problem in check(handle.reader)]
        except SmpError as error:
            found.append(f"{name}: {error.message}")
    for name in archives.names(home.path):
        wrong = rooms.whole(home.path, name)
        found += [f"{name}: {wrong}"] if wrong else []
    return (*found, *archives.every(home.path)[1])


def purge_expired(
    home: Home,
    older_than: When | None,
    *,
    by: str | None,
    dry_run: bool,
) -> Purged:
    """Destroy every copy and every deleted session past its deadline, or older than a time.

    What cannot be purged stops nothing else; the answer names it.
    """
    now, left = home.clock(), list[str]()
    moment, found = moment_before(older_than, now), list[Purged]()
    for name in names(home):
        with naming(f"session {name}", left), opened(home, name) as handle:
            found.append(purge_due(handle, older_than, by=by, dry_run=dry_run))
    for name in archives.names(home.path):
        if has_due(home, name, now, moment):
            with naming(f"archived session {name}", left), opened_within(home, name) as handle:
                found.append(purge_due(handle, older_than, by=by, dry_run=dry_run))
    gone = []
    for record in sessions.deleted(home):
        if not record.is_due(now, moment):
            continue
        with naming(f"deleted session {record.session_id}", left):
            if not dry_run:
                damaged = sessions.purge_record(home, record, now, by, "deadline passed")
                left += [
                    f"{each.deletion}, whose record cannot be read: {each.why}" for each in damaged
                ]
            gone.append(record.session_id)
    return Purged(
        ids=tuple(item for each in found for item in each.ids),
        copies=sum(each.copies for each in found),
        sessions=tuple(gone),
        dry_run=dry_run,
        kept_keys=tuple(dict.fromkeys(store for each in found for store in each.kept_keys)),
        damaged=tuple(name for each in found for name in each.damaged),
        left=tuple(left),
    )


def has_due(home: Home, name: str, now: datetime, moment: datetime | None) -> bool:
    """Whether a copy of what was deleted from an archived session is to be destroyed."""
    trash = Trash(home, name, archives.read(home.path, name).text("uid") or "")
    copies = [each.is_due(now, moment) for each in trash.records()]
    return any(copies) or any(each.is_due(now, moment) for each in trash.damaged())


def clone(
    home: Home,
    address: str,
    name: str | None,
    *,
    ask: bool,
    progress: Callable[[str], None] | None,
) -> Path:
    """Make a session from a remote, and return its folder."""
    settings = home.settings
    if name is not None:
        settings.rules.name(name, "the id of a session")
    remote = integrate.addressed(address, settings.remote, home.path)
    access = remotes.access(settings, home.environment, progress, ask=ask)

    def choose(said: str) -> Path:
        return _free_place(home, name or said, given=name is not None)

    active = home.path / "active"
    active.mkdir(mode=0o700, exist_ok=True)
    return integrate.clone(active, remote, access, remotes.limits(settings), choose)


def _free_place(home: Home, name: str, *, given: bool) -> Path:
    if name == GLOBAL and not (home.path / GLOBAL).exists():
        return home.path / GLOBAL
    try:
        return home.path / "active" / new_id(home, name, home.clock())
    except AlreadyExistsError as error:
        hint = (
            "choose another id"
            if given
            else "smp sync brings it up to date; smp clone ADDRESS ID makes another"
        )
        raise AlreadyExistsError(error.message, hint=hint) from error
