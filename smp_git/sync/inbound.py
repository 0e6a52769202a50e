"""The way in for what a remote has: fetch, inspect, rewrite, adopt, merge."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Final, NamedTuple

from smp_git.format.records import Tombstones
from smp_git.git import references
from smp_git.git.references import HEADS, REMOTES, SEEN, TAGS
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
from smp_git.remove.meeting import (
    Bringing,
    Meeting,
    MovedHeadsError,
    heads_of,
    meet,
    put_back,
)
from smp_git.remove.site import Site
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
    Inspection,
    check_lives,
    check_redactions,
    fetched,
    said,
)
from smp_git.sync.integrate import check_not_emptied, check_related, integrate
from smp_git.sync.quarantine import Quarantine
from smp_git.sync.remotes import Remote, Seen, tracking
from smp_git.sync.twins import apart, heads, part
from smp_git.write.merge.memories import Conflict

# How often a deletion here may come between before what came is given up.
_MOST_TRIES: Final = 5


class Received(NamedTuple):
    """Result of a fetch: the remote's references as it names them, and what became of them.

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


class Asked(NamedTuple):
    """Request for one fetch: of whom and how, for which session, what becomes of it.

    Without `merge` the branches here stay where they are; with `accept` a remote that went
    back to an earlier state is taken as it is.
    """

    site: Site
    remote: Remote
    way: Way
    limits: Limits
    seen: Seen
    by: str
    merge: bool
    accept: bool


def receive(asked: Asked) -> Received:
    """Fetch, inspect, rewrite, adopt and merge what a remote has; nothing here becomes less.

    Raises UntrustedError, RefusedError or a SyncError before any branch has moved; what was
    found sound by then, its deletions above all, may have been taken in.
    """
    site, remote = asked.site, asked.remote
    git, address = site.reader.repository.git, remote.address.text
    with fetched(git, address, asked.way, asked.limits) as (held, left_out):
        check_not_emptied(site.reader, remote.name, held.refs, asked.seen, accept=asked.accept)
        if not held.refs:
            return Received({})
        with closing(Intake(asked, held)) as intake:
            intake.inspect()
            for _ in range(_MOST_TRIES):
                intake.separate()
                if not intake.rewrite():
                    continue
                with site.writer.holding(f"syncing with {remote.name}"):
                    if intake.is_current():
                        intake.adopt()
                        return intake.merge(left_out)
    raise rewritten(site)


def rewritten(site: Site) -> ConflictError:
    """Return the error for a session that others rewrite again and again."""
    return ConflictError(
        f"session {site.reader.path.name} is being rewritten by others",
        hint="sync again when they are done",
    )


def overrule(site: Site, remote: Remote, there: Mapping[str, str], why: UnfoundedError) -> Received:
    """Take nothing in, and let the next push replace what the remote has of our branches."""
    with site.writer.holding(f"overruling {remote.name}"):
        ours = heads_of(site.reader)
        moves = {tracking(remote.name, ref): CommitId(ours[ref]) for ref in there if ref in ours}
        site.reader.repository.point(moves)
    return Received(there, notes=(f"what {remote.name} had was replaced: {why.message}",))


def _is_done(site: Site, known: Tombstones) -> bool:
    """Whether everything that is deleted was taken out of what was here then."""
    return site.reader.local.tombstones().covers(known)


class CameClean(NamedTuple):
    """What plain Git had brought back and is gone, and of what words were taken out."""

    ids: tuple[MemoryId, ...] = ()
    notes: tuple[str, ...] = ()


def come_clean(site: Site, by: str) -> CameClean:
    """Take out of this session what was deleted and plain Git brought back; return what it was.

    What was last seen of a remote was made clean; what plain Git notes of it may not be.
    """
    reader = site.reader
    reader.snapshot()
    known = effective(reader)
    if not known:
        return CameClean()
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
        return CameClean()
    brought = put_back(reader)
    receipt = delete.follow(
        site,
        brought.known if brought else known,
        site.writer.clock(),
        by=by,
        again=True,
        replacement=brought,
    )
    return CameClean(receipt.ids if receipt else (), brought.notes if brought else ())


