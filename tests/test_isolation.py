"""Nothing of the user's Git, and no other copy of a session, has a part in a write."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from smp_git import Session, Store
from tests.conftest import Clock
from tests.support import git, python

_HOSTILE = """\
[core]
	autocrlf = true
	hooksPath = /nowhere
	attributesFile = {home}/attributes
[commit]
	gpgSign = true
[user]
	name = somebody else
[init]
	defaultBranch = other
[filter "spoil"]
	clean = tr a-z A-Z
	smudge = tr a-z A-Z
	required = true
"""


def _written(folder: Path) -> str:
    """Return the tree that a fixed session ends with; ids and times are those of the clock."""
    store = Store.init(folder, clock=Clock())
    with store.create_session("shop", user="ada") as session:
        session.add("turn", "one\r\ntwo  \r\n", agent="ada")
        session.add("decision", "Use PostgreSQL", agent="architect")
        path = session.path
    assert git(path, "status", "--short") == ""
    return git(path, "rev-parse", "HEAD:conversation", "HEAD:decisions")


def test_write_is_the_same_under_a_hostile_git_configuration(
    tmp_path: Path, isolated_environment: Path
) -> None:
    plain = _written(tmp_path / "plain")
    home = isolated_environment
    (home / ".gitconfig").write_text(_HOSTILE.format(home=home))
    (home / "attributes").write_text("* text filter=spoil\n")
    assert _written(tmp_path / "configured") == plain


def test_write_is_the_same_whatever_git_variables_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store.init(tmp_path / "store", clock=Clock())
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    with store.create_session("shop", user="ada") as session:
        session.add("decision", "Use PostgreSQL")
        path = session.path
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_WORK_TREE"):
        assert not (tmp_path / name).exists()
        monkeypatch.delenv(name)
    assert git(path, "log", "--format=%s", "-1") == "decision DEC-0001: Use PostgreSQL\n"
    assert git(path, "status", "--short") == ""


def test_copied_session_writes_under_a_tag_of_its_own(store: Store, session: Session) -> None:
    session.add("decision", "Use PostgreSQL")
    session.close()
    shutil.copytree(session.path, session.path.with_name("copy"))
    with store.session("copy") as copy:
        made = copy.add("decision", "Use MySQL")
        assert made.id.startswith("DEC-0002-")
    with store.session("shop") as original:
        assert original.add("decision", "Back up every night").id == "DEC-0002"


def test_moved_session_stays_the_replica_that_it_was(store: Store, session: Session) -> None:
    session.add("decision", "Use PostgreSQL")
    session.close()
    session.path.rename(session.path.with_name("moved"))
    with store.session("moved") as moved:
        assert moved.add("decision", "Back up every night").id == "DEC-0002"


def test_importing_the_package_leaves_the_search_path_of_libgit2() -> None:
    code = """
import pygit2
from pygit2.enums import ConfigLevel
before = [pygit2.settings.search_path[level] for level in (ConfigLevel.GLOBAL, ConfigLevel.SYSTEM)]
import smp_git.store
after = [pygit2.settings.search_path[level] for level in (ConfigLevel.GLOBAL, ConfigLevel.SYSTEM)]
assert before == after, (before, after)
"""
    python(code)
