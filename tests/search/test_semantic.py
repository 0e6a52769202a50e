"""Meaning beside words: by an encoder of three concepts, and by the real one if installed."""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.ask import vectors
from smp_git.ask.answer import Answer
from smp_git.ask.text import meanings
from smp_git.ask.text.meanings import Encoder, find_encoder
from smp_git.errors import InvalidError
from smp_git.keep import maintenance
from tests.support import git

CONCEPTS = (("cat", "kitten"), ("car", "lorry"), ("rate", "interest"))


class ConceptEncoder(Encoder):
    """Tells which of three concepts a text mentions, and remembers what it was asked."""

    asked: list[str] = []  # noqa: RUF012 - of all encoders of a test

    def __init__(self) -> None:
        return

    def vector(self, text: str) -> bytes:
        self.asked.append(text)
        numbers = array("f", [float(any(word in text for word in each)) for each in CONCEPTS])
        return numbers.tobytes().ljust(768, b"\1")

    def matrix(self, vectors: Iterable[bytes]) -> Any:
        return [array("f", each) for each in vectors]

    def likeness(self, text: str, vectors: Any) -> list[float]:
        mine = array("f", ConceptEncoder.vector(self, text))
        self.asked.pop()
        return [min(1.0, sum(a * b for a, b in zip(mine, row, strict=True))) for row in vectors]


@pytest.fixture(autouse=True)
def encoder(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[ConceptEncoder]]:
    monkeypatch.setattr(vectors, "find_encoder", ConceptEncoder)
    # Between questions nothing is made but where a test asks for it.
    monkeypatch.setattr(vectors, "_QUIET_SECONDS", 3600.0)
    ConceptEncoder.asked.clear()
    yield ConceptEncoder
    ConceptEncoder.asked.clear()


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store.init(tmp_path / "store")


TEXTS = ("a cat sat", "a lorry went", "the weather", "interest is paid", "a kitten")


@pytest.fixture
def session(store: Store) -> Iterator[Session]:
    with store.create_session("s", user="ada") as session:
        for text in TEXTS:
            session.add("decision", text)
        yield session


def found(answer: Answer) -> list[str]:
    return [hit.id for hit in answer]


def plain(answer: Answer) -> list[tuple[str, list[str]]]:
    """Return what an answer says of the texts: reads are counted, and count."""
    return [(hit.id, [line for line in hit.why if "text" in line]) for hit in answer]


def the_file(session: Session) -> Path:
    return session.path / ".git/smp/vectors"


# What is found


def test_meaning_finds_what_no_word_finds(session: Session) -> None:
    done = session.index()

    assert (done.memories, done.made, done.missing, done.semantic) == (5, 5, 0, True)
    answer = session.query("kitten", explain=True)
    assert set(found(answer)) == {"DEC-0005", "DEC-0001"}
    assert any(line.startswith("text.meaning") for line in answer[1].why)
    assert found(session.similar("cat", limit=2)) == ["DEC-0001", "DEC-0005"]


def test_a_question_makes_no_vector_and_words_answer(session: Session) -> None:
    assert found(session.query("kitten")) == ["DEC-0005"]
    assert ConceptEncoder.asked == []
    assert not the_file(session).exists()


def test_off_counts_no_meaning(session: Session, store: Store) -> None:
    session.index()
    (store.path / "config.yaml").write_text("format: 1\nsemantic: off\n")
    with Store.open(store.path).session("s") as other:
        assert found(other.query("kitten")) == ["DEC-0005"]
        assert other.index().semantic is False


@pytest.mark.parametrize("is_installed", [True, False])
def test_installed_is_used_and_absent_is_not_missed(
    session: Session, monkeypatch: pytest.MonkeyPatch, is_installed: bool
) -> None:
    if not is_installed:
        monkeypatch.setattr(vectors, "find_encoder", lambda: None)
    assert session.index().semantic is is_installed
    answer = session.query("kitten", explain=True)
    assert len(answer) == 1 + is_installed
    assert answer.problems == ()


