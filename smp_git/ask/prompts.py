"""Prompts as questions: what of a prompt the text search is asked, whatever it holds."""

from __future__ import annotations

import re
from typing import Final

# So many different words, from both ends: what is asked stands before or after what is pasted.
_WORDS: Final = 48
# A text of megabytes is not looked through: both its ends are.
_LONGEST: Final = 16_384
_NAMED: Final = 10
# What has a meaning in a query, and none in a sentence.
_SIGNS = re.compile(r'[\x00-\x20"“”„«»*?]+')
_ID = re.compile(r"\b(?:turn|DEC|FIND|PREF|LEARN|ART)-?[0-9]{1,18}(?:-[a-z][a-z0-9]{3})?\b", re.I)


def question(prompt: str) -> str:
    """Return the text that is searched for, of a bounded number of words; perhaps none."""
    words = list(dict.fromkeys(_SIGNS.sub(" ", _ends(_readable(prompt))).split()))
    if len(words) > _WORDS:
        words = words[: _WORDS // 2] + words[-_WORDS // 2 :]
    return " ".join(words)


def named_ids(prompt: str) -> list[str]:
    """Return what looks like the id of a memory, each once."""
    return list(dict.fromkeys(_ID.findall(_ends(prompt))))[:_NAMED]


def _readable(prompt: str) -> str:
    return prompt.encode("utf-8", "replace").decode()


def _ends(text: str) -> str:
    half = _LONGEST // 2
    return text if len(text) <= _LONGEST else f"{text[:half]} {text[-half:]}"
