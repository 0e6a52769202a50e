"""A text taken out of every version of every memory: the old versions erased, the rest brought back."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from types import MappingProxyType
from typing import Final

from smp_git.erasure.erase import Receipt, Version, erase
from smp_git.errors import (
    DamagedError,
    InvalidError,
    InvalidFileError,
    InvalidRevisionError,
    RefusedError,
)
from smp_git.format import document
from smp_git.format.ids import parse_id, parse_path
from smp_git.git.objects import ObjectId
from smp_git.memory import CommitId, Memory, MemoryId, Value, check_fields, check_text, title_of
from smp_git.recovery import receipts
from smp_git.recovery.deletion import check_droppable, drop_copies, items_of
from smp_git.recovery.record import Record
from smp_git.recovery.restore import renewed, staging
from smp_git.recovery.seal import Kept
from smp_git.recovery.site import Site
from smp_git.recovery.trash import PLAIN, REDACTING, new_deletion

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
    return Redaction(
        ids=_sorted(alive),
        gone=_sorted(name for name in hits if name not in alive),
        versions=sum(hits.values()),
        left=_left(site, regex, set(hits)),
    )


def redact(site: Site, pattern: str | re.Pattern[str], replacement: str, now: datetime, *, by: str, reason: str | None = None) -> Redaction:  # fmt: skip
    """Take a text out of every version; what was redacted cannot be restored.

    The earlier history of each memory that held it goes. The redacted texts stand beside
    the session until they are back, so that an interruption loses nothing.
    """
    regex = compiled(pattern)
    check_text(replacement, "replacement")
    finish(site)
    plan = find(site, regex)
    if not plan.ids and not plan.gone:
        return plan
    check_droppable(site, (*plan.ids, *plan.gone))
    deletion = new_deletion(now) + REDACTING
    receipt = erase(
        site.writer,
        (*plan.ids, *plan.gone),
        reason=site.reason(reason),
        by=by,
        seal=_Keeper(site, regex, replacement, deletion, now, by).keep,
        now=now,
        deletion=deletion,
    )
    finish(site)
    drop_copies(site, receipt.ids)
    receipts.keep(site.trash.place(deletion), receipt.as_json())
    site.note(_ACTION, at=now, by=by, ids=receipt.ids, deletion=deletion, reason=site.reason(reason))  # fmt: skip
    return replace(plan, receipt=receipt, left=_left(site, regex, set()))


@dataclass(frozen=True, slots=True)
class _Keeper:
    """Keeps the redacted texts while the versions that held the secret are erased."""

    site: Site
    regex: re.Pattern[str]
    replacement: str
    deletion: str
    now: datetime
    by: str

    def keep(self, versions: Sequence[Version]) -> None:
        """Keep what the memories at head say, redacted."""
        head = self.site.reader.snapshot()
        latest = {version.id: version for version in versions}
        kept = []
        for name, version in latest.items():
            data = head.file(name)
            if data is not None:
                text = reworded(data, parse_id(name).path, self.regex, self.replacement)
                kept.append(_kept(version, text))
        trash = self.site.trash
        trash.keep(
            Record(
                deletion=self.deletion,
                session_id=trash.session_id,
                session_uid=trash.uid,
                deleted_at=self.now,
                deleted_by=self.by,
                reason=None,
                items=tuple(items_of(versions)),
                recovery_deadline=self.now + trash.retention,
                backup=PLAIN,
                action=_ACTION,
            ),
            kept,
        )


def _kept(version: Version, data: bytes) -> Kept:
    return Kept(
        id=version.id,
        generation=version.generation,
        at=version.at,
        agent=version.agent,
        commit=version.commit,
        current=True,
        data=data,
    )


def finish(site: Site) -> None:
    """Bring back the redacted texts that are not back yet, and remove the copies of them."""
    site.sweep()
    for record in site.trash.records():
        if record.action != _ACTION:
            continue
        known, head = site.tombstones(), site.reader.snapshot()
        files = {
            version.id: data
            for version in site.trash.versions(record)
            if head.blob(version.id) is None
            and not known.is_purged(version.id)
            and (data := renewed(version.id, version.data, known.limit(version.id) + 1)) is not None
        }
        if files:
            site.writer.run(record.deleted_by, staging(files), subject="restore batch")
        site.trash.drop(record)


def reworded(data: bytes, path: str, regex: re.Pattern[str], replacement: str) -> bytes:
    """Return a memory's file without what `regex` fits; raise RefusedError if it does not parse."""
    try:
        old = document.decode(data, path)
    except InvalidFileError as error:
        raise RefusedError(
            f"a file that holds the text cannot be read: {error.message}",
            hint="mend it by hand and run smp commit, or delete the memory",
        ) from None
    new = _reworded(old, regex, replacement)
    kept = document.edited(data, old, new)
    # A comment of a person may hold it too; then the file is written anew.
    return document.encode(new) if regex.search(kept.decode()) else kept


def _reworded(memory: Memory, regex: re.Pattern[str], replacement: str) -> Memory:
    place = parse_id(memory.id)
    fields = _cleared(dict(memory.fields), regex, replacement)
    assert isinstance(fields, dict)  # noqa: S101 - a mapping stays one
    content = document.check_content(place.kind, regex.sub(lambda _: replacement, memory.content))
    checked = check_fields(place.kind, fields)
    return replace(
        memory,
        content=content,
        title=title_of(content, checked) or document.default_title(place),
        tags=tuple(tag for tag in memory.tags if not regex.search(tag)),
        fields=MappingProxyType(checked),
    )


def _cleared(value: Value, regex: re.Pattern[str], replacement: str) -> Value:
    if isinstance(value, str):
        return regex.sub(lambda _: replacement, value)
    if isinstance(value, dict):
        return {
            regex.sub(lambda _: replacement, key): _cleared(item, regex, replacement)
            for key, item in value.items()
        }
    if isinstance(value, list):
        return [_cleared(item, regex, replacement) for item in value]
    return value


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
    copies = _in_copies(site, regex, going)
    return (
        *(["metadata.yaml"] if metadata else []),
        *([f"messages of {messages} commits"] if messages else []),
        *(f"the sealed copy of {name}" for name in copies),
    )


def _in_copies(site: Site, regex: re.Pattern[str], going: set[MemoryId]) -> list[str]:
    """Return which deleted memories hold the text in their copies, as far as those open."""
    found: dict[str, None] = {}
    for record in site.trash.records():
        try:
            versions = site.trash.versions(record) if record.action != _ACTION else []
        except DamagedError:
            found["a deletion that cannot be opened"] = None
            continue
        for version in versions:
            if version.id not in going and _is_in(regex, version.data, parse_id(version.id).path):
                found[version.id] = None
    return list(found)


def _names(line: str, ids: set[MemoryId]) -> bool:
    return any(word.rstrip(":") in ids for word in line.split(" "))


def _sorted(ids: Iterator[MemoryId] | Sequence[MemoryId]) -> tuple[MemoryId, ...]:
    return tuple(sorted(ids, key=lambda name: parse_id(name).sort_key))
