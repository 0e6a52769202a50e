"""Two kinds of server, each with an empty bare repository, and how a session reaches it."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from smp_git import Session, Store
from tests.servers.servers import Cutter, HttpServer, Server, SshServer
from tests.support import git


@dataclass
class Place:
    """A server, its repository, and a proxy before it."""

    server: SshServer | HttpServer
    cutter: Cutter
    bare: Path

    @property
    def address(self) -> str:
        """The address of the repository, through the proxy."""
        return self.server.address(self.bare.name, self.cutter.port)

    def let_in(self, monkeypatch: pytest.MonkeyPatch, store: Store, *, rightly: bool = True) -> Store:  # fmt: skip
        """Give a store what the server asks for, or something else; return the store anew."""
        if isinstance(self.server, HttpServer):
            monkeypatch.setenv("SMP_TOKEN", self.server.password if rightly else "wrong")
        else:
            key = self.server.key if rightly else self.server.wrong_key
            _set(store, f"ssh_key: {key}")
        return Store.open(store.path, clock=store.clock)


def _set(store: Store, line: str) -> None:
    config = store.path / "config.yaml"
    name = line.partition(":")[0]
    kept = [each for each in config.read_text().splitlines() if not each.startswith(name)]
    config.write_text("\n".join([*kept, line]) + "\n")


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder with a short name: a socket's may not be long."""
    folder = Path(tempfile.mkdtemp(prefix="smp-"))
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def repositories(short_folder: Path) -> Path:
    """The folder of the bare repositories that a server serves."""
    folder = short_folder / "repositories"
    folder.mkdir()
    git(folder, "init", "-q", "--bare", "-b", "main", "shop.git")
    return folder


def _served(server: SshServer | HttpServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    server.start()
    if isinstance(server, SshServer):
        monkeypatch.setenv("PATH", str(server.client()), prepend=os.pathsep)
    cutter = Cutter(server.port)
    yield Place(server, cutter, server.repositories / "shop.git")
    cutter.close()
    server.kill()


@pytest.fixture(params=["ssh", "http"])
def place(request: pytest.FixtureRequest, short_folder: Path, repositories: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:  # fmt: skip
    """A server that is running."""
    folder = short_folder / "server"
    folder.mkdir(mode=0o700)
    kind: type[Server] = SshServer if request.param == "ssh" else HttpServer
    made = kind(folder, repositories)
    assert isinstance(made, (SshServer, HttpServer))
    yield from _served(made, monkeypatch)


@pytest.fixture
def shop(place: Place, store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[Session]:
    """A session with some memories, whose remote is that server."""
    _set(store, f"key_dir: {store.path.parent / 'keys'}")
    _set(store, "sync_timeout_seconds: 20")
    opened = place.let_in(monkeypatch, store)
    with opened.create_session("shop", user="ada") as session:
        for number in range(20):
            session.add("finding", f"Number {number} of what was found", agent="veritas")
        session.add_remote("origin", place.address)
        yield session
