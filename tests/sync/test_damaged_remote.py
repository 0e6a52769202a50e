"""A remote whose pack is damaged: nothing of it comes in, and the sentence names the remote."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import SmpError
from tests.support import git
from tests.sync.support import Machine, sound, tree


def _damage(pack: Path, at: float) -> None:
    data = bytearray(pack.read_bytes())
    place = int(len(data) * at)
    data[place : place + 4] = bytes(byte ^ 0xFF for byte in data[place : place + 4])
    pack.chmod(0o600)
    pack.write_bytes(data)


@pytest.mark.parametrize("at", [0.1, 0.3, 0.5, 0.7, 0.9])
def test_damaged_pack_of_a_remote_is_refused(tmp_path: Path, at: float) -> None:
    hub = tmp_path / "hub.git"
    one, two = (Machine(tmp_path, name) for name in ("one", "two"))
    with one.begin(hub) as there, two.clone(hub) as here:
        for number in range(20):
            there.add("finding", f"number {number}", agent="veritas")
        there.sync()
        before = tree(here)
        git(hub, "repack", "-adfq")
        (pack,) = (hub / "objects/pack").glob("*.pack")
        whole = pack.read_bytes()
        _damage(pack, at)
        with pytest.raises(SmpError, match=r"origin|hub\.git") as found:
            here.sync()
        assert found.value.hint
        assert tree(here) == before
        sound(here)
        pack.write_bytes(whole)
        here.sync()
        assert tree(here) == tree(there)
        sound(here)
