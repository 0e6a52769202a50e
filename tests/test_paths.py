"""The five paths of docs/explanation/architecture.md are what a call really goes through."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import pytest

from smp_git import Session, Store
from tests.shape import steps

PATHS = steps()


def _called(call: Callable[[], object]) -> list[str]:
    """Return the functions of the package that a call goes through, by when they were reached first."""
    found: dict[str, None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        module = frame.f_globals.get("__name__", "")
        if event == "call" and module.startswith("smp_git."):
            found.setdefault(f"{module[8:]}.{frame.f_code.co_qualname}")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return list(found)


@pytest.fixture
def session(tmp_path: Path) -> Session:
    """A session with three decisions and a remote that another replica has written to."""
    ours, theirs = _store(tmp_path / "ours"), _store(tmp_path / "theirs")
    made = ours.create_session("shop", user="ada")
    for number in range(3):
        made.add("decision", f"Use OAuth {number}", agent="architect", tags=["security"])
    made.add_remote("origin", tmp_path / "hub.git", create=True)
    made.sync()
    with theirs.clone(str(tmp_path / "hub.git")) as other:
        other.add("finding", "No MFA", agent="veritas", severity="critical")
        other.sync()
    return made


def _store(place: Path) -> Store:
    Store.init(place)
    (place / "config.yaml").write_text(f"format: 1\nkey_dir: {place.parent / 'keys'}\n")
    return Store.open(place)


def _calls(session: Session) -> dict[str, Callable[[], object]]:
    return {
        "add": lambda: session.add("finding", "Checkout is slow", agent="veritas"),
        "query": lambda: session.query("oauth", tags=["security"]),
        "delete": lambda: session.delete("DEC-0002"),
        "restore": lambda: session.restore("DEC-0002"),
        "sync": session.sync,
    }


def test_page_has_the_five_paths() -> None:
    assert list(PATHS) == ["add", "query", "delete", "restore", "sync"]


@pytest.mark.parametrize("path", PATHS)
def test_path_is_the_one_that_a_call_takes(path: str, session: Session) -> None:
    calls = _calls(session)
    if path == "restore":
        calls["delete"]()
    if path == "sync":
        calls["add"]()

    called = _called(calls[path])

    assert [name for name in PATHS[path] if name not in called] == []
    assert PATHS[path] == sorted(PATHS[path], key=called.index)
