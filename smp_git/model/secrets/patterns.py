"""The table of what is redacted: one pattern for each kind of secret."""

from __future__ import annotations

import re
from functools import partial

from smp_git.model.secrets.assignments import (
    ASSIGNMENT_FLAGS,
    COMMANDS,
    SecretKind,
    assignment_source,
    assigns_a_secret,
    option_source,
)
from smp_git.model.secrets.evidence import (
    MIN_SECRET,
    LazyRegex,
    SecretPattern,
    is_encoded,
    is_mixed,
    is_random,
    passes_luhn,
    passes_mod_97,
)
from smp_git.model.secrets.prose import PROSE
from smp_git.model.secrets.tokens import TOKENS


def _holds_a_key(match: re.Match[str]) -> bool:
    """Say whether a PEM block holds a key, not the words between two markers."""
    body = match["body"]
    return bool(_BASE64_RUN.search(body) or _BASE64_LINES.match(body))


_BASE64_RUN = re.compile(r"[A-Za-z0-9+/=]{16}")
_BASE64_LINES = re.compile(r"[ \t]*(?:\\n|\r?\n)[ \t]*[A-Za-z0-9+/=]{4}")


def _is_credential(match: re.Match[str]) -> bool:
    return len(match["secret"]) >= MIN_SECRET and is_encoded(match["secret"][:512])


def _is_no_template(match: re.Match[str]) -> bool:
    """Say whether a URL's password is one, not `${PASSWORD}` or `***`."""
    return not _TEMPLATE.fullmatch(match["secret"])


_TEMPLATE = LazyRegex(r"[$%]?\{.*|\$\w+|\$\(.*|<.*|%\w+%|[*xX.•]+|\[.*")


def _is_random(match: re.Match[str]) -> bool:
    """Say whether a bare run of letters and digits is a generated token.

    64 and 76 are the line lengths of PEM and MIME; "AAAA" starts an SSH public key,
    "Qm" a content address.
    """
    run = match[0]
    return len(run) not in (64, 76) and not run.startswith(("AAAA", "Qm")) and is_random(run[:512])


# Words that are not the mailbox of a person: the accounts of source forges.
_FORGE_ACCOUNTS = frozenset({"git", "hg", "svn"})
# Endings of file and unit names such as icon@2x.png and getty@tty1.service.
_FILE_ENDINGS = frozenset(
    [
        "avif",
        "css",
        "csv",
        "dll",
        "exe",
        "gif",
        "gz",
        "html",
        "ico",
        "jar",
        "jpeg",
        "jpg",
        "js",
        "json",
        "lock",
        "log",
        "mjs",
        "mount",
        "pdf",
        "png",
        "service",
        "slice",
        "socket",
        "svg",
        "target",
        "tar",
        "tgz",
        "timer",
        "toml",
        "ts",
        "tsx",
        "txt",
        "webp",
        "whl",
        "xml",
        "yaml",
        "yml",
    ]
)
_SCP_PATH = re.compile(r":(?!//)[\w.~-]{0,100}/")
# Domains that are nobody's (RFC 2606).
_NOBODY = re.compile(r"(?:^|\.)example(?:\.(?:com|net|org))?$|\.(?:invalid|test)$")
_REMOTE_SHELL = re.compile(r"\b(?:ssh|sftp|mosh|plink|ssh-copy-id)[ ][^\n|;&]*$")
_VERSION = re.compile(r"v?\d+\.(?:\d|x\b)")


def _is_mailbox(match: re.Match[str]) -> bool:
    """Say whether an address is a mailbox, not a remote, a file or a version."""
    domain = match["domain"].lower()
    return not (
        match["local"].lower() in _FORGE_ACCOUNTS
        or domain.rpartition(".")[2] in _FILE_ENDINGS
        or _NOBODY.search(domain)
        or _VERSION.match(domain)
        or _SCP_PATH.match(match.string, match.end())
        or _REMOTE_SHELL.search(match.string, max(0, match.start() - 120), match.start())
    )


