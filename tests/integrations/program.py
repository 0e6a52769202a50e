"""Claude Code's own program, offline: an API on this machine answers it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.support import ROOT


def program() -> Path | None:
    """Return the program that the wheel of the Claude Agent SDK bundles, None without it."""
    found = find_spec("claude_agent_sdk")
    if found is None or found.origin is None:
        return None
    path = Path(found.origin).parent / "_bundled/claude"
    return path if path.is_file() else None


class Api(ThreadingHTTPServer):
    """The part of the API that the program asks; it answers what it is told to, else a number."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answering)
        self.asked: list[dict[str, Any]] = []
        self.replies: deque[dict[str, Any]] = deque()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def read(self, number: int = -1) -> str:
        """Return everything that the model reads in a request."""
        asked = self.asked[number]
        return "\n".join(_texts([asked.get("system"), asked["messages"]]))

    def next_block(self) -> dict[str, Any]:
        if self.replies:
            return self.replies.popleft()
        return {"type": "text", "text": f"Answer {len(self.asked)}."}


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        yield from _texts(value.get("text") or value.get("content"))


class _Answering(BaseHTTPRequestHandler):
    server: Api

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_HEAD(self) -> None:
        self._reply(404, {})

    def do_GET(self) -> None:
        self._reply(404, {})

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if "count_tokens" in self.path:
            self._reply(200, {"input_tokens": 100})
        elif not self.path.startswith("/v1/messages"):
            self._reply(404, {})
        else:
            self.server.asked.append(asked)
            block = self.server.next_block()
            reason = "tool_use" if block["type"] == "tool_use" else "end_turn"
            message = {"id": f"msg_{len(self.server.asked)}", "type": "message", "role": "assistant",
                       "model": asked["model"], "stop_sequence": None,
                       "usage": {"input_tokens": 10, "output_tokens": 5}}  # fmt: skip
            if asked.get("stream"):
                self._stream(message, block, reason)
            else:
                self._reply(200, {**message, "content": [block], "stop_reason": reason})

    def _stream(self, message: dict[str, Any], block: dict[str, Any], reason: str) -> None:
        if block["type"] == "text":
            empty: dict[str, Any] = {"type": "text", "text": ""}
            delta = {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        events: Sequence[dict[str, Any]] = (
            {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None},
             "usage": {"output_tokens": 5}},
            {"type": "message_stop"},
        )  # fmt: skip
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        for each in events:
            self.wfile.write(f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode())

    def _reply(self, status: int, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def api() -> Iterator[Api]:
    """Run an API on this machine."""
    with Api() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


@dataclass
class Project:
    """A folder in which the program works, with the command `smp` and nothing else of ours."""

    folder: Path
    home: Path
    api: Api
    environment: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        tools = self.home / "bin"
        tools.mkdir(parents=True)
        self.folder.mkdir(exist_ok=True)
        smp = tools / "smp"
        smp.write_text(f'#!/bin/sh\nPYTHONPATH={ROOT} exec {sys.executable} -P -m smp_git "$@"\n')
        smp.chmod(0o700)
        self.environment = {
            "HOME": str(self.home),
            "PATH": f"{tools}:/usr/bin:/bin",
            "ANTHROPIC_API_KEY": "none",
            "ANTHROPIC_BASE_URL": self.api.address,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            # The time of a hook of a plugin is cut off when a conversation ends, however busy the machine is.
            "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "60000",
            "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
        }

    def smp(self, *arguments: str) -> str:
        """Run the command in the folder, as a person would there."""
        done = subprocess.run(
            ["smp", *arguments],
            cwd=self.folder, env=self.environment, capture_output=True, text=True, check=True,
            executable=str(self.home / "bin/smp"),
        )  # fmt: skip
        return done.stdout

    def talk(self, *options: str, without: str = "") -> Talk:
        """Begin a conversation, or go on with one."""
        left = {k: v for k, v in self.environment.items() if k != without}
        return Talk(self.folder, left, options)


class Talk:
    """One conversation with the program."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], options: Sequence[str]
    ) -> None:
        formats = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
        found = program()
        assert found is not None
        self.events: list[dict[str, Any]] = []
        self._process = subprocess.Popen(
            [found, "-p", *formats, *options],
            cwd=folder, env=dict(environment), text=True,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip

    def __enter__(self) -> Talk:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        self._process.stdin.close()
        with self._process.stdout or open(os.devnull):  # noqa: PTH123 - never
            assert self._process.stdout
            self.events += map(json.loads, self._process.stdout)
        self.status = self._process.wait(60)

    @property
    def id(self) -> str:
        """What the program calls the conversation."""
        return str(next(each["session_id"] for each in self.events if each.get("session_id")))

    def say(self, prompt: str) -> str:
        """Send a prompt and return what the user sees in the end."""
        assert self._process.stdin
        assert self._process.stdout
        message = {"type": "user", "message": {"role": "user", "content": prompt}}
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        for line in self._process.stdout:
            self.events.append(json.loads(line))
            if self.events[-1]["type"] == "result":
                return str(self.events[-1].get("result"))
        raise AssertionError(self.events[-1:])
