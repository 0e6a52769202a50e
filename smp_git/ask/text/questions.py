"""What a question asks for."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from smp_git.ask.text.words import STOP_WORDS, tokens, words

# Longer questions are pasted texts; what follows changes nothing but the time it takes.
_LONGEST_CHARACTERS: Final = 20_000
_MOST_WORDS: Final = 256
_MOST_PHRASES: Final = 16
_PHRASE: Final = re.compile(r"[\"“”„«]([^\"“”„«»]+)[\"“”»]")
_FIRST_PERSON: Final = frozenset({"i", "i'm", "i've", "me", "mine", "my", "our", "we"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """Words that must stand side by side; a prefix stands for every word it begins."""

    words: tuple[str, ...]
    prefixes: frozenset[int] = frozenset()

    def matches(self, words: Sequence[str]) -> bool:
        """Return whether `words`, as many as there are in the pattern, match it."""
        return all(
            word.startswith(wanted) if place in self.prefixes else word == wanted
            for place, (word, wanted) in enumerate(zip(words, self.words, strict=True))
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question taken apart: words to match by stem, patterns to match to the letter.

    `names` are words that may name somebody: `said` holds them all, `capitals` those
    written with a capital.
    """

    text: str
    words: tuple[str, ...]
    patterns: tuple[Pattern, ...]
    said: frozenset[str]
    capitals: frozenset[str]

    @property
    def is_first_person(self) -> bool:
        """Whether the asker speaks of themselves."""
        return not self.said.isdisjoint(_FIRST_PERSON)


def parse(question: str) -> Question:
    """Return what `question` asks for; every string is a question."""
    text = question[:_LONGEST_CHARACTERS]
    quoted = [found for part in _PHRASE.findall(text) if (found := _pattern(part))]
    loose = _PHRASE.sub(" ", text)
    starred = [_pattern(part) for part in loose.split() if _is_starred(part)]
    plain = " ".join(part for part in loose.split() if not _is_starred(part))
    said = tuple(dict.fromkeys(words(plain)))[:_MOST_WORDS]
    patterns = tuple(dict.fromkeys(p for p in quoted + starred if p))[:_MOST_PHRASES]
    content = tuple(word for word in said if word not in STOP_WORDS)
    return Question(
        text=text,
        # Only stop words are a question too ("the who"), if nothing else was asked.
        words=content if content or patterns else said,
        patterns=patterns,
        said=frozenset(said),
        capitals=frozenset(token.word for token in tokens(plain) if plain[token.start].isupper()),
    )


def _is_starred(part: str) -> bool:
    return re.search(r"\w\*", part) is not None


def _pattern(text: str) -> Pattern | None:
    found = tokens(text)
    starred = {i for i, token in enumerate(found) if text[token.end : token.end + 1] == "*"}
    if not found:
        return None
    return Pattern(words=tuple(t.word for t in found), prefixes=frozenset(starred))
