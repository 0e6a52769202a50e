"""What remains of a damaged object store: whole objects found elsewhere, broken files kept aside."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smp_git.git import command, disk, layout, storage
from smp_git.git.objects import BLOB, Object, ObjectId, ObjectStore, object_id
from smp_git.git.repository import Repository
from smp_git.git.storage import Packed
from smp_git.git.survey import Survey
from smp_git.git.transport import fetch
from smp_git.model.errors import DamagedError, InvalidError, SmpError
from smp_git.model.ids import is_index
from smp_git.model.times import format_time
from smp_git.read import pages
from smp_git.read.archives import ARCHIVE
from smp_git.read.replica import DAMAGED, RECORD
from smp_git.remove import archive
from smp_git.sync import remotes
from smp_git.write.handle import Home

if TYPE_CHECKING:
    from smp_git.model.memory import CommitId

# What belongs to a pack, in the order in which it is taken away.
_SUFFIXES: Final = (".idx", ".rev", ".bitmap", ".mtimes", ".keep", ".promisor", ".pack")
OF_PAGE: Final = "the files of its page"
_BUNDLE: Final = b"# v"
_CONFIG: Final = "[core]\n\trepositoryformatversion = 0\n\tbare = true\n[gc]\n\tauto = 0\n"


class Aside:
    """The folder of a session for what cannot be used and is not thrown away.

    A deletion empties it: a broken file may hold the text of any memory.
    """

    def __init__(self, git: Path, now: datetime) -> None:
        self._git = git
        self._now = now
        self.folder = git / "smp" / DAMAGED / f"{now:%Y%m%dT%H%M%SZ}"

    def take(self, file: Path) -> None:
        """Move a file here."""
        disk.make_folders(self.folder)
        name = "-".join(file.relative_to(self._git).parts)
        with suppress(FileNotFoundError):
            file.rename(self.folder / name)

    def keep(self, name: str, data: bytes) -> None:
        """Write down bytes that have no place any more."""
        disk.make_folders(self.folder)
        place = self.folder / name.replace("/", "-")
        disk.replace_durably(place, data, f"{place}.tmp")

    def note(self, said: Mapping[str, object]) -> None:
        """Write down what is known of something that was lost."""
        disk.make_folders(self.folder)
        line = json.dumps({"at": format_time(self._now), **said}, ensure_ascii=False)
        fd = os.open(self.folder / RECORD, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            disk.write_all(fd, f"{line}\n".encode())
            disk.flush(fd)
        finally:
            os.close(fd)


def found_beside(repository: Repository, seen: Survey) -> dict[bytes, tuple[Object, str]]:
    """Return the lost objects that the checked-out files, Git's index or their own page give back."""
    out: dict[bytes, tuple[Object, str]] = {}
    for name, lost in seen.lost.items():
        spare = repository.spare(ObjectId(name.hex()))
        if spare is not None:
            kind, found = spare
            out[name] = Object(kind, found.data), found.place
            continue
        made = _index_made(repository, lost.path, lost.commit) if is_index(lost.path) else None
        if made is not None and made.id == name.hex():
            out[name] = made, OF_PAGE
    return out


def _index_made(repository: Repository, path: str, commit: CommitId | str) -> Object | None:
    """Return the index that the files of a page ask for, None if they cannot all be read."""
    page = path.rpartition("/")[0]
    with suppress(SmpError):
        tree = repository.folder(repository.commit(commit).tree, page)  # type: ignore[arg-type]
        if tree is not None:
            return Object(BLOB, pages.rebuilt_past(repository, page, tree)[0].encode())
    return None


def found_in_remotes(
    session: Path, home: Home, names: Iterable[bytes]
) -> Iterator[tuple[Object, str]]:
    """Yield the lost objects that a remote sends, whole and under their own ids."""
    missing = set(names)
    settings = home.settings
    for remote in remotes.remotes(session, settings.remote, home.path).values():
        if not missing:
            return
        with suppress(SmpError), layout.scratch_folder(session / ".git") as scratch:
            git = _bare(scratch)
            access = remotes.access(settings, home.environment)
            fetch(
                git,
                remote.address.text,
                ["+refs/*:refs/theirs/*"],
                access,
                remotes.limits(settings),
            )
            for each in _whole(git / "objects", missing):
                missing.discard(bytes.fromhex(each.id))
                yield each, f"remote {remote.name}"