# Issuer ranges: Visa, Mastercard, American Express, Discover, JCB, Diners.
_ISSUER = re.compile(
    r"4|5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)|3[47]|6(?:011|5|4[4-9])|35[2-8]|3[068]"
)
# Lengths that are issued; others with a valid check digit are chance.
_CARD_LENGTHS = (14, 15, 16)


def _is_card(match: re.Match[str]) -> bool:
    digits = match[0].replace(" ", "").replace("-", "")
    return (
        len(digits) in _CARD_LENGTHS
        and len(set(digits)) > 1
        and bool(_ISSUER.match(digits))
        and passes_luhn(digits)
    )


# Country and length of its account numbers (IBAN registry).
_IBAN_LENGTHS = {
    "AT": 20, "BE": 16, "BG": 22, "CH": 21, "CY": 28, "CZ": 24, "DE": 22, "DK": 18,
    "EE": 20, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "GR": 27, "HR": 21, "HU": 28,
    "IE": 22, "IS": 26, "IT": 27, "LI": 21, "LT": 20, "LU": 20, "LV": 21, "MC": 27,
    "MT": 31, "NL": 18, "NO": 15, "PL": 28, "PT": 25, "RO": 24, "SE": 24, "SI": 19,
    "SK": 24, "TR": 26, "AE": 23, "SA": 24, "IL": 23, "BR": 29,
}  # fmt: skip


def _is_iban(match: re.Match[str]) -> bool:
    account = match[0].replace(" ", "")
    return _IBAN_LENGTHS.get(account[:2]) == len(account) and passes_mod_97(account)


_PRIVATE_KEY = r"""
    -----BEGIN[ ](?:[A-Z0-9]{1,20}[ ]){0,4}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----
    (?P<body>
        (?:[^-]++|-(?!----(?:BEGIN|END)[ ]))*+ (?=-----END[ ])
      | (?:(?:\\[nrt]|[\s"'+>|,*\#])*+ (?:[A-Za-z0-9+/=]{16,}+|[A-Za-z0-9+/]{1,15}=))++
    )
    (?:-----END[ ](?:[A-Z0-9]{1,20}[ ]){0,4}PRIVATE[ ]KEY(?:[ ]BLOCK)?-----)?
"""
_AUTHORIZATION = r"""
    (?:authorization["']?\]?[ \t]{0,4}[:=][ \t]{0,4}(?:[bfru]?\\?["'`])?
        (?:bearer|basic|token|apikey|api-key|key|digest)?[ \t]{0,4}
      | authorization["'][ \t]{0,4},[ \t]{0,4}[bfru]?\\?["'`](?:bearer|basic|token)[ ]
      | (?<![a-z])bearer[ \t]{1,4}
    )
    (?P<secret>[A-Za-z0-9._~+/=-]++)
"""
_URL_CREDENTIALS = r"://(?P<user>[^\s/:@\[\"'`<>]{0,128}+):(?P<secret>[^\s/\"'`<>]{1,256})@"
_MAILBOX = (
    r"(?:(?<![\w.+%@/\\-])|(?<=\\[nrt]))(?P<local>[\w+%-](?:[\w.+%-]{0,62}[\w+%-])?+)"
    r"@(?P<domain>(?:[^\W_](?:[\w-]{0,61}[^\W_])?+\.){1,8}[^\W\d_]{2,24}+)(?![\w@-])"
)
_CARD = r"\d(?<![\w.+/-]\d)\d{3}(?:[ -]?\d){8,14}+(?![\w+/=-]|\.\d)"
_IBAN = r"[A-Z](?<![\w+/=][A-Z])[A-Z]\d\d(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?+(?![\w+/=])"
_DISCORD = r"[MNO](?<![\w.+/-][MNO])[\w-]{22,27}+\.[\w-]{6}\.(?P<body>[\w-]{27,}+)"
_TELEGRAM = r"(?:(?<![\w:.-])|(?<=bot))\d{8,10}:AA[\w-]{32,34}+(?![\w-])"
_LONG_RUN = r"(?<![\w.+/=:%-])[A-Za-z0-9]{32,}+(?![\w+/=-])"
_JWT = r"eyJ(?<![A-Za-z0-9_]eyJ)[\w-]{10,}+\.(?P<body>eyJ[\w-]{8,}+(?:\.[\w-]*+)?)"
_VERBOSE = re.VERBOSE | re.ASCII

