"""Settings of the text search at random: the best by one file of conversations, on the other.

What is chosen on one file flatters itself there; what it finds on the other is what it is worth.
"""

from __future__ import annotations

import random
import statistics
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from unittest.mock import patch

from smp_git.ask.text import batches, index, ranking
from tests.bench import table
from tests.bench.retrieval import FILES, Conversation, answered, find_data, ours, read_conversations

# Where each number stands, and what is tried for it.
_RANGES: Mapping[str, tuple[tuple[ModuleType, ...], tuple[float, ...]]] = {
    "_SATURATION": ((batches,), (0.2, 0.35, 0.5, 0.75, 1.0)),
    "_LENGTH": ((batches,), (50, 75, 100, 150, 250)),
    "SHORT": ((batches, index), (1, 15, 30, 45, 60)),
    "_LENT": ((index,), (0.1, 0.2, 0.3, 0.4)),
    "_LENT_BY_QUESTION": ((index,), (0.3, 0.45, 0.6, 0.75)),
    "_NAMED": ((ranking,), (0.25, 0.5, 0.75, 1.0)),
}
_BUILT = "none: as built"
# Of the measures of `retrieval`: recall@10 and nDCG@10.
_SHOWN = {"recall@10": 1, "nDCG@10": 3}


def run(folder: Path, *, short: bool) -> Iterator[str]:
    """Yield what the best setting by each file finds on each."""
    data = find_data()
    if data is None:
        yield "skipped: no shared/data above this file, and SMP_BENCH_DATA is not set"
        return
    step, count = (8, 4) if short else (1, 12)
    known = {name: read_conversations(data / f"{name}.json.gz")[::step] for name in FILES}
    rng = random.Random(14)
    drawn = [{name: rng.choice(tried) for name, (_, tried) in _RANGES.items()} for _ in range(count)]  # fmt: skip
    found = [_found(known, setting) for setting in drawn]
    rows = {f"chosen on {name}": max(found, key=lambda each: sum(each[name])) for name in FILES} | {
        _BUILT: _found(known, {})
    }
    yield f"\nof {count} settings at random the best by one file, and the numbers as they are built\n"
    head = [f"{name}, {measure}" for name in FILES for measure in _SHOWN]
    yield table.rows(
        ["", *head],
        [[label, *(f"{value:.3f}" for name in FILES for value in each[name])] for label, each in rows.items()],
    )  # fmt: skip
    for name in FILES:
        best = max(range(count), key=lambda at: sum(found[at][name]))
        yield f"\nchosen on {name}: " + ", ".join(f"{key} {value:g}" for key, value in drawn[best].items())  # fmt: skip


def _found(
    known: Mapping[str, list[Conversation]], setting: Mapping[str, float]
) -> dict[str, list[float]]:
    """Return what the search finds in each file with some numbers in place of its own."""
    with ExitStack() as stack:
        for name, value in setting.items():
            for module in _RANGES[name][0]:
                stack.enter_context(patch.object(module, name, value))
        out = {}
        for name, conversations in known.items():
            columns = list(zip(*answered(ours, conversations), strict=True))
            out[name] = [statistics.fmean(columns[at]) for at in _SHOWN.values()]
        return out
