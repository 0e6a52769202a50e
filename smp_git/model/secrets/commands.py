"""Passwords where commands, scripts and configuration files take them."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from smp_git.model.secrets.evidence import JUDGED, is_given, is_pair, is_told, looks_like_a_secret
from smp_git.model.secrets.pattern import Judgement, Pattern

_FLAGS: Final = re.VERBOSE | re.ASCII
_ANY_CASE: Final = _FLAGS | re.IGNORECASE

# Of a quoted value all up to the quote; of a bare one no sign that ends a sentence.
_BARE = r"""[^\s"'`|<>()]{0,255}[^\s"'`|<>(),.:;]"""
_QUOTED = r"(?:(?!(?P=quote))[^\n])++"
_VALUE = rf"""(?P<quote>\\?["'])?(?P<secret>(?(quote){_QUOTED}|{_BARE}))"""
# The same after `user:`, where the quote stands before the user.
_USER = r"""(?P<quote>\\?["'])?[^\s:"'<>$%{}/]{1,64}"""
_OF_USER = rf"(?P<secret>(?(quote){_QUOTED}|(?!//){_BARE}))"
# What stands between the words of a command: on one line, or on several, or in a list of
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
    {_VALUE}
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
    {_VALUE}
"""
_NET_USE = rf"\bnet[ ]use\b{_GAP}/user:\S{{1,64}}[ ]{{1,4}}{_VALUE}"
_SECOND_OPTION = rf"\bsnmp[a-z]{{2,9}}\b{_GAP}{_BLANK}-X{_THEN}{_VALUE}"
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
    \becho[ ]{{1,4}}(?:-[ne]{{1,2}}[ ]{{1,4}})?{_VALUE}["']?[ ]{{0,4}}\|[ ]{{0,4}}
    (?:sudo[ ](?:[^\n|]{{0,20}}[ ])?-[A-Za-z]{{0,4}}S\b|[^\n|]{{0,120}}?(?:--password-stdin|--passphrase-fd|--stdin|cryptsetup))
"""
_PIPED_PAIR = rf"""
    \becho[ ]{{1,4}}(?:-[ne]{{1,2}}[ ]{{1,4}})?{_USER}:{_OF_USER}["']?[ ]{{0,4}}\|[ ]{{0,4}}(?:sudo[ ])?chpasswd
"""
_HERE_STRING = rf"(?:cryptsetup|passwd|sudo|kinit)\b{_GAP}<<<[ ]{{0,4}}{_VALUE}"
_EXPECTED = r"password[^\n]{0,20}[ ]send[ ]{1,4}[\"'](?P<secret>[^\s\"'\\]{3,128})\\[rn]"
_PASS_OF_OPENSSL = rf"-pass(?:in|out)?[ ]{{1,4}}[\"']?pass:(?P<quote>[\"'])?(?P<secret>(?(quote){_QUOTED}|{_BARE}))"
_NETRC = rf"\b(?:login|user)\s{{1,8}}[\w.@+-]{{1,64}}\s{{1,8}}password\s{{1,8}}{_VALUE}"
_NETRC_MACHINE = rf"""
    \bmachine[ \t]{{1,8}}[\w-]{{1,60}}\.[\w.-]{{1,120}}
    (?:\s{{1,8}}(?:login|account)\s{{1,8}}\S{{1,64}}){{0,2}}\s{{1,8}}password\s{{1,8}}{_VALUE}
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
    {_VALUE}
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
) -> Pattern:
    """Return a pattern that begins with one of `anchors`, which stand between blanks."""
    begins = tuple(word.replace("_", " ") for word in anchors.split())
    return Pattern(
        name="password",
        source=source,
        flags=flags,
        keywords=keywords or begins,
        accepts=_judged(judge),
        anchors=begins,
    )


COMMANDS: Final[tuple[Pattern, ...]] = (
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
    Pattern(
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
    Pattern(
        name="secret",
        source=_SECRET_ABOVE,
        flags=_ANY_CASE,
        keywords=("secret", "token", "key"),
        anchors=("secret", "token", "api", "access"),
        accepts=_judged(partial(looks_like_a_secret, quoted=True)),
    ),
    Pattern(
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
