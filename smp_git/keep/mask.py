"""Names of people and projects, and paths, found in text in every spelling, with their placeholders."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from string import ascii_uppercase
from typing import Final, NamedTuple

from smp_git.model.memory import agent_name
from smp_git.model.secrets.redaction import redact

REMOVED: Final = "[REMOVED]"
# What an anonymization wrote, here or before. A project may really be called Project-X.
_SHOWN: Final = re.compile(r"(?i:user)-(\d+)|(?i:project)-([A-Za-z]{1,3})(?![^\W_])|/path/(\d+)")
# A person's placeholder as an anonymization writes it. Ids that programs give their users
# are spelled user-123, and are names.
_SHOWN_USER: Final = re.compile(r"User-\d+")
# A path of two parts or more, not part of an address or a word.
_PATH: Final = re.compile(
    r"(?<![\w:/.~\\])(?:~?(?:/[\w.@+-]+){2,}/?|[A-Za-z]:(?:\\[\w.@+ -]+)*\\[\w.@+-]+)"
)
_SUFFIX: Final = re.compile(r"\.[A-Za-z0-9]{1,8}$")
_SHORTEST_NAME: Final = 2
# A word of a person's name that stands alone is a name from this length on, and one
# behind an initial from the next.
_SHORTEST_WORD: Final = 3
_SHORTEST_SURNAME: Final = 4
# Words of names that nobody is called by.
_PARTICLES: Final = (
    "van", "von", "der", "den", "de", "la", "le", "da", "di", "del", "della", "dos", "das", "du",
    "ten", "ter", "zu", "zum", "zur", "af", "av", "bin", "ibn", "al", "el", "y", "e", "i",
)  # fmt: skip
# Who speaks, where nobody in particular does.
SPEAKERS: Final = frozenset({"user", "assistant", "system"})
_INVISIBLE: Final = re.compile("[\u00ad\u200b-\u200f\u2060\ufeff]")
# Between the words of a name: white space, also at the end of a line, or one sign.
_JOIN: Final = r"(?:\s{1,3}|[-_.'’ʼ‐‑]?)"
_MARK: Final = "['’ʼ`]"
_NEAR: Final = "['’ʼ` -]?"
_TURNED: Final = r"(?:,?\s{1,3}|[-_.]?)"
# A name ends where letters end, or where another word begins in the middle of one: NimbusApi.
_BEFORE: Final = r"(?:(?<![^\W\d_])|(?<=[a-zà-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ]))"
_AFTER: Final = r"(?:(?![^\W\d_])|(?<=[a-zà-öø-ÿ])(?=[A-ZÀ-ÖØ-Þ])|(?<=[A-Z])(?=[A-Z][a-z]))"
# Whose it is, as some languages write it: Müllers.
_OWNED: Final = r"|(?=s(?![^\W\d_]))"
# Scripts that put no space between words.
_JOINED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"
)
_HAN: Final = re.compile("[\u3400-\u9fff\uf900-\ufaff]{3,4}")
_DIGRAPHS: Final = str.maketrans(
    {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss", "å": "aa", "ø": "oe", "æ": "ae", "œ": "oe",
     "þ": "th", "ð": "d", "ł": "l", "đ": "d", "ı": "i"}
)  # fmt: skip
# Letters and digits with the accents that stand behind them.
_WORD: Final = re.compile(r"(?:[^\W_][\u0300-\u036f]*)+")
_WIDE: Final = {code: code + 0xFEE0 for code in range(0x21, 0x7F)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Switches:
    """The choices of an anonymization: names to remove, and what to keep.

    `users` and `projects` are further names, besides those that the session itself tells.

    >>> from smp_git import Switches
    >>> copy = session.anonymize(Switches(file_paths=False))
    >>> copy.memories
    3
    """

    user_names: bool = True
    project_names: bool = True
    file_paths: bool = True
    placeholders: bool = True
    structure: bool = True
    users: tuple[str, ...] = ()
    projects: tuple[str, ...] = ()


def switches_of(*, anonymous: bool | Switches) -> Switches | None:
    """Return what `anonymous` means: True is everything, False nothing."""
    return (Switches() if anonymous else None) if isinstance(anonymous, bool) else anonymous


class Mask:
    """Names and paths, each with its placeholder; numbers are given in the order of the names.

    `texts` may hold placeholders from before; their numbers are not given again.
    """

    def __init__(
        self,
        users: Iterable[str],
        projects: Iterable[str],
        switches: Switches,
        *,
        texts: Iterable[str] = (),
        sessions: Mapping[str, str] | None = None,
    ) -> None:
        self._shown = switches.placeholders
        self._sessions = dict(sessions or {})
        taken = {found for text in texts for found in _numbers(text)}
        self._free_paths = (n for n in count(1) if f"path{n}" not in taken)
        self._paths: dict[str, str] | None = {} if switches.file_paths else None
        names = (name for name in users if name not in SPEAKERS)
        people = _apart((*names, *switches.users)) if switches.user_names else []
        told = (name for name in projects if name != "*")
        named = _apart((*told, *switches.projects)) if switches.project_names else []
        numbers = (n for n in count(1) if f"user{n}" not in taken)
        letters = (_letters(n) for n in count() if f"project{_letters(n).lower()}" not in taken)
        self._placeholders = [f"User-{next(numbers)}" for _ in people]
        self._placeholders += [f"Project-{next(letters)}" for _ in named]
        self._finder = _NameFinder(people, named)

    @property
    def count(self) -> int:
        """The number of names and paths that have a placeholder."""
        return len(self._placeholders) + len(self._paths or ())

    def text(self, text: str) -> str:
        """Return a text without names, paths, and addresses of mail."""
        if self._paths is not None:
            text = _PATH.sub(self._path, text)
        if _INVISIBLE.search(text):
            bare = _INVISIBLE.sub("", text)
            text = bare if any(self._finder.find(bare)) else text
        return redact(self._replaced(text, self._name)).text

    def slug(self, word: str) -> str:
        """Return an agent's name without names of users and projects."""
        return agent_name(self._lower(word))

    def session(self, name: str) -> str:
        """Return a session's id: the one that it gets, or else without names."""
        return self._sessions.get(name) or self._lower(name)

    def tag(self, tag: str) -> str:
        """Return a tag without names, part by part."""
        return ".".join(self._lower(part) for part in tag.split("."))

    def _lower(self, word: str) -> str:
        return self._replaced(word, lambda number: self._placeholders[number].lower())

    def _name(self, number: int) -> str:
        return self._placeholders[number] if self._shown else REMOVED

    def _replaced(self, text: str, shown: Callable[[int], str]) -> str:
        out, end = list[str](), 0
        for found in self._finder.find(text):
            # What follows at once must not read as a part of the placeholder.
            joined = "-" if self._shown and text[found.end : found.end + 1].isalnum() else ""
            out += (text[end : found.start], shown(found.name), joined)
            end = found.end
        return "".join((*out, text[end:])) if out else text

    def _path(self, match: re.Match[str]) -> str:
        if _SHOWN.match(match[0]):
            return match[0]
        if not self._shown or self._paths is None:
            return REMOVED
        if match[0] not in self._paths:
            suffix = _SUFFIX.search(match[0])
            number = next(self._free_paths)
            self._paths[match[0]] = f"/path/{number}{suffix[0] if suffix else ''}"
        return self._paths[match[0]]


