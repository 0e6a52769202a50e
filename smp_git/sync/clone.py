"""A session made from a remote: the same checks as any sync, then a whole new folder."""

from __future__ import annotations

import os
import re
import secrets
import shutil
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from smp_git.format.records import Tombstones
from smp_git.git import disk, layout, staging
from smp_git.git.addresses import parse
from smp_git.git.repository import MAIN, Repository
from smp_git.git.transport import Limits
from smp_git.git.transport import RemoteAccess as Way
from smp_git.model.errors import AlreadyExistsError, RemoteNotFoundError
from smp_git.model.memory import CommitId
from smp_git.read.replica import Identity, Local, new_tag
from smp_git.read.snapshot import Reader
from smp_git.sync import remotes
from smp_git.sync.heads import Arrived, cleaned, needed
from smp_git.sync.inspect import inspection
from smp_git.sync.inspect.inspection import inspect
from smp_git.sync.integrate import mended
from smp_git.sync.remotes import ACCESS, HEADS, ORIGIN, Remote, shown_ref, tracking

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")


def addressed(text: str, pattern: str | None, base: Path) -> Remote:
    """Return the remote at an address, or that a store's pattern gives the session `text`."""
    if pattern is not None and _SESSION_ID.fullmatch(text):
        return Remote(ORIGIN, parse(pattern.replace("{session}", text), base), is_own=False)
    return Remote(ORIGIN, parse(text, Path().absolute()))


def clone(
    folder: Path, remote: Remote, way: Way, limits: Limits, choose: Callable[[str], Path]
) -> Path:
    """Make a session from a remote and return its path; until it is whole it stands in `folder`.

    `choose` returns the place of the new session, given the name that the remote says; it
    raises an error if that cannot be. The session appears whole or not at all.
    """
    aside = folder / f".new-{secrets.token_hex(8)}"
    try:
        with disk.reporting(f"a session to {folder}"):
            layout.create(aside)
            identity = Identity(new_tag(), creator=False)
            named_there, said = _filled(aside, remote, way, limits)
            place = choose(said)
            local = Local(aside / ".git")
            local.identify(aside, identity, place)
            local.note_boot()
            if remote.is_own:
                remotes.add(aside, remote.name, remote.address)
            remotes.keep_seen(
                local.folder,
                remote.name,
                remotes.Seen(address=remote.address.text, refs=named_there),
            )
            # Everything at once: one by one, ten thousand files would take a minute.
            os.sync()
            _move(aside, place)
        return place
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _filled(aside: Path, remote: Remote, way: Way, limits: Limits) -> tuple[Mapping[str, str], str]:
    """Bring everything in; return what the remote named, and the id of its session."""
    git, address = aside / ".git", remote.address.text
    with inspection.fetched(git, address, way, limits) as (held, left_out):
        there = dict(held.refs)
        if MAIN not in there:
            raise RemoteNotFoundError(
                f"{remote.address.text} holds no session yet",
                hint="push one to it first: smp remote add, then smp sync",
            )
        inspected = inspect(held.repository, there, ())
        told = inspected.tombstones
        arrived = cleaned(held.repository, there, told, frozenset())
        repository = Repository(aside)
        if arrived.is_rewritten:
            held.adopt_objects(needed(arrived, repository))
        else:
            held.adopt()
    repository.close()
    _placed(aside, remote.name, arrived, told, inspected.lying)
    return {**there, **left_out}, inspected.session


def _placed(
    aside: Path,
    remote: str,
    arrived: Arrived,
    told: Tombstones,
    lying: Mapping[str, Collection[str]],
) -> None:
    """Point the references at what came, its indexes mended, and write the files of main."""
    reader = Reader(aside)
    repository = reader.repository
    moves: dict[str, CommitId] = {}
    for ref, tip in arrived.clean.items():
        names = [] if ref.startswith(ACCESS) else [tracking(remote, ref)]
        names += [shown_ref(remote, ref)] if ref.startswith(HEADS) else []
        moves |= dict.fromkeys(names, CommitId(tip))
        moves[ref] = mended(reader, CommitId(tip), lying.get(ref, ()))
    repository.point(moves)
    Local(repository.git).keep_tombstones(told)
    tree = repository.commit(moves[MAIN]).tree
    made: set[Path] = set()
    for path, blob in repository.files(tree):
        target = repository.path / path
        if target.parent not in made:
            disk.make_folders(target.parent)
            made.add(target.parent)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            disk.write_all(fd, repository.blob(blob))
        finally:
            os.close(fd)
    staging.refresh(repository, tree)
    reader.close()


def _move(aside: Path, place: Path) -> None:
    try:
        aside.rename(place)
    except OSError as error:
        if place.exists():
            raise AlreadyExistsError(f"session {place.name} exists") from error
        raise
    disk.force_folder(place.parent)
