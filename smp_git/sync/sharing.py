"""What a store shares with others: sessions cloned from remotes, and all of them synced."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from smp_git.model.errors import AlreadyExistsError, SmpError
from smp_git.remove.removals import Removals
from smp_git.session import Session

# What syncs is loaded by what syncs: most programs only read and write.
if TYPE_CHECKING:
    from smp_git.sync.remotes import Remote, SyncResult


# The session of what holds across sessions.
GLOBAL: Final = "global"


class Synced(NamedTuple):
    """What became of each session that was to be synced."""

    results: Mapping[str, SyncResult]
    failed: Mapping[str, SmpError]


class Sharing(Removals):
    """The sharing half of a store."""

    def clone(
        self,
        address: str,
        id: str | None = None,
        *,
        ask: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> Session:
        """Make a session from a remote and open it; it keeps its own id unless another is given.

        Where the store has a remote pattern, `address` may be the id of a session. Raises
        UntrustedError, with nothing left behind, if what is there is not sound.
        """
        from smp_git.sync import clone as cloning  # noqa: PLC0415 - few programs clone
        from smp_git.sync import remotes  # noqa: PLC0415 - few programs clone

        if id is not None:
            self.settings.redaction.name(id, "the id of a session")
        remote = cloning.addressed(address, self.settings.remote, self.path)
        way = remotes.access(self.settings, self.surroundings(), progress, ask=ask)

        def choose(said: str) -> Path:
            return self._free_place(id or said, given=id is not None)

        (self.path / "active").mkdir(mode=0o700, exist_ok=True)
        place = cloning.clone(
            self.path / "active", remote, way, remotes.limits(self.settings), choose
        )
        return self.session(place.name)

    def sync(
        self, remote: str | None = None, *, agent: str | None = None, ask: bool = False
    ) -> Synced:
        """Sync every session that has the remote, the global one too.

        One that fails does not keep the others back.
        """
        results: dict[str, SyncResult] = {}
        failed: dict[str, SmpError] = {}
        shared = (GLOBAL,) if (self.path / GLOBAL).is_dir() else ()
        for name in (*self.sessions(), *shared):
            try:
                with self.session(name) as session:
                    if _has(session.remotes, remote):
                        results[name] = session.sync(remote, agent=agent, ask=ask)
            except SmpError as error:
                failed[name] = error
        return Synced(results, failed)

    def _free_place(self, name: str, *, given: bool) -> Path:
        if name == GLOBAL and not (self.path / GLOBAL).exists():
            return self.path / GLOBAL
        try:
            return self.path / "active" / self._new_id(name, self.clock())
        except AlreadyExistsError as error:
            hint = (
                "choose another id"
                if given
                else "smp sync brings it up to date; smp clone ADDRESS ID makes another"
            )
            raise AlreadyExistsError(error.message, hint=hint) from error

    # What the other half of a store does

    path: Path

    def surroundings(self) -> Mapping[str, str]:
        """Return the environment, for what Git needs to reach a remote."""
        raise NotImplementedError

    def _new_id(self, given: str | None, now: datetime) -> str:
        raise NotImplementedError


def _has(found: Mapping[str, Remote], name: str | None) -> bool:
    return bool(found) if name is None else name in found
