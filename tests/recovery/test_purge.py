"""A purge is final: no copy, no key, no way back."""

from __future__ import annotations

from datetime import timedelta

import pytest

from smp_git import Session, Store
from smp_git.model.errors import DamagedError, InvalidError, MemoryNotFoundError, RefusedError
from tests.conftest import Clock
from tests.recovery.conftest import SENTINEL
from tests.recovery.support import everything
from tests.recovery.test_recovery import keys_of


def test_after_a_purge_nothing_is_left_in_the_store(store: Store, told: Session) -> None:
    told.delete("DEC-0001")

    done = told.purge("DEC-0001")

    assert (done.ids, done.copies) == (("DEC-0001",), 1)
    assert keys_of(store) == []
    assert list(store.path.rglob("backup*")) == []
    assert list(store.path.rglob("record.yaml")) == []
    assert SENTINEL.encode() not in everything(store.path)
    assert told.trash() == ()


def test_what_was_purged_is_never_restored(told: Session) -> None:
    told.delete("DEC-0001")
    told.purge("DEC-0001")

    with pytest.raises(RefusedError, match="DEC-0001 was purged"):
        told.restore("DEC-0001")


def test_delete_with_purge_keeps_no_copy(store: Store, told: Session) -> None:
    receipt = told.delete("DEC-0001", purge=True)

    assert receipt.purged
    assert receipt.deadline is None
    assert keys_of(store) == []
    assert told.trash() == ()
    with pytest.raises(RefusedError, match="was purged"):
        told.restore("DEC-0001")


def test_a_purge_destroys_the_copies_of_all_lives(store: Store, told: Session) -> None:
    told.delete("DEC-0001")
    told.restore("DEC-0001")
    told.delete("DEC-0001")
    assert len(keys_of(store)) == 2

    told.purge("DEC-0001")

    assert keys_of(store) == []


def test_a_purge_of_some_leaves_the_others_restorable(store: Store, session: Session) -> None:
    for number in range(5):
        session.add("finding", f"{SENTINEL} number {number}")
    session.delete([f"FIND-000{n}" for n in range(1, 6)])
    (old,) = keys_of(store)
    secret = old.read_bytes()

    session.purge(["FIND-0002", "FIND-0004"])

    (new,) = keys_of(store)
    assert new.read_bytes() != secret
    assert [item.id for item in session.trash()] == ["FIND-0001", "FIND-0003", "FIND-0005"]
    session.purge("FIND-0001")
    session.restore(["FIND-0003", "FIND-0005"])
    assert [memory.id for memory in session.memories()] == ["FIND-0003", "FIND-0005"]


def test_expired_takes_only_what_is_past_its_deadline(store: Store, told: Session, clock: Clock) -> None:  # fmt: skip
    told.delete("DEC-0001")
    clock.now += timedelta(days=20)
    told.delete("FIND-0001")
    clock.now += timedelta(days=15)

    done = told.purge(expired=True)

    assert done.ids == ("DEC-0001",)
    assert len(keys_of(store)) == 1
    assert [item.id for item in told.trash()] == ["FIND-0001"]
    assert told.purge(expired=True).ids == ()


def test_older_than_takes_what_was_deleted_before(told: Session, clock: Clock) -> None:
    told.delete("DEC-0001")
    clock.now += timedelta(days=10)
    told.delete("FIND-0001")
    clock.now += timedelta(days=1)

    assert told.purge(older_than="7d").ids == ("DEC-0001",)
    assert told.purge(older_than=timedelta(hours=1)).ids == ("FIND-0001",)


def test_a_restored_memory_outlives_the_deadline_of_its_deletion(told: Session, clock: Clock) -> None:  # fmt: skip
    told.delete("DEC-0001")
    told.restore("DEC-0001")
    clock.now += timedelta(days=31)

    told.purge(expired=True)

    assert told.get("DEC-0001").content.startswith(SENTINEL)
    told.delete("DEC-0001")
    told.restore("DEC-0001")


def test_a_dry_run_purges_nothing(told: Session, clock: Clock) -> None:
    told.delete("DEC-0001")
    assert told.purge("DEC-0001", dry_run=True).ids == ("DEC-0001",)
    clock.now += timedelta(days=31)
    assert told.purge(expired=True, dry_run=True).ids == ("DEC-0001",)

    clock.now -= timedelta(days=31)
    assert told.restore("DEC-0001").ids == ("DEC-0001",)


def test_what_lives_is_not_purged(told: Session) -> None:
    with pytest.raises(RefusedError, match="DEC-0001 is not deleted"):
        told.purge("DEC-0001")
    with pytest.raises(MemoryNotFoundError):
        told.purge("DEC-0099")
    with pytest.raises(InvalidError, match="a purge needs ids"):
        told.purge()


def test_the_whole_store_is_purged_at_once(store: Store, told: Session, clock: Clock) -> None:
    told.delete("DEC-0001")
    store.create_session("old").close()
    store.delete_session("old")
    clock.now += timedelta(days=31)

    done = store.purge_expired()

    assert done.ids == ("DEC-0001",)
    assert done.sessions == ("old",)
    assert keys_of(store) == []
    assert store.deleted_sessions() == ()


def test_a_copy_that_does_not_open_is_purged_whole_or_not_at_all(
    store: Store, told: Session
) -> None:
    told.delete(["DEC-0001", "FIND-0001"])
    keys_of(store)[0].unlink()

    with pytest.raises(DamagedError, match="and it holds FIND-0001 too"):
        told.purge("DEC-0001")
    assert len(told.trash()) == 2

    told.purge(["DEC-0001", "FIND-0001"])
    assert list(store.path.rglob("backup*")) == []


def test_a_damaged_record_hides_no_other_and_stops_its_own_purge(store: Store, told: Session) -> None:  # fmt: skip
    told.delete("DEC-0001")
    told.delete("FIND-0001")
    next(iter(sorted(store.path.rglob("record.yaml")))).write_text("deletion: 5\n")

    assert [item.id for item in told.trash()] == ["FIND-0001"]
    with pytest.raises(DamagedError, match="is not a record of a deletion"):
        told.purge(["FIND-0001", "DEC-0001"])
    assert told.restore("FIND-0001").ids == ("FIND-0001",)
