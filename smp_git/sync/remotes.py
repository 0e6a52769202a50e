"""Remotes of a session, what this replica last saw of each, and whose turn it is.

Whoever has nothing to merge pushes in a fraction of the time that a merge takes, so beside
a replica that writes all the time another would never get through. After two lost rounds
it puts a mark at the remote, `refs/smp/waiting/TAG`; the others see the mark, and let it
go first. A mark names the empty tree: it holds nothing, and keeps nothing alive.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.git import addresses as configured
from smp_git.git import disk, transport
from smp_git.git.addresses import Address, parse, unusable
from smp_git.git.references import ACCESS, HEADS, REMOTES, SEEN, TAGS, TRAVELLING, WAITING
from smp_git.git.transport import Limits, RemoteAccess, Update
from smp_git.model.errors import InvalidError, NotFoundError, RefusedError, SmpError, shown
from smp_git.model.memory import CommitId, MemoryId
from smp_git.model.results import Result
from smp_git.model.settings import Settings
from smp_git.model.times import format_time
from smp_git.read.replica import REMOTE_STATES, new_tag
from smp_git.read.snapshot import Reader
from smp_git.write.merge.memories import Conflict

ORIGIN: Final = "origin"
_SESSION: Final = "{session}"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_ADD: Final = "smp remote add origin ADDRESS, or the setting remote for all sessions"


class Remote(NamedTuple):
    """A remote of a session; `is_own` if the session itself names it.

    >>> session.add_remote("origin", folder / "hub.git", create=True).name
    'origin'
    """

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
class SyncResult(Result):
    """One exchange with one remote; when it is returned, the remote holds what is here.

    `fetched` and `pushed` count commits. `merged` are the branches that needed a merge,
    `rewritten` the memories that were deleted here because they were deleted elsewhere,
    `moved` those that took another id, old and new, because two memories had one.
    `advertised` is the remote's own word for its main branch. `notes` are sentences
    about what was left as it is.

    >>> remote = session.add_remote("origin", folder / "hub.git", create=True)
    >>> session.sync().remote
    'origin'
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
        moved = [{"from": old, "to": new} for old, new in self.moved]
        contested = [each.as_json() for each in self.contested]
        return {**Result.as_json(self), "contested": contested, "moved": moved}


_LONGEST: Final = 200
_ID = re.compile(r"[0-9a-f]{40}")
_REPLICA = re.compile(r"[a-z][a-z0-9]{3}")
RESCUE: Final = "refs/smp/rescue/"


def travels(ref: str) -> bool:
    """Whether a reference is part of what is synced."""
    return ref.startswith(TRAVELLING)


def is_foreign(ref: str) -> bool:
    """Whether a reference of a remote is neither synced nor the program's own."""
    return not travels(ref) and not ref.startswith("refs/smp/")


def is_fit(ref: str) -> bool:
    """Whether a reference has a name that every replica can give it too."""
    parts = ref.split("/")
    name = "/".join(parts[2:])
    is_plain = len(ref) <= _LONGEST and ref.isprintable()
    if not is_plain or any(part.startswith("-") for part in parts):
        return False
    if ref.startswith(ACCESS):
        return _REPLICA.fullmatch(ref.removeprefix(ACCESS)) is not None
    return ref.startswith((HEADS, TAGS)) and name not in ("", "HEAD") and not _ID.fullmatch(name)


def tracking(remote: str, ref: str) -> str:
    """Return the reference that remembers what a remote's reference named, once cleaned."""
    return f"{SEEN}{remote}/{ref.removeprefix('refs/')}"


def shown_ref(remote: str, ref: str) -> str:
    """Return the reference by which plain Git remembers a remote's branch."""
    return f"{REMOTES}{remote}/{ref.removeprefix(HEADS)}"


def branch_of(ref: str) -> str:
    """Return the name of a branch as a person says it."""
    return ref.removeprefix(HEADS)


def rescue(remote: str, ref: str) -> str:
    """Return the reference that keeps local work aside when a remote is refused."""
    return f"{RESCUE}{remote}/{branch_of(ref)}"


# A mark is put up with the second round that was lost.
_LOST: Final = 2
# How long others are let go first; whoever still waits then is gone, or too slow for turns.
COURTESY_SECONDS: Final = 20.0
# Between two looks at whether they have gone: at a path, and far away.
_LOOK_SECONDS: Final = {True: 0.05, False: 0.5}
# The pause after a lost round grows from the first to the second.
_PAUSE_SECONDS: Final = 0.02
_LONGEST_PAUSE: Final = 0.5


