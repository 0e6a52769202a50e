"""Packs: what is put into one comes out of it again, also when others of it are gone."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smp_git.git import packs
from smp_git.git.packs import Packed, survivors
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


@pytest.mark.parametrize("told", ["--delta-base-offset", "--no-delta-base-offset"])
@pytest.mark.parametrize("version", ["1", "2"])
def test_what_lives_of_packs_is_read_as_before(tmp_path: Path, told: str, version: str) -> None:
    """Half the objects go; some of the others were differences to them."""
    chosen = random.Random(7)
    objects, series = _versions(chosen)
    git = _repository(tmp_path / "old")
    for name, (kind, data) in objects.kept.items():
        assert _git(git, "hash-object", "-w", "-t", kind.decode(), "--stdin", text=data).strip() == name.hex().encode()  # fmt: skip
    listed = "".join(f"{name.hex()} a\n" for name in objects.kept).encode()
    form = [told] if told == "--delta-base-offset" else []
    _git(git, "pack-objects", "-q", f"--index-version={version}", *form, "objects/pack/pack", text=listed)  # fmt: skip
    old = sorted((git / "objects/pack").glob("*.pack"))
    gone = frozenset(chosen.sample(sorted(objects.kept), len(objects.kept) // 2))

    def read(names: Sequence[bytes]) -> Mapping[bytes, tuple[bytes, bytes]]:
        return {name: objects.kept[name] for name in names}

    made = survivors(old, gone, read, series.get)

    assert made is not None
    new = _repository(tmp_path / "new")
    _put(new, made)
    assert _objects(new) == {name: each for name, each in objects.kept.items() if name not in gone}
    assert len(made.pack) < sum(len(objects.kept[name][1]) for name in objects.kept.keys() - gone)


def test_nothing_is_made_of_packs_in_which_nothing_lives(tmp_path: Path) -> None:
    objects = Objects()
    name = objects.add(b"blob", b"red")
    git = _repository(tmp_path)
    _put(git, packs.pack([Packed(name, b"blob", b"red")]))

    assert survivors(sorted((git / "objects/pack").glob("*.pack")), {name}, lambda _: {}, lambda _: None) is None  # fmt: skip


def _versions(chosen: random.Random) -> tuple[Objects, dict[bytes, str]]:
    objects = Objects()
    series: dict[bytes, str] = {}
    for page in range(4):
        lines: list[bytes] = []
        for _ in range(40):
            lines.insert(chosen.randint(0, len(lines)), chosen.randbytes(40).hex().encode())
            series[objects.add(b"blob", b"\n".join(lines))] = f"page {page}"
    return objects, series


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
