"""A session to ask, whose clock a test sets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import pytest

from smp_git import Session, Store
from smp_git.ask import vectors
from tests.conftest import Clock
from tests.query.support import relaxed_store


@pytest.fixture
def fast_store(tmp_path: Path, clock: Clock) -> Iterator[Store]:
    store = relaxed_store(tmp_path / "store", clock)
    yield store
    store.close()
    assert store.check() == ()


@pytest.fixture
def shop(fast_store: Store) -> Iterator[Session]:
    with fast_store.create_session("shop", user="ada") as session:
        yield session


@pytest.fixture(autouse=True, scope="session")
def _no_model() -> Iterator[None]:
    """What these tests say holds without the extra, which takes seconds to read a session."""
    with patch.object(vectors, "find_encoder", lambda: None):
        yield
