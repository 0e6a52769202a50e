"""What redaction promises for any text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.model.secrets.patterns import PATTERNS
from smp_git.model.secrets.redaction import FoundSecrets, redact, redact_value
from smp_git.model.secrets.rules import compile_user_pattern
from tests.redact.hostile import UNITS

PASSWORD = "hun" + "ter2"

fragments = st.lists(
    st.sampled_from([*UNITS, f"{PASSWORD} ", "a8f7d6e5c4b3", "4111111111111111", "\n"])
    | st.text(max_size=8),
    max_size=30,
).map("".join)
# No letter of any key word, no digit, no sign that starts or joins a secret.
harmless = st.text(alphabet="bfgjnquvxzBFGJ ,!?()\n\té中", max_size=200)


@given(fragments)
def test_redacting_a_redacted_text_changes_nothing(text: str) -> None:
    once = redact(text).text

    assert redact(once).text == once


@given(harmless)
def test_text_without_any_trigger_is_unchanged(text: str) -> None:
    result = redact(text)

    assert result.text == text
    assert result.found == ()


@given(fragments)
def test_a_redacted_value_stays_as_it_is(text: str) -> None:
    once = redact_value({"password": text, "notes": [text]}).value

    assert redact_value(once).value == once


def test_report_counts_each_kind_without_repeating_the_secret() -> None:
    result = redact(f"password={PASSWORD} bob@acme.io ann@acme.io")

    assert result.found == (
        FoundSecrets(name="email", count=2),
        FoundSecrets(name="password", count=1),
    )
    assert PASSWORD not in repr(result)


def test_an_allowed_text_stays() -> None:
    text = "ask bob@acme.io or ann@acme.io"

    result = redact(text, allow=["bob@acme.io"])

    assert result.text == "ask bob@acme.io or [REDACTED:email]"


def test_only_the_given_patterns_are_used() -> None:
    emails = [pattern for pattern in PATTERNS if pattern.name == "email"]

    result = redact(f"password={PASSWORD} bob@acme.io", emails)

    assert result.text == f"password={PASSWORD} [REDACTED:email]"


def test_a_placeholder_is_no_secret() -> None:
    text = "password=[REDACTED:github-token] token: [REDACTED]"

    assert redact(text).text == text


def test_a_long_secret_leaves_no_tail() -> None:
    result = redact("password=" + "aB3$" * 5000 + " next")

    assert result.text == "password=[REDACTED:password] next"


def test_a_string_under_a_secret_key_counts_as_assigned() -> None:
    result = redact_value({"db": [{"dbPassword": PASSWORD, "user": "app"}], "n": 1})

    assert result.value == {
        "db": [{"dbPassword": "[REDACTED:password]", "user": "app"}],
        "n": 1,
    }
    assert result.found == (FoundSecrets(name="password", count=1),)


def test_a_word_under_a_secret_key_stays() -> None:
    value = {"token": "see docs", "password": "required", "api_key": None}

    assert redact_value(value).value == value


def test_a_secret_in_a_key_is_replaced_and_other_values_stay() -> None:
    value = {"bob@acme.io": (1, 2.5, True), 7: "ann@acme.io"}

    result = redact_value(value)

    assert result.value == {"[REDACTED:email]": (1, 2.5, True), 7: "[REDACTED:email]"}
    assert result.found == (FoundSecrets(name="email", count=2),)


def test_keys_that_become_the_same_are_told_apart() -> None:
    value = {"bob@acme.io": 1, "ann@acme.io": 2, "eve@acme.io": 3}

    once = redact_value(value).value

    assert once == {"[REDACTED:email]": 1, "[REDACTED:email] 2": 2, "[REDACTED:email] 3": 3}
    assert redact_value(once).value == once


@pytest.mark.parametrize(
    "value",
    [
        {"passwords": [], "password": [PASSWORD]},
        {"api_key": {"value": f"{PASSWORD}abc"}},
        {"env": [{"name": "DB_PASSWORD", "value": PASSWORD}]},
        {"key": "dbPassword", "value": PASSWORD},
        {"a": {"b": [{"variable": "APP_SECRET", "default": f"{PASSWORD}abc"}]}},
    ],
)
def test_a_value_that_is_named_beside_or_above_it_is_replaced(value: object) -> None:
    result = redact_value(value)

    assert PASSWORD not in repr(result)
    assert redact_value(result.value).value == result.value


def test_a_value_beside_another_name_stays() -> None:
    value = [
        {"name": "token_type", "value": "bearer2024x"},
        {"name": "password reset", "value": "step2024b"},
        {"password": {"min_length": 12, "hash": "argon2id", "updated_by": "ann2024"}},
    ]

    assert redact_value(value).value == value


def test_an_allowed_value_under_a_secret_key_stays() -> None:
    value = {"password": PASSWORD}

    assert redact_value(value, allow=[PASSWORD]).value == value


def test_a_user_pattern_joins_the_table() -> None:
    pattern = compile_user_pattern(r"ACME-\d{6}", "ticket")

    result = redact("see ACME-123456, bob@acme.io", [*PATTERNS, pattern])

    assert result.text == "see [REDACTED:ticket], [REDACTED:email]"


@pytest.mark.parametrize("replacement", ["[GONE]", "<secret: {kind}>", "«{kind}»", "(taken out)"])
@given(text=fragments)
def test_redacting_with_another_replacement_changes_nothing_the_second_time(
    replacement: str, text: str
) -> None:
    once = redact(text, replacement=replacement).text

    assert redact(once, replacement=replacement).text == once


def test_the_replacement_names_the_kind() -> None:
    result = redact(f"password={PASSWORD} [REDACTED:jwt]", replacement="<no {kind}>")

    assert result.text == "password=<no password> [REDACTED:jwt]"
