"""The page of a session of 10,000 memories: its first views, and the search at each key."""

from __future__ import annotations

import http.client
import importlib.util
import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit

from smp_git import Store
from tests.bench.samples import Samples, settle
from tests.bench.table import bound, times
from tests.bench.workload import texts
from tests.support import ROOT

_KINDS = {"turn": 50, "decision": 15, "finding": 20, "preference": 5, "learning": 8, "artifact": 2}
_TAGS = ("database", "login.page", "queue.retry", "ui")
_TYPED = ("retry of the cache", "invoice parser", "latency under load", "encrypt the login")
_BASE, _LIST, _FIRST = "style sheet", "list of sessions, first view", "session, first view"
_KEY = "search, one key"


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the table and bounds of the page, as a browser on this machine waits for it."""
    if any(importlib.util.find_spec(name) is None for name in ("jinja2", "starlette", "uvicorn")):
        yield "\nskipped: the extra web is not installed"
        return
    size = 200 if short else 10_000
    one = _fill(folder, size)
    found: dict[str, Samples] = {}
    busy: dict[str, Samples] = {}
    with _served(folder) as page:
        # What the first search in the life of a session builds is kept for all others.
        page.get("/s/bench/search?q=retry")
    for _ in range(2 if short else 7):
        settle()
        with _served(folder) as page:
            _visit(page, found, busy, one)
    yield f"\nthe page of {size:,} memories\n"
    yield times(found, _BASE)
    yield "\nof that, processor time of the server\n"
    yield times(busy, _BASE)
    yield ""
    for what, each in (("", found), (" of processor time", busy)):
        for name in (_LIST, _FIRST):
            yield bound("M1", f"{name}, p50 ms{what}", each[name].p50 * 1e3, 500)
        keys = each[_KEY]
        yield bound("M1", f"{_KEY}, p50 ms{what}", keys.p50 * 1e3, 100)
        yield bound("M1", f"{_KEY}, p95 ms{what}", keys.p95 * 1e3, 100)


def _visit(page: _Page, found: dict[str, Samples], busy: dict[str, Samples], one: str) -> None:
    """Look at the page as somebody does who has started it now."""

    def take(name: str, path: str) -> None:
        before = page.busy_seconds()
        found.setdefault(name, Samples()).take(lambda: page.get(path))
        busy.setdefault(name, Samples()).seconds.append(page.busy_seconds() - before or 1e-9)

    page.get("/static/icon.svg")
    take(_BASE, "/static/page.css")
    take(_LIST, "/")
    take(_FIRST, "/s/bench/")
    take("session, again", "/s/bench/")
    take("timeline", "/s/bench/timeline")
    take("one memory", f"/s/bench/m/{one}")
    page.get("/s/bench/search?q=a&part=1")
    for words in _TYPED:
        for end in range(1, len(words) + 1):
            take(_KEY, f"/s/bench/search?q={quote(words[:end])}&part=1")
    take("context for a prompt", "/s/bench/context?prompt=retry+of+the+cache")


class _Page:
    """A browser that keeps its connection and its cookie."""

    def __init__(self, link: str, process: int) -> None:
        self._process = process
        parts = urlsplit(link)
        self._root = parts.path.removesuffix("/enter")
        self._connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        self._cookie = ""
        self._connection.request("GET", f"{parts.path}?{parts.query}")
        answer = self._connection.getresponse()
        answer.read()
        self._cookie = answer.headers["Set-Cookie"].partition(";")[0]

    def close(self) -> None:
        """Leave the page."""
        self._connection.close()

    def busy_seconds(self) -> float:
        """Return how long processors have worked for the server, 0 where that is not told."""
        tasks = Path(f"/proc/{self._process}/task").glob("*/schedstat")
        return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9

    def get(self, path: str) -> None:
        self._connection.request("GET", f"{self._root}{path}", headers={"Cookie": self._cookie})
        answer = self._connection.getresponse()
        answer.read()
        assert answer.status == 200, (path, answer.status)


@contextmanager
def _served(folder: Path) -> Iterator[_Page]:
    """Start the page in a process of its own."""
    command = [sys.executable, "-P", "-m", "smp_git", "--root", str(folder), "web"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None
            with closing(_Page(process.stdout.readline().strip(), process.pid)) as page:
                yield page
        finally:
            process.terminate()


def _fill(folder: Path, size: int) -> str:
    """Make a store with a session of all kinds, ten memories a commit; return the id of one."""
    Store.init(folder)
    (folder / "config.yaml").write_text(
        "format: 1\nquota_bytes: 1000000000\ndurability: relaxed\nredaction: off\n"
    )
    rng, source = random.Random(size), texts(seed=size)
    with Store.open(folder).create_session("bench", user="ada") as session:
        for _ in range(size // 10):
            with session.transaction(agent=rng.choice(["ada", "veritas"])) as tx:
                for kind in rng.choices(list(_KINDS), list(_KINDS.values()), k=10):
                    severity = {"severity": "high"} if kind == "finding" else {}
                    tx.add(kind, next(source), tags=[rng.choice(_TAGS)], **severity)  # type: ignore[arg-type]
        return session.memories("decision")[size // 20].id
