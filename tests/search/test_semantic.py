"""Meaning beside words: by an encoder of three concepts, and by the real one if installed."""

from __future__ import annotations

import sqlite3
from array import array
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from smp_git.ask.text import Document, Encoder, SearchCache, find_encoder, meanings, search
from tests.search.support import Pages, a_document, follow, found

CONCEPTS = (("cat", "kitten"), ("car", "lorry"), ("rate", "interest"))


class ConceptEncoder(Encoder):
    """Tells which of three concepts a text mentions, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def vector(self, text: str) -> bytes:
        self.asked.append(text)
        numbers = array("f", [float(any(word in text for word in each)) for each in CONCEPTS])
        return numbers.tobytes().ljust(768, b"\0")

    def matrix(self, vectors: Iterable[bytes]) -> Any:
        return [array("f", each) for each in vectors]

    def likeness(self, text: str, vectors: Any) -> list[float]:
        (mine,) = self.matrix([self.vector(text)])
        return [min(1.0, sum(a * b for a, b in zip(mine, row, strict=True))) for row in vectors]


def page(*texts: str, first: int = 0) -> tuple[Document, ...]:
    return tuple(a_document(first + n, text, kind="decision") for n, text in enumerate(texts))


PAGES: Pages = {
    "decisions/000": page("a cat sat", "a lorry went", "the weather"),
    "decisions/001": page("interest is paid", "a kitten", first=10),
}


def cache(path: Path | None = None) -> tuple[SearchCache, ConceptEncoder]:
    encoder = ConceptEncoder()
    return SearchCache(path, encoder=encoder), encoder


def test_meaning_finds_what_no_word_finds() -> None:
    both, _ = cache()
    follow(both, PAGES)

    assert found(both, "kitten") == [11, 0]
    assert search([both], "kitten").reason(0, "turn-0000").parts.keys() == {"meaning"}
    assert [hit.id for hit, _ in both.similar("cat", limit=2)] == ["turn-0000", "turn-0011"]


def test_scores_are_the_sums_of_their_parts_between_0_and_1() -> None:
    both, _ = cache()
    follow(both, PAGES)

    answers = search([both], "kitten cat")
    found = [(hit, answers.reason(0, hit.id)) for _, hit in answers.hits(9, [None])]
    for hit, reason in (*found, *both.similar("a cat sat", limit=9)):
        assert 0 < hit.score <= 1
        assert sum(reason.parts.values()) == pytest.approx(hit.score)


def test_a_second_process_embeds_nothing_and_answers_the_same(tmp_path: Path) -> None:
    warm, _ = cache(tmp_path / "cache")
    follow(warm, PAGES)
    cold, encoder = cache(tmp_path / "cache")

    assert follow(cold, PAGES) == []
    assert encoder.asked == []
    assert cold.search("kitten", limit=9) == warm.search("kitten", limit=9)


@pytest.mark.parametrize("is_cold", [False, True])
def test_a_changed_page_embeds_what_changed(tmp_path: Path, is_cold: bool) -> None:
    both, encoder = cache(tmp_path / "cache")
    follow(both, PAGES)
    if is_cold:
        both, encoder = cache(tmp_path / "cache")
    encoder.asked.clear()
    follow(both, {**PAGES, "decisions/000": page("a cat sat", "a car went", "the weather")})

    assert encoder.asked == ["a car went"]
    assert both.missing_vectors == 0


def test_words_alone_answer_until_every_document_has_a_vector() -> None:
    many = {"decisions/000": page("a cat", *(f"kitten {n}" for n in range(39)))}
    words, (both, _) = SearchCache(None), cache()
    follow(words, many)
    follow(both, many)

    assert both.missing_vectors == 8
    assert both.search("cat", limit=9) == words.search("cat", limit=9)
    follow(both, many)
    assert both.missing_vectors == 0
    assert len(found(both, "cat")) == 40


def test_vectors_so_far_are_kept(tmp_path: Path) -> None:
    many = {"decisions/000": page(*(f"kitten {n}" for n in range(40)))}
    follow(cache(tmp_path / "cache")[0], many)
    second, encoder = cache(tmp_path / "cache")
    follow(second, many)

    assert len(encoder.asked) == 8
    assert second.missing_vectors == 0


def test_a_slow_encoder_holds_no_question_up_and_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meanings, "PATIENCE_SECONDS", 0.0)
    many = {"decisions/000": page("a cat", "a lorry"), "decisions/001": page("rates", first=10)}
    asked = []
    for _ in range(4):
        each, encoder = cache(tmp_path / "cache")
        follow(each, many)
        asked.append((len(encoder.asked), each.missing_vectors))

    assert asked == [(1, 2), (1, 1), (1, 0), (0, 0)]


def test_damaged_vectors_are_made_again(tmp_path: Path) -> None:
    follow(cache(tmp_path / "cache")[0], PAGES)
    with sqlite3.connect(tmp_path / "cache") as connection:
        connection.execute("UPDATE vector SET body = x'01'")
    second, encoder = cache(tmp_path / "cache")
    follow(second, PAGES)

    assert len(encoder.asked) == 5
    assert found(second, "kitten") == [11, 0]
    assert follow(cache(tmp_path / "cache")[0], PAGES) == []


def real() -> Encoder:
    encoder = find_encoder()
    if encoder is None:
        pytest.skip("the extra `semantic` is not installed")
    return encoder


def test_close_meanings_get_close_vectors() -> None:
    encoder = real()
    texts = ["a kitten on the rug", "interest rates"]
    rug, rates = encoder.likeness(
        "a cat on the mat", encoder.matrix([encoder.vector(each) for each in texts])
    )

    assert rug > 0.5 > 0.2 > rates


def test_other_weights_are_refused_and_words_answer(tmp_path: Path) -> None:
    real()
    (tmp_path / "model.onnx").write_bytes(b"something else")
    both = SearchCache(None, encoder=Encoder(tmp_path / "model.onnx"))
    follow(both, PAGES)

    assert "model.onnx" in both.problems[0]
    assert found(both, "kitten") == [11]


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "🙂" * 300, "x" * 5_000, "東京"])
def test_every_text_has_a_vector(text: str) -> None:
    assert len(real().vector(text)) == 768
