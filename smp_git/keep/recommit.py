"""Repairs that are ordinary commits: page indexes, files that do not parse, files in no commit."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path

from smp_git.format import document, messages, metadata, records
from smp_git.format.messages import Touch
from smp_git.keep.repairs import ASIDE, COMMITTED, EARLIER, REBUILT, Repair, repaired
from smp_git.keep.salvage import Aside
from smp_git.model.errors import InvalidFileError, RefusedError, SmpError
from smp_git.model.ids import INDEX, parse_path
from smp_git.read import history
from smp_git.read.pages import rebuilt_past
from smp_git.read.snapshot import Snapshot
from smp_git.write import hand_edits
from smp_git.write.handle import Handle
from smp_git.write.stage import Stage


def recommit_pages(handle: Handle, *, dry_run: bool) -> list[Repair]:
    """Commit the index that each page asks for, and put aside what does not parse."""
    snapshot = handle.reader.snapshot()
    found: list[Repair] = []
    files: dict[str, bytes | None] = {}
    broken: dict[str, InvalidFileError] = {}
    for path, tree_id in snapshot.page_ids().items():
        with suppress(SmpError):
            wanted, unread = rebuilt_past(snapshot.repository, path, tree_id)
            broken |= unread
            index = f"{path}/{INDEX}"
            # The index of a page that has such a file is made with the commit that takes it out.
            if not unread and _file(snapshot, index) != wanted.encode():
                files[index] = wanted.encode() or None
                found.append(repaired(REBUILT, index, f"{index} made anew from its files"))
    for path, error in broken.items():
        before = files[path] = _last_that_parses(snapshot, path)
        action = EARLIER if before else ASIDE
        what = "its last version that parses takes its place" if before else "it is taken out"
        found.append(repaired(action, path, f"{error.message}: {what}, and the file kept aside"))
    if files and not dry_run:
        _keep_aside(handle, broken)
        _commit(handle, files)
    return found


def _file(snapshot: Snapshot, path: str) -> bytes:
    blob = snapshot.repository.find(snapshot.tree, path)
    return snapshot.repository.blob(blob) if blob else b""


def _last_that_parses(snapshot: Snapshot, path: str) -> bytes | None:
    place = parse_path(path)
    for _, blob in history.versions(snapshot, place.text) if place else ():
        with suppress(SmpError):
            data = snapshot.repository.blob(blob) if blob else b""
            found = document.decode(data, path)
            if not snapshot.tombstones.is_dead(found.id, found.life):
                return data
    return None


def _keep_aside(handle: Handle, broken: Mapping[str, InvalidFileError]) -> None:
    snapshot = handle.reader.snapshot()
    aside = Aside(snapshot.repository.git, handle.clock())
    for path, error in broken.items():
        place = parse_path(path)
        if place is not None:
            aside.keep(path, _file(snapshot, path))
            blob = snapshot.repository.find(snapshot.tree, path)
            aside.note({"path": path, "id": place.text, "object": blob, "why": error.message})


def _commit(handle: Handle, files: Mapping[str, bytes | None]) -> None:
    def work(stage: Stage) -> None:
        for path, data in files.items():
            stage.files[path] = data
            place = parse_path(path)
            if place is not None:
                verb = "edit" if data is not None else "remove"
                stage.touches[place.text] = Touch(verb, place.kind.name, place.text)

    handle.writer.run(handle.actor(None), work, subject=messages.MEND)


def take_in(handle: Handle, below: Collection[str]) -> list[Repair]:
    """Commit what is in the folder, below some places, and in no commit any more."""
    snapshot, folder = handle.reader.main(), handle.reader.path
    if snapshot.id != handle.reader.snapshot().id:
        return []
    aside = Aside(snapshot.repository.git, handle.clock())
    handmade = hand_edits.find(snapshot, folder)
    found: list[Repair] = []
    files = _of_session(snapshot, folder / metadata.PATH, folder / records.PATH)
    missing = [*handmade.stale_indexes]
    for path, data in handmade.files.items():
        if not any(not place or path.startswith(f"{place}/") for place in below):
            continue
        if data is None:
            missing.append(path)
            continue
        try:
            document.decode(data, path)
            right = hand_edits.put_right({path: data}, snapshot, snapshot.tombstones)
        except RefusedError as error:
            found.append(repaired(ASIDE, path, error.message))
        except InvalidFileError as error:
            aside.take(folder / path)
            missing.append(path)
            found.append(repaired(ASIDE, path, f"{error.message}: the file is kept aside"))
        else:
            files |= right
    hand_edits.restore(snapshot, folder, missing)
    if files:
        _commit_files(handle, files, handmade.files)
    found += [
        repaired(COMMITTED, path, f"{path} is newer than main: committed as it is in the folder")
        for path in files
    ]
    return found


def _of_session(snapshot: Snapshot, told: Path, deleted: Path) -> dict[str, bytes | None]:
    """Return what the folder says of the session itself, as far as it goes beyond the commit."""
    out: dict[str, bytes | None] = {}
    with suppress(SmpError, OSError):
        data = told.read_bytes()
        said = metadata.read(data, snapshot.repository.path.name)
        if said.uid == snapshot.metadata.uid and data != _file(snapshot, metadata.PATH):
            out[metadata.PATH] = data
    with suppress(SmpError, OSError):
        known = snapshot.tombstones | records.read(deleted.read_bytes())
        if not snapshot.said.covers(known):
            out[records.PATH] = records.write(known)
    return out


def _commit_files(
    handle: Handle, files: Mapping[str, bytes | None], taken: Mapping[str, bytes | None]
) -> None:
    def work(stage: Stage) -> None:
        for path, data in files.items():
            was = stage.base.repository.find(stage.base.tree, path)
            stage.put_file(path, data, "edit" if was else "", taken.get(path))

    handle.writer.run(handle.actor(None), work, subject=messages.EDITS)
