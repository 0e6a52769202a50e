"""Checks of a session, and work on every session of a store: check, purge, sync."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple

from smp_git.git import references, staging
from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.git.repository import MAIN
from smp_git.keep import opening
from smp_git.keep.stores import open_by_id, session_ids
from smp_git.model.errors import DamagedError, InvalidFileError, SmpError
from smp_git.model.ids import INDEX, is_index, kind_of_folder, parse_id, parse_path
from smp_git.read import pages as index
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.remove import requests, whole
from smp_git.remove.purge import Purged, moment_before
from smp_git.sync.exchange import exchange_with, known_remotes
from smp_git.sync.remotes import SyncResult
from smp_git.write.hand_edits import find
from smp_git.write.handle import GLOBAL, Handle, Home


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is not as it must be, and the file it concerns."""

    code: str
    path: str
    message: str

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {"code": self.code, "path": self.path, "message": self.message}


def check(reader: Reader) -> tuple[Problem, ...]:
    """Return everything that is wrong with a session; empty when it is sound."""
    try:
        snapshot = reader.snapshot()
        found = [*_objects(snapshot), *_pages(snapshot), *_references(reader)]
        found += _brought_back(snapshot)
    except DamagedError as error:
        return (Problem(code=error.code, path="", message=error.message),)
    if not found and reader.repository.checked_out() == MAIN:
        main = reader.main()
        found += [*_checked_out(reader, main), *_git_index(reader, main)]
    return tuple(found)


def _references(reader: Reader) -> list[Problem]:
    """Check that everything that has a name is there."""
    found = references.read(reader.repository.git)
    missing = {
        ref: name[:12] for ref, name in found.items() if not reader.repository.has(ObjectId(name))
    }
    return [
        Problem(code="damaged_object", path="", message=f"{ref} names {name}, which is missing")
        for ref, name in missing.items()
    ]


def _objects(snapshot: Snapshot) -> list[Problem]:
    """Check that every file at head is there, whole, and under its own name."""
    found = []
    for path, blob in snapshot.repository.files(snapshot.tree):
        try:
            data = snapshot.repository.blob(blob)
        except DamagedError as error:
            found.append(Problem(code="damaged_object", path=path, message=error.message))
            continue
        if object_id(BLOB, data) != blob:
            message = f"{path}: the stored bytes are not those of {blob[:12]}"
            found.append(Problem(code="damaged_object", path=path, message=message))
    return found


def _pages(snapshot: Snapshot) -> list[Problem]:
    repository = snapshot.repository
    found = _strays(snapshot)
    for path, tree_id in snapshot.page_ids().items():
        try:
            wanted = index.rebuilt(repository, path, tree_id).encode()
        except InvalidFileError as error:
            found.append(Problem(code=error.code, path=path, message=error.message))
            continue
        child = repository.tree(tree_id).get(INDEX)
        if (repository.blob(child.id) if child else b"") != wanted:
            message = f"{path}/{INDEX} does not match its files"
            found.append(Problem(code="stale_index", path=f"{path}/{INDEX}", message=message))
    return found


def _brought_back(snapshot: Snapshot) -> list[Problem]:
    """Name what was deleted and stands at head all the same."""
    return [
        Problem(
            code="brought_back",
            path=parse_id(name).path,
            message=f"{name} was deleted, and plain Git brought a version of it back; smp delete {name} takes it out",
        )
        for path in snapshot.page_ids()
        for name in sorted(snapshot.dead(path))
    ]


def _strays(snapshot: Snapshot) -> list[Problem]:
    pages = snapshot.page_ids()
    return [
        Problem(code="stray_file", path=path, message=f"{path}: no memory belongs at this path")
        for path, _ in snapshot.repository.files(snapshot.tree)
        if kind_of_folder(path.partition("/")[0])
        and parse_path(path) is None
        and not (is_index(path) and path.rpartition("/")[0] in pages)
    ]


def _checked_out(reader: Reader, snapshot: Snapshot) -> list[Problem]:
    try:
        handmade = find(snapshot, reader.path)
    except SmpError as error:
        return [Problem(code=error.code, path="", message=error.message)]
    return [
        Problem(code="uncommitted", path=path, message=f"{path} differs from what is committed")
        for path in (*handmade.files, *handmade.stale_indexes)
    ]


def _git_index(reader: Reader, snapshot: Snapshot) -> list[Problem]:
    """Check that Git's index agrees with the tree it is said to agree with, or with head."""
    base = staging.recorded_tree(reader.repository.git)
    if base is None or not reader.repository.has(base):
        return []
    wanted = {path: str(blob) for path, blob in reader.repository.files(base)}
    now = {path: str(blob) for path, blob in reader.repository.files(snapshot.tree)}
    staged = {entry.path: str(entry.id) for entry in reader.repository.index()}
    return [
        Problem(code="staged", path=path, message=f"{path} is staged in Git's index")
        for path in sorted(wanted.keys() | now.keys() | staged.keys())
        if staged.get(path) not in (wanted.get(path), now.get(path))
    ]


class Synced(NamedTuple):
    """What became of each session that was to be synced."""

    results: Mapping[str, SyncResult]
    failed: Mapping[str, SmpError]


@contextmanager
def opened(home: Home, name: str) -> Iterator[Handle]:
    """Open a session for as long as the block lasts."""
    handle = open_by_id(home, name)
    try:
        yield handle
    finally:
        opening.close(handle)


def check_all(home: Home) -> tuple[str, ...]:
    """Return everything that is wrong with any session."""
    found = []
    for name in session_ids(home.path):
        try:
            with opened(home, name) as handle:
                handle.keeper.flush()
                found += [f"{name}: {problem.message}" for problem in check(handle.reader)]
        except SmpError as error:
            found.append(f"{name}: {error.message}")
    return tuple(found)


def purge_expired(
    home: Home,
    older_than: datetime | str | timedelta | None,
    *,
    by: str | None,
    dry_run: bool,
) -> Purged:
    """Destroy every copy and every deleted session past its deadline, or older than a time.

    What cannot be purged stops nothing else; the answer names it.
    """
    now, left = home.clock(), list[str]()
    moment, found = moment_before(older_than, now), list[Purged]()
    for name in session_ids(home.path):
        with _naming(f"session {name}", left), opened(home, name) as handle:
            found.append(requests.purge_due(handle, older_than, by=by, dry_run=dry_run))
    gone = []
    for record in whole.deleted(home):
        if not record.is_due(now, moment):
            continue
        with _naming(f"deleted session {record.session_id}", left):
            if not dry_run:
                damaged = whole.purge_record(home, record, now, by, "deadline passed")
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


@contextmanager
def _naming(what: str, left: list[str]) -> Iterator[None]:
    """Go on past an error, and name it among what is left."""
    try:
        yield
    except SmpError as error:
        left.append(f"{what}: {error.message}" + (f"; {error.hint}" if error.hint else ""))


def sync_all(home: Home, remote: str | None, *, agent: str | None, ask: bool) -> Synced:
    """Sync every session that has the remote, the global one too."""
    results: dict[str, SyncResult] = {}
    failed: dict[str, SmpError] = {}
    shared = (GLOBAL,) if (home.path / GLOBAL).is_dir() else ()
    for name in (*session_ids(home.path), *shared):
        try:
            with opened(home, name) as handle:
                found = known_remotes(handle)
                if found if remote is None else remote in found:
                    exchange = exchange_with(handle, remote, agent, ask=ask, progress=None)
                    results[name] = exchange.sync()
        except SmpError as error:
            failed[name] = error
    return Synced(results, failed)
