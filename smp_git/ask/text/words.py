"""Words of a text: Unicode, without case, accents and possessives; and their stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Final, NamedTuple

# A longer run of letters is no word (base64, a hash); its beginning stands for it.
_LONGEST: Final = 64
# Scripts written without spaces: every character is a word.
_UNSPACED: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"

_ASCII_WORD: Final = re.compile(
    r"(?<![a-z0-9]')[a-z0-9]+(?:'(?!s(?![a-z0-9]))[a-z0-9]+)*", re.IGNORECASE
)
# What is not inside a word: a possessive ending, a quotation mark.
_OUTER_APOSTROPHE: Final = re.compile(
    r"'(?:(?<=[a-z0-9]')s(?![a-z0-9])|(?![a-z0-9])|(?<![a-z0-9]'))"
)
_SEPARATORS: Final = {
    code: " " for code in range(128) if not chr(code).isalnum() and chr(code) != "'"
}

_STOP_WORDS: Final = """
a about after all also am an and any anybody anyone anything are aren't as at be because been
before being both but by can can't cannot could couldn't currently did didn't do does doesn't doing
don't during each else ever everybody everyone everything few for from further had hadn't happen
happened happening has hasn't have haven't having he her here hers herself him himself his how i
i'd i'll i'm i've if in into is isn't it its itself just let me more most much my myself no nobody
nor not nothing now of off on once only or other our ours ourselves out over own please same shall
she should so some somebody someone something still such than that the their theirs them
themselves then there these they this those through to too under until up upon us very was wasn't
we were weren't what when where which while who whom whose why will with won't would wouldn't yet
you your yours yourself yourselves
"""
STOP_WORDS: Final = frozenset(_STOP_WORDS.split())


class Token(NamedTuple):
    """A word and where in its text it stands."""

    word: str
    start: int
    end: int


def words(text: str) -> list[str]:
    """Return the words of `text` in order, folded."""
    if not text.isascii():
        return [fold(word) for word in _word().findall(text)]
    lowered = text.lower()
    if "'" in lowered:
        lowered = _OUTER_APOSTROPHE.sub(" ", lowered)
    # Three times as fast as finding each word with the pattern.
    found = lowered.translate(_SEPARATORS).split()
    if max(map(len, found), default=0) > _LONGEST:
        return [word[:_LONGEST] for word in found]
    return found


def spaced(several: Iterable[str]) -> str:
    """Return words with a space before and after each, as patterns are looked for."""
    return f" {' '.join(several)} "


def tokens(text: str) -> list[Token]:
    """Return the words of `text` with their places in it."""
    pattern = _ASCII_WORD if text.isascii() else _word()
    return [Token(fold(m[0]), m.start(), m.end()) for m in pattern.finditer(text)]


@lru_cache(maxsize=65_536)
def fold(word: str) -> str:
    """Return `word` without case and accents."""
    if not word.isascii():
        letters = unicodedata.normalize("NFKD", word)
        word = "".join(x for x in letters if not unicodedata.combining(x) and x != " ")
        word = word.replace("\u2019", "'").replace("\u02bc", "'")
    return word.casefold()[:_LONGEST]


@cache
def _word() -> re.Pattern[str]:
    r"""Return the pattern of a word in any script.

    Marks belong to their letter (Devanagari vowels, decomposed accents), but `\w` leaves
    them out, and finding them all takes a while: so only a text with such letters pays.
    """
    marks = "".join(
        letter
        for letter in map(chr, range(0x300, 0x1E00))
        if unicodedata.category(letter).startswith("M")
    )
    letter = rf"[^\W_{_UNSPACED}]"
    run = rf"{letter}(?:{letter}|[{marks}])*"
    inner = "['\u2019\u02bc]"
    return re.compile(
        rf"[{_UNSPACED}]|(?<!\w{inner}){run}(?:{inner}(?!s(?!\w)){run})*", re.IGNORECASE
    )


# Porter's rules know endings only; these are the forms that change the word itself.
_FORMS: Final = """
be am are been being is was were; become became; begin began begun; break broke broken;
bring brought; build built; buy bought; catch caught; child children; choose chose chosen;
come came; do did does doing done; draw drawn drew; drink drank drunk; drive driven drove;
eat ate eaten; fall fallen fell; feel felt; fight fought; find found; fly flew flies flown;
foot feet; forget forgot forgotten; get got gotten; give gave given; go goes gone went;
good best better; grow grew grown; have had has having; hear heard; hide hid hidden;
hold held; keep kept; know knew known; lead led; learn learnt; leave left; life lives;
lose lost; make made; man men; mean meant; meet met; mouse mice; pay paid; person people;
ride ridden rode; ring rang rung; rise risen rose; run ran; say said; see saw seen;
sell sold; send sent; shoot shot; sing sang sung; sit sat; sleep slept; speak spoke spoken;
spend spent; stand stood; steal stole stolen; swim swam swum; take taken took; teach taught;
tell told; think thought; throw threw thrown; tooth teeth; understand understood;
wake woke woken; wear wore worn; wife wives; win won; woman women; write written wrote
"""
# What is compared: -er and -est are endings of these, and not of flower, order or user.
_COMPARED: Final = """
big bright broad cheap clean clear close cold cool dark deep dry early easy fast fine fresh
full great happy hard heavy high hot large light long loud low narrow near new nice old
poor quick quiet rich rough safe sharp short simple slow small smart smooth soft strong sweet
tall thick thin tight tiny warm weak wide young
"""
_IRREGULAR: Final = {
    form: forms.split()[0] for forms in _FORMS.split(";") for form in forms.split()[1:]
} | {
    f"{re.sub('y$', 'i', word.removesuffix('e'))}{double}{ending}": word
    for word in _COMPARED.split()
    for double in ("", word[-1])
    for ending in ("er", "est")
}


def _endings(least: int, pairs: str) -> tuple[int, dict[str, str], re.Pattern[str]]:
    """Return how much must be left, what each ending becomes, and a pattern of the longest."""
    instead = dict(pair.split("=") for pair in pairs.split())
    # After s or t alone, -ion is an ending.
    listed = "|".join(instead).replace("|ion|", "|(?<=[st])ion|")
    return least, instead, re.compile(f"(.*?)({listed})$")


_DERIVED: Final = (
    _endings(
        1,
        "ational=ate tional=tion enci=ence anci=ance izer=ize abli=able alli=al entli=ent eli=e "
        "ousli=ous ization=ize ation=ate ator=ate alism=al iveness=ive fulness=ful ousness=ous "
        "aliti=al iviti=ive biliti=ble",
    ),
    _endings(1, "icate=ic ative= alize=al iciti=ic ical=ic ful= ness="),
    _endings(
        2,
        "ement= ance= ence= able= ible= ment= ant= ent= ism= ate= iti= ous= ive= ize= ion= al= "
        "er= ic= ou=",
    ),
)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return what inflections of `word`, which is folded, have in common: Porter's stem."""
    word = _IRREGULAR.get(word, word)
    if len(word) < 3 or not word.isascii() or not word.isalpha():  # noqa: PLR2004 - Porter's own number
        return word
    if word.endswith(("sses", "ies")):
        word = word[:-2]
    elif word.endswith("s") and not word.endswith("ss"):
        word = word[:-1]
    word = _without_tense(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    for least, instead, pattern in _DERIVED:
        found = pattern.match(word)
        if found and _measure(found[1]) >= least:
            word = found[1] + instead[found[2]]
    if word.endswith("e") and _measure(word[:-1]) > _ends_short(word[:-1]):
        word = word[:-1]
    return word[:-1] if word.endswith("ll") and _measure(word) > 1 else word


def _without_tense(word: str) -> str:
    """Return a verb without -ed or -ing: hop for hopped, hope for hoping."""
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    rest = re.sub("(ed|ing)$", "", word)
    if rest == word or "v" not in _shape(rest):
        return word
    if rest.endswith(("at", "bl", "iz")):
        return rest + "e"
    if rest[-2:-1] == rest[-1] and rest[-1] not in "aeioulsz":
        return rest[:-1]
    return rest + "e" if _measure(rest) == 1 and _ends_short(rest) else rest


def _shape(word: str) -> str:
    """Return `word` with each letter as c (consonant) or v (vowel)."""
    shape = ""
    for letter in word:
        vowel = letter in "aeiou" or (letter == "y" and shape.endswith("c"))
        shape += "v" if vowel else "c"
    return shape


def _measure(word: str) -> int:
    """Return how often a vowel is followed by a consonant: Porter's m."""
    return _shape(word).count("vc")


def _ends_short(word: str) -> bool:
    return _shape(word)[-3:] == "cvc" and word[-1] not in "wxy"
