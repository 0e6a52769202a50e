"""Replicas that take themselves for one: copies of an image, and backups put back."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from datetime import timedelta
from itertools import product
from pathlib import Path

from smp_git import Session, Store
from tests.conftest import Clock
from tests.sync.support import head, sound


def copied(session: Session, folder: Path, name: str) -> Session:
    """Copy a store as an image of a container is started: the copy takes itself for the same."""
    source = session.path
    store = next(each for each in source.parents if (each / "config.yaml").exists())
    shutil.copytree(store, folder / name, symlinks=True)
    place = folder / name / source.relative_to(store)
    _accept(place)
    return opened(place, session)


def _accept(place: Path) -> None:
    """Let the program find a folder where it left it: same machine, same inode, same path."""
    kept = place / ".git/smp/replica.json"
    found = json.loads(kept.read_text())
    kept.write_text(json.dumps({**found, "path": str(place), "inode": place.stat().st_ino}))


def kept(session: Session, folder: Path) -> Path:
    """Keep the whole folder of a session, as a backup or a snapshot of its machine does."""
    shutil.copytree(session.path, folder / "kept", symlinks=True)
    return folder / "kept"


def put_back(session: Session, copy: Path) -> Session:
    """Put what was kept in the place of what is there; the folder itself is the same one."""
    session.close()
    for each in session.path.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()
    shutil.copytree(copy, session.path, symlinks=True, dirs_exist_ok=True)
    return opened(session.path, session)


def opened(path: Path, before: Session | None = None) -> Session:
    """Open a session again, later than what wrote there before."""
    clock = Clock()
    clock.now = before._opened.clock.now if before else clock.now + timedelta(hours=1)  # type: ignore[attr-defined]
    store = next(each for each in path.parents if (each / "config.yaml").exists())
    return Store.open(store, clock=clock).session("shop")


def texts(session: Session) -> set[str]:
    return {memory.content for memory in session.memories()}


def settled(sessions: Iterable[Session], remotes: Iterable[Path]) -> None:
    """Sync three times with every remote: all are at one commit, and rest there."""
    sessions, remotes = list(sessions), list(remotes)
    for _ in range(3):
        for session, name in product(sessions, _names(remotes)):
            session.sync(name)
    heads = {session.head for session in sessions} | {head(remote) for remote in remotes}
    assert len(heads) == 1
    for session, name in product(sessions, _names(remotes)):
        again = session.sync(name)
        assert not again.pushed
        assert not again.fetched
        assert not again.moved
    assert {session.head for session in sessions} == heads
    for session in sessions:
        assert session.conflicts() == ()
        sound(session)


def _names(remotes: list[Path]) -> list[str]:
    return ["origin", "second"][: len(remotes)]
