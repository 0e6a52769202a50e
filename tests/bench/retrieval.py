"""Measure how well and how fast search finds the turns that answer a question.

Run `python -m tests.bench retrieval [--short]`, or `python -m tests.bench.retrieval --semantic`
with the vectors. The engine of before runs from `git archive` in a process of its own.
The data lies beside the repository, in `shared/data`, or where SMP_BENCH_DATA says.
"""

from __future__ import annotations

import argparse
import gzip
import io
import json
import math
import os
import random
import re
import sqlite3
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import islice
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from smp_git.ask.text.batches import Document
from smp_git.ask.text.cache import Followed, SearchCache, search
from smp_git.ask.text.meanings import Encoder, find_encoder, meaning_text
from tests.bench import table

Rank = Callable[[str], list[int]]
FILES = ("realtalk", "beam100k")
MEMORIES = 10_000
PAGE = 100
LIMIT = 10


@dataclass(frozen=True)
class Conversation:
    """Turns and the questions about them, each with the numbers of its answers."""

    turns: list[Document]
    questions: list[tuple[str, set[int]]]


def find_data() -> Path | None:
    named = os.environ.get("SMP_BENCH_DATA")
    above = [folder / "shared" / "data" for folder in Path(__file__).resolve().parents]
    for folder in [Path(named)] if named else above:
        if all((folder / f"{name}.json.gz").exists() for name in FILES):
            return folder
    return None


def read_conversations(path: Path) -> list[Conversation]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        data = json.load(file)
    return [
        Conversation(
            [turn_document(turn) for turn in each["turns"]],
            [(ask["question"], set(ask["relevant"])) for ask in each["questions"]],
        )
        for each in data["conversations"]
    ]


def turn_document(turn: dict[str, str]) -> Document:
    speaker = turn["speaker"]
    return Document(
        id=f"turn-{turn['n']:04}",
        kind="turn",
        at=turn["at"],
        speaker=speaker,
        role=speaker if speaker in {"user", "assistant"} else "",
        text=turn["text"],
        sitting=str(turn["episode"]),
    )


def plain_words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def grep(turns: Sequence[Document]) -> Rank:
    """Rank by how many words of the question a turn holds."""
    texts = [set(plain_words(turn.text)) for turn in turns]

    def rank(question: str) -> list[int]:
        asked = set(plain_words(question))
        found = [(-len(asked & text), number) for number, text in enumerate(texts)]
        return [number for count, number in sorted(found)[:LIMIT] if count]

    return rank


def fts5(turns: Sequence[Document]) -> Rank:
    """SQLite FTS5 as it comes, words OR-joined."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE turn USING fts5(text)")
    database.executemany(
        "INSERT INTO turn(rowid, text) VALUES (?, ?)",
        [(number, turn.text) for number, turn in enumerate(turns)],
    )

    def rank(question: str) -> list[int]:
        asked = " OR ".join(f'"{word}"' for word in dict.fromkeys(plain_words(question)))
        query = "SELECT rowid FROM turn WHERE turn MATCH ? ORDER BY rank LIMIT ?"
        return [number for (number,) in database.execute(query, (asked, LIMIT))]

    return rank


def bm25(turns: Sequence[Document]) -> Rank:
    """BM25 as in the textbook."""
    texts = [plain_words(turn.text) for turn in turns]
    mean = statistics.fmean(map(len, texts))
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for number, text in enumerate(texts):
        for word, count in Counter(text).items():
            postings[word].append((number, count))

    def rank(question: str) -> list[int]:
        scores: defaultdict[int, float] = defaultdict(float)
        for word in set(plain_words(question)) & postings.keys():
            held = postings[word]
            weight = math.log(1 + (len(texts) - len(held) + 0.5) / (len(held) + 0.5))
            for number, count in held:
                norm = 1.2 * (0.25 + 0.75 * len(texts[number]) / mean)
                scores[number] += weight * count * 2.2 / (count + norm)
        return sorted(scores, key=lambda number: (-scores[number], number))[:LIMIT]

    return rank


def ours(turns: Sequence[Document]) -> Rank:
    """The product's own search."""
    cache = SearchCache(None)
    follow_all(cache, turns)
    numbers = {turn.id: number for number, turn in enumerate(turns)}

    def rank(question: str) -> list[int]:
        return [numbers[hit.id] for _, hit in search([cache], question).hits(LIMIT, [None])]

    return rank


