"""Stores: folders of sessions, made and found; what a store says of itself."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final

from smp_git.format import config
from smp_git.format.config import CONFIG, FORMAT
from smp_git.git import disk
from smp_git.git.disk import reporting
from smp_git.model.errors import AlreadyExistsError, NotStoreError, shown
from smp_git.write.handle import Home

PLACE: Final = Path(".bmad/sessions")


def init(place: Path) -> None:
    """Make a store at a place that has none yet; raise an error if something else is there."""
    with reporting(f"a store at {place}"):
        if place.exists() and not place.is_dir():
            raise NotStoreError(f"{place} is a file", hint="name a folder")
        if not is_store(place) and place.is_dir() and any(place.iterdir()):
            raise AlreadyExistsError(
                f"{place} holds other files", hint="name an empty or a new folder"
            )
        (place / "active").mkdir(mode=0o700, parents=True, exist_ok=True)
        place.chmod(0o700)
        if not (place / ".gitignore").exists():
            (place / ".gitignore").write_text("*\n")
        if not (place / CONFIG).exists():
            said = f"format: {FORMAT}\n".encode()
            disk.replace_durably(place / CONFIG, said, place / f".{CONFIG}.tmp")


def is_store(place: Path) -> bool:
    """Whether a folder is a store."""
    return (place / "active").is_dir() and (place / CONFIG).is_file()


def above(here: Path) -> Path:
    """Return the nearest store from a folder up; raise NotStoreError."""
    for folder in (here, *here.parents):
        for place in (folder / PLACE, folder):
            if is_store(place):
                return place
    raise NotStoreError(f"no store in {here} or above", hint="smp init makes one")


def at(path: Path) -> Path:
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


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return a path from the root; raise NotStoreError if it cannot be one."""
    if "\0" in os.fspath(path):
        raise NotStoreError(f"{shown(path)} is not a path")
    return Path(path).absolute()


def home_at(
    path: Path, clock: Callable[[], datetime], surroundings: Callable[[], Mapping[str, str]]
) -> Home:
    """Return a store as what is done in it needs it."""
    settings = config.load(path)

    def keys() -> Path | None:
        from smp_git.remove import seal  # noqa: PLC0415 - few programs delete

        return seal.folder(settings.key_dir, surroundings(), path)

    return Home(path=path, settings=settings, clock=clock, keys=keys, surroundings=surroundings)
