"""What comes in stands aside until it is adopted, and leaves nothing behind."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import signal
import struct
import subprocess
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from smp_git import Session
from smp_git.git import command, layout
from smp_git.git.storage import Packed, stored_names
from smp_git.git.transport import Limits, RemoteAccess
from smp_git.model.errors import RemoteNotFoundError
from smp_git.sync import quarantine
from smp_git.sync.inspect.inspection import inspect
from smp_git.sync.quarantine import Quarantine
from tests.support import PEAK, git, python
from tests.sync.hostile import FILE, FOLDER, MEMORY, Forge

ACCESS = RemoteAccess(surroundings=os.environ)
MAIN = "refs/heads/main"


@pytest.fixture
def forge(session: Session, tmp_path: Path) -> Forge:
    session.add("finding", "the login page has no limit of tries")
    return Forge(tmp_path / "remote.git", session.path)


@pytest.fixture
def own(session: Session) -> Path:
    return session.path / ".git"


def _more(forge: Forge, count: int) -> list[str]:
    """Move the remote by commits of one file each; return their ids."""
    tips = [forge.head]
    for number in range(count):
        notes = forge.tree([(FILE, b"x.md", forge.blob(b"%d" % number))])
        tips.append(forge.commit(forge.top((FOLDER, b"notes", notes)), tips[-1]))
    forge.branch(tips[-1])
    return tips[1:]


def _new(held: Quarantine, own: Path) -> set[bytes]:
    """Return the ids of what came in and is not in the session."""
    return set(stored_names(held.git / "objects")) - set(stored_names(own / "objects"))


def _files(own: Path) -> set[str]:
    return {str(path.relative_to(own)) for path in own.rglob("*") if path.is_file()}


def test_only_what_is_new_comes_over(forge: Forge, own: Path) -> None:
    (tip,) = _more(forge, 1)

    with Quarantine(own) as held:
        held.fetch(str(forge.place), ACCESS, Limits())
        assert held.refs == {MAIN: tip}
        assert len(_new(held, own)) == 4
        assert held.repository.raw(bytes.fromhex(forge.head))[0] == b"commit"


def test_nothing_of_the_session_changes_before_it_is_adopted(forge: Forge, own: Path) -> None:
    _more(forge, 3)
    before = _files(own)

    with Quarantine(own) as held:
        held.fetch(str(forge.place), ACCESS, Limits())
        inside = {name for name in _files(own) - before if not name.startswith("syncing/")}

    assert inside == set()
    assert _files(own) - before == {"syncing/incoming/lock"}


@pytest.mark.parametrize("count", [3, 100], ids=["few", "many"])
def test_all_that_came_is_adopted(count: int, forge: Forge, own: Path) -> None:
    tip = _more(forge, count)[-1]

    with Quarantine(own) as held:
        held.fetch(str(forge.place), ACCESS, Limits())
        new = _new(held, own)
        held.adopt()
        assert _new(held, own) == set()
    git(own, "update-ref", "refs/heads/other", tip)

    assert len(new) == 4 * count
    assert git(own, "fsck", "--full", "--strict").strip() == ""
    modes = {path.stat().st_mode & 0o777 for path in (own / "objects" / "pack").iterdir()}
    assert modes <= {0o400}
    assert bool(modes) == (count > 16)


@pytest.mark.parametrize("part", [4, 200], ids=["few", "many"])
def test_a_part_is_adopted(part: int, forge: Forge, own: Path) -> None:
    tips = _more(forge, 100)
    middle = tips[part // 4 - 1]

    with Quarantine(own) as held:
        held.fetch(str(forge.place), ACCESS, Limits())
        wanted = command.reachable(held.git, {bytes.fromhex(middle)})
        assert wanted is not None
        new = _new(held, own)
        held.adopt(wanted)
        assert _new(held, own) == new - wanted
    git(own, "update-ref", "refs/heads/other", middle)

    assert git(own, "fsck", "--full", "--strict").strip() == ""


@pytest.mark.parametrize("count", [2, 200])
def test_objects_made_of_what_came_are_adopted(count: int, forge: Forge, own: Path) -> None:
    names = [bytes.fromhex(forge.blob(b"%d" % number)) for number in range(count)]
    made = [Packed(name, b"blob", b"%d" % number) for number, name in enumerate(names)]

    with Quarantine(own) as held:
        held.adopt_objects(made)

    assert [git(own, "cat-file", "-p", name.hex()) for name in names] == [str(n) for n in range(count)]  # fmt: skip


def test_clone_begins_with_an_empty_session(forge: Forge, session: Session, tmp_path: Path) -> None:
    tip = _more(forge, 30)[-1]
    layout.create(tmp_path / "clone")
    own = tmp_path / "clone" / ".git"

    with Quarantine(own) as held:
        held.fetch(str(forge.place), ACCESS, Limits())
        found = inspect(held.repository, held.refs, ())
        held.adopt()
    git(own, "update-ref", MAIN, tip)

    assert found.session == "shop"
    assert found.uid == session.metadata.uid
    assert git(own, "fsck", "--full", "--strict").strip() == ""


def test_empty_remote_brings_nothing(own: Path, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", str(tmp_path / "empty.git"))

    with Quarantine(own) as held:
        held.fetch(str(tmp_path / "empty.git"), ACCESS, Limits())
        assert held.refs == {}
        held.adopt()


def test_tracking_reference_that_dangles_does_no_harm(forge: Forge, own: Path) -> None:
    (own / "refs" / "remotes").mkdir(parents=True)
    gone = own / "refs" / "remotes" / "gone"
    gone.write_text("12" * 20 + "\n")
    (tip,) = _more(forge, 1)

    with Quarantine(own) as held:
        held.fetch(str(forge.place), ACCESS, Limits())
        assert held.refs == {MAIN: tip}
    # The session's own check names it.
    gone.unlink()


def test_failure_leaves_nothing(own: Path, tmp_path: Path) -> None:
    before = _files(own)

    with Quarantine(own) as held, pytest.raises(RemoteNotFoundError):
        held.fetch(str(tmp_path / "nothing"), ACCESS, Limits())

    assert _files(own) - before <= {"syncing/incoming/lock"}


# What the dead leave


def _die_while_fetching(own: Path, place: Path) -> None:
    with Quarantine(own) as held:
        held.fetch(str(place), ACCESS, Limits())
        os.kill(os.getpid(), signal.SIGKILL)


def test_what_a_killed_process_left_is_swept_by_the_next(forge: Forge, own: Path) -> None:
    _more(forge, 1)
    dead = multiprocessing.get_context("fork").Process(target=_die_while_fetching, args=(own, forge.place))  # fmt: skip
    dead.start()
    dead.join()
    folders = [path for path in (own / layout.PLACE).iterdir() if path.is_dir()]

    with Quarantine(own) as held:
        standing = [path for path in (own / layout.PLACE).iterdir() if path.is_dir()]
        assert standing == [held.path]

    assert dead.exitcode == -signal.SIGKILL
    assert len(folders) == 1


def test_deletion_removes_what_a_killed_process_left(forge: Forge, own: Path, session: Session) -> None:  # fmt: skip
    dead = multiprocessing.get_context("fork").Process(target=_die_while_fetching, args=(own, forge.place))  # fmt: skip
    dead.start()
    dead.join()

    session.delete("FIND-0001")

    assert [path for path in (own / layout.PLACE).iterdir() if path.is_dir()] == []


def test_what_is_in_use_is_not_swept(forge: Forge, own: Path) -> None:
    with Quarantine(own) as held:
        held.fetch(str(forge.place), ACCESS, Limits())
        assert quarantine.sweep(own) == 0
        assert held.git.is_dir()

    assert quarantine.sweep(own) == 0


def test_folder_is_open_to_its_owner_only(own: Path) -> None:
    with Quarantine(own) as held:
        assert {path.stat().st_mode & 0o777 for path in (held.path, held.path.parent)} == {0o700}


# Bombs


_MEASURED = """
import os, resource, sys
from pathlib import Path
from smp_git.model.errors import SyncError
from smp_git.git import references
from smp_git.git.transport import RemoteAccess as Access, Limits
from smp_git.sync.inspect.inspection import inspect
from smp_git.sync.quarantine import Quarantine
own, place = Path(sys.argv[1]), sys.argv[2]
try:
    with Quarantine(own) as held:
        held.fetch(place, Access(surroundings=os.environ), Limits(memory_bytes=200 << 20))
        inspect(held.repository, held.refs, [references.read(own)["refs/heads/main"]])
    print("accepted")
