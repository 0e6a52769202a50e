"""LangGraph's store in a session: what graphs remember across threads, each batch of puts one commit."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from itertools import islice
from typing import Any, Final, NamedTuple, cast

from anyio import to_thread
from langgraph.store.base import (
    BaseStore,
    GetOp,
    IndexConfig,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    TTLConfig,
    validate_op_namespace,
)

from smp_git.integrations.langgraph.vectors import Vector, Vectors
from smp_git.read.values import Key, ListedValue, SeenValues, StoredValue
from smp_git.session import Session
from smp_git.write.values import Secrets, Writing

_ROOT: Final = "langgraph"
# What is known of an item beside its value.
_TTL: Final = "ttl_minutes"
_INDEX: Final = "index"


class _SearchHit(NamedTuple):
    """An item that passes the filter of a search, and the texts that it is found by."""

    stored: StoredValue
    texts: tuple[str, ...] = ()


class _Batch(NamedTuple):
    """A batch whose reads are done: results, what is still to be put in order, what is to be written."""

    results: list[Result]
    searches: dict[int, tuple[SearchOp, list[_SearchHit]]]
    puts: dict[Key, PutOp]
    # What was read of items that live on with each reading.
    used: list[StoredValue]


class SmpStore(BaseStore):
    """A LangGraph store in a session.

    An item is a value under its namespace and key. What a graph deletes stays in the
    history until maintenance erases it, or is erased at once with `erase`. `index` and
    `ttl` are as in LangGraph's own stores; an item expires so many minutes after it was
    written or read last, and the clock of reads is no part of the history.
    """

    supports_ttl = True

    def __init__(
        self,
        session: Session,
        *,
        agent: str = _ROOT,
        secrets: Secrets = "refuse",
        erase: bool = False,
        index: IndexConfig | None = None,
        ttl: TTLConfig | None = None,
    ) -> None:
        self._values = session.values(agent, secrets=secrets)
        self._erase = erase
        self._vectors = Vectors(index, session.path) if index is not None else None
        self.ttl_config = ttl
        self._swept_at = self._values.now()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations; reads see what was there before the writes."""
        work = self._begun(list(ops))
        questions = self._vectors.embed(*self._asked(work)) if self._vectors is not None else {}
        return self._done(work, questions)

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations without blocking the loop."""
        work = await to_thread.run_sync(self._begun, list(ops))
        vectors = self._vectors
        questions = await vectors.aembed(*self._asked(work)) if vectors is not None else {}
        return await to_thread.run_sync(self._done, work, questions)

    def sweep_ttl(self) -> int:
        """Remove what has expired; return how much that was.

        Operations do so when the interval of the configuration has passed.
        """
        self._swept_at = self._values.now()
        if self._erase:
            return len(self._values.erase_found(self._expired, reason="expired"))
        keys = self._values.read(self._expired)

        def work(now: Writing) -> int:
            # Somebody may have put one anew.
            kept = ((key, now.get(key)) for key in keys)
            gone = [key for key, each in kept if each is not None and self._is_expired(each)]
            return sum(map(now.remove, gone))

        return self._values.write(work) if keys else 0

    # Reading

    def _begun(self, ops: Sequence[Op]) -> _Batch:
        for op in ops:
            validate_op_namespace(op)
        return self._values.read(lambda seen: self._read(seen, ops))

    def _read(self, seen: SeenValues, ops: Sequence[Op]) -> _Batch:
        work = _Batch([None] * len(ops), {}, {}, [])
        for place, op in enumerate(ops):
            if isinstance(op, GetOp):
                stored = self._shown(seen, (_ROOT, *op.namespace, op.key))
                work.results[place] = _item(stored) if stored is not None else None
                work.used.extend([stored] if stored is not None and op.refresh_ttl else ())
            elif isinstance(op, SearchOp):
                work.searches[place] = op, list(self._found(seen, op))
            elif isinstance(op, ListNamespacesOp):
                work.results[place] = self._namespaces(seen, op)
            elif isinstance(op, PutOp):
                work.puts[_ROOT, *op.namespace, op.key] = op
            else:
                raise ValueError(f"Unknown operation type: {type(op)}")  # noqa: TRY004 - as LangGraph's own stores
        return work

    def _found(self, seen: SeenValues, op: SearchOp) -> Iterator[_SearchHit]:
        """Yield the page of items that pass a filter, the latest first; all if they are ranked later."""
        prefix = (_ROOT, *op.namespace_prefix)
        listed = [each for each in seen.list(prefix) if len(each.key) > len(prefix)]
        listed.sort(key=lambda each: each.updated_at, reverse=True)
        if op.query and self._vectors is not None:
            for stored in self._passing(seen, listed, op):
                yield _SearchHit(stored, self._texts(stored.value, stored.beside.get(_INDEX)))
            return
        first, end = op.offset, op.offset + op.limit
        if not op.filter and not self._omits_expired:
            # All of them pass, so what is before the page need not be read.
            listed, first, end = listed[first:end], 0, op.limit
        yield from map(_SearchHit, islice(self._passing(seen, listed, op), first, end))

    def _passing(
        self, seen: SeenValues, listed: Iterable[ListedValue], op: SearchOp
    ) -> Iterator[StoredValue]:
        """Yield the items that have not expired and pass the filter of a search."""
        for stored in map(seen.read, listed):
            if not self._is_omitted(stored) and _fits(stored.value, op.filter or {}):
                yield stored

    def _texts(self, value: Any, index: Any) -> tuple[str, ...]:
        return self._vectors.texts(value, index) if self._vectors is not None else ()

    def _namespaces(self, seen: SeenValues, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        conditions = op.match_conditions or ()
        fitting = {
            each.key[1:-1]
            for each in seen.list((_ROOT,))
            if all(_matches(condition, each.key[1:-1]) for condition in conditions)
            and (not self._omits_expired or self._shown(seen, each.key) is not None)
        }
        found = sorted({each[: op.max_depth] for each in fitting})
        return found[op.offset : op.offset + op.limit]

    # Answers and writes

    def _asked(self, work: _Batch) -> tuple[list[str], list[str]]:
        """Return the texts that need vectors, and the questions."""
        texts = [text for _, found in work.searches.values() for one in found for text in one.texts]
        for op in work.puts.values():
            texts += self._texts(op.value, op.index) if op.value is not None else ()
        return texts, [op.query for op, _ in work.searches.values() if op.query]

    def _done(self, work: _Batch, questions: Mapping[str, Vector]) -> list[Result]:
        for place, (op, found) in work.searches.items():
            page = self._page(op, found, questions.get(op.query or ""))
            work.results[place] = [_search_item(stored, score) for stored, score in page]
            work.used.extend(stored for stored, _ in page if op.refresh_ttl)
        self._values.note_use(each.id for each in work.used if _TTL in each.beside)
        self._write(work.puts)
        minutes = (self.ttl_config or {}).get("sweep_interval_minutes")
        if minutes and self._values.now() - self._swept_at >= timedelta(minutes=minutes):
            self.sweep_ttl()
        return work.results

    def _write(self, puts: Mapping[Key, PutOp]) -> None:
        ready = {
            key: self._values.prepared(op.value) for key, op in puts.items() if op.value is not None
        }
        gone = [key for key in puts if key not in ready]

        def work(now: Writing) -> None:
            for key, value in ready.items():
                beside = {_TTL: puts[key].ttl, _INDEX: puts[key].index}
                now.put(key, value, beside=beside)
            for key in () if self._erase else gone:
                now.remove(key)

        if puts:
            self._values.write(work)
        if gone and self._erase:
            self._values.erase(*gone, reason="deleted by the program")

    def _page(
        self, op: SearchOp, found: Sequence[_SearchHit], question: Vector | None
    ) -> list[tuple[StoredValue, float | None]]:
        """Return a page of what was found: the nearest first, then what has no vector."""
        if question is None or self._vectors is None:
            return [(each.stored, None) for each in found]
        score = self._vectors.score
        scored = [(each.stored, score(question, each.texts)) for each in found]
        scored.sort(key=lambda pair: (pair[1] is None, -(pair[1] or 0.0)))
        return scored[op.offset : op.offset + op.limit]

    # Expiry

    @property
    def _omits_expired(self) -> bool:
        return bool((self.ttl_config or {}).get("omit_expired"))

    def _shown(self, seen: SeenValues, key: Key) -> StoredValue | None:
        stored = seen.get(key)
        return None if stored is None or self._is_omitted(stored) else stored

    def _is_omitted(self, stored: StoredValue) -> bool:
        return self._omits_expired and self._is_expired(stored)

    def _expired(self, seen: SeenValues) -> list[Key]:
        return [each.key for each in seen.items((_ROOT,)) if self._is_expired(each)]

    def _is_expired(self, stored: StoredValue) -> bool:
        minutes = stored.beside.get(_TTL)
        if not isinstance(minutes, (int, float)):
            return False
        used = self._values.used_at(stored.id)
        last = max(used, stored.updated_at) if used is not None else stored.updated_at
        return self._values.now() >= last + timedelta(minutes=minutes)


def _item(stored: StoredValue) -> Item:
    return Item(**_parts(stored))


def _search_item(stored: StoredValue, score: float | None) -> SearchItem:
    return SearchItem(**_parts(stored), score=score)


def _parts(stored: StoredValue) -> dict[str, Any]:
    return {
        "value": stored.value,
        "key": stored.key[-1],
        "namespace": stored.key[1:-1],
        "created_at": stored.created_at,
        "updated_at": stored.updated_at,
    }


_COMPARED: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "$gt": operator.gt,
    "$gte": operator.ge,
    "$lt": operator.lt,
    "$lte": operator.le,
}


def _fits(value: Any, wanted: Any) -> bool:
    """Whether a value is what a filter wants: with all of its members, or as an operator says."""
    if isinstance(wanted, Mapping) and any(name.startswith("$") for name in wanted):
        return all(_compares(value, name, other) for name, other in wanted.items())
    if isinstance(wanted, Mapping):
        return isinstance(value, dict) and all(
            _fits(value.get(name), other) for name, other in wanted.items()
        )
    if isinstance(wanted, (list, tuple)):
        same = isinstance(value, list) and len(value) == len(wanted)
        return same and all(map(_fits, value, wanted))
    return cast("bool", value == wanted)


def _compares(value: Any, name: str, other: Any) -> bool:
    if name in ("$eq", "$ne"):
        return (value == other) is (name == "$eq")
    if name not in _COMPARED:
        raise ValueError(f"Unsupported operator: {name}")
    numbers = isinstance(value, (int, float)) and isinstance(other, (int, float))
    texts = isinstance(value, str) and isinstance(other, str)
    return (numbers or texts) and _COMPARED[name](value, other)


def _matches(condition: MatchCondition, namespace: tuple[str, ...]) -> bool:
    """Whether a namespace begins or ends as a condition says; `*` is any one label."""
    path = tuple(condition.path)
    if condition.match_type not in ("prefix", "suffix"):
        raise ValueError(f"Unsupported match type: {condition.match_type}")
    start = 0 if condition.match_type == "prefix" else len(namespace) - len(path)
    part = namespace[start : start + len(path)] if start >= 0 else ()
    return len(part) == len(path) and all(
        wanted in ("*", label) for wanted, label in zip(path, part, strict=True)
    )
