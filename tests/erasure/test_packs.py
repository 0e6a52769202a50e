"""Packs: what is put into one comes out of it again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smp_git import Session
from smp_git.git import storage
from smp_git.git.storage import Packed
from tests.conftest import Clock
from tests.erasure.histories import Objects
from tests.erasure.test_sentinel import deleted

_texts = st.lists(st.sampled_from([b"red\n", b"green\n" * 9, b"blue", b"x" * 300, b"\0"]), max_size=60).map(b"".join)  # fmt: skip


@settings(max_examples=15)
@given(texts=st.lists(_texts, min_size=1, max_size=9, unique=True))
def test_versions_of_a_text_come_out_as_they_went_in(
    tmp_path_factory: pytest.TempPathFactory, texts: list[bytes]
) -> None:
    objects = Objects()
    names = [objects.add(b"blob", text) for text in texts]
    items = [Packed(name, b"blob", text, like) for name, text, like in zip(names, texts, [None, *names], strict=False)]  # fmt: skip

    git = _repository(tmp_path_factory.mktemp("r"))
    _put(git, storage.pack(items))

    assert _objects(git) == objects.kept


def test_index_is_the_one_that_git_makes(tmp_path: Path) -> None:
    objects = Objects()
    texts = [f"line {number}\n".encode() * 40 for number in range(300)]
    made = storage.pack(Packed(objects.add(b"blob", text), b"blob", text) for text in texts)
    (tmp_path / "x.pack").write_bytes(made.pack)

    _git(tmp_path, "index-pack", str(tmp_path / "x.pack"))

    assert (tmp_path / "x.idx").read_bytes() == made.idx


@pytest.mark.parametrize("version", ["1", "2"])
def test_names_are_read_of_every_index_that_git_writes(tmp_path: Path, version: str) -> None:
    objects = Objects()
    for number in range(300):
        objects.add(b"blob", f"text {number}".encode())
    git = _repository(tmp_path)
    _put(git, storage.pack(Packed(name, *each) for name, each in objects.kept.items()))
    (index,) = storage.indexes(git / "objects")
    index.chmod(0o600)

    _git(git, "index-pack", f"--index-version={version}", str(index.with_suffix(".pack")))

    assert storage.names(index) == sorted(objects.kept)


def test_what_lives_is_stored_as_differences_after_a_deletion(
    session: Session, clock: Clock
) -> None:
    """Most of what stays differed from something that goes."""
    for number in range(300):
        session.add("decision", f"decision number {number} is kept as it was said", agent="a")
    _git(session.path / ".git", "repack", "-adq")
    before = _packed(session)

    assert deleted(session, clock, "DEC-0290").proof.clean

    assert _packed(session) < before * 1.5


def _packed(session: Session) -> int:
    return sum(path.stat().st_size for path in session.path.rglob(".git/objects/pack/*.pack"))


def _repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    return folder


def _put(git: Path, pack: storage.Pack) -> None:
    folder = git / "objects" / "pack"
    (folder / f"{pack.name}.pack").write_bytes(pack.pack)
    (folder / f"{pack.name}.idx").write_bytes(pack.idx)
    _git(git, "verify-pack", str(folder / f"{pack.name}.idx"))
    _git(git, "fsck", "--full", "--strict")


def _objects(git: Path) -> dict[bytes, tuple[bytes, bytes]]:
    found = {}
    for line in _git(git, "cat-file", "--batch-all-objects", "--batch-check").split(b"\n")[:-1]:
        name, kind, _ = line.decode().split()
        found[bytes.fromhex(name)] = kind.encode(), _git(git, "cat-file", kind, name)
    return found


def _git(git: Path, *rest: str, text: bytes = b"") -> bytes:
    command = ["git", f"--git-dir={git}", *rest]
    return subprocess.run(command, input=text, stdout=subprocess.PIPE, check=True, cwd=git).stdout
