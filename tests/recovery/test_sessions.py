"""Whole sessions go, come back, and go for good."""

from __future__ import annotations

from datetime import timedelta

import pytest

from smp_git import Session, Store
from smp_git.model.errors import AlreadyExistsError, RefusedError, SessionNotFoundError
from tests.conftest import Clock
from tests.recovery.conftest import SENTINEL
from tests.recovery.support import everything
from tests.recovery.test_recovery import keys_of
from tests.support import git


def test_a_deleted_session_comes_back_as_it_was(store: Store, told: Session) -> None:
    head, memories = told.head, told.memories()
    told.close()

    receipt = store.delete_session("shop", "finished", by="ada")

    assert store.sessions() == ()
    assert (receipt.session, receipt.reason, receipt.by) == ("shop", "finished", "ada")
    with store.undelete_session("shop") as back:
        assert back.head == head
        assert back.memories() == memories
        assert back.add("decision", "Another").id == "DEC-0002"
    assert store.deleted_sessions() == ()


def test_the_record_of_a_session_names_it(store: Store, told: Session) -> None:
    told.close()
    store.delete_session("shop", "finished")

    (record,) = store.deleted_sessions()

    assert (record.session_id, record.reason) == ("shop", "finished")
    assert (record.items[0].type, record.items[0].id) == ("session", "shop")


def test_the_receipt_names_the_remotes_without_their_passwords(store: Store, told: Session) -> None:  # fmt: skip
    git(told.path, "remote", "add", "origin", "https://ada:" + "hunter2@git.example.com/shop.git")
    told.close()

    receipt = store.delete_session("shop")

    assert receipt.remotes == ("origin (https://git.example.com/shop.git)",)


def test_a_deleted_session_is_kept_until_its_deadline(store: Store, told: Session, clock: Clock) -> None:  # fmt: skip
    told.close()
    store.delete_session("shop")
    clock.now += timedelta(days=31)

    with pytest.raises(RefusedError, match="could be brought back until"):
        store.undelete_session("shop")


def test_a_name_that_was_given_again_is_not_overwritten(store: Store, told: Session) -> None:
    told.close()
    store.delete_session("shop")
    store.create_session("shop").close()

    with pytest.raises(AlreadyExistsError):
        store.undelete_session("shop")
    store.delete_session("shop")
    assert len(store.deleted_sessions()) == 2


def test_a_purged_session_leaves_nothing(store: Store, told: Session) -> None:
    told.delete("DEC-0001")
    told.close()
    store.delete_session("shop", SENTINEL[:8])

    store.purge_session("shop")

    assert store.deleted_sessions() == ()
    assert keys_of(store) == []
    assert SENTINEL.encode() not in everything(store.path)
    assert not (store.path / "deleted" / "shop").exists()
    with pytest.raises(SessionNotFoundError):
        store.undelete_session("shop")
    assert [line.action for line in store.audit()] == ["delete", "delete_session", "purge_session"]


def test_only_a_deleted_session_is_purged(store: Store, told: Session) -> None:
    with pytest.raises(RefusedError, match="shop is not deleted"):
        store.purge_session("shop")
    for dry_run in (False, True):
        with pytest.raises(SessionNotFoundError):
            store.purge_session("nowhere", dry_run=dry_run)


def test_a_purge_that_is_only_planned_destroys_nothing(store: Store, told: Session) -> None:
    told.close()
    store.delete_session("shop")

    assert store.purge_session("shop", dry_run=True) == ()
    store.undelete_session("shop").close()
    with pytest.raises(RefusedError, match="shop is not deleted"):
        store.purge_session("shop", dry_run=True)


def test_only_the_whole_id_deletes(store: Store, told: Session) -> None:
    with pytest.raises(SessionNotFoundError):
        store.delete_session("sho")
    assert store.sessions() == ("shop",)


def test_a_move_that_never_happened_is_forgotten(store: Store, told: Session) -> None:
    told.close()
    receipt = store.delete_session("shop")
    place = store.path / "deleted" / "shop" / receipt.deletion
    (place / "session").rename(store.path / "active" / "shop")

    assert store.deleted_sessions() == ()
    assert not place.exists()
    assert store.sessions() == ("shop",)


def test_another_handle_of_a_deleted_session_closes(store: Store, told: Session) -> None:
    store.delete_session("shop")

    told.close()


def test_memories_deleted_before_come_back_after_the_session_does(store: Store, told: Session) -> None:  # fmt: skip
    told.delete("DEC-0001")
    told.close()
    store.delete_session("shop")

    with store.undelete_session("shop") as back:
        back.restore("DEC-0001")

        assert back.get("DEC-0001").content.startswith(SENTINEL)


def test_a_write_through_another_handle_says_that_the_session_is_gone(store: Store, told: Session) -> None:  # fmt: skip
    store.delete_session("shop")

    with pytest.raises(SessionNotFoundError, match="session shop is no longer at"):
        told.add("turn", "Anybody there?")
    assert list((store.path / "active").iterdir()) == []
