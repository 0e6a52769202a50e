"""Questions at several sizes, beside searching without an index (L2, L3, L4, L7).

Processor time: on a machine that does nothing else, hardly anything waits.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from pathlib import Path
from unittest.mock import patch

import yaml

from smp_git import Session, Store
from smp_git.ask import vectors
from smp_git.read import pages as index
from smp_git.read.replica import CATALOGUE, SEARCH
from tests.bench.commands import _BASE, _command
from tests.bench.samples import Samples, interleaved, processor
from tests.bench.table import bound, times
from tests.bench.workload import fill, filled

_STRUCTURED = "smp structured, warm"
_TEXT = "smp text, warm"
_WORDS = ("retry cache latency", "invoice parser", "audit load", "encrypt login privacy", "mirror deploy uptime")  # fmt: skip
_FIRST = """
import sys, time
from smp_git import Store
from smp_git.ask import vectors
vectors.find_encoder = lambda: None
session = Store.open(sys.argv[1]).session("bench")
session.get("DEC-0001")
started = time.process_time()
session.query(sys.argv[2] or None, kinds=["decision"], limit=20)
print(time.process_time() - started)
session.close()
"""


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the tables and bounds of asking, without the extra `semantic`."""
    with patch.object(vectors, "find_encoder", lambda: None):
        yield from _run(folder, short=short)


def _run(folder: Path, *, short: bool) -> Iterator[str]:
    for size in (50,) if short else (100, 1_000, 10_000):
        with filled(folder / str(size), size) as session:
            yield from _one_size(folder / f"{size}-rivals", session, size, 3 if short else 20)
    yield from _across(folder / "many", *((10, 50) if short else (100, 1_000)))