def semantic(turns: Sequence[Document]) -> Rank:
    """The product's own search with the extra `semantic`."""
    cache, encoder = SearchCache(None), _encoder()
    follow_all(cache, turns)
    texts = {turn.id: meaning_text(turn) for turn in turns}
    matrix = encoder.matrix([_vector(texts[name]) for name in cache.index.ids])
    numbers = {turn.id: number for number, turn in enumerate(turns)}

    def rank(question: str) -> list[int]:
        answers = search([cache], question, likeness=[encoder.likeness(question, matrix)])
        return [numbers[hit.id] for _, hit in answers.hits(LIMIT, [None])]

    return rank


@cache
def _encoder() -> Encoder:
    encoder = find_encoder()
    assert encoder is not None
    return encoder


@cache
def _vector(text: str) -> bytes:
    return _encoder().vector(text)


def follow_all(cache: SearchCache, turns: Sequence[Document]) -> None:
    starts = range(0, len(turns), PAGE)
    pages = {f"conversation/{start // PAGE:03}": str(start) for start in starts}
    cache.follow(Followed(pages, lambda key: turns[int(pages[key]) :][:PAGE]))


def quality(rank: list[int], relevant: set[int]) -> tuple[float, ...]:
    gains = [number in relevant for number in rank]
    best = sum(1 / math.log2(place + 2) for place in range(min(LIMIT, len(relevant))))
    return (
        sum(gains[:5]) / len(relevant),
        sum(gains) / len(relevant),
        next((1 / (place + 1) for place, gain in enumerate(gains) if gain), 0.0),
        sum(1 / math.log2(place + 2) for place, gain in enumerate(gains) if gain) / best,
    )


def many(conversations: Sequence[Conversation]) -> Iterator[Document]:
    """Return turns without end, the conversations over and over, ids counting up."""
    count = 0
    while True:
        for number, conversation in enumerate(conversations):
            for turn in conversation.turns:
                sitting = f"{count}/{number}/{turn.sitting}"
                yield Document(
                    id=f"turn-{count:06}",
                    kind="turn",
                    at=turn.at,
                    text=turn.text,
                    speaker=turn.speaker,
                    role=turn.role,
                    sitting=sitting,
                )
                count += 1


# The engine of before, with lanes of long integers, and its own bench.
BEFORE = "e128ea0"
_OLD = """
import json, sys
from pathlib import Path
from tests.bench.retrieval import latencies, ours, read_conversations
from smp_git.ask.text import find_encoder
found = {}
for name in sys.argv[3:]:
    known = read_conversations(Path(sys.argv[1]) / f"{name}.json.gz")
    ranks = [rank(ask) for each in known[:: int(sys.argv[2])] for rank in [ours(each.turns)] for ask, _ in each.questions]
    found[name] = ranks, latencies(ours, known, 1_000 if sys.argv[2] != "1" else 10_000)
print(json.dumps(found))
"""
ENGINES = {
    "grep (words held)": grep,
    "SQLite FTS5 plain": fts5,
    "BM25 plain": bm25,
    "smp": ours,
}
_STEPS = {1: "all", 4: "a quarter"}
_RESAMPLED = 2_000
MEASURES = ("recall@5", "recall@10", "MRR", "nDCG@10")


