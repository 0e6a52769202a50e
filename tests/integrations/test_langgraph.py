"""LangGraph's store and checkpointer in a session, held to what its own stores do."""

from __future__ import annotations

import asyncio
import json
import operator
import subprocess
import sys
from collections import defaultdict
from datetime import timedelta
from typing import Annotated, Any, TypedDict

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("langgraph.store.base", reason="the extra langgraph is not installed")

from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    ListNamespacesOp,
    MatchCondition,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from smp_git import Session, Store
from smp_git.integrations.langgraph import SmpSaver, SmpStore
from smp_git.integrations.langgraph.packing import readable, serialized
from smp_git.model.errors import InvalidError
from smp_git.read.values import SeenValues
from tests import independent_scan
from tests.conftest import Clock
from tests.integrations.loops import goes_on
from tests.support import ROOT

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::PendingDeprecationWarning"
)
SECRET = "Zebra-Kumquat-4711"
MAIL = "jane.roe@gmail.com"

labels = st.sampled_from(("a", "b", "ü/ 😀", "users"))
namespaces = st.lists(labels, min_size=1, max_size=3).map(tuple)
keys = st.sampled_from(("k", "l", "", "a", "x.y"))
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from(("red", "5", "", 2.5))
documents = st.dictionaries(
    st.sampled_from(("n", "colour", "deep")),
    scalars | st.dictionaries(st.just("x"), scalars),
    max_size=3,
)
filters = st.dictionaries(
    st.sampled_from(("n", "colour", "deep")),
    scalars
    | st.dictionaries(st.sampled_from(("$eq", "$ne")), scalars, min_size=1)
    | st.dictionaries(st.just("x"), scalars, min_size=1),
    max_size=2,
)
conditions = st.builds(
    MatchCondition,
    st.sampled_from(("prefix", "suffix")),
    st.lists(labels | st.just("*"), min_size=1, max_size=2).map(tuple),
)
# Arguments that a caller may leave out are left out: a strategy for a class gives them, too.
operations = st.one_of(
    st.tuples(namespaces, keys, documents | st.none()).map(lambda said: PutOp(*said)),
    st.tuples(namespaces, keys, documents).map(lambda said: PutOp(*said)),
    st.tuples(namespaces, keys).map(lambda said: GetOp(*said)),
    st.tuples(st.lists(labels, max_size=2).map(tuple), filters | st.none()).map(
        lambda said: SearchOp(*said, limit=100)
    ),
    st.tuples(st.none() | st.tuples(conditions), st.none() | st.integers(1, 2)).map(
        lambda said: ListNamespacesOp(*said)
    ),
)


@pytest.fixture
def lang(session: Session) -> SmpStore:
    return SmpStore(session)


class Holding(defaultdict[tuple[str, ...], dict[str, Any]]):
    """Namespaces that hold something: the store in memory lists those too that were emptied or
    only asked, which no store that keeps its items does."""

    def keys(self) -> Any:
        return [name for name, items in self.items() if items]


def shown(result: Any) -> Any:
    """What a result says, but for its times and the order of a search, which is nobody's."""
    if isinstance(result, list):
        parts = [shown(each) for each in result]
        return sorted(parts, key=repr) if result and not isinstance(result[0], tuple) else parts
    return (result.namespace, result.key, result.value) if hasattr(result, "value") else result


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(batches=st.lists(st.lists(operations, max_size=4), max_size=5))
def test_batches_do_what_the_store_in_memory_does(store: Store, batches: list[list[Any]]) -> None:
    name = f"s{len(store.sessions())}"
    with store.create_session(name) as session:
        mine, theirs = SmpStore(session), InMemoryStore()
        theirs._data = Holding(dict)
        for batch in batches:
            assert list(map(shown, mine.batch(batch))) == list(map(shown, theirs.batch(batch)))
        left = (SearchOp((), limit=1000),)
        assert shown(mine.batch(left)) == shown(theirs.batch(left))


def test_a_batch_is_one_commit_and_its_reads_come_first(session: Session, lang: SmpStore) -> None:
    before = len(session.log())

    found = lang.batch([
        PutOp(("a",), "k", {"n": 1}), GetOp(("a",), "k"), PutOp(("a",), "k", {"n": 2}), PutOp(("b",), "k", {"n": 3}),
        SearchOp(("a",)),
    ])  # fmt: skip

    assert found == [None, None, None, None, []]
    assert lang.get(("a",), "k").value == {"n": 2}
    assert len(session.log()) == before + 1
    assert session.log()[0].agent == "langgraph"


