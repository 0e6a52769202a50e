"""Many stores beside one server of Git: syncs a second, and the server's processor and disk."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from smp_git import Store
from tests.bench.table import rows
from tests.bench.workload import texts
from tests.servers.servers import HttpServer, SshServer
from tests.support import ROOT, git

# More would only stand in a queue before the processor, which the server shares here.
_STORES_AT_ONCE = 4
_MEMORIES = 20
_RECKONED, _SYNCS_A_DAY = 100_000, 24


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield what syncing many sessions costs a server, over ssh and over http."""
    stores, sessions = (2, 2) if short else (20, 15)
    for kind in (SshServer, HttpServer):
        name = "ssh" if kind is SshServer else "http"
        place = folder / name
        (place / "server").mkdir(mode=0o700, parents=True)
        (place / "repositories").mkdir()
        try:
            server = kind(place / "server", place / "repositories")
        except pytest.skip.Exception as missing:
            yield f"\nskipped: {missing}"
            continue
        if isinstance(server, HttpServer):
            server.counts()
        server.start()
        try:
            yield from _rounds(_Fleet(place, server, stores, sessions), name)
        finally:
            server.kill()


@dataclass(frozen=True)
class _Round:
    """One sync of every session."""

    name: str
    seconds: float
    server_seconds: float
    client_seconds: float


class _Fleet:
    """Stores whose sessions are synced with one server."""

    def __init__(self, place: Path, server: SshServer | HttpServer, stores: int, sessions: int) -> None:  # fmt: skip
        self.server, self.count = server, stores * sessions
        self._texts = texts()
        self._environment = _environment(server)
        self._stores = [
            self._made(place / f"store{number:02}", number, sessions) for number in range(stores)
        ]

    def write(self) -> None:
        """Add a memory to each session."""
        for store in self._stores:
            for name in store.sessions():
                with store.session(name) as session:
                    session.add("decision", next(self._texts))

    def sync(self, name: str) -> _Round:
        """Sync every session of every store, by the command, some stores at a time."""
        served, begun = self.server.busy_seconds(), time.perf_counter()
        with ThreadPoolExecutor(_STORES_AT_ONCE) as pool:
            spent = sum(pool.map(self._synced, self._stores))
        seconds = time.perf_counter() - begun
        return _Round(name, seconds, self.server.busy_seconds() - served, spent)

    def _made(self, folder: Path, number: int, sessions: int) -> Store:
        Store.init(folder)
        lines = [
            f"remote: {self.server.address('{session}.git')}",
            f"key_dir: {folder}-keys",
            "durability: relaxed",
            # On a machine that does other work too, a figure that is late is still a figure.
            "sync_timeout_seconds: 600",
        ]
        if isinstance(self.server, SshServer):
            lines.append(f"ssh_key: {self.server.key}")
        with (folder / "config.yaml").open("a") as file:
            file.write("\n".join(lines) + "\n")
        store = Store.open(folder)
        for each in range(sessions):
            name = f"s{number:02}-{each:02}"
            _repository(self.server.repositories, name)
            with store.create_session(name) as session, session.transaction() as tx:
                for _ in range(_MEMORIES):
                    tx.add("decision", next(self._texts))
        return store

    def _synced(self, store: Store) -> float:
        """Sync the sessions of a store; return the processor seconds of the command."""
        command = [sys.executable, "-m", "smp_git", "--root", str(store.path), "sync", "--all-sessions"]  # fmt: skip
        process = subprocess.Popen(command, cwd=ROOT, env=self._environment, stdout=subprocess.DEVNULL)  # fmt: skip
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"the sync of {store.path} failed")
        return used.ru_utime + used.ru_stime


def _rounds(fleet: _Fleet, name: str) -> Iterator[str]:
    yield f"\n{fleet.count} sessions of {_MEMORIES} memories in {len(fleet._stores)} stores, over {name}\n"
    works: Sequence[tuple[str, Callable[[], object]]] = [
        ("the first sync", lambda: None),
        ("one new memory", fleet.write),
        ("nothing new", lambda: None),
    ]
    found = []
    for what, prepared in works:
        prepared()
        found.append(fleet.sync(what))
    sizes = _taken(fleet.server.repositories)
    yield rows(
        ("", "seconds", "syncs a second", "server's processor, ms a sync", "clients', ms a sync"),
        [
            [
                each.name,
                f"{each.seconds:.1f}",
                f"{fleet.count / each.seconds:.1f}",
                f"{each.server_seconds / fleet.count * 1e3:.1f}",
                f"{each.client_seconds / fleet.count * 1e3:.1f}",
            ]
            for each in found
        ],
    )
    yield ""
    yield f"the server's disk: {sizes['bytes'] / fleet.count / 1e3:.1f} KB and {sizes['files'] / fleet.count:.0f} files a session, {sizes['blocks'] / fleet.count / 1e3:.1f} KB in blocks"  # fmt: skip
    yield _reckoned(fleet.count, found[1], sizes["blocks"])


def _reckoned(count: int, synced: _Round, blocks: int) -> str:
    """Return what a hundred thousand sessions need by these figures."""
    busy = synced.server_seconds / count * _RECKONED * _SYNCS_A_DAY / 86_400
    return (
        f"{_RECKONED:,} sessions that each write and sync once an hour: "
        f"{busy:.1f} of the server's processors busy, {_RECKONED * _SYNCS_A_DAY / 86_400:.0f} syncs a second, "
        f"{blocks / count * _RECKONED / 1e9:.0f} GB of disk"
    )


def _environment(server: SshServer | HttpServer) -> Mapping[str, str]:
    found = dict(os.environ)
    if isinstance(server, SshServer):
        found["PATH"] = f"{server.client()}{os.pathsep}{found['PATH']}"
    else:
        found["SMP_TOKEN"] = server.password
    return found


def _repository(repositories: Path, name: str) -> None:
    """Make an empty repository, a copy of the first one."""
    first = repositories / "empty"
    if not first.exists():
        git(repositories, "init", "-q", "--bare", "-b", "main", "--template=", first.name)
    shutil.copytree(first, repositories / f"{name}.git")


def _taken(folder: Path) -> Mapping[str, int]:
    """Return the bytes, the blocks and the files below a folder."""
    found = [path.stat() for path in folder.rglob("*")]
    return {
        "bytes": sum(each.st_size for each in found),
        "blocks": sum(each.st_blocks for each in found) * 512,
        "files": len(found),
    }
