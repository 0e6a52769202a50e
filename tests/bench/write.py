"""One durable write in process, in sessions of several sizes, beside its rivals (L1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from smp_git import Session
from tests.bench.rivals import Rival, rivals
from tests.bench.samples import Samples, interleaved
from tests.bench.table import bound, times
from tests.bench.workload import filled, texts

SMP = "smp (durable)"
_TURN = 3
_MOST = 1_000
_GIT_ALL = "git add + commit, core.fsync=all"
_GIT_NONE = "git add + commit, core.fsync=none"


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield the tables and bounds of the write path."""
    sizes = (0, 100) if short else (0, 1_000, 10_000)
    fields = [_Field(folder / str(size), size) for size in sizes]
    works = {key: work for field in fields for key, work in field.works().items()}
    behind = Samples()

    def refresh(key: str) -> None:
        for field in fields:
            field.refresh(key, behind if field is fields[-1] else Samples())

    found = interleaved(works, 2 if short else 25, turn=_turn, between=refresh)
    for field in fields:
        yield f"\none write with {field.size:,} memories in the session\n"
        yield times(field.own(found), SMP)
    yield f"\nbehind the writes, after each {_TURN}: Git's index refreshed\n"
    yield times({f"smp, {sizes[-1]:,} memories": behind}, f"smp, {sizes[-1]:,} memories")
    if not short:
        yield from _bounds(fields[0].own(found), fields[-1].own(found), sizes[-1])
    for field in fields:
        field.close()


def _turn(key: str) -> int:
    # Those that take a second each would make a run too long.
    return 1 if "(no sync)" in key else _TURN


def _bounds(empty: dict[str, Samples], full: dict[str, Samples], size: int) -> Iterator[str]:
    smp = full[SMP]
    yield ""
    for name, limit in ((_GIT_ALL, 10), (_GIT_NONE, 8)):
        yield bound("L1", f"{name} / smp at {size:,}, p50", full[name].p50 / smp.p50, limit, least=True)  # fmt: skip
        yield bound("L1", f"{name} / smp at {size:,}, min", full[name].low / smp.low, limit, least=True)  # fmt: skip
    yield bound("L1", f"smp at {size:,} / smp at 0, p50", smp.p50 / empty[SMP].p50, 1.3)
    yield bound("L1", f"smp at {size:,} / smp at 0, min", smp.low / empty[SMP].low, 1.3)


class _Field:
    """All contestants at one size."""

    def __init__(self, folder: Path, size: int) -> None:
        self.size = size
        folder.mkdir()
        self._sessions: dict[str, Session] = {
            SMP: filled(folder / "smp", size),
            "smp (relaxed)": filled(folder / "smp-relaxed", size, durable=False),
        }
        self._rivals = rivals(self._sessions[SMP].path, folder / "rivals")

    def works(self) -> dict[str, Callable[[], object]]:
        """Return what each contestant does once, by a name that says the size too."""
        out: dict[str, Callable[[], object]] = {}
        for name, session in self._sessions.items():
            out[self._key(name)] = _adding(session)
        for name, rival in self._rivals.items():
            out[self._key(name)] = _writing(rival, self.size)
        return out

    def own(self, found: dict[str, Samples]) -> dict[str, Samples]:
        """Return the samples of this size by contestant."""
        end = self._key("")
        return {key.removesuffix(end): each for key, each in found.items() if key.endswith(end)}

    def refresh(self, key: str, samples: Samples) -> None:
        """Refresh Git's index of the session that just wrote, so that nobody else waits for it."""
        name = key.removesuffix(self._key(""))
        if key.endswith(self._key("")) and name in self._sessions:
            samples.take(self._sessions[name]._handle.keeper.flush)

    def close(self) -> None:
        """Close everything."""
        for session in self._sessions.values():
            session.close()
        for rival in self._rivals.values():
            rival.close()

    def _key(self, name: str) -> str:
        return f"{name} @{self.size}"


def _adding(session: Session) -> Callable[[], object]:
    source = _made()
    return lambda: session.add("decision", next(source), tags=["database"])


def _writing(rival: Rival, size: int) -> Callable[[], object]:
    """Return the writing of a file like a memory's, where the memory would stand."""
    source = _made()
    numbers = iter(range(size + 1, 10**9))

    def write() -> None:
        number = next(numbers)
        path = f"decisions/{number // 100:03d}/DEC-{number:04d}.yaml"
        rival.write(path, _file(number, next(source)))

    return write


def _made() -> Iterator[str]:
    """Return texts made beforehand, so that no contestant's time has that in it."""
    return iter(list(islice(texts(seed=7), _MOST)))


def _file(number: int, text: str) -> str:
    lines = "".join(f"  {line}\n" for line in text.splitlines())
    return (
        f"id: DEC-{number:04d}\nkind: decision\ncreated_at: 2026-01-11T14:30:00Z\n"
        f"agent: architect\ndecision: |\n{lines}tags:\n- database\n"
    )
