"""The remotes of a session, and what a sync with one came to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.git import addresses as configured
from smp_git.git.addresses import Address, parse, unusable
from smp_git.git.transport import Limits, RemoteAccess
from smp_git.model.errors import InvalidError, NotFoundError, RefusedError, shown
from smp_git.model.memory import CommitId, MemoryId
from smp_git.model.settings import Settings
from smp_git.write.merge.trees import Conflict

ORIGIN: Final = "origin"
_SESSION: Final = "{session}"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_ADD: Final = "smp remote add origin ADDRESS, or the setting remote for all sessions"


class Remote(NamedTuple):
    """A remote of a session; `is_own` if the session itself names it."""

    name: str
    address: Address
    is_own: bool = True

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {"name": self.name, "address": self.address.text, "is_own": self.is_own}


def remotes(session: Path, pattern: str | None, base: Path) -> dict[str, Remote]:
    """Return the remotes of a session by name.

    `pattern`, with the session's id in the place of `{session}`, is its origin if it
    names none itself; a path in it is below `base`.
    """
    own = configured.remotes(session / ".git")
    found = {name: Remote(name, _known(text, session)) for name, text in own.items()}
    if pattern is not None and ORIGIN not in found:
        text = pattern.replace(_SESSION, session.name)
        found[ORIGIN] = Remote(ORIGIN, parse(text, base), is_own=False)
    return dict(sorted(found.items()))


def _known(text: str, session: Path) -> Address:
    """Return an address from the configuration; one that cannot be used is refused when it is."""
    try:
        return parse(text, session)
    except InvalidError:
        return unusable(text)


def chosen(found: Mapping[str, Remote], name: str | None) -> Remote:
    """Return the remote called `name`; without a name the origin, or the only one."""
    if name is not None:
        if name not in found:
            raise NotFoundError(
                f"no remote {shown(name)}",
                hint=f"remotes are {', '.join(found)}" if found else _ADD,
            )
        return found[name]
    if ORIGIN in found:
        return found[ORIGIN]
    if len(found) == 1:
        return next(iter(found.values()))
    if found:
        raise RefusedError("there are several remotes", hint=f"name one of {', '.join(found)}")
    raise NotFoundError("the session has no remote", hint=_ADD)


def add(session: Path, name: str, address: Address) -> Remote:
    """Add a remote to a session."""
    configured.add(session / ".git", _checked(name), address.text)
    return Remote(name, address)


def remove(session: Path, name: str) -> None:
    """Forget a remote of a session, with the references that track it."""
    configured.remove(session / ".git", name)


def rename(session: Path, old: str, new: str) -> None:
    """Give a remote of a session another name."""
    configured.rename(session / ".git", old, _checked(new))


def create(address: Address) -> None:
    """Make an empty repository at a path; leave one that is there."""
    if address.kind != "path":
        raise InvalidError(
            f"{address} is on another machine, where nothing can be made",
            hint="make an empty repository there by hand",
        )
    configured.create_bare(Path(address.path))


def _checked(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise InvalidError(
            f"{shown(name)} is not a valid name for a remote",
            hint="1 to 64 letters, digits, '-' or '_', first a letter or digit",
        )
    return name


def access(
    settings: Settings,
    environment: Mapping[str, str],
    progress: Callable[[str], None] | None = None,
    *,
    ask: bool = False,
) -> RemoteAccess:
    """Return how remotes are reached with these settings, from this environment."""
    return RemoteAccess(
        surroundings=environment,
        ssh_key=settings.ssh_key,
        ask=ask,
        token=environment.get("SMP_TOKEN") or None,
        timeout_seconds=settings.sync_timeout_seconds,
        progress=progress,
    )


def limits(settings: Settings) -> Limits:
    """Return how much a remote may send."""
    return Limits(received_bytes=settings.sync_limit_bytes)


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncResult:
    """One exchange with one remote; when it is returned, the remote holds what is here.

    `fetched` and `pushed` count commits. `merged` are the branches that needed a merge,
    `rewritten` the memories that were deleted here because they were deleted elsewhere,
    `moved` those that took another id, old and new, because two memories had one.
    `advertised` is the remote's own word for its main branch. `notes` are sentences
    about what was left as it is.
    """

    remote: str
    address: str
    fetched: int = 0
    pushed: int = 0
    merged: tuple[str, ...] = ()
    contested: tuple[Conflict, ...] = ()
    rewritten: tuple[MemoryId, ...] = ()
    moved: tuple[tuple[MemoryId, MemoryId], ...] = ()
    replaced: bool = False
    advertised: CommitId | None = None
    rounds: int = 1
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "remote": self.remote,
            "address": self.address,
            "fetched": self.fetched,
            "pushed": self.pushed,
            "merged": list(self.merged),
            "contested": [each.as_json() for each in self.contested],
            "rewritten": list(self.rewritten),
            "moved": [{"from": old, "to": new} for old, new in self.moved],
            "replaced": self.replaced,
            "advertised": self.advertised,
            "rounds": self.rounds,
            "notes": list(self.notes),
        }
