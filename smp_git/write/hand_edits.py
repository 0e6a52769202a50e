"""Files that a person changed by hand: found, checked, brought together with later writes."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import document, messages
from smp_git.format.document import KEY, OLD_KEY, life_of
from smp_git.format.records import Tombstones
from smp_git.git import disk
from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.model.errors import (
    ConflictError,
    InvalidError,
    InvalidFileError,
    RefusedError,
    StorageError,
)
from smp_git.model.ids import (
    FIRST,
    PURGED,
    REDACTED,
    Lives,
    is_index,
    kind_of_folder,
    parse_id,
    parse_path,
)
from smp_git.model.memory import MemoryId, Value
from smp_git.model.results import Result
from smp_git.model.secrets.rules import Rules
from smp_git.read.history import is_alike
from smp_git.read.replica import Local
from smp_git.read.snapshot import Snapshot
from smp_git.write.edits import staged
from smp_git.write.handle import Handle
from smp_git.write.stage import Stage
from smp_git.write.writer import Change

# Every write sets it, so that it says nothing about a conflict.
_STAMP = "updated_at"


def reconciled(base: bytes, mine: bytes, theirs: bytes, path: str) -> bytes:
    """Return the person's file `mine` with what `theirs` changed since `base`.

    Raises ConflictError, naming the fields, if both changed the same one differently,
    and InvalidFileError if a version does not parse.
    """
    before, by_hand, later = (
        document.fields_of(document.decode(file, path)) for file in (base, mine, theirs)
    )
    changed = {
        name: later.get(name)
        for name in (*before, *later)
        if not is_alike(before, later, name) and not is_alike(by_hand, later, name)
    }
    both = sorted(
        name for name in changed if name != _STAMP and not is_alike(before, by_hand, name)
    )
    if both:
        raise _conflict(path, both)
    place = parse_path(path)
    main = place.kind.main if place is not None and place.kind.suffix == "md" else None
    content = changed.pop(main, None) if main else None
    text = content if isinstance(content, str) else None
    said = document.as_written(place.kind, changed) if place is not None else changed
    merged = document.spliced(mine, path, said, tuple(later), text)
    if merged is None:
        raise _conflict(path, sorted(changed))
    return merged


def _conflict(path: str, fields: list[str]) -> ConflictError:
    return ConflictError(
        f"{path}: {', '.join(fields)} changed by hand and by a later write; nothing was committed",
        hint="copy the later values into the file (smp show prints them), commit, then change them",
    )


_ORDER: Final = ("id", "kind", KEY, "created_at")


def put_right(
    files: Mapping[str, bytes | None], base: Snapshot, known: Tombstones
) -> dict[str, bytes | None]:
    """Return files that say the life which the memory has; all else stays as it is.

    Every file decodes. Raises RefusedError for one that says a life which was redacted or
    purged, or which nothing explains: it may be an old version.
    """
    return {path: _of_life(path, data, base, known) for path, data in files.items()}


def _of_life(path: str, data: bytes | None, base: Snapshot, known: Tombstones) -> bytes | None:
    place = parse_path(path)
    if data is None or place is None:
        return data
    blob = base.repository.find(base.tree, path)
    present = life_of(base.repository.blob(blob), path) if blob else None
    said, lives = life_of(data, path), known.lives(place.text)
    if said == present:
        return data
    if present is None:
        # A new file: what somebody typed for the life is none, unless it is known.
        if said is not None and (said == FIRST or lives.explains(said)):
            _check(path, said, lives)
            return data
        _check(path, FIRST, lives)
        return _written(data, path, FIRST)
    _check(path, said if said is not None else FIRST, lives)
    return _written(data, path, present)


def _check(path: str, life: str, lives: Lives) -> None:
    place = parse_path(path)
    if lives.is_gone and place is not None:
        raise RefusedError(
            f"{path}: {place.text} was deleted",
            hint=f"take it out with git rm -f {path}; smp restore {place.text} brings it back",
        )
    ended = lives.ended_by(life)
    if PURGED in ended or REDACTED in ended:
        what = "purged" if PURGED in ended else "redacted"
        raise RefusedError(
            f"{path} is of a life that was {what}, so it may hold what is gone",
            hint=f"git checkout HEAD -- {path} brings the present version back; edit that",
        )


def _written(data: bytes, path: str, life: str) -> bytes:
    """Return a file of another life with all else as it is."""
    changes: dict[str, Value | None] = {OLD_KEY: None, KEY: life or None}
    spliced = document.spliced(data, path, changes, _ORDER)
    if spliced is not None and life_of(spliced, path) == life:
        return spliced
    return document.encode(replace(document.decode(data, path), life=life))


def commit(handle: Handle, agent: str | None) -> Change:
    """Check what a person changed by hand and commit it as it is."""
    handle.refuse_on_a_branch("edits by hand are committed there")
    folder, rules, local = handle.reader.path, handle.rules, handle.reader.local
    return staged(
        handle,
        agent,
        lambda stage: _stage_all(stage, folder, rules, local),
        messages.EDITS,
    )


def _stage_all(stage: Stage, folder: Path, rules: Rules, local: Local) -> None:
    """Check and stage what a person changed by hand, together with later writes.

    Raises InvalidFileError, naming files and lines, if anything does not parse, and
    ConflictError if both changed the same field; then nothing is staged.
    """
    base = stage.base
    found = find(base, folder)
    check(found, rules)
    same = list(found.stale_indexes)
    right = put_right(found.files, base, base.tombstones)
    whole = Handmade(right, found.stale_indexes, found.strangers)
    for path, data in brought_together(whole, base, local).items():
        was = base.repository.find(base.tree, path)
        verb = "remove" if data is None else "edit" if was else ""
        stage.put_file(path, data, verb, found.files[path])
        if data is not None and was and data == base.repository.blob(was):
            same.append(path)
    restore(base, folder, same)


@dataclass(frozen=True, slots=True, kw_only=True)
class HandEdit(Result):
    """A memory's file that a person changed and did not commit: added, changed or removed.

    >>> file = session.file("DEC-0001")
    >>> file.write_text(file.read_text().replace("OAuth 2.0", "OAuth 2.1")) > 0
    True
    >>> [(each.id, each.change) for each in session.hand_edits()]
    [('DEC-0001', 'changed')]
    """

    path: str
    id: MemoryId
    change: str


def listed(handle: Handle) -> tuple[HandEdit, ...]:
    """Return what a person changed in the folder and did not commit, sorted by path."""
    snapshot = handle.reader.main()
    return tuple(
        HandEdit(path=path, id=place.text, change=_kind_of_change(snapshot, path, data))
        for path, data in find(snapshot, handle.reader.path).files.items()
        if (place := parse_path(path)) is not None
    )


def _kind_of_change(snapshot: Snapshot, path: str, data: bytes | None) -> str:
    if data is None:
        return "removed"
    return "changed" if snapshot.repository.find(snapshot.tree, path) else "added"


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
        data = _read(on_disk.get(path), document.largest(parse_path(path)))
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
            hint=problems[0].hint or "fix these files; nothing was committed",
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
    """Say in which line of a file which kinds of secret are."""
    text = (data or b"").decode()
    _, found = rules.text(text)
    for name, _ in found:
        lines = (
            n for n, line in enumerate(text.splitlines(), 1) if name in dict(rules.text(line)[1])
        )
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


def _read(path: Path | None, most: int) -> bytes | None:
    if path is None:
        return None
    if path.is_symlink():
        raise InvalidFileError(f"{path} is a link", hint="put the file itself there")
    if not path.is_file():
        raise InvalidFileError(f"{path} is not a file", hint="move it out of the session")
    if path.stat().st_size > most:
        raise InvalidFileError(f"{path} is larger than {most:,} bytes")
    return path.read_bytes()


def _same(data: bytes | None, blob: ObjectId | None) -> bool:
    return (object_id(BLOB, data) if data is not None else None) == blob
