"""What the tests of syncing share: machines, each with a store of its own, and remotes."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from smp_git import Session, Store
from tests.conftest import Clock
from tests.support import git


class Machine:
    """A store with keys of its own, as on another computer."""

    def __init__(self, folder: Path, name: str, *more: str) -> None:
        self.clock = Clock()
        Store.init(folder / name, clock=self.clock)
        lines = ("format: 1", "durability: relaxed", f"key_dir: {folder / f'{name}-keys'}", *more)
        (folder / name / "config.yaml").write_text("\n".join(lines) + "\n")
        self.store = Store.open(folder / name, clock=self.clock)

    def begin(self, remote: Path) -> Session:
        """Make a session with a remote, and something in it."""
        session = self.store.create_session("shop", user="ada")
        session.add("decision", "Use PostgreSQL", agent="architect")
        session.add_remote("origin", remote, create=True)
        session.sync()
        return session

    def clone(self, remote: Path) -> Session:
        """Make the session from a remote."""
        return self.store.clone(str(remote))


def hook(git_folder: Path, name: str, text: str) -> Path:
    """Write a hook of a repository; return its path."""
    path = git_folder / "hooks" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@contextmanager
def plain_files(folder: Path) -> Iterator[str]:
    """Serve a folder as files, to which Git goes without a server of its own; yield the address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(_Files, directory=str(folder))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class _Files(SimpleHTTPRequestHandler):
    def do_GET(self) -> None:
        if self.path.endswith(".pack"):
            # Its index is there before it for a while.
            time.sleep(0.1)
        super().do_GET()

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def tree(session: Session) -> str:
    return git(session.path, "rev-parse", "main^{tree}")


def head(remote: Path, branch: str = "main") -> str:
    return git(remote, "rev-parse", f"refs/heads/{branch}").strip()


def sound(session: Session) -> None:
    """Check a session as its own check, its proof and Git see it."""
    assert session.check() == ()
    assert session.verify().clean
    git(session.path, "fsck", "--strict")
    assert git(session.path, "status", "--porcelain") == ""
    assert not list((session.path / ".git").glob("syncing/incoming/*/"))
