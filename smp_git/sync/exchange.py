"""One session and one remote: the one path by which anything comes in or goes out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import count
from os import PathLike
from pathlib import Path
from typing import Final

from smp_git.git import addresses, references, transport
from smp_git.git.locks import locked
from smp_git.git.references import HEADS, TAGS, newest_first
from smp_git.git.repository import MAIN, is_shallow
from smp_git.git.transport import Fate, Limits, Update
from smp_git.git.transport import RemoteAccess as Way
from smp_git.model.errors import (
    ConflictError,
    DamagedError,
    RefusedError,
    RemoteNotFoundError,
    RemoteRefusedError,
    SyncError,
    UnfoundedError,
    shown,
)
from smp_git.model.memory import CommitId
from smp_git.read.history import replica_of
from smp_git.read.replica import is_products
from smp_git.read.snapshot import Reader
from smp_git.remove import derived
from smp_git.remove.history.plan import effective
from smp_git.remove.interrupted import site_of
from smp_git.remove.site import Site
from smp_git.sync import inbound, outbound, remotes, twins
from smp_git.sync.outbound import RemoteState
from smp_git.sync.remotes import Remote, SyncResult, Turns, is_foreign, shown_ref, tracking
from smp_git.write import branches
from smp_git.write.handle import Handle, fold_counts
from smp_git.write.merge.join import MergePlan, MergeResult, join, plan

# For how long another sync of this session is waited for, and rounds are lost.
_PATIENCE_SECONDS: Final = 60.0
_LOCK: Final = "syncing/lock"
# Of the references of others, so many are named.
_MOST_NAMED: Final = 5


class Exchange:
    """Speaks with one remote for one session; one exchange at a time in a session."""

    def __init__(
        self, site: Site, remote: Remote, way: Way, limits: Limits, by: str, *, accept: bool = False
    ) -> None:
        self._site = site
        self._remote = remote
        self._way = way
        self._limits = limits
        self._by = by
        self._accept = accept
        self._smp = site.reader.local.folder
        self._seen = remotes.Seen(address=remote.address.text)
        self._turns = Turns(site.reader, remote, way)
        # What was noted in this exchange.
        self._noted: Mapping[str, str] | None = None
        self._result = SyncResult(remote=remote.name, address=remote.address.text)

    def sync(self) -> SyncResult:
        """Bring both sides together, in rounds: fetch, inspect, rewrite, adopt, merge, push.

        All but the push is `inbound.receive`, which is left out where the remote has no more.
        """
        with self._alone():
            self._make_at_path()
            for number in self._rounds():
                self._result = replace(self._result, rounds=number)
                with self._unless_rewritten():
                    self._clean_own()
                    if self._push(self._fetch_if_changed(merge=True)):
                        return self._result
                self._turns.lose()
        raise self._outrun_error()

    def fetch(self) -> SyncResult:
        """Take in what the remote has, without merging it."""
        with self._alone():
            for _ in self._rounds():
                with self._unless_rewritten():
                    self._fetch_if_changed(merge=False)
                    return self._result
        raise inbound.rewritten(self._site)

    def push(self) -> SyncResult:
        """Bring the remote to what is here; raise ConflictError if it has more."""
        local = self._site.reader.local
        with self._alone():
            self._make_at_path()
            for _ in self._rounds():
                before = local.epoch()
                with self._unless_rewritten():
                    self._clean_own()
                    there: Mapping[str, str] = self._asked()
                    if there != self._seen.refs:
                        there = self._fetch_and_note(merge=False)
                    if self._push(there):
                        return self._result
                if local.epoch() == before:
                    break
        raise ConflictError(
            f"remote {self._remote.name} has commits that session {self._name} has not merged",
            hint="smp sync merges it and pushes",
        )

    def _rounds(self) -> Iterator[int]:
        """Yield the numbers of the rounds, for as long as another one may begin."""
        end = time.monotonic() + _PATIENCE_SECONDS
        for number in count(1):
            yield number
            if time.monotonic() > end:
                return

    def _outrun_error(self) -> ConflictError:
        """Return the error that says who came first each time."""
        winner = last_writer(self._site.reader, tracking(self._remote.name, MAIN))
        rounds = self._result.rounds
        return ConflictError(
            f"remote {self._remote.name} moved {rounds} times in {_PATIENCE_SECONDS:g} s before session {self._name} could push; {winner} wrote there last",
            hint="what was fetched is merged; sync again when the other replica is idle",
        )

    @contextmanager
    def _unless_rewritten(self) -> Iterator[None]:
        """Suppress an error that a deletion meanwhile explains; the caller then tries again."""
        local = self._site.reader.local
        before = local.epoch()
        try:
            yield
        except (DamagedError, SyncError):
            # A deletion under way raises the epoch before and after it takes objects away.
            if local.epoch() == before and not local.is_erasing():
                raise

    @property
    def _name(self) -> str:
        return self._site.reader.path.name

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self._site.writer.ready()
        with alone(self._site.reader, "syncing"):
            self._check_whole()
            self._seen = remotes.read_seen(self._smp, self._remote.name, self._remote.address.text)
            self._turns.waiting = dict(self._seen.waiting)
            try:
                yield
            finally:
                self._turns.leave()

    def _check_whole(self) -> None:
        """Raise RefusedError if the older history of the session, or of a remote at a path, is elsewhere."""
        if is_shallow(self._site.reader.repository.git):
            raise RefusedError(
                f"session {self._name} is a shallow clone, whose older history is elsewhere, so it is not synced",
                hint="git fetch --unshallow brings that",
            )
        place = Path(self._remote.address.path)
        if self._remote.address.kind == "path" and (
            is_shallow(place) or is_shallow(place / ".git")
        ):
            raise RefusedError(
                f"remote {self._remote.name} is a shallow clone, whose older history is elsewhere",
                hint=f"git -C {place} fetch --unshallow brings that",
            )

    @property
    def _is_new_there(self) -> bool:
        """Whether the store's pattern names a repository in which nothing was ever seen."""
        return not self._remote.is_own and not self._seen.refs

    def _make_at_path(self) -> None:
        """Make the repository that the store's pattern names, at a path whose folder is there."""
        place = Path(self._remote.address.path)
        is_here = self._remote.address.kind == "path" and place.parent.is_dir()
        if is_here and self._is_new_there and not place.exists():
            remotes.create(self._remote.address)

    def _asked(self) -> Mapping[str, str]:
        """Return what the remote names; nothing, if the push that follows may make it."""
        try:
            return self._turns.ask()
        except RemoteNotFoundError:
            if not self._is_new_there:
                raise
            return {}

    def _clean_own(self) -> None:
        before, found = self._result, inbound.come_clean(self._site, self._by)
        self._result = replace(
            before,
            rewritten=(*before.rewritten, *found.ids),
            notes=tuple(dict.fromkeys((*before.notes, *found.notes))),
        )

    def _fetch_if_changed(self, *, merge: bool) -> Mapping[str, str]:
        """Take in what the remote has more; return what it names."""
        # To list the references is a connection of its own, and a fetch lists them too. But
        # what was seen, and deleted here since, would be fetched once more.
        is_here = all(map(self._site.reader.repository.has, self._seen.refs.values()))
        if self._remote.address.kind != "path" and is_here:
            try:
                return self._fetch_and_note(merge=merge)
            except RemoteNotFoundError:
                # A forge makes it with the first push.
                if not (merge and self._is_new_there):
                    raise
                return {}
        there = self._turns.ask()
        return self._fetch_and_note(merge=merge) if self._has_more(there, merge=merge) else there

    def _has_more(self, there: Mapping[str, str], *, merge: bool) -> bool:
        """Whether a remote has what is not here or, with `merge`, not merged here."""
        if there != self._seen.refs or self._accept:
            return True
        return merge and outbound.parcel(self._site.reader, self._remote.name, there).unmerged

    def _fetch_and_note(self, *, merge: bool) -> Mapping[str, str]:
        """Fetch; return what the remote names, without the branches that were left there."""
        received = self._fetch_or_overrule(merge=merge)
        self._accept = False
        there = {ref: tip for ref, tip in received.named.items() if ref not in received.left}
        self._note_seen(there)
        before = self._result
        self._result = replace(
            before,
            fetched=before.fetched + received.commits,
            merged=tuple(dict.fromkeys((*before.merged, *received.merged))),
            contested=(*before.contested, *received.contested),
            rewritten=tuple(dict.fromkeys((*before.rewritten, *received.deleted))),
            moved=tuple(
                dict.fromkeys((*before.moved, *((each.old, each.new) for each in received.moved)))
            ),
            notes=tuple(dict.fromkeys((*before.notes, *received.notes))),
        )
        return there

    def _push(self, there: Mapping[str, str]) -> bool:
        """Push what is missing there; return whether the remote is now at what is here."""
        reader = self._site.reader
        gone = derived.reach(self._site, self._by)
        self._result = replace(self._result, rewritten=(*self._result.rewritten, *gone))
        outbound.bring_back(self._site)
        epoch = reader.local.epoch()
        parcel = outbound.parcel(reader, self._remote.name, there)
        if parcel.unmerged:
            return False
        self._result = replace(
            self._result, notes=tuple(dict.fromkeys((*self._result.notes, *parcel.notes)))
        )
        if not parcel.updates:
            if there is not self._noted:
                self._note_seen(there)
            self._result = replace(self._result, advertised=_main(there))
            return True
        outbound.check(reader, self._remote.name, parcel.updates)
        if self._turns.give_way():
            return False
        told = transport.push(
            reader.repository.git, self._remote.address.text, parcel.updates, self._way
        )
        refused = [
            each.reason for each in told.values() if each.fate in (Fate.REFUSED, Fate.FAILED)
        ]
        if refused:
            self._raise_refused(parcel.updates, refused[0])
        if any(each.fate not in (Fate.DONE, Fate.CURRENT) for each in told.values()):
            return False
        found = self._turns.ask()
        if any(found.get(each.ref) != each.new for each in parcel.updates):
            return False
        if parcel.replaces:
            self._name_unreached()
        # What else moved there meanwhile was not seen: it may not be replaced.
        new = {each.ref: each.new for each in parcel.updates}
        return self._note_sent(
            parcel, {ref: tip for ref, tip in {**there, **new}.items() if tip}, epoch
        )

    def _name_unreached(self) -> None:
        """Name the references there that no session moves, and that may hold what is gone."""
        named = transport.advertised(self._remote.address.text, self._way, prefixes=("refs/",))
        has = self._site.reader.repository.has
        found = sorted(ref for ref, tip in named.items() if is_foreign(ref) and not has(tip))
        if found:
            more = f" and {len(found) - _MOST_NAMED} more" if len(found) > _MOST_NAMED else ""
            note = f"{self._remote.name} may hold what was deleted under {', '.join(map(shown, found[:_MOST_NAMED]))}{more}, which no push of a session changes; remove that there"
            self._result = replace(self._result, notes=(*self._result.notes, note))

    def _note_sent(self, parcel: outbound.Parcel, now: Mapping[str, str], epoch: bytes) -> bool:
        """Note what the remote has now; return False if a deletion here came between."""
        reader = self._site.reader
        with self._site.writer.holding("noting what was pushed"):
            if reader.local.epoch() != epoch:
                # What was pushed is gone here, and may name what no longer is anywhere.
                return False
            outbound.track(reader, self._remote.name, parcel.updates)
        self._note_seen(now)
        before = self._result
        self._result = replace(
            before,
            pushed=before.pushed + parcel.commits,
            replaced=before.replaced or parcel.replaces,
            advertised=_main(now),
        )
        return True

    def _raise_refused(self, updates: tuple[Update, ...], reason: str) -> None:
        """Raise the error that says what the remote would not take."""
        said = f": {reason}" if reason else ""
        if not any(each.force for each in updates):
            raise RemoteRefusedError(
                f"remote {self._remote.name} refused what session {self._name} pushed{said}",
                hint="what is here is kept; ask who runs the remote",
            )
        if self._result.moved and not self._result.rewritten:
            raise RemoteRefusedError(
                f"new ids not published: remote {self._remote.name} refuses to replace history{said}",
                hint="it holds the old ones until it allows forced pushes (receive.denyNonFastForwards false, no protected branch) and is synced again",
            )
        self._seen = replace(self._seen, withheld=reason or "it refuses forced pushes")
        remotes.keep_seen(self._smp, self._remote.name, self._seen)
        raise RemoteRefusedError(
            f"deletion not published: remote {self._remote.name} refuses to replace history{said}",
            hint="it holds what was deleted until it allows forced pushes (receive.denyNonFastForwards false, no protected branch) and is synced again",
        )

    def _fetch_or_overrule(self, *, merge: bool) -> inbound.Received:
        """Fetch; with `accept`, the next push replaces what a remote has and no replica can take."""
        try:
            return inbound.receive(
                inbound.Asked(
                    self._site,
                    self._remote,
                    self._way,
                    self._limits,
                    self._seen,
                    self._by,
                    merge=merge,
                    accept=self._accept,
                )
            )
        except UnfoundedError as error:
            if not self._accept:
                raise
            return inbound.overrule(self._site, self._remote, self._turns.ask(), error)

    def _note_seen(self, refs: Mapping[str, str]) -> None:
        now = self._site.writer.clock()
        self._seen = remotes.Seen(
            address=self._remote.address.text, refs=dict(refs), at=now, waiting=self._turns.waiting
        )
        remotes.keep_seen(self._smp, self._remote.name, self._seen)
        self._noted = refs


