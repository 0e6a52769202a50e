r"""Which regexes of a user can be trusted with any text.

Python's `re` backtracks, so a careless regex can run for years on a short text. A
user's regex is accepted if its source shows that it cannot:

1. It is at most 300 characters long, compiles, and cannot match the empty text.
2. It has no backreference, condition, atomic group or comment, and its look-arounds
   hold nothing of variable length.
3. A group that is repeated holds neither a variable quantifier nor an alternative;
   a group with alternatives holds no variable quantifier. `(a+)+` and `(a|b)*` are
   refused, `(?:ab){3}`, `(?:\d{4} ?){3}` and `(?:key|token)` are not.
4. Between two long quantifiers (`+`, `*`, or a range wider than 8) stands a mandatory
   character that the first cannot match, or (once) that the second cannot: `\w+@\w+`
   but not `\w+.*\w+;`. A quantifier that ends the regex is free.
5. Short ranges and alternatives together leave at most 16 ways to match.

What is accepted takes at most quadratic time, and sees one line, or 512 characters of
a longer line, at a time.
"""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass, replace
from itertools import pairwise

from smp_git.model.secrets.evidence import Pattern

# Long enough for every rule of the published rule sets that fits the other limits.
MAX_SOURCE = 300
# A wider range is treated as if it had no end.
MAX_SHORT = 8
# Times the square of a line: some ten milliseconds for the worst line.
MAX_WAYS = 16
# A fixed repetition of a group is written out; this bounds what is written out.
MAX_ITEMS = 400

_NAME = re.compile(r"[a-z0-9-]{1,64}")
_ELEMENT = re.compile(
    r"""
      (?P<flags> \(\?[aimsu]+\) )
    | (?P<look> \(\?<?[=!] )
    | (?P<group> \((?:\?(?:P<\w+>|:))?(?!\?) )
    | (?P<close> \) )
    | (?P<either> \| )
    | (?P<edge> \^|\$|\\[AbBZ] )
    | (?P<atom> \\(?![1-9])[\s\S] | \[\^?\]?(?:\\[\s\S]|[^\]\\])*\] | [^*+?{\\(\[] | \{(?!\d*,?\d*\}) )
    """,
    re.VERBOSE,
)
_QUANTIFIER = re.compile(r"(?:(?P<sign>[*+?])|\{(?P<least>\d*)(?P<comma>,?)(?P<most>\d*)\})[?+]?")
# Stands for every kind of character a class may tell apart.
_SAMPLE = "".join(map(chr, range(128))) + "é中٣\u017f\u212a\u00a0"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Item:
    """One character, or an opaque group, and how often it may stand."""

    source: str | None
    least: int = 1
    most: float = 1
    ways: int = 1

    @property
    def varies(self) -> bool:
        return self.least != self.most

    @property
    def is_long(self) -> bool:
        return self.most - self.least > MAX_SHORT


_EDGE = _Item(source=None, least=0, most=0)


