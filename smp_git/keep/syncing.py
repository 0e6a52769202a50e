"""Every session of a store synced: several at a time, with one connection to each server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from typing import Final, NamedTuple

from smp_git.git import transport
from smp_git.git.addresses import Address, parse
from smp_git.git.connections import server
from smp_git.git.transport import RemoteAccess
from smp_git.keep import every, quota
from smp_git.keep.archive import opened_within
from smp_git.keep.stores import place_of
from smp_git.model.errors import RemoteUnreachableError, SmpError
from smp_git.model.names import ARCHIVED
from smp_git.read import archives
from smp_git.sync import remotes
from smp_git.sync.exchange import exchange_with, known_remotes
from smp_git.sync.remotes import Seen, SyncResult
from smp_git.write.handle import Handle, Home

# Most of a sync is waiting for the other side.
_AT_ONCE: Final = 4
# So many in a row whom a server does not answer are enough.
_GIVEN_UP: Final = 4

Progress = Callable[[str], None]


class Synced(NamedTuple):
    """The result of a sync of each session.

    >>> dict(store.sync().failed)
    {}
    """

    results: Mapping[str, SyncResult]
    failed: Mapping[str, SmpError]


def sync_all(
    home: Home,
    remote: str | None,
    *,
    agent: str | None,
    ask: bool,
    progress: Progress | None = None,
) -> Synced:
    """Sync every session that has the remote, the global one too, several at a time.

    Archived ones are looked at, and restored for a sync if a remote has something new. One
    that fails does not stop the others. Who may be asked is asked by one at a time.
    """
    wanted = (*every.names(home), *archives.names(home.path))
    done: dict[str, SyncResult | SmpError | None] = {}
    access = remotes.access(home.settings, home.environment, ask=ask)
    with transport.connected(access, _shared(home, wanted, remote)) as way:
        work = _Exchanges(home, remote, agent, way)
        pool = ThreadPoolExecutor(1 if ask else _AT_ONCE, "smp-sync")
        try:
            names = {pool.submit(work.one, name): name for name in wanted}
            for future in as_completed(names):
                done[names[future]] = future.result()
                if progress is not None:
                    progress(f"{len(done)} of {len(wanted)} sessions")
        finally:
            # Who interrupts it waits for those that are under way, and for no other.
            pool.shutdown(cancel_futures=True)
    return Synced(
        {name: each for name in wanted if isinstance(each := done[name], SyncResult)},
        {name: each for name in wanted if isinstance(each := done[name], SmpError)},
    )


def _shared(home: Home, names: tuple[str, ...], remote: str | None) -> Iterator[Address]:
    """Yield a place on each server that several sessions are synced with."""
    found = [place for name in names if (place := _place_of(home, name, remote)) is not None]
    counts = Counter(map(server, found))
    yield from {server(place): place for place in found if counts[server(place)] > 1}.values()


def _place_of(home: Home, name: str, remote: str | None) -> Address | None:
    """Return where the remote of a session is; None if it has none, or cannot be read."""
    folder = home.path / ARCHIVED / name
    try:
        if archives.is_archived(home.path, name):
            seen = [each for key, each in remotes.seen_in(folder).items() if remote in (None, key)]
            return parse(seen[0].address, folder) if seen else None
        found = remotes.remotes(place_of(home, name), home.settings.remote, home.path)
        return remotes.chosen(found, remote).address
    except (SmpError, OSError):
        return None


class _Exchanges:
    """The exchanges of one sync of many sessions."""

    def __init__(
        self, home: Home, remote: str | None, agent: str | None, way: RemoteAccess
    ) -> None:
        self._home = home
        self._remote = remote
        self._agent = agent
        self._way = way
        # How many in a row each server has not answered.
        self._silent: Counter[str] = Counter()

    def one(self, name: str) -> SyncResult | SmpError | None:
        """Sync a session; return what came of it, None if it has no such remote."""
        try:
            if archives.is_archived(self._home.path, name):
                return self._archived(name)
            with every.opened(self._home, name) as handle:
                return self._sync(handle)
        except SmpError as error:
            return error

    def _archived(self, name: str) -> SyncResult | None:
        """Sync an archived session if its remote is not as it was seen last."""
        home = self._home
        folder = home.path / ARCHIVED / name
        wanted = remotes.seen_in(folder)
        named = archives.read(home.path, name).said.get("remotes")
        if not wanted and not named and home.settings.remote is None:
            return None
        seen = [each for key, each in wanted.items() if self._remote in (None, key)]
        if seen and all(map(self._is_as_seen, seen)):
            return None
        with opened_within(home, name) as handle:
            return self._sync(handle)

    def _is_as_seen(self, seen: Seen) -> bool:
        with self._answering(parse(seen.address, self._home.path)):
            there = transport.advertised(seen.address, self._way)
        return there == seen.refs and not seen.withheld

    def _sync(self, handle: Handle) -> SyncResult | None:
        """Sync a session, unless it has no such remote."""
        found = known_remotes(handle)
        if not (found if self._remote is None else self._remote in found):
            return None
        with self._answering(remotes.chosen(found, self._remote).address):
            return sync(handle, self._remote, self._agent, ask=self._way.ask, way=self._way)

    @contextmanager
    def _answering(self, place: Address) -> Iterator[None]:
        """Note whether a server answers; raise RemoteUnreachableError if it is given up."""
        name = server(place)
        if self._silent[name] >= _GIVEN_UP:
            raise RemoteUnreachableError(
                f"not tried: {name} did not answer for {_GIVEN_UP} sessions before",
                hint="check the network, and sync again",
            )
        try:
            yield
        except RemoteUnreachableError:
            self._silent[name] += 1
            raise
        self._silent[name] = 0


def sync(
    handle: Handle,
    remote: str | None,
    agent: str | None,
    *,
    accept: bool = False,
    ask: bool,
    progress: Progress | None = None,
    way: RemoteAccess | None = None,
) -> SyncResult:
    """Sync a session, and make room in it if what came fills it."""
    with_it = exchange_with(
        handle, remote, agent, accept=accept, ask=ask, progress=progress, way=way
    )
    done = with_it.sync()
    quota.make_room(handle)
    return done
