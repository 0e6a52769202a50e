"""One record that cannot be read stops nothing else, and what it keeps is named."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import DamagedError
from tests.conftest import Clock
from tests.recovery.support import everything
from tests.recovery.test_recovery import keys_of
from tests.support import smp

DAMAGE = "nothing\n"


def _deleted(store: Store, name: str = "shop", text: str = "xantippe") -> list[Path]:
    """Delete two memories of a session that stands in the store; return the folders of both."""
    with store.session(name) as session:
        for number in (1, 2):
            session.add("decision", f"{text} the {number}th of them", agent="ada")
            session.delete(f"DEC-000{number}", by="ada")
    return sorted(path.parent for path in store.path.glob(f"deleted/{name}/*/*.sealed"))


def _damage(place: Path, *, has_receipt: bool = True, is_there: bool = True) -> None:
    record = place / "record.yaml"
    if is_there:
        record.write_text(DAMAGE)
    else:
        record.unlink()
    if not has_receipt:
        (place / "receipt.json").unlink()


# A whole session


@pytest.mark.parametrize("is_there", [True, False])
@pytest.mark.parametrize("has_receipt", [True, False])
def test_a_session_is_purged_past_a_damaged_record(store: Store, session: Session, has_receipt: bool, is_there: bool) -> None:  # fmt: skip
    first, _ = _deleted(store)
    _damage(first, has_receipt=has_receipt, is_there=is_there)
    session.close()
    store.delete_session("shop")

    done = smp("--root", store.path, "purge-session", "shop", "--yes", check=False)

    assert (done.returncode, done.stdout) == (0, "purged shop\n")
    assert keys_of(store) == []
    assert not (store.path / "deleted" / "shop").exists()
    assert b"xantippe" not in everything(store.path)


def test_a_session_whose_own_record_is_damaged_is_listed_and_comes_back(store: Store, session: Session) -> None:  # fmt: skip
    session.add("decision", "Close the shop on Mondays", agent="ada")
    session.close()
    store.create_session("other").close()
    receipt = store.delete_session("shop", by="ada")
    store.delete_session("other")
    _damage(store.path / "deleted" / "shop" / receipt.deletion)

    shop, other = store.deleted_sessions()

    assert (shop.session_id, shop.deleted_by, shop.recovery_deadline) == ("shop", "ada", receipt.deadline)  # fmt: skip
    assert "shop" in smp("--root", store.path, "trash", "--sessions").stdout
    store.purge_session(other.session_id)
    with store.undelete_session("shop") as back:
        assert back.get("DEC-0001").content == "Close the shop on Mondays"


@pytest.mark.parametrize("is_there", [True, False])
def test_a_session_whose_own_record_is_damaged_is_purged(store: Store, session: Session, is_there: bool) -> None:  # fmt: skip
    _deleted(store)
    session.close()
    receipt = store.delete_session("shop")
    _damage(store.path / "deleted" / "shop" / receipt.deletion, is_there=is_there, has_receipt=False)  # fmt: skip

    assert store.purge_session("shop") == ()

    assert keys_of(store) == []
    assert not (store.path / "deleted" / "shop").exists()


def test_a_copy_of_another_session_of_that_name_is_left_and_named(store: Store, session: Session) -> None:  # fmt: skip
    mine = _deleted(store)
    session.close()
    store.delete_session("shop")
    store.create_session("shop").close()
    theirs = [place for place in _deleted(store) if place not in mine]
    store.delete_session("shop")
    # One whose key tells that it is of the later session, one of which nothing tells.
    _damage(theirs[0])
    _damage(mine[0])
    lost = next(key for key in keys_of(store) if key.stem == mine[0].name)
    lost.unlink()

    done = smp("--root", store.path, "--json", "purge-session", "shop", "--yes", check=False)

    assert done.returncode == 9
    (left,) = json.loads(done.stdout)["left"]
    assert (left["deletion"], left["ids"]) == (mine[0].name, ["DEC-0001"])
    assert not theirs[0].exists()
    assert not theirs[1].exists()
    assert mine[0].exists()
    # The other one is the only one now, so what nothing else tells is of it.
    assert store.purge_session("shop") == ()
    assert keys_of(store) == []
    assert not (store.path / "deleted" / "shop").exists()


# Several memories


def test_a_damaged_copy_of_one_memory_hinders_no_purge_of_another(store: Store, session: Session) -> None:  # fmt: skip
    first, second = _deleted(store)
    session.add("decision", "Open it on Sundays", agent="ada")
    _damage(first)

    assert session.purge("DEC-0002").ids == ("DEC-0002",)
    assert session.delete("DEC-0003", purge=True).ids == ("DEC-0003",)

    assert not list(second.glob("*.sealed"))
    assert [each.ids for each in session.damaged_copies()] == [("DEC-0001",)]
    with pytest.raises(DamagedError) as caught:
        session.purge("DEC-0001")
    assert first.name in str(caught.value.hint)
    assert session.purge([first.name, "DEC-0001"]).damaged == (first.name,)
    assert keys_of(store) == []


def test_a_copy_of_which_nothing_tells_may_be_of_the_memory(store: Store, session: Session) -> None:  # fmt: skip
    first, _ = _deleted(store)
    _damage(first, has_receipt=False)

    with pytest.raises(DamagedError):
        session.purge("DEC-0002")
    assert session.purge(["DEC-0002", first.name]).damaged == (first.name,)


def test_one_damaged_receipt_hides_no_other(store: Store, session: Session) -> None:
    first, second = _deleted(store)
    (second / "receipt.json").write_text("{")

    assert session.receipt("DEC-0001")["deletion"] == first.name
    with pytest.raises(DamagedError):
        session.receipt(second.name)


# Several sessions


def test_what_is_due_goes_past_a_session_that_does_not_open(store: Store, session: Session, clock: Clock) -> None:  # fmt: skip
    first, _ = _deleted(store)
    _damage(first)
    session.close()
    store.create_session("broken").close()
    store.create_session("gone").close()
    store.delete_session("gone")
    shutil.move(store.path / "active" / "broken" / ".git/HEAD", store.path.parent / "aside")
    clock.now += timedelta(days=31)

    done = store.purge_expired()

    assert (done.ids, done.sessions, done.damaged) == (("DEC-0002",), ("gone",), (first.name,))
    (left,) = done.left
    assert left.startswith("session broken: ")
    assert keys_of(store) == []
    asked = smp("--root", store.path, "purge", "--older-than", "0s", "--yes", check=False)
    assert asked.returncode == 9
    assert "left: session broken: " in asked.stdout
    shutil.move(store.path.parent / "aside", store.path / "active" / "broken" / ".git/HEAD")