class Turns:
    """One replica's turns at one remote, for one exchange.

    `waiting` are the marks of others, by tag, and when each was first seen.
    """

    def __init__(self, reader: Reader, remote: Remote, way: RemoteAccess) -> None:
        self._git, self._remote, self._way = reader.repository.git, remote, way
        identity = reader.local.identity(reader.path)
        self._own = WAITING + (identity.tag if identity else new_tag())
        self._is_up = False
        self._lost = 0
        self.waiting: dict[str, float] = {}

    def ask(self) -> dict[str, str]:
        """Return the references of the remote that travel, and take note of the marks."""
        prefixes = (*TRAVELLING, WAITING)
        found = transport.advertised(self._remote.address.text, self._way, prefixes=prefixes)
        marks = {ref for ref in found if ref.startswith(WAITING)}
        # One of our own is left by a sync that was killed.
        self._is_up = self._own in marks
        now = time.time()
        self.waiting = {ref: self.waiting.get(ref, now) for ref in sorted(marks - {self._own})}
        return {ref: tip for ref, tip in found.items() if not ref.startswith(WAITING)}

    def give_way(self) -> bool:
        """Let those go first who wait, for a while; return whether anybody did wait."""
        is_near = self._remote.address.kind == "path"
        if self._is_up or not (is_near or self.waiting):
            return False
        end = time.monotonic() + COURTESY_SECONDS
        waited = False
        self.ask()
        while (found := self._fresh()) and time.monotonic() < end:
            waited = True
            time.sleep(_LOOK_SECONDS[is_near] * random.uniform(0.5, 1))  # noqa: S311
            self.ask()
        self._drop([ref for ref in self.waiting if ref not in found])
        return waited

    def _fresh(self) -> list[str]:
        """Return the marks that have not been there for so long that nobody can be behind them."""
        now = time.time()
        return [ref for ref, at in self.waiting.items() if 0 <= now - at < COURTESY_SECONDS]

    def lose(self) -> None:
        """Pause after a lost round, for longer each time, and put up a mark in time."""
        self._lost += 1
        if self._lost >= _LOST and not self._is_up:
            self._is_up = self._push(Update(self._own, transport.EMPTY_TREE, None, force=True))
        # At random, so that two replicas do not keep in step.
        time.sleep(random.uniform(0, min(_PAUSE_SECONDS * self._lost, _LONGEST_PAUSE)))  # noqa: S311

    def leave(self) -> None:
        """Take our mark away."""
        if self._is_up:
            self._drop([self._own])
            self._is_up = False

    def _drop(self, refs: list[str]) -> None:
        for ref in refs:
            self._push(Update(ref, None, transport.EMPTY_TREE, force=True))
            self.waiting.pop(ref, None)

    def _push(self, update: Update) -> bool:
        """Move a mark; a remote that has no room for marks goes without."""
        with suppress(SmpError):
            told = transport.push(self._git, self._remote.address.text, [update], self._way)
            return all(
                each.fate in (transport.Fate.DONE, transport.Fate.CURRENT) for each in told.values()
            )
        return False


def read_marks(found: object) -> dict[str, float]:
    """Return noted marks as they were kept."""
    if not isinstance(found, Mapping):
        return {}
    return {str(ref): float(at) for ref, at in found.items() if isinstance(at, (int, float))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A remote as it was when this replica last spoke with it.

    `refs` are the ids that the remote itself named, which a forced push may replace.
    `withheld` says why it still holds what was deleted here, if it does; `waiting` which
    replicas waited there for their turn, and since when that is known.
    """

    address: str
    refs: Mapping[str, str] = field(default_factory=dict)
    at: datetime | None = None
    withheld: str | None = None
    waiting: Mapping[str, float] = field(default_factory=dict)


def read_seen(smp: Path, remote: str, address: str) -> Seen:
    """Return what is known of a remote; nothing, if its address is another now."""
    kept = _all_seen(smp).get(remote)
    if not isinstance(kept, dict) or kept.get("address") != address:
        return Seen(address=address)
    refs, at, withheld = kept.get("refs"), kept.get("at"), kept.get("withheld")
    return Seen(
        address=address,
        refs={str(k): str(v) for k, v in refs.items()} if isinstance(refs, dict) else {},
        at=datetime.fromisoformat(at).astimezone(UTC) if isinstance(at, str) else None,
        withheld=withheld if isinstance(withheld, str) else None,
        waiting=read_marks(kept.get("waiting")),
    )


def seen_in(folder: Path) -> dict[str, Seen]:
    """Return what is known of every remote, from the file of that in a folder."""
    found = _all_seen(folder)
    addresses = {
        name: str(each["address"])
        for name, each in found.items()
        if isinstance(each, dict) and "address" in each
    }
    return {name: read_seen(folder, name, address) for name, address in addresses.items()}


def keep_seen(smp: Path, remote: str, seen: Seen | None) -> None:
    """Remember what was seen of a remote; None forgets it.

    An older state is as good after a power cut: what changed since is fetched again.
    """
    everything = _all_seen(smp)
    if seen is None:
        everything.pop(remote, None)
    else:
        everything[remote] = {
            "address": seen.address,
            "refs": dict(seen.refs),
            "at": format_time(seen.at) if seen.at else None,
            "withheld": seen.withheld,
            "waiting": dict(seen.waiting),
        }
    data = json.dumps(everything).encode()
    disk.replace_file(smp / REMOTE_STATES, data, smp / f"{REMOTE_STATES}.tmp")


def _all_seen(smp: Path) -> dict[str, object]:
    try:
        found = json.loads((smp / REMOTE_STATES).read_bytes())
    except (FileNotFoundError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}
