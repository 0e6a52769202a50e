"""Today's tree beside an older one: writes, whole commands, restorations, in rounds of one run.

`BENCH_OLDER` names the older commit. `BENCH_PACKAGES` is a folder that goes before the
installed packages for both, where the older tree does not start with what is installed:
`pip install --target DIR 'typer<0.29'` makes one for the default.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, Self

from tests.bench.samples import Samples, settle
from tests.bench.table import rows
from tests.support import ROOT

_OLDER = "4075b7f"
# Speaks with `_Worker`: a line names what to do, and is answered by passed and processor time.
_WORK = """
import json, sys, time
from resource import RUSAGE_CHILDREN, getrusage
from itertools import islice
from pathlib import Path
from smp_git import Store
from tests.bench.workload import texts

folder, sizes, history, most = Path(sys.argv[1]), *map(json.loads, sys.argv[2:])
source = texts(seed=7)


def opened(name, count, durability="durable", singly=False):
    place = Store.init(folder / name).path
    config = place / "config.yaml"
    config.write_text(config.read_text() + f"key_dir: {folder}/keys\\ndurability: {durability}\\n")
    session = Store.open(place).create_session("bench", user="architect")
    if singly:
        for text in islice(source, count):
            session.add("decision", text, tags=["database"])
    elif count:
        with session.transaction(agent="architect") as tx:
            for text in islice(source, count):
                tx.add("decision", text, tags=["database"])
    return session


written = {size: opened(f"write-{size}", size) for size in sizes}
restored = opened("restore", history, "relaxed", singly=True)
ids = [f"DEC-{number + 1:04d}" for number in range(most)]
for size in sizes:
    opened(f"command-{size}", max(size, 1)).close()


def processor():
    used = getrusage(RUSAGE_CHILDREN)
    return time.process_time() + used.ru_utime + used.ru_stime


def timed(work):
    before, started = processor(), time.perf_counter()
    work()
    return time.perf_counter() - started, processor() - before


def write(size):
    text = next(source)
    return timed(lambda: written[size].add("decision", text, tags=["database"]))


def restore(count):
    restored.delete(ids[:count])
    return timed(lambda: restored.restore(ids[:count]))


print(json.dumps(None), flush=True)
for line in sys.stdin:
    name, argument = json.loads(line)
    print(json.dumps(globals()[name](argument)), flush=True)
    for session in (*written.values(), restored):
        # Not beside what is measured next.
        (session._handle.keeper if hasattr(session, "_handle") else session._keeper).flush()
"""
_Pair = tuple[Samples, Samples]


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the table of both trees."""
    name = os.environ.get("BENCH_OLDER", _OLDER)
    older = folder / "tree"
    if not _archived(name, older):
        yield f"skipped: no commit {name} here"
        return
    if not _starts(older):
        yield f"skipped: {name} does not start with what is installed: BENCH_PACKAGES names a folder"
        return
    sizes, history, most = ((0, 100), 60, 20) if short else ((0, 10_000), 1_000, 600)
    rounds = 2 if short else 15
    with ExitStack() as open_ones:
        workers = [
            open_ones.enter_context(_Worker(tree, folder / which, sizes, history, most))
            for which, tree in (("older", older), ("today", ROOT))
        ]
        found: dict[str, list[_Pair]] = {}
        for number in range(rounds):
            # Whoever comes first in one round comes last in the next.
            for who in (0, 1) if number % 2 else (1, 0):
                for what, work in workers[who].works(sizes, most).items():
                    if what.startswith(f"restore {most}") and number % 5:
                        continue
                    settle()
                    _note(found, what, who, work())
    yield f"\n{name} beside today's tree, the least of {rounds} rounds\n"
    yield rows(
        ("", "ms before", "now", "ratio", "processor ms before", "now", "ratio"),
        [[what, *_told(pairs, 0), *_told(pairs, 1)] for what, pairs in found.items()],
    )


