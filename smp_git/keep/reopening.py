"""Sessions that do not open: settings, HEAD and branch made readable again, from what is there."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import dialect, metadata
from smp_git.git import addresses, disk, layout, references, staging, storage
from smp_git.git.locks import locked
from smp_git.git.objects import COMMIT, ObjectId, Raw, raw_commit
from smp_git.git.repository import MAIN, Repository
from smp_git.git.survey import Survey
from smp_git.keep.refounding import refound
from smp_git.keep.salvage import Aside, found_in_copy, found_in_remotes, take_pack
from smp_git.model.errors import DamagedError, SessionNotFoundError, SmpError
from smp_git.model.memory import CommitId, Value
from smp_git.model.times import format_time
from smp_git.read.replica import Local
from smp_git.write import recovery
from smp_git.write.handle import Home

_HEAD: Final = f"ref: {MAIN}\n"
_REMOTE: Final = re.compile(
    r'\[remote "([A-Za-z0-9][A-Za-z0-9_-]{0,63})"\][^\[]*?\burl\s*=\s*(\S+)'
)
_TIME: Final = re.compile(rb"^committer .* (\d+) [+-]\d{4}$", re.MULTILINE)


def reopened(
    place: Path, home: Home, copy: Path | None, *, dry_run: bool
) -> Iterator[tuple[str, str]]:
    """Make a session readable again; yield each file with what was done to it."""
    git = place / ".git"
    if not git.is_dir():
        raise SessionNotFoundError(f"no session at {place}")
    if not dry_run:
        for name in ("smp", "objects/info", "objects/pack", "refs/heads", "refs/tags", "info"):
            disk.make_folders(git / name)
    aside = Aside(git, home.clock())
    deadline = time.monotonic() + home.settings.lock_timeout_seconds
    with locked(Local(git).lock_path, deadline, "repairing"):
        if not dry_run:
            recovery.unlock(git, MAIN)
        yield from _settings(git, aside, dry_run=dry_run)
        yield from _head(git, aside, dry_run=dry_run)
        yield from _packed(git, aside, dry_run=dry_run)
        yield from _packs(git, aside, dry_run=dry_run)
        if not dry_run or _opens(place):
            yield from _branch(place, home, copy, aside, dry_run=dry_run)


def _opens(place: Path) -> bool:
    with suppress(SmpError):
        Repository(place).close()
        return True
    return False


def _packs(git: Path, aside: Aside, *, dry_run: bool) -> Iterator[tuple[str, str]]:
    """Put a new pack in the place of each broken one, with what can be read of it."""
    for pack in storage.broken_packs(git / "objects"):
        kept = f"{take_pack(git, pack, aside)} objects" if not dry_run else "what can be read"
        path = f".git/objects/pack/{pack.name}"
        yield path, f"{pack.name} is broken: {kept} of it stored anew, and the file kept aside"


def _settings(git: Path, aside: Aside, *, dry_run: bool) -> Iterator[tuple[str, str]]:
    """Write Git's settings anew if they cannot be read, with the remotes that they still name."""
    file = git / "config"
    if layout.is_configured(git):
        return
    text = file.read_bytes().decode("utf-8", "replace") if file.exists() else ""
    remotes = dict(_REMOTE.findall(text))
    if not dry_run:
        if file.exists():
            aside.take(file)
        layout.configure(git)
        for name, address in remotes.items():
            with suppress(SmpError):
                addresses.add(git, name, address)
    named = (
        f" with the remotes {', '.join(remotes)}" if remotes else "; remotes have to be added again"
    )
    yield ".git/config", f"Git's settings could not be read, and are written anew{named}"


def _head(git: Path, aside: Aside, *, dry_run: bool) -> Iterator[tuple[str, str]]:
    """Let HEAD name main if it names nothing."""
    file = git / "HEAD"
    if layout.is_head_named(git):
        return
    if not dry_run:
        if file.exists():
            aside.take(file)
        disk.replace_durably(file, _HEAD.encode(), git / "smp" / "head.tmp")
    yield ".git/HEAD", "HEAD named nothing, and names main again"


def _packed(git: Path, aside: Aside, *, dry_run: bool) -> Iterator[tuple[str, str]]:
    """Take what cannot be read out of `packed-refs`."""
    if references.is_packed_whole(git):
        return
    if not dry_run:
        aside.keep("packed-refs", disk.content(git / "packed-refs") or b"")
        references.drop_unreadable(git)
    yield ".git/packed-refs", "lines of packed-refs could not be read, and are kept aside"


def _branch(
    place: Path, home: Home, copy: Path | None, aside: Aside, *, dry_run: bool
) -> Iterator[tuple[str, str]]:
    """Point main at the newest commit that can be read, if it names none."""
    repository = Repository(place)
    try:
        refs, torn = references.read_each(repository.git)
        tip = refs.get(MAIN)
        if tip is not None and MAIN not in torn and _is_session(repository, tip, deep=False):
            return
        if tip is not None and not dry_run:
            source = _stored_from(place, home, copy, tip)
            if source is not None:
                yield MAIN, f"the commit of main, {tip[:12]}, was lost, and is back from {source}"
                return
        found = _newest(repository, {ref: each for ref, each in refs.items() if ref != MAIN})
        if found is None:
            count = refound(repository, home, dry_run=dry_run)
            if count is not None:
                yield (
                    MAIN,
                    f"no commit can be read: {count} memories of the folder begin a new history",
                )
                return
            raise DamagedError(
                f"session {place.name} has no commit that can be read",
                hint="smp clone brings it from a remote; a backup of its folder has it",
            )
        if not dry_run:
            _point(repository, found, aside)
        was = f"named {tip[:12]}, which cannot be read" if tip else "named no commit"
        at = format_time(datetime.fromtimestamp(found.seconds, UTC))
        yield (
            MAIN,
            f"main {was}: it names {found.name.hex()[:12]} of {at} now, the newest that is whole",
        )
    finally:
        repository.close()


