"""The tree of errors is a contract: codes, statuses, built-in parents."""

from __future__ import annotations

import errno
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.git.disk import storage_error
from smp_git.model import errors
from smp_git.model.errors import SmpError, shown
from tests.redact.test_custom import CARELESS, ENDLESS
from tests.support import git

STATUSES = {
    "error": 1, "invalid": 4, "not_found": 3, "already_exists": 5, "no_store": 8, "unknown_format": 8,
    "conflict": 5, "locked": 6, "refused": 7, "damaged": 9, "storage": 11, "git_missing": 12, "quota_exceeded": 13, "session_archived": 7,
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
    # 2 is for a command line that cannot be read, as shells have it.
    assert error.exit_status in set(range(2 if error is errors.UsageError else 3, 30))
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
        "code": error.code, "seed_codes": list(error.seed_codes), "message": "DEC-0001 is gone",
        "hint": "look elsewhere", "recoverable": error.recoverable, "session": None,
    }  # fmt: skip
    assert error("later", recoverable=not error.recoverable).recoverable is not error.recoverable


# 003 section 10.4 and 001 section 12.1
OF_THE_SPECIFICATIONS = {
    "MEM_E001": "quota_exceeded", "MEM_E002": "locked", "MEM_E003": "damaged", "MEM_E004": "invalid_query",
    "MEM_E005": "session_not_found", "MEM_E006": "compaction_failed", "E_STORAGE_IO": "storage",
    "E_STORAGE_FULL": "storage_full", "E_STORAGE_CORRUPT": "damaged", "E_LOCK_TIMEOUT": "locked",
    "E_CONCURRENT_MOD": "conflict", "E_INVALID_FORMAT": "invalid_file", "E_SCHEMA_INVALID": "invalid",
    "E_SIZE_LIMIT": "quota_exceeded", "E_SESSION_NOT_FOUND": "session_not_found",
    "E_SESSION_ARCHIVED": "session_archived", "E_SESSION_CORRUPT": "damaged",
    "E_QUERY_TIMEOUT": "query_timeout", "E_INVALID_QUERY": "invalid_query",
}  # fmt: skip


def test_every_code_of_the_specifications_is_there() -> None:
    codes = {code for error in ALL for code in vars(error).get("seed_codes", ())}
    found = {error.code: error.seed_codes for error in ALL}

    assert codes == set(OF_THE_SPECIFICATIONS)
    assert all(code in found[ours] for code, ours in OF_THE_SPECIFICATIONS.items())


def test_an_error_names_its_session(store: Store, session: Session, tmp_path: Path) -> None:
    with pytest.raises(errors.MemoryNotFoundError) as caught:
        session.get("DEC-9")
    assert caught.value.session_id == "shop"
    assert caught.value.as_json()["session"] == "shop"

    (tmp_path / "plain").mkdir()
    git(tmp_path / "plain", "init", "-q")
    with pytest.raises(SmpError) as at_open:
        Session(tmp_path / "plain", store.clock)
    assert at_open.value.session_id == "plain"


def test_a_full_disk_and_a_slow_pattern_have_codes_of_their_own(session: Session) -> None:
    session.add("decision", ENDLESS)

    with pytest.raises(errors.QueryTimeoutError):
        session.query(where=[("content", "matches", CARELESS)])
    assert storage_error("x", OSError(errno.ENOSPC, "full")).code == "storage_full"
    assert storage_error("x", OSError(errno.EIO, "broken")).code == "storage"


def test_shown_value_is_short_and_printable() -> None:
    assert shown("\ud800") == "'\\ud800'"
    assert len(shown("x" * 1_000_000)) == 80
