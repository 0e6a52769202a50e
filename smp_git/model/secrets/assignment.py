"""What an assignment of a secret looks like: its keys, its separators, its value."""

from __future__ import annotations

import re
from enum import Enum

from smp_git.model.secrets.evidence import (
    JUDGED,
    looks_like_a_password,
    looks_like_a_secret,
    stands_out_of_prose,
)
from smp_git.model.secrets.lazy import LazyRegex

# A regex that starts with one of a few letters is searched several times faster than
# one that ignores the case of its first letter, so that letter is written both ways
# and looked back at.
_KEY_OF_A_LOGIN = "[pP](?i:ass(?:w(?:or)?d|wort|phrase|code|(?<=[_.\\-\"']pass)|(?<=(?:ssh|usr)pass)|(?<=(?:user|root)pass)|(?<=dbpass))|wd(?<![a-z]pwd))"
_KEYS_OF = [
    "api",
    "app",
    "access",
    "auth",
    "private",
    "signing",
    "encryption",
    "master",
    "account",
    "shared",
    "deploy",
    "license",
    "session",
]
_KEY_OF_SOMETHING = "|".join(rf"(?<={owner}key)|(?<={owner}[_ -]key)" for owner in _KEYS_OF)
_SECRET_KEY = (
    f"[sStTcCkK](?i:(?<=s)ecret|(?<=t)oken|(?<=c)redentials?|(?<=k)ey(?:{_KEY_OF_SOMETHING}))"
)
# Only these may follow the key word, so that token_type, secretName, tokenizer and
# password_file are names of something else.
_SUFFIX = (
    r"(?:[_-]?(?:access[_-]?)?(?:key|value|string|base64|raw|plain|prod|production"
    r"|staging|dev|test|new|old|current|primary|secondary|\d{1,3}))?"
)
# `key=`, `key: `, `"key": `, `'key' =>`, `key := `, `key: str = `, `**Key:** `,
# `<key>`; the words and the comma count only before a quoted value.
_SEPARATOR = r"""
    (?:\\{0,7}["'`]\]?)? (?:\*\*)?
    (?:
        [ \t]{0,8}
        (?P<sign> =>|:=|\?=|%3D|={1,3}|:(?!:)|>)
        (?:[ \t]{0,4}&?(?:'static[ ])?(?:str|string|String|SecretStr)[ \t]{0,4}=)?
        (?:\*\*)? [ \t]{0,8}
      | [ \t]{1,4}(?P<word>is|was|to|set[ ]to)[ \t]{1,4}(?=\\{0,7}["'`])
      | (?<=["'])[ \t]{0,4}(?P<comma>,)[ \t]{0,4}(?=\\{0,7}["'])
    )
"""
_VALUE = r"""
    (?:[bru]?(?P<quote>\\{0,7}["'`]))?
    (?P<secret>(?(quote)
        (?:(?!(?P=quote))[^\n])++
      | (?:[^\s"'`,;&<>]++|[,;&](?![\s,;&"'`]|[\w .-]{0,40}[=:]|$))++
    ))
"""
# "secret: api_key=…": the inner key has the value.
_NO_KEY = r"""
    (?![\w-]{1,32}+
        (?:(?<=password)|(?<=passwd)|(?<=pwd)|(?<=pass)|(?<=secret)|(?<=token)|(?<=key))
        [ \t]?[:=])
"""
ASSIGNMENT_FLAGS = re.IGNORECASE | re.VERBOSE | re.ASCII
# A further word on the line, which is no further key, makes the line prose.
_PROSE = re.compile(r"[ \t]{1,8}(?![\w-]{1,40}[ \t]?[:=])[A-Za-z]", re.ASCII)


class Kind(Enum):
    """The two kinds of key, which differ in what their values look like."""

    PASSWORD = "password"  # noqa: S105 - the name of a kind, no password
    SECRET = "secret"  # noqa: S105 - the name of a kind, no secret


_KEYS = {Kind.PASSWORD: _KEY_OF_A_LOGIN, Kind.SECRET: _SECRET_KEY}


def assignment_source(kind: Kind) -> str:
    """Return the regex of `key = value`, in many syntaxes, for keys of `kind`."""
    return rf"(?:{_KEYS[kind]}){_SUFFIX}{_SEPARATOR}{_NO_KEY}{_VALUE}"


def option_source(kind: Kind) -> str:
    """Return the regex of a command-line option, `--db-password value`."""
    return rf"--(?:[\w-]{{0,24}}?)(?:{_KEYS[kind]}){_SUFFIX}[ \t]{{1,4}}(?!-){_VALUE}"


def assigns_a_secret(kind: Kind, match: re.Match[str]) -> bool:
    """Say whether the value in `match` is a secret, given how it was assigned."""
    value = match["secret"][:JUDGED]
    quoted = match["quote"] is not None
    parts = match.groupdict()
    if parts.get("comma") or (parts.get("sign") == ":" and not quoted):
        follows = parts.get("comma") or _PROSE.match(match.string, match.end("secret"))
        if follows and not stands_out_of_prose(value):
            return False
    return is_secret_value(kind, value.rstrip(".:)]}") or value, quoted=quoted)


def is_secret_value(kind: Kind, value: str, *, quoted: bool = True) -> bool:
    """Say whether `value`, assigned to a key of `kind`, is a secret."""
    match kind:
        case Kind.PASSWORD:
            return looks_like_a_password(value, quoted=quoted)
        case Kind.SECRET:
            return looks_like_a_secret(value, quoted=quoted)


_KEY_ENDS = {
    kind: LazyRegex(rf"(?:{key}|^pass){_SUFFIX}$", re.IGNORECASE | re.ASCII)
    for kind, key in _KEYS.items()
}


_KEY_WORDS = ("pass", "pwd", "secret", "token", "credential", "key")


def kind_of_key(key: str) -> Kind | None:
    """Return the kind of secret a mapping's `key` names, None if it names none."""
    tail = key[-64:]
    folded = tail.lower()
    if not any(word in folded for word in _KEY_WORDS):
        return None
    for kind, ending in _KEY_ENDS.items():
        if ending.search(tail):
            return kind
    return None
