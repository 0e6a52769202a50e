"""The list of places that hold content: after a long day every file of a store has its line."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.remove.history.places import BESIDE, PLACES, Care, beside, place_of
from tests.conftest import Clock
from tests.support import git, smp


def explained(store: Path) -> dict[str, str | None]:
    """Return each file of a store with the pattern of the line that explains it."""
    found = {}
    for path in sorted(store.rglob("*")):
        if not path.is_dir():
            name = path.relative_to(store).as_posix()
            place = place_of(name)
            found[name] = place.pattern if place else None
    return found


@pytest.fixture
def day(store: Store, tmp_path: Path, clock: Clock) -> Store:
    """A store after a day's work: everything that makes a file has been done once."""
    remote = tmp_path / "remote.git"
    subprocess.run(["git", "init", "-q", "--bare", str(remote)], check=True)
    with store.create_session("shop", user="ada") as session:
        _work(session)
        session.add_remote("origin", remote)
        session.sync()
        _person(session.path)
        session.commit()
        _forget(session)
        session.sync()
    with store.session("global") as shared:
        shared.add("preference", "short answers", agent="a")
    with store.create_session("old") as session:
        session.add("decision", "to be forgotten with its session", agent="a")
    store.delete_session("old", "finished")
    for name in ("kept", "gone"):
        with store.create_session(name) as session:
            session.add("decision", "to be archived with its session", agent="a")
        store.archive_session(name)
    store.delete_session("gone")
    smp("--root", store.path, "use", "shop")
    return store


def _work(session: Session) -> None:
    for number in range(8):
        session.add("decision", f"decision number {number} of this day", agent="a", tags=["x"])
    session.add("turn", "a turn that says something", agent="b")
    session.set_state("veritas", {"working_memory": {"a": "b"}})
    session.edit("DEC-0001", text="edited once", agent="a")
    session.query("decision")
    session.get("DEC-0002")
    branch = session.branch("idea")
    branch.add("decision", "tried on a branch", agent="a")
    branch.close()
    session.merge("idea")
    session.undo()


def _person(folder: Path) -> None:
    git(folder, "tag", "v1")
    git(folder, "notes", "add", "-m", "a note", "HEAD")
    file = folder / "decisions/000/DEC-0003.yaml"
    file.write_text(file.read_text() + "# mine\n")
    git(folder, "stash", "-q")
    git(folder, "stash", "pop", "-q")
    git(folder, "gc", "-q")


def _forget(session: Session) -> None:
    session.delete("DEC-0004", reason="a test")
    session.delete("DEC-0005", purge=True)
    session.delete(["DEC-0006", "DEC-0007"])
    session.restore("DEC-0004", with_history=True)
    session.redact("number", "no.")
    session.purge("DEC-0006")
    session.verify()
    session.add("decision", "the last of the day", agent="a")


def test_every_file_has_its_line(day: Store) -> None:
    found = explained(day.path)

    assert [name for name, pattern in found.items() if pattern in (None, BESIDE)] == []
    assert len(found) > 50


@pytest.mark.parametrize("name", ["cache/all.json", "active/shop/export.md", "active/shop/.git/texts.db", "deleted/shop/x/copy.tar.gz"])  # fmt: skip
def test_file_that_nobody_listed_is_noticed(day: Store, name: str) -> None:
    (day.path / name).parent.mkdir(exist_ok=True, parents=True)
    (day.path / name).touch()

    assert [each for each, pattern in explained(day.path).items() if pattern in (None, BESIDE)] == [
        name
    ]
    (day.path / name).unlink()


def test_patterns_are_tried_one_after_the_other_and_none_is_hidden_by_another() -> None:
    for place in PLACES:
        name = place.pattern.replace("{session}/.git", "active/shop/.git")
        for above in ("deleted", "archived"):
            name = name.replace(f"{above}/{{session}}", f"{above}/shop")
        name = name.replace("{session}", "active/shop")
        name = name.replace("**", "a/b").replace("*", "a")
        assert place_of(name) is place, name


def test_what_is_beside_a_session_is_its_own(day: Store) -> None:
    names = [each.name for each in beside(day.path / "active/shop")]

    assert "audit.jsonl" in names
    assert any(name.startswith("deleted/shop/") and name.endswith("record.yaml") for name in names)
    assert not any(name.startswith("deleted/old/") for name in names)
    assert [*beside(day.path.parent / "elsewhere")] == []


BINARY = (
    "/.git/objects/",
    "/.git/index",
    "/.git/refs/",
    "/.git/smp/",
    "/.git/packed-refs",
    "/.git/logs/",
)


def test_text_is_found_in_every_file_that_is_said_to_be_searched(day: Store) -> None:
    """But in those whose form forbids a line of text; what is in them is tried elsewhere."""
    searched = {Care.REWRITTEN, Care.DROPPED, Care.SEARCHED}
    text = "The vault opens at 04:51 with the word plugh"
    with day.session("shop") as session:
        session.delete(session.add("decision", text, agent="a").id)
    tried = []
    for path in sorted(day.path.rglob("*")):
        name = path.relative_to(day.path).as_posix()
        place = place_of(name)
        is_own = name.startswith(("active/shop/", "deleted/shop/")) or "/" not in name
        if path.is_dir() or not is_own or place is None or place.care not in searched:
            continue
        if any(part in f"/{name}" for part in BINARY):
            continue
        kept = path.read_bytes()
        path.write_bytes(kept + f"\n# {text}\n".encode())
        with day.session("shop") as session:
            proof = session.verify()
        path.write_bytes(kept)
        assert proof.hits or proof.also_in, name
        tried.append(place.what)
    assert len(set(tried)) >= 8