def _is_session(repository: Repository, name: CommitId, *, deep: bool = True) -> bool:
    """Whether a commit can be read, and is one of a session."""
    with suppress(SmpError):
        commit = repository.commit(name)
        return not deep or metadata.PATH in repository.tree(commit.tree)
    return False


def _stored_from(place: Path, home: Home, copy: Path | None, tip: CommitId) -> str | None:
    """Store a lost commit from a copy or a remote that has it; return which."""
    objects, names = place / ".git/objects", [bytes.fromhex(tip)]
    found = found_in_copy(place / ".git", copy, names) if copy is not None else ()
    for each, source in chain(found, found_in_remotes(place, home, names)):
        with storage.Written(objects) as written:
            storage.store(objects, [each], written)
            written.flush()
        return source
    return None


def _point(repository: Repository, found: _Candidate, aside: Aside) -> None:
    file = repository.git / MAIN
    if file.is_dir():
        disk.remove_empty_folders(file)
    elif file.exists():
        aside.take(file)
    repository.point({MAIN: CommitId(found.name.hex())})


# Commits that no reference leads to


class _Candidate(NamedTuple):
    seconds: int
    is_recorded: bool
    name: bytes
    raw: Raw


def _commits(repository: Repository) -> dict[bytes, Raw]:
    """Return every commit that the store has and that can be read."""
    out: dict[bytes, Raw] = {}
    objects = repository.git / "objects"
    names = {name for name, _ in storage.loose(objects)}
    for index in storage.indexes(objects):
        with suppress(DamagedError):
            names.update(storage.names(index))
    for name in names:
        with suppress(DamagedError, ValueError):
            if repository.kind(name) == COMMIT:
                out[name] = raw_commit(repository.raw(name)[1])
    return out


def _candidate(name: bytes, raw: Raw, recorded: ObjectId | None) -> _Candidate:
    match = _TIME.search(raw.rest)
    return _Candidate(int(match[1]) if match else 0, raw.tree.hex() == recorded, name, raw)


def _newest(repository: Repository, others: Mapping[str, CommitId]) -> _Candidate | None:
    """Return the newest commit of the session that no other reference leads to, else of all."""
    there = _commits(repository)
    recorded = staging.recorded_tree(repository.git)
    sessions = {
        name: raw for name, raw in there.items() if _is_session(repository, CommitId(name.hex()))
    }
    beside = _reached(there, [bytes.fromhex(each) for each in others.values()])
    above = {parent for raw in sessions.values() for parent in raw.parents}
    found = [_candidate(name, raw, recorded) for name, raw in sessions.items()]
    own = [each for each in found if each.name not in beside and each.name not in above]
    noted = [each for each in found if each.is_recorded]
    tips = [each for each in found if each.name not in above]
    return max(own or noted or tips or found, default=None)


def _reached(there: Mapping[bytes, Raw], tips: list[bytes]) -> set[bytes]:
    seen, waiting = set[bytes](), list(tips)
    while waiting:
        name = waiting.pop()
        if name in there and name not in seen:
            seen.add(name)
            waiting += there[name].parents
    return seen


def newest_dangling(repository: Repository, seen: Survey) -> dict[bytes, bytes]:
    """Return what each lost commit can have come from: the newest that nothing leads to any more.

    It and what led to it are put among the commits of the survey.
    """
    there = _commits(repository)
    rest = {name: raw for name, raw in there.items() if name not in seen.commits}
    above = {parent for raw in rest.values() for parent in raw.parents}
    tips = sorted(_candidate(name, raw, None) for name, raw in rest.items() if name not in above)
    out: dict[bytes, bytes] = {}
    for name, raw in list(seen.commits.items()):
        for parent in raw.parents:
            before = [each for each in tips if each.seconds <= _candidate(name, raw, None).seconds]
            if parent in seen.lost and before and parent not in out:
                chosen = before[-1]
                if name in _reached(there, [chosen.name]):
                    continue
                out[parent] = chosen.name
                for each in _reached(there, [chosen.name]):
                    seen.add(repository, each)
    return out


def made_metadata(repository: Repository, seen: Survey) -> bytes:
    """Return what can still be said of a session whose own file is lost."""
    times = [_candidate(name, raw, None).seconds for name, raw in seen.commits.items()]
    created = datetime.fromtimestamp(min(times, default=0), UTC)
    said: dict[str, Value] = {
        "id": repository.path.name,
        "uid": secrets.token_hex(16),
        **metadata.KNOWN,
        "created_at": format_time(created),
        "agents": [],
        "tags": [],
    }
    return dialect.write(said).encode()
