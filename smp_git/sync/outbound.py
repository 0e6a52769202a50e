"""The way out: what is pushed to a remote, and how far this replica is from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, NamedTuple

from smp_git.format import records
from smp_git.format.messages import RECORDS
from smp_git.format.records import Tombstones
from smp_git.git import references
from smp_git.git.references import ACCESS, HEADS, TAGS, is_ancestor
from smp_git.git.repository import MAIN, MovedError
from smp_git.git.transport import Update
from smp_git.model.errors import ConflictError, RefusedError, UntrustedError
from smp_git.model.memory import CommitId
from smp_git.model.results import Result
from smp_git.read.replica import OURS
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.remove.meeting import heads_of
from smp_git.remove.site import Site
from smp_git.sync import remotes
from smp_git.sync.inspect import inspection
from smp_git.sync.inspect.inspection import inspect
from smp_git.sync.remotes import Remote, shown_ref, tracking, travels
from smp_git.write import commit

# How often a person's own commit may come between before it is given up.
_MOST_MOVES: Final = 20


class Parcel(NamedTuple):
    """Updates to push; `unmerged` if the remote has what is not merged here."""

    updates: tuple[Update, ...]
    commits: int
    unmerged: bool
    notes: tuple[str, ...]

    @property
    def replaces(self) -> bool:
        """Whether history there is replaced by one without what was deleted."""
        return any(each.force and each.new and each.ref.startswith(HEADS) for each in self.updates)


def parcel(reader: Reader, remote: str, there: Mapping[str, str]) -> Parcel:
    """Return what brings the remote, which now names `there`, to what is here."""
    everything = references.read(reader.repository.git)
    left_out = inspection.odd(
        reader.repository, {ref: tip for ref, tip in everything.items() if travels(ref)}
    )
    refs = {ref: tip for ref, tip in everything.items() if ref not in left_out}
    updates: list[Update] = []
    notes: list[str] = [inspection.said(ref, "here") for ref in sorted(left_out)]
    unmerged = False
    for ref, tip in sorted(refs.items()):
        if not travels(ref) or there.get(ref) == tip:
            continue
        old, known = there.get(ref), refs.get(tracking(remote, ref))
        if ref.startswith(TAGS):
            moved = _tag_update(ref, tip, old, known, is_known=bool(there))
            updates += moved
            if not moved and old is not None:
                notes.append(
                    f"tag {ref.removeprefix(TAGS)} names another commit on {remote}; both are kept"
                )
        elif old is None and known is not None and there and ref.startswith(HEADS) and ref != MAIN:
            # It was dropped there, which is not followed here yet.
            unmerged = True
        elif old is None or ref.startswith(ACCESS):
            updates.append(Update(ref, tip, old, force=old is not None))
        elif ref.startswith(HEADS) and _descends(reader, old, tip):
            updates.append(Update(ref, tip, old))
        elif known is not None and (known == tip or _descends(reader, known, tip)):
            # The remote's value is known here without what was deleted since.
            updates.append(Update(ref, tip, old, force=True))
        else:
            unmerged = True
    updates += _dropped(refs, remote, there)
    return Parcel(tuple(updates), _count(reader, updates, refs, remote), unmerged, tuple(notes))


def _tag_update(
    ref: str, tip: str, old: str | None, known: str | None, *, is_known: bool
) -> list[Update]:
    """Return what brings a remote's tag to where it is here; nothing if the remote moved it."""
    if old is None:
        # It was removed there, which is not followed here yet, or never was there.
        return [] if known == tip and is_known else [Update(ref, tip, None)]
    # It was moved here, or its commit is known here without what was deleted since.
    return [Update(ref, tip, old, force=True)] if known in (old, tip) else []


def _descends(reader: Reader, old: str, new: str) -> bool:
    repository = reader.repository
    if not repository.has(old):
        return False
    return (
        _commit(reader, old)
        and _commit(reader, new)
        and is_ancestor(repository, CommitId(old), CommitId(new))
    )


def _commit(reader: Reader, name: str) -> bool:
    return reader.repository.raw(bytes.fromhex(name))[0] == b"commit"


def _dropped(refs: Mapping[str, str], remote: str, there: Mapping[str, str]) -> list[Update]:
    """Return the removal there of every branch and tag that was removed here."""
    return [
        Update(ref, None, old, force=True)
        for ref, old in sorted(there.items())
        if ref.startswith((HEADS, TAGS)) and ref not in refs and tracking(remote, ref) in refs
    ]


def _count(reader: Reader, updates: list[Update], refs: Mapping[str, str], remote: str) -> int:
    """Return how many commits of branches the remote has not seen."""
    prefix = tracking(remote, HEADS)
    known = [CommitId(tip) for ref, tip in refs.items() if ref.startswith(prefix)]
    new = [CommitId(each.new) for each in updates if each.new and each.ref.startswith(HEADS)]
    return len(reader.repository.beyond(new, known)) if new else 0