def test_on_without_the_packages_is_one_sentence(
    session: Session, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "find_encoder", lambda: None)
    (store.path / "config.yaml").write_text("format: 1\nsemantic: on\n")
    with Store.open(store.path).session("s") as other:
        for ask in (lambda: other.query("cat"), other.index, lambda: other.similar("cat")):
            with pytest.raises(InvalidError, match=r"semantic is on, but smp-git\[semantic\]") as e:
                ask()
            assert e.value.hint and "pip install" in e.value.hint
        assert other.query(kinds=["decision"]).total == 5


# What has no vector yet


def test_what_has_no_vector_keeps_its_place_among_its_like(session: Session) -> None:
    session.index()
    session.add("decision", "a kitten, a kitten and a kitten more")
    answer = session.query("kitten", explain=True)

    assert set(found(answer)) == {"DEC-0006", "DEC-0005", "DEC-0001"}
    assert found(answer)[-1] == "DEC-0001"
    newest = next(hit for hit in answer if hit.id == "DEC-0006")
    assert any(line.startswith("text.no vector") for line in newest.why)


def test_explain_says_how_many_are_missing(session: Session) -> None:
    said = "5 memories have no vector yet, so words alone count there: smp index makes them"
    assert session.query("kitten", explain=True).problems == (said,)
    assert session.query("kitten").problems == ()
    session.index()
    session.add("decision", "one more")
    assert session.query("kitten", explain=True).problems[0].startswith("1 memory has no vector")


# Cold, warm, made anew


def test_answers_are_the_same_cold_warm_and_made_anew(session: Session, store: Store) -> None:
    session.query("kitten")
    session.index()
    warm = plain(session.query("kitten interest", explain=True))
    with store.session("s") as cold:
        assert plain(cold.query("kitten interest", explain=True)) == warm
    the_file(session).unlink()
    (session.path / ".git/smp/search.db").unlink()
    with store.session("s") as bare:
        bare.index()
        assert plain(bare.query("kitten interest", explain=True)) == warm
    assert plain(session.query("kitten interest", explain=True)) == warm


def test_a_commit_before_any_memory_answers_nothing(session: Session) -> None:
    first = git(session.path, "rev-list", "--max-parents=0", "HEAD").strip()

    assert session.query("cat")
    assert not session.query("cat", at=first)
    assert session.query("cat")


def test_an_edit_makes_one_vector(session: Session) -> None:
    session.index()
    session.edit("DEC-0002", text="a car went")
    ConceptEncoder.asked.clear()

    assert session.index().made == 1
    assert ["car" in text for text in ConceptEncoder.asked] == [True]


