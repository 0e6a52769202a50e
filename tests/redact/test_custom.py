"""A user's own patterns: what is accepted, and that none hangs, whatever door it comes through."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from smp_git import Session, Store
from smp_git.cli.program import program
from smp_git.model.errors import InvalidError
from smp_git.model.secrets.redaction import redact
from smp_git.model.secrets.rules import compile_user_pattern
from tests.redact.hostile import UNITS, repeated, seconds
from tests.support import git, python

app = program()

ACCEPTED = [
    r"\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\.[A-Z|a-z]{2,}\b",
    r"\b[A-Za-z0-9]{32,}\b",
    r"password[\s:=]+[^\s]+",
    r"ACME-\d{6}",
    r"(?i)project[- ]?(?:alpha|beta)",
    r"10\.\d{1,3}\.\d{1,3}\.\d{1,3}",
    r"(?:\d{4}[ -]?){3}\d{4}",
    r"acme_(?P<secret>[a-z0-9]{20,})",
    r"(?<=id=)\w+",
    r"[\w.]+\.acme\.internal",
    r"\x41\u00e9+",
    r"a{,3}b",
    r"\w+\d+!",
    r"(?x) a b",
    r"(?:key|token)+\d",
    r"a{0,65535}b",
]
REFUSED = {
    "x*": "matches the empty text",
    "": "matches the empty text",
    "a|": "matches the empty text",
    "[": "does not compile",
    "(?P<x>": "does not compile",
    "(" * 490 + ")" * 490: "does not compile",
    "a" * 1001: "longer than 1,000 characters",
    "(?:(?:a{1000}){1000}){1000}": "repeats too much",
    "((((((a?){50}){50}){50}){50}){50}){50}": "repeats too much",
    "(?x)(?:#)\n(?:a{1000}){1000}){1000}": "repeats too much",
}
# What it is, where it backtracks without end, and a text that it fits.
CARELESS = "(?:a|aa)+;"
ENDLESS = "a" * 200 + ",;"
FITS = "aaa;"
# Some 40 characters that would be written out as a thousand million.
EXPLODING = "(?:(?:a{1000}){1000}){1000}"
RUNNER = CliRunner()


@pytest.mark.parametrize("source", ACCEPTED)
def test_a_careful_pattern_is_quick_on_hostile_text(source: str) -> None:
    act = partial(redact, patterns=[compile_user_pattern(source)])

    slowest = max(seconds(act, repeated(unit, 30_000)) for unit in UNITS if unit)

    # Quadratic in a part of a line is allowed; a hang is not.
    assert slowest < 2


@pytest.mark.parametrize("source", REFUSED)
def test_a_pattern_that_cannot_be_meant_is_refused(source: str) -> None:
    with pytest.raises(ValueError, match=REFUSED[source]):
        compile_user_pattern(source)


def test_a_name_that_makes_no_placeholder_is_refused() -> None:
    with pytest.raises(ValueError, match="lower case"):
        compile_user_pattern("ACME", "My Name")


def test_the_group_secret_is_what_a_user_pattern_replaces() -> None:
    pattern = compile_user_pattern(r"badge (?P<secret>\d{4})", "badge")

    assert redact("badge 1234", [pattern]).text == "badge [REDACTED:badge]"


def test_a_long_line_is_searched_whole() -> None:
    pattern = compile_user_pattern(r"ACME-\d{6}")

    result = redact("some words " * 400 + "ACME-123456", [pattern])

    assert result.text.endswith("[REDACTED:custom]")


def test_a_pattern_has_its_time_for_each_text_anew() -> None:
    pattern = compile_user_pattern(CARELESS)
    for _ in range(2):
        with pytest.raises(InvalidError, match="takes too long"):
            redact(ENDLESS, [pattern])

        assert redact(FITS, [pattern]).text == "[REDACTED:custom]"


@pytest.mark.parametrize("source", [r"(?r)ACME-\d", r"\w(?=.*?(?P<secret>ACME-\d))"])
def test_a_pattern_that_finds_its_secrets_in_another_order_keeps_the_rest(source: str) -> None:
    secrets = [f"word ACME-{number} " for number in range(9)]

    result = redact("".join([*secrets, "\n", *secrets]), [compile_user_pattern(source)])

    gaps = "word [REDACTED:custom] " * 9
    assert result.text == f"{gaps}\n{gaps}"
    assert result.found[0].count == 18


# A pattern that backtracks hangs nothing


def _state(session: Session) -> tuple[str, dict[str, bytes]]:
    files = [file for file in session.path.rglob("*") if file.is_file()]
    shown = [file for file in files if ".git" not in file.parts]
    return session.head, {str(file): file.read_bytes() for file in shown}


def _write_half(session: Session) -> None:
    with session.transaction() as t:
        t.add("decision", "half of it")
        t.add("decision", ENDLESS)


def _is_refused_and_harmless(session: Session) -> None:
    """Check that a text on which the pattern never ends is refused, and that others are not."""
    memory = session.add("decision", f"Say {FITS}")
    assert memory.content == "Say [REDACTED:careless]"
    before = _state(session)

    with pytest.raises(InvalidError, match=r"careless takes too long .* nothing was written"):
        session.add("decision", ENDLESS)
    with pytest.raises(InvalidError, match="pattern careless takes too long"):
        session.edit(memory.id, rationale=ENDLESS)
    with pytest.raises(InvalidError, match="pattern careless takes too long"):
        _write_half(session)

    assert _state(session) == before
    assert session.add("decision", "Go on").content == "Go on"


def test_a_careless_pattern_of_the_store_fails_the_write_and_no_more(store: Store) -> None:
    (store.path / "config.yaml").write_text(
        f"format: 1\nredaction_patterns: {{careless: '{CARELESS}'}}\n"
    )

    with Store.open(store.path, clock=store.clock).create_session("named") as session:
        _is_refused_and_harmless(session)


def test_a_careless_pattern_of_a_session_fails_the_write_until_it_is_removed(
    session: Session,
) -> None:
    session.override({"redaction_patterns": {"careless": CARELESS}})
    _is_refused_and_harmless(session)

    session.override({"redaction_patterns": None})

    assert session.add("decision", ENDLESS).content == ENDLESS


def test_an_edit_by_hand_on_which_a_pattern_never_ends_is_refused(session: Session) -> None:
    memory = session.add("decision", "Deploy")
    session.override({"redaction_patterns": {"careless": CARELESS}})
    file = session.path / memory.path
    file.write_text(file.read_text().replace("Deploy", ENDLESS))
    head = session.head

    with pytest.raises(InvalidError, match="pattern careless takes too long"):
        session.commit()

    assert session.head == head
    assert ENDLESS in file.read_text()
    file.write_text(file.read_text().replace(ENDLESS, "Deploy"))


def _run(*arguments: str) -> Result:
    return RUNNER.invoke(app, arguments)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert _run("new", "shop", "--user", "ada").exit_code == 0
    assert _run("add", "decision", ENDLESS).exit_code == 0
    return next(path for path in tmp_path.rglob("shop") if (path / ".git").is_dir())


def test_the_command_says_in_a_sentence_what_takes_too_long(shop: Path) -> None:
    assert _run("override", f'redaction_patterns=["{CARELESS}"]').exit_code == 0
    head = git(shop, "rev-parse", "HEAD")

    results = [
        _run("add", "decision", ENDLESS),
        _run("query", "--where", f"content ~ {CARELESS}"),
        _run("redact", CARELESS, "--regex", "--yes"),
    ]

    for result in results:
        assert result.exit_code == 4
        assert "takes too long" in result.stderr
        assert result.stderr.count("\n") <= 2
        assert "Traceback" not in result.stderr
    assert git(shop, "rev-parse", "HEAD") == head
    assert git(shop, "status", "--porcelain") == ""


# A pattern that is written out without end takes no memory


_DOORS = """
import re, resource, sys
from pathlib import Path
from smp_git import Store
from smp_git.model.errors import InvalidError

