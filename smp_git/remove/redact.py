"""A text taken out of every version of every memory: the old versions erased, the rest brought back."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import chain

from smp_git.format import document
from smp_git.git.objects import ObjectId
from smp_git.model.errors import DamagedError, InvalidError, InvalidFileError, InvalidRevisionError
from smp_git.model.ids import parse_id, parse_path
from smp_git.model.memory import CommitId, MemoryId, check_text
from smp_git.remove import derived, traces
from smp_git.remove.delete import put_right
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import Receipt, RewriteOrder, Settle
from smp_git.remove.history.plan import make_plan
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.interrupted import site_of
from smp_git.remove.rewording import NewWords, Rewording, check_by_hand
from smp_git.remove.site import Site, check_droppable, drop_ended, keep, opened
from smp_git.remove.trash import new_deletion, way_out
from smp_git.remove.wanted import Wanted, agent_without, cleared, file_of, holds, refuse_key
from smp_git.write.handle import Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """Result or plan of a redaction: memories reworded, memories only in the history gone.

    `left` says with counts in what kinds of places the text is left, `ways_out` what
    can be done about them; `receipt` is None for a dry run and where no memory held it.

    >>> redaction = session.redact("OAuth 2.0")
    >>> (redaction.ids, session.get("DEC-0001").content)
    (('DEC-0001',), 'Use [REDACTED]')
    """

    ids: tuple[MemoryId, ...]
    gone: tuple[MemoryId, ...]
    versions: int
    left: tuple[str, ...]
    ways_out: tuple[str, ...] = ()
    not_looked_into: tuple[str, ...] = ()
    receipt: Receipt | None = None

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "ids": list(self.ids),
            "gone": list(self.gone),
            "versions": self.versions,
            "left": list(self.left),
            "ways_out": list(self.ways_out),
            "not_looked_into": list(self.not_looked_into),
            "dry_run": self.receipt is None,
            "receipt": self.receipt.as_json() if self.receipt else None,
        }


def find(handle: Handle, pattern: str | re.Pattern[str]) -> Redaction:
    """Return what a redaction would do and where the text would still be, without doing it."""
    site, wanted = site_of(handle), Wanted(pattern)
    plan = _hits(site, wanted)
    ids = (*plan.ids, *plan.gone)
    check_by_hand(site, ids)
    for name in plan.ids:
        if (memory := site.reader.snapshot().readable(name)) is not None:
            refuse_key(wanted, memory)
    return _with_left(site, plan, wanted, ids)


def redact(
    handle: Handle,
    pattern: str | re.Pattern[str],
    replacement: str | None,
    *,
    reason: str | None,
    by: str | None,
) -> Redaction:
    """Take a text out of every version, sealed copies included; it cannot be restored.

    The earlier history of each memory that held it goes, and the memory goes on as a
    life of its own, so that no replica brings the text back. All or nothing: an
    interruption before the text is gone leaves everything as it was. What is left in
    places that hold no memories is named.
    """
    site, rules = site_of(handle), handle.rules
    gap = rules.gap
    if replacement is not None:
        gap = rules.text(check_text(replacement, "replacement"))[0]
    now, who, wanted = handle.clock(), handle.actor(by), Wanted(pattern)
    if wanted.fits(check_text(gap, "replacement")):
        raise InvalidError(
            "the replacement contains the text to be removed", hint="choose another replacement"
        )
    site.sweep()
    put_right(site, who)
    plan = _hits(site, wanted)
    ids = (*plan.ids, *plan.gone)
    if not ids:
        return _with_left(site, plan, wanted, ())
    check_droppable(site, ids)
    check_by_hand(site, ids)
    # What takes too long anywhere is refused before anything is done.
    traces.find(site.reader.repository, wanted)
    why = wanted.replace(text, gap) if (text := site.reason(reason)) else text
    done = _erase(site, plan, wanted, Wanted(pattern), gap, now, by=who, why=why)
    derived.reach(site, who)
    return done


def _erase(
    site: Site,
    plan: Redaction,
    wanted: Wanted,
    again: Wanted,
    replacement: str,
    now: datetime,
    *,
    by: str,
    why: str | None,
) -> Redaction:
    """Erase the old versions and bring the rest back; seal what was restorable, without the text."""
    words = NewWords(
        lambda memory: cleared(wanted, memory, replacement),
        lambda data, old, new: file_of(wanted, data, old, new),
        lambda agent: agent_without(wanted, agent),
    )
    found: list[Redaction] = []

    def finish(receipt: Receipt) -> Receipt:
        found.append(_left(site, plan, again))
        return replace(receipt, left=found[0].left)

    receipt = _reword(site, (*plan.ids, *plan.gone), words, now, finish, "redact", by=by, why=why)
    return replace(found[0], receipt=receipt)


def reword(
    handle: Handle,
    ids: Sequence[MemoryId],
    words: NewWords,
    *,
    action: str,
    reason: str | None,
    by: str | None,
) -> Receipt:
    """Put other words in the place of those of some memories, as a redaction does."""
    site, who = site_of(handle), handle.actor(by)
    site.sweep()
    put_right(site, who)
    check_droppable(site, ids)
    check_by_hand(site, ids)
    why = site.reason(reason)
    receipt = _reword(site, ids, words, handle.clock(), lambda it: it, action, by=who, why=why)
    derived.reach(site, who)
    return receipt


def reworded_by(handle: Handle, ids: Collection[MemoryId], words: NewWords) -> tuple[MemoryId, ...]:
    """Return which memories have a version, in history or sealed, that other words would change."""
    site = site_of(handle)
    found = (
        (place.text, site.reader.repository.blob(blob), path)
        for path, blob in _versions(site)
        if (place := parse_path(path)) is not None and place.text in ids
    )
    sealed = (
        (version.id, version.data, version.path)
        for record in site.trash.records()
        for version in opened(site, record) or ()
        if version.id in ids
    )
    return _sorted(
        {name for name, data, path in chain(found, sealed) if _changes(words, data, path)}
    )


def _changes(words: NewWords, data: bytes, path: str) -> bool:
    try:
        memory = document.decode(data, path)
    except InvalidFileError:
        return True
    return words.memory(memory) != memory or words.file(data, memory, memory) != data


def _reword(
    site: Site,
    ids: Sequence[MemoryId],
    words: NewWords,
    now: datetime,
    finish: Settle,
    action: str,
    *,
    by: str,
    why: str | None,
) -> Receipt:
    deletion = new_deletion(now)
    work = Rewording(site, ids, words, now)

    def seal(versions: Sequence[DeadVersion]) -> None:
        rest = [version for version in versions if version.id not in ids]
        if rest or work.sealed:
            site.trash.check()
            keep(site, deletion, [*rest, *work.sealed], now, by=by, reason=why)

    def settle(receipt: Receipt) -> Receipt:
        drop_ended(site)
        site.trash.settle(deletion)
        receipt = finish(replace(receipt, redacted=True))
        site.keep_receipt(action, receipt, why)
        return receipt

    order = RewriteOrder(
        by=by,
        now=now,
        deletion=deletion,
        reason=why,
        replacement=work,
        seal=seal,
        settle=settle,
    )
    return erase(site.writer, ids, order)


def _left(site: Site, plan: Redaction, wanted: Wanted) -> Redaction:
    """Say where the text is left after all is done; by then nothing may be called undone."""
    try:
        return _with_left(site, plan, wanted, ())
    except InvalidError:
        return replace(
            plan,
            left=("not looked for: the pattern takes too long",),
            ways_out=("redact the text itself once more",),
        )


def _with_left(site: Site, plan: Redaction, wanted: Wanted, ids: Sequence[MemoryId]) -> Redaction:
    """Say where the text is left; with ids, where it will be once those are redacted."""
    records = site.trash.records()
    closed = [record.deletion for record in records if opened(site, record) is None]
    if ids:
        with closing(make_plan(site.reader, ids)) as going:
            found = traces.foresee(going.repository, wanted, going)
    else:
        found = traces.find(site.reader.repository, wanted)
    sealed = (f"the sealed copy of {name}, which does not open" for name in closed)
    ways_out = (*found.ways_out(), *(["bring back the key, or purge the copy"] if closed else ()))
    return replace(
        plan, left=(*found.left(), *sealed), ways_out=ways_out, not_looked_into=found.unread
    )


def _hits(site: Site, wanted: Wanted) -> Redaction:
    """Return which memories hold the text, in how many versions."""
    hits: dict[MemoryId, int] = {}
    for path, blob in _versions(site):
        if holds(wanted, site.reader.repository.blob(blob), path):
            place = parse_path(path)
            assert place is not None  # noqa: S101 - only memory files are asked for
            hits[place.text] = hits.get(place.text, 0) + 1
    head = site.reader.snapshot()
    alive = tuple(name for name in hits if head.blob(name) is not None)
    sealed = [name for name in _in_copies(site, wanted) if name not in hits]
    return Redaction(
        ids=_sorted(alive),
        gone=_sorted(name for name in (*hits, *sealed) if name not in alive),
        versions=sum(hits.values()),
        left=(),
    )


def _versions(site: Site) -> Iterator[tuple[str, ObjectId]]:
    """Yield each version of each memory's file once, on whatever reference it is."""
    repository = site.reader.repository
    seen: set[tuple[str, ObjectId]] = set()
    for commit_id in _commits(site):
        commit = repository.commit(commit_id)
        before = repository.commit(commit.parents[0]).tree if commit.parents else None
        for path, _, blob in repository.changes(before, commit.tree):
            if blob is not None and (path, blob) not in seen and parse_path(path) is not None:
                seen.add((path, blob))
                yield path, blob


def _commits(site: Site) -> list[CommitId]:
    repository = site.reader.repository
    found: dict[CommitId, None] = {}
    for ref in repository.references():
        with suppress(InvalidRevisionError):
            start = repository.resolve(ref)
            if start not in found:
                found.update(dict.fromkeys(commit.id for commit in repository.walk(start)))
    return list(found)


def _in_copies(site: Site, wanted: Wanted) -> list[MemoryId]:
    """Return which deleted memories hold the text in their copies, as far as those open.

    Raises DamagedError if a record cannot be read: nobody knows whose text its copy holds.
    """
    for each in site.trash.damaged():
        raise DamagedError(each.why, hint=way_out(each.deletion))
    found: dict[MemoryId, None] = {}
    for record in site.trash.records():
        for version in opened(site, record) or ():
            if holds(wanted, version.data, parse_id(version.id).path):
                found[version.id] = None
    return list(found)


def _sorted(ids: Iterable[MemoryId]) -> tuple[MemoryId, ...]:
    return tuple(sorted(ids, key=lambda name: parse_id(name).sort_key))
