"""The protocol's own inspector and conformance tests on the MCP server; skipped where they are missing.

They are programs of Node 22 or newer: `SMP_NODE` names a folder in which
`npm i node@24 '@modelcontextprotocol/inspector@>=2' @modelcontextprotocol/conformance` was run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path

import pytest

from smp_git import Store
from tests.support import ROOT

_FOLDER = Path(os.environ.get("SMP_NODE", "/nowhere")) / "node_modules"
_TOOLS = _FOLDER / ".bin"
_TOKEN = "a-token-of-the-tests"
_HERE = re.compile(r"(?:127\.0\.0\.1|localhost):\d+")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("mcp") is None, reason="the extra mcp is not installed"),
    pytest.mark.skipif(
        not (_TOOLS / "mcp-inspector").exists(),
        reason="SMP_NODE names no folder with a newer Node and the inspector",
    ),
]


@pytest.fixture
def shop(store: Store) -> Store:
    with store.create_session("shop", user="ada") as session:
        session.add("decision", "Use PostgreSQL for orders", agent="architect")
    return store


def run(tool: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{_FOLDER / 'node/bin'}:{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "SMP_MCP_TOKEN": _TOKEN}
    return subprocess.run(
        [_TOOLS / tool, *arguments], cwd=folder, env=env, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip


def inspect(store: Store, *arguments: str) -> subprocess.CompletedProcess[str]:
    server = [sys.executable, "-P", "-m", "smp_git", "--root", str(store.path), "mcp"]
    patience = ("--connect-timeout", "60000")
    return run("mcp-inspector", "--cli", *server, *patience, *arguments, folder=store.path)


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_the_schemas_of_all_tools_are_portable(shop: Store, era: str) -> None:
    done = inspect(shop, "--method", "tools/list", "--strict", "--protocol-era", era)

    assert (done.returncode, done.stderr) == (0, "")
    assert len(json.loads(done.stdout)["tools"]) == 10


def test_a_tool_answers_and_a_failure_is_one(shop: Store) -> None:
    call = ("--method", "tools/call", "--tool-name")
    done = inspect(shop, *call, "recall", "--tool-arg", "query=postgresql")
    found = json.loads(done.stdout)["structuredContent"]["memories"]
    assert [each["id"] for each in found] == ["DEC-0001"]
    failed = inspect(shop, *call, "get", "--tool-arg", "id=DEC-99")

    assert failed.returncode == 5
    assert "no memory DEC-99" in failed.stdout


def test_resources_and_the_prompt_are_read(shop: Store) -> None:
    uri = "smp://memory/shop/DEC-0001/at/HEAD"
    read = inspect(shop, "--method", "resources/read", "--uri", uri)
    asked = inspect(shop, "--method", "prompts/get", "--prompt-name", "load_memory")

    assert "Use PostgreSQL" in json.loads(read.stdout)["contents"][0]["text"]
    assert "Use PostgreSQL" in json.loads(asked.stdout)["messages"][0]["content"]["text"]


@pytest.mark.parametrize(("tool", "given"), [("recall", "query=orders"), ("remember", "text=more")])
def test_many_calls_at_once_all_succeed(shop: Store, tool: str, given: str) -> None:
    load = ("--load", "--load-requests", "200", "--load-concurrency", "8")
    call = ("--method", "tools/call", "--tool-name", tool, "--tool-arg", given)
    done = inspect(shop, *call, *load)
    report = json.loads(done.stdout)

    assert (report["ok"], report["toolErrors"], report["errors"]) == (200, 0, 0)
    with shop.session("shop") as session:
        assert len(session.memories()) == (1 if tool == "recall" else 201)


# Conformance, over HTTP


class _WithToken(BaseHTTPRequestHandler):
    """Adds the token, which the conformance tests cannot send, and passes the rest on as it is."""

    protocol_version = "HTTP/1.1"
    target = ""

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        with closing(HTTPConnection(self.target, timeout=30)) as connection:
            connection.putrequest(self.command, self.path, skip_host=True)
            for name, value in self.headers.items():
                connection.putheader(name, _HERE.sub(self.target, value))
            connection.putheader("Authorization", f"Bearer {_TOKEN}")
            connection.endheaders(body)
            answer = connection.getresponse()
            data = answer.read()
        self.send_response(answer.status)
        for name, value in answer.getheaders():
            if name.lower() not in ("transfer-encoding", "content-length", "connection"):
                self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        self.do_POST()

    def do_DELETE(self) -> None:
        self.do_POST()


class _Between(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_: object) -> None:
        """Say nothing of clients that go."""


@pytest.fixture
def address(shop: Store) -> Iterator[str]:
    """The address of a server over HTTP, for clients without its token."""
    command = [sys.executable, "-P", "-m", "smp_git", "--root", str(shop.path), "mcp", "--http"]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "SMP_MCP_TOKEN": _TOKEN}
    with subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr
        target = process.stderr.readline().strip().removeprefix("http://").removesuffix("/mcp")
        handler = type("Handler", (_WithToken,), {"target": target})
        with _Between(("127.0.0.1", 0), handler) as server:
            threading.Thread(target=server.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{server.server_address[1]}/mcp"
            server.shutdown()
        process.terminate()


# The others ask for tools, resources and prompts of a server that is made for the tests.
@pytest.mark.parametrize(
    "scenario",
    ["server-initialize", "ping", "tools-list", "tools-call-error", "resources-list",
     "prompts-list", "completion-complete",
     "dns-rebinding-protection"],
)  # fmt: skip
def test_a_scenario_of_the_protocol_is_passed(address: str, tmp_path: Path, scenario: str) -> None:
    done = run("conformance", "server", "--url", address, "--scenario", scenario, folder=tmp_path)

    assert "0 failed, 0 warnings" in done.stdout, done.stdout
    assert "Passed: 0/0" not in done.stdout
