"""Compaction: what a session can do without, in the order in which it goes, and what never goes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import groupby
from typing import Final, NamedTuple

from smp_git.ask.catalogue import Row
from smp_git.format import document, messages
from smp_git.keep import summaries
from smp_git.keep.preserved import Preserved
from smp_git.keep.summaries import BLOCK, SourceTurn
from smp_git.model.errors import InvalidError, InvalidFileError
from smp_git.model.ids import parse_id, sort_key
from smp_git.model.memory import CommitId, Memory, MemoryId
from smp_git.read import sizes
from smp_git.read.derived import AGENT, SOURCES, SUMMARY, sources_of
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle
from smp_git.write.stage import Stage
from smp_git.write.writer import Work

GENTLE: Final = 0.1
AGGRESSIVE: Final = 0.2
# Below this priority, not counting floors, a memory may go first.
DECAYED: Final = 0.3
_THRESHOLD: Final = 0.05
_OLD: Final = timedelta(days=7)
_FEWEST_TURNS: Final = 5
# What an agent's state can do without after a while.
_WORKING: Final = ("working_memory", "session_learnings")


class Removal(NamedTuple):
    """A memory that goes, the object that its file is, and the bytes that this frees."""

    id: MemoryId
    blob: str
    size: int


@dataclass(frozen=True, kw_only=True)
class CompactionStep:
    """A step of a compaction: what goes, what takes its place, the bytes that it frees."""

    name: str
    removals: Sequence[Removal] = ()
    made: Sequence[Memory] = ()
    freed: int = 0

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "step": self.name,
            "ids": [each.id for each in self.removals],
            "made": [each.id for each in self.made],
            "bytes": self.freed,
        }


@dataclass(frozen=True, kw_only=True)
class Compaction:
    """What a compaction did, or would do.

    >>> plan = session.compact("20%", dry_run=True)
    >>> plan.after_bytes <= plan.before_bytes
    True
    """

    before_bytes: int
    after_bytes: int
    target_bytes: int
    steps: tuple[CompactionStep, ...]
    kept: Mapping[str, int] = field(default_factory=dict)
    commit: CommitId | None = None
    dry_run: bool = False

    @property
    def freed_bytes(self) -> int:
        """How many bytes it frees."""
        return self.before_bytes - self.after_bytes

    @property
    def reached(self) -> bool:
        """Whether it frees as much as was asked for."""
        return self.freed_bytes >= self.target_bytes

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "before_bytes": self.before_bytes,
            "after_bytes": self.after_bytes,
            "freed_bytes": self.freed_bytes,
            "target_bytes": self.target_bytes,
            "reached": self.reached,
            "steps": [step.as_json() for step in self.steps],
            "kept": dict(self.kept),
            "commit": self.commit,
            "dry_run": self.dry_run,
        }


class Removable(NamedTuple):
    """A memory that may go, as far as the rules say."""

    row: Row
    unfloored: float
    relevance: float
    size: int

    @property
    def removal(self) -> Removal:
        """The memory as it goes."""
        return Removal(self.row.entry.id, self.row.entry.blob, self.size)


def compact(
    handle: Handle,
    target: int | float | str | None = None,
    *,
    preset: str | None = None,
    dry_run: bool = False,
    agent: str | None = None,
) -> Compaction:
    """Make a session smaller by `target`: bytes, or a part or percentage of what it has.

    Steps are done one after the other until enough is freed, each one commit. What is
    taken out stays in the history.
    """
    snapshot = handle.reader.snapshot()
    before = sizes.tracked_bytes(handle.reader, snapshot)
    wanted = _target(target, before)
    chosen = preset or handle.settings.compaction_preset
    plan = _Plan(handle, snapshot, handle.clock(), is_estimate=dry_run)
    steps = tuple(step for step in plan.steps(chosen, wanted) if step.removals or step.made)
    estimate = before - sum(step.freed for step in steps)
    made = Compaction(
        before_bytes=before,
        after_bytes=estimate,
        target_bytes=wanted,
        steps=steps,
        kept=plan.kept,
        dry_run=dry_run,
    )
    if dry_run or not steps:
        return made
    works = [
        Work(
            agent or AGENT,
            _doing(step),
            messages.COMPACTED[step.name],
            named=False,
        )
        for step in steps
    ]
    change = handle.writer.run_all(works)
    after = sizes.tracked_bytes(handle.reader, handle.reader.snapshot())
    return replace(made, after_bytes=after, commit=change.commit)


def _target(given: int | float | str | None, size: int) -> int:
    """Return how many bytes are to be freed; raise InvalidError."""
    if given is None:
        return int(size * GENTLE)
    text = str(given).strip().lower().replace(" ", "").replace("_", "")
    units = {"%": size / 100, "kb": 1e3, "mb": 1e6, "kib": 1024, "mib": 1 << 20, "b": 1}
    unit = next((each for each in ("%", "kib", "mib", "kb", "mb", "b") if text.endswith(each)), "")
    try:
        number = float(text.removesuffix(unit))
    except ValueError:
        number = -1
    share = isinstance(given, float) and 0 < given < 1
    wanted = number * (size if share else units.get(unit, 1))
    if not 0 <= wanted < 1 << 50:
        raise InvalidError(
            f"{given!r} is not a size to free", hint="bytes, e.g. 500kB or 2MB, or a part, e.g. 20%"
        )
    return int(wanted)


def _doing(step: CompactionStep) -> Callable[[Stage], None]:
    """Return what does a step on a session that may have gone on meanwhile: an edit wins."""

    def do(stage: Stage) -> None:
        going = [each for each in step.removals if stage.base.blob(each.id) == each.blob]
        is_dead = any(map(stage.base.tombstones.names, (each.id for each in step.made)))
        if step.name == "conversation" and (is_dead or len(going) != len(step.removals)):
            # A summary names its turns; it is made again without the one that changed.
            return
        for memory in step.made:
            data = document.encode(memory) if memory.kind != "state" else None
            if data is None:
                _put_state(stage, memory)
            elif stage.base.blob(memory.id) is None:
                stage.put_file(memory.path, data, "")
        for each in going:
            stage.put_file(parse_id(each.id).path, None, "remove")

    return do


def _put_state(stage: Stage, memory: Memory) -> None:
    now = stage.get(memory.id)
    if now.updated_at == memory.updated_at:
        stage.edit(memory.id, fields=dict.fromkeys(name for name in _WORKING if name in now.fields))


class _Plan:
    """What a compaction of one snapshot would take, step by step."""

    def __init__(
        self, handle: Handle, snapshot: Snapshot, now: datetime, *, is_estimate: bool
    ) -> None:
        self._handle = handle
        self._snapshot = snapshot
        self._now = now
        settings = handle.settings
        # An estimate does not call the user's program.
        self._settings = replace(settings, summarizer=None) if is_estimate else settings
        self._preserved = Preserved(handle, snapshot, now)
        self._catalogue, self._ranking = self._preserved.catalogue, self._preserved.ranking
        self._lines = {
            name: len(line.encode()) + 1
            for page in snapshot.pages()
            for name, line in page.lines.items()
        }
        self.kept: dict[str, int] = {}
        self._going: set[MemoryId] = set()

    def steps(self, preset: str, target: int) -> Iterator[CompactionStep]:
        """Yield the steps, until they free as much as is wanted."""
        candidates = list(self._candidates())
        if preset == "default":
            ways: tuple[Callable[[Sequence[Removable], int], CompactionStep], ...] = (
                self._decayed,
                self._conversation,
                self._findings,
                self._states,
            )
        elif preset in ("relevance", "threshold"):
            ways = (self._least_relevant if preset == "relevance" else self._below_threshold,)
        else:
            raise InvalidError(
                f"no compaction preset {preset!r}", hint="default, relevance or threshold"
            )
        for way in ways:
            if target <= 0:
                return
            step = way(
                [each for each in candidates if each.row.entry.id not in self._going], target
            )
            self._going |= {each.id for each in step.removals}
            target -= step.freed
            yield step

    def _candidates(self) -> Iterator[Removable]:
        """Yield what no rule keeps, the lowest priority first; count what one keeps."""
        kept, found = Counter[str](), list[Removable]()
        for row in self._catalogue.rows:
            decayed = self._ranking.decayed(row)
            reason = self._preserved.rule(row)
            if reason:
                kept[reason] += 1
                continue
            relevance = self._ranking.scored(row, decayed, 1.0).value
            size = row.entry.size + self._lines.get(row.entry.id, 0)
            found.append(Removable(row, decayed.unfloored, relevance, size))
        self.kept = dict(sorted(kept.items()))
        yield from sorted(
            found, key=lambda each: (each.unfloored, each.row.at, sort_key(each.row.entry.id))
        )

    # The steps

    def _decayed(self, candidates: Sequence[Removable], target: int) -> CompactionStep:
        low = (each for each in candidates if each.unfloored < DECAYED)
        return _removing("decayed", low, target)

    def _least_relevant(self, candidates: Sequence[Removable], target: int) -> CompactionStep:
        ordered = sorted(candidates, key=lambda each: each.relevance)
        return _removing("relevance", ordered, target)

    def _below_threshold(self, candidates: Sequence[Removable], target: int) -> CompactionStep:
        low = [each for each in candidates if each.unfloored < _THRESHOLD]
        return _removing("relevance", low, sum(each.size for each in low) if target else 0)

    def _findings(self, candidates: Sequence[Removable], target: int) -> CompactionStep:
        return _removing("findings", (c for c in candidates if c.row.kind == "finding"), target)

    def _conversation(self, candidates: Sequence[Removable], target: int) -> CompactionStep:
        """Summarise whole blocks of old turns, the oldest first."""
        removals, made, freed = list[Removal](), list[Memory](), 0
        known = self._snapshot.tombstones
        for step in self._subsumed(candidates):
            removals.append(step)
            freed += step.size
        for block in self._blocks(candidates):
            if freed >= target:
                break
            memories = self._read(block)
            if len(memories) < _FEWEST_TURNS:
                continue
            summary = summaries.summary(memories, self._settings)
            there = self._snapshot.blob(summary.id)
            if there is None and known.names(summary.id):
                # Somebody deleted it, and wants no such summary.
                continue
            data = document.encode(summary)
            gone = [
                each.removal
                for each in block
                if each.row.entry.id in {m.memory.id for m in memories}
            ]
            gain = sum(each.size for each in gone) - (0 if there else len(data) + 400)
            if gain > 0 and (there is None or self._snapshot.file(summary.id) == data):
                removals += gone
                made += [] if there else [summary]
                freed += gain
        return CompactionStep(name="conversation", removals=removals, made=made, freed=freed)

    def _read(self, block: Sequence[Removable]) -> list[SourceTurn]:
        out = []
        for each in block:
            try:
                out.append(SourceTurn(self._snapshot.get(each.row.entry.id), each.row.entry.blob))
            except InvalidFileError:
                continue
        return out

    def _blocks(self, candidates: Sequence[Removable]) -> Iterator[list[Removable]]:
        """Yield the old turns of one replica, block by block; one that may grow is left alone."""

        def key(row: Row) -> tuple[str, int]:
            place = parse_id(row.entry.id)
            return place.tag, (place.number - 1) // BLOCK

        turns = [row for row in self._catalogue.rows if row.kind == "turn"]
        growing = {key(row) for row in turns if self._now - row.at <= _OLD}
        highest: dict[str, int] = {}
        for row in turns:
            place = parse_id(row.entry.id)
            highest[place.tag] = max(highest.get(place.tag, 0), place.number)
        known = self._snapshot.tombstones
        # What was deleted or redacted once may still have an older version elsewhere.
        old = [
            each
            for each in candidates
            if each.row.kind == "turn" and not known.names(each.row.entry.id)
        ]
        found = groupby(sorted(old, key=lambda each: key(each.row)), lambda each: key(each.row))
        blocks = [(name, list(block)) for name, block in found]
        for (tag, block), each in sorted(blocks, key=lambda item: min(c.row.at for c in item[1])):
            if (tag, block) not in growing and (block + 1) * BLOCK <= highest[tag]:
                yield sorted(each, key=lambda one: parse_id(one.row.entry.id).number)

    def _subsumed(self, candidates: Sequence[Removable]) -> Iterator[Removal]:
        """Yield the summaries of which another one has all the turns, and more."""
        found = {}
        for each in candidates:
            if each.row.entry.type == SUMMARY:
                memory = self._snapshot.get(each.row.entry.id)
                found[each.removal] = sources_of(memory.fields.get(SOURCES))
        for summary, sources in found.items():
            if any(sources < other for other in found.values()):
                yield summary

    def _states(self, candidates: Sequence[Removable], target: int) -> CompactionStep:
        """Take old working memory, and what was learned for a session, out of agents' states."""
        made, freed = list[Memory](), 0
        for row in self._catalogue.rows:
            if row.kind != "state" or row.entry.pinned:
                continue
            memory = self._snapshot.get(row.entry.id)
            at = memory.updated_at or memory.created_at
            old = {name: memory.fields[name] for name in _WORKING if name in memory.fields}
            if old and self._now - at > _OLD and freed < target:
                made.append(memory)
                freed += len(document.encode(memory)) - len(document.encode(_plain(memory, old)))
        return CompactionStep(name="states", made=made, freed=freed)


def _plain(memory: Memory, old: Iterable[str]) -> Memory:
    return replace(memory, fields={k: v for k, v in memory.fields.items() if k not in set(old)})


def _removing(name: str, candidates: Iterable[Removable], target: int) -> CompactionStep:
    """Return the step that removes memories in their order, until enough is freed."""
    removals, freed = list[Removal](), 0
    for each in candidates:
        if freed >= target:
            break
        removals.append(each.removal)
        freed += each.size
    return CompactionStep(name=name, removals=removals, freed=freed)
