"""Deletion: of memories, of what was deleted elsewhere, of a branch; sealed first, then erased."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TypedDict

from smp_git.format import document, imports
from smp_git.format.document import life_of
from smp_git.format.lines import Entry
from smp_git.format.records import Tombstones
from smp_git.git import references
from smp_git.git.references import HEADS, TAGS, only_in
from smp_git.git.repository import MAIN
from smp_git.model.errors import (
    ConflictError,
    InvalidError,
    InvalidFileError,
    MemoryNotFoundError,
    NotFoundError,
    RefusedError,
)
from smp_git.model.given import Kind
from smp_git.model.ids import FIRST, REDACTED, parse_id, parse_path
from smp_git.model.memory import CommitId, Memory, MemoryId, agent_name, check_tags, kind_named
from smp_git.model.results import Result
from smp_git.model.times import When
from smp_git.read.snapshot import Snapshot
from smp_git.remove import derived
from smp_git.remove.audit import DROPPED
from smp_git.remove.history import journal
from smp_git.remove.history.erase import erase, erase_arrived
from smp_git.remove.history.journal import (
    Adopt,
    Incoming,
    Receipt,
    Replacement,
    RewriteOrder,
    is_final,
)
from smp_git.remove.history.plan import RewritePlan
from smp_git.remove.history.prove import verify
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.interrupted import site_of
from smp_git.remove.meeting import put_back
from smp_git.remove.site import (
    ELSEWHERE,
    Site,
    check_droppable,
    check_known,
    drop_copies,
    drop_ended,
    keep,
    tell,
)
from smp_git.remove.trash import new_deletion
from smp_git.write import branches, edits
from smp_git.write.handle import Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Selection of memories; a tag means those below it too, a text is looked for without case."""

    ids: tuple[MemoryId, ...] = ()
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    agents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    text: str | None = None

    @property
    def criteria(self) -> bool:
        """Whether anything but ids is asked for."""
        return bool(self.tags or self.since or self.until or self.agents or self.kinds or self.text)


class Criteria(TypedDict, total=False):
    """Criteria of a deletion; all that are given must hold."""

    tags: Iterable[str]
    since: When | None
    until: When | None
    agents: Iterable[str]
    kinds: Kind | Iterable[Kind]
    text: str | None


def _selected(handle: Handle, ids: str | Iterable[str], given: Criteria) -> tuple[MemoryId, ...]:
    """Return the ids of what is to be deleted; raise InvalidError if it would be everything."""
    named = (ids,) if isinstance(ids, str) else tuple(ids)
    since, until = given.get("since"), given.get("until")
    wanted = Selection(
        ids=tuple(dict.fromkeys(parse_id(name).text for name in named)),
        tags=check_tags(given.get("tags", ())),
        since=handle.moment(since) if since is not None else None,
        until=handle.moment(until) if until is not None else None,
        agents=tuple(agent_name(agent) for agent in given.get("agents", ())),
        kinds=tuple(kind_named(kind).name for kind in given.get("kinds", ())),
        text=given.get("text"),
    )
    if not wanted.ids and not wanted.criteria:
        raise InvalidError("nothing to delete was named", hint="name ids, or give a criterion")
    return handle.read(None, lambda snapshot: _select(snapshot, wanted))


def _select(snapshot: Snapshot, wanted: Selection) -> tuple[MemoryId, ...]:
    """Return the ids that a selection takes; raise MemoryNotFoundError if there is none.

    Ids alone may also name memories that are only in the history.
    """
    if not wanted.criteria:
        return wanted.ids
    found = tuple(
        entry.id
        for entry in snapshot.entries()
        if _fits(entry, wanted) and (wanted.text is None or _holds(snapshot, entry, wanted.text))
    )
    if not found:
        raise MemoryNotFoundError(
            "no memory matches all of this", hint="smp list shows what is there"
        )
    return found


