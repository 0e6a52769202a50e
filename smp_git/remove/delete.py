"""Deletion of memories, and of a branch: selected, sealed, then erased from the history."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from smp_git.format import document
from smp_git.format.document import life_of
from smp_git.format.lines import Entry
from smp_git.git import references
from smp_git.git.ancestry import only_in
from smp_git.model.errors import (
    DamagedError,
    InvalidError,
    InvalidFileError,
    MemoryNotFoundError,
    NotFoundError,
    RefusedError,
)
from smp_git.model.ids import parse_id, parse_path
from smp_git.model.memory import CommitId, MemoryId, agent_name, check_tags, kind_named
from smp_git.model.times import format_time
from smp_git.read.snapshot import Snapshot
from smp_git.remove import audit
from smp_git.remove.audit import DROPPED, Item, Record, type_of
from smp_git.remove.history import journal
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import Receipt, RewriteOrder
from smp_git.remove.history.prove import verify
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.seal import Kept
from smp_git.remove.site import Site, tell
from smp_git.remove.trash import BACKUP, new_deletion, way_out


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What memories to take; a tag stands for those below it too, a text is looked for without case."""

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


def selection(
    ids: str | Iterable[str] = (),
    *,
    tags: Iterable[str] = (),
    since: datetime | None = None,
    until: datetime | None = None,
    agents: Iterable[str] = (),
    kinds: Iterable[str] = (),
    text: str | None = None,
) -> Selection:
    """Return a checked selection; raise InvalidError if it would take everything."""
    named = (ids,) if isinstance(ids, str) else tuple(ids)
    made = Selection(
        ids=tuple(dict.fromkeys(parse_id(name).text for name in named)),
        tags=check_tags(tags),
        since=since,
        until=until,
        agents=tuple(agent_name(agent) for agent in agents),
        kinds=tuple(kind_named(kind).name for kind in kinds),
        text=text,
    )
    if not made.ids and not made.criteria:
        raise InvalidError("nothing to delete was named", hint="name ids, or give a criterion")
    return made


def select(snapshot: Snapshot, wanted: Selection) -> tuple[MemoryId, ...]:
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
class Plan:
    """What a deletion would do."""

    ids: tuple[MemoryId, ...]
    purge: bool
    deadline: datetime | None

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "dry_run": True,
            "ids": list(self.ids),
            "purge": self.purge,
            "deadline": format_time(self.deadline) if self.deadline else None,
        }


def plan(site: Site, ids: Sequence[MemoryId], now: datetime, *, purge: bool) -> Plan:
    """Return what a deletion would do."""
    return Plan(ids=tuple(ids), purge=purge, deadline=None if purge else now + site.trash.retention)


def delete(
    site: Site,
    ids: Sequence[MemoryId],
    now: datetime,
    *,
    by: str,
    reason: str | None = None,
    reasons: Mapping[str, str] | None = None,
    purge: bool = False,
) -> Receipt:
    """Erase memories from the history; unless `purge`, what is erased can be restored.

    The sealed copy is durable before anything is erased. If this is interrupted, the
    next open of the session finishes it or leaves everything as it was.
    """
    site.sweep()
    why, each = site.reason(reason), site.reasons(reasons, ids)
    deletion = new_deletion(now)
    # Of what was deleted before only its copy tells the text.
    told = tell(site, site.tombstones(), ids) if purge else None
    done: list[Receipt] = []

    def settle(receipt: Receipt) -> None:
        if told is not None and not receipt.counts.versions:
            receipt = replace(
                receipt, proof=verify(site.reader, site.tombstones(), told.versions, told.unknown)
            )
        if purge:
            drop_copies(site, receipt.ids)
        else:
            site.trash.confirm(deletion)
        done.append(receipt)
        audit.keep_receipt(site.trash.place(deletion), receipt.as_json())
        site.note_once(
            "purge" if purge else "delete",
            at=now,
            by=by,
            ids=receipt.ids,
            deletion=deletion,
            reason=why,
            reasons=each,
        )

    def seal(versions: Sequence[DeadVersion]) -> None:
        keep(site, deletion, versions, now, by=by, reason=why, reasons=each)

    if purge:
        check_known(site)
        check_droppable(site, ids)
    else:
        site.trash.check()
    order = RewriteOrder(
        by=by,
        now=now,
        purge=purge,
        deletion=deletion,
        reason=why,
        reasons=each,
        deadline=None if purge else now + site.trash.retention,
        seal=None if purge else seal,
        settle=settle,
    )
    erase(site.writer, ids, order)
    return done[0]


def keep(
    site: Site,
    deletion: str,
    versions: Sequence[DeadVersion],
    now: datetime,
    *,
    by: str,
    reason: str | None,
    reasons: Mapping[str, str] | None = None,
    more: Sequence[Kept] = (),
) -> None:
    """Seal versions with their record; both are durable when this returns."""
    record = Record(
        deletion=deletion,
        session_id=site.trash.session_id,
        session_uid=site.trash.uid,
        deleted_at=now,
        deleted_by=by,
        reason=reason,
        items=(*items_of(versions, reasons), *map(_item, more)),
        recovery_deadline=now + site.trash.retention,
        backup=BACKUP,
        key=deletion,
    )
    site.trash.keep(record, [*kept(site, versions), *more])


def drop_copies(site: Site, ids: Iterable[str], *, whatever: bool = False) -> None:
    """Destroy every copy of these memories; with `whatever` those that do not open, too."""
    names = set(ids)
    for record in copies_of(site, names):
        site.trash.drop_items(record, names, whatever=whatever)


