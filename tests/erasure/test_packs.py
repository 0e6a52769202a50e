"""Packs: what is put into one comes out of it again."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smp_git.git import packs
from smp_git.git.packs import Packed
from tests.erasure.histories import Objects

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
    _put(git, packs.pack(items))

    assert _objects(git) == objects.kept


def _repository(folder: Path) -> Path:
    subprocess.run(["git", "init", "-q", "--bare", str(folder)], check=True)
    return folder


def _put(git: Path, pack: packs.Pack) -> None:
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
