"""Differences of texts: each side can be read off them, and none takes long."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from smp_git.model.wording import word_diff

texts = st.text(alphabet="ab é\n.,-", max_size=60) | st.text(max_size=30)


@given(texts, texts)
def test_both_sides_can_be_read_off_a_difference(old: str, new: str) -> None:
    runs = word_diff(old, new)

    assert "".join(each.text for each in runs if each.kind != "new") == old
    assert "".join(each.text for each in runs if each.kind != "gone") == new


def test_words_are_replaced_whole() -> None:
    runs = word_diff("Use OAuth with JWT tokens", "Use OAuth with opaque tokens")

    assert [each for each in runs if each.kind != "same"] == [("gone", "JWT"), ("new", "opaque")]


def test_what_is_far_from_a_change_is_left_out() -> None:
    same = "word " * 1_000
    runs = word_diff(f"{same}old{same}", f"{same}new{same}")

    assert [each.kind for each in runs] == ["skipped", "same", "gone", "new", "same", "skipped"]
    assert int(runs[0].text) + len(runs[1].text) == len(same)


def test_long_texts_of_the_same_words_are_not_compared_word_by_word() -> None:
    old, new = "a b " * 250_000 + "!", "b a " * 250_000 + "?"

    assert word_diff(old, new) == (("gone", old), ("new", new))
