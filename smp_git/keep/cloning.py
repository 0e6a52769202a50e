"""A session cloned into a store, under its own id or another."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from smp_git.keep.stores import new_id
from smp_git.model.errors import AlreadyExistsError
from smp_git.sync import clone as sync_clone
from smp_git.sync import remotes
from smp_git.write.handle import GLOBAL, Home


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
        settings.redaction.name(name, "the id of a session")
    remote = sync_clone.addressed(address, settings.remote, home.path)
    access = remotes.access(settings, home.surroundings(), progress, ask=ask)

    def choose(said: str) -> Path:
        return _free_place(home, name or said, given=name is not None)

    active = home.path / "active"
    active.mkdir(mode=0o700, exist_ok=True)
    return sync_clone.clone(active, remote, access, remotes.limits(settings), choose)


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
