"""The stem of an English word."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

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


def _comparisons(word: str) -> list[str]:
    if word.endswith("e"):
        return [f"{word}r", f"{word}st"]
    if word.endswith("y"):
        word = f"{word[:-1]}i"
    elif word in ("big", "hot", "thin"):
        word += word[-1]
    return [f"{word}er", f"{word}est"]


_IRREGULAR: Final = {
    form: forms.split()[0] for forms in _FORMS.split(";") for form in forms.split()[1:]
} | {form: word for word in _COMPARED.split() for form in _comparisons(word)}


def _endings(pairs: str) -> dict[str, str]:
    """Return what each ending becomes; `-` stands for nothing."""
    found = (pair.split("=") for pair in pairs.split())
    return {ending: instead.strip("-") for ending, instead in found}


_STEP_2: Final = _endings(
    "ational=ate tional=tion enci=ence anci=ance izer=ize abli=able alli=al entli=ent eli=e "
    "ousli=ous ization=ize ation=ate ator=ate alism=al iveness=ive fulness=ful ousness=ous "
    "aliti=al iviti=ive biliti=ble"
)
_STEP_3: Final = _endings("icate=ic ative=- alize=al iciti=ic ical=ic ful=- ness=-")
_STEP_4: Final = tuple(
    _endings(
        "ement=- ance=- ence=- able=- ible=- ment=- ant=- ent=- ism=- ate=- iti=- ous=- ive=- "
        "ize=- ion=- al=- er=- ic=- ou=-"
    )
)


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return what inflections of `word`, which is folded, have in common."""
    word = _IRREGULAR.get(word, word)
    if len(word) < 3 or not word.isascii() or not word.isalpha():  # noqa: PLR2004 - Porter's own number
        return word
    word = _without_plural(word)
    word = _without_tense(word)
    if word.endswith("y") and "v" in _shape(word[:-1]):
        word = word[:-1] + "i"
    word = _replaced(word, _STEP_2)
    word = _replaced(word, _STEP_3)
    return _without_e(_without_suffix(word))


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


def _without_plural(word: str) -> str:
    if word.endswith(("sses", "ies")):
        return word[:-2]
    if word.endswith("s") and not word.endswith("ss"):
        return word[:-1]
    return word


def _without_tense(word: str) -> str:
    if word.endswith("eed"):
        return word[:-1] if _measure(word[:-3]) else word
    for ending in ("ed", "ing"):
        rest = word.removesuffix(ending)
        if rest != word:
            return _repaired(rest) if "v" in _shape(rest) else word
    return word


def _repaired(word: str) -> str:
    """Return the verb that lost -ed or -ing: hop for hopp, hope for hop."""
    if word.endswith(("at", "bl", "iz")):
        return word + "e"
    if word[-2:-1] == word[-1] and word[-1] not in "aeioulsz":
        return word[:-1]
    return word + "e" if _measure(word) == 1 and _ends_short(word) else word


def _replaced(word: str, endings: dict[str, str]) -> str:
    # One look at all of them settles most words.
    if not word.endswith(tuple(endings)):
        return word
    for ending, instead in endings.items():
        if word.endswith(ending):
            rest = word.removesuffix(ending)
            return rest + instead if _measure(rest) else word
    return word


def _without_suffix(word: str) -> str:
    if not word.endswith(_STEP_4):
        return word
    for suffix in _STEP_4:
        if word.endswith(suffix):
            rest = word.removesuffix(suffix)
            kept = suffix == "ion" and not rest.endswith(("s", "t"))
            return word if kept or _measure(rest) < 2 else rest  # noqa: PLR2004 - Porter's own number
    return word


def _without_e(word: str) -> str:
    if word.endswith("e"):
        measure = _measure(word[:-1])
        if measure > 1 or (measure == 1 and not _ends_short(word[:-1])):
            return word[:-1]
    if word.endswith("ll") and _measure(word) > 1:
        return word[:-1]
    return word