def _fits(entry: Entry, wanted: Selection) -> bool:
    at = datetime.fromisoformat(entry.at)
    return (
        (not wanted.ids or entry.id in wanted.ids)
        and (not wanted.tags or any(_below(tag, wanted.tags) for tag in entry.tags))
        and (wanted.since is None or at >= wanted.since)
        and (wanted.until is None or at <= wanted.until)
        and (not wanted.agents or entry.agent in wanted.agents)
        and (not wanted.kinds or parse_id(entry.id).kind.name in wanted.kinds)
    )


def _below(tag: str, wanted: tuple[str, ...]) -> bool:
    return any(tag == above or tag.startswith(f"{above}.") for above in wanted)


def _holds(snapshot: Snapshot, entry: Entry, text: str) -> bool:
    """Whether a memory says `text` anywhere: its values, or its file as a person wrote it."""
    folded = text.casefold()
    try:
        memory = snapshot.get(entry.id)
    except InvalidFileError:
        memory = None
    if memory is not None:
        values = (memory.content, *_texts(document.mapping_of(memory)))
        if any(folded in value.casefold() for value in values):
            return True
    return folded in (snapshot.file(entry.id) or b"").decode("utf-8", "replace").casefold()


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for item in pair for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return []


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan(Result):
    """Plan of a deletion, for a dry run.

    >>> session.delete(tags=["security"], dry_run=True).ids
    ('DEC-0001', 'FIND-0001')
    """

    dry_run: bool = True
    ids: tuple[MemoryId, ...]
    purge: bool
    deadline: datetime | None


def plan_delete(
    handle: Handle, ids: str | Iterable[str], criteria: Criteria, *, purge: bool
) -> Plan:
    """Return what a deletion would do."""
    site, now = site_of(handle), handle.clock()
    deadline = None if purge else now + site.trash.retention
    asked = _selected(handle, ids, criteria)
    names = handle.read(None, lambda snapshot: derived.with_derived(snapshot, asked))
    return Plan(ids=names, purge=purge, deadline=deadline)


def delete(
    handle: Handle,
    ids: str | Iterable[str],
    criteria: Criteria,
    *,
    reason: str | None,
    reasons: Mapping[str, str] | None,
    by: str | None,
    purge: bool,
    seen: Iterable[Memory] = (),
    check: Callable[[], None] = lambda: None,
) -> Receipt:
    """Erase memories from the history; unless `purge`, what is erased can be restored.

    The sealed copy is durable before anything is erased. If this is interrupted, the
    next open of the session finishes it or leaves everything as it was. Raises
    ConflictError, with nothing changed, if one of those that were `seen` is another by now,
    and what `check` raises under the lock.
    """
    site, who, shown = site_of(handle), handle.actor(by), tuple(seen)
    site.sweep()
    put_right(site, who)
    asked, now = _selected(handle, ids, criteria), handle.clock()
    names = handle.read(None, lambda snapshot: derived.with_derived(snapshot, asked))
    again = handle.read(None, lambda snapshot: derived.remade(snapshot, asked))
    why, each = site.reason(reason), site.reasons(reasons, names)
    deletion = new_deletion(now)
    # Of what was deleted before only its copy tells the text.
    told = tell(site, site.tombstones(), names) if purge else None

    def settle(receipt: Receipt) -> Receipt:
        if told is not None and not receipt.counts.versions:
            proof = verify(site.reader, site.tombstones(), told.versions, told.unknown)
            receipt = replace(receipt, proof=proof)
        if purge:
            drop_copies(site, receipt.ids)
        else:
            site.trash.confirm(deletion)
        site.keep_receipt("purge" if purge else "delete", receipt, why, each)
        return receipt

    def seal(versions: Sequence[DeadVersion]) -> None:
        # Under the lock: what is compared is what goes.
        _check_unchanged(handle, shown)
        check()
        if not purge:
            keep(site, deletion, versions, now, by=who, reason=why, reasons=each)

    _check_unchanged(handle, shown)
    _check_possible(site, names, purge=purge)
    edits.never_import(handle, _imported(handle, names), who)
    order = RewriteOrder(
        by=who,
        now=now,
        purge=purge,
        deletion=deletion,
        reason=why,
        reasons=each,
        deadline=None if purge else now + site.trash.retention,
        seal=seal,
        settle=settle,
    )
    receipt = erase(site.writer, names, order)
    derived.put_back(handle.main_writer, again)
    return receipt


