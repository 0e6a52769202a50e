"""Each kind of damage: what is still read, what is said of it, and what a repair gives."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import DamagedError, InvalidError
from tests.damage.injuries import (
    FILE,
    HOW,
    MEMORIES,
    PAGE,
    VICTIM,
    WHAT,
    WHERE,
    copied,
    emptied,
    flip,
    gone,
    loose,
    object_of,
    without,
)
from tests.support import git, unlisted

# After these the branch cannot be read, so the session does not open.
_CLOSED = {"head commit", "root tree", "metadata"}
_CLOSING = {name for name in WHERE if name.startswith("branch ")} | {"HEAD gone", "config garbage"}
# What no reader needs, or what every reader goes round.
_UNSEEN = {"config gone", "config empty", "Git's index gone", "Git's index garbage", "Git's index empty",
           "local files gone", "local files garbage", "local files empty", "objects gone"}  # fmt: skip
_OF_PACKS = {name for name in WHERE if name.startswith(("pack ", "pack's"))}


def fsck(session: Path) -> str:
    """Return what Git has to say against a repository."""
    done = subprocess.run(
        ["git", "fsck", "--full", "--strict"],
        cwd=session,
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in (done.stdout + done.stderr).splitlines() if "dangling" not in line]
    return "\n".join(said) if done.returncode else ""


def is_sound(store: Store) -> None:
    """Assert that nothing is wrong with a store any more, as we and as Git see it."""
    assert store.check() == ()
    store.close()
    assert fsck(store.path / "active/shop") == ""
    assert unlisted(store.path) == []
    assert store.repair("shop") == ()


def others_answer(store: Store) -> None:
    """Assert that the session beside the damaged one answers, and the damaged one is named."""
    answer = store.query("elsewhere", limit=None)
    assert "other" in {hit.session for hit in answer}
    infos, left = store.infos()
    assert {info.id for info in infos} | {each.partition(":")[0] for each in left} == {
        "other",
        "shop",
    }
    store.close()


def alone(session: Path) -> None:
    """Take away the checked-out files and Git's index, which would give everything back."""
    shutil.rmtree(session / "findings")
    (session / ".git/index").unlink()
    (session / "metadata.yaml").unlink()


def restored(session: Session) -> None:
    """Check the files out again that a test took away."""
    git(session.path, "checkout", "HEAD", "--", ".")


# The checked-out files have what the store has lost


@pytest.mark.parametrize("how", ["flipped", "gone"])
@pytest.mark.parametrize(
    "what", [each for each in WHAT if not each.startswith(("head", "earlier"))]
)
def test_what_stands_in_the_folder_is_read_said_and_stored_again(template: Path, tmp_path: Path, what: str, how: str) -> None:  # fmt: skip
    store = copied(template, tmp_path / "store", packed=False)
    shop = store.path / "active/shop"
    HOW[how](loose(shop, object_of(shop, WHAT[what])))

    with store.session("shop") as session:
        assert len(session.memories()) == MEMORIES
        assert session.get(VICTIM).content == "slow page 41, and the worst of them"
        assert session.query("worst", limit=None)[0].id == VICTIM
        assert session.check()
        is_written = not what.endswith("tree")
        if is_written:
            assert session.add("finding", "written beside the damage").commit
    others_answer(store)

    (done,) = [each for each in store.repair("shop") if each.action == "stored"]
    assert "stored again" in done.message
    with store.session("shop") as session:
        assert len(session.memories()) == MEMORIES + is_written
        assert session.query(limit=1).problems == ()
    is_sound(store)


# Nobody has what the store has lost


@pytest.mark.parametrize("how", [pytest.param(each, marks=() if each in ("gone", "cut") else pytest.mark.slow) for each in HOW])  # fmt: skip
@pytest.mark.parametrize("what", WHAT)
def test_what_nobody_has_is_passed_over_named_and_taken_out(template: Path, tmp_path: Path, what: str, how: str) -> None:  # fmt: skip
    store = copied(template, tmp_path / "store", packed=False)
    shop = store.path / "active/shop"
    name = object_of(shop, WHAT[what])
    alone(shop)
    HOW[how](loose(shop, name))

    others_answer(store)
    if what in _CLOSED:
        with pytest.raises(DamagedError, match="shop"):
            store.session("shop")
    else:
        with store.session("shop") as session:
            assert len(session.memories()) >= MEMORIES - 400
            assert len(session.query("said", limit=None)) >= 60
            assert any(name[:12] in problem.message for problem in session.check())
            listed = {str(memory.id): memory for memory in session.memories()}
            if what == "memory":
                assert listed[VICTIM].problem
                assert listed[VICTIM].title.startswith("slow page 41")
                assert any(VICTIM in problem for problem in session.query("pages", limit=None).problems)  # fmt: skip
                with pytest.raises(DamagedError):
                    session.get(VICTIM)

    assert store.repair("shop")
    assert fsck(shop) == ""
    with store.session("shop") as session:
        restored(session)
        found = {str(memory.id): memory for memory in session.memories()}
        assert len(found) == MEMORIES
        assert not any(memory.problem for memory in found.values())
        assert found[VICTIM].content.startswith(("slow page 41", "slow page 41, and"))
    is_sound(store)


