"""The table of what is redacted: one pattern for each kind of secret."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

from smp_git.redact.assignment import (
    ASSIGNMENT_FLAGS,
    Kind,
    assignment_source,
    assigns_a_secret,
    option_source,
)
from smp_git.redact.evidence import (
    MIN_SECRET,
    is_encoded,
    is_filled_in,
    is_mixed,
    is_random,
    passes_luhn,
    passes_mod_97,
)
from smp_git.redact.lazy import LazyRegex

Judgement = Callable[[re.Match[str]], bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """One kind of secret: where it may stand, and what makes it one.

    `source` must take linear time on any text. What its group `secret` matched, or
    all of it if there is no such group, is replaced when `accepts` says so.
    A text that holds none of `keywords` (lower case, compared without case) or fewer
    than `shortest` characters is not searched; no keywords means always. With
    `by_line` the regex sees one line, or a bounded part of a long line, at a time.
    """

    name: str
    source: str
    flags: int = 0
    keywords: tuple[str, ...] = ()
    accepts: Judgement | None = None
    shortest: int = 6
    by_line: bool = False

    @property
    def regex(self) -> re.Pattern[str]:
        """The source, compiled when it is first needed: most texts need none of them."""
        return _compiled(self.source, self.flags)

    @property
    def placeholder(self) -> str:
        """The text that stands where a secret was."""
        return f"[REDACTED:{self.name}]"


@cache
def _compiled(source: str, flags: int) -> re.Pattern[str]:
    return re.compile(source, flags)


# No letter or digit stands before a token, unless it belongs to an escape such as
# \n or %3D. The prefix comes first and is looked back over, because a regex that
# starts with a literal is searched many times faster.
_BEFORE = r"(?:(?<![A-Za-z0-9_]{0})|(?<=\\[nrt]{0})|(?<=%[0-9A-F][0-9A-F]{0}))"
# Stricter: not inside a run of base64 either, for prefixes that occur there by chance.
_BEFORE_STRICT = r"(?<![A-Za-z0-9_+/-]{0})"


def _token(name: str, prefix: str, body: str, *keywords: str, before: str = _BEFORE) -> Pattern:
    """Return the pattern of a token: `prefix`, of fixed width, and then `body`."""
    guard = before.replace("{0}", prefix)
    return Pattern(
        name=name,
        source=rf"{prefix}{guard}(?P<body>{body})",
        flags=re.ASCII,
        keywords=keywords or (prefix.replace("\\", "").lower(),),
        accepts=_has_a_body,
    )


def _has_a_body(match: re.Match[str]) -> bool:
    return is_filled_in(match["body"])


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
_VERSION = re.compile(r"v?\d+\.(?:\d|x\b)")


def _is_mailbox(match: re.Match[str]) -> bool:
    """Say whether an address is a mailbox, not a remote, a file or a version."""
    domain = match["domain"].lower()
    return not (
        match["local"].lower() in _FORGE_ACCOUNTS
        or domain.rpartition(".")[2] in _FILE_ENDINGS
        or _VERSION.match(domain)
        or _SCP_PATH.match(match.string, match.end())
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
_CARD = r"(?<![\w.+/-])\d{4}(?:[ -]?\d){8,14}+(?![\w+/=-]|\.\d)"
_IBAN = r"[A-Z](?<![\w+/=][A-Z])[A-Z]\d\d(?:[ ]?[A-Z0-9]{4}){2,7}(?:[ ]?[A-Z0-9]{1,3})?+(?![\w+/=])"
_DISCORD = r"[MNO](?<![\w.+/-][MNO])[\w-]{22,27}+\.[\w-]{6}\.(?P<body>[\w-]{27,}+)"
_TELEGRAM = r"(?:(?<![\w:.-])|(?<=bot))\d{8,10}:AA[\w-]{32,34}+(?![\w-])"
_LONG_RUN = r"(?<![\w.+/=:%-])[A-Za-z0-9]{32,}+(?![\w+/=-])"
_JWT = r"eyJ(?<![A-Za-z0-9_]eyJ)[\w-]{10,}+\.(?P<body>eyJ[\w-]{8,}+(?:\.[\w-]*+)?)"
_VERBOSE = re.VERBOSE | re.ASCII

_DIGITS = tuple("0123456789")

# Order matters: a structure before the tokens it is made of, a token before the
# assignment that holds it, so that the placeholder names the most exact kind.
PATTERNS: tuple[Pattern, ...] = (
    Pattern(
        name="private-key",
        source=_PRIVATE_KEY,
        flags=_VERBOSE,
        keywords=("private key",),
        accepts=_holds_a_key,
    ),
    _token("private-key", "AGE-SECRET-KEY-1", "[A-Z0-9]{50,}+"),
    _token(
        "github-token",
        "gh[pousr]_",
        "[A-Za-z0-9_]{36,}+",
        *(f"gh{c}_" for c in "pousr"),
    ),
    _token("github-token", "github_pat_", "[A-Za-z0-9_]{22,}+"),
    _token("gitlab-token", "gl(?:pat|ptt|cbt|oas|imt)-", r"[\w.-]{20,}+", "gl"),
    _token("gitlab-token", "gl[rdf]t-", r"[\w.-]{20,}+", "glrt-", "gldt-", "glft-"),
    _token("aws-access-key", "A[KS]IA", "[A-Z0-9]{16}(?![A-Za-z0-9_])", "akia", "asia"),
    Pattern(
        name="aws-secret-key",
        source=r"""
            secret_?access_?key(?:\\?["'`])?[ \t]{0,8}(?:=>|:=|[:=])[ \t]{0,8}(?:\\?["'`])?
            (?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])
            """,
        flags=_VERBOSE | re.IGNORECASE,
        keywords=("access_key", "accesskey"),
    ),
    _token("google-api-key", "AIza", r"[\w-]{35,}+"),
    _token("google-oauth-secret", "GOCSPX-", r"[\w-]{20,}+"),
    _token("google-oauth-token", r"ya29\.", r"[\w.-]{20,}+"),
    _token("slack-token", "xox[abceoprs]-", "[A-Za-z0-9-]{10,}+", "xox"),
    _token("slack-token", r"xapp-", "[A-Za-z0-9-]{10,}+"),
    Pattern(
        name="slack-webhook",
        source=r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<secret>[\w/-]{20,}+)",
        keywords=("hooks.slack.com/",),
    ),
    _token(
        "stripe-key",
        "[sr]k_(?:live|test|prod)_",
        "[A-Za-z0-9]{10,}+",
        "k_live_",
        "k_test_",
        "k_prod_",
    ),
    _token("stripe-webhook-secret", "whsec_", "[A-Za-z0-9+/=]{24,}+"),
    _token("anthropic-key", "sk-ant-", r"[\w-]{16,}+"),
    _token("openai-key", "sk-", r"(?:proj|svcacct|admin|or-v1|None)-[\w-]{20,}+", "sk-"),
    _token("openai-key", "sk-", "[A-Za-z0-9]{20,}+(?![A-Za-z0-9_-])"),
    _token("huggingface-token", "hf_", "[A-Za-z0-9]{30,}+"),
    _token("npm-token", "npm_", "[A-Za-z0-9]{36,}+"),
    _token("pypi-token", "pypi-", r"Ag[\w-]{32,}+"),
    _token("sendgrid-key", r"SG\.", r"[\w-]{16,32}+\.[\w-]{16,}+"),
    _token(
        "twilio-key",
        "(?:SK|AC)",
        "[0-9a-f]{32}(?![A-Za-z0-9_])",
        "sk",
        "ac",
        before=_BEFORE_STRICT,
    ),
    Pattern(
        name="telegram-token",
        source=_TELEGRAM,
        flags=re.ASCII,
        keywords=(":aa",),
    ),
    Pattern(
        name="discord-token",
        source=_DISCORD,
        flags=re.ASCII,
        keywords=(".",),
        accepts=lambda match: is_mixed(match[0]),
    ),
    Pattern(
        name="discord-webhook",
        source=r"/api/webhooks/\d{17,20}/(?P<secret>[\w-]{40,}+)",
        flags=re.ASCII,
        keywords=("/api/webhooks/",),
    ),
    Pattern(
        name="azure-key",
        source=r"(?:Account|SharedAccess|Access)Key=(?P<secret>[A-Za-z0-9+/%]{20,}+={0,2})",
        flags=re.IGNORECASE,
        keywords=("accountkey=", "accesskey="),
    ),
    Pattern(
        name="azure-sas",
        source=r"(?<=[?&;])sig=(?P<secret>[A-Za-z0-9%+/=_-]{20,}+)",
        keywords=("sig=",),
    ),
    _token("digitalocean-token", "do[opr]_v1_", "[a-f0-9]{32,}+", "do"),
    _token("shopify-token", "shp(?:at|ca|pa|ss)_", "[a-fA-F0-9]{32,}+", "shp"),
    _token("square-token", "sq0[a-z]{3}-", r"[\w-]{22,}+", "sq0"),
    _token("square-token", "EAAA", r"[\w-]{56,60}+(?![\w+/=-])", before=_BEFORE_STRICT),
    _token("mailgun-key", "key-", r"[0-9a-f]{32}(?![A-Za-z0-9_])"),
    _token("databricks-token", "dapi", "[0-9a-f]{32}(?![A-Za-z0-9_])"),
    _token("vault-token", r"hv[sb]\.", r"[\w-]{24,}+", "hvs.", "hvb."),
    Pattern(
        name="jwt",
        source=_JWT,
        flags=re.ASCII,
        keywords=("eyj",),
    ),
    Pattern(
        name="url-password",
        source=_URL_CREDENTIALS,
        keywords=("://",),
        accepts=_is_no_template,
    ),
    Pattern(
        name="authorization",
        source=_AUTHORIZATION,
        flags=_VERBOSE | re.IGNORECASE,
        keywords=("authorization", "bearer"),
        accepts=_is_credential,
    ),
    *(
        Pattern(
            name=kind.value,
            source=source,
            flags=ASSIGNMENT_FLAGS,
            keywords=keywords,
            accepts=partial(assigns_a_secret, kind),
        )
        for kind, keywords in (
            (Kind.PASSWORD, ("pass", "pwd")),
            (Kind.SECRET, ("secret", "token", "key", "credential")),
        )
        for source in (assignment_source(kind), option_source(kind))
    ),
    Pattern(
        name="email",
        source=_MAILBOX,
        keywords=("@",),
        accepts=_is_mailbox,
    ),
    Pattern(
        name="iban", source=_IBAN, flags=re.ASCII, keywords=_DIGITS, accepts=_is_iban, shortest=15
    ),
    Pattern(
        name="payment-card",
        source=_CARD,
        flags=re.ASCII,
        keywords=_DIGITS,
        accepts=_is_card,
        shortest=14,
    ),
    Pattern(
        name="long-token",
        source=_LONG_RUN,
        flags=re.ASCII,
        keywords=_DIGITS,
        accepts=_is_random,
        shortest=32,
    ),
)
