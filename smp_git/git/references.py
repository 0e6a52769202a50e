"""References of a repository: read, all moved at once, and where their histories part."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from heapq import heapify, heappop, heappush
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from smp_git.git import disk
from smp_git.git.objects import Commit
from smp_git.model.errors import DamagedError, LockedError
from smp_git.model.memory import CommitId

if TYPE_CHECKING:
    from smp_git.git.repository import Repository

_ID = re.compile(r"[0-9a-f]{40}")
_PACKED_LINE = re.compile(r"#.*|\^[0-9a-f]{40}|[0-9a-f]{40} refs/\S+")
_SYMBOLIC: Final = "ref: "
_ZERO: Final = "0" * 40
# Git needs `refs/heads` and its like, empty or not.
_OWN_FOLDERS: Final = 2
# As long as Git itself takes to pack very many.
_LOCK_SECONDS: Final = 10.0
_PACKED_LOCK: Final = "packed-refs.lock"
_OWN_LOCK: Final = "smp/packed-lock"
STASH: Final = "refs/stash"
STASH_LOG: Final = f"logs/{STASH}"
HEAD: Final = "HEAD"
# A line of a log begins with where the reference was and is.
_TWO_IDS: Final = 81

HEADS: Final = "refs/heads/"
TAGS: Final = "refs/tags/"
# Plain Git moves its own notes of a remote with every fetch and push, so they prove nothing.
REMOTES: Final = "refs/remotes/"
SEEN: Final = "refs/smp/seen/"
ACCESS: Final = "refs/smp/access/"
# The mark of a replica that waits for its turn at a remote; it is only there.
WAITING: Final = "refs/smp/waiting/"
# What is part of a session wherever it is.
TRAVELLING: Final = (HEADS, TAGS, ACCESS)


class StashEntry(NamedTuple):
    """One line of the stash's reflog."""

    id: str
    who: str
    message: str


def read(git: Path) -> dict[str, str]:
    """Return what every reference names; symbolic ones are left out, a detached HEAD is not."""
    # Before the packed ones: Git packs a reference first and removes its file then.
    loose = [(name, _value(f"{git}/{name}", name)) for name in _files(f"{git}/refs", "refs")]
    found = _packed(git)
    for name, value in loose:
        if value is None:
            found.pop(name, None)
        elif value:
            found[name] = value
    detached = _value(f"{git}/{HEAD}", HEAD)
    return found | ({HEAD: detached} if detached else {})


def read_each(git: Path) -> tuple[dict[str, CommitId], dict[str, str]]:
    """Return what every reference names, and what is wrong with those that cannot be read."""
    found = {name: CommitId(tip) for name, tip in _packed(git).items() if _ID.fullmatch(tip)}
    torn: dict[str, str] = {}
    for name in _files(f"{git}/refs", "refs"):
        try:
            value = _value(f"{git}/{name}", name)
        except (DamagedError, OSError):
            torn[name] = f"{name} names no commit"
            found.pop(name, None)
            continue
        if value is None:
            found.pop(name, None)
        elif value:
            found[name] = CommitId(value)
    return found, torn


def _files(folder: str, above: str) -> Iterator[str]:
    try:
        with os.scandir(folder) as entries:
            found = sorted(entries, key=lambda entry: entry.name)
    except FileNotFoundError:
        return
    for entry in found:
        name = f"{above}/{entry.name}"
        if entry.is_dir(follow_symlinks=False):
            yield from _files(entry.path, name)
        elif entry.is_file() and not name.endswith(".lock"):
            yield name