@contextmanager
def alone(reader: Reader, doing: str) -> Iterator[None]:
    """Keep other exchanges of a session waiting."""
    with locked(reader.local.folder.parent / _LOCK, time.monotonic() + _PATIENCE_SECONDS, doing):
        yield


def last_writer(reader: Reader, ref: str) -> str:
    """Return who made the latest commit of a branch that is no merge of a sync."""
    tip = references.read(reader.repository.git).get(ref)
    found = newest_first(reader.repository, CommitId(tip), lambda each: each.parents) if tip else ()
    for commit in found:
        if not is_products(commit.committer_email):
            tag = replica_of(commit)
            return f"replica {tag}" if tag else f"{commit.author} by plain Git"
    return "another replica"


def _main(refs: Mapping[str, str]) -> CommitId | None:
    found = refs.get(MAIN)
    return CommitId(found) if found else None


def forget(reader: Reader, remote: str) -> None:
    """Drop everything that is known of a remote; the caller holds the lock."""
    git = reader.repository.git
    places = tracking(remote, HEADS), tracking(remote, TAGS), shown_ref(remote, HEADS)
    for name in references.read(git):
        if name.startswith(places):
            references.drop(git, name)
    remotes.keep_seen(reader.local.folder, remote, None)


Progress = Callable[[str], None]


