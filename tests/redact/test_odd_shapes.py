"""Secrets and look-alikes in odd shapes: lines, quotes, addresses, code, alphabets."""

from __future__ import annotations

import pytest

from smp_git.model.secrets.redaction import redact

# Each in two parts, so that no file of this repository holds a whole token.
SECRETS = {
    "□": "Tiger!coffee" + "4152",
    "○": "hunter" + "22",
    "△": "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5",
    "◇": "lin_api_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5bC6d",
}
SHAPES = [
    "my password is\n□",
    "My password is:\n\n□\n",
    "password:\n  □\n",
    "password: |\n  □\n",
    "password: >-\n  □\n",
    "PASSWORD = (\n  '□'\n)",
    "my pass\u200bword is \u25a1",
    "my password is\u00a0\u25a1",
    "my password is  \t□",
    "MY PASSWORD IS □",
    "Mein Passwort:□",
    "my password is “□”",
    "my password is ‘□’",
    "my password is *□*",
    "my password is **□**",
    "my password is (□)",
    "my password is [□]",
    "my password = □",
    "my password -> □",
    "password → □",
    "password | □",
    "| password | □ |",
    "password\t□",
    "password,□\n",
    "my password is □!",
    "(my password is □)",
    "is my password □?",
    "my password’s □",
    "my passwords are □ and ○x9",
    "the password is □ or ○",
    '{"password": "□"}',
    '"{\\"password\\": \\"□\\"}"',
    '"\\"{\\\\\\"password\\\\\\": \\\\\\"□\\\\\\"}\\""',
    '{"password" : "□"}',
    "{password: '□'}",
    "password => □",
    "<password>\n□\n</password>",
    "<password value='□'/>",
    "password%3D○x9",
    "password=%22○x9%22",
    "?password=○&x=1",
    "export PASSWORD='□'",
    "set PASSWORD=□",
    '$env:PASSWORD = "□"',
    "setx PASSWORD □",
    "PASSWORD:=□",
    "password ?= □",
    "ENV PASSWORD □",
    "ARG PASSWORD=□",
    "'--password', '□'",
    '["--password", "□"]',
    "-e PASSWORD=□",
    "- PASSWORD=□",
    "os.environ['PASSWORD'] = '□'",
    "os.environ.setdefault('DB_PASSWORD', '□')",
    "password='○' 'x9'",
    "mysql -u root \\\n  -p□ shop",
    "curl \\\n  -u admin:□ \\\n  https://x.io",
    "curl https://x.io -u admin:□",
    "curl -uadmin:□ x.io",
    "curl --user=admin:□ x.io",
    "sudo mysql -p□",
    "sshpass -p□ ssh x",
    "subprocess.run(['mysql', '-u', 'root', '-p□'])",
    "['curl', '-u', 'admin:□', 'https://x.io']",
    "machine x.io\nlogin bob\npassword □\n",
    "machine x.io password □ login bob",
    "https://bob:Tiger%21coffee4152@x.io",
    "https://△@github.com",
    "https://github.com/?t=◇",
    "Authorization: token △",
    "'△'",
    "x=△;",
    "△△",
    "token:△",
    "◇。",
    "。◇",
    "Пароль: □",
    "пароль - □",
    "пароль=□",
    "Пароль такой: □",
    "密码: □",
    "密码 □",
    "密码就是□",
    "密码是：□",
    "パスワードは「□」",
    "비밀번호 : □",
    "contraseña=□",
    "Contrasen\u0303a: \u25a1",
    "CONTRASEÑA: □",
    "Passwort=□",
    "PASSWORT: □",
    "Passwort lautet: □",
    "Das Passwort ist: □",
    "le mot de passe est : □",
    "mot de passe: « □ »",
    "senha=□",
    "wachtwoord is: □",
    'hasło: "□"',
    "şifre = □",
    "ŞİFRE: □",
    "the password is: □",
    "the password is still □",
    "the password is now: □",
    "Password - □",
    "Password – □",
    "pwd=□",
    "pw=□",
    "pass=□",
    "db pass □",
    "login with bob:□",
    "ssh bob@host (password □)",
    "ssh bob@host, password □",
    "user bob password □",
    "username bob, password □",
]
LOOKALIKES = r"""
my password is too weak2 hmm
password: Optional[str] = None
password = models.CharField(max_length=128)
password_hash = hash_password(password1, salt2)
f(password,user_id2)
{"password": {"type": "string", "minLength": 8, "pattern": "^[A-Za-z0-9]+$"}}
{"name": "password", "type": "string2"}
- name: password\n  in: query\n  required: true
- name: API_KEY\n  valueFrom:\n    secretKeyRef:\n      name: app-v2\n      key: api-key2
name: token\nvalue: ${TOKEN2}
secret:\n  secretName: app-tls-2024
secrets:\n  - db-prod-1\n  - web2
passwords:\n  min_length: 12
token:\n  expires_in: 3600s
password:\n  - required\n  - min:8
| password | varchar(255) | NO |
| Password | string | at least 8 characters, 1 digit |
| token | uuid4 | yes |
| secret | RS256 |
password -> passwordHash2
password => bcrypt.hash(password, 10)
token => jwt.verify(token2)
the token is 0x1f of the lexer
Each token is 4 bytes or 32bit wide
the secret is to use sha256sum
The password is sent as Base64 or UTF-16LE
the password is checked against haveibeenpwned.com v3
the password policy is PCI-DSS-4.0 compliant
the password is stored in column pw_hash_v2 of table users_2024
my password manager is Bitwarden2024
password was rotated in Q3-2024
password was changed by ann on 2024-03-05T10:00
pass is at 2,473m and closed
we pass from A1 to B2-level4
Pass an int32 to f64
pass arguments as key=value2
the pass was 45min late
use the key as the index2
a pw: see below
user admin2 pw unknown
login: see README2.md
login bob / ann2
account: 12345678 / EUR
credentials: see vault:secret/data/app2
user=bob2 host=db1
echo 12345 | sudo tee /proc/sys/x
echo "a:b" | tr : -
curl -u : --negotiate http://x
curl -u user1 http://localhost:8080/a
curl http://x.io:8080/u -uri a:b
mysql -u root -p"$PW" shop
mysql --print-defaults
7z x -pdf2
unzip -P
zip -P "$X" a
mongo --port 27017 -p
docker login ghcr.io -u bob --password-stdin
ldapsearch -W -w "$LDAP_PW"
redis-cli -a $PASS
snmpwalk -A "$AUTH" -X "$PRIV"
sqlcmd -P $env:SA
basic usage: see docs
Basic Authentication is used
a basic ABCDEFGH plan
client.login(username, password)
auth=("user", token2)
CREATE ROLE app LOGIN PASSWORD NULL;
COMMENT ON COLUMN users.password IS 'bcrypt2b hash';
SELECT password FROM users WHERE role = 'admin2'
UPDATE users SET password = crypt($1, gen_salt('bf8'))
default login page password field2
machine readable login form password reset2
密码学第3章
密码是否正确：是2
忘记密码v2页面
パスワードはv2で変更
비밀번호는 8자리2개
Das Passwort ist im Schlüsselbund2 abgelegt
hasło to nie wszystko2024
le mot de passe est envoyé par SMS2
la contraseña es la del NAS2
la clave es k8s y terraform1
a senha é do wifi2
parola este în seif2
heslo je v KeePass2
пароль в KeePass2
şifre KeePass2 içinde
jelszó KeePass2
sk-learn-contrib-lightning-0.6.2
re_compile_all_the_things_2024
fw_update_20240101_prod_release
pa-per_trail-version_10_3_1-is-a-ruby-gem_x
pat.search_results_in_page_a.ABCDEFGHIJKLMNOPQRSTUVWX.ABCDEFGHIJKLMNOPQRST
API-ABCDEFGHIJKLMNOPQRSTUVWXYZ
ntn_is_short
sl.something-that-is-not-a-token
secret_key_for_tests_only_do_not_use_in_prod_
oy2_abc
cio_abc
const re_x9 = /ab1/
"""
INVISIBLE = ["\u200b", "\u200d", "\u2060", "\ufeff", "\u00ad"]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_secret_in_an_odd_shape_is_replaced(shape: str) -> None:
    text = "".join(SECRETS.get(sign, sign) for sign in shape)

    redacted = redact(text).text

    assert not [secret for secret in SECRETS.values() if secret in redacted]
    assert redact(redacted).text == redacted


@pytest.mark.parametrize("line", LOOKALIKES.strip().split("\n"))
def test_a_lookalike_in_an_odd_shape_stays(line: str) -> None:
    text = line.replace("\\n", "\n")

    assert redact(text).text == text


@pytest.mark.parametrize("sign", INVISIBLE)
def test_an_invisible_character_hides_no_token(sign: str) -> None:
    token = SECRETS["△"]

    for place in (2, 10, 30):
        assert redact(f"see {token[:place]}{sign}{token[place:]}.").text == (
            "see [REDACTED:github-token]."
        )


def test_invisible_characters_stay_where_there_is_no_secret() -> None:
    text = "a family \U0001f468\u200d\U0001f469\u200d\U0001f467, a Donau\u00addampf\u00adschiff"

    assert redact(text).text == text


def test_user_and_password_of_a_header_are_found_without_the_header() -> None:
    text = "it sent basic " + "dXNlcjpwYXNz" + "d29yZDEyMw=="

    assert redact(text).text == "it sent basic [REDACTED:authorization]"
    assert redact("Basic Authentication").found == ()
