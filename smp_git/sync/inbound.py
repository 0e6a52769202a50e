"""What comes in: held in quarantine, checked, cleaned of what was deleted, then taken over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from functools import partial
from typing import Final, NamedTuple

from smp_git.format.records import Tombstones
from smp_git.git import references
from smp_git.git.transport import Limits
from smp_git.git.transport import RemoteAccess as Way
from smp_git.model.errors import ConflictError, RefusedError, UnfoundedError
from smp_git.model.memory import CommitId, MemoryId
from smp_git.read.history import replica_of
from smp_git.remove import delete
from smp_git.remove.history.journal import Incoming
from smp_git.remove.history.plan import RewritePlan, effective, is_proof, make_plan
from smp_git.remove.history.renaming import Move
from smp_git.remove.history.rewrite import Rewriter
from smp_git.remove.meeting import Bringing, MovedHeadsError, heads_of, meet
from smp_git.remove.site import Site
from smp_git.sync import integrate as lineage
from smp_git.sync.heads import (
    Arrived,
    boundary,
    cleaned,
    commits_of,
    needed,
    of_this_format,
    returned,
    topped,
)
from smp_git.sync.inspect.inspection import (
    Inspected,
    Inspection,
    check_lives,
    check_redactions,
    fetched,
    said,
)
from smp_git.sync.inspect.tips import Tips
from smp_git.sync.integrate import integrate
from smp_git.sync.quarantine import Quarantine
from smp_git.sync.remotes import HEADS, REMOTES, SEEN, TAGS, Remote, Seen, tracking
from smp_git.sync.twins import Apart, apart, heads, part
from smp_git.write.merge.trees import Conflict

# How often a deletion here may come between before what came is given up.
_MOST_TRIES: Final = 5


class Received(NamedTuple):
    """What was taken in: the remote's references as it names them, and what became of them.

    `left` are its branches that have no counterpart here, if nothing was to be merged,
    `moved` the memories that took another id, because two had one.
    """

    named: Mapping[str, str]
    commits: int = 0
    merged: tuple[str, ...] = ()
    contested: tuple[Conflict, ...] = ()
    deleted: tuple[MemoryId, ...] = ()
    notes: tuple[str, ...] = ()
    left: tuple[str, ...] = ()
    moved: tuple[Move, ...] = ()


def receive(
    site: Site,
    remote: Remote,
    way: Way,
    limits: Limits,
    seen: Seen,
    *,
    by: str,
    merge: bool,
    accept: bool,
) -> Received:
    """Fetch everything, and bring in what is sound; what is here is never replaced by less.

    With `accept` a remote that went back to an earlier state is taken as it is. Raises
    UntrustedError, RefusedError or a SyncError before any branch has moved; what was
    found sound by then, its deletions above all, may have been taken in.
    """
    git, address = site.reader.repository.git, remote.address.text

    with fetched(git, address, way, limits) as (held, left_out):
        named: Mapping[str, str] = dict(held.refs)
        lineage.check_not_emptied(site.reader, remote.name, named, seen, accept=accept)
        if not named:
            return Received(named)
        # A rewrite by others may have come between: then this opens the repository anew.
        site.reader.snapshot()
        inspection = Inspection(held.repository, named, _own_heads(site))
        tips = inspection.look_at_tips()
        _check_same_session(site, remote, tips)
        known = tips.tombstones | effective(site.reader)
        with _plan_to_follow(site, tips.tombstones, known) as plan:
            inspected = inspection.look_through(plan.becoming() if plan else ())
            check_lives(tips, known)
            there = of_this_format(held, named, known) if tips.is_old else named
            received = _receive_retrying(
                site, remote, held, there, inspected, plan, by=by, merge=merge, accept=accept
            )
    odd_ones = [said(ref, f"of {remote.name}") for ref in left_out]
    return received._replace(named={**named, **left_out}, notes=(*odd_ones, *received.notes))


@contextmanager
def _plan_to_follow(
    site: Site, told: Tombstones, known: Tombstones
) -> Iterator[RewritePlan | None]:
    """Yield how the session follows what it is `told` was deleted, None if it has done so.

    The plan tells what our own commits become. A remote usually has the same ones by then,
    and those need no inspection.
    """
    if not told or _is_done(site, known):
        yield None
        return
    with closing(make_plan(site.reader, (), known)) as plan:
        yield plan


def _receive_retrying(
    site: Site,
    remote: Remote,
    held: Quarantine,
    there: Mapping[str, str],
    inspected: Inspected,
    plan: RewritePlan | None,
    *,
    by: str,
    merge: bool,
    accept: bool,
) -> Received:
    """Part, clean and take over what came, anew if a deletion comes between."""
    named = held.refs
    deleted: list[MemoryId] = []
    notes: list[str] = []
    moved: list[Move] = []
    for _ in range(_MOST_TRIES):
        parted = apart(site, remote.name, held, there, inspected.tombstones, by, plan)
        there = parted.there
        moved += parted.moved
        notes += parted.notes
        # The plan is of branches that nothing moved, and of records that it knows.
        if parted.moved or parted.records != inspected.tombstones:
            plan = None
        try:
            cleaning = _clean(site, held, named, parted, inspected, by, plan)
        except MovedHeadsError:
            continue
        plan = None
        deleted += cleaning.deleted
        notes += cleaning.notes
        received = _adopt_and_merge(
            site, remote, held, there, cleaning.arrived, inspected, merge=merge, accept=accept
        )
        if received is not None:
            return received._replace(
                deleted=tuple(dict.fromkeys(deleted)),
                notes=tuple(dict.fromkeys((*notes, *received.notes))),
                moved=tuple(dict.fromkeys(moved)),
            )
    raise rewritten(site)


def rewritten(site: Site) -> ConflictError:
    """Return the error for a session that others rewrite again and again."""
    return ConflictError(
        f"session {site.reader.path.name} is being rewritten by others",
        hint="sync again when they are done",
    )


def _own_heads(site: Site) -> list[CommitId]:
    """Return the branches of this session, beside which everything that comes in is checked.

    What else is here may have come by a plain `git fetch`, past every check.
    """
    repository = site.reader.repository
    found = references.read(repository.git)
    return commits_of(repository, heads(found).values())


def _own_tips(site: Site) -> list[CommitId]:
    repository = site.reader.repository
    return commits_of(repository, references.read(repository.git).values())


def _cleaned_tips(site: Site) -> list[CommitId]:
    """Return what a deletion here went through; a plain `git fetch` may run at any moment."""
    repository = site.reader.repository
    refs = references.read(repository.git).items()
    return commits_of(repository, (tip for ref, tip in refs if is_proof(ref)))


def _check_same_session(site: Site, remote: Remote, tips: Tips) -> None:
    if tips.uid != site.trash.uid:
        raise RefusedError(
            f"remote {remote.name} holds another session ({tips.session}), so nothing was taken from it",
            hint=f"give session {site.reader.path.name} a remote of its own: smp remote add",
        )


def overrule(site: Site, remote: Remote, there: Mapping[str, str], why: UnfoundedError) -> Received:
    """Take nothing in, and let the next push replace what the remote has of our branches."""
    with site.writer.holding(f"overruling {remote.name}"):
        ours = heads_of(site.reader)
        moves = {tracking(remote.name, ref): CommitId(ours[ref]) for ref in there if ref in ours}
        site.reader.repository.point(moves)
    return Received(there, notes=(f"what {remote.name} had was replaced: {why.message}",))


class _Cleaning(NamedTuple):
    """What came without what was deleted, and what went here because it was deleted there."""

    arrived: Arrived
    deleted: tuple[MemoryId, ...]
    notes: tuple[str, ...]


def _clean(
    site: Site,
    held: Quarantine,
    named: Mapping[str, str],
    parted: Apart,
    inspected: Inspected,
    by: str,
    plan: RewritePlan | None,
) -> _Cleaning:
    """Take what was deleted there or here out of both sides.

    What a redaction left, and edits that met one, are brought to the branches that need
    them, before anything of the old is let go.
    """
    there, told = parted.there, parted.records
    # A rewrite by others may have come between: then this opens the repository anew.
    site.reader.snapshot()
    before = effective(site.reader)
    known = before | told
    ours = heads_of(site.reader)
    check_redactions(held.repository, {**ours, **_named_apart(there)}, before, told)
    meeting = meet(held.repository, ours, there, known)
    known |= meeting.records
    # What went here since the plan was made is not gone from what it takes for sound.
    plan = plan if plan and plan.known.covers(known) else None
    trusted = frozenset[str]()
    if known and _is_done(site, known):
        trusted = boundary(held.repository, there.values(), _cleaned_tips(site))
    elif plan:
        trusted = inspected.sound
    arrived = cleaned(held.repository, there, known, trusted)._replace(named=named)
    if arrived.is_rewritten and arrived.rewriter is None:
        arrived = arrived._replace(rewriter=Rewriter(held.repository.raw, known))
    if meeting.theirs:
        arrived = topped(site.reader, held, arrived, meeting)
    brought = Bringing(held.repository, there, known, ours, meeting) if meeting.ours else None
    receipt = None
    if told or brought:
        adopt = partial(_adopted, held, arrived) if plan and not arrived.is_rewritten else Incoming
        receipt = delete.follow(
            site,
            known,
            site.writer.clock(),
            by=by,
            replacement=brought,
            plan=plan,
            adopt=adopt,
            check=partial(_check_parted, site, held, parted, known),
        )
    notes = (*meeting.notes, *returned(before, known, there, held.repository))
    return _Cleaning(arrived, receipt.ids if receipt else (), notes)


def _check_parted(site: Site, held: Quarantine, parted: Apart, known: Tombstones) -> None:
    """Raise MovedHeadsError if another process has added a namesake of what is about to go."""
    now = references.read(site.reader.repository.git)
    if heads(now) != parted.heads and part(held.repository, now, parted.there, known):
        raise MovedHeadsError("the session moved while it was synced", hint="sync again")


def _adopted(held: Quarantine, arrived: Arrived) -> Incoming:
    """Put what came into the session while that is rewritten: then one proof is of all.

    A pack that was fetched may hold objects of ours too: bases of its deltas.
    """
    return Incoming([bytes.fromhex(tip) for tip in arrived.clean.values()], held.adopt())


def _named_apart(there: Mapping[str, str]) -> dict[str, str]:
    """Return references of a remote under names that none of ours has."""
    return {f"{ref}@there": tip for ref, tip in there.items()}


def _is_done(site: Site, known: Tombstones) -> bool:
    """Whether everything that is deleted was taken out of what was here then."""
    return site.reader.local.tombstones().covers(known)


def come_clean(site: Site, by: str) -> tuple[MemoryId, ...]:
    """Take out of this session what was deleted and plain Git brought back; return what it was.

    What was last seen of a remote was made clean; what plain Git notes of it may not be.
    """
    reader = site.reader
    reader.snapshot()
    known = effective(reader)
    if not known:
        return ()
    repository = reader.repository
    # In this order: what is done was published before.
    is_done = _is_done(site, known)
    refs = references.read(repository.git)
    own = {ref: tip for ref, tip in refs.items() if ref.startswith((HEADS, TAGS, REMOTES))}
    trusted = frozenset[str]()
    if is_done:
        seen = commits_of(repository, (tip for ref, tip in refs.items() if ref.startswith(SEEN)))
        trusted = boundary(repository, own.values(), seen)
    if not cleaned(repository, own, known, trusted).is_rewritten:
        return ()
    receipt = delete.follow(site, known, site.writer.clock(), by=by, again=True)
    return receipt.ids if receipt else ()


def _adopt_and_merge(
    site: Site,
    remote: Remote,
    held: Quarantine,
    there: Mapping[str, str],
    arrived: Arrived,
    inspected: Inspected,
    *,
    merge: bool,
    accept: bool,
) -> Received | None:
    """Take over what is clean; None if a deletion came between."""
    reader, writer = site.reader, site.writer
    with writer.holding(f"syncing with {remote.name}"):
        if not arrived.known.covers(effective(reader)):
            return None
        if part(held.repository, references.read(reader.repository.git), there, arrived.known):
            return None
        if arrived.is_rewritten:
            held.adopt_objects(needed(arrived, reader.repository))
        else:
            held.adopt()
        anew = lineage.check(reader, remote.name, arrived.clean, accept=accept)
        tips = [CommitId(tip) for tip in heads(arrived.clean).values()]
        _take_new_tag(site, tips, inspected.replicas)
        count = len(reader.repository.beyond(tips, _own_tips(site)))
        done = integrate(writer, remote.name, arrived.clean, inspected, merge=merge)
    return Received(
        arrived.named, count, done.merged, done.contested, (), (*anew, *done.notes), done.left
    )


def _take_new_tag(site: Site, tips: list[CommitId], replicas: frozenset[str]) -> None:
    """Take a tag that nobody has, if commits that were not made here have this replica's."""
    repository, tag = site.reader.repository, site.writer.identity().tag
    new = repository.beyond(tips, _own_tips(site)) if tips and tag in replicas else []
    if any(replica_of(repository.commit(name)) == tag for name in new):
        site.writer.take_new_tag()
