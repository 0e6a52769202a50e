"""Checks of a session: everything that is not as it must be, and the file it concerns."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from smp_git.git import layout, references, staging
from smp_git.git.objects import ObjectId
from smp_git.git.repository import MAIN
from smp_git.git.survey import Lost, survey
from smp_git.model.errors import DamagedError, SmpError
from smp_git.model.ids import INDEX, is_index, kind_of_folder, parse_id, parse_path
from smp_git.model.results import Result
from smp_git.read import pages as index
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.write.hand_edits import find


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem(Result):
    """One thing that is not as it must be, and the file it concerns.

    >>> session.check()
    ()
    """

    code: str
    path: str
    message: str


def check(reader: Reader) -> tuple[Problem, ...]:
    """Return everything that is wrong with a session; empty when it is sound."""
    snapshot = reader.snapshot()
    found = [*_git_files(reader.repository.git), *_store(reader)]
    for look in (_pages, _brought_back):
        try:
            found += look(snapshot)
        except DamagedError as error:
            found += [] if found else [_damaged("", error.message)]
    if reader.repository.checked_out() == MAIN:
        main = reader.main()
        found += _git_index_whole(reader)
        if not found:
            found += [*_checked_out(reader, main), *_git_index(reader, main)]
    return tuple(found)


def _git_files(git: Path) -> list[Problem]:
    """Check the files of Git's that lead to everything else."""
    wrong = {
        "config": not layout.is_configured(git),
        "HEAD": not layout.is_head_named(git),
        "packed-refs": not references.is_packed_whole(git),
    }
    return [
        Problem(
            code="damaged_file",
            path=f".git/{name}",
            message=f".git/{name} is not as it must be; smp repair writes it anew",
        )
        for name, is_wrong in wrong.items()
        if is_wrong
    ]


def _damaged(path: str, message: str) -> Problem:
    return Problem(code="damaged_object", path=path, message=message)


def _store(reader: Reader) -> list[Problem]:
    """Name every object that a reference leads to and that is not whole, with what has it."""
    seen = survey(reader.repository)
    found = [
        Problem(code="damaged_reference", path="", message=f"{why}; smp repair")
        for why in seen.torn.values()
    ]
    found += [_damaged(lost.path, _lost(reader, lost)) for lost in seen.lost.values()]
    return found


def _lost(reader: Reader, lost: Lost) -> str:
    where = f"in commit {lost.commit[:12]}"
    if not lost.path:
        if lost.commit.startswith("refs/"):
            return f"{lost.commit} names {lost.name.hex()[:12]}, which is {lost.why.rpartition(' ')[2]}"
        what = "its folder" if lost.is_folder else "the commit itself"
        return (
            f"commit {lost.commit[:12]}: {what} cannot be read: {lost.why}; {_cure(reader, lost)}"
        )
    place = parse_path(lost.path)
    named = f" ({place.text})" if place is not None else ""
    return f"{lost.path}{named} {where}: {lost.why}; {_cure(reader, lost)}"


def _cure(reader: Reader, lost: Lost) -> str:
    """Say what can be done about an object that is lost."""
    spare = reader.repository.spare(ObjectId(lost.name.hex()))
    if spare is not None:
        return f"{spare[1].place} has it, and smp repair stores it again"
    return "smp repair looks for it elsewhere, and keeps what is known of it aside if nobody has it"


def _git_index_whole(reader: Reader) -> list[Problem]:
    """Check that Git's index can be read."""
    if staging.is_readable(reader.repository.git):
        return []
    message = "Git's index cannot be read; smp repair makes it anew"
    return [Problem(code="damaged_index", path=".git/index", message=message)]


def _pages(snapshot: Snapshot) -> list[Problem]:
    repository = snapshot.repository
    found = _strays(snapshot)
    for path, tree_id in snapshot.page_ids().items():
        try:
            wanted, unread = index.rebuilt_past(repository, path, tree_id)
            child = repository.tree(tree_id).get(INDEX)
            is_same = (repository.blob(child.id) if child else b"") == wanted.encode()
        except DamagedError:
            # What is lost of it is named already.
            continue
        found += [
            Problem(code=error.code, path=file, message=error.message)
            for file, error in unread.items()
        ]
        if not is_same:
            message = f"{path}/{INDEX} does not match its files; smp repair makes it anew"
            found.append(Problem(code="stale_index", path=f"{path}/{INDEX}", message=message))
    return found


def _brought_back(snapshot: Snapshot) -> list[Problem]:
    """Name what was deleted and is at head all the same."""
    return [
        Problem(
            code="brought_back",
            path=parse_id(name).path,
            message=f"{name} was deleted, and plain Git brought a version of it back; smp delete {name} takes it out",
        )
        for path in snapshot.page_ids()
        for name in sorted(snapshot.dead(path))
    ]


def _strays(snapshot: Snapshot) -> list[Problem]:
    pages = snapshot.page_ids()
    return [
        Problem(code="stray_file", path=path, message=f"{path}: no memory belongs at this path")
        for path, _ in snapshot.repository.files(snapshot.tree)
        if kind_of_folder(path.partition("/")[0])
        and parse_path(path) is None
        and not (is_index(path) and path.rpartition("/")[0] in pages)
    ]


def _checked_out(reader: Reader, snapshot: Snapshot) -> list[Problem]:
    try:
        handmade = find(snapshot, reader.path)
    except SmpError as error:
        return [Problem(code=error.code, path="", message=error.message)]
    return [
        Problem(code="uncommitted", path=path, message=f"{path} differs from what is committed")
        for path in (*handmade.files, *handmade.stale_indexes)
    ]


def _git_index(reader: Reader, snapshot: Snapshot) -> list[Problem]:
    """Check that Git's index agrees with the tree it is said to agree with, or with head."""
    base = staging.recorded_tree(reader.repository.git)
    if base is None or not reader.repository.has(base):
        return []
    wanted = {path: str(blob) for path, blob in reader.repository.files(base)}
    now = {path: str(blob) for path, blob in reader.repository.files(snapshot.tree)}
    staged = {entry.path: str(entry.id) for entry in reader.repository.index()}
    return [
        Problem(code="staged", path=path, message=f"{path} is staged in Git's index")
        for path in sorted(wanted.keys() | now.keys() | staged.keys())
        if staged.get(path) not in (wanted.get(path), now.get(path))
    ]