def _numbers(text: str) -> Iterator[str]:
    for found in _SHOWN.finditer(text):
        user, project, path = found.groups()
        yield f"user{user}" if user else f"project{project.lower()}" if project else f"path{path}"


def _letters(number: int) -> str:
    letters = ""
    number += 1
    while number:
        number, rest = divmod(number - 1, len(ascii_uppercase))
        letters = ascii_uppercase[rest] + letters
    return letters


def _apart(given: Iterable[str]) -> list[str]:
    """Return names without those that another one is in another spelling, and placeholders."""
    names: dict[str, str] = {}
    for name in given:
        key = "".join(_folded(part) for word in _words(name) for part in _parts(word))
        if len(key) >= _SHORTEST_NAME and not _SHOWN_USER.fullmatch(name):
            names.setdefault(key, name)
    return list(names.values())


def _words(name: str) -> list[str]:
    """Return the words of a name; what an apostrophe joins is one: O'Connor."""
    plain = unicodedata.normalize("NFKC", _INVISIBLE.sub("", name))
    return re.findall(rf"[^\W_]+(?:{_MARK}[^\W_]+)*", plain)


def _parts(word: str) -> list[str]:
    return re.split(_MARK, word)


def _folded(text: str) -> str:
    """Return a text without case, accents and forms of characters; a dotless i is an i."""
    plain = unicodedata.normalize("NFKD", text.replace("ı", "i")).casefold()
    return "".join(
        char for char in unicodedata.normalize("NFKD", plain) if not unicodedata.combining(char)
    )


