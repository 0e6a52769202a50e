"""How often a remote far away is connected to, and how much it has to send: by a program in the place of ssh."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from smp_git.model.errors import RemoteRefusedError
from tests.support import git
from tests.sync.support import Machine, sound, tree

_SSH = """\
#!/bin/sh
echo "$@" >> {log}/connections
for last; do :; done
sh -c "$last" | tee -a {log}/sent
"""


class _Line:
    """What went over the line so far."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.forget()

    def forget(self) -> None:
        for name in ("connections", "sent"):
            (self._folder / name).write_bytes(b"")

    @property
    def connections(self) -> int:
        return len((self._folder / "connections").read_text().splitlines())

    @property
    def sent(self) -> int:
        return (self._folder / "sent").stat().st_size


@pytest.fixture
def line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> _Line:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(_SSH.format(log=program.parent))
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    return _Line(program.parent)


def test_what_came_in_takes_one_connection_and_what_goes_out_two_more(
    tmp_path: Path, line: _Line
) -> None:
    hub = tmp_path / "hub.git"
    with Machine(tmp_path, "left").begin(hub) as left:
        address = f"ssh://host{hub}"
        with Machine(tmp_path, "right").store.clone(address) as right:
            for comes, goes, most in ((0, 0, 1), (1, 0, 1), (0, 1, 3), (2, 2, 3)):
                for number in range(comes):
                    left.add("finding", f"From the left {number}", agent="a")
                left.sync()
                for number in range(goes):
                    right.add("finding", f"From the right {number}", agent="b")
                line.forget()
                result = right.sync()

                assert (result.fetched, line.connections) == (comes, most)
                assert result.advertised == right.head
                left.sync()
                assert tree(left) == tree(right)
            sound(right)


def test_what_was_deleted_here_is_not_sent_at_each_sync(tmp_path: Path, line: _Line) -> None:
    """A remote that refuses forced pushes keeps it; it is asked, and not fetched from."""
    hub = tmp_path / "hub.git"
    Machine(tmp_path, "left").begin(hub).close()
    with Machine(tmp_path, "right").store.clone(f"ssh://host{hub}") as right:
        for number in range(30):
            right.add("finding", os.urandom(2_000).hex() + f" {number}", agent="b")
        right.sync()
        git(hub, "config", "receive.denyNonFastForwards", "true")
        right.delete("DEC-0001", purge=True)
        sent = []
        for _ in range(3):
            line.forget()
            with pytest.raises(RemoteRefusedError, match="deletion not published"):
                right.sync()
            sent.append(line.sent)

        assert max(sent) < 5_000
        git(hub, "config", "receive.denyNonFastForwards", "false")
        right.sync()
        sound(right)
