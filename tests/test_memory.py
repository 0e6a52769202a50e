"""What makes a memory valid, and what each door says to what is not."""

from __future__ import annotations

import enum
from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from smp_git import Session
from smp_git.model.errors import InvalidError
from smp_git.model.memory import (
    KINDS,
    MAX_CONTENT_BYTES,
    agent_name,
    check_fields,
    check_tags,
    check_text,
    check_value,
    confidence_rank,
    is_same,
    title_of,
)
from tests.support import own, untyped


def nested(depth: int) -> Any:
    return [nested(depth - 1)] if depth else "end"


class Word(enum.StrEnum):
    HIGH = "high"


class Mixed(str, enum.Enum):  # noqa: UP042 - prints otherwise than StrEnum
    HIGH = "high"


class Fraction(float):
    def __repr__(self) -> str:
        return "numpy.float64(0.5)"


@pytest.mark.parametrize("kind", ["", "turns", "Turn", None, 5, ["turn"], "\ud800", "x" * 10**6])
def test_unknown_kind_is_refused_with_the_choices(session: Session, kind: Any) -> None:
    with pytest.raises(InvalidError) as caught:
        session.add(kind, "text", agent="a")

    assert "decision" in str(caught.value.hint)
    assert len(caught.value.message) < 200


@pytest.mark.parametrize(
    "name",
    ["id", "life", "generation", "created_at", "updated_at", "decision", "..", "../x", "a/b", "",
     " ", "1a", "a b", "é", "-x", ".x", "x" * 65, "a\n", "a:", "\ud800"],
)  # fmt: skip
def test_name_that_is_no_field_is_refused(session: Session, name: str) -> None:
    head = session.head
    given: dict[str, Any] = {name: "x"}
    with pytest.raises(InvalidError, match="field"):
        session.add("decision", "Use Redis", agent="a", **given)

    assert session.head == head


@pytest.mark.parametrize("name", ["__class__", "__init__", "x.y", "_", "true", "at_", "N"])
def test_odd_name_of_a_field_is_kept(session: Session, name: str) -> None:
    given: dict[str, Any] = {name: "x"}
    memory = session.add("decision", "Use Redis", agent="a", **given)

    assert session.get(memory.id).fields[name] == "x"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (b"bytes", "bytes"), (object(), "object"), ({1, 2}, "set"), (float("nan"), "finite"),
        (float("inf"), "finite"), (2**63, "64 bits"), (-(2**63), "64 bits"), ("a\0b", "NUL"),
        ("\ud800", "surrogate"), ({1: 2}, "key"), ({"": 1}, "key"), ({"a\n": 1}, "control"),
        ({"k" * 129: 1}, "key"), ({"\ud800": 1}, "surrogate"), (nested(31), "nested"),
        ([memoryview(b"x")], "memoryview"), (lambda: 0, "function"), (1j, "complex"),
    ],
)  # fmt: skip
def test_value_that_no_file_can_hold_is_refused(value: object, problem: str) -> None:
    with pytest.raises(InvalidError, match=problem):
        check_value(value, "note")


def test_value_that_holds_itself_is_refused() -> None:
    loop: list[Any] = []
    loop.append(loop)

    with pytest.raises(InvalidError, match="nested"):
        check_value(loop, "note")


def test_deepest_value_is_kept(session: Session) -> None:
    memory = session.add("learning", "deep", agent="a", **own(note=nested(29)))

    assert session.get(memory.id).fields["note"] == nested(29)


@pytest.mark.parametrize("value", [Word.HIGH, Mixed.HIGH])
def test_member_of_an_enumeration_is_its_text(session: Session, value: str) -> None:
    memory = session.add("learning", "plain", agent="a", **own(note=value), tags=[value])

    assert session.get(memory.id).fields["note"] == "high"
    assert session.get(memory.id).tags == ("high",)
    assert "note: high\n" in session.file(memory.id).read_text()