def known_remotes(handle: Handle) -> Mapping[str, Remote]:
    """Return the remotes of the session by name, the one of the store's pattern included."""
    home = handle.at_home()
    return remotes.remotes(handle.reader.path, home.settings.remote, home.path)


def add_remote(handle: Handle, name: str, address: str | PathLike[str], *, create: bool) -> Remote:
    """Add a remote; with `create` an empty repository is made at a path that has none."""
    handle.rules.name(name, "the name of a remote")
    handle.rules.address(str(address))
    parsed = addresses.parse(str(address), Path().absolute())
    if create:
        remotes.create(parsed)
    with handle.writer.holding("adding a remote"):
        return remotes.add(handle.reader.path, name, parsed)


def remove_remote(handle: Handle, name: str) -> None:
    """Forget a remote, and what was known of it."""
    doing = "removing a remote"
    # A sync that is under way would note what it saw of it.
    with alone(handle.reader, doing), handle.writer.holding(doing):
        remotes.remove(handle.reader.path, name)
        forget(handle.reader, name)


def remote_states(handle: Handle) -> tuple[RemoteState, ...]:
    """Return the state of each remote, without asking it."""
    return tuple(outbound.state_of(handle.reader, each) for each in known_remotes(handle).values())


def exchange_with(
    handle: Handle,
    name: str | None,
    agent: str | None,
    *,
    accept: bool = False,
    ask: bool,
    progress: Progress | None,
    way: Way | None = None,
) -> Exchange:
    """Return the exchange with a remote; without a name `origin`, or the only one."""
    home = handle.at_home()
    remote = remotes.chosen(known_remotes(handle), name)
    access = way or remotes.access(home.settings, home.environment, progress, ask=ask)
    fold_counts(handle, everything=True)
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
        theirs = _of_this_session(handle, name)
        return join(handle.writer, handle.reader.ref, theirs, by=by, source=f"branch {name}")


def plan_merge(handle: Handle, name: str) -> MergePlan:
    """Return what merging another branch would do."""
    theirs = _of_this_session(handle, name)
    return handle.read(
        None, lambda _: plan(handle.reader, handle.reader.ref, theirs, source=f"branch {name}")
    )


def _of_this_session(handle: Handle, name: str) -> CommitId:
    """Return the tip of a branch; raise RefusedError if it has another memory under an id of ours."""
    branches.find(handle, name)
    reader = handle.reader
    theirs = reader.repository.head(HEADS + name)
    assert theirs is not None  # noqa: S101 - just found
    ours = {MAIN: reader.snapshot().id}
    found = twins.part(reader.repository, ours, {MAIN: theirs}, effective(reader))
    if found:
        twin = (*found.ours, *found.theirs)[0].old
        raise RefusedError(
            f"{twin} on branch {name} is another memory than {twin} here",
            hint="smp sync with the remote that it came from gives one of them another id",
        )
    return theirs
