"""The memories that are written, and sessions full of them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

from smp_git import Session, Store

_TOPICS = ("database", "cache", "queue", "login", "report", "search", "invoice", "parser", "deploy", "alerts")  # fmt: skip
_VERBS = ("use", "drop", "split", "retry", "encrypt", "rename", "batch", "index", "mirror", "test")
_REASONS = ("latency", "cost", "safety", "clarity", "scale", "audit", "privacy", "uptime")


def texts(seed: int = 1) -> Iterator[str]:
    """Yield decisions of about 400 bytes, no two alike."""
    rng = random.Random(seed)
    number = 0
    while True:
        number += 1
        title = f"{rng.choice(_VERBS)} the {rng.choice(_TOPICS)} of module {rng.randrange(10**6)}"
        why = " ".join(
            f"Its {rng.choice(_REASONS)} under {rng.choice(_TOPICS)} load was {rng.randrange(1000)} in trial {number}."
            for _ in range(7)
        )
        yield f"{title}\n{why}\n"


def fill(session: Session, count: int) -> None:
    """Add `count` decisions in one transaction."""
    if not count:
        return
    source = texts(seed=count)
    with session.transaction(agent="architect") as tx:
        for _ in range(count):
            tx.add("decision", next(source), tags=["database"])


def filled(folder: Path, count: int, *, durable: bool = True) -> Session:
    """Return an open session of `count` memories in a store of its own."""
    store = Store.init(folder)
    if not durable:
        config = folder / "config.yaml"
        config.write_text(config.read_text() + "durability: relaxed\n")
        store = Store.open(folder)
    session = store.create_session("bench", user="architect")
    fill(session, count)
    return session
