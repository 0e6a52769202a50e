"""Assignments of secrets: keys, separators, values, and the commands that take passwords."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Final

from smp_git.model.secrets.evidence import (
    JUDGED,
    Judgement,
    LazyRegex,
    SecretPattern,
    is_given,
    is_pair,
    is_told,
    looks_like_a_password,
    looks_like_a_secret,
    stands_out_of_prose,
)

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


class SecretKind(Enum):
    """The two kinds of key, which differ in what their values look like."""

    PASSWORD = "password"  # noqa: S105 - the name of a kind, no password
    SECRET = "secret"  # noqa: S105 - the name of a kind, no secret


_KEYS = {SecretKind.PASSWORD: _KEY_OF_A_LOGIN, SecretKind.SECRET: _SECRET_KEY}


def assignment_source(kind: SecretKind) -> str:
    """Return the regex of `key = value`, in many syntaxes, for keys of `kind`."""
    return rf"(?:{_KEYS[kind]}){_SUFFIX}{_SEPARATOR}{_NO_KEY}{_VALUE}"


def option_source(kind: SecretKind) -> str:
    """Return the regex of a command-line option, `--db-password value`."""
    return rf"--(?:[\w-]{{0,24}}?)(?:{_KEYS[kind]}){_SUFFIX}[ \t]{{1,4}}(?!-){_VALUE}"


def assigns_a_secret(kind: SecretKind, match: re.Match[str]) -> bool:
    """Say whether the value in `match` is a secret, given how it was assigned."""
    value = match["secret"][:JUDGED]
    quoted = match["quote"] is not None
    parts = match.groupdict()
    if parts.get("comma") or (parts.get("sign") == ":" and not quoted):
        follows = parts.get("comma") or _PROSE.match(match.string, match.end("secret"))
        if follows and not stands_out_of_prose(value):
            return False
    return is_secret_value(kind, value.rstrip(".:)]}") or value, quoted=quoted)


def is_secret_value(kind: SecretKind, value: str, *, quoted: bool = True) -> bool:
    """Say whether `value`, assigned to a key of `kind`, is a secret."""
    match kind:
        case SecretKind.PASSWORD:
            return looks_like_a_password(value, quoted=quoted)
        case SecretKind.SECRET:
            return looks_like_a_secret(value, quoted=quoted)


_KEY_ENDS = {
    kind: LazyRegex(rf"(?:{key}|^pass){_SUFFIX}$", re.IGNORECASE | re.ASCII)
    for kind, key in _KEYS.items()
}


_KEY_WORDS = ("pass", "pwd", "secret", "token", "credential", "key")


def kind_of_key(key: str) -> SecretKind | None:
    """Return the kind of secret a mapping's `key` names, None if it names none."""
    tail = key[-64:]
    folded = tail.lower()
    if not any(word in folded for word in _KEY_WORDS):
        return None
    for kind, ending in _KEY_ENDS.items():
        if ending.search(tail):
            return kind
    return None


_FLAGS: Final = re.VERBOSE | re.ASCII
_ANY_CASE: Final = _FLAGS | re.IGNORECASE

# Of a quoted value all up to the quote; of a bare one no sign that ends a sentence.
_BARE = r"""[^\s"'`|<>()]{0,255}[^\s"'`|<>(),.:;]"""
_QUOTED = r"(?:(?!(?P=quote))[^\n])++"
_ARGUMENT = rf"""(?P<quote>\\?["'])?(?P<secret>(?(quote){_QUOTED}|{_BARE}))"""
# The same after `user:`, where the quote comes before the user.
_USER = r"""(?P<quote>\\?["'])?[^\s:"'<>$%{}/]{1,64}"""
_OF_USER = rf"(?P<secret>(?(quote){_QUOTED}|(?!//){_BARE}))"
# What is between the words of a command: on one line, or on several, or in a list of
# a program's arguments.
_GAP = r"(?:[^\n|;&\\]|\\\r?\n?){0,160}?"
_BLANK = r"[\s'\"\[(]"
_THEN = r"(?:[\"']?,?[ ]{1,4}|=|\\\r?\n[ ]{0,8})"

