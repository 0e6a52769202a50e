"""Dead objects, and every file that `.git` and the folder keep of the deleted, removed."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format.records import Tombstones
from smp_git.git import command, disk, layout, locks, packing, staging, storage
from smp_git.git.objects import COMMIT, TREE, ObjectId, raw_commit
from smp_git.git.repository import Repository
from smp_git.model.errors import InvalidError
from smp_git.model.ids import INDEX, Id, is_index, parse_id, parse_path
from smp_git.read.replica import ACCESSES, LEFT, PENDING, VECTORS, Local, Use, use_of
from smp_git.remove.history import journal, reading
from smp_git.remove.history.judge import Judge, items, mentions, without_counts
from smp_git.remove.history.reading import TAG, Read
from smp_git.remove.history.rewrite import Rewriter, pages_of

# Files of `.git` that hold or may hold something of what was there before.
_STALE: Final = (
    "ORIG_HEAD", "FETCH_HEAD", "MERGE_HEAD", "AUTO_MERGE", "MERGE_AUTOSTASH", "COMMIT_EDITMSG",
    "MERGE_MSG", "MERGE_RR", "SQUASH_MSG", "TAG_EDITMSG", "NOTES_EDITMSG", "EDIT_DESCRIPTION",
    "objects/info/commit-graph", "objects/info/packs", "objects/pack/multi-pack-index",
    "gc.log", "info/refs",
)  # fmt: skip
_STALE_FOLDERS: Final = (
    "rr-cache", "lost-found", "objects/info/commit-graphs", "objects/pack/multi-pack-index.d",
    "NOTES_MERGE_WORKTREE",
)  # fmt: skip
_STALE_PATTERNS: Final = (
    "sharedindex.*", "objects/pack/multi-pack-index-*", "objects/pack/tmp_*", "objects/pack/.tmp-*",
    "objects/*/tmp_obj*", "objects/tmp_[!o]*", "objects/tmp_obj_*", "*.stash.*", "*~", ".*.sw?",
)  # fmt: skip
_KEPT_LOG: Final = "refs/stash"
_NUMBERED: Final = re.compile(
    r"(?<![A-Za-z0-9_-])([A-Za-z]+-[0-9]{4,18})(?![A-Za-z0-9_])(-[a-z][a-z0-9]{3}(?=\.))?"
)
_LOOSE: Final = re.compile(r"[0-9a-f]{40}")


class Removed(NamedTuple):
    """Number and size of the objects that were removed."""

    objects: int = 0
    bytes: int = 0


# Which objects are dead


def dead(
    repository: Repository,
    rewriter: Rewriter,
    tips: Iterable[bytes],
    known: Tombstones,
    holds: Callable[[bytes], bool],
) -> set[bytes]:
    """Return the objects that nothing reaches: no reference, no stash, not Git's index.

    What was written since this deletion began may be on its way into a reference: it stays
    unless it holds the deleted, which `holds` tells of the bytes of a file or message.
    """
    git = repository.git
    there = set(storage.stored_names(git / "objects"))
    staged = staging.named(git)
    edited = map(bytes.fromhex, Local(git).left_alone().values())
    alive = command.reachable(git, {*tips, *(staged.trees & there)}) | staged.blobs | {*edited}
    unreachable = there - alive
    fresh = _fresh(git, unreachable)
    gone = unreachable - fresh | (rewriter.replaced - alive)
    return gone | _strays(repository.raw, fresh - gone, gone, Judge(known), holds)


def _fresh(git: Path, names: set[bytes]) -> set[bytes]:
    """Return those objects that were written, or asked for by a writer, since the deletion began."""
    since = locks.kept_out_since(git)
    found = {
        name
        for name, path in storage.loose(git / "objects")
        if name in names and _age(path) >= since
    }
    for index in storage.indexes(git / "objects"):
        if max(_age(index), _age(index.with_suffix(".pack"))) >= since:
            found.update(names.intersection(storage.names(index)))
    return found


def _age(path: Path) -> int:
    try:
        return path.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _strays(
    read: Read, strays: set[bytes], left: set[bytes], judge: Judge, holds: Callable[[bytes], bool]
) -> set[bytes]:
    """Return those objects that hold the deleted, or need one that does or that is gone."""
    found: set[bytes] = set()
    needs: dict[bytes, list[bytes]] = {}
    for name in strays:
        kind, data = read(name)
        needs[name] = _needed(kind, data)
        if kind == TREE:
            gone = (entry.id for entry in reading.entries(data) if _is_gone_file(entry.name, judge))
            found.update(strays.intersection(gone))
        elif _holds(kind, data, judge) or holds(data):
            found.add(name)
    while more := [n for n in strays - found if any(e in found or e in left for e in needs[n])]:
        found.update(more)
    return found


def _needed(kind: bytes, data: bytes) -> list[bytes]:
    """Return the objects that an object names."""
    if kind == COMMIT:
        raw = raw_commit(data)
        return [raw.tree, *raw.parents]
    if kind == TAG:
        return [bytes.fromhex(data[7:47].decode())]
    return reading.children(data) if kind == TREE else []


def _is_gone_file(name: bytes, judge: Judge) -> bool:
    stem, _, suffix = name.rpartition(b".")
    return suffix in (b"yaml", b"md") and judge.concerns(stem)


def _holds(kind: bytes, data: bytes, judge: Judge) -> bool:
    """Whether a file is of a gone memory or an index with its line, or a message names it."""
    if kind == COMMIT:
        return any(map(judge.concerns, mentions(raw_commit(data).message)))
    if judge.is_dead_file(data) or judge.is_in_readme(data):
        return True
    if b'"id"' not in data and b"id:" not in data:
        return False
    return any(map(judge.is_dead_item, items(data)[1]))


# Objects


def remove_objects(repository: Repository, gone: set[bytes]) -> Removed:
    """Take dead objects off the disk; the caller holds the lock and published the new history."""
    objects = repository.git / "objects"
    packed = _packed(objects, gone)
    size = sum(path.stat().st_size for path in packed)
    if packed:
        size -= _repack(repository, packed, gone)
    for folder in sorted({name[0] for name in gone}):
        size += _unlink_loose(objects / f"{folder:02x}", gone)
    journal.reached("loose removed")
    return Removed(len(gone), size)


def _packed(objects: Path, gone: set[bytes]) -> list[Path]:
    """Return the packs that hold a dead object."""
    return [
        index.with_suffix(".pack")
        for index in storage.indexes(objects)
        if not gone.isdisjoint(storage.names(index))
    ]


def _repack(repository: Repository, old: list[Path], gone: set[bytes]) -> int:
    """Put what lives of some packs into one, and remove them; return the new one's size."""
    folder = repository.git / "objects" / "pack"
    before = set(folder.glob("*.pack"))
    elsewhere = {name for pack in before - set(old) for name in _names(pack)}
    names = {name for pack in old for name in _names(pack)} - gone - elsewhere
    if names:
        command.pack_objects(repository.git, sorted(names))
    journal.reached("repacked")
    made = set(folder.glob("*.pack")) - before
    for _ in packing.remove_packs(folder, old):
        journal.reached("pack removed")
    return sum(path.stat().st_size for path in made)


