"""The write after which a condition fails: found as a linear scan finds it, in few looks."""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from smp_git import Session, Store, View
from smp_git.ask.bisect import first_failing
from smp_git.cli.program import program
from smp_git.model.errors import (
    InvalidRevisionError,
    MemoryNotFoundError,
    RefusedError,
)
from tests.support import git

app = program()


def _commits(session: Session) -> list[str]:
    """Return the commits of the first-parent way, oldest first."""
    return git(session.path, "rev-list", "--reverse", "--first-parent", "main").split()


def _seeing(commits: list[str], right: set[str], seen: list[str]) -> Callable[[View], bool]:
    def condition(view: View) -> bool:
        seen.append(view.commit)
        assert view.commit in commits
        return view.commit in right

    return condition


@given(st.integers(1, 2000), st.data())
def test_first_failing_place_is_that_of_a_linear_scan(count: int, data: st.DataObject) -> None:
    turn = data.draw(st.integers(1, count))
    seen: set[int] = set()

    def holds(place: int) -> bool:
        seen.add(place)
        return place < turn

    assert first_failing(holds, 0, count) == turn
    assert len(seen) <= math.ceil(math.log2(count)) + 1


@given(st.lists(st.booleans(), min_size=2, max_size=200))
def test_place_is_where_it_turns_false_however_often_it_does(values: list[bool]) -> None:
    answers = [True, *values, False]

    place = first_failing(lambda at: answers[at], 0, len(answers) - 1)

    assert answers[place - 1] and not answers[place]


@pytest.fixture(scope="module")
def long(tmp_path_factory: pytest.TempPathFactory) -> Session:
    """A session of 130 writes."""
    session = Store.init(tmp_path_factory.mktemp("long") / "store").create_session("long")
    for number in range(130):
        session.add("finding", f"Finding {number} of {number * 7919 % 101}", agent="a")
    return session


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_the_way_from_a_good_end_takes_log2_of_its_writes(long: Session, data: st.DataObject) -> None:  # fmt: skip
    commits = _commits(long)
    low = data.draw(st.integers(0, len(commits) - 2))
    high = data.draw(st.integers(low + 1, len(commits) - 1))
    turn = data.draw(st.integers(low + 1, high))
    seen: list[str] = []

    found = long.bisect(_seeing(commits, set(commits[:turn]), seen), good=commits[low], bad=commits[high])  # fmt: skip

    assert found.commit == commits[turn]
    assert len(seen) == len(set(seen)) == found.steps
    assert found.steps <= math.ceil(math.log2(high - low)) + 2


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_without_a_good_end_one_is_searched_backwards(long: Session, data: st.DataObject) -> None:
    commits = _commits(long)
    turn = data.draw(st.integers(2, len(commits) - 1))
    begin = data.draw(st.integers(0, turn - 1))
    seen: list[str] = []
    right = set(commits[begin:turn])
    condition = _seeing(commits, right, seen)
    try:
        found = long.bisect(condition).commit
    except RefusedError:
        found = None

    assert (found is None) == (not right & set(seen))
    assert found in (None, commits[turn])
    assert len(seen) <= 2 * math.ceil(math.log2(len(commits))) + 2


def test_what_is_told_of_the_write(session: Session) -> None:
    session.add("decision", "Use PostgreSQL", agent="architect", tags=["database"])
    wrong = session.supersede("DEC-1", "Use MySQL", agent="veritas", tags=["cache"])
    session.add("finding", "Slow", agent="a")

    found = session.bisect(lambda view: view.query(kinds=["decision"], tags=["database"], include_superseded=False))  # fmt: skip

    assert found.commit == wrong.commit
    assert (found.agent, found.touched) == ("veritas", ("DEC-0001", "DEC-0002"))
    assert found.subject == "decision DEC-0002: Use MySQL"
    assert found.at == session.log(limit=2)[1].at


def test_view_answers_as_the_session_did_then(session: Session) -> None:
    session.add("decision", "Use PostgreSQL", agent="architect")
    then = session.head
    session.add("decision", "Use Redis for the cache", agent="architect")
    views: list[View] = []

    def condition(view: View) -> bool:
        views.append(view)
        return len(view.memories()) < 2

    session.bisect(condition)
    view = next(view for view in views if view.commit == then)

    assert [memory.id for memory in view.memories("decision")] == ["DEC-0001"]
    assert view.get("DEC-1").content == "Use PostgreSQL"
    assert [hit.id for hit in view.query("PostgreSQL")] == ["DEC-0001"]
    assert view.aggregate("count:kind") == session.aggregate("count:kind", at=then)
    assert view.summary().text == session.summary(at=then).text
    assert view.at == session.get("DEC-1").created_at


