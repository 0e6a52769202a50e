"""What a session is asked to share: its remotes, the exchange with each, merges of branches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from pathlib import Path

from smp_git.git import addresses
from smp_git.git.references import HEADS
from smp_git.git.repository import MAIN
from smp_git.model.errors import RefusedError
from smp_git.model.memory import CommitId
from smp_git.remove.history.tombstones import effective
from smp_git.remove.requests import site_of
from smp_git.sync import exchange, namesakes, outbound, remotes
from smp_git.sync.exchange import Exchange
from smp_git.sync.outbound import RemoteState
from smp_git.sync.remotes import Remote
from smp_git.write import branches
from smp_git.write.handle import Handle, fold_counts
from smp_git.write.merge.join import MergeResult, join

Progress = Callable[[str], None]


def known(handle: Handle) -> Mapping[str, Remote]:
    """Return the remotes of the session by name, the one of the store's pattern included."""
    home = handle.at_home()
    return remotes.remotes(handle.reader.path, home.settings.remote, home.path)


def add(handle: Handle, name: str, address: str | PathLike[str], *, create: bool) -> Remote:
    """Add a remote; with `create` an empty repository is made at a path that has none."""
    handle.rules.name(name, "the name of a remote")
    handle.rules.address(str(address))
    parsed = addresses.parse(str(address), Path().absolute())
    if create:
        remotes.create(parsed)
    with handle.writer.holding("adding a remote"):
        return remotes.add(handle.reader.path, name, parsed)


def remove(handle: Handle, name: str) -> None:
    """Forget a remote, and what was known of it."""
    doing = "removing a remote"
    # A sync that is under way would note what it saw of it.
    with exchange.alone(handle.reader, doing), handle.writer.holding(doing):
        remotes.remove(handle.reader.path, name)
        exchange.forget(handle.reader, name)


def states(handle: Handle) -> tuple[RemoteState, ...]:
    """Return how this replica stands to each remote, without asking it."""
    return tuple(outbound.standing(handle.reader, each) for each in known(handle).values())


def exchange_with(
    handle: Handle,
    name: str | None,
    agent: str | None,
    *,
    accept: bool = False,
    ask: bool,
    progress: Progress | None,
) -> Exchange:
    """Return the exchange with a remote; without a name `origin`, or the only one."""
    home = handle.at_home()
    remote = remotes.chosen(known(handle), name)
    access = remotes.access(home.settings, home.surroundings(), progress, ask=ask)
    fold_counts(handle.accesses, handle.writer, everything=True)
    # What came in may hide which commits a person made past the hooks.
    handle.keeper.note_write()
    handle.keeper.flush()
    limits = remotes.limits(home.settings)
    return Exchange(site_of(handle), remote, access, limits, handle.actor(agent), accept=accept)


def merge_branch(handle: Handle, name: str, agent: str | None) -> MergeResult:
    """Bring another branch into the one that a handle works on."""
    by = handle.actor(agent)
    handle.writer.ready()
    with handle.writer.holding(f"merging branch {name}"):
        branches.find(handle, name)
        theirs = handle.reader.repository.head(HEADS + name)
        assert theirs is not None  # noqa: S101 - just found
        _refuse_twins(handle, name, theirs)
        return join(handle.writer, handle.reader.ref, theirs, by=by, source=f"branch {name}")


def _refuse_twins(handle: Handle, name: str, theirs: CommitId) -> None:
    """Raise RefusedError if another branch has another memory under an id that is here."""
    reader = handle.reader
    ours = {MAIN: reader.snapshot().id}
    found = namesakes.part(reader.repository, ours, {MAIN: theirs}, effective(reader))
    if found:
        twin = (*found.ours, *found.theirs)[0].old
        raise RefusedError(
            f"{twin} on branch {name} is another memory than {twin} here",
            hint="smp sync with the remote that it came from gives one of them another id",
        )
