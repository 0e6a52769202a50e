"""Fixtures: an isolated Git, a store, a session, a clock; soundness after each test."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import settings

from smp_git import Session, Store
from tests.support import unlisted

# A suite in the background, as with nohup, is started to ignore interrupts, and its children
# would too: some tests send one, and wait for what it does.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

settings.register_profile("dev", max_examples=50, derandomize=True, deadline=None)
settings.register_profile("ci", max_examples=200, deadline=None)
settings.register_profile("deep", max_examples=5000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


class Clock:
    """A clock that a test sets; each reading is one second later."""

    def __init__(self) -> None:
        self.now = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture(autouse=True)
def isolated_environment(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """No user's Git configuration, no user's store, no network prompts."""
    home = tmp_path_factory.mktemp("home")
    for name in list(os.environ):
        if name.startswith(("GIT_", "SMP_", "XDG_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_TERMINAL_PROMPT", "0")
    monkeypatch.setenv("GIT_AUTHOR_NAME", "a person")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "person@example.com")
    monkeypatch.setenv("GIT_COMMITTER_NAME", "a person")
    monkeypatch.setenv("GIT_COMMITTER_EMAIL", "person@example.com")
    return home


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    """An empty store that must be sound when the test ends."""
    store = Store.init(tmp_path / "store", clock=clock)
    yield store
    assert store.check() == ()
    assert unlisted(store.path) == []


@pytest.fixture
def session(store: Store) -> Iterator[Session]:
    with store.create_session("shop", user="user-123") as session:
        yield session