_DIGITS = tuple("0123456789")

# Order matters: a structure before the tokens it is made of, a token before the
# assignment that holds it, so that the placeholder names the most exact kind.
PATTERNS: tuple[SecretPattern, ...] = (
    SecretPattern(
        name="private-key",
        source=_PRIVATE_KEY,
        flags=_VERBOSE,
        keywords=("private",),
        accepts=_holds_a_key,
    ),
    *TOKENS,
    SecretPattern(
        name="aws-secret-key",
        source=r"""
            secret_?access_?key(?:\\?["'`])?[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}(?:\\?["'`])?
            (?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])
            """,
        flags=_VERBOSE | re.IGNORECASE,
        keywords=("access_key", "accesskey"),
    ),
    SecretPattern(
        name="slack-webhook",
        source=r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{20,}+)",
        keywords=("hooks.slack.com/",),
        is_token=True,
    ),
    SecretPattern(
        name="telegram-token",
        source=_TELEGRAM,
        flags=re.ASCII,
        keywords=(":aa",),
        is_token=True,
    ),
    SecretPattern(
        name="discord-token",
        source=_DISCORD,
        flags=re.ASCII,
        keywords=(".",),
        accepts=lambda match: is_mixed(match[0]),
        is_token=True,
    ),
    SecretPattern(
        name="discord-webhook",
        source=r"/api/webhooks/\d{17,20}/(?P<secret>[\w-]{40,}+)",
        flags=re.ASCII,
        keywords=("/api/webhooks/",),
        is_token=True,
    ),
    SecretPattern(
        name="azure-key",
        source=r"(?:Account|SharedAccess|Access)Key=(?P<secret>[A-Za-z0-9+/%]{20,}+={0,2})",
        flags=re.IGNORECASE,
        keywords=("accountkey=", "accesskey="),
    ),
    SecretPattern(
        name="azure-sas",
        source=r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/=_-]{20,}+)",
        keywords=("sig=",),
    ),
    SecretPattern(
        name="jwt",
        source=_JWT,
        flags=re.ASCII,
        keywords=("eyj",),
        is_token=True,
    ),
    SecretPattern(
        name="url-password",
        source=_URL_CREDENTIALS,
        keywords=("://",),
        accepts=_is_no_template,
    ),
    SecretPattern(
        name="authorization",
        source=_AUTHORIZATION,
        flags=_VERBOSE | re.IGNORECASE,
        keywords=("authorization", "bearer"),
        accepts=_is_credential,
    ),
    *(
        SecretPattern(
            name=kind.value,
            source=source,
            flags=ASSIGNMENT_FLAGS,
            keywords=keywords,
            accepts=partial(assigns_a_secret, kind),
            anchors=anchors or keywords,
        )
        for kind, keywords in (
            (SecretKind.PASSWORD, ("pass", "pwd")),
            (SecretKind.SECRET, ("secret", "token", "key", "credential")),
        )
        for source, anchors in ((assignment_source(kind), ()), (option_source(kind), ("--",)))
    ),
    *COMMANDS,
    *PROSE,
    SecretPattern(
        name="email",
        source=_MAILBOX,
        keywords=("@",),
        accepts=_is_mailbox,
    ),
    SecretPattern(
        name="iban", source=_IBAN, flags=re.ASCII, keywords=_DIGITS, accepts=_is_iban, shortest=15
    ),
    SecretPattern(
        name="payment-card",
        source=_CARD,
        flags=re.ASCII,
        keywords=_DIGITS,
        accepts=_is_card,
        shortest=14,
    ),
    SecretPattern(
        name="long-token",
        source=_LONG_RUN,
        flags=re.ASCII,
        keywords=_DIGITS,
        accepts=_is_random,
        shortest=32,
        is_token=True,
    ),
)