def test_search_gives_the_latest_first_and_pages(lang: SmpStore) -> None:
    for number in range(6):
        lang.put(("a", str(number % 2)), f"k{number}", {"n": number, "name": f"x{number}"})
    lang.put(("a", "0"), "k0", {"n": 0, "again": True})

    def found(**asked: Any) -> list[str]:
        return [each.key for each in lang.search(("a",), **asked)]

    assert found() == ["k0", "k5", "k4", "k3", "k2", "k1"]
    assert found(limit=2, offset=1) == ["k5", "k4"]
    assert found(limit=2, offset=5) == ["k1"]
    assert found(limit=0) == found(limit=2, offset=6) == []
    assert found(limit=1, offset=1, filter={"n": {"$gte": 2}}) == ["k4"]
    assert found(filter={"n": {"$gte": 2, "$lt": 4.5}}) == ["k4", "k3", "k2"]
    assert found(filter={"name": {"$gt": "x3"}}) == ["k5", "k4"]
    assert found(filter={"name": {"$gt": 3}}) == []
    assert found(filter={"n": [1]}) == []
    with pytest.raises(ValueError, match="Unsupported operator"):
        found(filter={"n": {"$like": 1}})
    first = lang.get(("a", "0"), "k0")
    assert first is not None and first.created_at < first.updated_at


