"""Words that a redaction took out are taken out of what it meets, and nothing else is."""

from __future__ import annotations

import unicodedata
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from smp_git.format import document
from smp_git.model.memory import Memory, Value, says_same
from smp_git.write.merge.masking import (
    MASK,
    NONE,
    Hidden,
    Words,
    replaced,
    words_of,
    words_of_memory,
    words_of_value,
)
from tests import strategies
from tests.merging.histories import memory


def hidden(known: str, visible: str = "") -> Hidden:
    """What may not be shown where a redaction knew one text and shows another."""
    return Hidden(words_of(known), words_of(visible))


_PIECES = (
    "Anna", "Smith", "anna", "Nightingale", "night", "gale", "p@ss-w0rd", "p@ss", "w0rd", "12345", "1234567", "a", "is", "the",
    "密码是三月", "密码", "三月", "東京", "café", "cafe\u0301", "Ｎｉｇｈｔ", "STRASSE", "straße", "[REDACTED]", "[REDACTED:email]", "[X]",
    "_", "-", ".", ",", " ", "  ", "\n", "x" * 40, "x" * 70, "ﬁnal", "\u200b", "\ufffc",
)  # fmt: skip
sentences = st.lists(st.sampled_from(_PIECES) | st.just(" ") | strategies.words, max_size=12).map("".join) | strategies.texts  # fmt: skip


# With nothing hidden nothing changes


@given(sentences, sentences)
def test_with_nothing_hidden_nothing_changes(text: str, shown: str) -> None:
    for nothing in (Hidden(NONE, words_of(shown)), hidden(shown, shown), hidden("", text)):
        assert not nothing
        assert nothing.masked(text) == text
        assert nothing.tags([text]) == (text,)


@settings(max_examples=50)
@given(strategies.memories(), sentences)
def test_with_nothing_hidden_a_memory_stays_as_it_is(found: Memory, shown: str) -> None:
    made = hidden(shown, shown).memory(found)

    assert says_same(made, found)
    assert document.encode(made) == document.encode(found)


@given(strategies.values)
def test_with_nothing_hidden_a_value_stays_as_it_is(value: Value) -> None:
    assert hidden("", "").value(value) == value


@given(sentences, sentences, sentences)
def test_a_text_of_which_all_is_visible_stays(known: str, text: str, more: str) -> None:
    assert hidden(known, f"{text}\n{more}").masked(text) == text


@given(st.text("abcdefgh ", max_size=30), st.text("mnopqrst ", max_size=30))
def test_words_that_have_nothing_in_common_with_the_hidden_stay(known: str, text: str) -> None:
    assert hidden(known).masked(text) == text


# What is hidden is taken out


@settings(max_examples=300)
@given(sentences, sentences, sentences)
def test_no_hidden_word_or_pair_is_left(known: str, visible: str, text: str) -> None:
    left = words_of(hidden(known, visible).masked(text))

    assert not (left & (words_of(known) - words_of(visible))).words


@settings(max_examples=300)
@given(sentences, sentences, sentences)
def test_masking_again_changes_nothing(known: str, visible: str, text: str) -> None:
    found = hidden(known, visible)
    once = found.masked(text)

    assert found.masked(once) == once


@given(sentences, sentences)
def test_what_is_left_stood_there(known: str, text: str) -> None:
    """Masking takes words out; it never brings in or moves anything else."""
    rest = hidden(known).masked(text)
    at = 0
    for part in rest.split(MASK):
        assert part in text[at:]
        at = text.index(part, at) + len(part)


@given(st.from_regex(r"[A-Za-z0-9]{4,40}", fullmatch=True), st.from_regex(r"[A-Za-z0-9]{0,40}", fullmatch=True), st.from_regex(r"[A-Za-z0-9]{0,40}", fullmatch=True))  # fmt: skip
def test_a_word_that_holds_a_hidden_one_is_hidden(word: str, before: str, after: str) -> None:
    text = f"{before}{word}{after}"

    assert word.casefold() not in hidden(f"it is {word} there").masked(f"now {text}.").casefold()


@given(st.from_regex(r"[a-z0-9]{4,60}", fullmatch=True), st.data())
def test_a_word_within_a_hidden_one_is_hidden(word: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(word) - 4))
    end = data.draw(st.integers(start + 4, len(word)))

    assert hidden(word).masked(f"- {word[start:end].upper()} -") == f"- {MASK} -"


