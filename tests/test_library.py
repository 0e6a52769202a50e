"""The library as a Python program meets it: what it names, takes, shows and refuses."""

from __future__ import annotations

import doctest
import inspect
import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import smp_git
from smp_git import Session, Store
from smp_git.model.errors import InvalidError, RefusedError
from smp_git.model.given import GivenFields
from smp_git.model.memory import COMMON_FIELDS, KINDS
from tests.conftest import Clock


@pytest.fixture
def desk(tmp_path: Path) -> Callable[[int], dict[str, object]]:
    """Return what makes the names that examples use, in a folder of their own."""

    def made(number: int) -> dict[str, object]:
        folder = tmp_path / str(number)
        (folder / "notes").mkdir(parents=True)
        (folder / "notes/login.md").write_text("---\ntitle: Login\n---\nWith OAuth 2.0.\n")
        (folder / "older/.bmad/logs").mkdir(parents=True)
        (folder / "older/.bmad/logs/old.jsonl").write_text(
            '{"id":"m1","type":"finding","ts":"2026-01-11T14:30:00Z","data":{"issue":"Old"}}\n'
        )
        store = Store.init(folder / "project/.bmad/sessions")
        session = store.create_session("shop", user="ada")
        with session.transaction("ada") as tx:
            tx.add("turn", "How do administrators log in?", role="user")
            found = tx.add("finding", "No second factor", severity="high", tags=["security.login"])
            tx.add("decision", "Use OAuth 2.0", tags=["security"], links=[("resolves", found.id)])
        session.edit("DEC-0001", agent="ada", rationale="Industry standard")
        return {"Store": Store, "store": store, "session": session, "folder": folder}

    return made


def test_help_of_a_name_has_an_example_that_holds(
    desk: Callable[[int], dict[str, object]],
) -> None:
    told: list[str] = []
    for number, name in enumerate(smp_git.__all__):
        text = inspect.getdoc(getattr(smp_git, name)) or ""
        example = doctest.DocTestParser().get_doctest(text, desk(number), name, None, None)
        assert example.examples, name
        doctest.DocTestRunner(verbose=False).run(example, out=told.append)

    assert "".join(told) == ""


def test_dir_shows_the_product() -> None:
    assert dir(smp_git) == sorted([*smp_git.__all__, "__version__"])


# Lines and numbers of their own, which nobody needs a name for.
_PLAIN = {"CommitId", "MemoryId", "Value", "Path", "PreparedValue", "Recorded"}


@pytest.mark.parametrize(
    "door", [smp_git.Store, smp_git.Session, smp_git.Agent, smp_git.Transaction]
)
def test_what_a_door_returns_can_be_named(door: type) -> None:
    named = {
        word
        for name, method in inspect.getmembers(door, inspect.isfunction)
        if not name.startswith("_")
        for word in re.findall(r"\b[A-Z]\w+", str(method.__annotations__.get("return", "")))
    }
    assert len(named) > 3
    homes = {word for word in named if word not in dir(smp_git) and word not in _PLAIN}

    assert homes <= {"Callable", "Iterator", "Literal", "Mapping", "None", "Self", "True", "False"}


def test_fields_that_a_type_checker_knows_are_those_of_the_kinds() -> None:
    known = {name for kind in KINDS.values() for name in kind.fields} | {*COMMON_FIELDS}
    known |= {"current_context", "working_memory", "session_learnings"}
    of_others = {"again", "redacted", "current_context", "working_memory", "session_learnings"}

    assert set(GivenFields.__annotations__) == known - of_others


def test_hit_tells_what_its_memory_says(session: Session) -> None:
    session.add("finding", "No second factor", severity="high", tags=["login"], agent="veritas")
    hit = session.query("factor")[0]
    memory = hit.memory

    for name in ("content", "agent", "tags", "links", "fields", "status", "pinned", "created_at", "updated_at"):  # fmt: skip
        assert getattr(hit, name) == getattr(memory, name)


