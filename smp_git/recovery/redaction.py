"""A text taken out of every version of every memory: the old versions erased, the rest brought back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from smp_git.erasure.erase import Receipt, Version, erase
from smp_git.errors import (
    InvalidError,
    InvalidFileError,
    InvalidRevisionError,
    RefusedError,
)
from smp_git.format import document
from smp_git.format.ids import parse_id, parse_path
from smp_git.git.objects import ObjectId
from smp_git.memory import CommitId, MemoryId, Value, check_text
from smp_git.recovery import copies, receipts
from smp_git.recovery.deletion import check_droppable, keep
from smp_git.recovery.rewording import Rewording
from smp_git.recovery.site import Site
from smp_git.recovery.trash import new_deletion

_ACTION: Final = "redact"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redaction:
    """What a redaction did, or would do: memories reworded, memories only in the history gone.

    `left` says in words where the text still stands; `receipt` is None for a dry run
    and where nothing was found.
    """

    ids: tuple[MemoryId, ...]
    gone: tuple[MemoryId, ...]
    versions: int
    left: tuple[str, ...]
    receipt: Receipt | None = None

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "ids": list(self.ids),
            "gone": list(self.gone),
            "versions": self.versions,
            "left": list(self.left),
            "dry_run": self.receipt is None,
            "receipt": self.receipt.as_json() if self.receipt else None,
        }


def compiled(pattern: str | re.Pattern[str]) -> re.Pattern[str]:
    """Return the regex of a plain text or a pattern; raise InvalidError if it fits nothing at all."""
    regex = re.compile(re.escape(pattern)) if isinstance(pattern, str) else pattern
    if regex.search("") is not None:
        raise InvalidError("what is to be redacted is empty, or fits an empty text")
    return regex


def find(site: Site, regex: re.Pattern[str]) -> Redaction:
    """Return what a redaction would do, without doing it."""
    hits: dict[MemoryId, int] = {}
    for path, blob in _versions(site):
        if _is_in(regex, site.reader.repository.blob(blob), path):
            place = parse_path(path)
            assert place is not None  # noqa: S101 - only memory files are asked for
            hits[place.text] = hits.get(place.text, 0) + 1
    head = site.reader.snapshot()
    alive = tuple(name for name in hits if head.blob(name) is not None)
    sealed = [name for name in _in_copies(site, regex) if name not in hits]
    return Redaction(
        ids=_sorted(alive),
        gone=_sorted(name for name in (*hits, *sealed) if name not in alive),
        versions=sum(hits.values()),
        left=_left(site, regex, {*hits, *sealed}),
    )


def redact(site: Site, pattern: str | re.Pattern[str], replacement: str, now: datetime, *, by: str, reason: str | None = None) -> Redaction:  # fmt: skip
    """Take a text out of every version, sealed copies included; it cannot be restored.

    The earlier history of each memory that held it goes, and the memory goes on as a
    life of its own, so that no replica brings the text back. All or nothing: an
    interruption before the text is gone leaves everything as it was.
    """
    regex = compiled(pattern)
    check_text(replacement, "replacement")
    site.sweep()
    plan = find(site, regex)
    ids = (*plan.ids, *plan.gone)
    if not ids:
        return plan
    check_droppable(site, ids)
    _check_by_hand(site, ids)
    deletion = new_deletion(now)
    work = Rewording(site, ids, regex, replacement, now)
    kept: list[str] = []

    def seal(versions: Sequence[Version]) -> None:
        rest = [version for version in versions if version.id not in ids]
        if rest or work.sealed:
            site.trash.check()
            keep(site, deletion, rest, now, by=by, reason=site.reason(reason), more=work.sealed)
            kept.append(deletion)

    receipt = erase(
        site.writer,
        ids,
        reason=site.reason(reason),
        by=by,
        seal=seal,
        now=now,
        deletion=deletion,
        replacement=work,
    )
    copies.follow(site)
    if kept:
        site.trash.confirm(deletion)
    receipts.keep(site.trash.place(deletion), receipt.as_json())
    site.note(_ACTION, at=now, by=by, ids=receipt.ids, deletion=deletion, reason=site.reason(reason))  # fmt: skip
    return replace(plan, receipt=receipt, left=_left(site, regex, set()))


def _check_by_hand(site: Site, ids: Sequence[MemoryId]) -> None:
    """Raise RefusedError if a person has changed one of the files: the edit would be lost."""
    head = site.reader.main()
    for name in ids:
        file = site.reader.path / parse_id(name).path
        if file.is_file() and not file.is_symlink() and file.read_bytes() != head.file(name):
            raise RefusedError(
                f"{file.relative_to(site.reader.path)} was changed by hand, so nothing was redacted",
                hint="commit it with smp commit, or put it back with git checkout, then redact",
            )


def _versions(site: Site) -> Iterator[tuple[str, ObjectId]]:
    """Yield each version of each memory's file once, on whatever reference it stands."""
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


def _is_in(regex: re.Pattern[str], data: bytes, path: str) -> bool:
    if regex.search(data.decode("utf-8", "replace")):
        return True
    try:
        memory = document.decode(data, path)
    except InvalidFileError:
        return False
    return any(regex.search(text) for text in (memory.content, *_texts(dict(memory.fields))))


def _texts(value: Value) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)


def _left(site: Site, regex: re.Pattern[str], going: set[MemoryId]) -> tuple[str, ...]:
    """Say where the text stands that no redaction of memories reaches."""
    repository = site.reader.repository
    commits = [repository.commit(commit_id) for commit_id in _commits(site)]
    messages = sum(
        1
        for commit in commits
        if any(
            regex.search(line) for line in commit.message.splitlines() if not _names(line, going)
        )
    )
    blobs = {repository.find(commit.tree, "metadata.yaml") for commit in commits} - {None}
    metadata = any(regex.search(repository.blob(b).decode("utf-8", "replace")) for b in blobs if b)
    closed = [record.deletion for record in site.trash.records() if not copies.opens(site, record)]
    return (
        *(["metadata.yaml"] if metadata else []),
        *([f"messages of {messages} commits"] if messages else []),
        *(f"the sealed copy of {name}, which does not open" for name in closed),
    )


def _in_copies(site: Site, regex: re.Pattern[str]) -> list[MemoryId]:
    """Return which deleted memories hold the text in their copies, as far as those open."""
    found: dict[MemoryId, None] = {}
    for record in site.trash.records():
        for version in copies.opened(site, record):
            if _is_in(regex, version.data, parse_id(version.id).path):
                found[version.id] = None
    return list(found)


def _names(line: str, ids: set[MemoryId]) -> bool:
    return any(word.rstrip(":") in ids for word in line.split(" "))


def _sorted(ids: Iterator[MemoryId] | Sequence[MemoryId]) -> tuple[MemoryId, ...]:
    return tuple(sorted(ids, key=lambda name: parse_id(name).sort_key))
