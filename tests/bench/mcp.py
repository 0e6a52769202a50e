"""Calls of the MCP server through the protocol's reference client, over standard input and output."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from importlib.util import find_spec
from pathlib import Path

from tests.bench.samples import Samples
from tests.bench.table import times
from tests.bench.workload import filled, texts
from tests.support import ROOT

_QUESTION = "What did we decide about the cache under database load?"


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the table of calls."""
    if find_spec("mcp") is None:
        yield "\nskipped: the extra mcp is not installed"
        return
    for size in (100,) if short else (100, 10_000):
        filled(folder / str(size), size).close()
        yield f"\ncalls of a server with {size:,} memories, by the reference client over stdio\n"
        yield times(_called(folder / str(size), 3 if short else 100), "sessions")


def _called(folder: Path, rounds: int) -> dict[str, Samples]:
    """Return how long each tool takes, all in interleaved rounds on one connection."""
    import anyio
    from mcp import Client, StdioServerParameters

    command = ["-P", "-m", "smp_git", "--root", str(folder), "mcp"]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    source = texts(seed=11)
    asked: Mapping[str, Callable[[], dict[str, object]]] = {
        "sessions": dict,
        "get": lambda: {"id": "DEC-0001"},
        "recall": lambda: {"query": _QUESTION},
        "context": lambda: {"prompt": _QUESTION},
        "remember": lambda: {"text": next(source), "kind": "decision"},
    }
    found = {name: Samples() for name in asked}

    async def talk() -> None:
        server = StdioServerParameters(command=sys.executable, args=command, env=env)
        async with Client(server) as client:
            for number in range(rounds + 1):
                for name, given in asked.items():
                    began = time.perf_counter()
                    answer = await client.call_tool(name, given())
                    assert not answer.is_error, answer.content
                    # The first of each opens what the others find open.
                    if number:
                        found[name].seconds.append(time.perf_counter() - began)

    anyio.run(talk)
    return found