def _check_possible(site: Site, names: Iterable[MemoryId], *, purge: bool) -> None:
    """Raise an error for a deletion that would be refused later, before anything is done for it."""
    if purge:
        check_known(site)
        check_droppable(site, names)
    else:
        site.trash.check()


def _check_unchanged(handle: Handle, seen: Iterable[Memory]) -> None:
    """Raise ConflictError if one of some memories is no longer as it was seen."""
    snapshot = handle.reader.snapshot()
    for memory in seen:
        if snapshot.readable(memory.id) != memory:
            raise ConflictError(
                f"{memory.id} changed meanwhile; nothing was deleted",
                hint="read the new version and try again",
            )


def _imported(handle: Handle, names: Iterable[MemoryId]) -> Iterator[str]:
    """Yield what memories were called in the programs that they were imported from."""
    snapshot = handle.reader.snapshot()
    for name in names:
        with suppress(MemoryNotFoundError, InvalidFileError):
            if source := imports.source_of(snapshot.get(name)):
                yield source


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(Result):
    """A branch that is gone: where it was, and the memories that can be restored from it.

    >>> session.branch("idea").close()
    >>> session.drop_branch("idea").name
    'idea'
    """

    name: str
    commit: CommitId
    ids: tuple[MemoryId, ...] = ()
    deletion: str | None = None


def drop_branch(handle: Handle, name: str, *, discard: bool, by: str | None) -> Dropped:
    """Drop a branch; unless `discard`, the versions of memories that only it held are sealed.

    Raises RefusedError, with nothing changed, if they cannot be.
    """
    ref = branches.find(handle, name)
    if ref == MAIN:
        raise RefusedError("main is the session itself", hint="delete memories, or the session")
    if ref == handle.reader.ref:
        raise RefusedError(
            f"{name} is the branch that is in use here", hint="switch to another one first"
        )
    if ref == handle.reader.repository.checked_out():
        raise RefusedError(
            f"{name} is checked out in the folder", hint="git switch main brings main back"
        )
    site, now, who = site_of(handle), handle.clock(), handle.actor(by)
    site.writer.ready()
    site.sweep()
    name, repository = ref.removeprefix(HEADS), site.reader.repository
    with site.writer.holding(f"dropping branch {name}"):
        tip = repository.head(ref)
        if tip is None:
            raise NotFoundError(f"no branch {name}", hint="smp branch lists them")
        versions = [] if discard else list(_only_there(site, ref, tip))
        deletion = _keep_branch(site, name, versions, tip, now, who) if versions else None
        references.drop(repository.git, ref)
        journal.reached("branch dropped")
        ids = tuple(dict.fromkeys(version.id for version in versions))
        if deletion:
            reason = f"branch {name} was dropped"
            site.note(DROPPED, at=now, by=who, ids=ids, deletion=deletion, reason=reason)
    return Dropped(name=name, commit=tip, ids=ids, deletion=deletion)


def _keep_branch(
    site: Site, name: str, versions: list[DeadVersion], tip: CommitId, now: datetime, by: str
) -> str:
    """Seal versions, and return the id under which the trash has them."""
    try:
        site.trash.check()
    except RefusedError as error:
        raise RefusedError(
            error.message,
            hint="name one with key_dir in config.yaml, merge the branch first, or drop it for good with --discard",
        ) from error
    deletion, why = new_deletion(now), f"branch {name} was dropped"
    keep(site, deletion, versions, now, by=by, reason=why, action=DROPPED, head=site.reader.at(tip))
    # It counts before the branch goes: a crash leaves one copy too many, never none.
    site.trash.confirm(deletion)
    return deletion