@pytest.mark.parametrize(
    ("known", "visible", "text", "expected"),
    [
        ("Project Nightingale starts", "Project [REDACTED] starts", "About Nightingale, now", f"About {MASK}, now"),
        ("Project Nightingale", "Project [REDACTED]", "nightingale NIGHTINGALE", MASK),
        ("Project Nightingale", "Project [REDACTED]", "Nightingales and a night", f"{MASK} and a {MASK}"),
        ("it is cat", "it is [REDACTED]", "cat and category", f"{MASK} and category"),
        ("it is cat7", "it is [REDACTED]", "cat71 cat", f"{MASK} cat"),
        ("the p@ss-w0rd of it", "the [REDACTED] of it", "use p@ss-w0rd!", f"use {MASK}@{MASK}-{MASK}!"),
        ("the p@ss-w0rd of it", "the of it", "p@ss-w0rd", MASK),
        ("key=abcd1234", "key=", "KEY=ABCD1234 Key=Abcd1235", f"{MASK} Key=Abcd1235"),
        ("pin 0042", "pin", "pin 0042 00421", f"pin {MASK}"),
        ("x" * 70, "", f"{'x' * 70} {'x' * 65} {'y' * 70}", f"{MASK} {'y' * 70}"),
    ],
)  # fmt: skip
def test_words(known: str, visible: str, text: str, expected: str) -> None:
    assert hidden(known, visible).masked(text) == expected


# Pairs


def test_two_words_of_which_each_stands_elsewhere() -> None:
    found = hidden("Ask Anna Smith first", "Ask [REDACTED] first; Anna is here, and a smith")

    assert found.masked("Anna Smith") == MASK
    assert found.masked("anna  smith came") == f"{MASK} came"
    assert found.masked("Anna-Smith") == MASK
    assert found.masked("Anna,\nSmith") == MASK
    assert found.masked("Anna met the smith") == "Anna met the smith"
    assert found.masked("smith Anna") == "smith Anna"


def test_of_a_pair_with_a_hidden_word_the_other_stays() -> None:
    found = hidden("call Nightingale today", "call [REDACTED] today")

    assert found.masked("call Nightingale today") == f"call {MASK} today"
    assert found.masked("call today") == "call today"


def test_nothing_is_a_neighbour_across_a_placeholder() -> None:
    assert words_of("Anna [REDACTED] Smith").pairs == frozenset()
    assert words_of("Anna [REDACTED] Smith").words == {"anna", "smith"}
    found = hidden("Anna Smith", "Anna [REDACTED] Smith")
    assert found.masked("Anna Smith, Anna [REDACTED] Smith") == f"{MASK}, Anna [REDACTED] Smith"


@given(st.lists(st.sampled_from(["ada", "bob", "cyd", "dan"]), min_size=2, max_size=8), st.lists(st.sampled_from(["ada", "bob", "cyd", "dan"]), min_size=2, max_size=8))  # fmt: skip
def test_a_pair_that_the_redaction_does_not_show_is_nowhere(known: list[str], text: list[str]) -> None:  # fmt: skip
    shown = "ada, [X:X] bob [X:X] cyd [X:X] dan [X:X] ada"
    left = words_of(hidden(" ".join(known), shown).masked(" ".join(text)))

    assert not left.pairs & words_of(" ".join(known)).pairs


# Scripts without spaces, and one text in several spellings


def test_scripts_without_spaces_are_compared_by_pairs_of_characters() -> None:
    found = hidden("密码是三月", "密码是[REDACTED]")

    assert "三月" not in found.masked("在三月里")
    assert found.masked("密码是") == "密码是"
    assert found.masked("東京") == "東京"
    assert hidden("ความลับ").masked("ความลับ") == MASK
    assert hidden("비밀번호").masked("내 비밀번호") != "내 비밀번호"
    assert hidden("月").masked("月") == MASK


@given(st.text("密码是三月日本語東京都", min_size=2, max_size=8), st.text("密码是三月日本語東京都", max_size=8), st.text("密码是三月日本語東京都", max_size=8))  # fmt: skip
def test_a_text_without_spaces_is_hidden_wherever_it_stands(known: str, before: str, after: str) -> None:  # fmt: skip
    assert known not in hidden(known).masked(f"{before}{known}{after}")


@pytest.mark.parametrize(
    ("known", "text"),
    [
        ("Nightingale", "Ｎｉｇｈｔｉｎｇａｌｅ"),
        ("Ｎｉｇｈｔｉｎｇａｌｅ", "nightingale"),
        ("straße", "STRASSE"),
        ("ﬁnancial", "FINANCIAL"),
        ("ΣΊΣΥΦΟΣ", "σίσυφος"),
        ("café1", "cafe\u03011"),
        ("cafe\u03011", "CAFÉ1"),
        ("№42x", "No42X"),
        ("①②③④", "1234"),
    ],
)
def test_one_text_in_another_spelling_is_hidden(known: str, text: str) -> None:
    assert hidden(known).masked(text) == MASK
    assert hidden(f"it is {known}", "it is").masked(f"it is {text}") == f"it is {MASK}"


