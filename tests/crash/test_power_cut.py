"""Power cuts: what is acknowledged is durable, and plain Git sees it at once."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from smp_git import Store
from smp_git.git import disk
from smp_git.git.objects import BLOB, Object
from tests.concurrency.writers import assert_clean
from tests.crash.children import DIED, VERBS, die_at, ended
from tests.crash.disks import FILE_SYSTEMS, FileSystem, copied
from tests.support import ROOT, git

pytestmark = pytest.mark.slow

_WRITER = """
import sys
from smp_git import Store
from smp_git.git import disk
disk.boot = lambda: "the boot before"
store = Store.init(sys.argv[1])
with store.create_session("shop") as session:
    for number in range(100_000):
        if number % 5 == 4:
            name = session.edit("FIND-0001", severity="high" if number % 2 else "low", agent="a").id
            print(f"{name} {session.get(name).fields['severity']}", flush=True)
        elif number % 17 == 16:
            with session.transaction(agent="a") as tx:
                names = [tx.add("learning", f"number {number} {one}").id for one in range(40)]
            print(*names, sep=chr(10), flush=True)
        elif number % 7 == 6:
            kept = session.values("a").put(("numbers", str(number)), {"number": number})
            print(kept.id, flush=True)
        else:
            print(session.add("finding", f"number {number}", agent="a").id, flush=True)