def _names(pack: Path) -> list[bytes]:
    return storage.names(pack.with_suffix(".idx"))


def _unlink_loose(folder: Path, gone: set[bytes]) -> int:
    """Remove the dead objects of a folder; return their size."""
    size = 0
    if not folder.is_dir():
        return size
    for file in os.scandir(folder):
        name = folder.name + file.name
        if _LOOSE.fullmatch(name) and bytes.fromhex(name) in gone:
            size += file.stat().st_size
            os.unlink(file.path)  # noqa: PTH108 - tens of thousands of them
    return size


# Stale files


def tidy(git: Path, known: Tombstones) -> None:
    """Remove what `.git` keeps of the time before: logs, messages, caches, scratch files."""
    layout.sweep_scratch(git)
    storage.drop_marks(git / "objects")
    for name in (*_STALE, *_STALE_FOLDERS):
        _drop(git / name)
    for pattern in _STALE_PATTERNS:
        for path in git.glob(pattern):
            _drop(path)
    for quarantine in (git / "objects").glob("tmp_objdir-*"):
        # At once, so that a push that fills it at this moment fails as a whole.
        aside = git / "smp" / quarantine.name
        quarantine.rename(aside)
        _drop(aside)
    _drop_halves(git / "objects" / "pack")
    for log in sorted((git / "logs").rglob("*")):
        if not log.is_dir() and log.relative_to(git / "logs").as_posix() != _KEPT_LOG:
            log.unlink(missing_ok=True)
    _tidy_local(git / "smp", known)


def drop_vectors(git: Path) -> None:
    """Remove the vectors of memories whose files are no longer among the objects."""
    path = git / "smp" / VECTORS
    if path.exists():
        # The search is loaded by no other step of a deletion, a restoration or a sync.
        from smp_git.ask.text.meanings import keep_vectors  # noqa: PLC0415

        keep_vectors(path, set(storage.stored_names(git / "objects")))


