"""Wrong kinds, fields and parts are errors before a program runs, and right ones are offered."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support import ROOT

HERE = Path(__file__).parent
pytestmark = pytest.mark.slow


def _program(name: str) -> str:
    """Return a program of Pyright, or skip; PYRIGHT says where it is."""
    place = Path(os.environ.get("PYRIGHT", "nowhere")) / name
    if not place.exists():
        pytest.skip("Pyright is not there: PYRIGHT names the folder of its programs")
    return str(place)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Return a user's project, which knows the library as an installed one."""
    config = {"extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    for name in ("right.py", "wrong.py"):
        (tmp_path / name).write_bytes((HERE / name).read_bytes())
    return tmp_path


def _errors(project: Path, name: str) -> list[int]:
    """Return the lines of a file in which Pyright finds an error."""
    done = subprocess.run(
        [_program("pyright"), "--outputjson", "--pythonpath", sys.executable, name],
        cwd=project, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    found = json.loads(done.stdout)["generalDiagnostics"]
    return sorted({each["range"]["start"]["line"] + 1 for each in found if each["severity"] == "error"})  # fmt: skip


def test_right_uses_are_no_errors(project: Path) -> None:
    assert _errors(project, "right.py") == []


def test_wrong_kinds_fields_and_parts_are_errors(project: Path) -> None:
    lines = (HERE / "wrong.py").read_text().splitlines()
    wrong = [number for number, line in enumerate(lines, 1) if line.endswith("# wrong")]

    assert _errors(project, "wrong.py") == wrong


OFFERED = [
    ('session.add("|")', {"turn", "decision", "finding", "preference", "learning", "artifact"}),
    ('session.add("finding", "No second factor", se|)', {"severity="}),
    ('session.add("finding", "No second factor", severity="|")', {"critical", "high", "low"}),
    ('session.edit("FIND-1", rat|)', {"rationale="}),
    ('session.query("login", ki|)', {"kinds="}),
    ('session.query("login", kinds=["|"])', {"decision", "state"}),
    ('session.query("login")[0].|', {"content", "fields", "score", "snippet", "status", "tags"}),
    ('session.context("login").|', {"text", "pieces", "used_tokens"}),
]


def test_right_ones_are_offered(project: Path) -> None:
    head = "from smp_git import Store\n\nsession = Store().session('shop')\n"
    with _server(project) as server:
        for number, (text, offered) in enumerate(OFFERED):
            place = (project / f"program{number}.py").as_uri()
            program = head + text.replace("|", "")
            said = {"uri": place, "languageId": "python", "version": 1, "text": program}
            server.tell("textDocument/didOpen", {"textDocument": said})
            cursor = {"line": 3, "character": text.index("|")}
            asked = {"textDocument": {"uri": place}, "position": cursor}
            found = server.ask("textDocument/completion", asked)["items"]
            assert offered <= {each["label"].strip("\"'") for each in found}, text


class _Server:
    """Pyright's language server, spoken to over its pipes."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0

    def tell(self, method: str, params: object) -> None:
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def ask(self, method: str, params: object) -> Any:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        while True:
            said = self._read()
            if "method" in said and "id" in said:
                # What it asks in turn: settings, of which there are none.
                asked = said.get("params") or {}
                self._send({"jsonrpc": "2.0", "id": said["id"], "result": [{}] * len(asked.get("items", ()))})  # fmt: skip
            elif said.get("id") == self._number:
                return said["result"]

    def _send(self, said: object) -> None:
        assert self._process.stdin
        body = json.dumps(said).encode()
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        self._process.stdin.flush()

    def _read(self) -> Any:
        assert self._process.stdout
        length = 0
        while line := self._process.stdout.readline().strip():
            name, _, value = line.partition(b":")
            length = int(value) if name.lower() == b"content-length" else length
        return json.loads(self._process.stdout.read(length))


@contextmanager
def _server(project: Path) -> Iterator[_Server]:
    with subprocess.Popen(
        [_program("pyright-langserver"), "--stdio"],
        cwd=project, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as process:  # fmt: skip
        server = _Server(process)
        folder = {"uri": project.as_uri(), "name": "project"}
        server.ask(
            "initialize",
            {"processId": os.getpid(), "rootUri": folder["uri"], "workspaceFolders": [folder], "capabilities": {}},
        )  # fmt: skip
        server.tell("initialized", {})
        try:
            yield server
        finally:
            process.kill()
