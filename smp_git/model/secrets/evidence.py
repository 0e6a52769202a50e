"""Patterns of secrets, and what makes a value look like one."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Final

from smp_git.model.regexes import Bounded


class LazyRegex:
    """The verbs of a compiled regex; most texts need few of the many."""

    def __init__(self, source: str, flags: int = 0) -> None:
        self._source = source
        self._flags = flags

    @cached_property
    def compiled(self) -> re.Pattern[str]:
        """The regex itself."""
        return re.compile(self._source, self._flags)

    def search(self, text: str) -> re.Match[str] | None:
        """Return the first match anywhere."""
        return self.compiled.search(text)

    def fullmatch(self, text: str) -> re.Match[str] | None:
        """Return the match of the whole text."""
        return self.compiled.fullmatch(text)


Judgement = Callable[[re.Match[str]], bool]

# A text's words that are shorter hold no token, so patterns of tokens do not see them.
LONG_WORD: Final = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretPattern:
    """One kind of secret: where it may be, and what makes it one.

    `source` must take linear time on any text. What its group `secret` matched, or
    all of it if there is no such group, is replaced when `accepts` says so.
    A text that holds none of `keywords` (lower case, without blanks, compared without
    case), none of `phrases` or fewer than `shortest` characters is not searched; none
    given means always. With
    `is_token` a match is at least `LONG_WORD` characters without a blank, so only
    words of that length are looked through for keywords. Where each match begins with one
    of `anchors` (lower case), the regex is tried only there. What a user wrote is `bounded`:
    it may take any time, and sees one line, or a part of a long line, at once.
    """

    name: str
    source: str
    flags: int = 0
    keywords: tuple[str, ...] = ()
    accepts: Judgement | None = None
    shortest: int = 6
    bounded: Bounded | None = field(default=None, compare=False)
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


# Evidence needs only the head of a value; without a bound hostile megabytes would
# be judged once per test. The whole value is replaced.
JUDGED = 512
# Six characters is the shortest password most systems accept; a shorter value
# with a digit ("v2", "12 h") is far more often a version or a quantity.
MIN_PASSWORD = 6
# Machine-made keys are longer than passwords; eight keeps "step12" out.
MIN_SECRET = 8
# A value whose place says that it is a password: a shorter one is a mere letter.
MIN_GIVEN = 4
# Fewer different characters than this is a mask or a filler ("xxx111").
MIN_DISTINCT = 4
# Without a digit only length speaks: 16 letters is 75 bits or more.
MIN_LETTERS_ONLY = 16
# Neighbouring characters of random letters and digits change between upper, lower
# and digit 6 times in 10; camelCase words about 3 times.
RANDOM_SWITCHES = 0.4
RANDOM_LETTER_SWITCHES = 0.3

_BLANK = re.compile(r"\s")
_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_SWITCH = re.compile(r"(?=[a-z][A-Z0-9]|[A-Z][a-z0-9]|[0-9][A-Za-z])", re.ASCII)
_PUNCTUATION = re.compile(r"[!@#$%^&*?~+|\\]")

# A value that names where the secret is, or stands for one.
_REFERENCE = LazyRegex(
    r"""
      \$(?:env:)?\w+ | \$[({].* | %\w+% | %\(\w+\)s | \{+[^{}]*\}+.* | <.*      # templates
    | [*xX.•#_\-=~?0]+                                                 # masks
    | (?:~|\.{1,2}|)(?:/[\w.@+-]+){2,}/? | [A-Za-z]:\\.*              # paths
    | [a-z][a-z0-9+.-]*://.* | (?:arn|vault|env|ssm|file|kms):.*       # addresses
    | projects/[\w-]+/secrets/.*
    | !(?:Ref|Sub|GetAtt|vault|env|secret)\b.*                         # YAML tags
    | @[\w./-]+                                                        # curl's "from file"
    """,
    re.VERBOSE | re.DOTALL,
)
_STAND_IN = LazyRegex(
    r"\b(?:your|my|some|the)[-_ ]?\w*(?:key|secret|token|password)"
    r"|example|placeholder|change[-_]?(?:me|it)\b|redacted|xxxx|\*\*\*|\.\.\.|…",
    re.IGNORECASE,
)
# What documentation writes where a password goes.
_MEANT = frozenset(
    (
        "password",
        "passwd",
        "passwort",
        "passphrase",
        "pass",
        "pwd",
        "pw",
        "secret",
        "token",
        "foobared",
    )
)
# Digits and letters that are a name: of a program, a machine, a standard, a year's event.
_NAMED = LazyRegex(
    r"1password|[a-z]+[-_]?v\d{1,2}(?:\.\d+)*|[2-5]fa|k8s|[a-z]+2[a-z]+|(?:db|host|web|server|app|node|prod|test|dev|stage|staging|version|step|level|issue|pr|rc|ticket|room|line|page|phase|sprint|q|reset|change|update|salt|hash|field|input|label|policy)[-_]?\d{1,6}",
    re.IGNORECASE,
)
# What a program fills in, or writes for the end of a line.
_FORMAT = LazyRegex(r"%%|%[.\d]*[sducF]|%0[AaDd]|\{\w*\}")
# A sign that ends no sentence, between the letters of a value without a digit.
_INNER = LazyRegex(r"[A-Za-z][@#$%^*!+]+[A-Za-z]")
_INNER_SIGN = LazyRegex(r"[A-Za-z0-9][@#$%^*!?+&]+[A-Za-z0-9]")
# Algorithms, versions, dates, quantities, addresses: digits and letters, no secret.
_TECHNICAL = LazyRegex(
    r"""
      (?:sha|md|hs|rs|es|ps|aes|argon|pbkdf|base|utf|iso|oauth|ed|rsa|ec|ecdsa|bcrypt
        |scrypt|hmac|http|tls|ssl|saml|oidc|python|node|gpt|llama|claude|cl|bip|rfc|ascii
        |chacha|blake|curve|secp|windows|win|ipv|fido|webauthn|pkcs|u2f|uint|int|float)
        [-_]?\d{1,6}[a-z]{0,3}(?:[-_./][\w./-]{0,24})?
    | x(?:509|25519|86) | p(?:256|384|521)
    | v?\d+(?:\.\d+)+[\w.+-]{0,20}
    | \d{4}-\d\d-\d\d(?:T.*)?
    | [<>~]?=?\d[\d.,_]*[-_ ]?(?:[kmgt]i?b|[mun]?s|secs?|mins?|h|hours?|days?|d|weeks?
        |months?|years?|bits?|bytes?|chars?|characters?|tokens?|words?|x|st|nd|rd|th
        |px|hz|[km])(?:/\w+)?
    | 0x[0-9a-f]{1,8}
    | [\w-]{2,}\.(?:[a-z]{2,5}|json5|mp[34])
    """,
    re.VERBOSE | re.IGNORECASE,
)
# What an unquoted value of source code looks like: a name, a call, an index.
_CODE = LazyRegex(
    r"""
      _*[a-z]+(?:_[a-z]+)+_?\d{0,2} | _*[A-Z]+(?:_[A-Z]+)+_?\d{0,2}
    | [a-z]+(?:[A-Z][a-z]{2,})+\d{0,2} | (?:[A-Z][a-z]{2,}){2,}\d{0,2}
    | (?:token|password|passwd|secret|key|value|arg|param|str|tmp|var|field|user)s?\d{1,2}
    | [A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+
    | [\w.:>-]*\w[(\[{<].* | [(\[{&*].*
    """,
    re.VERBOSE | re.DOTALL,
)
_SLUG = LazyRegex(r"[a-z]{2,}\d?(?:[-/_.:][a-z]{2,}\d?|[-/_.:]v?\d{1,4})+")


def looks_like_a_password(value: str, *, quoted: bool) -> bool:
    """Say whether `value`, assigned to a password key, is one rather than a word."""
    if _is_no_secret(value, MIN_PASSWORD) or (not quoted and _CODE.fullmatch(value)):
        return False
    if _DIGIT.search(value):
        return True
    return bool(_PUNCTUATION.search(value)) or _is_random_letters(value)


def looks_like_a_secret(value: str, *, quoted: bool) -> bool:
    """Say whether `value`, assigned to a secret, key or token, is one."""
    if _is_no_secret(value, MIN_SECRET) or (not quoted and _CODE.fullmatch(value)):
        return False
    if _SLUG.fullmatch(value):
        return False
    return is_mixed(value) or _is_random_letters(value)


def stands_out_of_prose(value: str) -> bool:
    """Say whether `value` cannot be a word, though more words follow it."""
    if len(value) < MIN_SECRET or not is_mixed(value):
        return False
    cased = value != value.lower() and value != value.upper()
    return cased or bool(_PUNCTUATION.search(value)) or len(value) >= MIN_LETTERS_ONLY


def is_told(value: str) -> bool:
    """Say whether `value`, said to be a password in a sentence, is one rather than a word."""
    if (
        _is_no_secret(value, MIN_PASSWORD)
        or _NAMED.fullmatch(value)
        or _FORMAT.search(value)
        or _CODE.fullmatch(value.lstrip("*&"))
    ):
        return False
    return is_mixed(value) or (len(value) >= MIN_SECRET and bool(_INNER.search(value)))


def is_unmistakable(value: str) -> bool:
    """Say whether `value` is a password though nothing but its neighbour says so."""
    signed = bool(_INNER_SIGN.search(value)) and stands_out_of_prose(value)
    return is_told(value) and (signed or is_random(value))


def is_pair(value: str) -> bool:
    """Say whether `value` is what `user:password` is encoded to for a header."""
    try:
        text = b64decode(value + "=" * (-len(value) % 4), validate=True).decode("ascii")
    except ValueError:
        return False
    return ":" in text and text.isprintable()


def is_given(value: str) -> bool:
    """Say whether `value`, which is where a command takes a password, is one."""
    return (
        len(value) >= MIN_GIVEN
        and value.lower() not in _MEANT
        and not (_REFERENCE.fullmatch(value) or _STAND_IN.search(value))
    )


def is_mixed(value: str) -> bool:
    """Say whether `value` has both a letter and a digit."""
    return bool(_DIGIT.search(value) and _LETTER.search(value))


def is_encoded(value: str) -> bool:
    """Say whether `value` is encoded bytes (base64, hex) rather than a word."""
    return bool(_DIGIT.search(value)) or "=" in value or _switches(value) > 1


def is_random(value: str) -> bool:
    """Say whether `value` is a mixed-case run that only a generator writes."""
    digits = _DIGIT.findall(value)
    cased = value != value.lower() and value != value.upper()
    return cased and len(digits) > 1 and _switches(value) >= RANDOM_SWITCHES * len(value)


def is_generated(value: str) -> bool:
    """Say whether `value` is a run of letters and digits that no person writes."""
    letters = re.sub(r"[^A-Za-z0-9]", "", value)
    return _switches(letters) >= RANDOM_LETTER_SWITCHES * len(letters) and not is_worded(value)


def is_worded(value: str) -> bool:
    """Say whether the parts of `value` are words and numbers, as those of a name are."""
    parts = [part for part in re.split(r"[-_.]", value) if part]
    return all(part.isdigit() or (part.isalpha() and part in _cases(part)) for part in parts)


def _cases(word: str) -> tuple[str, str, str]:
    return word.lower(), word.upper(), word.title()


def is_filled_in(value: str) -> bool:
    """Say whether `value` holds more than the filler of a documentation example."""
    return not set(value.lower()) <= set("x0-_.*")


def passes_luhn(digits: str) -> bool:
    """Say whether the last of `digits` is the check digit of a payment card."""
    doubled = "0246813579"
    total = sum(
        int(doubled[int(digit)] if place % 2 else digit)
        for place, digit in enumerate(reversed(digits))
    )
    return total % 10 == 0


def passes_mod_97(account: str) -> bool:
    """Say whether `account` has the check digits of an IBAN (ISO 7064)."""
    turned = account[4:] + account[:4]
    return int("".join(str(int(sign, 36)) for sign in turned)) % 97 == 1


def _is_no_secret(value: str, shortest: int) -> bool:
    """Say whether `value` is too short, has blanks, or only refers to a secret."""
    return (
        len(value) < shortest
        or len(set(value)) < MIN_DISTINCT
        or bool(_BLANK.search(value))
        or bool(_REFERENCE.fullmatch(value) or _STAND_IN.search(value))
        or bool(_TECHNICAL.fullmatch(value))
    )


def _is_random_letters(value: str) -> bool:
    return len(value) >= MIN_LETTERS_ONLY and _switches(value) >= RANDOM_LETTER_SWITCHES * len(
        value
    )


def _switches(value: str) -> int:
    return len(_SWITCH.findall(value))
