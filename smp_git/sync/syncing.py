"""What a session shares with others: its remotes, and the exchange with each."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from smp_git.write.branches import Branching

# What syncs is loaded by what syncs: most programs only read and write.
if TYPE_CHECKING:
    from smp_git.sync.exchange import Exchange
    from smp_git.sync.outbound import RemoteState
    from smp_git.sync.remotes import Remote, SyncResult

Progress = Callable[[str], None]


class Syncing(Branching):
    """The syncing half of a session. A remote is named; without a name it is `origin`, or the only one."""

    @property
    def remotes(self) -> Mapping[str, Remote]:
        """The remotes of the session by name, the one of the store's pattern included."""
        from smp_git.sync import remotes  # noqa: PLC0415 - few programs sync

        home = self._at_home()
        return remotes.remotes(self._reader.path, home.settings.remote, home.store)

    def add_remote(
        self, name: str, address: str | PathLike[str], *, create: bool = False
    ) -> Remote:
        """Add a remote; with `create` an empty repository is made at a path that has none."""
        from smp_git.git import remotes as addresses  # noqa: PLC0415 - few programs sync
        from smp_git.sync import remotes  # noqa: PLC0415

        self._rules.name(name, "the name of a remote")
        self._rules.address(str(address))
        parsed = addresses.parse(str(address), Path().absolute())
        if create:
            remotes.create(parsed)
        with self._writer.holding("adding a remote"):
            return remotes.add(self._reader.path, name, parsed)

    def remove_remote(self, name: str) -> None:
        """Forget a remote, and what was known of it."""
        from smp_git.sync import exchange, remotes  # noqa: PLC0415 - few programs sync

        # A sync that is under way would note what it saw of it.
        with (
            exchange.alone(self._reader, doing := "removing a remote"),
            self._writer.holding(doing),
        ):
            remotes.remove(self._reader.path, name)
            exchange.forget(self._reader, name)

    def sync(
        self,
        remote: str | None = None,
        *,
        agent: str | None = None,
        accept: bool = False,
        ask: bool = False,
        progress: Progress | None = None,
    ) -> SyncResult:
        """Take in what a remote has, merge it, and push; on return the remote holds what is here.

        With `accept` a remote that went back to an earlier state is brought up again; with
        `ask` Git's credential helpers may be used. Raises a SyncError, or RefusedError
        for a remote that cannot be merged; what is here is kept either way.
        """
        return self._exchange(remote, agent, accept=accept, ask=ask, progress=progress).sync()

    def fetch(
        self,
        remote: str | None = None,
        *,
        agent: str | None = None,
        accept: bool = False,
        ask: bool = False,
        progress: Progress | None = None,
    ) -> SyncResult:
        """Take in what a remote has, without merging it."""
        return self._exchange(remote, agent, accept=accept, ask=ask, progress=progress).fetch()

    def push(
        self,
        remote: str | None = None,
        *,
        agent: str | None = None,
        ask: bool = False,
        progress: Progress | None = None,
    ) -> SyncResult:
        """Bring a remote to what is here; raise ConflictError if it has more."""
        return self._exchange(remote, agent, accept=False, ask=ask, progress=progress).push()

    def remote_states(self) -> tuple[RemoteState, ...]:
        """Return how this replica stands to each remote, without asking it."""
        from smp_git.sync.outbound import standing  # noqa: PLC0415 - few programs sync

        return tuple(standing(self._reader, each) for each in self.remotes.values())

    def _exchange(
        self,
        name: str | None,
        agent: str | None,
        *,
        accept: bool,
        ask: bool,
        progress: Progress | None,
    ) -> Exchange:
        from smp_git.sync import remotes  # noqa: PLC0415 - few programs sync
        from smp_git.sync.exchange import Exchange  # noqa: PLC0415

        home = self._at_home()
        remote = remotes.chosen(self.remotes, name)
        way = remotes.access(home.settings, home.surroundings(), progress, ask=ask)
        self._accesses.fold(self._writer, everything=True)
        # What came in may hide which commits a person made past the hooks.
        self._keeper.note_write()
        self._keeper.flush()
        return Exchange(
            self._site(), remote, way, remotes.limits(home.settings), self._by(agent), accept=accept
        )