def _value(path: str, name: str) -> str | None:
    """Return what a reference's own file says: None if another reference, empty if it is gone."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - asked of every reference, often
            text = file.read().decode("ascii", "replace").strip()
    except FileNotFoundError:
        return ""
    if text.startswith(_SYMBOLIC):
        return None
    if not _ID.fullmatch(text):
        raise DamagedError(f"{name} of session {path} cannot be read")
    return text


def _packed(git: Path) -> dict[str, str]:
    try:
        lines = (git / "packed-refs").read_text("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        return {}
    rows = (line.split(" ", 1) for line in lines if line[:1] not in ("#", "^", ""))
    return {name: value for value, name in rows}


def write_packed(git: Path, changes: Mapping[str, str | None]) -> None:
    """Bring `packed-refs` up to date; references it does not hold are not added."""
    with _packing(git) as lock:
        _rewrite(git, lock, changes)


@contextmanager
def _packing(git: Path) -> Iterator[Path]:
    """Hold Git's lock of `packed-refs`, so that no reference is being packed; yield its file."""
    lock = git / _PACKED_LOCK
    with disk.linked(git / _OWN_LOCK, lock, _LOCK_SECONDS) as mine:
        if not mine:
            raise LockedError(
                f"another Git process holds {lock}",
                hint="wait for it to end; if none runs, remove that file",
            )
        yield lock


def is_locked_by_us(git: Path) -> bool:
    """Whether a process of ours has not let go of `packed-refs`."""
    return (git / _OWN_LOCK).exists()


def drop_own_lock(git: Path) -> None:
    """Remove the lock of `packed-refs` that a dead process of ours left."""
    disk.drop_own_lock(git / _OWN_LOCK, git / _PACKED_LOCK)


def _rewrite(git: Path, lock: Path, changes: Mapping[str, str | None]) -> None:
    found = _packed(git)
    kept = {
        name: new for name, value in found.items() if (new := changes.get(name, value)) is not None
    }
    if kept != found:
        text = "".join(f"{value} {name}\n" for name, value in sorted(kept.items()))
        disk.replace_durably(git / "packed-refs", text.encode("utf-8", "surrogateescape"), lock)


