"""What else one could keep memories with, each reduced to writing one more file."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import sqlite3
import subprocess
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_GIT = ("git", "-c", "gc.auto=0", "-c", "maintenance.auto=false", "-c", "commit.gpgSign=false")
IDENTITY: Mapping[str, str] = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "architect",
    "GIT_AUTHOR_EMAIL": "architect@smp",
    "GIT_COMMITTER_NAME": "architect",
    "GIT_COMMITTER_EMAIL": "architect@smp",
}


def run_git(folder: Path, *arguments: str) -> None:
    """Run one Git command, apart from anybody's configuration."""
    subprocess.run(
        [*_GIT, *arguments], cwd=folder, check=True, capture_output=True, env={**os.environ, **IDENTITY}
    )  # fmt: skip


def same_files(source: Path, target: Path) -> None:
    """Make a repository of the checked-out files of a session, in one commit."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns(".git"))
    run_git(target, "init", "-q", "-b", "main")
    run_git(target, "add", "-A")
    run_git(target, "commit", "-q", "-m", "all")


class Rival(ABC):
    """One way to keep memories; `write` is given the path and text of a new one."""

    @abstractmethod
    def write(self, path: str, text: str) -> None:
        """Keep one more memory."""

    def close(self) -> None:  # noqa: B027 - most have nothing open
        """Let go of what is open."""


class GitCommand(Rival):
    """`git add` and `git commit`, as an agent with a shell does it."""

    def __init__(self, folder: Path, fsync: str) -> None:
        self._folder = folder
        self._fsync = f"core.fsync={fsync}"

    def write(self, path: str, text: str) -> None:
        _place(self._folder / path, text)
        run_git(self._folder, "-c", self._fsync, "add", path)
        run_git(self._folder, "-c", self._fsync, "commit", "-q", "-m", f"decision {path}")


class GitPython(Rival):
    """GitPython: its index and commit, in process; it syncs nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._repo: Any = importlib.import_module("git").Repo(folder)

    def write(self, path: str, text: str) -> None:
        _place(self._folder / path, text)
        index = self._repo.index
        index.add([path])
        index.commit(f"decision {path}")

    def close(self) -> None:
        self._repo.close()


class Dulwich(Rival):
    """dulwich: its porcelain, in process; it syncs nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._porcelain: Any = importlib.import_module("dulwich.porcelain")
        self._repo: Any = importlib.import_module("dulwich.repo").Repo(str(folder))

    def write(self, path: str, text: str) -> None:
        _place(self._folder / path, text)
        self._porcelain.add(self._repo, [str(self._folder / path)])
        who = b"architect <architect@smp>"
        self._porcelain.commit(self._repo, message=f"decision {path}".encode(), author=who, committer=who)  # fmt: skip

    def close(self) -> None:
        self._repo.close()


class JsonLines(Rival):
    """A line appended to one file, and fsync: the least that can be called durable."""

    def __init__(self, folder: Path, kept: Iterator[tuple[str, str]]) -> None:
        folder.mkdir()
        self._file = (folder / "memories.jsonl").open("a")
        for path, text in kept:
            self._file.write(json.dumps({"id": path, "text": text}) + "\n")
        self._file.flush()

    def write(self, path: str, text: str) -> None:
        self._file.write(json.dumps({"id": path, "text": text}) + "\n")
        self._file.flush()
        os.fsync(self._file.fileno())

    def close(self) -> None:
        self._file.close()


class Sqlite(Rival):
    """A row in SQLite with a write-ahead log and synchronous=FULL."""

    def __init__(self, folder: Path, kept: Iterator[tuple[str, str]]) -> None:
        folder.mkdir()
        self._db = sqlite3.connect(folder / "memories.db", isolation_level=None)
        self._db.execute("pragma journal_mode=wal")
        self._db.execute("pragma synchronous=full")
        self._db.execute("create table memory (id text primary key, text text)")
        self._db.execute("begin")
        self._db.executemany("insert into memory values (?, ?)", kept)
        self._db.execute("commit")

    def write(self, path: str, text: str) -> None:
        self._db.execute("insert into memory values (?, ?)", (path, text))

    def close(self) -> None:
        self._db.close()


def _place(target: Path, text: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text)


def rivals(session: Path, folder: Path) -> dict[str, Rival]:
    """Return every rival that is installed, each holding the files of `session` in `folder`."""
    folder.mkdir()
    out: dict[str, Rival] = {}
    for name, make in _OF_FILES.items():
        place = folder / name.replace(" ", "-").replace("=", "-")
        same_files(session, place)
        try:
            out[name] = make(place)
        except ImportError:
            continue
    out["JSONL append + fsync"] = JsonLines(folder / "jsonl", _memories(session))
    out["SQLite WAL synchronous=FULL"] = Sqlite(folder / "sqlite", _memories(session))
    return out


_OF_FILES = {
    "git add + commit, core.fsync=all": lambda place: GitCommand(place, "all"),
    "git add + commit, core.fsync=none": lambda place: GitCommand(place, "none"),
    "GitPython (no sync)": GitPython,
    "dulwich (no sync)": Dulwich,
}


def _memories(session: Path) -> Iterator[tuple[str, str]]:
    for file in sorted(session.glob("decisions/*/*.yaml")):
        if file.name != "index.yaml":
            yield str(file.relative_to(session)), file.read_text()