class Intake:
    """Incoming history on its way into the session; the steps of `receive`."""

    def __init__(self, asked: Asked, held: Quarantine) -> None:
        self._asked = asked
        self._site = asked.site
        self._held = held
        self._there: Mapping[str, str] = held.refs
        self._made: RewritePlan | None = None
        self._plan: RewritePlan | None = None
        self._deleted: list[MemoryId] = []
        self._notes: list[str] = []
        self._moved: list[Move] = []

    def close(self) -> None:
        """Let go of the plan."""
        if self._made is not None:
            self._made.close()

    def inspect(self) -> None:
        """Check everything that came, beside the branches of this session.

        What else is here may have come by a plain `git fetch`, past every check.
        """
        site, held = self._site, self._held
        # A rewrite by others may have come between: then this opens the repository anew.
        site.reader.snapshot()
        here = heads(references.read(site.reader.repository.git)).values()
        inspection = Inspection(
            held.repository, held.refs, commits_of(site.reader.repository, here)
        )
        tips = inspection.look_at_tips()
        if tips.uid != site.trash.uid:
            raise RefusedError(
                f"remote {self._asked.remote.name} holds another session ({tips.session}), so nothing was taken from it",
                hint=f"give session {site.reader.path.name} a remote of its own: smp remote add",
            )
        known = tips.tombstones | effective(site.reader)
        if tips.tombstones and not _is_done(site, known):
            # It tells what our own commits become. A remote usually has the same ones by then,
            # and those need no inspection.
            self._plan = self._made = make_plan(site.reader, (), known)
        self._inspected = inspection.look_through(self._plan.becoming() if self._plan else ())
        check_lives(tips, known)
        if tips.is_old:
            self._there = of_this_format(held, held.refs, known)

    def separate(self) -> None:
        """Give one of two memories with one id another, here or in what came."""
        told = self._inspected.tombstones
        name, by = self._asked.remote.name, self._asked.by
        self._parted = apart(self._site, name, self._held, self._there, told, by, self._plan)
        self._there = self._parted.there
        self._moved += self._parted.moved
        self._notes += self._parted.notes
        # The plan is of branches that nothing moved, and of records that it knows.
        if self._parted.moved or self._parted.records != told:
            self._plan = None

    def rewrite(self) -> bool:
        """Take what was deleted there or here out of both sides; return False if ours moved.

        What a redaction left, and edits that met one, are brought to the branches that need
        them, before anything of the old is let go.
        """
        site, held, there, told = self._site, self._held, self._there, self._parted.records
        # A rewrite by others may have come between: then this opens the repository anew.
        site.reader.snapshot()
        before = effective(site.reader)
        ours = heads_of(site.reader)
        apart_named = {f"{ref}@there": tip for ref, tip in there.items()}
        check_redactions(held.repository, {**ours, **apart_named}, before, told)
        meeting = meet(held.repository, ours, there, before | told)
        known = before | told | meeting.records
        # What went here since the plan was made is not gone from what it takes for sound.
        plan = self._plan if self._plan and self._plan.known.covers(known) else None
        self._arrived = self._cleaned(known, plan, meeting)
        brought = Bringing(held.repository, there, known, ours, meeting) if meeting.ours else None
        if told or brought:
            is_adopted = plan is not None and not self._arrived.is_rewritten
            try:
                receipt = delete.follow(
                    site,
                    known,
                    site.writer.clock(),
                    by=self._asked.by,
                    replacement=brought,
                    plan=plan,
                    adopt=self._adopted if is_adopted else Incoming,
                    check=partial(self._check_parted, known),
                )
            except MovedHeadsError:
                return False
            self._deleted += receipt.ids if receipt else ()
        self._notes += (*meeting.notes, *returned(before, known, there, held.repository))
        self._plan = None
        return True

    def _cleaned(self, known: Tombstones, plan: RewritePlan | None, meeting: Meeting) -> Arrived:
        """Return what came without what is deleted, with what a meeting brings on top."""
        site, repository, there = self._site, self._held.repository, self._there
        trusted = frozenset[str]()
        if known and _is_done(site, known):
            # A plain `git fetch` may run at any moment: a deletion here left that alone.
            refs = references.read(site.reader.repository.git).items()
            done = commits_of(site.reader.repository, (tip for ref, tip in refs if is_proof(ref)))
            trusted = boundary(repository, there.values(), done)
        elif plan:
            trusted = self._inspected.sound
        arrived = cleaned(repository, there, known, trusted)._replace(named=self._held.refs)
        if arrived.is_rewritten and arrived.rewriter is None:
            arrived = arrived._replace(rewriter=Rewriter(repository.raw, known))
        return topped(site.reader, self._held, arrived, meeting) if meeting.theirs else arrived

    def _adopted(self) -> Incoming:
        """Put what came into the session while that is rewritten: then one proof is of all.

        A pack that was fetched may hold objects of ours too: bases of its deltas.
        """
        tips = [bytes.fromhex(tip) for tip in self._arrived.clean.values()]
        return Incoming(tips, self._held.adopt())

    def _check_parted(self, known: Tombstones) -> None:
        """Raise MovedHeadsError if another process has added a namesake of what is about to go."""
        now = references.read(self._site.reader.repository.git)
        if heads(now) != self._parted.heads and part(
            self._held.repository, now, self._there, known
        ):
            raise MovedHeadsError("the session moved while it was synced", hint="sync again")

    def is_current(self) -> bool:
        """Whether nothing was deleted or added meanwhile that what came would meet; under the lock."""
        reader, known = self._site.reader, self._arrived.known
        if not known.covers(effective(reader)):
            return False
        now = references.read(reader.repository.git)
        return not part(self._held.repository, now, self._there, known)

    def adopt(self) -> None:
        """Put what is clean into the session, where nothing names it yet."""
        if self._arrived.is_rewritten:
            self._held.adopt_objects(needed(self._arrived, self._site.reader.repository))
        else:
            self._held.adopt()

    def merge(self, left_out: Mapping[str, str]) -> Received:
        """Note where the remote's references are and, if that is asked for, join them with ours."""
        asked, clean, writer = self._asked, self._arrived.clean, self._site.writer
        remote, repository = asked.remote.name, self._site.reader.repository
        anew = check_related(self._site.reader, remote, clean, accept=asked.accept)
        here = commits_of(repository, references.read(repository.git).values())
        new = repository.beyond([CommitId(tip) for tip in heads(clean).values()], here)
        tag = writer.identity().tag
        if tag in self._inspected.replicas and any(
            replica_of(repository.commit(name)) == tag for name in new
        ):
            # Another replica has this one's.
            writer.take_new_tag()
        done = integrate(writer, remote, clean, self._inspected, merge=asked.merge)
        odd_ones = [said(ref, f"of {remote}") for ref in left_out]
        return Received(
            named={**self._held.refs, **left_out},
            commits=len(new),
            merged=done.merged,
            contested=done.contested,
            deleted=tuple(dict.fromkeys(self._deleted)),
            notes=(*odd_ones, *dict.fromkeys((*self._notes, *anew, *done.notes))),
            left=done.left,
            moved=tuple(dict.fromkeys(self._moved)),
        )
