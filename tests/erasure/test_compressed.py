"""Compressed copies: removed where they are Git's rubbish, else looked into, or named."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import shutil
import subprocess
import sys
import tarfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from smp_git import Session
from smp_git.remove.history.prove import verify
from tests.conftest import Clock
from tests.erasure.test_places import filled
from tests.erasure.test_sentinel import SENTINEL, deleted
from tests.independent_scan import scan
from tests.support import PEAK, ROOT, git

WORDS = f"{SENTINEL} is edited"
PATH = "decisions/000/DEC-0002.yaml"


def tarred(text: str, name: str = "old.txt") -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        entry = tarfile.TarInfo(name)
        entry.size = len(text)
        archive.addfile(entry, io.BytesIO(text.encode()))
    return out.getvalue()


def zipped(text: bytes, name: str = "old.txt") -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, text)
    return out.getvalue()


def _bare(folder: Path) -> None:
    subprocess.run(["git", "clone", "-q", "--bare", "--no-local", str(folder), str(folder / "old.git")], check=True)  # fmt: skip


def _bare_loose(folder: Path) -> None:
    _bare(folder)
    objects = folder / "old.git/objects"
    (pack,) = objects.glob("pack/*.pack")
    data = pack.read_bytes()
    for each in objects.glob("pack/*"):
        each.unlink()
    git_folder = folder / "old.git"
    subprocess.run(["git", f"--git-dir={git_folder}", "unpack-objects", "-q"], input=data, check=True)  # fmt: skip


def _pack(folder: Path) -> None:
    git(folder, "repack", "-adq")
    (pack,) = (folder / ".git/objects/pack").glob("*.pack")
    shutil.copy(pack, folder / "kept.pack")


COPIES: dict[str, Callable[[Path], object]] = {
    "gzip": lambda f: (f / "old.gz").write_bytes(gzip.compress(WORDS.encode())),
    "bzip2": lambda f: (f / "old.bz2").write_bytes(bz2.compress(WORDS.encode())),
    "xz": lambda f: (f / "old.xz").write_bytes(lzma.compress(WORDS.encode())),
    "tar": lambda f: (f / "old.tar").write_bytes(tarred(WORDS)),
    "tar.gz": lambda f: (f / "old.tar.gz").write_bytes(gzip.compress(tarred(WORDS))),
    "tar.xz": lambda f: (f / "old.tar.xz").write_bytes(lzma.compress(tarred(WORDS))),
    "zip": lambda f: (f / "old.zip").write_bytes(zipped(WORDS.encode())),
    "zip in gzip": lambda f: (f / "o.gz").write_bytes(gzip.compress(zipped(WORDS.encode()))),
    "gzip in zip": lambda f: (f / "o.zip").write_bytes(zipped(gzip.compress(WORDS.encode()))),
    "bundle": lambda f: git(f, "bundle", "create", "-q", "old.bundle", "--all"),
    "thin bundle": lambda f: git(f, "bundle", "create", "-q", "old.bundle", "HEAD~2..HEAD"),
    "pack": _pack,
    "bare clone": _bare,
    "bare clone of loose objects": _bare_loose,
    "in .git": lambda f: (f / ".git/old.gz").write_bytes(gzip.compress(WORDS.encode())),
}  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
def test_compressed_copy_is_found(session: Session, clock: Clock, copy: str) -> None:
    folder = filled(session)
    before = {*folder.iterdir()}
    COPIES[copy](folder)
    if copy != "thin bundle":
        assert scan(folder, [WORDS.encode()])
    with Session(folder, clock) as opened:
        receipt = deleted(opened, clock, "DEC-0002")

    if copy == "thin bundle":
        assert any("old.bundle: " in each for each in receipt.proof.not_looked_into)
    else:
        assert not receipt.proof.clean
        assert any("inside the file" in hit for hit in receipt.proof.hits), receipt.proof.hits
    assert list((folder / ".git/smp").glob("opened-*")) == []
    for made in {*folder.iterdir()} - before:
        shutil.rmtree(made) if made.is_dir() else made.unlink()
    (folder / ".git/old.gz").unlink(missing_ok=True)
    with Session(folder, clock) as opened:
        assert verify(opened._handle.reader, opened._handle.reader.snapshot().tombstones).clean


def test_compressed_copy_in_history_is_found(session: Session, clock: Clock) -> None:
    folder = filled(session)
    (folder / "old.zip").write_bytes(zipped(WORDS.encode()))
    git(folder, "add", "old.zip")
    git(folder, "commit", "-q", "--no-verify", "-m", "an archive")
    (folder / "old.zip").unlink()
    with Session(folder, clock) as opened:
        assert deleted(opened, clock, "DEC-0002").proof.hits == ("inside an archive of history",)
    git(folder, "reset", "-q", "--hard", "HEAD")
    git(folder, "rm", "-q", "old.zip")
    git(folder, "commit", "-q", "--no-verify", "-m", "no archive")


def test_archives_of_very_many_files_take_no_memory(session: Session, clock: Clock) -> None:
    folder = filled(session)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for number in range(90_000):
            archive.writestr(f"a file of a rather long name that says nothing {number:060}", b"")
    (folder / "many.zip").write_bytes(out.getvalue())
    with Session(folder, clock) as opened:
        proof = deleted(opened, clock, "DEC-0002").proof

    assert proof.not_looked_into == ("many.zip: an archive of very many files",)
    (folder / "many.zip").unlink()


CLOSED: dict[str, tuple[bytes, str]] = {
    "7z": (b"7z\xbc\xaf\x27\x1c" + bytes(100), "a 7z archive"),
    "pdf": (b"%PDF-1.7 ", "a PDF"),
    "torn gzip": (gzip.compress(b"x" * 100_000)[:50], "an archive that cannot be read (EOFError)"),
    "torn zip": (zipped(b"x" * 100_000)[:50], "an archive that cannot be read (BadZipFile)"),
    "no pack": (b"PACK and no more", "a pack or bundle that is not whole"),
    "too deep": (gzip.compress(gzip.compress(gzip.compress(gzip.compress(b"x")))), "an archive in an archive, too deep"),
}  # fmt: skip


@pytest.mark.parametrize("form", CLOSED)
def test_what_cannot_be_opened_is_named(session: Session, clock: Clock, form: str) -> None:
    folder = filled(session)
    data, why = CLOSED[form]
    (folder / "odd.bin").write_bytes(data)
    with Session(folder, clock) as opened:
        proof = deleted(opened, clock, "DEC-0002").proof

    assert proof.not_looked_into == (f"odd.bin: {why}",)
    assert proof.clean
    (folder / "odd.bin").unlink()


# Git's rubbish


def _quarantine(folder: Path) -> None:
    place = folder / ".git/objects/tmp_objdir-incoming-aB3xYz"
    (place / "12").mkdir(parents=True)
    name = git(folder, "rev-parse", f"HEAD~1:{PATH}").strip()
    loose = folder / f".git/objects/{name[:2]}/{name[2:]}"
    shutil.copy(loose, place / "12" / name[2:])
    (place / "pack").mkdir()
    (place / "pack/tmp_pack_abc").write_bytes(zlib.compress(WORDS.encode()))


def _odd_pack(folder: Path, suffixes: tuple[str, ...]) -> None:
    git(folder, "repack", "-adq")
    (index,) = (folder / ".git/objects/pack").glob("*.idx")
    for suffix in suffixes:
        shutil.copy(index.with_suffix(suffix), index.with_name(f"mine{suffix}"))


RUBBISH: dict[str, Callable[[Path], object]] = {
    "quarantine of a push": _quarantine,
    "pack of another name without its index": lambda f: _odd_pack(f, (".pack",)),
    "index without its pack": lambda f: _odd_pack(f, (".idx",)),
    "pack of another name": lambda f: _odd_pack(f, (".pack", ".idx")),
}


@pytest.mark.parametrize("what", RUBBISH)
def test_rubbish_of_git_goes(session: Session, clock: Clock, what: str) -> None:
    folder = filled(session)
    RUBBISH[what](folder)
    with Session(folder, clock) as opened:
        receipt = deleted(opened, clock, "DEC-0002")

    assert receipt.proof.clean, receipt.proof.hits
    assert scan(folder, [SENTINEL.encode()]) == []
    assert list((folder / ".git/objects").glob("tmp_*")) == []
    assert git(folder, "fsck", "--full", "--strict", "--no-dangling") == ""


# Bounds

_BOUNDED = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from smp_git import Session
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import RewriteOrder

with Session(Path(sys.argv[1]), lambda: datetime.now(UTC)) as session:
    proof = erase(session._handle.writer, ["DEC-0002"], RewriteOrder(by="a", now=datetime.now(UTC))).proof
print(proof.clean, *proof.not_looked_into, sep="\\n")
print(peak_kilobytes() // 1024)
"""


