"""Repetitions that drive careless patterns into quadratic time."""

from __future__ import annotations

from collections.abc import Callable
from time import process_time

from smp_git.model.secrets.redaction import Redacted

UNITS = """a|A|0| |-|_|.|/|+|=|@|:|"|'|\\n|\\|%3D|password|password=|pwd=|pwd="|pwd='|pwd=\\"
token: |secret=|secret: |secret_access_key=|--password |--|://|://a:|://a:b|a@b.|a.|a@|a-
-----BEGIN PRIVATE KEY-----|-----BEGIN PRIVATE KEY-----MIIE|-----BEGIN |-----|- |RSA
eyJ|eyJaaaaaaaaaa.|eyJaaaaaaaaaaa.eyJ|M|M.|MAAAAAAAAAAAAAAAAAAAAAAA.AAAAAA.|0 |0-|4111
GB00 |GB00|AAAA |key|api_key |api key|authorization: |bearer |authorization: bearer |sk-
sk-a|sk-ant-|ghp_|github_pat_|glpat-|AKIA|AIza|ya29.|xox|xoxb-|xapp-|sk_live_|hf_|npm_|pypi-
SG.|SG.a|AC|SK|EAAA|dop_v1_|shpat_|sq0atp-|key-|dapi|hvs.|whsec_|GOCSPX-|a1B|AGE-SECRET-KEY-1
data:image/png;base64,|data:image/|[REDACTED:|[REDACTED:email]|-----BEGIN CERTIFICATE-----
12345678:AA|bot12345678:AA|sig=|?sig=|AccountKey=|hooks.slack.com/services/|é|é@é.|{|${|$
mysql |mysql -p|mysql \\\\\\n|curl |curl -u |curl -u a:|sshpass -p |echo |echo a |login |login a password |user |user a:
machine a.b |default login |identified by |name: |key=a value=|<a |auth=("a", |basic |basic aaaa|password:\\n
my password is |my password |password a a a a a |passwort ist |mot de passe |пароль |пароль я |密码|密码是|비밀번호|パスワード
is my password |as the password |login: a / |pw: |password, |token is |lin_api_|dp.pt.|NRAK-|pa-|re_|AKCp|ops_eyJ|a-us1
/api/webhooks/12345678901234567/|<password>|password is `|"password", "|pass.|_pass|\\"
secretsecret|keykeykey|[|a1:|pwd=youryouryour |pwd=_a_a_a_a |pwd=aBaBaBaB |[a@|a,|pwd=a,a""".replace(
    "\n", "|"
).split("|")


def seconds(act: Callable[[str], Redacted], text: str) -> float:
    """Return the processor time of `act`: other processes do not count."""
    start = process_time()
    act(text)
    return process_time() - start


def repeated(unit: str, length: int) -> str:
    return (unit * (length // len(unit) + 1))[:length]