@pytest.mark.parametrize("what", WHAT)
def test_what_a_pack_lacks_is_treated_the_same(template: Path, tmp_path: Path, what: str) -> None:
    store = copied(template, tmp_path / "store", packed=True)
    shop = store.path / "active/shop"
    name = object_of(shop, WHAT[what])
    without(shop, name)

    others_answer(store)
    if what != "head commit":
        with store.session("shop") as session:
            assert len(session.memories()) == MEMORIES
            assert any(name[:12] in problem.message for problem in session.check())
    assert store.repair("shop")
    with store.session("shop") as session:
        assert len(session.memories()) == MEMORIES
        assert session.get(VICTIM).content == "slow page 41, and the worst of them"
    is_sound(store)


# Files of Git's and of ours


@pytest.mark.parametrize("packed", [False, pytest.param(True, marks=pytest.mark.slow)])
@pytest.mark.parametrize("where", [each for each in WHERE if each not in _OF_PACKS])
def test_an_injured_session_is_read_as_far_as_it_can_be_and_repaired(template: Path, tmp_path: Path, where: str, packed: bool) -> None:  # fmt: skip
    _injured(template, tmp_path, where, packed=packed)


@pytest.mark.parametrize("where", sorted(_OF_PACKS))
def test_a_broken_pack_is_read_as_far_as_it_can_be_and_repaired(template: Path, tmp_path: Path, where: str) -> None:  # fmt: skip
    _injured(template, tmp_path, where, packed=True)


def _injured(template: Path, tmp_path: Path, where: str, *, packed: bool) -> None:
    store = copied(template, tmp_path / "store", packed=packed)
    shop = store.path / "active/shop"
    WHERE[where](shop)

    others_answer(store)
    if where in _CLOSING:
        with pytest.raises(DamagedError, match="shop") as raised:
            store.session("shop")
        assert raised.value.exit_status == 9
        assert "smp -s shop repair" in (raised.value.hint or "")
    elif where not in _OF_PACKS:
        with store.session("shop") as session:
            assert len(session.memories()) >= MEMORIES - 1
            if where not in _UNSEEN:
                assert session.check()

    store.repair("shop")
    with store.session("shop") as session:
        assert len(session.memories()) == MEMORIES
        assert session.query("page", limit=1).problems == ()
        session.add("finding", "one more")
    is_sound(store)


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(template: Path, tmp_path: Path) -> None:  # fmt: skip
    store = copied(template, tmp_path / "store", packed=False)
    shop = store.path / "active/shop"
    flip(loose(shop, object_of(shop, WHAT["memory"])))
    before = {file: file.read_bytes() for file in shop.rglob("*") if file.is_file() and "smp" not in file.parts}  # fmt: skip

    (said,) = store.repair("shop", dry_run=True)

    assert said.memory == VICTIM
    assert {file: file.read_bytes() for file in before} == before
    assert not (shop / ".git/smp/damaged").exists()


def test_a_remote_gives_back_what_nobody_here_has(template: Path, tmp_path: Path) -> None:
    store = copied(template, tmp_path / "store", packed=False)
    with store.session("shop") as session:
        session.add_remote("origin", tmp_path / "remote.git", create=True)
        session.sync()
        shop, head = session.path, session.head
    names = [object_of(shop, WHAT[what]) for what in ("memory", "page tree", "root tree")]
    alone(shop)
    for name in names:
        gone(loose(shop, name))

    done = store.repair("shop")

    assert {each.action for each in done if each.path != ".git/index"} == {"stored"}
    with store.session("shop") as session:
        restored(session)
        assert session.head == head
        assert session.get(VICTIM).content == "slow page 41, and the worst of them"
    is_sound(store)


def test_the_newest_whole_commit_takes_the_place_of_a_lost_one_and_the_folder_is_committed(template: Path, tmp_path: Path) -> None:  # fmt: skip
    store = copied(template, tmp_path / "store", packed=False)
    with store.session("shop") as session:
        last = session.add("finding", "the last thing that was written").id
        shop = session.path
    emptied(loose(shop, object_of(shop, "HEAD")))

    done = store.repair("shop")

    assert any("newest that is whole" in each.message for each in done)
    with store.session("shop") as session:
        assert session.get(last).content == "the last thing that was written"
    is_sound(store)


def test_a_history_that_is_lost_as_a_whole_begins_anew_with_the_files_that_stand(template: Path, tmp_path: Path) -> None:  # fmt: skip
    store = copied(template, tmp_path / "store", packed=True)
    shop = store.path / "active/shop"
    for file in (shop / ".git/objects/pack").iterdir():
        file.write_bytes(b"")

    store.repair("shop")

    with store.session("shop") as session:
        assert len(session.memories()) == MEMORIES
        assert session.get(VICTIM).content == "slow page 41, and the worst of them"
    is_sound(store)


