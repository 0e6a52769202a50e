"""Whatever is asked, the answer is right or an error says what is wrong; never another one."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from smp_git import Session
from smp_git.ask import conditions
from smp_git.ask.request import CONFIDENCES, PARTS, RANGES, from_specification
from smp_git.cli.program import program
from smp_git.model.errors import InvalidQueryError
from smp_git.model.memory import KINDS
from smp_git.model.regexes import Limit
from tests.conftest import Clock
from tests.query.strategies import NOW
from tests.query.support import relaxed_store
from tests.support import own

app = program()


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Session]:
    store = relaxed_store(tmp_path_factory.mktemp("bad") / "store", Clock())
    with store.create_session("shop", user="ada") as session:
        session.add("finding", "slow login\n" + "a" * 5000, severity="critical", tags=["auth"])
        session.add("decision", 'use "OR" and NOT near', **own(x={"y": [1, None]}), **own(z="1"))
        session.add("turn", "ünïcode 😀 said", speaker="Ada", tokens=4)
        yield session


@contextmanager
def answered_or_refused(message: str = "") -> Iterator[None]:
    """Let pass the one error that is meant for the asker, if it says what it should."""
    try:
        yield
    except InvalidQueryError as error:
        if message not in error.message or not error.message:
            raise


TEXTS = {
    "inches": 'a 5" pipe and 7" of slow rain, 3"',
    "only quotes": '"""',
    "FTS": 'NEAR(slow login, 5) OR col:slow ^slow {a b} : - + * slow*',
    "FTS words": "AND OR NOT",
    "SQL": "'; DROP TABLE segment; --",
    "NUL": "slow\0login",
    "controls": "\x01\x1b[31m\x7f",
    "emoji": "😀👩‍👩‍👧",
    "combining": "e\u0301" * 50,
    "direction": "\u202eslow\u2066",
    "lone surrogate": "\ud800 slow",
    "wildcards": "* *** s* *low",
    "brackets": "((((slow]]]]",
    "percent": "100% _slow_",
    "dates": "9999-99-99 and 31 February, 0000-00-00, last 99999999999 weeks",
    "one word": "x" * 10_000,
    "1 MB": "slow login " * 95_000,
    "1 MB of wildcards": "a* " * 300_000,
    "1 MB of quotes": '"a b" ' * 170_000,
}  # fmt: skip


@pytest.mark.parametrize("name", TEXTS)
def test_any_text_is_answered(shop: Session, name: str) -> None:
    started = process_time()
    answer = shop.query(TEXTS[name], now=NOW)
    shop.similar(TEXTS[name], now=NOW)

    assert process_time() - started < 10
    assert all(0 <= hit.score <= 1 and hit.snippet is not None for hit in answer)


def test_a_text_longer_than_any_memory_is_refused(shop: Session) -> None:
    with pytest.raises(InvalidQueryError, match="1,048,576"):
        shop.query("x" * 1_048_577)


@given(st.text(max_size=40))
def test_any_short_text_is_answered(shop: Session, text: str) -> None:
    with answered_or_refused("is not closed"):
        shop.query(text, now=NOW, explain=True)


@pytest.mark.parametrize("text", ['"slow login', 'slow "login', '"slow" or "log in'])
def test_a_quotation_that_is_not_closed_is_named(shop: Session, text: str) -> None:
    with pytest.raises(InvalidQueryError, match="is not closed") as caught:
        shop.query(text, now=NOW)
    assert "close it" in (caught.value.hint or "")
    assert shop.similar(text, now=NOW)


# Patterns

EXPLODING = (
    "(a+)+$b",
    "(a|aa)+$b",
    "(.*a){25}b",
    "^(([a-z])+.)+[A-Z]([a-z])+$",
    "(a*)*b",
    "(?:a?){500}a{500}b",
)


