"""A store with a session of 500 memories, made once and copied for every injury."""

from __future__ import annotations

import pytest

from tests.damage.injuries import filled

Made = pytest.TempPathFactory


@pytest.fixture(scope="session")
def template(tmp_path_factory: Made):  # type: ignore[no-untyped-def]
    """Return the folder of the store that every test copies."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        return filled(tmp_path_factory.mktemp("damage") / "store").path