def test_ends_that_are_wrong_are_named(session: Session) -> None:
    session.add("finding", "One", agent="a")
    session.add("finding", "Another", agent="a")

    with pytest.raises(RefusedError, match="holds at the bad end"):
        session.bisect(lambda view: True)
    with pytest.raises(RefusedError, match="does not hold at the good end"):
        session.bisect(lambda view: False, good="HEAD~1")
    with pytest.raises(RefusedError, match="held at none"):
        session.bisect(lambda view: False)
    with pytest.raises(InvalidRevisionError, match="not among the writes"):
        session.bisect(lambda view: False, good="HEAD", bad="HEAD~1")


def test_condition_that_raises_says_at_which_commit(session: Session) -> None:
    session.add("finding", "One", agent="a")

    with pytest.raises(MemoryNotFoundError) as caught:
        session.bisect(lambda view: view.get("DEC-7"))

    assert caught.value.__notes__ == [f"raised by the condition at commit {session.head}"]


def test_merge_counts_as_one_write(session: Session) -> None:
    session.add("finding", "One", agent="a")
    session.check()
    git(session.path, "checkout", "-q", "-b", "aside")
    for number in range(3):
        (session.path / "artifacts").mkdir(exist_ok=True)
        (session.path / "artifacts" / f"{number}.txt").write_text("x")
        git(session.path, "add", "-A")
        git(session.path, "commit", "-q", "--no-verify", "-m", f"aside {number}")
    git(session.path, "checkout", "-q", "main")
    git(session.path, "merge", "-q", "--no-ff", "-m", "merged", "aside")
    tree = session._handle.reader.repository

    found = session.bisect(lambda view: tree.find(tree.commit(view.commit).tree, "artifacts/1.txt") is None)  # fmt: skip

    assert found.commit == git(session.path, "rev-parse", "HEAD").strip()
    git(session.path, "reset", "-q", "--hard", "HEAD~1")


def test_history_rewritten_by_a_deletion(session: Session) -> None:
    for text in ("Use PostgreSQL", "The password is apple pie", "Cache in Redis"):
        session.add("decision", text, agent="a")
    session.add("finding", "Redis is slow", agent="a")
    session.delete("DEC-0002", purge=True)

    found = session.bisect(lambda view: not view.query("Redis", kinds=["finding"]))

    assert found.subject == "finding FIND-0001: Redis is slow"
    assert found.commit in _commits(session)
    with pytest.raises(RefusedError, match="held at none"):
        session.bisect(lambda view: view.query("apple"))


def test_rewrite_in_the_midst_is_answered_on_the_new_history(session: Session) -> None:
    for number in range(8):
        session.add("finding", f"Number {number} of the list", agent="a")
    pending = ["FIND-0002"]

    def condition(view: View) -> bool:
        if len(view.memories()) in range(3, 7) and pending:
            session.delete(pending.pop(), purge=True)
        return not any(memory.id == "FIND-0006" for memory in view.memories())

    assert session.bisect(condition).touched == ("FIND-0006",)


# The command


def _run(store: Path, line: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(app, shlex.split(line), env={"SMP_ROOT": str(store)})
    return result.exit_code, result.stdout, result.stderr


@pytest.fixture
def broken(session: Session) -> Session:
    """A session in which the second decision broke something."""
    session.add("decision", "Use PostgreSQL", agent="architect", tags=["database"])
    session.edit("DEC-1", agent="veritas", tags=["cache"])
    session.add("finding", "Slow", agent="a", severity="critical")
    return session


@pytest.mark.parametrize(
    ("line", "touched"),
    [
        ("--expect 'query --kind decision --tag database'", "DEC-0001"),
        ("--expect 'query PostgreSQL -t database' --good HEAD~2", "DEC-0001"),
        ("--expect-none 'query --where severity=critical'", "FIND-0001"),
        ("--expect 'query --tag database' --expect-count 1", "DEC-0001"),
    ],
)
def test_command_names_the_write(broken: Session, line: str, touched: str) -> None:
    status, out, err = _run(broken.path.parent.parent, f"bisect {line} --json")

    assert (status, err) == (0, "")
    assert json.loads(out)["touched"] == [touched]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "either --expect or --expect-none"),
        ("--expect 'query a' --expect-none 'query b'", "either --expect or --expect-none"),
        ("--expect 'list'", "'list' is not a query"),
        ("--expect ''", "'' is not a query"),
        ('--expect "query \'a"', "cannot be read"),
        ("--expect 'query a --at HEAD~1'", "--at cannot be part"),
        ("--expect 'query a -s other'", "--session cannot be part"),
        ("--expect-none 'query a' --expect-count 2", "--expect-count counts"),
        ("--expect 'query --kind decision'", "holds at the bad end"),
    ],
)
def test_command_says_what_is_wrong(broken: Session, line: str, message: str) -> None:
    status, out, err = _run(broken.path.parent.parent, f"bisect {line}")

    assert status in (4, 7)
    assert (out, message in err) == ("", True)