def run(folder: Path, *, short: bool, with_meaning: bool = False) -> Iterator[str]:
    """Yield how well each engine finds, the one of before beside the one of now."""
    data = find_data()
    if data is None:
        yield "skipped: no shared/data above this file, and SMP_BENCH_DATA is not set"
        return
    step = 4 if short else 1
    old = before(folder, data, step)
    for name in FILES:
        known = read_conversations(data / f"{name}.json.gz")
        memories = 1_000 if short else MEMORIES
        asked = [(ask, right) for each in known[::step] for ask, right in each.questions]
        rows = {label: answered(engine, known[::step]) for label, engine in ENGINES.items()}
        times = {label: latencies(each, known, memories) for label, each in ENGINES.items()}
        if old:
            ranks, times[f"smp {BEFORE}"] = old[name]
            rows[f"smp {BEFORE}"] = [quality(r, q[1]) for r, q in zip(ranks, asked, strict=True)]
        if with_meaning and find_encoder() is not None:
            rows["smp + MiniLM"] = answered(semantic, known[::step])
            times["smp + MiniLM"] = latencies(semantic, known, 1_000)
        yield f"\n{name}, {_STEPS[step]} of {len(asked)} questions; {memories:,} memories for the times\n"
        yield table.rows(["", *MEASURES, "p50 ms", "p95 ms"], list(_body(rows, times)))
        if old:
            yield from compared(rows[f"smp {BEFORE}"], rows["smp"])


def _body(
    rows: Mapping[str, list[tuple[float, ...]]], times: Mapping[str, list[float]]
) -> Iterator[list[str]]:
    for label, found in rows.items():
        means = [f"{statistics.fmean(column):.3f}" for column in zip(*found, strict=True)]
        yield [label, *means, *(f"{value:.2f}" for value in times[label])]


def answered(
    engine: Callable[[Sequence[Document]], Rank], conversations: Sequence[Conversation]
) -> list[tuple[float, ...]]:
    """Return the quality of the answer to each question."""
    out = []
    for conversation in conversations:
        rank = engine(conversation.turns)
        out += [quality(rank(ask), right) for ask, right in conversation.questions]
    return out


def before(folder: Path, data: Path, step: int) -> dict[str, tuple[list[list[int]], list[float]]]:
    """Return what the engine of before finds and how long it takes, by a process of its own."""
    root = Path(__file__).resolve().parents[2]
    archive = subprocess.run(
        ["git", "archive", BEFORE, "smp_git", "tests/__init__.py", "tests/bench/__init__.py", "tests/bench/retrieval.py"], cwd=root, capture_output=True, check=False
    )  # fmt: skip
    if archive.returncode:
        return {}
    place = folder / "before"
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(place, filter="data")
    command = [sys.executable, "-c", _OLD, str(data), str(step), *FILES]
    found = subprocess.run(command, cwd=place, capture_output=True, check=True, text=True)
    result: dict[str, tuple[list[list[int]], list[float]]] = json.loads(found.stdout)
    return result


def compared(old: list[tuple[float, ...]], new: list[tuple[float, ...]]) -> Iterator[str]:
    """Yield by how much the means differ, with the middle 95 % of paired resamples."""
    rng = random.Random(1)
    yield f"\nsmp - smp {BEFORE}, of {_RESAMPLED:,} paired resamples 95 %\n"
    body = []
    for number, measure in enumerate(MEASURES):
        gains = [b[number] - a[number] for a, b in zip(old, new, strict=True)]
        means = sorted(
            statistics.fmean(rng.choices(gains, k=len(gains))) for _ in range(_RESAMPLED)
        )
        low, high = means[_RESAMPLED // 40], means[-_RESAMPLED // 40]
        body.append([measure, f"{statistics.fmean(gains):+.4f}", f"{low:+.4f}", f"{high:+.4f}"])
    yield table.rows(["", "gain", "from", "to"], body)


def latencies(
    engine: Callable[[Sequence[Document]], Rank],
    conversations: Sequence[Conversation],
    memories: int,
) -> list[float]:
    """Return p50 and p95 in milliseconds of processor time."""
    rank = engine(list(islice(many(conversations), memories)))
    asked = [ask for each in conversations for ask, _ in each.questions][::4]
    times = []
    for question in asked:
        start = time.process_time()
        rank(question)
        times.append(1000 * (time.process_time() - start))
    return [statistics.median(times), statistics.quantiles(times, n=20)[-1]]


def main() -> None:
    """Run it with the vectors too, if that is asked for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--short", action="store_true", help="a quarter of the data")
    parser.add_argument("--semantic", action="store_true", help="with the vectors too")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for line in run(Path(folder), short=chosen.short, with_meaning=chosen.semantic):
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