class _FoundName(NamedTuple):
    """A name in a text: its number, and where it stands."""

    name: int
    start: int
    end: int


class _NameFinder:
    """Finds names in text: those of people first, then of projects.

    A text is looked at word by word; only where a word has one of a name in it, the name
    itself is looked for, so that a hundred names take little longer than one.
    """

    def __init__(self, people: Sequence[str], projects: Sequence[str]) -> None:
        self._patterns: list[tuple[str, str]] = []
        self._keys: dict[str, set[int]] = {}
        self._longest = 0
        for number, name in enumerate((*people, *projects)):
            words = _words(name)
            is_person = number < len(people)
            alone = "|".join(_alone(words)) if is_person else ""
            self._patterns.append(("|".join(_whole(words, is_person=is_person)), alone))
            self._longest = max(self._longest, len(name))
            for key in _keys(words):
                self._keys.setdefault(key, set()).add(number)
        self._of_word: dict[str, frozenset[int]] = {}
        self._regexes: dict[frozenset[int], re.Pattern[str]] = {}

    def find(self, text: str) -> Iterator[_FoundName]:
        """Yield the names in a text, from its beginning to its end, the longest of each place."""
        done = 0
        for start, end, names in self._places(text) if self._keys else ():
            regex, at = self._regex(names), max(start, done)
            # A name that begins in the place ends before this.
            last = end + 2 * self._longest + 40
            while (found := regex.search(text, at, last)) is not None and found.start() < end:
                group = found.lastgroup or ""
                yield _FoundName(int(group[1:]), found.start(), found.end())
                done = at = found.end()

    def _places(self, text: str) -> Iterator[tuple[int, int, frozenset[int]]]:
        """Yield where names may begin, and which."""
        start, end, names = 0, -1, frozenset[int]()
        for word in _WORD.finditer(text):
            here = self._in_word(word[0])
            if not here:
                continue
            begin = max(0, word.start() - self._longest - 12)
            if begin > end and names:
                yield start, end, names
                start, names = begin, frozenset()
            start, end, names = (start if names else begin), word.end(), names | here
        if names:
            yield start, end, names

    def _in_word(self, word: str) -> frozenset[int]:
        known = self._of_word.get(word)
        if known is None:
            folded = _folded(word)
            found = (numbers for key, numbers in self._keys.items() if key in folded)
            known = self._of_word[word] = frozenset(n for numbers in found for n in numbers)
        return known

    def _regex(self, names: frozenset[int]) -> re.Pattern[str]:
        found = self._regexes.get(names)
        if found is None:
            ordered = sorted(names, key=lambda number: -len(self._patterns[number][0]))
            groups = [f"(?P<n{number}>{self._patterns[number][0]})" for number in ordered]
            groups += [
                f"(?P<a{number}>{self._patterns[number][1]})"
                for number in sorted(names)
                if self._patterns[number][1]
            ]
            found = self._regexes[names] = re.compile("|".join(groups))
        return found


