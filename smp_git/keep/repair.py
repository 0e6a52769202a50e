"""Repair of a session from what remains of it; what nobody has is named, and kept aside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final

from smp_git.format import metadata, records
from smp_git.git import disk, layout, references, staging, storage
from smp_git.git.objects import BLOB, Object, ObjectId
from smp_git.git.references import STASH, StashEntry
from smp_git.git.repository import MAIN
from smp_git.git.storage import Packed
from smp_git.git.survey import Lost, Survey, survey
from smp_git.keep import opening
from smp_git.keep.recommit import recommit_pages, take_in
from smp_git.keep.reopening import made_metadata, newest_dangling, reopened
from smp_git.keep.repairs import ASIDE, EARLIER, REBUILT, REPLACED, STORED, Repair, repaired
from smp_git.keep.salvage import (
    OF_PAGE,
    Aside,
    broken_loose,
    check_copy,
    found_beside,
    found_in_copy,
    found_in_remotes,
    take_pack,
)
from smp_git.keep.stores import place_of
from smp_git.model.errors import SmpError
from smp_git.model.ids import parse_path
from smp_git.model.memory import CommitId
from smp_git.model.names import ARCHIVED
from smp_git.read import archives
from smp_git.remove import archive as rooms
from smp_git.remove.history.without import Left, Without
from smp_git.write.commit import TreeChange, check_out, is_lost
from smp_git.write.handle import Handle, Home

_DOING: Final = "repairing"


def repair_session(
    home: Home, name: str, copy: Path | None = None, *, dry_run: bool = False
) -> tuple[Repair, ...]:
    """Repair a session by its whole id, though it may not open; return what was done.

    One whose archive is damaged becomes active, with what can be read of it.
    """
    place = place_of(home, name)
    check_copy(copy)
    with disk.reporting(f"to session {name}"):
        found = _from_archive(home, name, dry_run=dry_run)
        if not dry_run or not found:
            found += [
                repaired(REPLACED, *each) for each in reopened(place, home, copy, dry_run=dry_run)
            ]
        if dry_run and found:
            return tuple(found)
        handle = opening.unchecked(place, home.clock, home.settings, home=home)
        try:
            gone_back = [""] if any(each.path == MAIN for each in found) else []
            return (*found, *repair(handle, gone_back, copy, dry_run=dry_run))
        finally:
            opening.close(handle)


def _from_archive(home: Home, name: str, *, dry_run: bool) -> list[Repair]:
    """Make an archived session active, if its archive cannot be read to its end."""
    if not archives.is_archived(home.path, name):
        return []
    if rooms.whole(home.path, name) is None:
        raise archives.archived_error(name)
    if not dry_run:
        rooms.salvage(home, name)
    path = f"{ARCHIVED}/{name}/{archives.ARCHIVE}"
    said = f"the archive of {name} is damaged: what can be read of it is the session again"
    return [repaired(REPLACED, path, f"{said}, and the archive is kept aside")]


def repair(
    handle: Handle,
    gone_back: Iterable[str] = (),
    copy: Path | None = None,
    *,
    dry_run: bool = False,
) -> tuple[Repair, ...]:
    """Repair a session whose branch can be read; it can be called again after a crash.

    Below what has `gone_back` to an earlier version, the folder may have what is newer.
    What is lost is taken from a `copy`, too: whatever has it has it byte for byte.
    """
    check_copy(copy)
    with handle.writer.holding(_DOING):
        work = _StoreRepair(handle, copy, dry_run=dry_run)
        found = [*work.objects(), *work.packs(), *work.history(), *work.index()]
        if found and not dry_run:
            handle.reader.local.raise_epoch()
            handle.reader.reopen()
    below = [*gone_back, *work.gone_back]
    if below and not dry_run:
        found += take_in(handle, below)
    found += recommit_pages(handle, dry_run=dry_run)
    # A page may have had both a line that lies and a file that does not parse.
    return tuple(found if dry_run else (*found, *recommit_pages(handle, dry_run=False)))


class _StoreRepair:
    """One repair of the object store; the caller holds the session's lock."""

    def __init__(self, handle: Handle, copy: Path | None, *, dry_run: bool) -> None:
        self._handle = handle
        self._copy = copy
        self._dry = dry_run
        self._reader = handle.reader
        self._repository = handle.reader.repository
        self._git = handle.reader.repository.git
        self._aside = Aside(self._git, handle.clock())
        self._seen = survey(self._repository)
        self._spared = set[bytes]()
        # The folders of head that are as they were before.
        self.gone_back: list[str] = []

    # Objects that are whole elsewhere

    def objects(self) -> Iterator[Repair]:
        """Store again what the checked-out files, another copy or a remote has."""
        found = self._found()
        while found:
            for name, (_, place) in found.items():
                lost = self._seen.lost[name]
                action = REBUILT if place == OF_PAGE else STORED
                yield repaired(action, lost.path, f"{_what(lost)} stored again from {place}")
            self._spared |= set(found)
            if self._dry:
                return
            storage.write_pack(
                self._git / "objects",
                [Packed(name, each.type, each.data) for name, (each, _) in found.items()],
            )
            self._reader.reopen()
            self._repository = self._reader.repository
            # What is below a folder that was lost is seen only now.
            self._seen = survey(self._repository)
            found = self._found()

    def _found(self) -> dict[bytes, tuple[Object, str]]:
        found = found_beside(self._repository, self._seen)
        missing = self._seen.lost.keys() - found.keys()
        if missing and self._copy is not None:
            theirs = found_in_copy(self._git, self._copy, missing)
            found |= {bytes.fromhex(each.id): (each, place) for each, place in theirs}
            missing -= found.keys()
        if missing and self._handle.home is not None:
            theirs = found_in_remotes(self._reader.path, self._handle.home, missing)
            found |= {bytes.fromhex(each.id): (each, place) for each, place in theirs}
        return found

    def packs(self) -> Iterator[Repair]:
        """Put packs and files of objects that are broken aside, and what is whole of them in a new pack."""
        for pack in self._seen.packs:
            kept = 0 if self._dry else take_pack(self._git, pack, self._aside)
            yield repaired(
                REPLACED,
                f".git/objects/pack/{pack.name}",
                f"{pack.name} is broken: {kept} objects of it stored anew, the rest kept aside",
            )
        for name, file in list(broken_loose(self._git)):
            if not self._dry:
                self._aside.take(file)
            if name not in self._seen.lost and name not in self._spared:
                path = file.relative_to(self._reader.path).as_posix()
                yield repaired(
                    REPLACED, path, f"object {name.hex()[:12]} is broken, and kept aside"
                )
        if not self._dry:
            self._reader.reopen()
            self._repository = self._reader.repository

    # History without what nobody has

    def history(self) -> Iterator[Repair]:
        """Write the commits anew that name what nobody has."""
        seen = self._seen if self._dry else survey(self._repository)
        lost = {name: each for name, each in seen.lost.items() if name not in self._spared}
        if not lost and not seen.torn:
            return
        joined = self._joined(seen, lost)
        again = Without(self._repository, seen, self._instead(seen, lost), joined)
        moves, drops = _moves(seen, again)
        if not self._dry:
            head = seen.refs.get(MAIN)
            self.gone_back += [
                each.path for each in lost.values() if each.is_folder and each.commit == head
            ]
            self._publish(seen, again, moves, drops)
        yield from (self._left(each) for each in again.left.values())
        for name, each in lost.items():
            if each.is_commit and not each.commit.startswith("refs/"):
                self._note(each)
                yield repaired(ASIDE, "", f"{_what(each)} is lost: its history goes on without it")
            elif not each.is_commit and (each.path, name) not in again.left:
                self._note(each)
                yield repaired(REBUILT, each.path, f"{_what(each)} made anew from what is there")
        for ref in drops:
            yield repaired(ASIDE, ref, f"{ref} named what nobody has, and is removed")

    def _joined(self, seen: Survey, lost: Mapping[bytes, Lost]) -> dict[bytes, bytes]:
        """Return, for each commit that is lost, the newest that it can have come from."""
        if not any(each.is_commit for each in lost.values()):
            return {}
        return newest_dangling(self._repository, seen)

    def _instead(self, seen: Survey, lost: Mapping[bytes, Lost]) -> dict[bytes, Object]:
        """Return the files of the session itself that can be made from what is known here."""
        out: dict[bytes, Object] = {}
        local = self._reader.local
        for name, each in lost.items():
            if each.path == records.PATH:
                out[name] = Object(BLOB, records.write(local.tombstones()))
            elif each.path in layout.TRACKED:
                out[name] = Object(BLOB, layout.TRACKED[each.path])
            elif each.path == metadata.PATH:
                out[name] = Object(BLOB, made_metadata(self._repository, seen))
        return out

    def _left(self, left: Left) -> Repair:
        lost = self._seen.lost.get(left.name) or Lost(left.name, left.path, "", False, "lost")  # noqa: FBT003 - a field
        self._note(lost)
        what = _what(lost._replace(path=left.path))
        if left.instead is None:
            return repaired(ASIDE, left.path, f"{what} is lost: what is known of it is kept aside")
        return repaired(EARLIER, left.path, f"{what} is lost: the version before took its place")

    def _note(self, lost: Lost) -> None:
        if self._dry:
            return
        place = parse_path(lost.path)
        said: dict[str, object] = {
            "path": lost.path,
            "object": lost.name.hex(),
            "commit": lost.commit,
        }
        if place is not None:
            said["id"] = place.text
            with suppress(SmpError):
                line = self._reader.snapshot().page(place.page)
                said["line"] = line.lines.get(place.text) if line else None
        self._aside.note(said)

    def _publish(
        self, seen: Survey, again: Without, moves: Mapping[str, bytes], drops: Iterable[str]
    ) -> None:
        """Move every reference to the history that was written anew."""
        objects = [Packed(name, each.type, each.data) for name, each in again.made.items()]
        if objects:
            storage.write_pack(self._git / "objects", objects)
        before = seen.refs.get(MAIN)
        entries = references.read_stash(self._git) if STASH in moves else []
        old = self._tree(before)
        self._repository.point({ref: CommitId(name.hex()) for ref, name in moves.items()})
        if entries:
            kept = [(each, again.tip(bytes.fromhex(each.id))) for each in entries]
            references.write_stash(
                self._git,
                [StashEntry(new.hex(), each.who, each.message) for each, new in kept if new],
            )
        for ref in drops:
            references.drop(self._git, ref)
        gone = {name for name, new in again.commits.items() if new != name} | set(seen.lost)
        references.forget_in_logs(self._git, {name.hex() for name in gone})
        self._reader.reopen()
        self._repository = self._reader.repository
        if MAIN in moves and self._repository.checked_out() == MAIN:
            self._check_out(old)

    def _tree(self, commit: CommitId | None) -> dict[str, ObjectId]:
        """Return the files of a commit, as far as they can be read."""
        with suppress(SmpError):
            if commit is not None:
                return dict(self._repository.files(self._repository.commit(commit).tree))
        return {}

    def _check_out(self, old: Mapping[str, ObjectId]) -> None:
        """Bring the checked-out files up to date; a broken one is kept aside."""
        reader = self._reader
        now = dict(reader.repository.files(reader.main().tree))
        changed = [path for path in old.keys() | now.keys() if old.get(path) != now.get(path)]
        for path in changed:
            file = reader.path / path
            with suppress(OSError):
                if file.is_file() and is_lost(file.read_bytes()):
                    self._aside.take(file)
        changes = [
            TreeChange(
                path, old.get(path) if (reader.path / path).exists() else None, now.get(path)
            )
            for path in sorted(changed)
        ]
        scratch = reader.local.scratch("checkout")
        check_out(reader.path, changes, reader.repository.blob, scratch)

    # Git's index

    def index(self) -> Iterator[Repair]:
        """Make Git's index anew if it cannot be read, or names what nobody has."""
        file = self._git / "index"
        is_readable = staging.is_readable(self._git)
        if is_readable and file.exists():
            named = staging.named(self._git)
            has = self._repository.has
            if all(has(each.hex()) for each in (*named.blobs, *named.trees)):
                return
        if not self._dry and self._repository.checked_out() == MAIN:
            if file.exists():
                self._aside.take(file)
            staging.forget(self._git)
            staging.refresh(self._repository, self._reader.main().tree)
        yield repaired(REPLACED, ".git/index", "Git's index made anew, with every tracked file")


def _what(lost: Lost) -> str:
    if lost.path:
        place = parse_path(lost.path)
        return f"{lost.path} ({place.text})" if place else lost.path
    if lost.commit.startswith("refs/"):
        return f"the commit of {lost.commit}"
    return (
        f"the folder of commit {lost.commit[:12]}"
        if lost.is_folder
        else f"commit {lost.commit[:12]}"
    )


def _moves(seen: Survey, again: Without) -> tuple[dict[str, bytes], list[str]]:
    """Return where references go, and which cannot be kept."""
    moves: dict[str, bytes] = {}
    drops = list(seen.torn)
    for ref, tip in seen.refs.items():
        old = bytes.fromhex(tip)
        new = again.tip(old)
        if new == old:
            continue
        # What a remote was seen with is not what is here now.
        is_seen = ref.startswith((references.REMOTES, references.SEEN))
        if new is None or is_seen:
            drops.append(ref)
        else:
            moves[ref] = new
    return moves, [ref for ref in drops if ref != MAIN]
