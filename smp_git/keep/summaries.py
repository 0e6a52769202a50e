"""Summaries of old conversation: sentences of the turns, or what a user's own program prints."""

from __future__ import annotations

import math
import re
import shlex
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Final, NamedTuple

from smp_git.model.errors import CompactionFailedError
from smp_git.model.ids import Id, parse_id
from smp_git.model.memory import KINDS, MAX_CONTENT_BYTES, Memory, Value
from smp_git.model.settings import Settings
from smp_git.read.derived import AGENT, SOURCES, SUMMARY, ranges, tag_of

# Turns are summarised in blocks of these numbers, so that replicas take the same ones together.
BLOCK: Final = 50
# The source of a summary that is not made of the words of its turns.
BY_PROGRAM: Final = "summarizer"
# A summary takes at most this part of the bytes of its turns.
_SHARE: Final = 0.2
_LONGEST_SENTENCE: Final = 400
_SENTENCE: Final = re.compile(r"[^.!?\n]+(?:[.!?]+(?=\S)[^.!?\n]*)*[.!?]*")
_WORD: Final = re.compile(r"[^\W_]+(?:[-'./:@][^\W_]+)*")
_NUMBER: Final = re.compile(r"\d")
_DECIDED: Final = re.compile(
    r"\b(?:decid\w*|agree\w*|chose\w*|choose|will|must|never|always|instead|approved|rejected|switch\w*|use|"
    r"deadline|due|because|blocked|fixed|root cause|prefer\w*|means?|turned out|conclu\w*)\b",
    re.IGNORECASE,
)
_IDENTIFIER: Final = re.compile(r"[A-Z]{2,}-?\d*|\w+[./_]\w+|\w+\(\)|#\d+|v\d+(?:\.\d+)*")


class SourceTurn(NamedTuple):
    """A turn, and the object that its file is."""

    memory: Memory
    blob: str


def summary(turns: Sequence[SourceTurn], settings: Settings) -> Memory:
    """Return the summary of some turns: its id and, without a program, its text follow from them."""
    memories = [turn.memory for turn in turns]
    text = _by_program(memories, settings) if settings.summarizer else extract(memories)
    source = BY_PROGRAM if settings.summarizer else ""
    return _memory(memories, [turn.blob for turn in turns], text, source)


def _memory(turns: Sequence[Memory], blobs: Iterable[str], text: str, source: str) -> Memory:
    said = ranges(turn.id for turn in turns)
    newest = max(turns, key=lambda turn: turn.created_at)
    first = min(parse_id(turn.id).number for turn in turns)
    place = Id(KINDS["artifact"], first, tag_of([*blobs, *(turn.id for turn in turns)]))
    title = f"Conversation {turns[0].id} to {turns[-1].id}"
    fields: dict[str, Value] = {"type": SUMMARY, SOURCES: said}
    if source:
        fields["source"] = source
    return Memory(
        id=place.text,
        kind="artifact",
        created_at=newest.created_at,
        agent=AGENT,
        content=f"# {title}\n\n{text}\n",
        title=title,
        fields=fields,
        path=place.path,
    )


class _Sentence(NamedTuple):
    """A whole sentence of a turn, and what speaks for it."""

    turn: int
    place: int
    text: str
    marks: frozenset[str]
    weight: float


def extract(turns: Sequence[Memory], share: float = _SHARE) -> str:
    """Return the sentences of some turns that say the most, in their order, each by its turn.

    Sentences are taken whole and as they are, so that a text that is redacted or deleted
    is found in a summary too.
    """
    sentences = [each for number, turn in enumerate(turns) for each in _sentences(number, turn)]
    room = int(share * sum(len(turn.content.encode()) for turn in turns))
    taken = _chosen(sentences, room)
    lines = []
    for number, turn in enumerate(turns):
        own = [each.text for each in taken if each.turn == number]
        if own:
            speaker = turn.fields.get("speaker") or turn.fields.get("role") or turn.agent
            lines.append(f"- {turn.id} {speaker}: {' '.join(own)}")
    return "\n".join(lines) if lines else f"{len(turns)} turns."


def _chosen(sentences: Sequence[_Sentence], room: int) -> list[_Sentence]:
    """Return the sentences that together say the most new, as many as there is room for."""
    common = Counter(mark for each in sentences for mark in each.marks)
    seen, taken = set[str](), list[int]()

    def gain(place: int) -> float:
        each = sentences[place]
        fresh = sum(1.0 + 1.0 / common[mark] for mark in each.marks - seen)
        return (fresh + each.weight) / math.sqrt(80 + len(each.text.encode()))

    # What a sentence adds only falls while others are taken, so the best is known at once.
    waiting = [(-gain(place), place) for place in range(len(sentences))]
    heapify(waiting)
    while waiting:
        before, best = heappop(waiting)
        fresh = gain(best)
        if fresh < -before and waiting and waiting[0][0] < -fresh:
            heappush(waiting, (-fresh, best))
            continue
        needed = len(sentences[best].text.encode()) + 30
        if needed <= room:
            room -= needed
            seen |= sentences[best].marks
            taken.append(best)
    return [sentences[place] for place in sorted(taken)]


def _sentences(number: int, turn: Memory) -> Iterator[_Sentence]:
    place = 0
    for match in _SENTENCE.finditer(turn.content):
        said = " ".join(match[0].split())
        if not _WORD.search(said) or len(said) > _LONGEST_SENTENCE or said not in match[0]:
            continue
        marks = frozenset(_marks(said))
        decided = 1.5 if _DECIDED.search(said) else 0.0
        if not marks and not decided:
            continue
        asked = -1.0 if said.endswith("?") else 0.0
        yield _Sentence(number, place, said, marks, max(0.0, decided + asked) + 0.1 / (1 + place))
        place += 1


def _marks(text: str) -> Iterator[str]:
    """Yield what tells a sentence from others: names, numbers, identifiers."""
    for match in _IDENTIFIER.finditer(text):
        yield match[0]
    for number, match in enumerate(_WORD.finditer(text)):
        word = match[0]
        if _NUMBER.search(word) or (word[0].isupper() and (number or word[1:].lower() != word[1:])):
            yield word.casefold()


def _by_program(turns: Sequence[Memory], settings: Settings) -> str:
    """Return what the user's own program says of some turns; raise CompactionFailedError."""
    given = "\n\n".join(f"{turn.id} {turn.agent}:\n{turn.content}" for turn in turns)
    command, limit = settings.summarizer or "", settings.summarizer_timeout_seconds
    try:
        done = subprocess.run(  # noqa: S603 - named by this machine's config.yaml alone
            shlex.split(command),
            input=given.encode(),
            capture_output=True,
            timeout=limit,
            check=True,
        )
        text = done.stdout.decode().strip()
    except subprocess.TimeoutExpired:
        raise _failed(f"takes longer than {limit:g} s") from None
    except subprocess.CalledProcessError as error:
        raise _failed(f"ended with {error.returncode}") from None
    except UnicodeDecodeError:
        raise _failed("does not print UTF-8") from None
    except (OSError, ValueError) as error:
        raise _failed(f"cannot be run: {error}") from None
    if not text or len(text.encode()) > MAX_CONTENT_BYTES // 2:
        raise _failed("prints nothing, or too much")
    return settings.rules.text(text)[0]


def _failed(why: str) -> CompactionFailedError:
    return CompactionFailedError(
        f"the summarizer {why}; nothing was changed",
        hint="check summarizer in config.yaml, or remove it: sentences of the conversation will do",
    )