def _drop(path: Path) -> None:
    """Remove a file, or a folder with everything in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def drop_logs_of(git: Path, gone: Collection[bytes]) -> None:
    """Remove the logs of references that name an object which goes; others stay."""
    wanted = {name.hex() for name in gone}
    for log in (git / "logs").rglob("*"):
        is_kept = log.relative_to(git / "logs").as_posix() == _KEPT_LOG
        if log.is_file() and not log.is_symlink() and not is_kept:
            names = {
                each
                for line in log.read_text("utf-8", "replace").splitlines()
                for each in line.split()[:2]
            }
            if not names.isdisjoint(wanted):
                log.unlink(missing_ok=True)


def _drop_halves(folder: Path) -> None:
    """Remove packs without an index and indexes without a pack: whoever made them died.

    Nobody reads them, and no scan of objects would look into them.
    """
    for pack in folder.glob("*.pack"):
        if not any(pack.with_suffix(suffix).exists() for suffix in (".idx", ".keep")):
            _drop(pack)
    for index in folder.glob("*.idx"):
        if not index.with_suffix(".pack").exists():
            _drop(index)


def _tidy_local(smp: Path, known: Tombstones) -> None:
    for path in smp.iterdir():
        if use_of(path.name) in (Use.KEPT, Use.TRIMMED):
            continue
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    # Written in place, it has an end from before.
    disk.replace_file(smp / PENDING, b"{}\n", smp / "pending.tmp")
    _tidy_left(smp, known)
    log = smp / ACCESSES
    if log.exists():
        data = log.read_bytes()
        left = without_counts(data, known.names_text)
        if left != data:
            disk.replace_file(log, left, smp / "access.tmp")


def _tidy_left(smp: Path, known: Tombstones) -> None:
    """Forget from which versions a person edited the gone, and indexes of their pages."""
    data = disk.content(smp / LEFT)
    if data is None:
        return
    try:
        left = json.loads(data)
    except ValueError:
        left = {}
    wanted = pages_of(known)
    kept = {path: blob for path, blob in left.items() if not _is_gone_path(path, known, wanted)}
    if kept != left or not kept:
        disk.replace_file(smp / LEFT, json.dumps(kept).encode(), smp / "left.tmp")


def _is_gone_path(path: str, known: Tombstones, wanted: Mapping[bytes, frozenset[bytes]]) -> bool:
    place = parse_path(path)
    if place is not None:
        return known.names(place.text)
    folder, _, rest = path.partition("/")
    return is_index(path) and rest.rpartition("/")[0].encode() in wanted.get(folder.encode(), ())


# The checked-out files


def pages_there(repository: Repository, tree: ObjectId, known: Tombstones) -> Iterator[str]:
    """Yield the pages of gone memories that are checked out, or in a tree."""
    for folder, wanted in sorted(pages_of(known).items()):
        kind = folder.decode()
        if b"" in wanted:
            yield kind
            continue
        there = _listed(repository, tree, kind)
        yield from (f"{kind}/{name}" for name in sorted(there) if name.encode() in wanted)


def gone_there(
    repository: Repository, tree: ObjectId, page: str, known: Tombstones
) -> Iterator[Id]:
    """Yield the gone memories with a file on a page that is checked out, or in a tree."""
    for name in sorted(_listed(repository, tree, page)):
        place = parse_path(f"{page}/{name}")
        if place is not None and known.names(place.text):
            yield place


def _listed(repository: Repository, tree: ObjectId, folder: str) -> set[str]:
    """Return what a folder holds, on the disk or in a tree."""
    there = repository.folder(tree, folder)
    return set(_named(repository.path / folder)) | set(repository.tree(there) if there else ())


def _named(folder: Path) -> list[str]:
    """Return what a folder on the disk holds; nothing where there is none, or a link to one."""
    return (
        sorted(each.name for each in os.scandir(folder))
        if folder.is_dir() and not folder.is_symlink()
        else []
    )


def copies(folder: Path, known: Tombstones) -> Iterator[Path]:
    """Yield the files beside a memory's that an editor or a sync program made of it or its index."""
    for kind, wanted in sorted(pages_of(known).items()):
        top = kind.decode()
        names = (
            [top]
            if b"" in wanted
            else [f"{top}/{n}" for n in _named(folder / top) if n.encode() in wanted]
        )
        named = [
            each.first.file.rpartition(".")[0]
            for each in known.items
            if each.first.kind.folder == top and each.first.name
        ]
        for page in names:
            for name in _named(folder / page):
                own = parse_path(f"{page}/{name}")
                file = folder / page / name
                if (
                    own is None
                    and name != INDEX
                    and _is_copy(name, page, known, named)
                    and not file.is_dir()
                ):
                    yield file


def _is_copy(name: str, page: str, known: Tombstones, named: list[str]) -> bool:
    """Whether a file is named after a gone memory of its page, or after the index."""
    if INDEX in name:
        return True
    if named:
        return any(
            re.search(rf"(?<![A-Za-z0-9_-]){re.escape(each)}(?![A-Za-z0-9_])", name)
            for each in named
        )
    for match in _NUMBERED.finditer(name):
        place = _place(match[1] + (match[2] or "")) or _place(match[1])
        if place is not None and place.page == page and known.names(place.text):
            return True
    return False


def _place(text: str) -> Id | None:
    try:
        return parse_id(text)
    except InvalidError:
        return None


def check_out(folder: Path, files: Mapping[str, bytes | None], scratch: Path) -> None:
    """Write or remove (None) checked-out files, whatever is there."""
    for path, data in files.items():
        target = folder / path
        if any(parent.is_symlink() for parent in target.parents if folder in parent.parents):
            continue
        if data is not None:
            disk.replace_file(target, data, scratch)
            continue
        target.unlink(missing_ok=True)
        disk.remove_empty_above(target, folder)