@pytest.mark.slow
def test_large_files_take_neither_the_memory_nor_the_day(session: Session) -> None:
    """A file of 1.2 GB, one that swells to 2 GB, an archive in an archive, a large object."""
    folder = filled(session)
    with (folder / "large.bin").open("wb") as file:
        file.truncate(1_200 << 20)
        file.seek(1_000 << 20)
        file.write(WORDS.encode())
    swelling = gzip.compress(bytes(1 << 20), 9)
    (folder / "bomb.gz").write_bytes(swelling * 2_000)
    (folder / "nested.zip").write_bytes(zipped(gzip.compress(bytes(300 << 20), 9), "b.gz"))
    with (folder / "history.bin").open("wb") as file:
        file.truncate(300 << 20)
    git(folder, "add", "history.bin")
    git(folder, "commit", "-q", "--no-verify", "-m", "large")

    done = subprocess.run([sys.executable, "-c", PEAK + _BOUNDED, folder], cwd=ROOT, capture_output=True, text=True, timeout=300, check=True)  # fmt: skip

    clean, *unread, size = done.stdout.splitlines()
    assert clean == "False"
    assert any("only in part" in line for line in unread)
    assert int(size) < 300
    for name in ("large.bin", "bomb.gz", "nested.zip"):
        (folder / name).unlink()
    git(folder, "reset", "-q", "--hard", "HEAD")
    git(folder, "rm", "-q", "history.bin")
    git(folder, "commit", "-q", "--no-verify", "-m", "no large file")
