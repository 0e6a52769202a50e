"""A real pseudo-terminal of a given width, and a session whose screens are known."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from smp_git import Session, Store
from tests.support import ROOT

# Runs several commands in one process, each behind a line that names it.
_DRIVER = """
import sys
from smp_git.cli.main import run
for line in sys.argv[1:]:
    print(f"@@ {line}", flush=True)
    try:
        run(line.split("\\x1f"))
    except SystemExit as end:
        if end.code:
            print(f"({end.code})", flush=True)
"""
_ERASED = re.compile(r"\r[^\r\n]*\x1b\[K")
_COMMIT = re.compile(r"\b[0-9a-f]{9}\b")
_WALL = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d\b")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")


def environment(home: Path, **more: str) -> dict[str, str]:
    """Return the environment of a person at a terminal who set nothing."""
    kept = {
        name: os.environ[name] for name in ("PATH", "LANG", "VIRTUAL_ENV") if name in os.environ
    }
    return {
        **kept,
        "HOME": str(home),
        "TERM": "xterm-256color",
        "TZ": "UTC",
        "LC_ALL": "C.UTF-8",
        "PYTHONPATH": str(ROOT),
        "PAGER": "cat",
        **more,
    }


def on_terminal(
    command: Sequence[str],
    *,
    columns: int,
    rows: int = 50,
    env: Mapping[str, str],
    cwd: Path = ROOT,
    progress: bool = False,
) -> str:
    """Run a command in a pseudo-terminal and return what it leaves there.

    With `progress`, also what it shows for a while: a busy machine is slow enough for that.
    """
    import fcntl
    import pty
    import termios

    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with subprocess.Popen(
        command,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=env,
        cwd=cwd,
        start_new_session=True,
    ) as process:
        os.close(theirs)
        parts = []
        try:
            while part := os.read(ours, 65536):
                parts.append(part)
        except OSError:
            # Linux says so when the other end is closed.
            pass
        process.wait(60)
    os.close(ours)
    text = b"".join(parts).decode().replace("\r\n", "\n")
    return text if progress else without_progress(text)


def without_progress(text: str) -> str:
    """Return what a terminal shows in the end: without lines that were erased."""
    return _ERASED.sub("", text)


def screens(
    commands: Sequence[str], *, columns: int | None, env: Mapping[str, str]
) -> dict[str, str]:
    """Return what each command prints in a terminal of that width, or in a pipe."""
    lines = ["\x1f".join(command.split(" ")) for command in commands]
    call = [sys.executable, "-P", "-c", _DRIVER, *lines]
    if columns is None:
        done = subprocess.run(call, env=env, capture_output=True, text=True, check=True, cwd=ROOT)
        text = done.stdout
    else:
        text = on_terminal(call, columns=columns, env=env)
    parts = re.split(r"^@@ .*\n", text, flags=re.MULTILINE)[1:]
    return dict(zip(commands, map(readable, parts), strict=True))


def readable(text: str) -> str:
    """Return a screen with what differs from run to run replaced, and colours as `{33}`…`{}`."""
    text = re.sub(r"\x1b\[0?m", "{}", text)
    text = re.sub(r"\x1b\[([0-9;]+)m", r"{\1}", text)
    text = _WALL.sub("2026-01-11 14:30", _TIME.sub("2026-01-11T14:30:00Z", text))
    return _COMMIT.sub("c0ffee123", text)


class Back:
    """A clock that stands some time ago."""

    def __init__(self) -> None:
        self.start = datetime.now(UTC).replace(microsecond=0)
        self.ago = timedelta()

    def __call__(self) -> datetime:
        return self.start - self.ago


def a_session(place: Path) -> Store:
    """Make a store with a session of some days, and return it."""
    clock = Back()

    def at(**ago: float) -> None:
        clock.ago = timedelta(**ago)

    store = Store.init(place, clock=clock)
    at(days=3, hours=2)
    with store.create_session("shop", user="ada", agents=["architect", "veritas"]) as session:
        _first_days(session, at)
        _today(session, at)
    return store


def _first_days(session: Session, at) -> None:  # type: ignore[no-untyped-def]
    at(days=3, hours=1)
    session.add("turn", "Let's review the login of the shop.", agent="ada")
    at(days=2, hours=12)
    session.add(
        "finding",
        "No MFA for administrators",
        agent="veritas",
        severity="critical",
        tags=["security.login"],
    )
    at(days=2, hours=6)
    session.add(
        "decision",
        "Use OAuth 2.0 with JWT tokens",
        agent="architect",
        tags=["security.login", "architecture"],
        rationale="Industry standard, and ready for single sign-on next year; every library that"
        " the shop is built on knows it.",
        impact="medium",
        links=[("resolves", "FIND-0001")],
    )
    at(hours=30, minutes=30)
    session.add(
        "preference", "Answers in British English", agent="ada", key="language", value="en-GB"
    )


def _today(session: Session, at) -> None:  # type: ignore[no-untyped-def]
    at(hours=5, minutes=30)
    session.edit(
        "DEC-0001",
        agent="architect",
        impact="high",
        tags=["security.login"],
        rationale="Industry standard, and ready for single sign-on this year; every library that"
        " the shop is built on knows it.",
    )
    at(hours=2, minutes=30)
    session.resolve("FIND-0001", agent="veritas", action="MFA is required now")
    at(minutes=30, seconds=20)
    session.add(
        "finding",
        "会话超时没有定义: the session timeout is not defined anywhere, so sessions never end",
        agent="veritas",
        severity="important",
        tags=["security.session"],
    )
    at(minutes=10, seconds=20)
    session.add(
        "learning",
        "Reviews find more when the reviewer has the requirements at hand and time to read them"
        " before the meeting",
        agent="bmad-master",
        confidence=0.8,
    )
