"""The tree of errors is a contract: codes, statuses, built-in parents."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from smp_git.model import errors
from smp_git.model.errors import SmpError, shown

STATUSES = {
    "error": 1, "invalid": 4, "not_found": 3, "already_exists": 5, "no_store": 8, "unknown_format": 8,
    "conflict": 5, "locked": 6, "refused": 7, "damaged": 9, "storage": 11, "git_missing": 12,
}  # fmt: skip


def _below(parent: type[SmpError]) -> Iterator[type[SmpError]]:
    for child in parent.__subclasses__():
        if child.__module__ == "smp_git.model.errors":
            yield child
            yield from _below(child)


ALL: tuple[type[SmpError], ...] = (SmpError, *_below(SmpError))


def test_every_error_has_a_code_of_its_own() -> None:
    codes = [error.code for error in ALL]

    assert len(set(codes)) == len(codes)
    assert all(re.fullmatch(r"[a-z]+(_[a-z]+)*", code) for code in codes)


def test_the_statuses_never_change() -> None:
    assert {error.code: error.exit_status for error in ALL if error.code in STATUSES} == STATUSES


@pytest.mark.parametrize("error", [error for error in ALL if error is not SmpError])
def test_error_of_a_kind_has_the_status_of_its_parent_or_one_of_its_own(
    error: type[SmpError],
) -> None:
    assert error.exit_status in set(range(3, 30)) - {2}
    assert error.__name__.endswith("Error")
    assert error.__doc__
    assert error.__doc__.strip().split("\n")[0].endswith(".")


def test_the_tree_is_drawn_where_the_errors_are() -> None:
    drawn = re.findall(r"\w+Error", errors.__doc__ or "")

    assert sorted(drawn) == sorted(error.__name__ for error in ALL)


@pytest.mark.parametrize(
    ("error", "parent"),
    [("NotFoundError", LookupError), ("LockedError", TimeoutError), ("StorageError", OSError)],
)
def test_error_is_also_what_python_calls_it(error: str, parent: type[Exception]) -> None:
    assert issubclass(getattr(errors, error), parent)


@pytest.mark.parametrize("error", ALL)
def test_error_says_its_sentence(error: type[SmpError]) -> None:
    found = error("DEC-0001 is gone", hint="look elsewhere")

    assert str(found) == "DEC-0001 is gone"
    assert found.as_json() == {
        "code": error.code, "seed_code": error.seed_code, "message": "DEC-0001 is gone",
        "hint": "look elsewhere", "recoverable": error.recoverable,
    }  # fmt: skip


def test_shown_value_is_short_and_printable() -> None:
    assert shown("\ud800") == "'\\ud800'"
    assert len(shown("x" * 1_000_000)) == 80
