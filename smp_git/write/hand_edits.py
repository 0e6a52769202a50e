"""What a person changed by hand in the checked-out files, checked before it is committed."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from smp_git.format import document
from smp_git.git import disk
from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.model.errors import InvalidError, InvalidFileError, RefusedError, StorageError
from smp_git.model.ids import is_index, kind_of_folder, parse_id, parse_path
from smp_git.model.memory import MAX_FILE_BYTES
from smp_git.model.secrets.rules import Rules
from smp_git.read.replica import Local
from smp_git.read.snapshot import Snapshot
from smp_git.write.reconcile import reconciled


class Handmade(NamedTuple):
    """The hand-made changes of a session: memory files, files to write again, strangers."""

    files: dict[str, bytes | None]
    stale_indexes: tuple[str, ...]
    strangers: tuple[str, ...]


def find(snapshot: Snapshot, folder: Path) -> Handmade:
    """Return how the checked-out files differ from the snapshot."""
    try:
        return _found(snapshot, folder)
    except OSError as error:
        raise StorageError(
            f"cannot read {error.filename}: {error.strerror}", hint="check who owns the folder"
        ) from error


def _found(snapshot: Snapshot, folder: Path) -> Handmade:
    committed = dict(snapshot.repository.files(snapshot.tree))
    on_disk = dict(_walk(folder))
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


def check(handmade: Handmade, rules: Rules) -> None:
    """Raise an error naming every file, with its line, that cannot be committed.

    A person's file is not changed, so one that holds a secret is refused.
    """
    problems: list[InvalidError] = []
    for path, data in handmade.files.items():
        if data is None:
            continue
        try:
            document.decode(data, path)
        except InvalidFileError as error:
            problems.append(error)
    problems += [
        _stranger(path)
        for path in handmade.strangers
        if kind_of_folder(path.partition("/")[0]) and not path.endswith("~")
    ]
    if problems:
        raise InvalidFileError(
            "\n".join(problem.message for problem in problems),
            hint=problems[0].hint or "mend these files; nothing was committed",
        )
    secrets = [
        place for path, data in handmade.files.items() for place in _secrets(path, data, rules)
    ]
    if secrets:
        raise RefusedError(
            "\n".join(secrets),
            hint="take the secrets out, or name them in redaction_allow; nothing was committed",
        )


def brought_together(
    handmade: Handmade, snapshot: Snapshot, local: Local
) -> dict[str, bytes | None]:
    """Return the hand-made files, each with what later writes changed in it.

    Raises ConflictError if a file and a later write changed the same field.
    """
    bases = local.left_alone()
    repository = snapshot.repository
    out = dict(handmade.files)
    for path, data in handmade.files.items():
        base, head = bases.get(path), repository.find(snapshot.tree, path)
        if data is not None and base is not None and head is not None and base != head:
            before = repository.blob(ObjectId(base))
            out[path] = reconciled(before, data, repository.blob(head), path)
    return out


def _secrets(path: str, data: bytes | None, rules: Rules) -> Iterator[str]:
    """Say in which line of a file which kinds of secret stand."""
    text = (data or b"").decode()
    _, found = rules.text(text)
    for name, _ in found:
        lines = (n for n, line in enumerate(text.splitlines(), 1) if name in dict(rules.text(line)[1]))  # fmt: skip
        yield f"{path}:{next(lines, 1)}: a secret ({name})"


def restore(snapshot: Snapshot, folder: Path, paths: Iterable[str]) -> None:
    """Write checked-out files as they are committed: page indexes, and what says the same."""
    for path in paths:
        blob = snapshot.repository.find(snapshot.tree, path)
        target = folder / path
        if blob is not None and target.parent.is_dir() and not target.parent.is_symlink():
            scratch = folder / ".git" / "smp" / "index.tmp"
            disk.replace_file(target, snapshot.repository.blob(blob), scratch)


def _stranger(path: str) -> InvalidFileError:
    stem = path.rpartition("/")[2].rpartition(".")[0]
    try:
        hint = f"{stem} belongs at {parse_id(stem).path}"
    except InvalidError:
        hint = "move it out of the session, or name it like its neighbours"
    shown = path.encode(errors="backslashreplace").decode()
    return InvalidFileError(f"{shown}: no memory belongs at this path", hint=hint)


def _walk(top: Path) -> Iterator[tuple[str, Path]]:
    stack = [top]
    while stack:
        folder = stack.pop()
        for entry in _listed(folder):
            if folder == top and entry.name in (".git", ".DS_Store"):
                continue
            if not entry.is_symlink() and os.path.isdir(entry):  # noqa: PTH112 - a name that is too long is none
                stack.append(entry)
            else:
                yield entry.relative_to(top).as_posix(), entry


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir())
    except OSError:
        # Too deep or closed to us: no memory of this session is there.
        return []


def _read(path: Path | None) -> bytes | None:
    if path is None:
        return None
    if path.is_symlink():
        raise InvalidFileError(f"{path} is a link", hint="put the file itself there")
    if not path.is_file():
        raise InvalidFileError(f"{path} is no file", hint="move it out of the session")
    if path.stat().st_size > MAX_FILE_BYTES:
        raise InvalidFileError(f"{path} is larger than {MAX_FILE_BYTES:,} bytes")
    return path.read_bytes()


def _same(data: bytes | None, blob: ObjectId | None) -> bool:
    return (object_id(BLOB, data) if data is not None else None) == blob