def check(reader: Reader, remote: str, updates: Iterable[Update]) -> None:
    """Raise RefusedError if a person's commit holds what no replica would take in."""
    repository = reader.repository
    refs = references.read(repository.git)
    prefix = tracking(remote, HEADS)
    known = [CommitId(tip) for ref, tip in refs.items() if ref.startswith(prefix)]
    new = {each.ref: each.new for each in updates if each.new and each.ref.startswith(HEADS)}
    commits = repository.beyond(map(CommitId, new.values()), known)
    if all(repository.commit(name).committer_email.endswith(OURS) for name in commits):
        return
    try:
        inspect(repository, new, known)
    except UntrustedError as error:
        raise RefusedError(
            f"session {reader.path.name} holds what no other replica would take in: {error.message}",
            hint="fix it by hand and commit again; nothing was pushed",
        ) from None


def bring_back(site: Site) -> None:
    """Commit to main the records that this replica knows and main lacks; others make the same.

    A plain `git revert` of a deletion takes them out, and those of memories that had taken
    another id were never there.
    """
    for _ in range(_MOST_MOVES):
        if _lacking(site.reader) is None:
            return
        with site.writer.holding("bringing back records"), suppress(MovedError):
            base = _lacking(site.reader)
            if base is not None:
                files = {records.PATH: records.write(_whole(site.reader, base))}
                made = commit.carrying(base, files, subject=RECORDS)
                site.writer.publish(MAIN, base.id, made.id, made.tree, made.objects)
    raise ConflictError(
        f"session {site.reader.path.name} is being moved by another Git process",
        hint="wait for it to end, then try again",
    )


def _lacking(reader: Reader) -> Snapshot | None:
    """Return main, None if it has all records that it should have."""
    tip = reader.repository.head(MAIN)
    base = reader.at(tip) if tip else None
    if base is None or base.said == base.tombstones or base.said == _whole(reader, base):
        return None
    return base


def _whole(reader: Reader, base: Snapshot) -> Tombstones:
    """Return the records that a branch should have.

    A redaction stays out while no branch has what it left: no replica would take it in.
    """
    known = base.tombstones
    odd = set(inspection.unfounded(reader.repository, heads_of(reader), base.said, known))
    return base.said | Tombstones(each for each in known.items if each.first.text not in odd)


def track(reader: Reader, remote: str, updates: tuple[Update, ...]) -> None:
    """Note what the remote has confirmed to hold; the caller holds the lock."""
    repository = reader.repository
    moves: dict[str, CommitId] = {}
    for each in updates:
        if each.ref.startswith(ACCESS):
            continue
        names = [tracking(remote, each.ref)]
        names += [shown_ref(remote, each.ref)] if each.ref.startswith(HEADS) else []
        for name in names:
            if each.new is None:
                references.drop(repository.git, name)
            else:
                moves[name] = CommitId(each.new)
    repository.point(moves)


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteState(Result):
    """Distance of this replica from one remote, as far as it knows without asking it.

    `ahead` and `behind` count commits of the main branch; None if the remote was never
    seen. `withheld` says why it still holds what was deleted here, if it does.

    >>> remote = session.add_remote("origin", folder / "hub.git", create=True)
    >>> done = session.sync()
    >>> [(each.name, each.ahead, each.behind) for each in session.remote_states()]
    [('origin', 0, 0)]
    """

    name: str
    address: str
    ahead: int | None
    behind: int | None
    seen_at: datetime | None
    withheld: str | None

    def __str__(self) -> str:
        if self.withheld:
            said = f"deletion not published: {self.withheld}"
        elif self.ahead is None:
            said = "never synced"
        else:
            said = f"{self.ahead} ahead, {self.behind} behind"
        return f"{self.name}  {self.address}  {said}"


def state_of(reader: Reader, remote: Remote) -> RemoteState:
    """Return how far a session is from a remote."""
    seen = remotes.read_seen(reader.local.folder, remote.name, remote.address.text)
    counts = _ahead_and_behind(reader, remote.name)
    return RemoteState(
        name=remote.name,
        address=remote.address.text,
        ahead=counts[0] if counts else None,
        behind=counts[1] if counts else None,
        seen_at=seen.at,
        withheld=seen.withheld,
    )


def _ahead_and_behind(reader: Reader, remote: str) -> tuple[int, int] | None:
    """Return how many commits of main a remote lacked, and had more, when last seen."""
    repository = reader.repository
    own, there = repository.head(MAIN), references.read(repository.git).get(shown_ref(remote, MAIN))
    if own is None or there is None:
        return None
    theirs = CommitId(there)
    return len(repository.beyond([own], [theirs])), len(repository.beyond([theirs], [own]))