def _only_there(site: Site, ref: str, tip: CommitId) -> Iterator[DeadVersion]:
    """Yield the versions of memories that no other branch or tag has, oldest first."""
    repository, known = site.reader.repository, site.tombstones()
    refs = repository.references()
    others = {
        repository.resolve(each) for each in refs if each != ref and each.startswith((HEADS, TAGS))
    }
    trees = [repository.commit(other).tree for other in others]
    seen: set[tuple[str, str]] = set()
    for commit in reversed(only_in(repository, tip, others)):
        before = repository.commit(commit.parents[0]).tree if commit.parents else None
        for path, _, blob in repository.changes(before, commit.tree):
            place = parse_path(path)
            if place is None or blob is None or (path, blob) in seen:
                continue
            seen.add((path, blob))
            data = repository.blob(blob)
            life = life_of(data, path)
            if not known.is_dead(place.text, life) and all(
                repository.find(tree, path) != blob for tree in trees
            ):
                yield DeadVersion(
                    id=place.text,
                    life=life,
                    at=commit.time,
                    agent=commit.author,
                    commit=commit.id,
                    data=data,
                )


def follow(
    site: Site,
    arrived: Tombstones,
    now: datetime,
    *,
    by: str,
    again: bool = False,
    replacement: Replacement | None = None,
    plan: RewritePlan | None = None,
    adopt: Adopt = Incoming,
    check: Callable[[], None] | None = None,
) -> Receipt | None:
    """Delete here what was deleted elsewhere; return None if nothing of it was here.

    What no remote ever had of a deleted memory can be restored from this replica's own
    copy; nothing that was purged or redacted can be, and its copies are destroyed. The
    `replacement` brings what a redaction elsewhere left, `plan` is of the same deletions,
    `adopt` brings in what came with them. What `check` raises under the lock, before
    anything has changed, is the end of it.
    """
    site.sweep()
    deletion = new_deletion(now)
    sealed: list[str] = []
    final = site.tombstones() | arrived

    def seal(versions: Sequence[DeadVersion]) -> None:
        if check is not None:
            check()
        _check_committed(versions, final)
        own = [
            version for version in versions if not is_final(final.lives(version.id), version.life)
        ]
        if not own:
            return
        site.trash.check()
        keep(site, deletion, own, now, by=by, reason=ELSEWHERE)
        sealed.append(deletion)

    def settle(receipt: Receipt) -> Receipt:
        if sealed:
            site.trash.confirm(deletion)
        if receipt.ids:
            site.keep_receipt("delete", receipt, ELSEWHERE)
        drop_ended(site)
        return receipt

    order = RewriteOrder(
        by=by,
        now=now,
        deletion=deletion,
        adopt=adopt,
        replacement=replacement,
        seal=seal,
        settle=settle,
    )
    receipt = erase_arrived(site.writer, arrived, order, again=again, plan=plan)
    if receipt is None:
        drop_ended(site)
    return receipt


def put_right(site: Site, by: str) -> None:
    """Give branches the living memories of which plain Git put an old version back.

    Else the next rewrite would take them for removed: an old version may not stay.
    """
    site.reader.snapshot()
    brought = put_back(site.reader)
    if brought is not None:
        follow(site, brought.known, site.writer.clock(), by=by, again=True, replacement=brought)


def _check_committed(versions: Iterable[DeadVersion], known: Tombstones) -> None:
    """Raise RefusedError for an edit of a redacted memory that no commit has: it would be lost."""
    for each in versions:
        lives = known.lives(each.id)
        is_redacted = REDACTED in lives.ended_by(each.life or FIRST) and not lives.is_gone
        if not each.commit and is_redacted:
            raise RefusedError(
                f"{each.id} was redacted elsewhere, and {each.path} has edits that are not committed",
                hint="commit them with smp commit, or drop them with git checkout HEAD, then sync again",
            )