def compile_user_pattern(text: str, name: str = "custom") -> Pattern:
    """Return the pattern of a user's regex `text`, which may hold a group `secret`.

    Raises:
        ValueError: The regex does not compile, matches the empty text, or may take
            more than quadratic time; the message says which rule it breaks.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"a pattern's name is lower case letters, digits, -: {name!r}")
    if len(text) > MAX_SOURCE:
        raise ValueError(f"the pattern is longer than {MAX_SOURCE} characters")
    regex = _compile(text)
    for branch in _Reader(text).read():
        _check_branch(branch, regex.flags, text)
    return Pattern(name=name, source=text, by_line=True, shortest=1)


def _compile(text: str) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return re.compile(text)
        except (re.error, OverflowError, RecursionError, Warning) as error:
            raise ValueError(f"the pattern does not compile: {error}") from error


class _Reader:
    """A position in the source of a regex that compiles."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._at = 0

    def read(self) -> list[list[_Item]]:
        """Return the alternatives up to the end of the group, or of the source."""
        branches: list[list[_Item]] = [[]]
        while self._at < len(self._source):
            element = _ELEMENT.match(self._source, self._at)
            if element is None:
                raise ValueError(
                    f"the pattern uses {self._source[self._at :][:8]!r}, which is not supported"
                )
            self._at = element.end()
            kind = element.lastgroup
            if kind == "close":
                break
            if kind == "either":
                branches.append([])
                continue
            branches[-1].extend(self._read_element(kind, element[0]))
            if sum(map(len, branches)) > MAX_ITEMS:
                raise ValueError("the pattern repeats too much")
        return branches

    def _read_element(self, kind: str | None, source: str) -> list[_Item]:
        match kind:
            case "flags":
                return []
            case "edge":
                return [_EDGE]
            case "look":
                _check_fixed(self.read(), "a look-around")
                self._quantify(_EDGE)
                return [_EDGE]
            case "group":
                return self._read_group()
            case _:
                return [self._quantify(_Item(source=self._read_code(source)))]

    def _read_code(self, source: str) -> str:
        r"""Return `source`, with the digits that belong to \x, \u, \U and \0."""
        more = {"\\x": 2, "\\u": 4, "\\U": 8}.get(source, 0)
        self._at += more
        return source + self._source[self._at - more : self._at]

    def _read_group(self) -> list[_Item]:
        branches = self.read()
        times = self._quantify(_Item(source=None))
        if len(branches) == 1 and not times.varies:
            return branches[0] * min(times.least, MAX_ITEMS + 1)
        _check_fixed(branches, "a repeated group, or one with alternatives,")
        if len(branches) > 1 and times.most > 1:
            raise ValueError("the pattern repeats a group that has alternatives")
        return [replace(times, ways=len(branches))]

    def _quantify(self, item: _Item) -> _Item:
        found = _QUANTIFIER.match(self._source, self._at)
        if found is None:
            return item
        self._at = found.end()
        if found["sign"]:
            least, most = {"*": (0, float("inf")), "+": (1, float("inf")), "?": (0, 1)}[
                found["sign"]
            ]
        else:
            least = int(found["least"] or 0)
            most = (
                int(found["most"]) if found["most"] else float("inf") if found["comma"] else least
            )
        return replace(item, least=least, most=most)


def _check_fixed(branches: list[list[_Item]], where: str) -> None:
    if any(item.varies for branch in branches for item in branch):
        raise ValueError(f"{where} holds a quantifier of variable length")


def _check_branch(items: list[_Item], flags: int, text: str) -> None:
    """Check one alternative against rules 1, 4 and 5 of this module."""
    if not any(item.least for item in items):
        raise ValueError("the pattern matches the empty text")
    kinds = _Kinds(flags, text)
    # What ends the regex is never tried again once it has matched.
    tried = items[:-1] if items[-1].varies else items
    long = [place for place, item in enumerate(tried) if item.is_long]
    backward = 0
    for first, second in pairwise(long):
        between = items[first + 1 : second + 1]
        if any(item.least and kinds.differ(items[first], item) for item in between):
            continue
        if not any(item.least and kinds.differ(item, items[second]) for item in between[:-1]):
            raise ValueError("nothing separates two of the pattern's long quantifiers")
        backward += 1
    if backward > 1:
        raise ValueError("too little separates the pattern's long quantifiers")
    if _ways(tried, kinds) > MAX_WAYS:
        raise ValueError("the pattern can match in too many ways")


def _ways(items: list[_Item], kinds: _Kinds) -> float:
    ways: float = 1
    for item, follower in zip(items, [*items[1:], _EDGE], strict=True):
        ways *= item.ways
        settled = follower.least and kinds.differ(item, follower)
        if item.varies and not item.is_long and not settled:
            ways *= item.most - item.least + 1
    return ways


class _Kinds:
    """Which characters the items of one regex match."""

    def __init__(self, flags: int, text: str) -> None:
        self._flags = flags & (re.IGNORECASE | re.ASCII | re.DOTALL)
        self._sample = _SAMPLE + text + text.swapcase()

    def differ(self, one: _Item, other: _Item) -> bool:
        """Say whether no character is matched by both; opaque groups match any."""
        if one.source is None or other.source is None:
            return False
        return not self._characters(one.source) & self._characters(other.source)

    def _characters(self, source: str) -> set[str]:
        return set(re.findall(source, self._sample, self._flags))