def test_what_is_kept_aside_goes_with_the_next_deletion(template: Path, tmp_path: Path) -> None:
    store = copied(template, tmp_path / "store", packed=False)
    shop = store.path / "active/shop"
    flip(loose(shop, object_of(shop, WHAT["memory"])))
    store.repair("shop")
    assert any((shop / ".git/smp/damaged").rglob("*"))

    with store.session("shop") as session:
        session.purge(session.delete("FIND-0001").ids)
        assert not (shop / ".git/smp/damaged").exists()
        assert session.verify().clean


def test_a_page_without_its_index_is_listed_from_its_files(template: Path, tmp_path: Path) -> None:
    store = copied(template, tmp_path / "store", packed=False)
    shop = store.path / "active/shop"
    names = [object_of(shop, f"HEAD:{PAGE}/index.yaml"), object_of(shop, f"HEAD:{FILE}")]
    alone(shop)
    for name in names:
        gone(loose(shop, name))

    with store.session("shop") as session:
        listed = [memory.id for memory in session.memories("finding")]
        assert len(listed) == 399
        assert VICTIM not in listed
        assert any(VICTIM in each for each in session.query(limit=1).problems)
        # No number of what cannot be read is given again.
        (shop / ".git/smp/counters.json").unlink(missing_ok=True)
        assert session.add("finding", "one more").id not in (*listed, VICTIM)


# Copies, and archives


def as_archive(template: Path, tmp_path: Path) -> Path:
    """Return the archive of another copy of the session."""
    other = copied(template, tmp_path / "backup", packed=True)
    other.archive_session("shop")
    return other.path / "archived/shop/archive.tar.gz"


def as_bundle(template: Path, tmp_path: Path) -> Path:
    """Return a bundle of another copy of the session."""
    other = copied(template, tmp_path / "backup", packed=True)
    with other.session("shop") as session:
        list(session.export("bundle", to=tmp_path / "shop.bundle"))
    return tmp_path / "shop.bundle"


COPIES: dict[str, Callable[[Path, Path], Path]] = {
    "folder": lambda template, _: template / "active/shop",
    "archive": as_archive,
    "archived session": lambda template, tmp_path: as_archive(template, tmp_path).parent,
    "bundle": as_bundle,
    "repository": lambda template, tmp_path: Path(
        git(tmp_path, "clone", "-q", "--bare", str(template / "active/shop"), "bare.git")
        or tmp_path / "bare.git"
    ),
}


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_gives_back_what_nobody_here_has(template: Path, tmp_path: Path, copy: str) -> None:
    store = copied(template, tmp_path / "store", packed=False)
    shop = store.path / "active/shop"
    head = object_of(shop, "HEAD")
    names = [object_of(shop, WHAT[what]) for what in ("memory", "page tree", "root tree")]
    alone(shop)
    for name in (*names, head):
        gone(loose(shop, name))

    done = store.repair("shop", copy=COPIES[copy](template, tmp_path))

    assert {each.action for each in done if each.path.startswith("findings")} == {"stored"}
    with store.session("shop") as session:
        restored(session)
        assert session.head == head
        assert session.get(VICTIM).content == "slow page 41, and the worst of them"
    is_sound(store)


def test_what_is_no_copy_is_refused_before_anything_is_done(template: Path, tmp_path: Path) -> None:
    store = copied(template, tmp_path / "store", packed=False)
    shop = store.path / "active/shop"
    gone(loose(shop, object_of(shop, "HEAD")))
    (tmp_path / "notes.txt").write_text("what a person wrote")
    for wrong in (tmp_path / "nothing", tmp_path / "notes.txt", tmp_path):
        with pytest.raises(InvalidError, match="no copy of a session"):
            store.repair("shop", copy=wrong)
    store.repair("shop")
    is_sound(store)


@pytest.mark.parametrize("how", ["flipped", "cut", "zeroed"])
def test_a_damaged_archive_is_named_and_what_can_be_read_of_it_comes_back(template: Path, tmp_path: Path, how: str) -> None:  # fmt: skip
    store = copied(template, tmp_path / "store", packed=True)
    store.archive_session("shop")
    archive = store.path / "archived/shop/archive.tar.gz"
    HOW[how](archive)
    broken = archive.read_bytes()

    assert any(each.startswith("shop: its archive cannot be read") for each in store.check())
    with pytest.raises(DamagedError, match="cannot be read") as raised:
        store.unarchive_session("shop")
    assert "smp -s shop repair" in str(raised.value.hint)
    assert archive.read_bytes() == broken
    assert {hit.session for hit in store.query("elsewhere", limit=None)} == {"other"}
    store.close()

    if how == "zeroed":
        with pytest.raises(DamagedError, match="nothing of session shop"):
            store.repair("shop")
        assert archive.read_bytes() == broken
        return
    (told,) = store.repair("shop", dry_run=True)
    assert "what can be read of it" in told.message
    assert store.sessions() == ("other",)
    done = store.repair("shop", copy=template / "active/shop")
    assert done[0].path == "archived/shop/archive.tar.gz"
    with store.session("shop") as session:
        restored(session)
        assert len(session.memories()) == MEMORIES
        assert (session.path / ".git/smp/damaged/archive.tar.gz").read_bytes() == broken
    is_sound(store)
