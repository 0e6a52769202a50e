"""Children that die at a chosen point of the write path, and what must hold after them."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from smp_git import Session, Store
from smp_git.git import disk, layout, locks, staging, storage
from smp_git.git.repository import Repository
from smp_git.keep import stores
from smp_git.read.replica import Local
from smp_git.write import commit, writer
from smp_git.write.handle import IndexKeeper
from smp_git.write.values import Writing
from tests.concurrency.writers import assert_clean

DIED = 73

# Every step of a write that leaves something on the disk, in the order in which they come.
VERBS: dict[str, tuple[Any, str]] = {
    "lock": (locks, "_sign"),
    "mark_pending": (Local, "mark_pending"),
    "store": (Repository, "store"),
    "place": (storage, "_place"),
    "keep_counters": (Local, "keep_counters"),
    "publish": (Repository, "publish"),
    "flush_data": (disk, "flush_data"),
    "lock_ref": (Repository, "_lock_ref"),
    "move": (Repository, "_move"),
    "flush_name": (disk, "flush_name"),
    "check_out": (writer, "check_out"),
    "check_out_file": (commit, "_write"),
    "remove_file": (commit, "_remove"),
    "overwrite_file": (disk, "overwrite_file"),
    "replace_file": (disk, "replace_file"),
    "clear_pending": (Local, "clear_pending"),
    "flush": (IndexKeeper, "flush"),
    "refresh": (staging, "refresh"),
    "record": (staging, "_record"),
    "rewrite_index": (staging, "_rewrite"),
}
# The steps of making a session.
MAKING: dict[str, tuple[Any, str]] = {
    "create": (layout, "create"),
    "identify": (Local, "identify"),
    "note_boot": (Local, "note_boot"),
    "first_commit": (stores, "_first_commit"),
    "keep_files": (storage.Written, "keep_files"),
    "publish": (Repository, "publish"),
    "flush_data": (disk, "flush_data"),
    "flush_folder": (disk, "flush_folder"),
    "refresh": (staging, "refresh"),
}


def _three(session: Session) -> None:
    with session.transaction(agent="a") as tx:
        one = tx.add("decision", "One of three")
        tx.edit("FIND-0001", severity="low")
        tx.set_state("a", {"current_context": one.id})


def _many(session: Session) -> None:
    with session.transaction(agent="a") as tx:
        for number in range(70):
            tx.add("learning", f"One of many, number {number}")


def _values(session: Session) -> None:
    def work(now: Writing) -> None:
        now.put(("notes", "one"), {"text": "First", "n": [1, 2, 3]})
        now.put(("notes", "two"), "Second\n")

    session.values("a").write(work)


OPERATIONS: dict[str, Callable[[Session], object]] = {
    "add": lambda session: session.add("decision", "Use PostgreSQL", agent="a"),
    "edit": lambda session: session.edit("FIND-0001", severity="high", agent="a"),
    "transaction": _three,
    "undo": lambda session: session.undo(agent="a"),
    "batch": _many,
    "values": _values,
}


# Steps that an operation does not take.
NEVER = {
    *(
        (operation, "remove_file")
        for operation in ("add", "edit", "transaction", "batch", "values")
    ),
    ("add", "overwrite_file"),
    ("edit", "keep_counters"),
    ("undo", "keep_counters"),
    ("values", "keep_counters"),
    ("values", "overwrite_file"),
}


def two(session: Session) -> None:
    """Write twice, so that what comes next is not the first write of its handle."""
    session.add("turn", "Good morning", agent="a")
    session.add("turn", "What is to be done?", agent="a")


def die_at(verb: tuple[Any, str], *, leaving: bool, call: int = 1) -> None:
    """Let this process die on entering or on leaving a function for the nth time."""
    owner, name = verb
    original = getattr(owner, name)
    calls = 0

    def deadly(*args: Any, **kwargs: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == call and not leaving:
            os._exit(DIED)
        result = original(*args, **kwargs)
        if calls == call:
            os._exit(DIED)
        return result

    setattr(owner, name, deadly)


def ended(work: Callable[[], object]) -> int:
    """Do `work` in a forked process and return its exit status."""
    child = multiprocessing.get_context("fork").Process(target=work)
    child.start()
    child.join(60)
    assert child.exitcode is not None
    return child.exitcode


def state(path: Path) -> dict[str, str]:
    """Return every memory of a session as text."""
    with Store.open(path.parents[1]).session(path.name) as session:
        return {memory.id: repr(_said(memory)) for memory in session.memories()}


def _said(memory: Any) -> tuple[object, ...]:
    return memory.content, memory.tags, memory.links, dict(memory.fields)


def assert_ready(path: Path) -> None:
    """Assert that a session was repaired by opening it, and takes the next write at once."""
    opened = Store.open(path.parents[1])
    with opened.session(path.name) as session:
        assert session.check() == ()
    assert_clean(path)
    with opened.session(path.name) as session:
        session._handle.writer.timeout_seconds = 0
        name = session.add("finding", "The next write", agent="b").id
        assert session.check() == ()
    assert name in state(path)
    assert_clean(path)
