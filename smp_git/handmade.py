"""What a person changed by hand in the checked-out files, checked before it is committed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from smp_git.errors import InvalidError, InvalidFileError
from smp_git.format import document
from smp_git.format.ids import is_index, kind_of_folder, parse_path
from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.memory import MAX_CONTENT_BYTES
from smp_git.snapshot import Snapshot


class Handmade(NamedTuple):
    """The hand-made changes of a session: memory files, files to write again, strangers."""

    files: dict[str, bytes | None]
    stale_indexes: tuple[str, ...]
    strangers: tuple[str, ...]


def find(snapshot: Snapshot, folder: Path) -> Handmade:
    """Return how the checked-out files differ from the snapshot."""
    committed = dict(snapshot.repository.files(snapshot.tree))
    on_disk = dict(_walk(folder, folder))
    changed: dict[str, bytes | None] = {}
    strangers: list[str] = []
    stale: list[str] = []
    for path in sorted(committed.keys() | on_disk.keys()):
        data = _read(on_disk.get(path))
        if _same(data, committed.get(path)):
            continue
        if parse_path(path) is not None:
            changed[path] = data
        elif is_index(path) and path in committed:
            stale.append(path)
        else:
            strangers.append(path)
    return Handmade(changed, tuple(stale), tuple(strangers))


def check(handmade: Handmade) -> None:
    """Raise InvalidFileError naming every file, with its line, that cannot be committed."""
    problems: list[InvalidError] = []
    for path, data in handmade.files.items():
        if data is None:
            continue
        try:
            document.decode(data, path)
        except InvalidFileError as error:
            problems.append(error)
    problems += [
        InvalidFileError(f"{path}: no memory belongs at this path")
        for path in handmade.strangers
        if kind_of_folder(path.partition("/")[0]) and not path.endswith("~")
    ]
    if problems:
        raise InvalidFileError(
            "\n".join(problem.message for problem in problems),
            hint=problems[0].hint or "mend these files; nothing was committed",
        )


def _walk(folder: Path, top: Path) -> Iterator[tuple[str, Path]]:
    for entry in folder.iterdir():
        if folder == top and entry.name in (".git", ".DS_Store"):
            continue
        if entry.is_dir() and not entry.is_symlink():
            yield from _walk(entry, top)
        else:
            yield entry.relative_to(top).as_posix(), entry


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    if path.is_symlink():
        raise InvalidFileError(f"{path} is a link", hint="put the file itself there")
    if path.stat().st_size > 2 * MAX_CONTENT_BYTES:
        raise InvalidFileError(f"{path} is larger than {2 * MAX_CONTENT_BYTES:,} bytes")
    return path.read_bytes()


def _same(data: bytes | None, blob: ObjectId | None) -> bool:
    return (object_id(BLOB, data) if data is not None else None) == blob