def collisions(new: Iterable[str], there: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield new references with those that they cannot be beside: one is the other's folder."""
    known = set(there)
    inside = {above: ref for ref in known for above in _above(ref)}
    for ref in new:
        found = [inside.get(ref), *(above for above in _above(ref) if above in known)]
        yield from ((ref, other) for other in found if other is not None)


def _above(ref: str) -> Iterator[str]:
    """Yield the folders in which a reference is."""
    while ref := ref.rpartition("/")[0]:
        yield ref


def drop(git: Path, name: str) -> None:
    """Remove a reference, and the folders that it leaves empty; the caller holds the session's lock."""
    with _packing(git) as lock:
        _rewrite(git, lock, {name: None})
        with suppress(FileNotFoundError, NotADirectoryError):
            (git / name).unlink()
    # A folder that is left is in the way of a reference of its name.
    top = "/".join(name.split("/")[:_OWN_FOLDERS])
    disk.remove_empty_above(git / name, git / top)


def is_packed_whole(git: Path) -> bool:
    """Whether every line of `packed-refs` can be read."""
    return _unreadable_lines(git) == []


def _unreadable_lines(git: Path) -> list[str]:
    text = (disk.content(git / "packed-refs") or b"").decode("utf-8", "surrogateescape")
    return [line for line in text.splitlines() if not _PACKED_LINE.fullmatch(line)]


def drop_unreadable(git: Path) -> None:
    """Write `packed-refs` anew with the lines that can be read; the caller holds the session's lock."""
    text = (disk.content(git / "packed-refs") or b"").decode("utf-8", "surrogateescape")
    kept = "".join(f"{line}\n" for line in text.splitlines() if _PACKED_LINE.fullmatch(line))
    with _packing(git) as lock:
        disk.replace_durably(git / "packed-refs", kept.encode("utf-8", "surrogateescape"), lock)


def forget_in_logs(git: Path, names: Collection[str]) -> None:
    """Take the lines that name some commits out of the logs of references."""
    gone = {name.encode() for name in names}
    for log in (git / "logs").rglob("*"):
        if log.is_dir() or log == git / STASH_LOG:
            continue
        lines = log.read_bytes().splitlines(keepends=True)
        kept = [line for line in lines if not gone & set(line[:_TWO_IDS].split())]
        if kept != lines:
            disk.replace_file(log, b"".join(kept), git / "smp" / "log.tmp")


def read_stash(git: Path) -> list[StashEntry]:
    """Return the entries of the stash, oldest first."""
    try:
        lines = (git / STASH_LOG).read_text("utf-8", "surrogateescape").splitlines()
    except FileNotFoundError:
        return []
    out = []
    for line in lines:
        head, _, message = line.partition("\t")
        _, new, who = head.split(" ", 2)
        out.append(StashEntry(new, who, message))
    return out


def write_stash(git: Path, entries: list[StashEntry]) -> None:
    """Replace the entries of the stash."""
    before = [_ZERO, *(entry.id for entry in entries)]
    text = "".join(
        f"{old} {entry.id} {entry.who}\t{entry.message}\n"
        for old, entry in zip(before, entries, strict=False)
    )
    scratch = git / "smp" / "stash.tmp"
    disk.replace_file(git / STASH_LOG, text.encode("utf-8", "surrogateescape"), scratch)


_LEFT: Final = 1
_RIGHT: Final = 2
_BOTH: Final = 3
# An ancestor of a common one: common too, but no base.
_BELOW: Final = 4


def merge_bases(repository: Repository, left: CommitId, right: CommitId) -> list[CommitId]:
    """Return the common ancestors that no other one descends from, sorted; empty if unrelated."""
    one = repository.common(left, right)
    if one in (None, left, right):
        return [one] if one else []
    found = _common(repository, left, right)
    if len(found) > 1:
        found = independent(repository, found)
    return sorted(found)


def is_ancestor(repository: Repository, older: CommitId, newer: CommitId) -> bool:
    """Whether `newer` is `older` or descends from it."""
    return repository.common(older, newer) == older


def independent(repository: Repository, commits: Iterable[CommitId]) -> list[CommitId]:
    """Return the commits that are no ancestors of another one among them, sorted."""
    names = set(commits)
    return sorted(
        name
        for name in names
        if not any(name in _common(repository, name, other) for other in names - {name})
    )


def _common(repository: Repository, left: CommitId, right: CommitId) -> list[CommitId]:
    """Return the common ancestors met first, which clocks that run apart may make too many."""
    seen: dict[CommitId, int] = {left: _LEFT}
    seen[right] = seen.get(right, 0) | _RIGHT
    queue: list[tuple[float, CommitId]] = []
    found: dict[CommitId, None] = {}

    def add(name: CommitId) -> None:
        heappush(queue, (-repository.commit(name).time.timestamp(), name))

    for name in seen:
        add(name)
    while any(not seen[name] & _BELOW for _, name in queue):
        _, name = heappop(queue)
        sides = seen[name]
        if sides & _BOTH == _BOTH:
            if not sides & _BELOW:
                found[name] = None
            sides |= _BELOW
        for parent in repository.commit(name).parents:
            known = seen.get(parent, 0)
            if known | sides != known:
                seen[parent] = known | sides
                add(parent)
    return [name for name in found if not seen[name] & _BELOW]


def newest_first(
    repository: Repository, tip: CommitId, follow: Callable[[Commit], Iterable[CommitId]]
) -> Iterator[Commit]:
    """Yield a commit and what `follow` leads to from each, reading no further than asked."""
    seen = {tip}
    queue = [(-repository.commit(tip).time.timestamp(), tip)]
    while queue:
        commit = repository.commit(heappop(queue)[1])
        yield commit
        for parent in set(follow(commit)) - seen:
            seen.add(parent)
            heappush(queue, (-repository.commit(parent).time.timestamp(), parent))


def only_in(repository: Repository, tip: CommitId, others: Iterable[CommitId]) -> list[Commit]:
    """Return the commits that `tip` has and none of the others, newest first."""
    seen: dict[CommitId, int] = dict.fromkeys(others, _RIGHT)
    seen[tip] = seen.get(tip, 0) | _LEFT
    queue = [(-repository.commit(name).time.timestamp(), name) for name in seen]
    heapify(queue)
    while any(not seen[name] & _RIGHT for _, name in queue):
        name = heappop(queue)[1]
        for parent in repository.commit(name).parents:
            known = seen.get(parent, 0)
            if known | seen[name] != known:
                seen[parent] = known | seen[name]
                heappush(queue, (-repository.commit(parent).time.timestamp(), parent))
    wanted = sum(sides == _LEFT for sides in seen.values())
    found = (commit for commit in repository.walk(tip) if seen.get(commit.id) == _LEFT)
    return list(islice(found, wanted))
