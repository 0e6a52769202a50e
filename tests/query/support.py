"""What the tests of asking share: a session that is quick to write, and the same one elsewhere."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from smp_git import Session, Store
from smp_git.ask.answer import Answer
from smp_git.model.errors import InvalidQueryError
from tests.conftest import Clock
from tests.support import git

CACHES = ("search.db", "search-catalogue")
Told = tuple[list[str], int, dict[str, object], list[float]]


def relaxed_store(folder: Path, clock: Clock) -> Store:
    """Return a store that leaves forcing out to the system."""
    Store.init(folder)
    (folder / "config.yaml").write_text("format: 1\ndurability: relaxed\nredaction: off\n")
    return Store.open(folder, clock=clock)


@contextmanager
def desk() -> Iterator[Store]:
    """A store of its own for one example."""
    with tempfile.TemporaryDirectory(prefix="smp-ask-", ignore_cleanup_errors=True) as folder:
        store = relaxed_store(Path(folder) / "store", Clock())
        yield store
        store.close()


def cloned(session: Session, clock: Clock) -> Session:
    """Return a fresh clone of a session, in a store of its own beside."""
    store = relaxed_store(session.path.parent.parent.parent / "elsewhere", clock)
    git(store.path, "clone", "-q", str(session.path), "active/copy")
    return store.session("copy")


def without_caches(session: Session) -> None:
    """Delete whatever only saves time."""
    for name in CACHES:
        (session.path / ".git" / "smp" / name).unlink(missing_ok=True)


def told(answer: Answer) -> Told:
    """Return what must be the same wherever a question is asked."""
    return (
        [hit.id for hit in answer],
        answer.total,
        dict(answer.aggregations),
        [hit.priority for hit in answer],
    )


def asked(session: Session, **parts: Any) -> Told | str:
    """Return what a session answers, or why it refuses to."""
    try:
        return told(session.query(**parts))
    except InvalidQueryError as error:
        return error.message


def scored(answer: Answer) -> list[tuple[str, float]]:
    """Return ids with scores."""
    return [(hit.id, hit.score) for hit in answer]