_JOINED_OR_NEXT = rf"""
    (?:
        \b(?:mysql\w{{0,12}}|mariadb[\w-]{{0,12}}|mycli|7z[azr]?|rar)\b{_GAP}{_BLANK}-h?p(?=[^\s-])
      | \bsshpass{_THEN}[\"']?-p{_THEN}?
      | \b(?:docker|podman|nerdctl|buildah|skopeo|crane|oras|helm|az|oc|cf|ibmcloud)\b
            [^\n|;&]{{0,40}}?\blogin\b{_GAP}{_BLANK}-p{_THEN}
      | \bmongo(?:sh|dump|restore|export|import|stat|top|files)?\b{_GAP}{_BLANK}-p{_THEN}?
      | \b(?:plink|pscp|psftp|putty)\b{_GAP}{_BLANK}-pw{_THEN}
      | \b(?:unzip|zip|ipmitool|sqlcmd|bcp|osql)\b{_GAP}{_BLANK}-P{_THEN}?
    )
    (?!-)
    {_ARGUMENT}
"""
_OTHER_OPTIONS = rf"""
    (?:
        \bredis-cli\b{_GAP}{_BLANK}-a{_THEN}
      | \bldap[a-z]{{3,9}}\b{_GAP}{_BLANK}-w{_THEN}?
      | \bsnmp[a-z]{{2,9}}\b{_GAP}{_BLANK}-A{_THEN}
      | \bhtpasswd[ ]{{1,4}}-[A-Za-z]{{0,6}}b[A-Za-z]{{0,6}}[ ]{{1,4}}\S{{1,128}}[ ]{{1,4}}[\w.@-]{{1,64}}[ ]{{1,4}}
      | \brclone\b{_GAP}[ ]pass[ ]{{1,4}}
      | \bnmcli\b{_GAP}[ ]password[ ]{{1,4}}
      | \bx?freerdp\b{_GAP}[ ]/p:
    )
    (?!-)
    {_ARGUMENT}
"""
_NET_USE = rf"\bnet[ ]use\b{_GAP}/user:\S{{1,64}}[ ]{{1,4}}{_ARGUMENT}"
_SECOND_OPTION = rf"\bsnmp[a-z]{{2,9}}\b{_GAP}{_BLANK}-X{_THEN}{_ARGUMENT}"
_USER_AND_PASSWORD = rf"""
    (?:
        \bcurl\b(?=[^:]{{0,250}}+:){_GAP}{_BLANK}(?:-[A-Za-z]{{0,6}}[uU]|--(?:proxy-)?user){_THEN}?
      | \b(?:https?|xhs?)[ ](?=[^:]{{0,250}}+:){_GAP}-a[ ]{{1,4}}
    )
    {_USER}:{_OF_USER}
"""
_SHARE = rf"""
    (?:\blftp\b{_GAP}[ ]-u|\b(?:smbclient|rpcclient|smbget)\b{_GAP}[ ]-U)[ ]{{0,4}}
    (?P<quote>["'])?[\w.@\\/-]{{1,64}}[,%]{_OF_USER}
"""
_PIPED = rf"""
    \becho[ ]{{1,4}}(?:-[ne]{{1,2}}[ ]{{1,4}})?{_ARGUMENT}["']?[ ]{{0,4}}\|[ ]{{0,4}}
    (?:sudo[ ](?:[^\n|]{{0,20}}[ ])?-[A-Za-z]{{0,4}}S\b|[^\n|]{{0,120}}?(?:--password-stdin|--passphrase-fd|--stdin|cryptsetup))
"""
_PIPED_PAIR = rf"""
    \becho[ ]{{1,4}}(?:-[ne]{{1,2}}[ ]{{1,4}})?{_USER}:{_OF_USER}["']?[ ]{{0,4}}\|[ ]{{0,4}}(?:sudo[ ])?chpasswd
"""
_HERE_STRING = rf"(?:cryptsetup|passwd|sudo|kinit)\b{_GAP}<<<[ ]{{0,4}}{_ARGUMENT}"
_EXPECTED = r"password[^\n]{0,20}[ ]send[ ]{1,4}[\"'](?P<secret>[^\s\"'\\]{3,128})\\[rn]"
_PASS_OF_OPENSSL = rf"-pass(?:in|out)?[ ]{{1,4}}[\"']?pass:(?P<quote>[\"'])?(?P<secret>(?(quote){_QUOTED}|{_BARE}))"
_NETRC = rf"\b(?:login|user)\s{{1,8}}[\w.@+-]{{1,64}}\s{{1,8}}password\s{{1,8}}{_ARGUMENT}"
_NETRC_MACHINE = rf"""
    \bmachine[ \t]{{1,8}}[\w-]{{1,60}}\.[\w.-]{{1,120}}
    (?:\s{{1,8}}(?:login|account)\s{{1,8}}\S{{1,64}}){{0,2}}\s{{1,8}}password\s{{1,8}}{_ARGUMENT}
"""
_SQL = r"""
    \b(?:
        identified[ ](?:with[ ][\w']{1,40}[ ])?(?:by|as)(?:[ ]password)?
      | (?:user|role|login)\b(?=[^\n"']{0,160}+["'])[^\n;]{0,120}?\bpassword(?:[ ]?=)?
    )
    [ ]{1,4}(?P<quote>["'])(?P<secret>(?:(?!(?P=quote))[^\n])++)
"""
_SETTINGS = rf"""
    (?:
        (?<!\S)(?:requirepass|masterauth)[ \t]{{1,8}}
      | (?<![A-Za-z])(?:wpa[-_])?psk[ \t]{{0,4}}[=:][ \t]{{0,4}}
      | ConvertTo-SecureString[ ]{{1,4}}(?:-String[ ]{{1,4}})?
    )
    {_ARGUMENT}
"""
_PGPASS = r"^[\w.*-]{1,128}:(?:\d{2,5}|\*):[\w*-]{1,64}:[\w*.@-]{1,64}:(?P<secret>\S{4,128})$"
_ORACLE = r"(?:\bsqlplus[ ]{1,4}(?:-[SLs]{1,2}[ ]{1,4}){0,2}|jdbc:oracle:thin:)[\w$#]{1,64}/(?P<secret>[^\s/@\"']{3,64})@"
_LOGIN_CALL = r"""
    (?:\bauth[ ]?[=:][ ]?[(\[]|\b(?:HTTP)?(?:Basic|Digest)Auth\w{0,12}\(|\.(?:login|authenticate)\()
    [ ]?(?P<mark>["'])[^"'\n]{1,64}["'],[ ]?(?P<quote>["'])(?P<secret>(?:(?!(?P=quote))[^\n])++)["']
"""
# A value alone on the line below its key.
_BELOW = r"""
    ["']?[ \t]{0,4}(?::|=[ \t]{0,4}\(?|>)[ \t]{0,4}(?:[|>][+-]?)?[ \t]{0,8}\r?\n[ \t]{0,40}(?:-[ ])?
    (?P<quote>["'])?(?P<secret>(?(quote)(?:(?!(?P=quote))[^\n])++|[^\s"'<>]{6,256}))["']?[ \t]{0,8},?(?=\r?\n|$|<)
"""
_PASSWORD_ABOVE = rf"(?:password|passwd|passphrase|passwort|kennwort|pwd){_BELOW}"
_SECRET_ABOVE = rf"(?:secret|token|api_?key|access_?key){_BELOW}"
_BASIC = r"\bbasic[ ](?P<secret>[A-Za-z0-9+/]{8,}+={0,2})"
_NAMED_VALUE = r"""
    \b(?:key|name)["']?[ \t]{0,4}[=:][ \t]{0,4}["']?
    [\w.-]{0,60}(?:password|passwd|secret|token|api_?key)["']?
    (?:[ \t]{0,4},)?\s{1,20}["']?value["']?[ \t]{0,4}[=:][ \t]{0,4}
    (?P<quote>["'])?(?P<secret>(?(quote)(?:(?!(?P=quote))[^\n])++|[^\s"',<>]{6,256}))
"""
_ELEMENT = r"""
    <(?P<tag>[\w:-]{1,40})[ ][^<>\n]{0,120}?(?:password|passwd|secret|token|api_?key)["']>(?P<secret>[^<>\n]{4,256})</
"""