def check_droppable(site: Site, ids: Iterable[str]) -> None:
    """Raise an error if a copy of these memories holds others too and does not open, or its key is closed.

    Without its key, or with a record that cannot be read, those others could not be
    sealed anew.
    """
    names = set(ids)
    for each in site.trash.damaged():
        if names.intersection(each.ids):
            raise DamagedError(each.why, hint=way_out(each.deletion))
    copies = copies_of(site, names)
    site.trash.check_keys(copies)
    for record in copies:
        others = [item.id for item in record.items if item.id not in names]
        try:
            if others:
                site.trash.versions(record)
        except DamagedError as error:
            raise DamagedError(
                f"{error.message}, and it holds {', '.join(others)} too",
                hint="bring back its key, or purge all of them together",
            ) from error


def check_known(site: Site) -> None:
    """Raise DamagedError if nothing tells what some copy holds: it may be what is to be purged."""
    for each in site.trash.damaged():
        if not each.ids:
            raise DamagedError(each.why, hint=way_out(each.deletion))


def copies_of(site: Site, ids: Iterable[str]) -> list[Record]:
    """Return the records of the copies that hold one of these memories."""
    names = set(ids)
    return [
        record for record in site.trash.records() if any(item.id in names for item in record.items)
    ]


def kept(site: Site, versions: Sequence[DeadVersion]) -> list[Kept]:
    """Return versions as a copy keeps them; the ones at head are the current ones."""
    head = site.reader.snapshot()
    present = {name: head.file(name) for name in {version.id for version in versions}}
    return [
        Kept(
            id=version.id,
            life=version.life,
            at=version.at,
            agent=version.agent,
            commit=version.commit,
            current=version.data == present[version.id],
            data=version.data,
        )
        for version in versions
    ]


def items_of(
    versions: Sequence[DeadVersion], reasons: Mapping[str, str] | None = None
) -> Iterable[Item]:
    """Yield one item for each memory of `versions`, in their order."""
    by_id: dict[MemoryId, list[DeadVersion]] = {}
    for version in versions:
        by_id.setdefault(version.id, []).append(version)
    for name, mine in by_id.items():
        yield Item(
            id=name,
            type=type_of(name),
            timestamp=_created_at(mine[-1]),
            life=mine[-1].life,
            versions=len(mine),
            reason=(reasons or {}).get(name),
        )


def _item(version: Kept) -> Item:
    created = document.decode(version.data, parse_id(version.id).path).created_at
    return Item(id=version.id, type=type_of(version.id), timestamp=created, life=version.life)


def _created_at(version: DeadVersion) -> datetime:
    try:
        return document.decode(version.data, version.path).created_at
    except InvalidFileError:
        return version.at


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A branch that is gone: where it stood, and the memories that can be restored from it."""

    name: str
    commit: CommitId
    ids: tuple[MemoryId, ...] = ()
    deletion: str | None = None

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "name": self.name,
            "commit": self.commit,
            "ids": list(self.ids),
            "deletion": self.deletion,
        }


def drop(site: Site, ref: str, now: datetime, *, by: str, discard: bool) -> Dropped:
    """Drop a branch; unless `discard`, the versions of memories that only it held are sealed.

    Raises RefusedError, with nothing changed, if they cannot be.
    """
    site.writer.ready()
    site.sweep()
    name = ref.removeprefix("refs/heads/")
    repository = site.reader.repository
    with site.writer.holding(f"dropping branch {name}"):
        tip = repository.head(ref)
        if tip is None:
            raise NotFoundError(f"no branch {name}", hint="smp branch lists them")
        versions = [] if discard else list(_only_there(site, ref, tip))
        deletion = _kept(site, name, versions, tip, now, by) if versions else None
        references.drop(repository.git, ref)
        journal.reached("branch dropped")
        ids = tuple(dict.fromkeys(version.id for version in versions))
        if deletion:
            reason = f"branch {name} was dropped"
            site.note(DROPPED, at=now, by=by, ids=ids, deletion=deletion, reason=reason)
    return Dropped(name=name, commit=tip, ids=ids, deletion=deletion)


def _kept(
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
    deletion = new_deletion(now)
    record = Record(
        deletion=deletion,
        session_id=site.trash.session_id,
        session_uid=site.trash.uid,
        deleted_at=now,
        deleted_by=by,
        reason=f"branch {name} was dropped",
        items=tuple(items_of(versions)),
        recovery_deadline=now + site.trash.retention,
        backup=BACKUP,
        key=deletion,
        action=DROPPED,
    )
    at_tip = site.reader.at(tip)
    site.trash.keep(record, [_copied(each, at_tip.file(each.id)) for each in versions])
    # It counts before the branch goes: a crash leaves one copy too many, never none.
    site.trash.confirm(deletion)
    return deletion


def _copied(version: DeadVersion, present: bytes | None) -> Kept:
    return Kept(
        id=version.id,
        life=version.life,
        at=version.at,
        agent=version.agent,
        commit=version.commit,
        current=version.data == present,
        data=version.data,
    )


def _only_there(site: Site, ref: str, tip: CommitId) -> Iterator[DeadVersion]:
    """Yield the versions of memories that no other branch or tag has, oldest first."""
    repository, known = site.reader.repository, site.tombstones()
    refs = repository.references()
    others = {
        repository.resolve(each)
        for each in refs
        if each != ref and each.startswith(("refs/heads/", "refs/tags/"))
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
                    path=path,
                    life=life,
                    at=commit.time,
                    agent=commit.author,
                    commit=commit.id,
                    data=data,
                )
