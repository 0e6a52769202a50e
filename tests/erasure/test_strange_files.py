"""What is no plain file neither hangs nor breaks a deletion: it is named, or refused before."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session
from tests.conftest import Clock
from tests.erasure.test_places import filled, put
from tests.erasure.test_sentinel import SENTINEL
from tests.independent_scan import scan
from tests.support import ROOT, git, git_input

DELETE = """
import json, os, sys, tempfile
from pathlib import Path
from smp_git import Store
from smp_git.model.errors import SmpError

if sys.argv[2] == "as nobody" and os.geteuid() == 0:
    with tempfile.TemporaryDirectory() as place, Store.init(place).create_session("warm") as warm:
        # Everything is imported before the right to read it goes.
        warm.add("decision", "one", agent="a")
        warm.delete("DEC-0001", by="a")
        warm.verify(), warm.receipt(), warm.info(), warm.check(), warm.commit()
    for path in Path(os.environ["HOME"]).rglob("*"):
        os.chown(path, 65534, 65534)
    os.setgroups([])
    os.setgid(65534)
    os.setuid(65534)

store = Store(Path(sys.argv[1]))
with store.session("shop") as session:
    session.info()
    try:
        session.commit()
    except SmpError:
        pass  # it names what it cannot take in
    try:
        receipt = session.delete("DEC-0002", by="a")
    except SmpError as error:
        print(json.dumps({"refused": error.message}))
        sys.exit()
    proof = session.verify()
    kept = session.receipt()["proof"]
    session.check()
assert proof.clean == receipt.proof.clean, proof.hits
assert list(receipt.proof.not_looked_into) == kept["not_looked_into"]
print(json.dumps({"unread": kept["not_looked_into"], "clean": kept["clean"]}))
"""


@pytest.fixture
def shop(session: Session) -> Path:
    return filled(session)


def deleted(folder: Path, *, as_nobody: bool = False) -> dict[str, Any]:
    """Delete in a process of its own, which a hang would outlast."""
    done = subprocess.run(
        [sys.executable, "-c", DELETE, str(folder.parent.parent), "as nobody" if as_nobody else ""],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd="/",
        env={
            **os.environ,
            "PYTHONPATH": str(ROOT),
            **({"HOME": f"{folder.parents[2]}/home"} if as_nobody else {}),
        },
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert isinstance(found, dict)
    return found


def _socket(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    here = Path.cwd()
    os.chdir(path.parent)
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


def _not_utf8(folder: Path) -> None:
    (folder / os.fsdecode(b"n\xff\xfe.txt")).write_text("nothing of it")


def _deep(folder: Path) -> None:
    """More folders in each other than a path may be long."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        below = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


STRANGE: dict[str, tuple[Callable[[Path], object], list[str]]] = {
    "pipe": (lambda f: os.mkfifo(f / "pipe"), ["pipe: a pipe"]),
    "pipe among memories": (lambda f: os.mkfifo(f / "decisions/000/DEC-0009.yaml"), ["decisions/000/DEC-0009.yaml: a pipe"]),
    "pipe beside its file": (lambda f: os.mkfifo(f / "decisions/000/DEC-0002.yaml~"), []),
    "pipe in .git": (lambda f: os.mkfifo(f / ".git/queue"), [".git/queue: a pipe"]),
    "pipe among references": (lambda f: os.mkfifo(f / ".git/refs/heads/queue"), [".git/refs/heads/queue: a pipe"]),
    "pipe among objects": (lambda f: os.mkfifo(f / ".git/objects/queue"), [".git/objects/queue: a pipe"]),
    "socket": (lambda f: _socket(f / "talk"), ["talk: a socket"]),
    "socket of Git": (lambda f: _socket(f / ".git/fsmonitor--daemon.ipc"), []),
    "link to elsewhere": (lambda f: (f / "out").symlink_to("/etc"), ["out: a link to elsewhere"]),
    "link to itself": (lambda f: (f / "loop").symlink_to("loop"), []),
    "name that is no UTF-8": (_not_utf8, []),
    "folder named as its copy": (lambda f: (f / "decisions/000/DEC-0002 copy.yaml").mkdir(), []),
    "folder in the place of a message": (lambda f: (f / ".git/ORIG_HEAD").mkdir(), []),
    "odd name among objects": (lambda f: put(f / ".git/objects/ab" / ("z" * 38), "no object"), []),
    "index without a pack": (lambda f: (f / f".git/objects/pack/pack-{'1' * 40}.idx").write_bytes(b"no index"), []),
}  # fmt: skip