def _archived(name: str, place: Path) -> bool:
    """Put the package as it was at a commit into a folder; return whether there is that commit."""
    place.mkdir()
    made = subprocess.run(
        ["git", "archive", name, "smp_git", "hooks"], cwd=ROOT, capture_output=True
    )
    if made.returncode:
        return False
    subprocess.run(["tar", "x", "-C", place], input=made.stdout, check=True)
    (place / "tests").symlink_to(ROOT / "tests")
    return True


def _starts(tree: Path) -> bool:
    """Return whether the commands of a tree start with the packages that are here."""
    command = [sys.executable, "-m", "smp_git", "sessions", "--help"]
    return not subprocess.run(
        command, cwd=tree, env=_environment(tree), capture_output=True
    ).returncode


def _environment(tree: Path) -> dict[str, str]:
    """Return the environment in which a tree runs; its commands are compiled once."""
    left = ("SMP_", "PYTHONDONTWRITE")
    names = {key: value for key, value in os.environ.items() if not key.startswith(left)}
    packages = os.environ.get("BENCH_PACKAGES", "")
    return {**names, "PYTHONPATH": os.pathsep.join(filter(None, [f"{tree}", packages]))}


def _note(found: dict[str, list[_Pair]], what: str, who: int, took: tuple[float, float]) -> None:
    pairs = found.setdefault(what, [(Samples(), Samples()), (Samples(), Samples())])
    for samples, seconds in zip(pairs[who], took, strict=True):
        samples.seconds.append(seconds)


def _told(pairs: list[_Pair], clock: int) -> tuple[str, str, str]:
    before, now = pairs[0][clock].low, pairs[1][clock].low
    return f"{before * 1e3:.2f}", f"{now * 1e3:.2f}", f"{now / before:.2f}" if before else ""


class _Worker:
    """A process that runs one of the trees, and the whole commands of it."""

    def __init__(
        self, tree: Path, folder: Path, sizes: tuple[int, ...], history: int, most: int
    ) -> None:
        folder.mkdir()
        self._folder = folder
        self._env = _environment(tree)
        said = (json.dumps(each) for each in (sizes, history, most))
        self._process = subprocess.Popen(
            [sys.executable, "-c", _WORK, str(folder), *said],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self._env,
            cwd=folder,
            text=True,
        )

    def __enter__(self) -> Self:
        self._answer()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate()

    def _answer(self) -> Any:
        assert self._process.stdout
        return json.loads(self._process.stdout.readline())

    def _ask(self, name: str, argument: int) -> tuple[float, float]:
        assert self._process.stdin
        print(json.dumps([name, argument]), file=self._process.stdin, flush=True)
        passed, processor = self._answer()
        return passed, processor

    def works(
        self, sizes: tuple[int, ...], most: int
    ) -> Mapping[str, Callable[[], tuple[float, float]]]:
        """Return what is measured, by name."""
        found: dict[str, Callable[[], tuple[float, float]]] = {}
        for size in sizes:
            found[f"write, {size:,} memories"] = partial(self._ask, "write", size)
            for what, rest in _COMMANDS.items():
                place = self._folder / f"command-{size}"
                found[f"{what}, {size:,} memories"] = partial(self._command, place, *rest)
        for count in (1, most):
            found[f"restore {count} memories"] = partial(self._ask, "restore", count)
        return found

    def _command(self, store: Path, *rest: str) -> tuple[float, float]:
        """Run a whole command."""
        words = ("--root", f"{store}", "-s", "bench") if rest[0] != "hook" else ()
        before, started = _of_children(), time.perf_counter()
        subprocess.run(
            [sys.executable, "-m", "smp_git", *words, *rest],
            cwd=store / "active/bench",
            env=self._env,
            check=True,
            capture_output=True,
        )
        return time.perf_counter() - started, _of_children() - before


def _of_children() -> float:
    used = getrusage(RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


_COMMANDS = {
    "smp add": ("add", "decision", "one more"),
    "smp query": ("query", "one more"),
    "smp hook post-commit": ("hook", "post-commit"),
}