except SyncError as error:
    print(type(error).__name__, error.message)
print(peak_kilobytes() // 1024)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
"""


def _measured(own: Path, place: Path) -> tuple[str, int, int]:
    """Return how an arrival ended, and the megabytes that we and Git took."""
    said, ours, gits = python(PEAK + _MEASURED, own, place).stdout.splitlines()
    return said, int(ours), int(gits)


@pytest.mark.slow
def test_800_megabytes_of_zeros_are_never_held(forge: Forge, own: Path) -> None:
    forge.pushed((FILE, b"x.md", forge.zeros(800 << 20)))

    said, ours, gits = _measured(own, forge.place)

    assert said.startswith("UntrustedError")
    assert "838,860,800 bytes" in said
    assert ours < 200
    assert gits < 300


def test_difference_that_unfolds_to_gigabytes_is_refused(forge: Forge, own: Path, tmp_path: Path) -> None:  # fmt: skip
    """A pack whose second object says: the first, copied two hundred times."""
    tip = forge.commit(forge.top())
    pack = _unfolding(200)
    forge.branch(tip)

    with Quarantine(own) as held:
        target = held.git / "objects" / "pack" / "pack-x.pack"
        target.write_bytes(pack)
        limited = f"ulimit -S -d {200 << 10}; exec git index-pack --strict {target}"
        done = subprocess.run(["sh", "-c", limited], capture_output=True, text=True)

    assert done.returncode != 0
    assert "memory" in done.stderr


def _unfolding(times: int) -> bytes:
    base = bytes(0xFFFFFF)
    size = len(base) * times

    def varint(value: int) -> bytes:
        out = bytearray()
        while value > 0x7F:
            out.append(value & 0x7F | 0x80)
            value >>= 7
        return bytes([*out, value])

    def head(kind: int, value: int) -> bytes:
        first, value = kind << 4 | value & 15, value >> 4
        return bytes([first | 0x80]) + varint(value) if value else bytes([first])

    first = head(3, len(base)) + zlib.compress(base)
    copies = varint(len(base)) + varint(size) + b"\xf0\xff\xff\xff" * times
    name = hashlib.sha1(b"blob %d\0" % len(base) + base).digest()
    second = head(7, len(copies)) + name + zlib.compress(copies)
    body = b"PACK" + struct.pack(">II", 2, 2) + first + second
    return body + hashlib.sha1(body).digest()


@pytest.mark.slow
def test_memories_of_many_megabytes_are_read_one_by_one(forge: Forge, own: Path) -> None:
    page = [
        (FILE, b"FIND-%04d.yaml" % n, forge.blob(MEMORY.format(id=f"FIND-{n:04d}", text=chr(97 + n % 26) * (1 << 20))))
        for n in range(1, 100)
    ]  # fmt: skip
    forge.pushed((FOLDER, b"findings", forge.tree([(FOLDER, b"000", forge.tree(page))])))

    said, ours, _ = _measured(own, forge.place)

    assert said == "accepted"
    assert ours < 250


@pytest.fixture(autouse=True)
def nothing_ran() -> Iterator[None]:
    yield
    assert not Path("/tmp/pwned").exists()
