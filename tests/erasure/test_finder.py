"""The search for many texts at once finds what a search for each would."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from smp_git.git.storage import common, common_end
from smp_git.remove.history.search import LEAST_BYTES, TextFinder

_words = st.sampled_from([b"a", b"b", b"ab", b"\n", b"the cost of ", b"was 120 in trial 1. ", b"12345678"])  # fmt: skip
_data = st.lists(_words, max_size=60).map(b"".join)
_wanted = st.lists(_words, min_size=4, max_size=12).map(b"".join).filter(lambda text: len(text) >= LEAST_BYTES)  # fmt: skip


@given(data=_data, wanted=st.sets(_wanted, max_size=60))
def test_many_texts_are_found_as_one_by_one(data: bytes, wanted: set[bytes]) -> None:
    expected = {text for text in wanted if text in data}

    assert TextFinder(wanted).found(data) == expected
    assert TextFinder(wanted).is_in(data) == bool(expected)


@given(data=_data, start=st.integers(0, 400), wanted=st.sets(_wanted, min_size=30, max_size=40))
def test_a_text_is_found_wherever_it_lies(data: bytes, start: int, wanted: set[bytes]) -> None:
    for text in sorted(wanted)[:9]:
        assert text in TextFinder(wanted).found(data[:start] + text + data[start:])


@given(head=_data, left=_data, right=_data, tail=_data)
def test_what_two_texts_share_at_their_ends_is_told_exactly(
    head: bytes, left: bytes, right: bytes, tail: bytes
) -> None:
    one, other = head + left + tail, head * 9 + right + tail * 9
    for old, new in ((one, head + right + tail), (one, other), (other, head * 9 + left + tail * 9)):
        most = min(len(old), len(new))
        start = common(old, new)
        assert old[:start] == new[:start]
        assert start == most or old[start] != new[start]
        end = common_end(old, new, most - start)
        assert old[len(old) - end :] == new[len(new) - end :]
        assert end == most - start or old[-end - 1] != new[-end - 1]