def _judged(judge: Callable[[str], bool]) -> Judgement:
    return lambda match: judge(match["secret"][:JUDGED])


def _password(
    source: str,
    anchors: str,
    *keywords: str,
    flags: int = _FLAGS,
    judge: Callable[[str], bool] = is_given,
) -> SecretPattern:
    """Return a pattern that begins with one of `anchors`, which are between blanks."""
    begins = tuple(word.replace("_", " ") for word in anchors.split())
    return SecretPattern(
        name="password",
        source=source,
        flags=flags,
        keywords=keywords or begins,
        accepts=_judged(judge),
        anchors=begins,
    )


COMMANDS: Final[tuple[SecretPattern, ...]] = (
    _password(
        _JOINED_OR_NEXT,
        "mysql mariadb mycli 7z rar sshpass docker podman nerdctl buildah skopeo crane oras helm az"
        " oc cf ibmcloud mongo plink pscp psftp putty unzip zip ipmitool sqlcmd bcp osql",
        "-p",
        "-hp",
    ),
    _password(_OTHER_OPTIONS, "redis-cli ldap snmp htpasswd rclone nmcli freerdp xfreerdp"),
    _password(_SECOND_OPTION, "snmp"),
    _password(_NET_USE, "net_use", "/user:"),
    _password(_USER_AND_PASSWORD, "curl http_ https_ xh_ xhs_", "curl", "-a"),
    _password(_SHARE, "lftp smbclient rpcclient smbget"),
    _password(_PIPED, "echo_", "echo"),
    _password(_PIPED_PAIR, "echo_", "chpasswd"),
    _password(_HERE_STRING, "cryptsetup passwd sudo kinit", "<<<"),
    _password(_EXPECTED, "password", "send"),
    _password(_PASS_OF_OPENSSL, "-pass", "pass:"),
    _password(_NETRC_MACHINE, "machine"),
    _password(_NETRC, "login user", "password", judge=is_told),
    _password(_SQL, "identified user role login", "identified", "password", flags=_ANY_CASE),
    _password(_SETTINGS, "requirepass masterauth psk wpa convertto-", flags=_ANY_CASE),
    SecretPattern(
        name="password",
        source=_PGPASS,
        flags=_FLAGS | re.MULTILINE,
        keywords=(":5432:", ":*:"),
        accepts=_judged(is_given),
    ),
    _password(_ORACLE, "sqlplus jdbc:oracle:thin:"),
    _password(
        _LOGIN_CALL,
        "auth http basic digest .login( .authenticate(",
        "auth",
        "login(",
        judge=is_told,
    ),
    _password(_PASSWORD_ABOVE, "pass kennwort pwd", flags=_ANY_CASE, judge=is_told),
    SecretPattern(
        name="secret",
        source=_SECRET_ABOVE,
        flags=_ANY_CASE,
        keywords=("secret", "token", "key"),
        anchors=("secret", "token", "api", "access"),
        accepts=_judged(partial(looks_like_a_secret, quoted=True)),
    ),
    SecretPattern(
        name="authorization",
        source=_BASIC,
        flags=_ANY_CASE,
        keywords=("basic",),
        anchors=("basic",),
        accepts=_judged(is_pair),
    ),
    _password(_NAMED_VALUE, "key name", "value", flags=_ANY_CASE, judge=is_told),
    _password(_ELEMENT, "<", "</", flags=_ANY_CASE, judge=is_told),
)