def test_context_is_the_text_of_a_prompt(session: Session) -> None:
    session.add("decision", "Use OAuth 2.0")
    context = session.context()

    assert str(context) == context.text
    assert "Use OAuth 2.0" in f"{context}"


def test_results_say_in_a_line_what_they_are(store: Store, session: Session) -> None:
    memory = session.add("decision", "Use OAuth 2.0")
    answer = session.query("OAuth")

    assert repr(memory) == "Memory('DEC-0001', 'Use OAuth 2.0')"
    assert re.fullmatch(r"Hit\('DEC-0001', 'Use OAuth 2.0', score=\d\.\d{3}\)", repr(answer[0]))
    assert repr(answer) == "Answer(1 of 1: DEC-0001)"
    assert re.fullmatch(r"Context\(1 memory, \d+ of 4000 tokens\)", repr(session.context()))
    assert repr(store) == f"Store({str(store.path)!r})"


def test_session_is_made_where_it_is_not_there(store: Store) -> None:
    with store.session("shop", create=True) as made:
        made.add("decision", "Use OAuth 2.0")
    with store.session("shop", create=True) as again:
        assert [memory.id for memory in again.memories()] == ["DEC-0001"]
    with store.session("sh", create=True) as other:
        assert other.id == "sh"


def test_store_is_a_context_that_opens_the_nearest(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.create_session("shop").close()
    monkeypatch.setenv("SMP_ROOT", str(store.path))

    with Store() as here:
        assert here.sessions() == ("shop",)


def test_closed_session_refuses(store: Store) -> None:
    with store.create_session("shop") as session:
        session.add("decision", "Use OAuth 2.0")

    for use in (session.memories, session.info, lambda: session.add("turn", "Too late"), lambda: session.query("OAuth"), lambda: session.head):  # fmt: skip
        with pytest.raises(RefusedError, match="session shop is closed"):
            use()
    assert (session.id, repr(session), session.path.name) == ("shop", "Session('shop')", "shop")
    session.close()


NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - what is refused
USES: dict[str, Any] = {
    "at of a write": lambda session: session.add("turn", "Hello", at=NAIVE),
    "at of a question": lambda session: session.get("DEC-0001", at=NAIVE),
    "since of a query": lambda session: session.query(since=NAIVE),
    "condition": lambda session: session.query(where=[("created_at", "less_than", NAIVE)]),
    "until of the log": lambda session: session.log(until=NAIVE),
    "revision": lambda session: session.rollback(NAIVE),
    "criterion": lambda session: session.delete(since=NAIVE, dry_run=True),
    "field": lambda session: session.add("turn", "Hello", **dict[str, Any](due=NAIVE)),
}


@pytest.mark.parametrize("name", USES)
def test_time_without_a_zone_is_refused(session: Session, name: str) -> None:
    session.add("decision", "Use OAuth 2.0")

    with pytest.raises(InvalidError, match="has no time zone"):
        USES[name](session)


def test_day_and_how_long_ago_are_times(store: Store, clock: Clock) -> None:
    with store.create_session("shop") as session:
        today = clock().date()
        made = session.add("decision", "Use OAuth 2.0", at=today)
        early = session.add("turn", "Hello", at=timedelta(days=2))

        assert made.created_at == datetime(today.year, today.month, today.day, tzinfo=UTC)
        assert timedelta(days=1) < clock() - early.created_at < timedelta(days=3)
        assert [hit.id for hit in session.query(since=timedelta(days=1))] == [made.id]
        assert {hit.id for hit in session.query(until=today)} == {made.id, early.id}
        assert session.query(until=date(2000, 1, 1)).total == 0
        assert session.log(since=timedelta(hours=1), until=timedelta(0))
        assert session.add("turn", "Due", **dict[str, Any](due=today)).fields["due"] == str(today)


def test_session_can_be_opened_from_any_path_of_a_project(tmp_path: Path) -> None:
    Store.init(tmp_path / "project" / ".bmad" / "sessions").create_session("shop").close()

    assert Store(tmp_path / "project").sessions() == ("shop",)
