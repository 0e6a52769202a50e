"""Words of a question that name a field: they steer the answer instead of being looked for."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Final, NamedTuple

from smp_git.ask.text import asked_words
from smp_git.model.memory import SEVERITIES

# What a score by text keeps where a memory is not of the kind, or lacks the value, asked for.
_OTHER_KIND: Final = 0.7
_OTHER_VALUE: Final = 0.5
# Words that name a kind, and those that say what somebody did who wrote one.
_KIND_WORDS: Final = {
    "turn": "say says said mention mentioned",
    "decision": "decision decisions decide decided deciding",
    "finding": "finding findings",
    "preference": "preference preferences prefer prefers preferred",
    "learning": "learnings learned learnt lesson lessons",
    "artifact": "artifact artifacts",
}
_KINDS: Final = {word: kind for kind, words in _KIND_WORDS.items() for word in words.split()}
_STATE: Final = re.compile(r"\bworking on\b", re.IGNORECASE)
# What has a severity and a status, whatever it is called.
_THINGS: Final = frozenset({"bug", "bugs", "issue", "issues", "problem", "problems"})
_STATUSES: Final[Mapping[str, str]] = MappingProxyType({"unresolved": "open", "unsolved": "open"})
# Beside words that steer, these ask for nothing more.
_FILLERS: Final = frozenset(
    {"currently", "left", "now", "remain", "remaining", "still", "there", "today", "yet"}
)


class Steer(NamedTuple):
    """A value that a field should have, and the word of the question that says so."""

    field: str
    value: str
    word: str

    @property
    def factor(self) -> float:
        """What a score by text is multiplied by where the field has another value."""
        return _OTHER_KIND if self.field == "kind" else _OTHER_VALUE


class Steering(NamedTuple):
    """All that steers; alone if the question says nothing else."""

    steers: tuple[Steer, ...] = ()
    is_alone: bool = False

    @property
    def words(self) -> frozenset[str]:
        """The words of the question that steer."""
        return frozenset(each.word for each in self.steers)


@lru_cache(maxsize=256)
def _named(text: str) -> tuple[tuple[Steer, ...], tuple[Steer, ...], frozenset[str]]:
    """Return which kinds a question names, which other values it may mean, and all else."""
    asked = asked_words(text)
    kinds = [Steer("kind", _KINDS[word], word) for word in asked if word in _KINDS]
    if _STATE.search(text):
        kinds.append(Steer("kind", "state", "working"))
    taken = {each.word for each in kinds}
    rest = [word for word in asked if word not in taken]
    values = [Steer("severity", word, word) for word in rest if word in SEVERITIES]
    values += [Steer("pinned", "true", word) for word in rest if word == "pinned"]
    values += [Steer("status", _STATUSES.get(word, word), word) for word in rest]
    return tuple(kinds), tuple(values), frozenset(rest) - _FILLERS


def steering(text: str, has: Callable[[str, str], object], fixed: Sequence[str]) -> Steering:
    """Return what steers the answer to a text.

    `has` tells whether any memory has a value; a filter fixes a field already. An adjective
    like "open" steers what can be open: a kind, a bug, or everything if nothing else is asked.
    """
    kinds, values, rest = _named(text)
    possible = [each for each in values if has(each.field, each.value)]
    plain = rest - {each.word for each in possible}
    if not kinds and plain and not plain & _THINGS:
        possible = []
    found = [each for each in (*kinds, *possible) if each.field not in fixed]
    return Steering(tuple(found), is_alone=bool(found) and not plain - _THINGS)
