"""The table of what is redacted: one pattern for each kind of secret."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

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
    Judgement,
    LazyRegex,
    SecretPattern,
    is_encoded,
    is_filled_in,
    is_generated,
    is_mixed,
    is_random,
    passes_luhn,
    passes_mod_97,
)
from smp_git.model.secrets.prose import PROSE

# No letter or digit comes before a token, unless it belongs to an escape such as
# \n or %3D. The prefix comes first and is looked back over, because a regex that
# starts with a literal is searched many times faster.
_BEFORE = r"(?:(?<![A-Za-z0-9_]{0})|(?<=\\[nrt]{0})|(?<=%[0-9A-F][0-9A-F]{0}))"
# Stricter: not inside a run of base64 either, for prefixes that occur there by chance.
_BEFORE_STRICT = r"(?<![A-Za-z0-9_+/-]{0})"
_END = "(?![A-Za-z0-9_])"
_END_STRICT = "(?![A-Za-z0-9_+/=-])"

_HEX = "[0-9a-f]"
_UUID = f"{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}}"


def token(
    name: str,
    prefix: str,
    body: str,
    *keywords: str,
    strict: bool = False,
    judge: Callable[[str], bool] = is_filled_in,
) -> SecretPattern:
    """Return the pattern of a token: `prefix`, of fixed width, and then `body`."""
    guard = (_BEFORE_STRICT if strict else _BEFORE).replace("{0}", prefix)
    return SecretPattern(
        name=name,
        source=rf"{prefix}{guard}(?P<body>{body})",
        flags=re.ASCII,
        keywords=keywords or (prefix.replace("\\", "").lower(),),
        accepts=_judged(judge),
        is_token=True,
    )


def _judged(judge: Callable[[str], bool]) -> Judgement:
    return lambda match: judge(match["body"])


def _shape(name: str, source: str, *keywords: str) -> SecretPattern:
    """Return the pattern of a token that is known by more than its prefix."""
    return SecretPattern(name=name, source=source, flags=re.ASCII, keywords=keywords, is_token=True)


# Name, prefix, body. Facts of the prefixes: what the providers publish, and the rule
# tables of public scanners, which agree on them.
_PREFIXED: Final[tuple[tuple[str, ...], ...]] = (
    ("private-key", "AGE-SECRET-KEY-1", "[A-Z0-9]{50,}+"),
    ("github-token", "github_pat_", "[A-Za-z0-9_]{22,}+"),
    ("gitlab-token", "glagent-", r"[\w-]{40,}+"),
    ("gitlab-token", "glsoat-", r"[\w-]{20,}+"),
    ("gitlab-token", "glffct-", r"[\w-]{20,}+"),
    ("gitlab-token", "GR1348941", r"[\w-]{20,}+"),
    ("aws-access-key", "A[KSB]IA", f"[A-Z0-9]{{16}}{_END}", "akia", "asia", "abia"),
    ("aws-bedrock-key", "ABSK", "[A-Za-z0-9+/]{100,}+={0,2}"),
    ("google-api-key", "AIza", r"[\w-]{35,}+"),
    ("google-oauth-secret", "GOCSPX-", r"[\w-]{20,}+"),
    ("google-oauth-token", r"ya29\.", r"[\w.-]{20,}+"),
    ("slack-token", r"xoxe\.xox[bp]-", "[A-Za-z0-9-]{10,}+", "xoxe."),
    ("slack-token", "xox[abceoprs]-", "[A-Za-z0-9-]{10,}+", "xox"),
    ("slack-token", "xapp-", "[A-Za-z0-9-]{10,}+"),
    ("stripe-webhook-secret", "whsec_", "[A-Za-z0-9+/=]{24,}+"),
    ("anthropic-key", "sk-ant-", r"[\w-]{16,}+"),
    ("openrouter-key", "sk-or-v1-", r"[\w-]{20,}+"),
    ("langfuse-key", "sk-lf-", _UUID),
    ("openai-key", "sk-", r"(?:proj|svcacct|admin|None)-[\w-]{20,}+"),
    ("openai-key", "sk-", "[A-Za-z0-9]{20,}+(?![A-Za-z0-9_-])"),
    ("huggingface-token", "hf_", "[A-Za-z0-9]{30,}+"),
    ("huggingface-token", "api_org_", "[A-Za-z]{30,}+"),
    ("npm-token", "npm_", "[A-Za-z0-9]{36,}+"),
    ("pypi-token", "pypi-", r"Ag[\w-]{32,}+"),
    ("sendgrid-key", r"SG\.", r"[\w-]{16,32}+\.[\w-]{16,}+"),
    ("mailgun-key", "key-", rf"{_HEX}{{32}}{_END}"),
    ("databricks-token", "dapi", rf"{_HEX}{{32}}(?:-\d)?{_END}"),
    ("rubygems-token", "rubygems_", f"{_HEX}{{40,}}+"),
    ("docker-token", "dckr_[po]at_", r"[\w-]{24,}+", "dckr_"),
    ("linear-key", "lin_api_", "[A-Za-z0-9]{36,}+"),
    ("linear-key", "lin_oauth_", f"{_HEX}{{40,}}+"),
    ("notion-token", "ntn_", "[A-Za-z0-9]{40,}+"),
    ("notion-token", "secret_", f"[A-Za-z0-9]{{43}}{_END}"),
    ("groq-key", "gsk_", "[A-Za-z0-9]{40,}+"),
    ("perplexity-key", "pplx-", "[A-Za-z0-9]{40,}+"),
    ("supabase-key", "sbp_", f"(?:oauth_|v0_)?{_HEX}{{36,}}+"),
    ("newrelic-key", "NRAK-", "[A-Z0-9]{24,}+"),
    ("newrelic-key", "NRJS-", f"{_HEX}{{16,}}+"),
    ("newrelic-key", "NRI[IQ]-", r"[\w-]{28,}+", "nrii-", "nriq-"),
    ("newrelic-key", "NR(?:RA|SP|BR)-", r"[A-Za-z0-9]{28,}+", "nrra-", "nrsp-", "nrbr-"),
    (
        "doppler-token",
        r"dp\.",
        r"(?:pt|ct|st|sa|scim|audit|said)\.(?:[\w-]{1,40}\.)?[A-Za-z0-9]{40,}+",
    ),
    ("postman-key", "PMAK-", f"{_HEX}{{24}}-{_HEX}{{30,}}+"),
    ("tailscale-key", "tskey-", r"[a-z]{3,10}-\w{6,}-\w{10,}+"),
    ("cloudflare-key", r"v1\.0-", f"{_HEX}{{24}}-{_HEX}{{140,}}+"),
    ("flyio-token", "fo1_", r"[\w-]{40,}+"),
    ("flyio-token", "fm[12][ar_]", "_?[A-Za-z0-9+/]{80,}+={0,3}", "fm1", "fm2"),
    ("planetscale-token", "pscale_", r"(?:tkn|pw|oauth)_[\w.=-]{32,}+"),
    ("neon-key", "napi_", "[a-z0-9]{40,}+"),
    ("netlify-token", "nf[pcoub]_", "[A-Za-z0-9]{36,}+", "nf"),
    ("vercel-token", "vc[piark]_", "[A-Za-z0-9]{24,}+", "vc"),
    ("heroku-key", "HRKU-", r"AA[\w-]{50,}+"),
    ("replicate-token", "r8_", r"[A-Za-z0-9]{32,}+"),
    ("xai-key", "xai-", "[A-Za-z0-9]{60,}+"),
    ("cerebras-key", "csk-", "[a-z0-9]{40,}+"),
    ("nvidia-key", "nvapi-", r"[\w-]{50,}+"),
    ("pinecone-key", "pcsk_", "[A-Za-z0-9]{4,8}_[A-Za-z0-9]{40,}+"),
    ("langsmith-key", "lsv2_", f"(?:pt|sk)_{_HEX}{{32}}_{_HEX}{{8,}}+"),
    ("together-key", "tgp_v1_", r"[\w-]{40,}+"),
    ("jina-key", "jina_", "[A-Za-z0-9]{40,}+"),
    ("elevenlabs-key", "sk_", f"{_HEX}{{48}}{_END}"),
    ("posthog-key", "ph[xs]_", "[A-Za-z0-9]{36,}+", "phx_", "phs_"),
    ("figma-token", "fig[do]_", r"[\w-]{36,}+", "figd_", "figo_"),
    ("atlassian-token", "AT[AC]TT3", r"[\w=-]{80,}+", "atatt3", "atctt3"),
    ("hubspot-token", "pat-", rf"(?:na|eu)\d-{_UUID}"),
    ("clickup-token", "pk_", rf"\d{{6,9}}_[A-Z0-9]{{32}}{_END}"),
    ("brevo-key", "xkeysib-", r"[\w-]{40,}+"),
    ("brevo-key", "xsmtpsib-", r"[\w-]{40,}+"),
    ("grafana-token", "glsa_", r"[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}"),
    ("grafana-token", "glc_", "[A-Za-z0-9+/]{32,}+={0,3}"),
    ("sentry-token", "sntryu_", f"{_HEX}{{60,}}+"),
    ("sentry-token", "sntrys_", r"eyJ[A-Za-z0-9+/=_]{60,}+"),
    ("dynatrace-token", r"dt0[a-z]\d\d\.", r"[A-Z0-9]{24}\.[A-Z0-9]{64}", "dt0"),
    ("sonarqube-token", "sq[upa]_", f"{_HEX}{{40}}{_END}", "squ_", "sqp_", "sqa_"),
    ("buildkite-token", "bkua_", f"{_HEX}{{36,}}+"),
    ("circleci-token", "CCIP(?:AT|RJ)_", r"[A-Za-z0-9]{20,24}_[0-9a-f]{40}", "ccipat_", "cciprj_"),
    ("pulumi-token", "pul-", f"{_HEX}{{40}}{_END}"),
    ("sourcegraph-token", "sgp_", f"(?:{_HEX}{{16}}_|local_)?{_HEX}{{40}}{_END}"),
    ("onepassword-token", "ops_", r"eyJ[A-Za-z0-9+/]{200,}+={0,3}"),
    (
        "onepassword-key",
        "A3-",
        r"[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})(?:-[A-Z0-9]{5}){3}",
    ),
    ("mongodb-secret", "mdb_sa_sk_", r"[\w-]{36,}+"),
    ("readme-key", "rdme_", "[a-z0-9]{60,}+"),
    ("duffel-token", "duffel_", r"(?:test|live)_[\w=-]{40,}+"),
    ("frameio-token", "fio-u-", r"[\w=-]{60,}+"),
    ("flutterwave-key", "FLWSECK", "(?:_TEST)?-[A-Za-z0-9]{12,}+(?:-X)?"),
    ("contentful-token", "CFPAT-", r"[\w-]{40,}+"),
    ("shippo-token", "shippo_", f"(?:live|test)_{_HEX}{{40}}"),
    ("prefect-token", "pnu_", "[A-Za-z0-9]{36}(?![A-Za-z0-9_])"),
    ("apify-token", "apify_api_", "[A-Za-z0-9]{30,}+"),
    ("openshift-token", "sha256~", r"[\w-]{43}(?![\w-])"),
    ("vault-token", r"hv[sbr]\.", r"[\w-]{24,}+", "hvs.", "hvb.", "hvr."),
    ("digitalocean-token", "do[opr]_v1_", "[a-f0-9]{32,}+", "do"),
    ("shopify-token", "shp(?:at|ca|pa|ss|ua)_", "[a-fA-F0-9]{32,}+", "shp"),
    ("square-token", "sq0[a-z]{3}-", r"[\w-]{22,}+", "sq0"),
)
# Short prefixes that words and names have too: the body must be what a generator makes.
_GENERATED: Final[tuple[tuple[str, ...], ...]] = (
    ("supabase-key", "sb_secret_", r"[\w-]{24,}+"),
    ("render-key", "rnd_", f"[A-Za-z0-9]{{24,}}+{_END}"),
    ("fireworks-key", "fw_", f"[A-Za-z0-9]{{20,}}+{_END}"),
    ("resend-key", "re_", f"[A-Za-z0-9]{{6,10}}_[A-Za-z0-9]{{20,}}+{_END}"),
    ("voyage-key", "pa-", r"[\w-]{43}(?![\w-])"),
    ("tavily-key", "tvly-", r"(?:dev-|prod-)?[\w-]{24,}+"),
    ("infracost-key", "ico-", f"[A-Za-z0-9]{{32}}{_END_STRICT}"),
    ("dropbox-token", r"sl\.", r"(?:u\.)?[\w-]{100,}+"),
    ("typeform-token", "tfp_", r"[\w.=-]{40,}+"),
    ("harness-token", "[ps]at\\.", r"[\w-]{22}\.[0-9A-Za-z]{24}\.[A-Za-z0-9]{20}", "pat.", "sat."),
)
# Prefixes of which runs of base64 are full: a whole run, of the exact length.
_STRICT: Final[tuple[tuple[str, ...], ...]] = (
    ("twilio-key", "(?:SK|AC)", rf"{_HEX}{{32}}{_END}", "sk", "ac"),
    ("square-token", "EAAA", r"[\w-]{56,60}+(?![\w+/=-])"),
    ("facebook-token", "EAA[MC]", f"[A-Za-z0-9]{{100,}}+{_END_STRICT}", "eaam", "eaac"),
    ("artifactory-key", "AKCp", f"[A-Za-z0-9]{{69}}{_END_STRICT}"),
    ("artifactory-key", "cmVmd", f"[A-Za-z0-9]{{59}}{_END_STRICT}"),
    ("bitbucket-password", "ATBB", f"[A-Za-z0-9]{{32}}{_END_STRICT}"),
    ("nuget-key", "oy2", f"[a-z0-9]{{43}}{_END_STRICT}"),
    ("crates-token", "cio", f"[A-Za-z0-9]{{32}}{_END_STRICT}"),
    ("octopus-key", "API-", f"[A-Z0-9]{{26}}{_END_STRICT}"),
    ("alibaba-key", "LTAI", f"[A-Za-z0-9]{{12,24}}{_END_STRICT}"),
    ("yandex-key", "AQVN", r"[\w-]{35,38}(?![\w-])"),
    ("easypost-key", "EZ[AT]K", f"[A-Za-z0-9]{{54}}{_END_STRICT}", "ezak", "eztk"),
)
_SHAPES = (
    _shape("newrelic-key", rf"(?<![\w+/-]){_HEX}{{6}}[0-9a-fFx]{{30}}NRAL{_END}", "nral"),
    _shape("mailchimp-key", rf"(?<![\w-]){_HEX}{{32}}-us\d{{1,2}}{_END}", "-us"),
    _shape("terraform-token", r"(?<![\w-])[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{60,}+", ".atlasv1."),
    _shape("airtable-token", rf"pat(?<![A-Za-z0-9_]pat)[A-Za-z0-9]{{14}}\.{_HEX}{{64}}", "pat"),
    _shape(
        "asana-token",
        rf"(?<![\w/.-])[12]/\d{{14,19}}(?:/\d{{14,19}})?:{_HEX}{{32}}{_END}",
        "2/",
        "1/",
    ),
    _shape(
        "azure-client-secret", r"(?<![\w~.-])[\w~.]{3}[78]Q~[\w~.-]{31,34}(?![\w~-])", "8q~", "7q~"
    ),
    _shape(
        "teams-webhook",
        rf"\.webhook\.office\.com/webhookb2/(?P<secret>{_UUID}@{_UUID}/\w{{1,20}}/[\w/-]{{20,}}+)",
        ".webhook.office.com/",
    ),
)


def _table() -> Iterator[SecretPattern]:
    yield token("github-token", "gh[pousr]_", "[A-Za-z0-9_]{36,}+", *(f"gh{c}_" for c in "pousr"))
    yield token("gitlab-token", "gl(?:pat|ptt|cbt|oas|imt)-", r"[\w.-]{20,}+", "gl")
    yield token("gitlab-token", "gl[rdf]t-", r"[\w.-]{20,}+", "glrt-", "gldt-", "glft-")
    yield token(
        "stripe-key",
        "[sr]k_(?:live|test|prod)_",
        "[A-Za-z0-9]{10,}+",
        *(f"k_{kind}_" for kind in ("live", "test", "prod")),
    )
    for name, prefix, body, *keywords in _PREFIXED:
        yield token(name, prefix, body, *keywords)
    for name, prefix, body, *keywords in _GENERATED:
        yield token(name, prefix, body, *keywords, judge=is_generated)
    for name, prefix, body, *keywords in _STRICT:
        yield token(name, prefix, body, *keywords, strict=True, judge=is_mixed)
    yield from _SHAPES


TOKENS: tuple[SecretPattern, ...] = tuple(_table())


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
