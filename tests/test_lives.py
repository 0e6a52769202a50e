"""The lives of a memory: which are dead, what is past, and that knowledge only grows."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.model import ids
from smp_git.model.ids import (
    DELETED,
    FIRST,
    FLAGS,
    JOIN,
    NOTHING,
    PURGED,
    REDACT,
    REDACTED,
    RESTORE,
    Edge,
    Lives,
    deleted,
    is_life,
    joined_life,
    new_life,
)
from tests import some_lives as model
from tests.some_lives import POOL, anything, grown, horizons, names, stories

BACK, CLEAN, BOTH = "brightly", "quietest", "j0123456789ab"


def began(cause: str, life: str, *parents: str, known: Lives = NOTHING) -> Lives:
    return known.begun(life, Edge(cause, parents))


# Rule 1: a flag ends a life.


def test_a_life_of_which_nothing_is_known_stands() -> None:
    assert not NOTHING.is_dead(FIRST)
    assert not NOTHING.is_dead(None)
    assert not NOTHING.is_dead(BACK)


@pytest.mark.parametrize("flag", FLAGS)
def test_a_flag_ends_a_life(flag: str) -> None:
    known = began(RESTORE, BACK, FIRST, known=Lives({FIRST: (flag,)}))

    assert known.is_dead(FIRST)
    assert known.ended_by(FIRST) == {flag}
    assert known.is_dead(BACK) == (flag == PURGED)


def test_a_restoration_outlives_the_deletion_before_it() -> None:
    known = began(RESTORE, BACK, FIRST, known=deleted())

    assert (known.is_dead(FIRST), known.is_dead(BACK), known.is_gone) == (True, False, False)


def test_deleting_flags_every_known_life_and_no_life_to_come() -> None:
    known = began(RESTORE, BACK, FIRST, known=deleted())
    ended = deleted(["seashore"], before=known)

    assert all(ended.is_dead(life) for life in (FIRST, BACK, "seashore"))
    assert ended.is_gone
    assert not began(RESTORE, "mountain", BACK, known=ended).is_dead("mountain")


@given(anything, st.lists(names), st.booleans())
def test_after_a_deletion_no_life_stands(known: Lives, tips: list[str], purged: bool) -> None:
    ended = deleted(tips, purged=purged, before=known)

    assert all(ended.is_dead(life) for life in (*known.known, *tips))
    assert ended.is_gone
    assert ended.is_purged == (purged or known.is_purged)
    assert ended | known == ended


# Rule 2: nothing outlives a purge.


def test_what_came_from_a_purged_life_is_dead() -> None:
    known = began(RESTORE, BACK, FIRST, known=deleted(purged=True))

    assert known.is_dead(BACK)
    assert known.is_purged
    assert known.ended_by(BACK) >= {PURGED}


@given(anything, names)
def test_a_purge_ends_everything_that_came_after_it(known: Lives, life: str) -> None:
    purged = known | Lives({life: (PURGED,)})

    for each in POOL:
        if life in purged.past(each):
            assert purged.is_dead(each)
            assert PURGED in purged.ended_by(each)


# Rule 3: what is joined or redacted of nothing but the deleted is deleted.


def test_a_redaction_is_no_wish_to_keep() -> None:
    known = began(REDACT, CLEAN, FIRST, known=Lives({FIRST: (REDACTED,)}))

    assert not known.is_dead(CLEAN)
    assert (known | deleted()).is_dead(CLEAN)


def test_a_redaction_of_two_lives_stands_as_long_as_one_was_not_deleted() -> None:
    known = began(REDACT, CLEAN, FIRST, BACK, known=began(RESTORE, BACK, FIRST, known=deleted()))

    assert not known.is_dead(CLEAN)
    assert (known | Lives({BACK: (DELETED,)})).is_dead(CLEAN)


def test_a_join_goes_with_all_that_it_joins() -> None:
    known = began(JOIN, BOTH, BACK, "seashore", known=began(RESTORE, "seashore", FIRST, known=began(RESTORE, BACK, FIRST)))  # fmt: skip

    assert not known.is_dead(BOTH)
    assert not (known | Lives({BACK: (DELETED,)})).is_dead(BOTH)
    assert (known | Lives(dict.fromkeys((BACK, "seashore"), (DELETED,)))).is_dead(BOTH)


# Rule 4: what a redaction did not see may hold its text.


def test_a_life_that_lacks_a_redaction_is_dead() -> None:
    one = began(REDACT, CLEAN, FIRST)
    other = began(REDACT, "mountain", FIRST)
    back = began(RESTORE, BACK, FIRST, known=deleted())

    assert one.is_dead(FIRST)
    assert not one.is_dead(CLEAN)
    assert (one | other).is_dead(CLEAN)
    assert (one | other).is_dead("mountain")
    assert (one | back).is_dead(BACK)
    assert (one | back).ended_by(BACK) == {REDACTED}
    assert one.is_dead("seashore")


def test_a_join_of_two_redactions_stands() -> None:
    known = began(REDACT, CLEAN, FIRST) | began(REDACT, "mountain", FIRST)

    joined = began(JOIN, BOTH, CLEAN, "mountain", known=known)

    assert [each for each in sorted(joined.known) if not joined.is_dead(each)] == [BOTH]


def test_two_generations_two_of_format_1_are_two_lives_and_neither_outlives_the_other() -> None:
    one, other = (Edge(ids.GENERATION, (FIRST,)) for _ in range(2))
    known = Lives({}, {"g2-01234567": one, "g2-89abcdef": other})

    assert known.is_dead("g2-01234567")
    assert known.is_dead("g2-89abcdef")
    assert not known.is_dead("g3")


# All four, against the same rules in other words.


@given(anything)
def test_what_is_dead_is_what_the_rules_say(known: Lives) -> None:
    for life in POOL:
        assert known.past(life) == model.past(known, life)
        assert known.is_dead(life) == model.is_dead(known, life), life
    assert known.is_dead(None) == model.is_dead(known, FIRST)
    assert known.is_gone == all(model.is_dead(known, each) for each in known.known)


@given(anything, names)
def test_a_dead_life_says_what_ended_it(known: Lives, life: str) -> None:
    assert known.is_dead(life) == bool(known.ended_by(life))
    assert known.ended_by(life) >= known.flags.get(life, frozenset())


# Unions


@given(anything, anything, anything)
def test_union_is_commutative_associative_and_idempotent(one: Lives, two: Lives, three: Lives) -> None:  # fmt: skip
    assert one | two == two | one
    assert (one | two) | three == one | (two | three)
    assert one | one == one
    assert one | two | one == one | two
    assert one | NOTHING == one == NOTHING | one
    assert len({one | two, two | one}) == 1


@given(anything, anything)
def test_what_is_known_only_grows(one: Lives, two: Lives) -> None:
    both = one | two

    assert both.known == one.known | two.known
    assert both.redactions >= one.redactions
    for life in POOL:
        assert both.flags.get(life, frozenset()) >= one.flags.get(life, frozenset())
        assert both.past(life) >= one.past(life)
        assert PURGED not in one.ended_by(life) or PURGED in both.ended_by(life)
    for life, edge in one.edges.items():
        assert set(both.edges[life].parents) >= set(edge.parents)
        assert all(both.edges[life].horizon[name] >= at for name, at in edge.horizon.items())


@given(grown(), st.data())
def test_no_flag_and_no_other_life_brings_a_dead_life_back(known: Lives, data: st.DataObject) -> None:  # fmt: skip
    """Whoever knows how a life came about never takes its end back."""
    flags = data.draw(model.flagged())
    others = data.draw(stories(("oceanica", "waterway", "j111111111111")))
    more = known | Lives(flags, others, data.draw(model.counts))

    for life in known.known:
        assert not known.is_dead(life) or more.is_dead(life)


@given(anything, anything)
def test_only_how_a_life_came_about_says_that_it_is_not_dead_after_all(one: Lives, two: Lives) -> None:  # fmt: skip
    both = one | two

    for life in POOL:
        if one.is_dead(life) and not both.is_dead(life):
            assert any(both.edges.get(each) != one.edges.get(each) for each in both.past(life))
            assert not one.flags.get(life)
            assert PURGED not in one.ended_by(life)


@given(horizons, horizons)
def test_of_two_records_of_a_life_a_redaction_goes_before_a_restoration_before_a_join(one: dict[str, str], two: dict[str, str]) -> None:  # fmt: skip
    for left, right in itertools.product((REDACT, RESTORE, JOIN), repeat=2):
        both = Edge(left, (FIRST,), one).united(Edge(right, ("mountain",), two))
        assert both.cause == min(left, right, key=(REDACT, RESTORE, JOIN).index)
        assert both.parents == (FIRST, "mountain")
        assert both.horizon == {n: max(one.get(n, ""), two.get(n, "")) for n in {**one, **two}}


def test_equal_knowledge_is_equal_however_it_was_come_by() -> None:
    known = Lives({"": ("deleted", "redacted"), BACK: ()}, {BACK: Edge(RESTORE, ("", ""))})

    assert known == Lives({"": ("redacted", "deleted")}, {BACK: Edge(RESTORE, ("",), {})})
    assert known != Lives({"": ("redacted", "deleted")})
    assert hash(known) == hash(known | known)


# Past, newest, joined


@given(anything, names)
def test_the_past_of_a_life_holds_it_and_the_first_and_the_past_of_all_in_it(known: Lives, life: str) -> None:  # fmt: skip
    found = known.past(life)

    assert {life, FIRST} <= found
    assert all(known.past(each) <= found for each in found)


@given(grown(), st.lists(names, min_size=1))
def test_the_newest_lives_are_behind_no_other_and_have_all_the_rest_in_their_past(known: Lives, tips: list[str]) -> None:  # fmt: skip
    newest = known.newest(tips)

    assert newest == tuple(sorted(set(newest)))
    assert known.newest(reversed(tips)) == newest
    assert known.newest(newest) == newest
    for one, other in itertools.permutations(newest, 2):
        assert one not in known.past(other)
    joins = {life for life, edge in known.edges.items() if edge.cause == JOIN}
    assert not joins & set(newest)
    behind = {each for tip in tips for each in known.past(tip)}
    assert behind - joins - {FIRST} <= {each for life in newest for each in known.past(life)}


def test_a_join_is_no_more_than_what_it_joins() -> None:
    known = began(REDACT, CLEAN, FIRST) | began(REDACT, "mountain", FIRST)
    joined = began(JOIN, BOTH, CLEAN, "mountain", known=known)

    assert joined.newest([BOTH]) == ("mountain", CLEAN)
    assert joined.newest([BOTH, CLEAN]) == ("mountain", CLEAN)
    assert joined.newest([FIRST, CLEAN]) == (CLEAN,)
    assert joined.newest([FIRST]) == (FIRST,)


@given(st.sets(names, min_size=2), st.randoms())
def test_replicas_that_join_the_same_lives_make_the_same_one(parents: set[str], random: object) -> None:  # fmt: skip
    shuffled = list(parents)
    random.shuffle(shuffled)  # type: ignore[attr-defined]

    name = joined_life("DEC-0001", shuffled)

    assert name == joined_life("DEC-0001", parents)
    assert is_life(name)
    assert name != joined_life("DEC-0002", parents)
    assert name != joined_life("DEC-0001", [*parents, "zzzzzzzz"])


@given(grown(), names, names)
def test_what_one_life_lacks_of_another_is_redactions_of_the_other(known: Lives, one: str, other: str) -> None:  # fmt: skip
    missing = known.missing(one, other)

    assert missing <= known.redactions & known.past(other)
    assert not missing & known.past(one)
    if known.past(other) <= known.past(one):
        assert not missing
    if missing:
        assert known.is_dead(one)


# Names


def test_a_new_life_has_a_name_of_its_own() -> None:
    made = {new_life() for _ in range(200)}

    assert len(made) == 200
    assert all(map(is_life, made))


@pytest.mark.parametrize("name", ["", None, 5, True, [], "first", "k3fq9xw2", "Brightly", "brightly ", "brightly\n", "é" * 8, "g0", "g1x", "g2-0123456", "j0123456789a", "g12345678", "../../xx", "brightlyy"])  # fmt: skip
def test_what_is_no_name_of_a_life(name: object) -> None:
    assert not is_life(name)


@pytest.mark.parametrize("name", [each for each in POOL if each])
def test_what_is_a_name_of_a_life(name: str) -> None:
    assert is_life(name)


@given(st.integers(1, 9_999_999), st.none() | st.binary(max_size=20))
def test_what_format_1_numbered_keeps_its_number(number: int, first: bytes | None) -> None:
    life = ids.of_generation(number, first)

    assert ids.generation(life) == number
    assert (life == FIRST) == (number == 1)
    assert life == FIRST or is_life(life)
    if number > 1:
        assert life != ids.of_generation(number, b"another version")
