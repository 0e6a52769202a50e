"""What a question finds, and in which order."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from smp_git.ask.text.cache import SearchCache, search
from tests.search.support import a_cache, a_document, first_reason, follow, found, hits


def alone(*texts: str, **fields: str) -> SearchCache:
    """Return a cache over decisions, which lend each other nothing."""
    cache = SearchCache(None)
    page = [
        a_document(number, text, kind="decision", **fields) for number, text in enumerate(texts)
    ]
    follow(cache, {"decisions/000": tuple(page)})
    return cache


def test_words_are_joined_by_or_and_more_of_them_rank_higher() -> None:
    cache = alone("redis", "redis cluster", "postgres")

    assert found(cache, "redis cluster") == [1, 0]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("deploying", "deployed"),
        ("go", "went"),
        ("children", "child"),
        ("cafe", "Café"),
        ("Kevin", "Kevin's"),
        ("STRASSE", "straße"),
        ("naïve", "nai\u0308ve"),
        ("東京", "東京に行く"),
        ("хлеб", "Хлеб"),
        ("user id", "user_id"),
        ("don't panic", "don\u2019t panic"),
        ("slow", "slower"),
        ("big", "the biggest"),
        ("easy", "easier"),
    ],
)
def test_a_word_is_found_in_another_form(asked: str, said: str) -> None:
    assert found(alone(said, "else"), asked) == [0]


def test_a_phrase_matches_only_these_words_in_this_order() -> None:
    cache = alone("the red car", "the car is red", "red cars", "A RED, car")

    assert found(cache, '"red car"') == [0, 3]


def test_a_phrase_does_not_cross_from_title_to_text() -> None:
    cache = alone("car", title="red")

    assert found(cache, '"red car"') == []


def test_one_quoted_word_is_not_stemmed() -> None:
    assert found(alone("running", "run"), '"running"') == [0]


def test_a_prefix_matches_every_word_it_begins() -> None:
    assert found(alone("deployment", "deploy", "depot", "employ"), "deplo*") == [0, 1]


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("*auth", [0, 1]),
        ("te?t", [2, 3]),
        ("?est", [2]),
        ("o*h", [0]),
        ("*Auth*", [0, 1, 4]),
        ('"te?t of"', [2]),
        ("*", []),
        ("te?", []),
        ("**auth**", [1]),
    ],
)
def test_a_wildcard_stands_for_letters_of_a_word_as_written(
    question: str, expected: list[int]
) -> None:
    cache = alone("oauth", "Auth", "test of it", "text", "authors")

    assert sorted(found(cache, question)) == expected


def test_a_wildcard_stands_for_every_word_that_fits() -> None:
    cache = alone(*(f"w{number}" for number in range(400)), "w", "new")

    assert set(found(cache, "w*", limit=500)) == set(range(401))


def test_no_wildcard_makes_a_question_slow() -> None:
    """Many asterisks would be tried in every combination, letter by letter."""
    cache = alone("a" * 64, "a" * 63 + "b")

    assert found(cache, f"{'a*' * 25}b") == [1]
    assert found(cache, f"{'*a' * 25}*b*") == [1]
    assert found(cache, f'"{"a*" * 25} {"a*" * 25}c"') == []


def test_a_turn_that_borrows_is_never_above_the_one_it_borrows_from() -> None:
    long = "the zebra " + " ".join(f"word{number}" for number in range(300))
    for texts in ((long, "yes"), ("yes", long), (f"{long}?", "stripes", "yes")):
        cache = a_cache(*texts)
        source = texts.index(next(text for text in texts if "zebra" in text))

        assert found(cache, "zebra")[0] == source
        assert all(hit.source == f"turn-{source:04}" for hit in hits(cache, "zebra")[1:])


def test_a_reason_says_which_words_and_which_neighbour() -> None:
    cache = a_cache("what is your favourite dish", "lasagne, mostly")
    reason = search([cache], "lasagne as a favourite").reason(0, "turn-0001")

    assert (reason.words, reason.near) == (("lasagne",), "turn-0000")


def test_title_and_tags_are_searched() -> None:
    cache = alone("nothing", title="Token rotation")

    assert found(cache, "rotate tokens") == [0]


def test_stop_words_count_only_when_nothing_else_is_asked() -> None:
    cache = alone("what is the plan", "budget")

    assert found(cache, "what is the budget") == [1]
    assert found(cache, "what is") == [0]


def test_a_turn_is_found_by_the_words_of_the_turn_before_it() -> None:
    cache = a_cache("what is your favourite dish", "lasagne", "x", "y", "z")

    assert found(cache, "favourite dish") == [0, 1, 2]


def test_neighbours_are_kept_right_across_pages() -> None:
    cache = SearchCache(None)
    pages = {
        "conversation/000": (a_document(99, "favourite dish"),),
        "conversation/001": (a_document(100, "lasagne", at="2023-05-04T10:45:00Z"),),
    }
    follow(cache, pages)

    assert found(cache, "dish") == [99, 100]


@pytest.mark.parametrize(
    "fields",
    [
        {"sitting": "other"},
        {"at": "2023-05-04T16:00:01Z"},
        {"kind": "decision"},
    ],
)
def test_another_sitting_lends_nothing(fields: dict[str, str]) -> None:
    cache = SearchCache(None)
    first = a_document(0, "favourite dish")
    follow(cache, {"p": (first, a_document(1, "lasagne", **fields))})

    assert found(cache, "dish") == [0]


def test_sittings_at_the_same_time_do_not_part_neighbours() -> None:
    cache = SearchCache(None)
    page = [
        a_document(number, text, sitting=sitting)
        for number, (sitting, text) in enumerate(
            [("one", "favourite dish"), ("two", "x"), ("one", "lasagne"), ("two", "y")]
        )
    ]
    follow(cache, {"p": tuple(page)})

    assert found(cache, "dish") == [0, 2]


def test_a_name_that_is_a_stop_word_needs_a_capital() -> None:
    cache = alone("the plan", speaker="Will")

    assert "speaker" not in first_reason(cache, "will the plan work").parts
    assert "speaker" in first_reason(cache, "the plan of Will").parts


@pytest.mark.parametrize("limit", [0, -1])
def test_no_answers_are_given_when_none_are_wanted(limit: int) -> None:
    assert hits(alone("redis"), "redis", limit=limit) == []


def test_the_speaker_that_the_question_names_comes_first() -> None:
    cache = SearchCache(None)
    page = [
        a_document(number, "the trip to Rome", kind="finding", speaker=speaker)
        for number, speaker in enumerate(["Bo Li", "Ana Diaz", "veritas"])
    ]
    follow(cache, {"p": tuple(page)})

    assert found(cache, "Ana's trip to Rome")[0] == 1
    assert found(cache, "the trip of veritas to rome")[0] == 2


def test_a_part_of_a_name_in_small_letters_names_nobody() -> None:
    cache = alone("the review", speaker="code-review")

    assert "speaker" not in first_reason(cache, "the review").parts


def test_a_speakers_name_alone_finds_what_they_said() -> None:
    assert found(alone("the trip to Rome", speaker="veritas"), "veritas") == [0]


def test_the_first_person_is_the_user() -> None:
    cache = SearchCache(None)
    page = (
        a_document(0, "a trip", kind="a", role="assistant"),
        a_document(1, "a trip", kind="a", role="user"),
    )
    follow(cache, {"p": page})

    assert found(cache, "my trip") == [1, 0]


@pytest.mark.parametrize(
    "question",
    [
        "the party in May 2023",
        "party on 4 May",
        "party on May 4th, 2023",
        "party 2023-05-04",
        "party yesterday",
        "party 1 day ago",
    ],
)
def test_a_date_in_the_question_raises_and_fetches(question: str) -> None:
    cache = SearchCache(None)
    page = (
        a_document(0, "party", kind="a", at="2022-01-01T00:00:00Z"),
        a_document(1, "party", kind="a", at="2023-05-04T00:00:00Z"),
        a_document(2, "cake", kind="a", at="2023-05-04T23:00:00Z"),
    )
    follow(cache, {"p": page})

    now = datetime(2023, 5, 5, 12, tzinfo=UTC)
    assert found(cache, question, now=now)[0] == 1
    assert set(found(cache, question, now=now)) == {0, 1, 2}


def test_a_question_of_a_day_alone_is_about_that_day() -> None:
    cache = SearchCache(None)
    page = (
        a_document(0, "yesterday, all my troubles", kind="a", at="2022-01-01T00:00:00Z"),
        a_document(1, "cake", kind="a", at="2023-05-04T00:00:00Z"),
    )
    follow(cache, {"p": page})

    now = datetime(2023, 5, 5, 12, tzinfo=UTC)
    assert found(cache, "what happened yesterday?", now=now) == [1, 0]


def test_may_as_a_verb_is_no_date() -> None:
    assert found(alone("cake", "party"), "may I see the party") == [1]


def test_equal_scores_go_by_id() -> None:
    assert found(alone("same", "same", "same"), "same") == [0, 1, 2]


@pytest.mark.parametrize(
    "question",
    [
        "",
        " ",
        '"',
        '""',
        'foo" AND (',
        "NEAR(redis)",
        "redis' OR 1=1; DROP TABLE segment; --",
        "\0redis\0",
        "🙂",
        "* ** *redis*",
        "\ud800",
        "the what of",
        "9" * 5_000,
        '"' * 2_001,
        "2023-99-99 on 31 February in May 99999",
        "a" * 1_000_000,
        "redis " * 200_000,
        " ".join(f"word{n}" for n in range(10_000)),
        '"a b" ' * 5_000,
        "a* " * 5_000,
    ],
)
def test_every_string_gets_an_answer(question: str) -> None:
    answers = hits(a_cache("redis is up", "word5 and word7"), question)

    assert all(0 < hit.score <= 1 for hit in answers)


def test_hostile_documents_are_indexed() -> None:
    cache = alone("\0\ud800 redis", "x" * 100_000, "\ud800 " * 70_000, "🙂")

    assert found(cache, "redis") == [0]
    assert found(cache, "x" * 80) == [1]


def test_similar_ranks_the_same_text_first_with_score_1() -> None:
    cache = alone("users want dark mode", "dark chocolate", "invoices are late")
    found = [hit for hit, _ in cache.similar("users want dark mode")]

    assert [hit.id for hit in found] == ["turn-0000", "turn-0001"]
    assert found[0].score == pytest.approx(1)


def test_an_unknown_time_is_refused_with_the_value() -> None:
    with pytest.raises(ValueError, match="yesterday"):
        alone("x", at="yesterday")
