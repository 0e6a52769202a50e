"""Packs held in memory: every object as Git has it, and nothing that is not there."""

from __future__ import annotations

import random
import subprocess
import zlib
from pathlib import Path

import pytest

from smp_git.git import packfile
from smp_git.git.packfile import PackFile


@pytest.mark.parametrize("told", ["--delta-base-offset", "--no-delta-base-offset"])
@pytest.mark.parametrize("backwards", [False, True])
def test_objects_are_as_git_has_them(tmp_path: Path, told: str, backwards: bool) -> None:
    """Series of versions, so that most are differences, many of them to differences."""
    git = _repository(tmp_path)
    index = _packed(git, told, "--depth=50", "--window=2")
    found = PackFile.read_from(index)
    chain = _git(git, "verify-pack", "-v", str(index)).split(b"non delta")[1]

    assert found is not None
    assert b"chain length = 4" in chain
    names = sorted(_names(git), reverse=backwards)
    for name in names:
        kind, data = _object(git, name)
        assert found.header(bytes.fromhex(name)) == (kind, len(data))
        assert found.read(bytes.fromhex(name)) == (kind, data)
    for name in random.Random(3).sample(names, 50):
        assert found.read(bytes.fromhex(name)) == _object(git, name)


def test_little_is_kept_of_what_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git = _repository(tmp_path)
    index = _packed(git, "--delta-base-offset")
    monkeypatch.setattr(packfile, "_KEPT_BYTES", 4_000)
    found = PackFile.read_from(index)

    assert found is not None
    for name in _names(git):
        assert found.read(bytes.fromhex(name)) == _object(git, name)


def test_what_is_elsewhere_is_not_there(tmp_path: Path) -> None:
    index = _packed(_repository(tmp_path), "--delta-base-offset")
    found = PackFile.read_from(index)

    assert found is not None
    assert found.read(bytes(20)) is None
    assert found.header(bytes(20)) is None


def test_large_packs_are_left_to_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = _packed(_repository(tmp_path), "--delta-base-offset")
    monkeypatch.setattr(packfile, "LARGEST", 1_000)

    assert PackFile.read_from(index) is None


def test_what_unfolds_to_much_is_left_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pack of 1,000 bytes may hold a text of a million, or make one of pieces."""
    git = _repository(tmp_path)
    index = _packed(git, "--delta-base-offset")
    found = PackFile.read_from(index)
    monkeypatch.setattr(packfile, "LARGEST", 100_000)
    (large,) = [name for name in _names(git) if len(_object(git, name)[1]) == 200_000]

    assert found is not None
    assert found.header(bytes.fromhex(large)) == (b"blob", 200_000)
    assert found.read(bytes.fromhex(large)) is None


def test_old_indexes_are_read_as_well(tmp_path: Path) -> None:
    git = _repository(tmp_path)
    found = PackFile.read_from(_packed(git, "--index-version=1"))

    assert found is not None
    for name in _names(git):
        assert found.read(bytes.fromhex(name)) == _object(git, name)


def test_damaged_packs_end_nowhere(tmp_path: Path) -> None:
    """Whatever is wrong: another object, or none, but no exception and no end of the machine."""
    git = _repository(tmp_path)
    index = _packed(git, "--delta-base-offset")
    path = index.with_suffix(".pack")
    whole = path.read_bytes()
    chosen = random.Random(11)
    names = chosen.sample(_names(git), 40)
    path.chmod(0o600)

    for _ in range(60):
        data = bytearray(whole)
        for _ in range(chosen.randint(1, 20)):
            data[chosen.randrange(12, len(data))] = chosen.randrange(256)
        path.write_bytes(data if chosen.random() < 0.8 else data[: len(data) // 2])
        found = PackFile.read_from(index)
        assert found is not None
        for name in names:
            for said in (found.header(bytes.fromhex(name)), found.read(bytes.fromhex(name))):
                assert said is None or said[0] in (b"blob", b"tree", b"commit", b"tag")


def test_differences_in_a_circle_end(tmp_path: Path) -> None:
    """Each of two is told by the name of the other: neither is there."""
    left, right = b"\x11" * 20, b"\x22" * 20
    entries = [b"\x70" + each + zlib.compress(b"") for each in (right, left)]
    data = b"PACK" + bytes(8) + b"".join(entries) + bytes(20)
    found = PackFile(data, {left: 12, right: 12 + len(entries[0])})

    for name in (left, right):
        assert found.header(name) is None
        assert found.read(name) is None


def _repository(folder: Path) -> Path:
    """Return a repository with versions of texts in branches of folders, a tag, and large files."""
    subprocess.run(["git", "init", "-q", str(folder)], check=True)
    git = folder / ".git"
    chosen, who = random.Random(7), ("-c", "user.name=a", "-c", "user.email=b@c")
    files: dict[str, bytes] = {
        "large": chosen.randbytes(90_000),
        "empty": b"",
        "like": b"a" * 200_000,
    }
    for number in range(60):
        name = f"decisions/{number // 20:03d}/DEC-{number:04d}.yaml"
        files[name] = chosen.randbytes(200).hex().encode()
        lines = files.get("index", b"").splitlines(keepends=True)
        lines.insert(chosen.randint(0, len(lines)), files[name][:120] + b"\n")
        files["index"] = b"".join(lines)
        for path, data in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(data)
        _git(git, "add", "-A", folder=folder)
        _git(git, *who, "commit", "-q", "-m", f"commit {number}", folder=folder)
    _git(git, *who, "tag", "-a", "-m", "a tag", "v1")
    return git


def _packed(git: Path, *options: str) -> Path:
    _git(git, "pack-objects", "-q", "--all", *options, "objects/pack/pack")
    _git(git, "prune-packed", "-q")
    (index,) = (git / "objects/pack").glob("*.idx")
    return index


def _names(git: Path) -> list[str]:
    said = _git(git, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return said.decode().split()


def _object(git: Path, name: str) -> tuple[bytes, bytes]:
    head, _, rest = _git(git, "cat-file", "--batch", text=f"{name}\n".encode()).partition(b"\n")
    return head.split()[1], rest[:-1]


def _git(git: Path, *rest: str, text: bytes = b"", folder: Path | None = None) -> bytes:
    place = ["--work-tree", str(folder)] if folder else []
    command = ["git", f"--git-dir={git}", *place, *rest]
    done = subprocess.run(
        command, input=text, stdout=subprocess.PIPE, check=True, cwd=folder or git
    )
    return done.stdout