@pytest.mark.parametrize("pattern", EXPLODING)
def test_an_exploding_pattern_does_not_hang(shop: Session, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setattr(conditions, "ASKING", Limit(0.1))
    started = process_time()
    with answered_or_refused("takes too long"):
        shop.query(where=[("content", "matches", pattern)])

    assert process_time() - started < 10


@pytest.mark.parametrize("pattern", ["(", "[z-a]", "(?P<x>", "\\", "a{99999999999}", "*", "(?<=a*)b", "x" * 1001, "(" * 900 + ")" * 900, 5, None, ["a"]])  # fmt: skip
def test_a_pattern_that_is_none_is_refused_or_finds_nothing(shop: Session, pattern: Any) -> None:
    with answered_or_refused("title"):
        assert shop.query(where=[("title", "matches", pattern)]).total == 0


def test_the_time_for_patterns_is_given_to_each_answer_anew() -> None:
    asked = from_specification({"where": [("title", "matches", "slow")]}, NOW)
    (condition,) = asked.where
    spent = condition.test()
    spent("slow")

    assert condition.test() is not spent


# Specifications

WRONG: dict[str, tuple[dict[Any, Any], str]] = {
    "part": ({"colour": 1}, "no part 'colour'"),
    "part that is no text": ({5: 1}, "no part 5"),
    "part said twice": ({"kinds": ["turn"], "types": ["decision"]}, "a second time"),
    "kind": ({"kinds": ["thought"]}, "no kind 'thought'"),
    "kinds as a number": ({"kinds": 5}, "kinds must be a list"),
    "kinds as mapping": ({"kinds": {"decision": 1}}, "kinds must be a list"),
    "kinds of lists": ({"kinds": [["decision"]]}, "no kind"),
    "tag": ({"tags": ["Not A Tag"]}, "tags: 'Not A Tag' is not a valid tag"),
    "tags null": ({"not_tags": None}, "not_tags must be a list"),
    "agent": ({"agents": [""]}, "agents: "),
    "since": ({"since": "the other day"}, "since: 'the other day'"),
    "since as number": ({"since": 5}, "since must be a time"),
    "naive time": ({"since": datetime(2026, 1, 1)}, "has no time zone"),  # noqa: DTZ001
    "naive time in a condition": ({"where": [("created_at", "greater_than", datetime(2026, 1, 1))]}, "has no time zone"),  # noqa: DTZ001
    "since far": ({"since": "99999999999 weeks ago"}, "since: "),
    "times reversed": ({"since": "2026-01-02", "until": "2026-01-01"}, "is after until"),
    "where null": ({"where": None}, "where must be a list"),
    "where as number": ({"filters": 5}, "where must be a list"),
    "where as text": ({"where": "severity=critical"}, "where must be a list"),
    "where of text": ({"where": ["severity"]}, "is not a condition"),
    "filter": ({"filters": [{"field": "a", "op": "x"}]}, "no part 'op' of a filter"),
    "filter keys": ({"filters": [{1: 2, "b": 3}]}, "no part 1 of a filter"),
    "no field": ({"filters": [{"value": 1}]}, "None is not a field"),
    "field": ({"where": [("a b", "equals", 1)]}, "'a b' is not a field"),
    "operator": ({"where": [("severity", "resembles", 1)]}, "no operator 'resembles' on severity"),
    "operator as list": ({"where": [("severity", [], 1)]}, "no operator"),
    "in": ({"where": [("kind", "in", "turn")]}, "in on kind needs a list"),
    "between one": ({"where": [("tokens", "between", [1])]}, "needs two values"),
    "between reversed": ({"where": [("tokens", "between", [5, 1])]}, "ends reversed"),
    "severities reversed": ({"where": [("severity", "between", ["high", "low"])]}, "ends reversed"),
    "between unlike": ({"where": [("tokens", "between", [5, "x"])]}, "cannot compare"),
    "between lists": ({"where": [("x", "between", [[1], ["a"]])]}, "cannot compare"),
    "exists": ({"where": [("x", "exists", "yes")]}, "exists on x needs true or false"),
    "null": ({"where": [("x", "equals", None)]}, "needs a value"),
    "greater than list": ({"where": [("x", "greater_than", [1])]}, "needs one value"),
    "time": ({"where": [("created_at", "less_than", "soon")]}, "created_at: "),
    "NaN": ({"where": [("x", "equals", float("nan"))]}, "finite"),
    "no text": ({"where": [("x", "equals", "a\0b")]}, "NUL"),
    "big number": ({"where": [("x", "equals", 10**5000)]}, "64 bits"),
    "sort key": ({"sort": ["colour"]}, "no memory has a field 'colour'"),
    "sort key that is none": ({"sort": ["a b"]}, "'a b' is not a field"),
    "sort null": ({"sort": None}, "sort must be a list"),
    "sort as number": ({"sort": 5}, "sort must be a list"),
    "direction": ({"sort": [("priority", "up")]}, "'up' is not a direction"),
    "sort shape": ({"sort": [5]}, "5 is not a sort key"),
    "aggregation": ({"aggregations": ["median:size_bytes"]}, "no aggregation 'median'"),
    "counted": ({"aggregations": ["count:colour"]}, "no memory has a field 'colour'"),
    "summed": ({"aggregations": ["sum:hour"]}, "'hour' can only be counted"),
    "unknown field": ({"where": [("sevrity", "equals", "low")]}, "no memory has a field 'sevrity'"),
    "unknown nested field": ({"where": [("fields.colour.red", "exists", True)]}, "no memory has a field 'fields.colour.red'"),
    "severity": ({"where": [("severity", "equals", "hgh")]}, "no severity 'hgh'"),
    "severities": ({"where": [("severity", "in", ["high", "hgh"])]}, "no severity 'hgh'"),
    "confidence": ({"where": [("confidence", "greater_than", "hihg")]}, "no confidence 'hihg'"),
    "kind as field": ({"where": [("kind", "equals", "decison")]}, "no kind 'decison'"),
    "pinned": ({"where": [("pinned", "equals", "yes")]}, "pinned is true or false, not 'yes'"),
    "range": ({"timeRange": "2026"}, "timeRange must be a mapping with start and end"),
    "range's part": ({"time_range": {"from": "2026-01-01"}}, "no part 'from' of time_range"),
    "range and since": ({"timeRange": {"start": "2026-01-01"}, "since": "2026-01-02"}, "since gives since a second time"),
    "tags' part": ({"tags": {"with": ["a"]}}, "no part 'with' of tags"),
    "confidences": ({"confidenceFilter": "high"}, "in on confidence needs a list"),
    "depth": ({"references": ["DEC-1"], "maxDepth": 11}, "max_depth must be a whole number from 1 to 10"),
    "references": ({"references": "DEC-1"}, "references must be a list"),
    "aggregation shape": ({"aggregations": [5]}, "5 is not an aggregation"),
    "limit": ({"limit": -1}, "limit must be a whole number"),
    "huge limit": ({"limit": 10**5000}, "limit must be a whole number"),
    "limit as text": ({"limit": "5"}, "limit must be a whole number"),
    "limit as flag": ({"limit": True}, "limit must be a whole number"),
    "offset": ({"offset": 1.5}, "offset must be a whole number"),
    "offset null": ({"offset": None}, "offset must be a whole number"),
    "share": ({"min_priority": 2}, "min_priority must be a number from 0 to 1"),
    "share NaN": ({"min_importance": float("nan")}, "min_importance must be a number"),
    "flag": ({"include_superseded": "no"}, "include_superseded must be true or false"),
    "text": ({"text": 5}, "text of a query must be text"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_named(shop: Session, name: str) -> None:
    spec, message = WRONG[name]

    with pytest.raises(InvalidQueryError) as caught:
        shop.query(spec=spec)
    assert message in caught.value.message
    assert len(caught.value.message) < 300
    if all(isinstance(key, str) and PARTS.get(key) == key and not isinstance(value, dict) for key, value in spec.items()):  # fmt: skip
        with pytest.raises(InvalidQueryError):
            shop.query(**spec)


@pytest.mark.parametrize("junk", [[], "text", 5, None, [{"where": 1}]], ids=repr)
def test_a_specification_that_is_no_mapping_is_refused(shop: Session, junk: Any) -> None:
    if junk is None:
        assert shop.query(spec=junk).total == 3
        return
    with pytest.raises(InvalidQueryError, match="specification must be a mapping"):
        shop.query(spec=junk)


def nested(depth: int) -> object:
    value: object = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("part", [*PARTS, *RANGES, *CONFIDENCES])
@pytest.mark.parametrize("junk", [nested(50_000), {"a": nested(5)}, b"bytes", object(), {1, 2}, "\ud800", float("inf"), [None], [[]], [{}]], ids=["deep", "map", "bytes", "object", "set", "surrogate", "inf", "none", "list", "empty"])  # fmt: skip
def test_junk_in_any_part_raises_no_other_error(shop: Session, part: str, junk: Any) -> None:
    with answered_or_refused(""):
        shop.query(spec={part: junk}, now=NOW)


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(("severity", "equals", "desc", "count:kind", *KINDS)),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.sampled_from(("field", "operator", "value", "direction", "by")), below, max_size=3),
    max_leaves=6,
)  # fmt: skip


@given(st.dictionaries(st.sampled_from(tuple(PARTS)), json_like, max_size=3))
def test_any_specification_is_answered_or_refused(shop: Session, spec: dict[str, Any]) -> None:
    with answered_or_refused(""):
        shop.query(spec=spec, now=NOW)


@given(st.sampled_from(("x", "x.y", "tags", "severity", "created_at", "tokens", "content")), st.sampled_from(("equals", "in", "contains", "greater_than", "between", "not_equals")), json_like)  # fmt: skip
def test_any_value_is_compared_or_refused(shop: Session, field: str, operator: str, value: Any) -> None:  # fmt: skip
    with answered_or_refused(""):
        shop.query(where=[(field, operator, value)], now=NOW)


ALLOWED: dict[str, dict[str, Any]] = {
    "a day": {"since": date(2026, 1, 1), "until": date(2100, 1, 1)},
    "how long ago": {"since": timedelta(days=36500)},
    "the last day": {"until": "9999-12-31"},
    "the last moment": {"where": [("created_at", "less_than", datetime.max.replace(tzinfo=UTC))]},
    "generators": {"kinds": iter(["finding", "decision", "turn"])},
    "the highest limit": {"limit": 1_000_000},
    "a high offset": {"offset": 1_000_000},
    "an empty text": {"text": "  "},
}


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_unusual_is_answered(shop: Session, name: str) -> None:
    assert shop.query(**ALLOWED[name]).total == 3


# The command


@pytest.mark.parametrize(
    ("file", "text"),
    [("q.json", '{"kinds": ['), ("q.yaml", "kinds: [a\n b: c"), ("q.json", "[1, 2]"), ("q.json", "[" * 5000), ("q.json", '{"limit": ' + "9" * 5000 + "}"), ("q.yaml", "a: &a [*a]"), ("q.yaml", "\x00"), ("q.json", '{"kinds": ["x"]}')],
)  # fmt: skip
def test_a_bad_specification_file_is_an_error_not_a_traceback(shop: Session, tmp_path: Path, file: str, text: str) -> None:  # fmt: skip
    (tmp_path / file).write_text(text)

    given = ["--root", shop.path.parent.parent, "-s", "shop", "--json", "query", "--spec", tmp_path / file]  # fmt: skip
    done = CliRunner().invoke(app, [str(each) for each in given])

    assert done.exit_code not in (0, 1)
    assert done.stdout == ""
    assert json.loads(done.stderr)["error"]["message"]


CONDITIONS: dict[str, Callable[[str], bool]] = {
    "confidence>=0.5": lambda message: "no operator >=" in message,
    "severity": lambda message: "is not a condition" in message,
    "a b c d": lambda message: "no operator 'b'" in message,
    "=critical": lambda message: "is not a condition" in message,
    "title~(": lambda message: "not valid" in message,
    "severity=": lambda message: "is not a condition" in message,
    "severity=>high": lambda message: "is not a condition" in message,
    "severity:high": lambda message: "is not a condition" in message,
    "status=open and severity=high": lambda message: "more than one condition" in message,
    "status=open || severity = high": lambda message: "more than one condition" in message,
    'title="slow login': lambda message: "is not closed" in message,
}


@pytest.mark.parametrize("text", CONDITIONS)
def test_a_bad_condition_is_named(text: str) -> None:
    from smp_git.cli.filters import conditions_of

    with pytest.raises(InvalidQueryError) as caught:
        from_specification({"where": conditions_of([text])}, NOW)
    assert CONDITIONS[text](caught.value.message)


def test_conditions_of_the_command() -> None:
    from smp_git.cli.filters import conditions_of

    given = ["severity=critical", "a == b", "n!=3", "c>0.5", "t~^a=b", "tags contains security", "impact exists", "impact absent", "n between [1, 2]", "note=it is so and so", 'note="a and b=c"']  # fmt: skip
    assert conditions_of(given) == [
        ("severity", "equals", "critical"),
        ("a", "equals", "b"),
        ("n", "not_equals", 3),
        ("c", "greater_than", 0.5),
        ("t", "matches", "^a=b"),
        ("tags", "contains", "security"),
        ("impact", "exists", True),
        ("impact", "exists", False),
        ("n", "between", [1, 2]),
        ("note", "equals", "it is so and so"),
        ("note", "equals", "a and b=c"),
    ]