"""


def _rebooted(path: Path) -> None:
    (path / ".git/smp/boot").write_text("another boot")


def _assert_kept(store: Path, acknowledged: list[str]) -> None:
    """Assert that Git alone and then smp find all that was acknowledged."""
    path = store / "active/shop"
    _rebooted(path)
    logged = git(path, "log", "--format=%(trailers:key=Memory,valueonly,separator=%x0A)").split()
    files = git(path, "ls-tree", "-r", "--name-only", "main")
    for name in acknowledged:
        assert name in logged
        assert f"/{name}.yaml" in files
    git(path, "archive", "-o", os.devnull, "main")
    with Store.open(store).session("shop") as session:
        assert session.check() == ()
        assert set(acknowledged) <= {memory.id for memory in session.memories()}
        session.add("finding", "after the cut", agent="a")
    assert_clean(path)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("system", FILE_SYSTEMS, ids=lambda system: system.name)
def test_copy_of_the_medium_holds_all_that_was_acknowledged(
    tmp_path: Path, system: FileSystem, seed: int
) -> None:
    disk_file = system.image(tmp_path / "disk")
    place, copy = tmp_path / "mounted", tmp_path / "copy"
    with system.mounted(place, disk_file):
        writer = subprocess.Popen(
            [sys.executable, "-c", _WRITER, str(place / "store")],
            cwd=ROOT, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        assert writer.stdout is not None
        lines = [writer.stdout.readline()]
        time.sleep(random.Random(seed).uniform(0.05, 2))
        os.kill(writer.pid, signal.SIGSTOP)
        copied(disk_file, copy)
        writer.kill()
        lines += writer.communicate()[0].splitlines()
    with system.after_a_cut(place, copy):
        _assert_kept(place / "store", [line.split()[0] for line in lines])


@pytest.mark.parametrize("system", FILE_SYSTEMS, ids=lambda system: system.name)
def test_objects_forced_out_are_there_without_any_reference(
    tmp_path: Path, system: FileSystem
) -> None:
    disk_file = system.image(tmp_path / "disk")
    place, copy = tmp_path / "mounted", tmp_path / "copy"
    with system.mounted(place, disk_file):
        session = Store.init(place / "store").create_session("shop")
        objects = [Object(BLOB, f"number {number}\n".encode()) for number in range(20)]
        with session._handle.reader.repository.store(objects) as written:
            written.flush()
        copied(disk_file, copy)
        session.close()
    with system.after_a_cut(place, copy):
        for item in objects:
            assert (
                git(place / "store/active/shop", "cat-file", "blob", item.id).encode() == item.data
            )


def _forced_by(log: Path) -> None:
    """Let this process, in a boot of its own, note each file that is forced out."""

    def noting(name: str, files: Callable[[Any], Iterable[int | str]]) -> None:
        original = getattr(disk, name)

        def forced(first: Any, *rest: Any) -> Any:
            result = original(first, *rest)
            with log.open("a") as out:
                out.writelines(f"{os.stat(file).st_ino}\n" for file in files(first))  # noqa: PTH116 - or a descriptor
            return result

        setattr(disk, name, forced)

    noting("flush_data", list)
    noting("flush_name", lambda fd: [fd])
    disk.boot = lambda: "the boot before"  # type: ignore[assignment]


@pytest.mark.parametrize("blank", [b"", b"\0" * 41], ids=["empty", "NULs"])
@pytest.mark.parametrize(
    "verb", ["store", "flush_data", "move", "flush_name", "check_out", "clear_pending", "flush"]
)
def test_files_that_were_not_forced_out_are_not_missed(
    tmp_path: Path, verb: str, blank: bytes
) -> None:
    root, log, told = tmp_path / "store", tmp_path / "forced", tmp_path / "told"

    def killed() -> None:
        _forced_by(log)
        store = Store.init(root)
        with store.create_session("shop") as session, told.open("w") as out:
            for number in range(5):
                out.write(session.add("finding", f"number {number}", agent="a").id + "\n")
                out.flush()
            die_at(VERBS[verb], leaving=False)
            session.add("finding", "never acknowledged", agent="a")

    assert ended(killed) == DIED
    forced = set(map(int, log.read_text().split()))
    for file in root.rglob("*"):
        if file.is_file() and file.stat().st_ino not in forced:
            file.chmod(0o600)
            file.write_bytes(blank if file.name != "config.yaml" else b"")

    _assert_kept(root, told.read_text().split())


def test_object_that_somebody_else_wrote_is_made_durable_too(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    with store.create_session("shop") as session:
        memory = session.add("finding", "No MFA", agent="a")
        file = session.file(memory.id)
        file.write_text(file.read_text() + "severity: high\n")
        blob = git(session.path, "hash-object", "-w", str(file)).strip()
        log = tmp_path / "forced"

        def commits() -> None:
            _forced_by(log)
            session.commit(agent="a")

        assert ended(commits) == 0
        stored = session.path / ".git/objects" / blob[:2] / blob[2:]
        assert str(stored.stat().st_ino) in log.read_text().split()


@pytest.mark.parametrize("debris", [b"", b"\0" * 40], ids=["empty", "NULs"])
def test_object_that_a_power_cut_left_blank_is_written_anew(tmp_path: Path, debris: bytes) -> None:
    session = Store.init(tmp_path / "store").create_session("shop")
    wanted = Object(BLOB, b"never published\n")
    blank = session.path / ".git/objects" / wanted.id[:2] / wanted.id[2:]
    blank.parent.mkdir(exist_ok=True)
    blank.write_bytes(debris)
    session._handle.reader.repository.store([wanted]).close()

    assert git(session.path, "cat-file", "blob", wanted.id) == "never published\n"


def test_old_version_left_by_a_power_cut_is_not_taken_for_an_edit(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    with store.create_session("shop") as session:
        memory = session.add("finding", "No MFA", agent="a", severity="low")
        undone = session.add("finding", "Not so", agent="a")
        file, other = session.file(memory.id), session.file(undone.id)
        old, gone = file.read_bytes(), other.read_bytes()
        session.edit(memory.id, severity="high")
        session.undo()
        session.undo()
        session.edit(memory.id, severity="critical")
    file.write_bytes(old)
    other.write_bytes(gone)
    _rebooted(session.path)

    with store.session("shop") as session:
        assert session.check() == ()
        session.commit()
        assert [one.fields["severity"] for one in session.memories()] == ["critical"]


def test_persons_edit_outlives_a_power_cut(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    with store.create_session("shop") as session:
        file = session.file(session.add("finding", "No MFA", agent="a").id)
    file.write_text(mine := file.read_text() + "note: mine\n")
    _rebooted(session.path)

    with store.session("shop"):
        assert file.read_text() == mine


@pytest.mark.skipif(shutil.which("strace") is None, reason="there is no strace")
def test_objects_are_forced_out_before_the_reference_and_the_reference_after(
    tmp_path: Path,
) -> None:
    with Store.init(tmp_path / "store").create_session("shop") as session:
        session.add("finding", "First", agent="a")
    trace = tmp_path / "trace"
    code = (
        "import sys; from smp_git import Store\n"
        "Store.open(sys.argv[1]).session('shop').add('finding', 'Second', agent='a')"
    )
    calls = "trace=fsync,syncfs,sync_file_range,rename,renameat,renameat2"
    done = subprocess.run(
        ["strace", "-f", "-y", "-e", calls, "-o", trace, sys.executable, "-c", code, session.path.parents[1]],
        cwd=ROOT, capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode and "ptrace" in done.stderr:
        pytest.skip("strace is not allowed here")
    lines = trace.read_text().splitlines()
    published = next(
        at for at, line in enumerate(lines) if "rename" in line and "main.lock" in line
    )
    stored = [at for at, line in enumerate(lines) if re.search(r"rename.*tmp_obj_smp", line)]
    forced = [
        at for at, line in enumerate(lines) if re.search(r"(sync|sync_file_range)\(|syncfs", line)
    ]

    assert stored and max(stored) < published
    assert [at for at in forced if max(stored) < at < published]
    assert [at for at in forced if at > published]