def test_an_interrupted_index_goes_on_where_it_stopped(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_TOGETHER", 2)
    seen: list[tuple[int, int]] = []

    def interrupt(what: str, made: int, missing: int) -> None:
        if what == "vectors":
            seen.append((made, missing))
            if made == 4:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        session.index(progress=interrupt)
    assert seen == [(2, 5), (4, 5)]
    assert session.index().made == 1


def test_time_for_it_is_bounded(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vectors, "_TOGETHER", 2)

    assert vectors.index(session._handle, seconds=0).missing == 5


@pytest.mark.parametrize(
    "harm",
    [
        lambda data: b"",
        lambda data: b"something else",
        lambda data: data[:60],
        lambda data: data[:-5],
        lambda data: data[:100] + bytes([data[100] ^ 1]) + data[101:],
        lambda data: data[:20] + b"?" + data[21:],
    ],
    ids=["empty", "foreign", "head", "torn", "flipped", "other model"],
)
def test_a_damaged_file_costs_vectors_only(session: Session, harm: Any) -> None:
    session.index()
    right = plain(session.query("kitten", explain=True))
    the_file(session).write_bytes(harm(the_file(session).read_bytes()))
    assert "DEC-0005" in found(session.query("kitten"))

    assert session.index().made >= 1
    assert session.index().made == 0
    assert plain(session.query("kitten", explain=True)) == right


def test_sessions_are_asked_together_whoever_has_vectors(session: Session, store: Store) -> None:
    session.index()
    with store.create_session("t", user="ada") as bare:
        bare.add("decision", "a kitten here")
    answer = store.query("kitten")

    assert {(hit.session, hit.id) for hit in answer} == {
        ("s", "DEC-0005"), ("s", "DEC-0001"), ("t", "DEC-0001"),
    }  # fmt: skip


# Between questions


def test_vectors_are_made_between_questions(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vectors, "_QUIET_SECONDS", 0.01)
    session.query("kitten")
    until = time.monotonic() + 60
    while len(session.query("kitten")) < 2 and time.monotonic() < until:
        time.sleep(0.1)

    assert len(session.query("kitten")) == 2
    session.add("decision", "one more kitten")
    while session.index().made and time.monotonic() < until:
        time.sleep(0.1)


def test_nothing_goes_on_after_close(store: Store, session: Session) -> None:
    other = store.session("s")
    other.query("kitten")
    keeper = other._desk._keeper
    assert keeper is not None
    other.close()

    assert not keeper._thread.is_alive()


def test_a_question_stops_what_is_made_between(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.query("kitten")
    keeper = session._desk._keeper
    assert keeper is not None
    keeper._asked_at = -1e9
    keeper._seen = session.head

    class Asked(ConceptEncoder):
        def vector(self, text: str) -> bytes:
            assert session._desk.finder is not None  # asked for, as by a question
            return super().vector(text)

    keeper._meanings.encoder = Asked()
    keeper.step()

    assert len(ConceptEncoder.asked) == 1
    assert session.index().made == 4


# The real one


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


def test_equal_texts_get_equal_vectors_from_many_threads() -> None:
    from concurrent.futures import ThreadPoolExecutor

    encoder = real()
    texts = [f"{text} {number}" for text in TEXTS for number in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(encoder.vector, texts)) == list(map(encoder.vector, texts))


def test_other_weights_are_refused_and_words_answer(
    session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real()
    session.index()
    (tmp_path / "model.onnx").write_bytes(b"something else")
    unfit = Encoder(tmp_path / "model.onnx", tmp_path / "tokenizer.json")
    monkeypatch.setattr(vectors, "find_encoder", lambda: unfit)
    monkeypatch.setattr(meanings.Encoder, "matrix", lambda self, rows: list(rows))
    with Store.open(session.path.parent.parent).session("s") as other:
        answer = other.query("kitten")
        assert found(answer) == ["DEC-0005"]
        assert "model.onnx" in answer.problems[0]
        other.add("decision", "more")
        with pytest.raises(InvalidError, match=r"model\.onnx is not the file"):
            other.index()


@pytest.mark.parametrize("text", ["", "\0", "\ud800", "🙂" * 300, "x" * 5_000, "東京"])
def test_every_text_has_a_vector(text: str) -> None:
    assert len(real().vector(text)) == 768


# In maintenance


def test_maintenance_makes_the_vectors_that_are_missing_once(
    session: Session, store: Store
) -> None:
    session.close()
    store.configure({"readme": "off"})
    planned = store.maintain(dry_run=True)
    assert ConceptEncoder.asked == []
    assert not the_file(session).exists()

    done = store.maintain()

    assert [(each.step, each.count) for each in done.actions] == [("vectors", 5)]
    assert planned.failed == {}
    assert len(ConceptEncoder.asked) == 5
    with store.session("s") as again:
        assert set(found(again.query("kitten"))) == {"DEC-0005", "DEC-0001"}
        again.add("decision", "the rate rises")
    ConceptEncoder.asked.clear()
    assert [(each.step, each.count) for each in store.maintain().actions] == [("vectors", 1)]
    ConceptEncoder.asked.clear()
    assert store.maintain().actions == ()
    assert ConceptEncoder.asked == []


def test_maintenance_makes_none_where_meaning_is_off_or_time_is_up(
    session: Session, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    session.close()
    store.configure({"semantic": "off", "readme": "off"})
    assert store.maintain().actions == ()
    store.configure({"semantic": None})
    monkeypatch.setattr(maintenance, "_VECTOR_SECONDS", 0.0)
    assert store.maintain().actions == ()
    monkeypatch.undo()
    monkeypatch.setattr(vectors, "find_encoder", lambda: None)
    assert store.maintain().actions == (), "nor without the packages"
    assert not the_file(session).exists()