def _keys(words: Sequence[str]) -> set[str]:
    """Return what is in a text, folded, wherever a name may be in it."""
    parts = [part for word in words for part in _parts(word)]
    own = [part for part in parts if len(part) >= _SHORTEST_WORD] or [max(parts, key=len)]
    if len(words) == 1 and _HAN.fullmatch(words[0]):
        own = [words[0][1:]]
    return {form for word in own for form in (_folded(word), word.lower().translate(_DIGRAPHS))}


def _whole(words: Sequence[str], *, is_person: bool) -> Iterator[str]:
    """Yield how a name may be written as a whole, without regard to case."""
    spelled = [_any_case(word) for word in words]
    yield _bounded(_JOIN.join(spelled), words[0], words[-1])
    if not is_person or len(words) < 2:  # noqa: PLR2004 - first and last
        return
    yield _bounded(_TURNED.join((spelled[-1], _JOIN.join(spelled[:-1]))), words[-1], words[-2])
    first, last = words[0][0], words[-1]
    if len(last) >= _SHORTEST_SURNAME and len(words[0]) > 1:
        capital = f"{re.escape(first.upper())}\\.?\\s?{_as_name(last)}"
        plain = f"(?i:{re.escape(first)})[._]?{spelled[-1]}"
        yield _bounded(f"(?:{capital}|{plain})", first, last)


def _alone(words: Sequence[str]) -> Iterator[str]:
    """Yield the words of a person's name that are a name alone, where they are written like one."""
    if len(words) == 1:
        if _HAN.fullmatch(words[0]):
            yield re.escape(words[0][1:])
        return
    own = [word for word in words if word not in _PARTICLES]
    if not all(_is_capital(word) for word in own):
        return
    for word in own:
        if len(word) >= _SHORTEST_WORD:
            yield _bounded(_as_name(word), word, word)
            yield f"(?<=@){_any_case(word)}{_AFTER}"


def _is_capital(word: str) -> bool:
    """Whether a word begins with a capital, or is of a script that has none."""
    return word[0].isupper() or word.lower() == word.upper()


def _as_name(word: str) -> str:
    """Return what finds a word that begins with a capital, or is of a script without them."""
    first, *rest = _parts(word)
    return _NEAR.join(
        [_one_of({each for each in _spellings(first) if _is_capital(each)}), *map(_any_case, rest)]
    )


def _bounded(pattern: str, first: str, last: str) -> str:
    before = "" if _JOINED.match(first[0]) else _BEFORE
    owned = _OWNED if len(last) >= _SHORTEST_SURNAME else ""
    after = "" if _JOINED.match(last[-1]) else f"(?:{_AFTER}{owned})"
    return f"{before}{pattern}{after}"


def _any_case(word: str) -> str:
    return f"(?i:{_NEAR.join(_one_of(_spellings(part)) for part in _parts(word))})"


def _one_of(words: Collection[str]) -> str:
    return f"(?:{'|'.join(map(re.escape, sorted(words, key=lambda each: (-len(each), each))))})"


def _spellings(word: str) -> set[str]:
    """Return how a word may be written by the rules of some language or program."""
    plain = unicodedata.normalize("NFC", word)
    lower = plain.lower()
    bare = {plain, _folded(plain), lower.translate(_DIGRAPHS)}
    cases = {form for each in bare for form in (each, each.upper(), each.casefold(), each.lower())}
    cases |= {each.title() for each in bare}
    cases |= {each.replace("i", "ı") for each in (plain, lower)}
    cases |= {each.replace("I", "İ").replace("i", "İ") for each in (plain, plain.upper())}
    cases |= {each.translate(_WIDE) for each in (plain, lower, plain.upper()) if each.isascii()}
    return {unicodedata.normalize(how, each) for each in cases for how in ("NFC", "NFD")}