def check_copy(copy: Path | None) -> None:
    """Raise InvalidError if there is nothing where a copy is said to be."""
    if copy is not None and not copy.exists():
        raise _no_copy(copy)


def found_in_copy(git: Path, copy: Path, names: Iterable[bytes]) -> Iterator[tuple[Object, str]]:
    """Yield the lost objects that a copy has: of a session's folder, an archive, a bundle, a repository."""
    with layout.scratch_folder(git) as scratch:
        for each in _whole(_objects_of(copy, scratch), names):
            yield each, str(copy)


def _objects_of(copy: Path, scratch: Path) -> Path:
    """Return the folder of the objects of a copy, unpacked if it has to be; raise InvalidError."""
    for folder in (copy / ".git" / "objects", copy / "objects"):
        if folder.is_dir():
            return folder
    file = copy / ARCHIVE if copy.is_dir() else copy
    if not file.is_file():
        raise _no_copy(copy)
    with disk.reporting(str(copy)):
        packed = _bundle(file, scratch / "bundle")
        if packed is not None:
            bare = _bare(scratch)
            command.unbundle(bare, packed, ("refs/",))
            return bare / "objects"
        archive.unpack_readable(file, scratch / "copy")
    found = scratch / "copy" / ".git" / "objects"
    if not found.is_dir():
        raise _no_copy(copy)
    return found


def _bundle(file: Path, scratch: Path) -> Path | None:
    """Return the Git bundle that a file is, or that an export holds; None if neither."""
    with file.open("rb") as opened:
        if opened.read(len(_BUNDLE)) == _BUNDLE:
            return file
    if not zipfile.is_zipfile(file):
        return None
    with suppress(zipfile.BadZipFile, zlib.error), zipfile.ZipFile(file) as packed:
        for name in packed.namelist():
            if name.endswith(".bundle"):
                with packed.open(name) as member, scratch.open("wb") as out:
                    shutil.copyfileobj(member, out)
                return scratch
    return None


def _no_copy(copy: Path) -> InvalidError:
    return InvalidError(
        f"{copy} is no copy of a session",
        hint="a session's folder, an archive, a bundle or a repository",
    )


def _bare(scratch: Path) -> Path:
    git = scratch / "theirs.git"
    for folder in ("objects/info", "objects/pack", "refs/heads"):
        (git / folder).mkdir(mode=0o700, parents=True)
    (git / "HEAD").write_text("ref: refs/heads/main\n")
    (git / "config").write_text(_CONFIG)
    return git


def _whole(objects: Path, names: Iterable[bytes]) -> Iterator[Object]:
    store = ObjectStore(objects)
    for name in sorted(names):
        with suppress(DamagedError):
            kind, data = store.read(name.hex())
            if object_id(kind, data) == name.hex():
                yield Object(kind, data)


def rescued(git: Path, pack: Path) -> list[Packed]:
    """Return everything that can still be read of a broken pack."""
    found: dict[bytes, Packed] = {}
    store = ObjectStore(git / "objects")
    with suppress(Exception):
        for name in storage.names(pack.with_suffix(".idx")):
            with suppress(DamagedError):
                kind, data = store.read(name.hex())
                found[name] = Packed(name, kind, data)
    with layout.scratch_folder(git) as scratch, suppress(SmpError, OSError):
        beside = _bare(scratch)
        with pack.open("rb") as file:
            # It goes on past what is broken.
            subprocess.run(  # noqa: S603 - our own arguments
                command.arguments(beside, "unpack-objects", "-r", "-q"),
                stdin=file,
                env=command.environment(),
                capture_output=True,
                check=False,
            )
        for name, _ in storage.loose(beside / "objects"):
            for each in _whole(beside / "objects", [name]):
                found[name] = Packed(name, each.type, each.data)
    return list(found.values())


def take_pack(git: Path, pack: Path, aside: Aside) -> int:
    """Put a pack in the place of a broken one with all that can be read of it; return how much."""
    kept = rescued(git, pack)
    if kept:
        storage.write_pack(git / "objects", kept)
    for suffix in _SUFFIXES:
        file = pack.with_suffix(suffix)
        if file.exists():
            aside.take(file)
    return len(kept)


def broken_loose(git: Path) -> Iterator[tuple[bytes, Path]]:
    """Yield the loose objects whose files are not what their names say."""
    store = ObjectStore(git / "objects")
    for name, file in storage.loose(git / "objects"):
        if not store.is_whole(name.hex()):
            yield name, file
