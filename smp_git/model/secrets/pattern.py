"""One kind of secret: its regex, its keywords and the judgement of a match."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

Judgement = Callable[[re.Match[str]], bool]

# A text's words that are shorter hold no token, so patterns of tokens do not see them.
LONG_WORD: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One kind of secret: where it may stand, and what makes it one.

    `source` must take linear time on any text. What its group `secret` matched, or
    all of it if there is no such group, is replaced when `accepts` says so.
    A text that holds none of `keywords` (lower case, without blanks, compared without
    case), none of `phrases` or fewer than `shortest` characters is not searched; none
    given means always. With
    `is_token` a match is at least `LONG_WORD` characters without a blank, so only
    words of that length are looked through for keywords. Where each match begins with one
    of `anchors` (lower case), the regex is tried only there. With `by_line` the regex
    sees one line, or a bounded part of a long line, at a time.
    """

    name: str
    source: str
    flags: int = 0
    keywords: tuple[str, ...] = ()
    accepts: Judgement | None = None
    shortest: int = 6
    by_line: bool = False
    is_token: bool = False
    phrases: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()

    @property
    def regex(self) -> re.Pattern[str]:
        """The source, compiled when it is first needed: most texts need none of them."""
        return _compiled(self.source, self.flags)


@cache
def _compiled(source: str, flags: int) -> re.Pattern[str]:
    return re.compile(source, flags)
