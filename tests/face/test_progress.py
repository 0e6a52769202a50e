"""Whoever waits at a terminal sees that something is done; a pipe gets nothing of it."""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.git.locks import locked
from tests.face.support import environment, on_terminal, without_progress
from tests.support import ROOT

pytestmark = pytest.mark.slow

SHOWN = re.compile(r"\rsmp add … \d+ s\x1b\[K")


def _command(place: Path, *arguments: str) -> list[str]:
    return [sys.executable, "-P", "-m", "smp_git", "--root", str(place), "-s", "shop", *arguments]


def _held_for_a_while(place: Path) -> threading.Thread:
    """Hold the lock of a session for long enough that somebody would wonder."""
    held = threading.Event()

    def hold() -> None:
        path = place / "active/shop/.git/smp/lock"
        with locked(path, time.monotonic() + 60, "holding"):
            held.set()
            time.sleep(2)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    return thread


def test_waiting_is_shown_on_a_terminal_and_leaves_nothing(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    store.create_session("shop").close()
    (store.path / "config.yaml").write_text("format: 1\nlock_timeout_seconds: 60\n")
    call = _command(store.path, "add", "decision", "Use PostgreSQL")

    thread = _held_for_a_while(store.path)
    text = on_terminal(call, columns=80, env=environment(tmp_path), progress=True)
    thread.join()
    assert SHOWN.search(text)
    assert without_progress(text) == "DEC-0001\n"

    thread = _held_for_a_while(store.path)
    dumb = on_terminal(call, columns=80, env=environment(tmp_path, TERM="dumb"), progress=True)
    thread.join()
    assert dumb.partition("\n")[0] == "DEC-0002"

    thread = _held_for_a_while(store.path)
    done = subprocess.run(call, env=environment(tmp_path), capture_output=True, text=True, cwd=ROOT)
    thread.join()
    assert (done.returncode, done.stdout) == (0, "DEC-0003\n")
    assert "…" not in done.stderr


def test_counts_are_shown_while_they_grow(tmp_path: Path) -> None:
    """The line says how many there are by now, cut to the terminal."""
    store = Store.init(tmp_path / "store")
    store.create_session("shop").close()
    lines = "\n".join(f'{{"kind": "finding", "content": "finding number {n} of many"}}' for n in range(8000))  # fmt: skip
    (tmp_path / "many.jsonl").write_text(lines)
    call = _command(store.path, "add", "--batch", str(tmp_path / "many.jsonl"), "--json")

    text = on_terminal(call, columns=40, env=environment(tmp_path), progress=True)

    shown = re.findall(r"\r([^\r\n]*)\x1b\[K", text)
    assert all(len(line) < 40 for line in shown)
    assert without_progress(text).startswith('{"commit"')