def _one_size(folder: Path, session: Session, size: int, rounds: int) -> Iterator[str]:
    folder.mkdir()
    words = cycle(_WORDS)
    session.query("warm")
    found = interleaved({_STRUCTURED: _structured(session), _TEXT: lambda: session.query(next(words)), **_rivals(folder, session)}, rounds, turn=lambda _: len(_WORDS), clock=processor)  # fmt: skip
    session.close()
    found["smp structured, first"] = _first(session, "", rounds // 3)
    found["smp structured, no cache"] = _first(session, "", rounds // 3, lost=CATALOGUE)
    found["smp text, first"] = _first(session, "retry cache", rounds // 3)
    found["smp text, no cache"] = _first(session, "retry cache", rounds // 3, lost=SEARCH)
    found["index rebuilt"] = _rebuilding(session, 3)
    yield f"\nquestions to {size:,} memories, processor time\n"
    yield times(found, _TEXT)
    yield ""
    yield bound("L2", "structured, warm, p50 ms", found[_STRUCTURED].p50 * 1e3, 1)
    yield bound("L2", "structured, first, p50 ms", found["smp structured, first"].p50 * 1e3, 50)
    yield bound("L2", "structured, no cache, p50 ms", found["smp structured, no cache"].p50 * 1e3, 150)  # fmt: skip
    yield bound("L3", "text, warm, p95 ms", found[_TEXT].p95 * 1e3, 10)
    yield bound("L3", "git grep / text, p50", found["git grep"].p50 / found[_TEXT].p50, 1, least=True)  # fmt: skip
    yield bound("L3", "text, first, p50 ms", found["smp text, first"].p50 * 1e3, 40)
    yield bound("L7", "text, its cache built, p50 s", found["smp text, no cache"].p50, 1.5)
    yield bound("L7", "index rebuilt, s", found["index rebuilt"].p50, 2)
    yield from _commands(session.path.parent.parent, max(2, rounds // 3))


def _structured(session: Session) -> Callable[[], object]:
    return lambda: session.query(kinds=["decision"], tags=["database"], since="2020-01-01", where=[("status", "equals", "active")])  # fmt: skip


def _first(session: Session, text: str, rounds: int, *, lost: str = "") -> Samples:
    """Time a process's first question; one that nobody counts leaves the caches behind."""
    code = [sys.executable, "-c", _FIRST, str(session.path.parent.parent), text]
    found = []
    for _ in range(1 + max(2, rounds)):
        if lost:
            (session.path / ".git" / "smp" / lost).unlink(missing_ok=True)
        found.append(float(subprocess.run(code, check=True, capture_output=True).stdout))
    return Samples(found[1:])


def _rebuilding(session: Session, rounds: int) -> Samples:
    samples = Samples(clock=processor)
    with Store.open(session.path.parent.parent).session(session.id) as again:
        snapshot = again._handle.reader.snapshot()
        repository, pages = snapshot.repository, snapshot.page_ids()
        for _ in range(rounds):
            samples.take(lambda: [index.rebuilt(repository, path, tree) for path, tree in pages.items()])  # fmt: skip
    return samples


def _commands(store: Path, rounds: int) -> Iterator[str]:
    smp = ("-m", "smp_git", "--root", str(store), "-s", "bench", "query")
    works = {
        _BASE: _command(store, "-c", "import pygit2, typer"),
        "smp query --kind decision": _command(store, *smp, "--kind", "decision"),
        "smp query TEXT": _command(store, *smp, "retry cache"),
    }
    found = interleaved(works, rounds, clock=processor)
    yield "\nwhole commands, processor time\n"
    yield times(found, _BASE)
    yield ""
    for name in list(works)[1:]:
        yield bound("L4", f"{name} / import pygit2, typer, p50", found[name].p50 / found[_BASE].p50, 3)  # fmt: skip


# Rivals


def _rivals(folder: Path, session: Session) -> dict[str, Callable[[], object]]:
    files = [file for file in sorted(session.path.glob("decisions/*/*.yaml")) if file.name != "index.yaml"]  # fmt: skip
    out: dict[str, Callable[[], object]] = {
        "git grep": _shell(
            session.path, "git", "grep", "-il", "-e", "retry", "--or", "-e", "cache", "HEAD"
        ),
    }
    if shutil.which("rg"):
        out["ripgrep"] = _shell(session.path, "rg", "-il", "retry|cache", "decisions")
    texts = [(str(file), file.read_text()) for file in files]
    db = sqlite3.connect(folder / "fts.db")
    db.execute("create virtual table memory using fts5(id, text)")
    db.executemany("insert into memory values (?, ?)", texts)
    out["SQLite FTS5"] = lambda: db.execute("select id, snippet(memory, 1, '[', ']', '…', 20) from memory where memory match 'retry OR cache' order by rank limit 20").fetchall()  # fmt: skip
    jsonl = folder / "memories.jsonl"
    jsonl.write_text("".join(json.dumps({"id": name, "text": text}) + "\n" for name, text in texts))
    out["JSONL, read through"] = lambda: [row for line in jsonl.read_text().splitlines() if "cache" in (row := json.loads(line))["text"]]  # fmt: skip
    if len(files) <= 1_000:
        load = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        out["YAML, read through"] = lambda: [file for file in islice(files, 200) if "cache" in yaml.load(file.read_bytes(), load)["decision"]]  # fmt: skip
    return out


def _shell(folder: Path, *arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run(arguments, cwd=folder, capture_output=True, check=False, env=os.environ)  # fmt: skip


# Across sessions


def _across(folder: Path, sessions: int, size: int) -> Iterator[str]:
    store = Store.init(folder)
    (folder / "config.yaml").write_text("format: 1\nquota_bytes: 1000000000\ndurability: relaxed\n")
    store = Store.open(folder)
    for number in range(sessions):
        with store.create_session(f"s{number:03d}", user="architect") as session:
            fill(session, size)
            session.query("warm", kinds=["decision"])
    cold, warm, words = (Samples(clock=processor) for _ in range(3))
    cold.take(lambda: store.query("retry cache"))
    for _ in range(5):
        warm.take(lambda: store.query(kinds=["decision"]))
        words.take(lambda: store.query("invoice parser"))
    store.close()
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    yield f"\n{sessions} sessions of {size:,} memories; at most {memory:.0f} MB resident; processor time\n"
    yield times({"text, first": cold, "text, warm": words, "structured, warm": warm}, "text, warm")
    yield ""
    yield bound("across", "first, s", cold.p50, 2)
    yield bound("across", "text, warm, ms", words.p50 * 1e3, 150)
    yield bound("across", "structured, warm, ms", warm.p50 * 1e3, 300)