@pytest.mark.parametrize("namespace", [(), ("a.b",), ("",), ("a\0",), ("langgraph",), (1,)])
def test_namespaces_are_refused_as_the_framework_does(lang: SmpStore, namespace: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        lang.put(namespace, "k", {})


@pytest.mark.parametrize("op", [PutOp(("a.b",), "k", {}), GetOp(("",), "k"), SearchOp(("a.b",))])
def test_operations_of_a_batch_are_checked_too(lang: SmpStore, op: Any) -> None:
    with pytest.raises(InvalidNamespaceError):
        lang.batch([op])


def test_what_json_has_not_is_refused_and_nothing_of_the_batch_is_written(
    session: Session, lang: SmpStore
) -> None:
    head = session.head

    for value in ({"x": object()}, {1: 2}, {"at": {1, 2}}):
        with pytest.raises(InvalidError):
            lang.batch([PutOp(("a",), "good", {}), PutOp(("a",), "bad", value)])
    assert session.head == head


def test_secret_is_refused_unless_the_program_chose(session: Session) -> None:
    with pytest.raises(InvalidError, match=r"a secret \(email\) at contact\.mail"):
        SmpStore(session).put(("users", "1"), "profile", {"contact": {"mail": MAIL}})
    SmpStore(session, secrets="redact").put(("users", "1"), "clean", {"mail": MAIL})
    SmpStore(session, secrets="keep").put(("users", "1"), "exact", {"mail": MAIL})

    found = {each.key: each.value["mail"] for each in SmpStore(session).search(("users",))}
    assert found == {"clean": "[REDACTED:email]", "exact": MAIL}


def test_deleted_item_stays_in_the_history_or_is_erased(store: Store, session: Session) -> None:
    plain, erasing = SmpStore(session), SmpStore(session, erase=True)
    plain.put(("a",), "k", {"text": SECRET})
    plain.delete(("a",), "k")
    plain.delete(("a",), "never")
    assert plain.get(("a",), "k") is None
    assert independent_scan.scan(session.path, [SECRET.encode()])

    erasing.delete(("a",), "k")

    assert independent_scan.scan(store.path, [SECRET.encode()]) == []
    plain.put(("a",), "k", {"text": "new"})
    assert plain.get(("a",), "k").value == {"text": "new"}


# Expiry


def test_item_expires_so_long_after_it_was_used_last(session: Session, clock: Clock) -> None:
    lang = SmpStore(session, ttl={"default_ttl": 10, "omit_expired": True})
    lang.put(("a",), "default", {})
    lang.put(("a",), "short", {}, ttl=2)
    lang.put(("a",), "for ever", {}, ttl=None)
    head = session.head

    def there() -> set[str]:
        return {each.key for each in lang.search(("a",), refresh_ttl=False)}

    clock.now += timedelta(minutes=1.5)
    assert lang.get(("a",), "short") is not None
    clock.now += timedelta(minutes=1.5)
    assert there() == {"default", "short", "for ever"}
    assert lang.get(("a",), "short", refresh_ttl=False) is not None
    clock.now += timedelta(minutes=1)
    assert there() == {"default", "for ever"}
    assert lang.get(("a",), "short") is None
    assert session.head == head
    with Session(session.path, clock) as again:
        assert SmpStore(again, ttl=lang.ttl_config).get(("a",), "default") is not None
    clock.now += timedelta(minutes=9)
    assert there() == {"default", "for ever"}
    clock.now += timedelta(minutes=9)
    assert there() == {"for ever"}
    assert lang.list_namespaces() == [("a",)]
    assert lang.sweep_ttl() == 2
    assert {each.key[-1] for each in session.values().list("langgraph")} == {"for ever"}


def test_expired_item_is_there_until_it_is_swept(session: Session, clock: Clock) -> None:
    lang = SmpStore(session, ttl={"sweep_interval_minutes": 5})
    lang.put(("a",), "k", {}, ttl=1)
    clock.now += timedelta(minutes=2)
    assert lang.get(("a",), "k", refresh_ttl=False) is not None
    lang.put(("a",), "k", {"again": 1}, ttl=1)
    clock.now += timedelta(minutes=4)
    assert [each.key for each in lang.search(("a",), refresh_ttl=False)] == ["k"]
    assert lang.get(("a",), "k") is None


@pytest.mark.parametrize("erase", [False, True])
def test_item_that_is_put_while_expired_ones_are_swept_stays(
    session: Session, clock: Clock, monkeypatch: pytest.MonkeyPatch, erase: bool
) -> None:
    lang = SmpStore(session, erase=erase)
    lang.put(("a",), "anew", {"n": 1}, ttl=1)
    lang.put(("a",), "gone", {"n": 1}, ttl=1)
    clock.now += timedelta(minutes=2)
    expired, asked = lang._expired, []

    def found(seen: SeenValues) -> Any:
        asked.append(keys := expired(seen))
        if len(asked) == 1:
            SmpStore(session).put(("a",), "anew", {"n": 2}, ttl=1)
        return keys

    monkeypatch.setattr(lang, "_expired", found)

    assert lang.sweep_ttl() == 1
    assert [(each.key, each.value) for each in lang.search(("a",))] == [("anew", {"n": 2})]


# Search by meaning


class Embedding:
    """Embeds a text by how often it has which vowel; counts what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(text.count(vowel)) for vowel in "aeiou"] for text in texts]


def index(embed: Any, **more: Any) -> Any:
    return {"dims": 5, "embed": embed, "fields": ["text"], **more}


def filled(session: Session, embed: Any, **more: Any) -> SmpStore:
    lang = SmpStore(session, index=index(embed, **more))
    lang.put(("docs",), "a", {"text": "aaaa", "n": 1})
    lang.put(("docs",), "ae", {"text": "aaee", "n": 2})
    lang.put(("docs",), "e", {"text": "eee", "tags": ["aaaa"], "n": 3}, index=["tags[*]"])
    lang.put(("docs",), "none", {"text": "aaaa"}, index=False)
    return lang


def test_search_by_meaning_gives_the_nearest_first(session: Session) -> None:
    lang = filled(session, Embedding())

    found = [(each.key, each.score) for each in lang.search(("docs",), query="a")]

    assert [name for name, _ in found[:2]] in (["a", "e"], ["e", "a"])
    assert found[2][0] == "ae"
    assert found[3] == ("none", None)
    assert [each.key for each in lang.search(("docs",), query="a", limit=1, offset=2)] == ["ae"]
    assert [each.key for each in lang.search(("docs",), query="a", filter={"n": 2})] == ["ae"]
    assert all(each.score is None for each in lang.search(("docs",)))


def test_each_text_is_embedded_once(session: Session, clock: Clock) -> None:
    embed = Embedding()
    lang = filled(session, embed)
    lang.search(("docs",), query="a")
    assert sorted(embed.asked) == ["a", "aaaa", "aaee"]

    with Session(session.path, clock) as again:
        SmpStore(again, index=index(embed)).search(("docs",), query="e")

    assert sorted(embed.asked) == ["a", "aaaa", "aaee", "e"]


def test_vectors_of_what_was_erased_go_with_it(session: Session) -> None:
    embed = Embedding()
    lang = filled(session, embed)
    lang.search(("docs",), query="a")
    place = session.path / ".git/smp/embeddings"
    assert place.exists()

    session.values().erase(("langgraph", "docs", "a"))

    assert not place.exists()
    assert next(each.key for each in lang.search(("docs",), query="e")) == "ae"


def test_embedding_of_another_size_is_refused(session: Session) -> None:
    with pytest.raises(InvalidError, match="dimensions instead of 5"):
        filled(session, lambda texts: [[1.0]] * len(texts))


def test_embedding_that_is_asynchronous_only(session: Session) -> None:
    embed = Embedding()

    async def aembed(texts: list[str]) -> list[list[float]]:
        return embed(texts)

    async def work() -> list[str]:
        lang = SmpStore(session, index=index(aembed))
        await lang.aput(("docs",), "a", {"text": "aaaa"})
        await lang.aput(("docs",), "e", {"text": "eeee"})
        return [each.key for each in await lang.asearch(("docs",), query="e")]

    assert asyncio.run(work()) == ["e", "a"]


# At the same time


def test_loop_goes_on_while_a_write_waits(session: Session) -> None:
    lang = SmpStore(session)

    assert goes_on(session, lambda: lang.aput(("a",), "k", {"n": 1}))
    assert lang.get(("a",), "k") is not None


_WRITER = """
import sys
from smp_git import Store
from smp_git.integrations.langgraph import SmpStore
with Store.open(sys.argv[1]).session("shop") as session:
    store = SmpStore(session)
    for number in range(12):
        store.put(("all",), f"{sys.argv[2]}-{number}", {"n": number})
        store.put(("same",), "one", {"by": sys.argv[2]})
"""


def test_two_processes_lose_nothing(store: Store, session: Session) -> None:
    running = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", _WRITER, str(store.path), name], cwd=ROOT)
        for name in ("one", "two")
    ]  # fmt: skip

    assert [each.wait(120) for each in running] == [0, 0]
    lang = SmpStore(session)
    assert len(lang.search(("all",), limit=100)) == 24
    assert lang.get(("same",), "one").value["by"] in ("one", "two")


# The checkpointer


class State(TypedDict):
    """What the graph of these tests works on."""

    said: Annotated[list[str], operator.add]
    n: int


@pytest.fixture
def graph() -> Any:
    """A graph of two steps, the second of which asks a person."""
    graphs = pytest.importorskip("langgraph.graph", reason="langgraph itself is not installed")
    from langgraph.types import interrupt

    def first(state: State) -> Any:
        return {"said": ["first"], "n": state["n"] + 1}

    def second(state: State) -> Any:
        return {"said": [interrupt("go on?")], "n": state["n"] * 10}

    made = graphs.StateGraph(State)
    made.add_node("first", first)
    made.add_node("second", second)
    made.add_edge(graphs.START, "first")
    made.add_edge("first", "second")
    return made


def thread(name: str, **more: Any) -> Any:
    return {"configurable": {"thread_id": name, **more}}


def test_graph_goes_on_from_the_session_alone(session: Session, clock: Clock, graph: Any) -> None:
    from langgraph.types import Command

    run = graph.compile(checkpointer=SmpSaver(session), store=SmpStore(session))
    run.invoke({"said": ["hello"], "n": 1}, thread("t"))
    assert run.get_state(thread("t")).next == ("second",)

    with Session(session.path, clock) as again:
        resumed = graph.compile(checkpointer=SmpSaver(again))
        done = resumed.invoke(Command(resume="yes"), thread("t"))
        assert done == {"said": ["hello", "first", "yes"], "n": 20}
        steps = list(resumed.get_state_history(thread("t")))
        assert [each.values.get("n") for each in steps] == [20, 2, 1, None]
        # Back in time: from before the first step, and answered otherwise, beside what was done.
        resumed.invoke(None, steps[2].config)
        other = resumed.invoke(Command(resume="no"), thread("t"))
        assert other["said"] == ["hello", "first", "no"]
        assert len(list(resumed.get_state_history(thread("t")))) == 7
        assert resumed.get_state(steps[0].config).values == done
        assert again.check() == ()


def test_graph_goes_on_without_blocking(session: Session, graph: Any) -> None:
    from langgraph.types import Command

    async def work() -> Any:
        run = graph.compile(checkpointer=SmpSaver(session))
        await run.ainvoke({"said": [], "n": 1}, thread("t"))
        done = await run.ainvoke(Command(resume="yes"), thread("t"))
        steps = [each async for each in run.aget_state_history(thread("t"))]
        return done, len(steps)

    assert asyncio.run(work()) == ({"said": ["first", "yes"], "n": 20}, 4)


def test_thread_can_be_deleted(store: Store, session: Session, graph: Any) -> None:
    for saver in (SmpSaver(session), SmpSaver(session, erase=True)):
        run = graph.compile(checkpointer=saver)
        for name in ("one", "two"):
            run.invoke({"said": [SECRET], "n": 1}, thread(name))
        saver.delete_thread("one")
        assert run.get_state(thread("one")).values == {}
        assert run.get_state(thread("two")).values["n"] == 2
        saver.delete_thread("two")
    saver.delete_thread("never")
    session.values().erase(*(key for key in _ever(session)))
    assert independent_scan.scan(store.path, [SECRET.encode()]) == []


def _ever(session: Session) -> set[tuple[str, ...]]:
    values = session.values()
    return {
        each.key for version in session.log() for each in values.list("langgraph-threads", at=version.commit)
    }  # fmt: skip


def test_secret_in_a_state_is_refused_or_taken_out(session: Session, graph: Any) -> None:
    with pytest.raises(InvalidError, match=r"a secret \(email\)"):
        graph.compile(checkpointer=SmpSaver(session)).invoke(
            {"said": [f"write to {MAIL}"], "n": 1}, thread("t")
        )
    run = graph.compile(checkpointer=SmpSaver(session, secrets="redact"))
    run.invoke({"said": [f"write to {MAIL}"], "n": 1}, thread("u"))

    assert run.get_state(thread("u")).values["said"][0] == "write to [REDACTED:email]"
    assert run.get_state(thread("u")).next == ("second",)
    assert independent_scan.scan(session.path, [MAIL.encode()]) == []


def test_state_can_be_read_in_git(session: Session, graph: Any) -> None:
    graph.compile(checkpointer=SmpSaver(session)).invoke(
        {"said": ["a plain word"], "n": 1}, thread("t")
    )

    files = [path.read_text() for path in session.path.glob("values/*/VAL-*.yaml")]
    assert any("a plain word" in text for text in files)


packable: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats() | st.text(max_size=8)
    | st.binary(max_size=8) | st.datetimes() | st.uuids() | st.decimals() | st.frozensets(st.integers(0, 9)),
    lambda below: st.lists(below, max_size=3) | st.tuples(below, below) | st.dictionaries(
        st.text(max_size=4) | st.integers(0, 9) | st.sampled_from(("$bytes", "$raw", "$mapping", "$")), below, max_size=3),
    max_leaves=8,
)  # fmt: skip


@given(packable)
def test_what_is_serialized_comes_back_byte_for_byte(value: Any) -> None:
    packed = JsonPlusSerializer().dumps_typed(value)

    kept = json.loads(json.dumps(readable(*packed)))

    assert serialized(kept) == packed


@pytest.mark.parametrize("data", [("msgpack", b"\xc1"), ("msgpack", b""), ("other+aes", b"\0\xff"), ("null", b""), ("bytes", b"x")])  # fmt: skip
def test_what_is_no_message_pack_is_kept_as_bytes(data: tuple[str, bytes]) -> None:
    assert serialized(json.loads(json.dumps(readable(*data)))) == data


def test_frameworks_own_suite_for_checkpointers(store: Store) -> None:
    suite = pytest.importorskip(
        "langgraph.checkpoint.conformance", reason="its suite for checkpointers is not installed"
    )

    async def saver() -> Any:
        name = f"s{len(store.sessions())}"
        with store.create_session(name) as session:
            yield SmpSaver(session)

    report = asyncio.run(suite.validate(suite.checkpointer_test(name="smp")(saver)))

    base = ("put", "put_writes", "get_tuple", "list", "delete_thread")
    assert [report.results[name].failures for name in base] == [[]] * 5
    assert all(report.results[name].passed for name in base)
