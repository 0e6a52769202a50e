"""Places of stores: known by what they hold, found from a folder up; loads nothing heavy."""

from __future__ import annotations

from pathlib import Path

from smp_git.model.errors import NotStoreError, shown
from smp_git.model.names import ACTIVE, CONFIG, PLACE


def is_store(place: Path) -> bool:
    """Whether a folder is a store."""
    return (place / ACTIVE).is_dir() and (place / CONFIG).is_file()


def above(here: Path) -> Path:
    """Return the nearest store from a folder up; raise NotStoreError."""
    for folder in (here, *here.parents):
        for place in (folder / PLACE, folder):
            if is_store(place):
                return place
    raise NotStoreError(f"no store in {here} or above", hint="smp init makes one")


def store_at(path: Path) -> Path:
    """Return the store at a path, or in the project there; raise NotStoreError."""
    try:
        found = [place for place in (path, path / PLACE) if is_store(place)]
        there = path.exists()
    except OSError as error:
        raise NotStoreError(f"{shown(str(path))} cannot be opened: {error.strerror}") from error
    if found:
        return found[0]
    if not there:
        raise NotStoreError(f"{path} does not exist", hint="smp init makes a store")
    raise NotStoreError(
        f"{path} is not a store", hint="smp init makes one; a store holds config.yaml"
    )
