"""Syncing with real servers: what they refuse is said, what they lose is sent again."""

from __future__ import annotations

import random
import subprocess
import threading
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import RemoteAuthError, RemoteUnreachableError, SyncError
from tests.servers.conftest import Place
from tests.servers.servers import HttpServer, SshServer
from tests.support import git

pytestmark = pytest.mark.slow


def _head(bare: Path) -> str:
    return git(bare, "rev-parse", "main").strip()


def _sound(session: Session, bare: Path) -> None:
    """Check both ends."""
    assert session.check() == ()
    assert git(session.path, "fsck", "--strict", "--no-dangling") == ""
    assert git(bare, "fsck", "--strict", "--no-dangling") == ""


def _other(place: Place, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Session:
    """Clone the session on another machine."""
    elsewhere = Store.init(tmp_path / "elsewhere", clock=store.clock)
    return place.let_in(monkeypatch, elsewhere).clone(place.address)


def test_synced_cloned_and_synced_again(place: Place, shop: Session, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    result = shop.sync()
    assert result.advertised == shop.head == _head(place.bare)
    with _other(place, store, tmp_path, monkeypatch) as other:
        name = other.add("finding", "Found elsewhere", agent="b").id
        other.sync()
        shop.add("finding", "Found here", agent="a")
        shop.sync()
        other.sync()

        assert shop.get(name).content == "Found elsewhere"
        assert shop.head == other.head == _head(place.bare)
        _sound(other, place.bare)
    _sound(shop, place.bare)


def test_deletion_travels(place: Place, shop: Session, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    shop.sync()
    with _other(place, store, tmp_path, monkeypatch) as other:
        shop.delete("FIND-0007", purge=True)
        shop.sync()
        other.sync()

        assert other.head == shop.head == _head(place.bare)
        assert "Number 6 of what" not in git(place.bare, "log", "-p", "main")


def test_whoever_is_not_let_in_is_told(place: Place, shop: Session, store: Store, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    head = shop.head
    with place.let_in(monkeypatch, store, rightly=False).session("shop") as refused:
        with pytest.raises(RemoteAuthError) as caught:
            refused.sync()
        assert refused.head == head

    assert "wrong" not in caught.value.message
    with place.let_in(monkeypatch, store).session("shop") as session:
        session.sync()
        assert _head(place.bare) == head


@pytest.mark.parametrize("place", ["ssh"], indirect=True)
def test_another_host_key_is_not_trusted(place: Place, shop: Session) -> None:
    assert isinstance(place.server, SshServer)
    place.server.knows(place.server.wrong_key)
    with pytest.raises(RemoteAuthError, match=r"(?i)host key"):
        shop.sync()
    place.server.knows(place.server.host_key)

    assert shop.sync().advertised == shop.head


def test_server_that_is_away(place: Place, shop: Session) -> None:
    place.server.kill()
    with pytest.raises(RemoteUnreachableError):
        shop.sync()
    shop.add("finding", "Written meanwhile", agent="a")
    place.server.start()

    assert shop.sync().advertised == shop.head
    _sound(shop, place.bare)


@pytest.mark.parametrize("seed", range(6))
def test_connection_cut_at_any_byte(place: Place, shop: Session, seed: int) -> None:
    shop.sync()
    shop.add("artifact", "\n".join(random.Random(seed).randbytes(40).hex() for _ in range(2000)), agent="a")  # fmt: skip
    head, before = shop.head, _head(place.bare)
    place.cutter.cut_after(random.Random(seed).randrange(1, 60_000))
    try:
        said = shop.sync().advertised
    except SyncError:
        said = None
    assert _head(place.bare) in ((before, head) if said is None else (said,))
    place.cutter.cut_after(None)

    assert shop.sync().advertised == shop.head == head
    _sound(shop, place.bare)


def test_server_killed_in_the_midst_of_a_push(place: Place, shop: Session) -> None:
    shop.sync()
    hook = place.bare / "hooks" / "pre-receive"
    hook.write_text("#!/bin/sh\ntouch arrived\nsleep 600\n")
    hook.chmod(0o755)
    head, before = shop.add("finding", "On its way", agent="a").commit, _head(place.bare)
    told: list[BaseException] = []
    pushing = threading.Thread(target=lambda: told.append(_failing(shop)))
    pushing.start()
    while not (place.bare / "arrived").exists():
        pushing.join(0.02)
    place.server.kill()
    pushing.join()

    assert isinstance(told[0], RemoteUnreachableError)
    assert _head(place.bare) == before
    hook.unlink()
    place.server.start()
    assert shop.sync().advertised == shop.head == head
    _sound(shop, place.bare)


def _failing(session: Session) -> BaseException:
    try:
        session.sync()
    except SyncError as error:
        return error
    return AssertionError("the push went through")


def test_disk_of_the_server_is_full(place: Place, shop: Session) -> None:
    shop.sync()
    before = _head(place.bare)
    objects = place.bare / "objects"
    kept = place.bare.parent / "objects-kept"
    objects.rename(kept)
    objects.mkdir()
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(objects)], capture_output=True, text=True)  # fmt: skip
    try:
        if done.returncode:
            pytest.skip(f"no small disk can be mounted: {done.stderr.strip()}")
        subprocess.run(["cp", "-a", f"{kept}/.", str(objects)], check=True)
        head = shop.add("artifact", random.Random(1).randbytes(400_000).hex(), agent="a").commit
        with pytest.raises(SyncError) as caught:
            shop.sync()
        assert caught.value.message
        assert _head(place.bare) == before
        subprocess.run(["mount", "-o", "remount,size=16m", str(objects)], check=True)

        assert shop.sync().advertised == head
        _sound(shop, place.bare)
    finally:
        subprocess.run(["umount", "-l", str(objects)], check=False, capture_output=True)


@pytest.mark.parametrize("place", ["http"], indirect=True)
def test_password_is_in_no_file_of_the_session(place: Place, shop: Session) -> None:
    assert isinstance(place.server, HttpServer)
    shop.sync()
    secret = place.server.password.encode()

    assert not [path for path in shop.path.rglob("*") if path.is_file() and secret in path.read_bytes()]  # fmt: skip