@pytest.mark.parametrize("what", STRANGE)
def test_what_is_no_plain_file_is_named(shop: Path, what: str) -> None:
    make, expected = STRANGE[what]
    make(shop)

    found = deleted(shop)

    assert found == {"unread": expected, "clean": True}
    assert scan(shop, [SENTINEL.encode()]) == []
    _clear(shop)


def test_folders_too_deep_to_be_named_are_named(shop: Path) -> None:
    _deep(shop)

    found = deleted(shop)

    (unread,) = found["unread"]
    assert len(unread) < 5_000
    assert "File name too long" in unread
    shutil.rmtree(shop / ("d" * 200))


def test_very_deep_folders_break_nothing(shop: Path) -> None:
    """More than Python calls into itself, in the folder and in the history."""
    deep = shop
    for _ in range(1_200):
        deep /= "d"
        deep.mkdir()
    (deep / "text.txt").write_text(f"{SENTINEL} is edited")
    git(shop, "add", "-A")
    git(shop, "commit", "-q", "--no-verify", "-m", "deep")

    found = deleted(shop)

    assert found == {"unread": [], "clean": False}
    subprocess.run(["rm", "-r", str(shop / "d")], check=True)
    git(shop, "rm", "-rq", "--cached", "d")
    git(shop, "commit", "-q", "--no-verify", "-m", "flat")


def _clear(folder: Path) -> None:
    for name in (
        "pipe",
        "talk",
        "out",
        "loop",
        "decisions/000/DEC-0009.yaml",
        ".git/refs/heads/queue",
    ):
        (folder / name).unlink(missing_ok=True)


# What cannot be read or changed


@pytest.fixture
def open_shop(clock: Clock) -> Iterator[Path]:
    """A session of a user who is not root, as root reads everything."""
    from smp_git import Store

    top = Path(tempfile.mkdtemp(prefix="smp-strange-"))
    with Store.init(top / "store", clock=clock).create_session("shop") as session:
        folder = filled(session)
    (top / "home").mkdir()
    if os.geteuid() == 0:
        for path in (top, *top.rglob("*")):
            os.chown(path, 65534, 65534, follow_symlinks=False)
    yield folder
    for path in (top, *top.rglob("*")):
        if path.is_dir():
            path.chmod(0o700)
    shutil.rmtree(top)


def test_file_that_cannot_be_read_is_named(open_shop: Path) -> None:
    closed = open_shop / "diary.txt"
    closed.write_text("mine")
    closed.chmod(0)

    found = deleted(open_shop, as_nobody=True)

    assert found.get("unread") == ["diary.txt: a file that cannot be read (Permission denied)"], (
        found
    )
    assert scan(open_shop, [SENTINEL.encode()]) == []


def _object(folder: Path) -> Path:
    """Make an object that opening a session does not need."""
    name = git_input(folder, b"of another thing\n", "hash-object", "-w", "--stdin", GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="safe.directory", GIT_CONFIG_VALUE_0="*")  # fmt: skip
    made = folder / f".git/objects/{name[:2]}/{name[2:]}"
    if os.geteuid() == 0:
        os.chown(made.parent, 65534, 65534)
    return made


CLOSED: dict[str, Callable[[Path], Path]] = {
    "folder of objects": lambda f: next((f / ".git/objects").glob("[0-9a-f][0-9a-f]")),
    "object": _object,
    "page": lambda f: f / "decisions/000",
    "local folder": lambda f: f / ".git/smp/cache",
}


@pytest.mark.parametrize("what", CLOSED)
def test_what_cannot_be_changed_is_refused_before_anything_is(open_shop: Path, what: str) -> None:
    closed = CLOSED[what](open_shop)
    closed.mkdir(exist_ok=True) if what == "local folder" else None
    if os.geteuid() == 0:
        os.chown(closed, 0, 0)
    mode = closed.stat().st_mode
    closed.chmod(0o555 if closed.is_dir() else 0)

    found = deleted(open_shop, as_nobody=True)

    name = closed.relative_to(open_shop).as_posix()
    assert found == {"refused": f"nothing was deleted from session shop: {name} cannot be read or changed"}  # fmt: skip
    closed.chmod(mode)
    assert not (open_shop / ".git/smp/erasure.json").exists()
    assert scan(open_shop, [SENTINEL.encode()])