@pytest.mark.parametrize("around", ["{}", "({})", "{}.", "«{}»", "{}, and"])
def test_a_decomposed_text_is_hidden_beside_punctuation(around: str) -> None:
    """A composed accent and one of its own are one text to whoever reads it."""
    composed, decomposed = "Crédit", "Cre\u0301dit"
    assert unicodedata.normalize("NFC", decomposed) == composed

    for known, text in ((composed, decomposed), (decomposed, composed)):
        left = unicodedata.normalize("NFC", hidden(known).masked(around.format(text)))
        assert composed not in left


# Placeholders


@pytest.mark.parametrize("placeholder", ["[REDACTED]", "[REDACTED:email]", "[REMOVED]", "[SECRET_1]"])  # fmt: skip
def test_a_placeholder_is_no_word(placeholder: str) -> None:
    assert words_of(placeholder) == NONE
    assert words_of(f"a {placeholder} b").words == {"a", "b"}
    assert hidden(f"it was {placeholder}", "it was").masked(f"so {placeholder}") == f"so {placeholder}"  # fmt: skip
    assert hidden("REDACTED REMOVED SECRET email").masked(placeholder) == placeholder


def test_marks_that_touch_become_one() -> None:
    assert hidden("one2 two2 three3").masked("one2 two2\nthree3, one2") == f"{MASK}, {MASK}"


# Whole memories

SECRET = "Nightingale"
KNOWN = words_of_memory(memory("DEC-0001", f"Staff {SECRET} now", rationale="by need"))


def secretive() -> Memory:
    return replace(
        memory(
            "DEC-0001", f"Staff {SECRET} now", tags=["staff", "nightingale.team"], agent="nightingale",
            rationale=f"For {SECRET}", title=f"{SECRET}!", tokens_of={SECRET: [f"{SECRET}s", {"deep": SECRET}]},
            nightingale_plan="by need", counts=[1, 2.5, True, None],
        )
    )  # fmt: skip


def test_a_secret_goes_from_text_title_tags_keys_and_values() -> None:
    found = Hidden(KNOWN, words_of("Staff [REDACTED] now, by need"))

    made = found.memory(secretive())

    file = document.encode(made).decode()
    assert SECRET.casefold() not in file.casefold()
    assert document.decode(file.encode(), made.path).content == f"Staff {MASK} now"
    assert SECRET.casefold() not in made.title.casefold()
    assert made.tags == ("staff",)
    assert made.agent == "redacted"
    assert made.fields["rationale"] == f"For {MASK}"
    assert made.fields["tokens_of"] == {MASK: [MASK, {"deep": MASK}]}
    assert made.fields["counts"] == [1, 2.5, True, None]
    assert made.id == "DEC-0001"


def test_values_that_lost_are_masked_too() -> None:
    entry: dict[str, Value] = {"field": "impact", "value": f"of {SECRET}", "at": "2026-01-11T14:30:00Z", "replica": "k3fq"}  # fmt: skip
    old = memory("DEC-0001", "Staff it", contested=[entry])

    made = Hidden(KNOWN, NONE).memory(old)

    found: Any = made.fields["contested"]
    assert found == [{**entry, "value": f"of {MASK}"}]


def test_a_number_that_is_hidden_is_masked() -> None:
    found = hidden("pin 4711", "pin")

    assert found.value({"pin": 4711, "other": 42, "on": True, "none": None}) == {"pin": MASK, "other": 42, "on": True, "none": None}  # fmt: skip


@settings(max_examples=100)
@given(strategies.memories(), strategies.words.filter(lambda word: len(word) > 4))
def test_what_is_left_of_any_memory_is_a_memory(found: Memory, word: str) -> None:
    assume(found.kind != "state")
    made = Hidden(words_of_memory(found) | words_of(word), NONE).memory(found)

    again = document.decode(document.encode(made), made.path) if made.content.strip() else made
    assert (again.id, again.kind, again.life) == (found.id, found.kind, found.life)


def test_every_word_of_a_memory_is_among_its_words() -> None:
    words = words_of_memory(secretive()).words

    assert {"staff", "now", "nightingale", "nightingale.team", "need", "2", "5", "deep", "plan"} <= words  # fmt: skip
    assert "rationale" not in words


def test_words_of_values_are_those_of_keys_and_items() -> None:
    assert words_of_value({"one": ["two", {"three": 4}], "five": None, "six": True}).words == {"one", "two", "three", "4", "five", "six"}  # fmt: skip
    assert words_of_value(None) == NONE


def test_words_unite_and_differ_like_sets() -> None:
    one, two = words_of("a b c"), words_of("b c d")

    assert (one | two).words == {"a", "b", "c", "d"}
    assert (one & two) == Words(frozenset("bc"), frozenset({("b", "c")}))
    assert (one - two) == Words(frozenset("a"), frozenset({("a", "b")}))


@given(strategies.values)
def test_a_change_of_texts_leaves_all_else(value: Value) -> None:
    assert replaced(value, str) == value
