"""Configurations of clients: what each needs to be told to start the server."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from smp_git.format.dialect import escape
from smp_git.git.disk import replace_file
from smp_git.model.errors import InvalidError, StorageError

NAMES: Final = ("claude", "cursor", "vscode", "codex", "desktop")
_TABLE: Final = "[mcp_servers.smp]"


class ClientFile(NamedTuple):
    """A client's file and what it holds before and after."""

    path: Path
    before: str
    after: str


def place_of(client: str, project: Path, home: Path, platform: str) -> Path:
    """Return the file in which a client looks for servers."""
    desktop = {
        "darwin": home / "Library/Application Support/Claude",
        "win32": home / "AppData/Roaming/Claude",
    }.get(platform, home / ".config/Claude")
    return {
        "claude": project / ".mcp.json",
        "cursor": project / ".cursor/mcp.json",
        "vscode": project / ".vscode/mcp.json",
        "codex": home / ".codex/config.toml",
        "desktop": desktop / "claude_desktop_config.json",
    }[_known(client)]


def configuration(client: str, command: Sequence[str]) -> str:
    """Return what a client's file says for this server alone."""
    if _known(client) == "codex":
        return _toml(command)
    return _json(_entry(client, command))


def changed(client: str, path: Path, command: Sequence[str]) -> ClientFile:
    """Return a client's file with the server in it; everything else there stays."""
    try:
        before = path.read_text("utf-8") if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidError(f"cannot read {path}: {error}") from None
    if _known(client) == "codex":
        return ClientFile(path, before, _with_table(before, _toml(command)))
    return ClientFile(path, before, _with_entry(path, before, _entry(client, command)))


def write(file: ClientFile) -> None:
    """Write a client's file, whole or not at all."""
    try:
        file.path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(file.path, file.after.encode(), file.path.with_name(f".{file.path.name}.smp"))
    except OSError as error:
        raise StorageError(f"cannot write {file.path}: {error.strerror}") from None


def _known(client: str) -> str:
    if client not in NAMES:
        raise InvalidError(f"no client {client!r}", hint=f"clients are {', '.join(NAMES)}")
    return client


def _entry(client: str, command: Sequence[str]) -> dict[str, Any]:
    program, *arguments = command
    server: dict[str, Any] = {"command": program, "args": arguments}
    if client == "vscode":
        return {"servers": {"smp": {"type": "stdio", **server}}}
    return {"mcpServers": {"smp": server}}


def _json(value: Mapping[str, Any]) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _with_entry(path: Path, before: str, entry: Mapping[str, Any]) -> str:
    try:
        known = json.loads(before) if before.strip() else {}
    except ValueError as error:
        raise InvalidError(
            f"{path} is not JSON: {error}", hint="add what --print-config prints by hand"
        ) from None
    ((section, servers),) = entry.items()
    if not isinstance(known, dict) or not isinstance(known.get(section, {}), dict):
        raise InvalidError(f"{path} has no mapping {section}", hint="add it by hand")
    return _json({**known, section: {**known.get(section, {}), **servers}})


def _toml(command: Sequence[str]) -> str:
    program, *arguments = (escape(json.dumps(each, ensure_ascii=False)) for each in command)
    return f"{_TABLE}\ncommand = {program}\nargs = [{', '.join(arguments)}]\n"


def _with_table(before: str, table: str) -> str:
    """Return a TOML file with one table replaced or added at its end."""
    lines = before.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if line.strip() == _TABLE]
    if not starts:
        return f"{before.rstrip()}\n\n{table}".lstrip("\n")
    first = starts[0]
    end = next(
        (n for n in range(first + 1, len(lines)) if lines[n].lstrip().startswith("[")), len(lines)
    )
    rest = "".join(lines[end:])
    return "".join(lines[:first]) + table + (f"\n{rest}" if rest else "")
