"""What stands against a deletion: states of a repository in which it could not be complete."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from smp_git.git import staging
from smp_git.git.objects import COMMIT
from smp_git.model.errors import DamagedError, LockedError, RefusedError
from smp_git.model.memory import KINDS
from smp_git.remove.history.rewrite import TAG, Read

_FOLDERS: Final = frozenset(kind.folder for kind in KINDS.values())
_UNDER_WAY: Final = {
    "MERGE_HEAD": "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
    "sequencer": "a cherry-pick or revert",
}
_PARTIAL: Final = {
    "shallow": "it is a shallow clone, whose older history is elsewhere",
    "info/grafts": "it has grafts, which hide history",
    "objects/info/http-alternates": "it borrows objects from another repository",
}


def check(git: Path) -> None:
    """Raise RefusedError, with the reason, if a deletion here could not be complete."""
    for name, what in _UNDER_WAY.items():
        if (git / name).exists():
            raise _refused(git, f"{what} is in progress", "finish or abort it first")
    for name, what in _PARTIAL.items():
        if (git / name).exists():
            raise _refused(git, what, "delete in the whole repository")
    _check_neighbours(git)
    kept = sorted(path.name for path in (git / "objects" / "pack").glob("*.keep"))
    check_files(git)
    if kept:
        raise _refused(git, f"a pack is marked to be kept ({kept[0]})", "remove that mark first")


def check_files(git: Path) -> None:
    """Raise RefusedError if something could not be read, changed or removed when its turn comes."""
    for folder, what in ((git / "objects", "objects"), (git / "smp", "its local files"), (git.parent, "")):  # fmt: skip
        for path in _closed(folder, is_deep=bool(what)):
            name = path.relative_to(git.parent).as_posix()
            raise _refused(git, f"{name} cannot be read or changed", "change its owner or its mode")
    for path in (git / "smp").iterdir():
        try:
            mode = path.lstat().st_mode
        except FileNotFoundError:
            # Scratch of another process, which is done with it.
            continue
        if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
            raise _refused(git, f".git/smp/{path.name} is no file", "remove it")


def _closed(folder: Path, *, is_deep: bool) -> Iterator[Path]:
    """Yield folders that cannot be changed and, below `.git`, files that cannot be read."""
    stack = [(str(folder), 0)]
    while stack:
        here, depth = stack.pop()
        try:
            with os.scandir(here) as found:
                entries = list(found)
        except FileNotFoundError:
            continue
        except PermissionError:
            entries = []
        if _is_closed(here, os.R_OK | os.W_OK | os.X_OK):
            yield Path(here)
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                if is_deep or _is_page(entry.name, depth):
                    stack.append((entry.path, depth + 1))
            elif is_deep and _is_closed(entry.path, os.R_OK):
                yield Path(entry.path)


def _is_closed(path: str, mode: int) -> bool:
    """Whether something is there, still, and cannot be used so."""
    # It may have been away for the moment of the first question.
    return not os.access(path, mode) and os.path.lexists(path) and not os.access(path, mode)


def _is_page(name: str, depth: int) -> bool:
    """Whether a folder of the session is one of a kind of memories, or a page of one."""
    return name in _FOLDERS if depth == 0 else depth == 1


def _check_neighbours(git: Path) -> None:
    alternates = git / "objects" / "info" / "alternates"
    if alternates.exists() and alternates.read_bytes().strip():
        raise _refused(git, "it borrows objects from another repository", "clone it without --shared")  # fmt: skip
    folder = git / "worktrees"
    worktrees = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if worktrees:
        raise _refused(
            git,
            f"it has linked worktrees ({', '.join(worktrees)})",
            "remove them with git worktree first",
        )


def check_index(git: Path) -> None:
    """Raise LockedError or RefusedError if Git's index could not be cleaned now."""
    why = staging.obstacle(git)
    if why == staging.HELD:
        raise LockedError(f"nothing was deleted from session {git.parent.name}: {why}", hint="try again when it is done")  # fmt: skip
    if why:
        raise _refused(git, why, "git status says more")


def check_readable(git: Path, paths: Iterable[str]) -> None:
    """Raise RefusedError for a file that would be taken for an old version of a living memory."""
    for path in paths:
        raise _refused(git, f"{path} cannot be read, and its memory lives", f"mend {path} by hand and run smp commit")  # fmt: skip


def check_tips(git: Path, read: Read, refs: dict[str, bytes]) -> None:
    """Raise RefusedError if a reference cannot be rewritten."""
    for name, tip in refs.items():
        if name.startswith("refs/bisect/"):
            raise _refused(git, "a bisection is in progress", "finish or abort it first")
        try:
            kind, data = read(tip)
            while kind == TAG:
                kind, data = read(bytes.fromhex(data[7:47].decode()))
        except DamagedError as error:
            raise _refused(git, f"{name} cannot be read", "smp check names what is affected") from error  # fmt: skip
        if kind != COMMIT:
            raise _refused(git, f"{name} names a {kind.decode()}, not a commit", "remove that reference first")  # fmt: skip


def _refused(git: Path, why: str, hint: str) -> RefusedError:
    return RefusedError(f"nothing was deleted from session {git.parent.name}: {why}", hint=hint)
