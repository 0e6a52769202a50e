"""A text taken out of every version of every memory: the old versions erased, the rest brought back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from datetime import datetime

from smp_git.git.objects import ObjectId
from smp_git.model.errors import DamagedError, InvalidError, InvalidRevisionError
from smp_git.model.ids import parse_id, parse_path
from smp_git.model.memory import CommitId, MemoryId, check_text
from smp_git.remove import derived, traces
from smp_git.remove.delete import put_right
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import Receipt, RewriteOrder
from smp_git.remove.history.plan import make_plan
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.interrupted import site_of
from smp_git.remove.rewording import Rewording, check_by_hand
from smp_git.remove.site import Site, check_droppable, drop_ended, keep, opened
from smp_git.remove.trash import new_deletion, way_out
from smp_git.remove.wanted import Wanted, holds, refuse_key
from smp_git.write.handle import Handle


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """Result or plan of a redaction: memories reworded, memories only in the history gone.

    `left` says with counts in what kinds of places the text is left, `ways_out` what
    can be done about them; `receipt` is None for a dry run and where no memory held it.
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
    ids, deletion = (*plan.ids, *plan.gone), new_deletion(now)
    work = Rewording(site, ids, wanted, replacement, now)
    done: list[Redaction] = []

    def seal(versions: Sequence[DeadVersion]) -> None:
        rest = [version for version in versions if version.id not in ids]
        if rest or work.sealed:
            site.trash.check()
            keep(site, deletion, [*rest, *work.sealed], now, by=by, reason=why)

    def settle(receipt: Receipt) -> Receipt:
        drop_ended(site)
        site.trash.settle(deletion)
        found = _left(site, plan, again)
        receipt = replace(receipt, redacted=True, left=found.left)
        site.keep_receipt("redact", receipt, why)
        done.append(replace(found, receipt=receipt))
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
    erase(site.writer, ids, order)
    return done[0]


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


def _sorted(ids: Iterator[MemoryId] | Sequence[MemoryId]) -> tuple[MemoryId, ...]:
    return tuple(sorted(ids, key=lambda name: parse_id(name).sort_key))
