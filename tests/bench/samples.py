"""Times taken in interleaved rounds, and what they come to."""

from __future__ import annotations

import gc
import os
import resource
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(slots=True)
class Samples:
    """The seconds that one thing took, each time it was done."""

    seconds: list[float] = field(default_factory=list)
    clock: Callable[[], float] = time.perf_counter

    def take(self, work: Callable[[], object]) -> None:
        """Do the work once and note how long it took."""
        started = self.clock()
        work()
        self.seconds.append(self.clock() - started)

    @property
    def p50(self) -> float:
        return statistics.median(self.seconds)

    @property
    def p95(self) -> float:
        return sorted(self.seconds)[int(0.95 * (len(self.seconds) - 1) + 0.5)]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.seconds)

    @property
    def low(self) -> float:
        return min(self.seconds)


def processor() -> float:
    """Return the seconds that this process and those it waited for had of the processor."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in spent)


def settle() -> None:
    """Let nobody pay for what the one before left unwritten or uncollected."""
    gc.collect()
    if hasattr(os, "sync"):
        os.sync()


def interleaved(
    works: Mapping[str, Callable[[], object]],
    rounds: int,
    *,
    turn: Callable[[str], int] = lambda _: 1,
    between: Callable[[str], object] = lambda _: None,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, Samples]:
    """Do each work in each round, `turn` times in a row, so that noise falls on all alike.

    `between` is called with the name of a work after its turn, outside the time; `clock`
    may count processor time instead.
    """
    found = {name: Samples(clock=clock) for name in works}
    for _ in range(rounds):
        for name, work in works.items():
            settle()
            for _ in range(turn(name)):
                found[name].take(work)
            between(name)
    return found
