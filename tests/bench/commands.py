"""Whole commands and hooks of Claude Code, from the start of a process to its end (L4)."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path

from tests.bench.samples import interleaved
from tests.bench.table import bound, times
from tests.bench.workload import filled, texts
from tests.support import ROOT

_BASE = 'python -c "import pygit2, typer"'
_GIT = 'python -c "import pygit2"'
# As `smp claude install` has it called: `-m` would look for the module first.
_INSTALLED = Path(sys.executable).with_name("smp")
_PROMPT = "What did we decide about the cache under database load, and why?"


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the table and bounds of whole commands."""
    sizes = (0, 100) if short else (0, 10_000)
    works: dict[str, Callable[[], object]] = {
        _BASE: _command(folder, "-c", "import pygit2, typer"),
        'python -c "pass"': _command(folder, "-c", "pass"),
        _GIT: _command(folder, "-c", "import pygit2"),
    }
    for size in sizes:
        works |= _smp(folder / str(size), size)
    found = interleaved(works, 3 if short else 30)
    yield "\nwhole commands\n"
    yield times(found, _BASE)
    if importlib.util.find_spec("smp_git.__main__") is None:
        yield "\nsmp_git has no command line yet"
        return
    yield ""
    for name, each in found.items():
        if name.startswith("smp"):
            yield bound("L4", f"{name} / import pygit2, typer, p50", each.p50 / found[_BASE].p50, 3)
        elif name.startswith("hook"):
            yield bound("L4", f"{name} / import pygit2, p50", each.p50 / found[_GIT].p50, 1.5)


def _smp(folder: Path, size: int) -> dict[str, Callable[[], object]]:
    filled(folder, max(size, 1)).close()
    if importlib.util.find_spec("smp_git.__main__") is None:
        return {}
    source = texts(seed=9)
    smp = ("-m", "smp_git", "--root", str(folder), "-s", "bench")
    return {
        f"smp add, {size:,} memories": lambda: _command(
            folder, *smp, "add", "decision", next(source)
        )(),
        f"smp show, {size:,} memories": _command(folder, *smp, "show", "DEC-0001"),
        f"smp hook post-commit, {size:,} memories": _command(
            folder / "active/bench", "-m", "smp_git", "hook", "post-commit"
        ),
        **_hooks(folder, size),
    }


def _hooks(folder: Path, size: int) -> dict[str, Callable[[], object]]:
    """Return the hooks of a conversation that goes on: its start, a prompt, an answer recorded."""
    transcript = folder / "transcript.jsonl"
    transcript.touch()
    numbers = count()

    def said(event: str, **more: str) -> object:
        told = {"cwd": str(folder), "session_id": "bench", "prompt": _PROMPT, **more}
        smp = [str(_INSTALLED)] if _INSTALLED.exists() else [sys.executable, "-m", "smp_git"]
        hook = [*smp, "claude", event, "--session", "bench"]
        return _process(folder, hook, json.dumps(told))()

    def stop() -> object:
        with transcript.open("a") as file:
            for role, text in (("user", _PROMPT), ("assistant", "It held in every trial.")):
                file.write(_line(next(numbers), role, text))
        return said("stop", transcript_path=str(transcript))

    said("session-start", source="startup")
    return {
        f"hook session-start, {size:,} memories": lambda: said(
            "session-start", source="startup", session_id=f"bench-{next(numbers)}"
        ),
        f"hook prompt, {size:,} memories": lambda: said("prompt"),
        f"hook stop with two turns, {size:,} memories": stop,
        f"hook stop with nothing new, {size:,} memories": lambda: said("stop"),
    }


def _line(number: int, role: str, text: str) -> str:
    at = datetime(2026, 1, 12, tzinfo=UTC) + timedelta(seconds=number)
    message = {"role": role, "content": f"{text} {number}"}
    entry = {"type": role, "uuid": f"{number}", "timestamp": at.isoformat(), "message": message}
    return json.dumps(entry) + "\n"


def _command(cwd: Path, *arguments: str) -> Callable[[], object]:
    return _process(cwd, [sys.executable, *arguments])


def _process(cwd: Path, command: Sequence[str], given: str = "") -> Callable[[], object]:
    names = {key: value for key, value in os.environ.items() if not key.startswith("SMP_")}
    # Commands start as they do for a user: compiled once.
    names.pop("PYTHONDONTWRITEBYTECODE", None)
    return lambda: subprocess.run(
        command,
        cwd=cwd,
        env={**names, "PYTHONPATH": str(ROOT)},
        check=True,
        capture_output=True,
        input=given.encode(),
    )