def test_number_that_prints_as_its_type_is_a_number(session: Session) -> None:
    memory = session.add("learning", "plain", agent="a", **own(note=Fraction(0.5)))

    assert "note: 0.5\n" in session.file(memory.id).read_text()


def test_datetime_is_stored_in_utc() -> None:
    there = timezone(timedelta(hours=2))

    assert check_value(datetime(2026, 1, 1, 2, tzinfo=there), "x") == "2026-01-01T00:00:00Z"


def test_time_outside_the_calendar_is_refused(session: Session) -> None:
    there = timezone(timedelta(hours=2))
    with pytest.raises(InvalidError, match="years"):
        session.add("learning", "x", agent="a", at=datetime.min.replace(tzinfo=there))


@pytest.mark.parametrize("at", ["garbage", "2026-13-01", "", 5, "9" * 100, "\ud800"])
def test_text_that_is_no_time_is_refused(session: Session, at: Any) -> None:
    with pytest.raises(InvalidError, match="time"):
        session.add("learning", "x", agent="a", at=at)


@pytest.mark.parametrize("kind", ["turn", "decision"])
@pytest.mark.parametrize("text", ["x" * MAX_CONTENT_BYTES, "a\n" * (MAX_CONTENT_BYTES // 2)])
def test_content_of_one_megabyte_is_kept(session: Session, kind: str, text: str) -> None:
    memory = session.add(untyped(kind), text, agent="a")

    assert session.get(memory.id).content == text


@pytest.mark.parametrize("text", ["x" * (MAX_CONTENT_BYTES + 1), "é" * (MAX_CONTENT_BYTES // 2 + 1)])  # fmt: skip
def test_content_above_one_megabyte_is_refused(text: str) -> None:
    with pytest.raises(InvalidError, match="limit is 1,048,576"):
        check_text(text, "content")


def test_file_above_four_megabytes_is_refused(session: Session) -> None:
    head = session.head
    with pytest.raises(InvalidError, match="LEARN-0001 would have"):
        session.add("learning", "x", agent="a", **own(notes=["x" * 1_000_000] * 5))

    assert session.head == head


@pytest.mark.parametrize("text", ["", " ", "\n\t\n", None, 5, b"x", ["x"]])
def test_memory_without_text_is_refused(session: Session, text: Any) -> None:
    with pytest.raises(InvalidError, match=r"text|needs"):
        session.add("decision", text, agent="a")


@pytest.mark.parametrize(
    "tag", ["", "A", "a b", ".a", "a.", "a..b", "é", "x" * 33, None, 5, "a\n", "a/b", ".".join(["x" * 32] * 9)]
)  # fmt: skip
def test_text_that_is_no_tag_is_refused(tag: Any) -> None:
    with pytest.raises(InvalidError, match="tag"):
        check_tags([tag])


@pytest.mark.parametrize("tags", ["database", None, 5, {"a": 1}["a"]])
def test_tags_that_are_no_list_are_refused(tags: Any) -> None:
    with pytest.raises(InvalidError, match="tags must be a list"):
        check_tags(tags)


def test_tags_keep_their_order_without_repeats() -> None:
    assert check_tags(["b", "a.c", "b"]) == ("b", "a.c")


@pytest.mark.parametrize(
    ("given", "name"),
    [("Architect", "architect"), ("Renée Lefèvre", "renee-lefevre"), ("  x@y.z ", "x-y-z"),
     ("ＡＢＣ", "abc"), ("a/../b", "a-b"), ("--a--", "a"), ("x" * 57, "x" * 57)],
)  # fmt: skip
def test_name_of_an_agent_is_folded(given: str, name: str) -> None:
    assert agent_name(given) == name


@pytest.mark.parametrize(
    "given", ["", "日本", "---", "\0", "\ud800", "x" * 58, "con", "COM1", "com¹", "index", "Lpt9", "nul ", None, 5, ["a"]]
)  # fmt: skip
def test_text_that_names_no_agent_is_refused(given: Any) -> None:
    with pytest.raises(InvalidError):
        agent_name(given)


@pytest.mark.parametrize(
    ("given", "kept"),
    [(42, "turn-0042"), ("42", "turn-0042"), ("turn-42", "turn-0042"), ("turn-0042", "turn-0042"),
     ("turn-0042-k3fq", "turn-0042-k3fq"), ("turn-123456", "turn-123456")],
)  # fmt: skip
def test_turn_ref_becomes_the_id_of_a_turn(given: object, kept: str) -> None:
    assert check_fields(KINDS["decision"], {"turn_ref": given}) == {"turn_ref": kept}


@pytest.mark.parametrize("given", [0, -1, True, 1.5, "", "DEC-0001", "turn", "turn-0001\nAgent: eve", ["turn-0001"]])  # fmt: skip
def test_turn_ref_that_names_no_turn_is_refused(given: object) -> None:
    with pytest.raises(InvalidError, match="turn_ref must be a turn"):
        check_fields(KINDS["decision"], {"turn_ref": given})


@pytest.mark.parametrize(
    ("kind", "name", "value"),
    [
        ("finding", "severity", "awful"), ("finding", "severity", ["high"]), ("finding", "resolution", "done"),
        ("finding", "resolution", {"status": 5}), ("decision", "confidence", "sure"),
        ("decision", "confidence", 1.01), ("decision", "confidence", True), ("decision", "importance", -0.1),
        ("decision", "importance", "high"), ("decision", "pinned", "yes"), ("decision", "reversible", 1),
        ("decision", "status", "Not A Word"), ("turn", "tokens", -1), ("turn", "tokens", 1.5),
        ("turn", "role", ""), ("decision", "agreed_by", 5), ("decision", "agreed_by", [1]),
        ("decision", "title", 5), ("preference", "key", ["a"]),
    ],
)  # fmt: skip
def test_field_of_the_wrong_sort_is_refused(kind: str, name: str, value: object) -> None:
    with pytest.raises(InvalidError, match=name):
        check_fields(KINDS[kind], {name: value})


def test_one_name_becomes_a_list_of_names() -> None:
    assert check_fields(KINDS["decision"], {"agreed_by": "ada"}) == {"agreed_by": ["ada"]}


def test_field_of_another_kind_is_kept_as_it_is() -> None:
    assert check_fields(KINDS["turn"], {"severity": "awful"}) == {"severity": "awful"}


@pytest.mark.parametrize(
    ("value", "rank"), [("certain", 1.0), ("explicit", 1.0), ("high", 0.9), ("medium", 0.6), ("inferred", 0.5),
                        ("low", 0.3), ("uncertain", 0.2), (0.85, 0.85), (1, 1.0), (True, None), (None, None)]
)  # fmt: skip
def test_confidence_has_a_rank(value: Any, rank: float | None) -> None:
    assert confidence_rank(value) == rank


@pytest.mark.parametrize(
    ("content", "fields", "title"),
    [
        ("\n \n  First  line \nsecond", {}, "First line"),
        ("text", {"title": "Given"}, "Given"),
        ("x" * 81, {}, "x" * 79 + "…"),
        ("x" * 80, {}, "x" * 80),
        (" \n", {}, ""),
    ],
)
def test_title_is_the_field_or_the_first_line(content: str, fields: Any, title: str) -> None:
    assert title_of(content, fields) == title


@pytest.mark.parametrize(("left", "right"), [(1, True), (1, 1.0), (0, False), ([1], [True]), ({"a": 0}, {"a": 0.0})])  # fmt: skip
def test_values_that_only_python_takes_for_equal_differ(left: Any, right: Any) -> None:
    assert left == right
    assert not is_same(left, right)


@pytest.mark.parametrize("value", [datetime(2026, 1, 1, tzinfo=UTC), "text"])
def test_long_message_is_cut(value: object) -> None:
    with pytest.raises(InvalidError) as caught:
        check_tags([str(value) * 10_000])

    assert len(caught.value.message) < 200
