"""Configurations of clients: what is printed is what each client reads, and installing keeps the rest."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from smp_git.integrations.mcp import clients
from smp_git.model.errors import InvalidError
from tests.support import smp

CALL = ["/usr/bin/smp", "--root", 'C:\\a "store"', "mcp"]
_STDIO = {"command": CALL[0], "args": CALL[1:]}
# As the documentation of each client has it.
RECORDED = {
    "claude": {"mcpServers": {"smp": _STDIO}},
    "cursor": {"mcpServers": {"smp": _STDIO}},
    "desktop": {"mcpServers": {"smp": _STDIO}},
    "vscode": {"servers": {"smp": {"type": "stdio", **_STDIO}}},
    "codex": {"mcp_servers": {"smp": _STDIO}},
}


@pytest.mark.parametrize("client", clients.NAMES)
def test_what_is_printed_is_what_the_client_reads(client: str) -> None:
    text = clients.configuration(client, CALL)

    assert (tomllib.loads(text) if client == "codex" else json.loads(text)) == RECORDED[client]


@pytest.mark.parametrize("client", clients.NAMES)
def test_installing_twice_changes_nothing_more_and_keeps_what_was_there(
    client: str, tmp_path: Path
) -> None:
    path = clients.place_of(client, tmp_path, tmp_path / "home", "linux")
    before = (
        '# mine\nmodel = "x"\n\n[mcp_servers.other]\ncommand = "a"\n'
        if client == "codex"
        else '{"mcpServers": {"other": {"command": "a"}}, "servers": {}, "mine": 1}'
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before)
    clients.write(clients.changed(client, path, CALL))
    once = path.read_text()
    clients.write(clients.changed(client, path, ["/other/smp", "mcp"]))
    clients.write(clients.changed(client, path, CALL))

    assert path.read_text() == once
    found = tomllib.loads(once) if client == "codex" else json.loads(once)
    assert found.get("mine", found.get("model")) in (1, "x")
    assert "other" in str(found)
    assert CALL[0] in once


def test_a_file_that_is_not_sound_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / ".mcp.json"
    path.write_text("{ // comment")
    with pytest.raises(InvalidError, match="is not JSON"):
        clients.changed("claude", path, CALL)
    path.write_text('{"mcpServers": []}')
    with pytest.raises(InvalidError, match="has no mapping mcpServers"):
        clients.changed("claude", path, CALL)
    with pytest.raises(InvalidError, match="no client 'emacs'"):
        clients.configuration("emacs", CALL)


def test_the_command_shows_the_change_and_writes_it(tmp_path: Path) -> None:
    shown = smp("mcp", "--print-config", "claude", cwd=tmp_path).stdout
    done = smp("mcp", "--print-config", "claude", "--install", cwd=tmp_path)

    assert "+++ " in done.stdout
    assert f"wrote {tmp_path / '.mcp.json'}" in done.stderr
    assert json.loads((tmp_path / ".mcp.json").read_text()) == json.loads(shown)


def test_without_the_extra_the_server_says_how_to_get_it(tmp_path: Path) -> None:
    try:
        import mcp  # noqa: F401
    except ImportError:
        done = smp("mcp", cwd=tmp_path, check=False)
        assert done.returncode == 4
        assert done.stderr.splitlines()[1] == "hint: pip install 'smp-git[mcp]'"
    else:
        pytest.skip("the extra mcp is installed")
