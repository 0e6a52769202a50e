"""Passwords that people tell in a sentence, in the languages that they write."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Final

from smp_git.model.secrets.evidence import JUDGED, SecretPattern, is_told, is_unmistakable

_FLAGS: Final = re.VERBOSE | re.IGNORECASE

# A "password policy" is no password.
_OTHER_THING: Final = (
    r"[ ](?:polic|manager|hash|hint|field|reset|length|file|store|vault|rotation|prompt|generator"
    r"|strength|encoding|algorithm|format|type|name|id\b|column|rule|check|list|complexity)"
)
# Keywords, the words for a password, and the verbs that the value follows.
_WITH_A_VERB: Final = (
    # English; "pass", "token" and "key" are words of other things too
    (
        ("password", "passphrase", "passcode", "passwd"),
        rf"pass(?:word|phrase|code|wd)s?(?!{_OTHER_THING})",
        r"is|was|are|be|been|becomes|now|as|to|from|['’]s|=|è|era|sarà|er|är",
    ),
    (
        ("pass", "pw", "api ", "access ", "auth ", "secret", "token"),
        r"pass|pwd?|(?:api|access|auth|secret)[ ](?:key|token)|secret|token",
        r"is|was|are|now|['’]s|=",
    ),
    # German
    (
        ("passwort", "passwört", "kennw"),
        r"passw(?:ort|örter)s?|kennw[oö]rte?r?|passphrase",
        r"ist|war|lautet|heißt|wird|auf|jetzt|nun|sei",
    ),
    # French
    (
        ("mot de passe", "mots de passe", "mdp"),
        r"mots?[ ]de[ ]passe|mdp",
        r"est|était|c'est|sera|devient|vaut",
    ),
    # Spanish
    (("contrase", "clave"), r"contrase(?:ñ|n\u0303)as?|clave", r"es|era|será|fue|ahora"),
    # Portuguese
    (("senha", "palavra-passe"), r"senhas?|palavra-passe", r"é|era|será|foi|agora"),
    # Italian, Romanian
    (("parol",), r"parol[ae](?:[ ]d'ordine)?", r"è|era|sarà|este|e|era"),
    # Dutch
    (("wachtw",), r"wachtwoord(?:en)?", r"is|was|wordt|luidt"),
    # Polish
    (("has",), r"has[łl](?:o|em|a)", r"to|jest|brzmi|było"),
    # Swedish, Norwegian, Danish
    (
        ("lösen", "passord", "kodeord", "adgangskode"),
        r"lösenord(?:et)?|passord(?:et)?|kodeord(?:et)?|adgangskode(?:n)?",
        r"är|var|er|blir|blev",
    ),
    # Finnish
    (("salasana",), r"salasana(?:ni|mme|si)?", r"on|oli"),
    # Czech, Slovak, Croatian, Serbian, Slovene
    (
        ("hesl", "lozin", "лозин"),
        r"hesl[oa]|lozink[aeu]|лозинк[аеу]",
        r"je|byl[oa]|znie|je[ ]bila|је|била",
    ),
    # Greek
    (("κωδ", "συνθ"), r"κωδικ(?:ός|ό|ού)|συνθηματικό", r"είναι|ήταν"),
    # Bulgarian
    (("парола",), r"парола(?:та)?", r"е|беше"),
    # Indonesian, Malay
    (("kata sandi", "sandi"), r"(?:kata[ ])?sandi(?:nya|ku|mu)?", r"adalah|ialah|saya|kami|nya"),
    # Vietnamese
    (("mật khẩu",), r"mật[ ]khẩu", r"là"),
)
# Keywords and words that the value may follow at once.
_WITHOUT_A_VERB: Final = (
    # Russian, Ukrainian
    (("парол",), r"парол[ьяею]|паролем|пароли"),
    # Turkish
    (("şifre", "sifre", "şi̇fre", "parola"), r"[şs]ifre(?:m|miz|si|niz|n)?|parola(?:m|mız|sı|nız)?"),
    # Hungarian
    (("jelsz",), r"jelsz(?:ó|avam|avunk|ava)"),
    # Arabic, Persian, Hebrew, Hindi
    (
        ("كلمة", "رمز", "گذر", "סיסמ", "ססמ"),
        r"كلمة[ ](?:المرور|السر)|رمز[ ]عبور|گذرواژه|סיסמ[הא]|ססמה",
    ),
    (("पासवर्ड",), r"पासवर्ड"),
)
# Words with no blank between them and the value.
_UNSPACED: Final = (
    # Chinese
    (("密码", "密碼", "口令"), r"密码|密碼|口令", r"是|为|為|成|叫|[:：=]|改为|改成"),
    # Japanese
    (("パスワ", "暗証", "合言葉"), r"パスワード|暗証番号|合言葉", r"は|が|を|[:：=]"),
    # Korean
    (("비밀번호", "암호", "패스워드"), r"비밀번호|암호|패스워드", r"는|은|가|이|를|[:：=]"),
    # Thai
    (("รหัสผ่าน",), r"รหัสผ่าน", r"คือ|เป็น|[:：=]"),
)

_BLANK: Final = r"[ \t\xa0]"
# A value has a digit or a sign: where none is near, nothing else need be tried.
_NEAR: Final = r"(?=[^0-9@#$%^*!+&]{0,200}+[0-9@#$%^*!+&])"
# A word of any writing; no digit, so that fillers hold no value.
_WORD: Final = r"[^\W\d_](?:[^\W\d_]|['’-]){0,24}"
_FILLERS: Final = rf"(?:{_BLANK}{{1,3}}{_WORD}){{0,5}}?"
_FOREIGN: Final = rf"(?:{_BLANK}{{1,3}}[^\x00-\x7f]{{1,24}}){{0,3}}?"
_SIGN: Final = (
    rf"(?:{_BLANK}{{0,2}}(?:(?<!:):(?!:)|=(?![=>])|[：—–→|]|[-=]>)|{_BLANK}-(?={_BLANK}))"
)
_ADVERB: Final = rf"(?:{_BLANK}(?:still|now|currently|noch|jetzt|encore|todavía|ahora|ainda|agora|ancora|nog|nu|teraz))?"
_TO_THE_VALUE: Final = (
    rf"(?:{_BLANK}{{1,4}}|[:：]?{_BLANK}{{0,4}}\r?\n\s{{0,8}}|[:：]{_BLANK}{{0,4}})"
)
_TO_THE_VALUE_OF_A_SIGN: Final = rf"{_BLANK}{{0,4}}(?:\r?\n\s{{0,8}})?"
_PLAIN: Final = r"[!#-&*-;=?-_a-~]"
_VALUE: Final = rf"""
    (?:[«“„「『‘]{_BLANK}?|[(\[])?(?P<quote>\*\*|``?|["'])?
    (?P<secret>(?(quote)(?:(?!(?P=quote))[!-~])++|{_PLAIN}{{5,127}}(?<![.,:;?*\]])))
"""


def _told(
    anchors: tuple[str, ...], source: str, *keywords: str, judge: Callable[[str], bool] = is_told
) -> SecretPattern:
    return SecretPattern(
        name="password",
        source=source + _VALUE,
        flags=_FLAGS,
        keywords=tuple(keywords or (anchor.split()[0] for anchor in anchors)),
        accepts=partial(_is_accepted, judge),
        anchors=anchors,
    )


def _is_accepted(judge: Callable[[str], bool], match: re.Match[str]) -> bool:
    """Say whether a value is a password; in brackets only if it cannot be a remark."""
    value = match["secret"][:JUDGED]
    before = match.string[match.start("secret") - 1]
    return is_unmistakable(value) if before in "([" else judge(value)


def _is_told(match: re.Match[str]) -> bool:
    return is_told(match["secret"][:JUDGED])


def _with_a_verb(words: str, verbs: str) -> str:
    return rf"""
        (?<!\w)(?:{words})(?!\w){_NEAR}{_FILLERS}
        (?:
            (?:{_BLANK}{{1,3}}|(?=['’]))(?:{verbs}){_ADVERB}{_TO_THE_VALUE}
          | {_SIGN}{_TO_THE_VALUE_OF_A_SIGN}
        )
    """


def _without_a_verb(words: str) -> str:
    return rf"""
        (?<![A-Za-z])(?:{words})(?!\w){_NEAR}{_FOREIGN}
        (?:{_SIGN}{_TO_THE_VALUE_OF_A_SIGN}|{_BLANK}{{1,3}})
    """


def _unspaced(words: str, verbs: str) -> str:
    return rf"(?:{words}){_NEAR}[^\x00-\x7f\s，。、！]{{0,12}}?{_BLANK}?(?:{verbs}){_BLANK}{{0,2}}"


_NOUN: Final = rf"\bpass(?:word|phrase|code|wd)s?\b{_NEAR}"
# "changed from old to new", "is one or the other": the second one first, while the words
# before it are still there.
_CHANGED: Final = rf"{_NOUN}{_FILLERS}{_BLANK}from{_BLANK}[!-~]{{3,64}}{_BLANK}to{_BLANK}"
_EITHER: Final = (
    rf"{_NOUN}{_FILLERS}{_BLANK}(?:is|are|was|were){_BLANK}[!-~]{{5,64}}{_BLANK}(?:or|and){_BLANK}"
)
# "password …" with nothing between: only for what cannot be anything else.
_ADJACENT: Final = rf"""
    (?<![^\W_])(?:password|passwd|passphrase|pass|pwd?|passwort|kennwort|contraseña|senha|wachtwoord|hasło|密码|密碼)
    (?:{_BLANK}{{1,3}}|,)(?=[^\s0-9]{{0,64}}+[0-9])(?=[!-~]{{8}})
"""
# "use … as the password", "… ist mein Passwort".
_CLAIMS: Final = (
    ("as", "my"),
    ("as", "the"),
    ("as", "our"),
    ("is", "my"),
    ("is", "the"),
    ("is", "our"),
    ("is", "your"),
    ("was", "my"),
    ("was", "the"),
    ("ist", "mein"),
    ("ist", "das"),
    ("est", "mon"),
    ("est", "le"),
    ("es", "mi"),
    ("es", "la"),
    ("é", "a"),
    ("é", "minha"),
    ("è", "la"),
    ("is", "mijn"),
    ("is", "het"),
    ("to", "moje"),
)
_BEFORE_THE_WORD: Final = rf"""
    (?<!\S)(?=[^\s0-9@#$%^*!+&]{{0,100}}+[0-9@#$%^*!+&])
    (?P<quote>[`"'])?(?P<secret>{_PLAIN}{{6,127}}+)(?(quote)(?P=quote))
    [ ](?:{"|".join(f"{verb}[ ]{whose}" for verb, whose in _CLAIMS)})[ ](?:{_WORD}[ ]){{0,2}}?
    (?:password|passwort|kennwort|mot[ ]de[ ]passe|contraseña|clave|senha|wachtwoord|hasło|passphrase)\b
"""
# "my password, …, is in the safe".
_BETWEEN_COMMAS: Final = r"\b(?:my|the|our)[ ]pass(?:word|phrase),[ ]"
# "bob / … (prod login)", "credentials: bob:…", "user bob, pw …".
_PAIR: Final = rf"""
    \b(?:log-?ins?|credentials?|creds|account|zugangsdaten|zugang|identifiants?|credenciales|credenciais
        |credenziali|accesso|user(?:name)?)\b{_NEAR}
    (?:[ ](?:is|are|for|{_WORD})){{0,3}}?[ ]?[:=]?[ ][\w.@+-]{{1,40}}(?:[ ]?[/|][ ]?|:|,[ ](?:pw|pass|password)[ ])
"""
_LABELLED: Final = r"(?<![^\s>*-])(?:pass|pw|pin)[ \t]{0,4}[:=][ \t]{0,4}"
_FOR_A_LOGIN: Final = rf"(?<!\S)[\w.@+-]{{1,40}}[ ]/[ ](?P<secret>{_PLAIN}{{6,64}})[ ]\((?:{_WORD}[ ]){{0,3}}(?:login|account|credentials)"

PROSE: Final[tuple[SecretPattern, ...]] = (
    _told(("pass",), _CHANGED, "from"),
    _told(("pass",), _EITHER),
    *(_told(anchors, _with_a_verb(words, verbs)) for anchors, words, verbs in _WITH_A_VERB),
    *(_told(anchors, _without_a_verb(words)) for anchors, words in _WITHOUT_A_VERB),
    *(_told(anchors, _unspaced(words, verbs)) for anchors, words, verbs in _UNSPACED),
    _told(("my pass", "the pass", "our pass"), _BETWEEN_COMMAS, "password,", "passphrase,"),
    _told(
        ("login", "log-in", "cred", "account", "zugang", "identifiant", "accesso", "user"), _PAIR
    ),
    _told(("pass", "pw", "pin"), _LABELLED),
    _told(
        ("pass", "pw", "kennwort", "contraseña", "senha", "wachtwoord", "hasło", "密"),
        _ADJACENT,
        judge=is_unmistakable,
    ),
    SecretPattern(
        name="password",
        source=_BEFORE_THE_WORD,
        flags=_FLAGS,
        keywords=(
            "passw",
            "kennwort",
            "passe",
            "contrase",
            "clave",
            "senha",
            "wachtw",
            "passphrase",
        ),
        phrases=tuple(f" {verb} {whose}" for verb, whose in _CLAIMS),
        accepts=_is_told,
    ),
    SecretPattern(
        name="password",
        source=_FOR_A_LOGIN,
        flags=_FLAGS,
        keywords=("login)", "account)", "credentials)"),
        accepts=_is_told,
    ),
)
