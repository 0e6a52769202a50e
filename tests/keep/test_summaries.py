"""Summaries of conversation: what must stand in them, beside the first sentences of each turn."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from smp_git.keep import summaries
from smp_git.model.memory import Memory
from tests.keep.conversations import Conversation, conversations

_AT = datetime(2026, 1, 1, tzinfo=UTC)


def _turns(talk: Conversation) -> list[Memory]:
    return [
        Memory(id=f"turn-{number:04d}", kind="turn", created_at=_AT, agent=who, content=text)  # type: ignore[arg-type]
        for number, (who, text) in enumerate(talk.turns, 1)
    ]


def first_sentences(turns: list[Memory], room: int) -> str:
    """Return the first sentence of each turn, then the second, as long as there is room."""
    sentences = [re.findall(r"[^.!?]+[.!?]+", turn.content) for turn in turns]
    out: list[str] = []
    for place in range(max(map(len, sentences))):
        for each in sentences:
            if place < len(each) and sum(map(len, out)) + len(each[place]) <= room:
                out.append(each[place])
    return " ".join(out)


def shares(share: float) -> tuple[float, float]:
    """Return which parts of what is wanted stand in a summary, and in the first sentences."""
    ours = theirs = wanted = 0
    for talk in conversations():
        turns = _turns(talk)
        made = summaries.extract(turns, share)
        said = "\n".join(line.partition(": ")[2] for line in made.splitlines())
        other = first_sentences(
            turns, max(len(said), int(share * sum(len(t.content) for t in turns)))
        )
        ours += sum(each in said for each in talk.wanted)
        theirs += sum(each in other for each in talk.wanted)
        wanted += len(talk.wanted)
    return ours / wanted, theirs / wanted


def test_summaries_hold_more_of_what_matters_than_first_sentences() -> None:
    for share in (0.2, 0.3, 0.4, 0.6):
        ours, theirs = shares(share)
        assert ours > theirs + 0.15, share


def test_sentences_are_taken_whole_and_as_they_are() -> None:
    for talk in conversations():
        turns = _turns(talk)
        for line in summaries.extract(turns, 0.5).splitlines():
            name, _, said = line[2:].partition(" ")
            content = next(turn.content for turn in turns if turn.id == name)
            for sentence in re.findall(r"[^.!?]+[.!?]+(?=\s|$)", said.partition(": ")[2]):
                assert sentence.strip() in content


def test_a_megabyte_is_summarised_in_time() -> None:
    text = " ".join(
        f"Sentence {number} says that Vendor{number} pays {number} euros."
        for number in range(20_000)
    )
    turn = Memory(id="turn-0001", kind="turn", created_at=_AT, agent="user", content=text)  # type: ignore[arg-type]

    made = summaries.extract([turn])

    assert 0.1 * len(text) < len(made) < 0.25 * len(text)
