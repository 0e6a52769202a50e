"""A folder of sessions: made, opened, copied, moved, cloned, damaged."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.model.errors import (
    AlreadyExistsError,
    FormatError,
    InvalidError,
    InvalidFileError,
    NotStoreError,
    SessionNotFoundError,
    SmpError,
    StorageError,
)
from tests.support import git


@pytest.mark.parametrize(
    "name", ["", " ", "-a", "_a", "a b", "a/b", "../x", ".", "..", ".git", "é", "x" * 65, "con", "NUL", "a\n", "a\0", "\ud800", 5, ["a"]]
)  # fmt: skip
def test_text_that_is_no_session_id_is_refused(store: Store, name: Any) -> None:
    with pytest.raises(InvalidError, match="not a valid id for a session"):
        store.create_session(name)

    assert store.sessions() == ()


@pytest.mark.parametrize("name", ["shop", "SHOP", "Shop", "global", "GLOBAL"])
def test_session_id_that_differs_in_case_only_is_taken(store: Store, session: Session, name: str) -> None:  # fmt: skip
    with pytest.raises(AlreadyExistsError):
        store.create_session(name)


@pytest.mark.parametrize("text", ["", "x", "../shop", "shop/../shop", ".", "\0", "\ud800", "x" * 10_000, 5, None, ["shop"]])  # fmt: skip
def test_text_that_names_no_session_is_refused(store: Store, session: Session, text: Any) -> None:
    with pytest.raises(SessionNotFoundError) as caught:
        store.session(text)

    assert caught.value.hint
    assert len(caught.value.message) < 400


def test_beginning_of_several_sessions_asks_which(store: Store, session: Session) -> None:
    store.create_session("shop-2").close()

    assert store.find_session("shop") == "shop"
    with pytest.raises(InvalidError, match="several"):
        store.session("sh")


@pytest.mark.parametrize(
    "given",
    [
        {"user": ""}, {"user": "a\0"}, {"user": "a\ud800"}, {"user": "日本"}, {"user": 5}, {"agents": "architect"},
        {"agents": ["", "a"]}, {"agents": [5]}, {"context": [1]}, {"context": "x"}, {"context": {1: 2}},
        {"context": {"a": object()}}, {"tags": "a"}, {"tags": ["A B"]}, {"context": {"a": "\ud800"}},
    ],
)  # fmt: skip
def test_bad_metadata_makes_no_session(store: Store, given: Any) -> None:
    with pytest.raises(InvalidError):
        store.create_session("shop", **given)

    assert list((store.path / "active").iterdir()) == []


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000, "nowhere", "/dev/null", "/"])
def test_path_that_is_no_store_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(NotStoreError):
        Store.open(tmp_path / path)


@pytest.mark.parametrize("path", ["a\0b", "x" * 5000])
def test_path_that_cannot_be_a_store_is_refused(tmp_path: Path, path: str) -> None:
    with pytest.raises(SmpError):
        Store.init(tmp_path / path)


def test_folder_with_other_files_is_not_made_a_store(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(AlreadyExistsError, match="other files"):
        Store.init(tmp_path)

    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]


def test_init_of_a_store_opens_it(store: Store, session: Session) -> None:
    assert Store.init(store.path).sessions() == ("shop",)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (b"format: 2\n", FormatError), (b"format: '1'\n", FormatError), (b"format: [\n", InvalidFileError),
        (b"\xff\xfe", InvalidFileError), (b"- a\n", InvalidFileError), (b"colour: red\n", InvalidError),
        (b"durability: maybe\n", InvalidError), (b"lock_timeout_seconds: 0\n", InvalidError),
        (b"lock_timeout_seconds: soon\n", InvalidError), (b"lock_timeout_seconds: true\n", InvalidError),
        (b"format: 1\nformat: 1\n", InvalidFileError), (b"\0\0\0", InvalidFileError), (b"a: &a [*a]\n", InvalidFileError),
    ],
)  # fmt: skip
def test_damaged_settings_are_refused_by_name(tmp_path: Path, text: bytes, error: type[SmpError]) -> None:  # fmt: skip
    store = Store.init(tmp_path / "store")
    (store.path / "config.yaml").write_bytes(text)
    with pytest.raises(error) as caught:
        Store.open(store.path)

    assert str(store.path) in caught.value.message


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_settings_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    (store.path / "config.yaml").chmod(0)
    with pytest.raises(StorageError):
        Store.open(store.path)


@pytest.mark.parametrize("name", ["format", "rule"])
def test_session_of_a_newer_format_is_refused(tmp_path: Path, name: str) -> None:
    store = Store.init(tmp_path / "store")
    store.create_session("shop").close()
    store.create_session("other").close()
    _commit_metadata(store, re.compile(rf"{name}: 2"), f"{name}: 9")

    with pytest.raises(FormatError, match=f"{name} 9") as caught:
        store.session("shop")
    assert "newer" in str(caught.value.hint)
    assert [line.partition(":")[0] for line in store.check()] == ["shop"]


def _commit_metadata(store: Store, old: re.Pattern[str], new: str) -> None:
    path = store.path / "active" / "shop"
    file = path / "metadata.yaml"
    file.write_text(old.sub(new, file.read_text()))
    git(path, "add", "-A")
    git(path, "commit", "-q", "--no-verify", "-m", "meddling")


@pytest.mark.parametrize(("old", "new"), [("created_at: .*", "created_at: soon"), ("(?s).*", "["), ("(?s).*", "")])  # fmt: skip
def test_damaged_metadata_is_refused_in_one_sentence(tmp_path: Path, old: str, new: str) -> None:
    store = Store.init(tmp_path / "store")
    store.create_session("shop").close()
    _commit_metadata(store, re.compile(old), new)

    with pytest.raises(SmpError):
        store.session("shop")


def test_repository_that_is_no_session_is_refused(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "store")
    path = store.path / "active" / "project"
    path.mkdir()
    git(path, "init", "-q", "-b", "main")
    with pytest.raises(SmpError):
        store.session("project")
    (path / "a.txt").write_text("a")
    git(path, "add", "-A")
    git(path, "commit", "-q", "-m", "a")
    with pytest.raises(FormatError, match="not a session"):
        store.session("project")


# Copies, moves and clones


def test_copied_session_takes_a_tag_of_its_own(store: Store, session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.close()
    shutil.copytree(session.path, session.path.with_name("copy"))
    with store.session("copy") as copy, store.session("shop") as original:
        memory = copy.add("decision", "Use Valkey", agent="a")
        again = copy.add("decision", "Use TLS", agent="a")
        other = original.add("decision", "Use Git", agent="a")

    tag = memory.id.rpartition("-")[2]
    assert re.fullmatch(r"[a-z][a-z0-9]{3}", tag)
    assert (memory.id, again.id, other.id) == (f"DEC-0002-{tag}", f"DEC-0003-{tag}", "DEC-0002")
    assert (copy.id, original.id) == ("copy", "shop")
    assert (copy.path / f"replicas/{tag}.yaml").exists()


def test_copy_keeps_its_tag_when_it_is_opened_again(store: Store, session: Session) -> None:
    session.close()
    shutil.copytree(session.path, session.path.with_name("copy"))
    found = []
    for number in range(2):
        with store.session("copy") as copy:
            found.append(copy.add("learning", f"Fact {number}", agent="a").id)

    assert found[0].rpartition("-")[2] == found[1].rpartition("-")[2]


def test_moved_session_stays_itself(store: Store, session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.close()
    session.path.rename(session.path.with_name("moved"))
    with store.session("moved") as moved:
        assert moved.add("decision", "Use Valkey", agent="a").id == "DEC-0002"
        assert moved.id == "moved"


def test_moved_store_stays_itself(tmp_path: Path) -> None:
    store = Store.init(tmp_path / "one")
    store.create_session("shop").close()
    (tmp_path / "one").rename(tmp_path / "two")
    with Store.open(tmp_path / "two").session("shop") as session:
        assert session.add("decision", "Use Redis", agent="a").id == "DEC-0001"


def test_clone_by_git_is_a_replica(store: Store, session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.close()
    git(store.path, "clone", "-q", str(session.path), str(session.path.with_name("clone")))
    with store.session("clone") as clone:
        assert [memory.title for memory in clone.memories()] == ["Use Redis"]
        memory = clone.add("decision", "Use Valkey", agent="a")
        clone.undo()
        clone.undo()

    assert re.fullmatch(r"DEC-\d{4}-[a-z][a-z0-9]{3}", memory.id)
    assert git(clone.path, "status", "--porcelain") == ""


def test_removed_session_is_gone_in_one_sentence(store: Store, session: Session) -> None:
    session.close()
    shutil.rmtree(session.path)

    assert store.sessions() == ()
    with pytest.raises(SessionNotFoundError):
        store.session("shop")


def test_session_is_made_if_it_is_not_there_and_asked_for(store: Store) -> None:
    store.create_session("shop-2").close()

    with store.session("shop", create=True) as session:
        session.add("decision", "One")
    with store.session("shop", create=True) as session:
        assert session.id == "shop"
        assert len(session.memories()) == 1
    assert store.sessions() == ("shop", "shop-2")
    with pytest.raises(InvalidError):
        store.session("../x", create=True)
