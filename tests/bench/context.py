"""Contexts for an agent at several sizes, beside a text query of the same run (L3)."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path
from typing import Any
from unittest.mock import patch

from smp_git import Session, Store
from smp_git.ask import vectors
from tests.bench.samples import interleaved
from tests.bench.table import bound, times
from tests.bench.workload import texts
from tests.support import untyped

_KINDS = {"turn": 50, "decision": 15, "finding": 20, "preference": 5, "learning": 8, "artifact": 2}
_TAGS = ("database", "login.page", "queue.retry", "ui")
_PROMPTS = ("fix the retry of the cache, its latency is too high", "write the invoice parser", "audit the load of the reports", "encrypt the login for privacy", "mirror the deployment for uptime")  # fmt: skip
_QUERY, _PROMPT = "smp query TEXT", "context for a prompt"


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the tables and bounds of contexts, without the extra `semantic`."""
    with patch.object(vectors, "find_encoder", lambda: None):
        for size in (50,) if short else (1_000, 10_000):
            yield from _one_size(folder / str(size), size, 3 if short else 20)


def _one_size(folder: Path, size: int, rounds: int) -> Iterator[str]:
    with _filled(folder, size) as session:
        words = cycle(_PROMPTS)
        works: dict[str, Callable[[], object]] = {
            _QUERY: lambda: session.query(next(words)),
            _PROMPT: lambda: session.context("veritas", prompt=next(words)),
            "context": lambda: session.context("veritas"),
            "context on a topic": lambda: session.context("veritas", topic="login page"),
        }
        for work in works.values():
            work()
        turn = len(_PROMPTS)
        found = interleaved(works, rounds, turn=lambda _: turn, clock=time.process_time)
    yield f"\ncontexts of {size:,} memories, processor time\n"
    yield times(found, _QUERY)
    yield ""
    yield bound("L3", "context for a prompt, warm, p50 ms", found[_PROMPT].p50 * 1e3, 20)
    yield bound("L3", "context for a prompt / text query, p50", found[_PROMPT].p50 / found[_QUERY].p50, 10)  # fmt: skip


def _filled(folder: Path, size: int) -> Session:
    """Return an open session of all kinds, with preferences for this project and for others."""
    Store.init(folder)
    (folder / "config.yaml").write_text(
        "format: 1\nquota_bytes: 1000000000\ndurability: relaxed\nredaction: off\n"
    )
    store, rng, source = Store.open(folder), random.Random(size), texts(seed=size)
    with store.global_session() as everywhere, everywhere.transaction(agent="ada") as tx:
        for _ in range(size // 100):
            tx.add(rng.choice(["preference", "learning"]), next(source))
    session = store.create_session("bench", user="ada", context={"project_name": "shop", "primary_topic": "database"})  # fmt: skip
    with session.transaction(agent="ada") as tx:
        for kind in rng.choices(list(_KINDS), list(_KINDS.values()), k=size):
            tx.add(untyped(kind), next(source), tags=[rng.choice(_TAGS)], **_fields(kind, rng))
    session.set_state("veritas", {"working_memory": ["the login page"]})
    return session


def _fields(kind: str, rng: random.Random) -> dict[str, Any]:
    known: dict[str, dict[str, Any]] = {
        "turn": {"speaker": "Ada"},
        "finding": {"severity": rng.choice(["critical", "high", "medium", "low"]), "status": rng.choice(["open", "resolved"])},
        "decision": {"rationale": "It was asked for.", "impact": rng.choice(["high", "low"])},
        "preference": {"category": "style", "applies_to": {"projects": [rng.choice(["shop", "other"])]}},
    }  # fmt: skip
    return known.get(kind, {})
