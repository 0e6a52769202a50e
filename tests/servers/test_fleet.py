"""Many sessions and one real server: repositories that it makes, connections that are shared."""

from __future__ import annotations

import re
import subprocess
from contextlib import suppress
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.model.errors import RemoteNotFoundError, SyncError
from tests.servers.conftest import Place
from tests.servers.servers import HttpServer, SshServer
from tests.support import ROOT, git

pytestmark = pytest.mark.slow

_COUNT = 6
# As a forge does it.
_MAKES = """\
place=$GIT_PROJECT_ROOT${PATH_INFO%/info/refs}
case "$QUERY_STRING" in service=git-receive-pack) [ -e "$place" ] || git init -q --bare -b main "$place" ;; esac
exec /usr/lib/git-core/git-http-backend
"""


def makes_repositories(place: Place) -> None:
    """Let a server make a repository that is pushed to: by the script that the guide has."""
    if isinstance(place.server, HttpServer):
        place.server.runs(_MAKES)
        return
    guide = (ROOT / "docs/how-to/grow.md").read_text()
    (script,) = re.findall(r"```sh\n(#!/bin/sh\n# ~/memory-shell.*?)```", guide, re.DOTALL)
    file = place.server.folder / "memory-shell"
    file.write_text(script.replace("(memory/", f"({place.server.repositories}/"))
    file.chmod(0o755)
    place.server.gives(str(file))


@pytest.fixture
def many(place: Place, store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """A store with some sessions, whose pattern names that server."""
    lines = [
        f"remote: {place.server.address('{session}.git')}",
        f"key_dir: {store.path.parent / 'keys'}",
        "durability: relaxed",
        "sync_timeout_seconds: 20",
    ]
    with (store.path / "config.yaml").open("a") as file:
        file.write("\n".join(lines) + "\n")
    opened = place.let_in(monkeypatch, store)
    for number in range(_COUNT):
        with opened.create_session(f"s{number}") as session:
            session.add("finding", f"Number {number}", agent="a")
    return opened


def test_a_server_that_makes_repositories_gets_those_of_new_sessions(place: Place, many: Store) -> None:  # fmt: skip
    makes_repositories(place)

    results, failed = many.sync()

    assert (len(results), failed) == (_COUNT, {})
    for name, result in results.items():
        bare = place.server.repositories / f"{name}.git"
        assert git(bare, "rev-parse", "main").strip() == result.advertised
    git(place.server.repositories, "init", "-q", "--bare", "-b", "main", "gone.git")
    (place.server.repositories / "s1.git").rename(place.server.repositories / "moved")
    _, failed = many.sync()
    assert isinstance(failed["s1"], RemoteNotFoundError), "what was there is not made again"
    assert list(failed) == ["s1"]


def test_a_server_that_makes_none_says_so(place: Place, many: Store) -> None:
    _, failed = many.sync()

    assert len(failed) == _COUNT
    assert all(isinstance(each, SyncError) and each.hint for each in failed.values())
    assert not list(place.server.repositories.glob("s[0-9].git"))


def _kept_open(server: SshServer) -> list[str]:
    """Return the commands of connections to a server that are kept open."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            command = each.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            found += [command] if "ControlPath" in command and f":{server.port}" in command else []
    return found


@pytest.mark.parametrize("place", ["ssh"], indirect=True)
def test_many_sessions_share_a_connection(place: Place, many: Store) -> None:
    assert isinstance(place.server, SshServer)
    makes_repositories(place)
    many.sync()
    for name in many.sessions():
        with many.session(name) as session:
            session.add("finding", "one more", agent="a")
    before = place.server.connections()

    results, failed = many.sync()

    assert (len(results), failed) == (_COUNT, {})
    assert all(result.pushed for result in results.values())
    assert place.server.connections() == before + 1
    assert _kept_open(place.server) == [], "none is left open"


@pytest.mark.parametrize("place", ["ssh"], indirect=True)
def test_a_server_that_shares_no_connection_is_synced_all_the_same(place: Place, many: Store) -> None:  # fmt: skip
    assert isinstance(place.server, SshServer)
    makes_repositories(place)
    config = place.server.folder / "sshd_config"
    config.write_text(f"{config.read_text()}MaxSessions 1\n")
    place.server.kill()
    place.server.start()

    results, failed = many.sync()

    assert (len(results), failed) == (_COUNT, {})


@pytest.mark.parametrize("place", ["ssh"], indirect=True)
def test_the_script_of_the_guide_makes_nothing_else(place: Place) -> None:
    makes_repositories(place)
    shell = place.server.folder / "memory-shell"
    below = place.server.repositories
    for wanted in (
        f"git-receive-pack '{below}/../outside.git'",
        f"git-receive-pack '{below}/a/b.git'",
        f"git-receive-pack '{below}/x.git'; touch {below}/hacked",
        f"git-upload-pack '{below}/read.git'",
        "touch hacked",
        "",
    ):
        subprocess.run([shell], env={"SSH_ORIGINAL_COMMAND": wanted, "PATH": "/usr/bin:/bin"}, cwd=below, stdin=subprocess.DEVNULL, capture_output=True, check=False)  # fmt: skip
    assert sorted(path.name for path in below.iterdir()) == ["shop.git"]