root, exploding = sys.argv[1:]
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
with Store.open(root).session("shop") as session:
    def of_the_store():
        Path(root, "config.yaml").write_text(f"format: 1\\nredaction_patterns: ['{exploding}']\\n")
        Store.open(root)

    for door in (
        of_the_store,
        lambda: session.override({"redaction_patterns": [exploding]}),
        lambda: session.query(where=[("content", "matches", exploding)]),
        lambda: session.redact(re.compile(exploding)),
    ):
        try:
            print(door())
        except InvalidError as error:
            print("repeats too much" in error.message)
"""


def test_an_exploding_pattern_is_refused_at_every_door(store: Store, session: Session) -> None:
    session.add("decision", "aaa")
    before = _state(session)

    assert python(_DOORS, store.path, EXPLODING).stdout.split() == ["True"] * 4
    assert _state(session) == before


# Starting


@pytest.mark.parametrize(("patterns", "is_loaded"), [("", False), ("ACME-[0-9]+", True)])
def test_only_who_has_patterns_loads_what_bounds_them(
    store: Store, patterns: str, is_loaded: bool
) -> None:
    if patterns:
        (store.path / "config.yaml").write_text(f"format: 1\nredaction_patterns: ['{patterns}']\n")
    store.create_session("quick").close()
    code = (
        "import sys; from smp_git import Store\n"
        "with Store.open(sys.argv[1]).session('quick') as session: session.add('turn', 'hello')\n"
        "print('regex' in sys.modules)"
    )

    assert python(code, store.path).stdout.strip() == str(is_loaded)
