"""Configurations of clients: what is printed is what each client reads, and installing keeps the rest."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from smp_git.integrations.mcp import clients
from smp_git.model.errors import InvalidError
from tests.support import ROOT, smp

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


# The page


PAGE = ROOT / "docs/how-to/use-over-mcp.md"
_HEADINGS = {
    "Claude Code": "claude", "Claude Desktop": "desktop", "Cursor": "cursor",
    "VS Code": "vscode", "Codex": "codex",
}  # fmt: skip


def _blocks(language: str) -> dict[str, str]:
    """Return the first block in a language under each heading of the page."""
    parts = re.split(r"(?m)^## (.+)$", PAGE.read_text())[1:]
    found = {
        heading: re.search(rf"(?s)```{language}\n(.*?)```", text)
        for heading, text in zip(parts[::2], parts[1::2], strict=True)
    }
    return {heading: block[1] for heading, block in found.items() if block}


def _servers(path: Path) -> dict[str, Any]:
    text = path.read_text()
    said = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    (servers,) = said.values()
    return dict(servers)


def test_the_page_has_a_short_path_for_every_client() -> None:
    shell = _blocks("sh")
    assert {_HEADINGS[each] for each in shell if each in _HEADINGS} == set(clients.NAMES)
    assert all(len(shell[each].splitlines()) <= 5 for each in _HEADINGS)


@pytest.mark.parametrize("heading", _HEADINGS)
def test_from_an_empty_folder_the_lines_of_the_page_make_a_memory_that_lasts(
    heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    import anyio
    from mcp import Client, StdioServerParameters

    project, home = tmp_path / "project", tmp_path / "home"
    project.mkdir()
    monkeypatch.setenv("HOME", str(home))
    install, *lines = _blocks("sh")[heading].splitlines()
    assert install == "pip install 'smp-git[mcp]'"
    for line in lines:
        smp(*shlex.split(line)[1:], cwd=project)
    place = clients.place_of(_HEADINGS[heading], project, home, "linux")
    entry = _servers(place)["smp"]

    async def told(tool: str, **given: str) -> Any:
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        server = StdioServerParameters(
            command=entry["command"], args=entry["args"], env=env, cwd=tmp_path
        )
        async with Client(server) as client:
            return (await client.call_tool(tool, given)).structured_content

    anyio.run(lambda: told("remember", text="Orders are kept in PostgreSQL", kind="decision"))
    found = anyio.run(lambda: told("recall", query="orders"))
    assert [each["text"] for each in found["memories"]] == ["Orders are kept in PostgreSQL"]


def test_the_example_in_python_prints_what_it_remembered(tmp_path: Path) -> None:
    pytest.importorskip("mcp", reason="the extra mcp is not installed")
    programs = Path(sys.executable).parent
    assert (programs / "smp").exists()
    path = f"{programs}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", _blocks("py")["Python"]], cwd=tmp_path, text=True, check=True,
        env={**os.environ, "PATH": path}, capture_output=True,
    )  # fmt: skip

    assert done.stdout == "Orders are kept in PostgreSQL\n"
