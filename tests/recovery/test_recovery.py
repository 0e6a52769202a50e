"""Deleted memories come back until their deadline, and never after it."""

from __future__ import annotations

import random
from datetime import timedelta
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import (
    AlreadyExistsError,
    DamagedError,
    InvalidError,
    MemoryNotFoundError,
    RefusedError,
)
from smp_git.model.ids import is_life
from tests.conftest import Clock
from tests.recovery.conftest import SENTINEL
from tests.recovery.support import everything


def keys_of(store: Store) -> list[Path]:
    assert store.key_folder is not None
    return sorted(store.key_folder.rglob("*.key"))


def test_a_deleted_memory_is_in_the_trash_and_nowhere_else(store: Store, told: Session) -> None:
    receipt = told.delete("DEC-0001", reason="holds a name", by="ada")

    assert receipt.ids == ("DEC-0001",)
    (item,) = told.trash()
    assert (item.id, item.type, item.versions) == ("DEC-0001", "decision", 3)
    assert (item.deleted_by, item.reason) == ("ada", "holds a name")
    assert item.deadline - item.deleted_at == timedelta(days=30)
    with pytest.raises(MemoryNotFoundError):
        told.get("DEC-0001")
    assert SENTINEL.encode() not in everything(store.path)


def test_the_record_has_the_form_of_the_specification(store: Store, told: Session) -> None:
    told.delete("DEC-0001", reason="holds a name", by="ada")

    (path,) = (store.path / "deleted" / "shop").glob("*/record.yaml")
    lines = path.read_text().splitlines()
    assert lines[0] == "deletion:"
    for key in ("session_id: shop", "deleted_at: ", "deleted_by: ada", "reason: holds a name",
                "recovery_deadline: ", "deleted_items:", "backup_location: "):  # fmt: skip
        assert any(line.strip().startswith(key) for line in lines), key
    assert SENTINEL not in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o600


def test_keys_stand_outside_the_store_and_only_for_their_owner(store: Store, told: Session) -> None:
    told.delete("DEC-0001")

    (key,) = keys_of(store)
    assert not key.is_relative_to(store.path)
    assert key.stat().st_mode & 0o777 == 0o600
    assert key.read_bytes() not in everything(store.path)


def test_restore_brings_the_last_version_back(told: Session) -> None:
    before = told.get("DEC-0001")
    told.delete("DEC-0001")

    done = told.restore("DEC-0001")

    after = told.get("DEC-0001")
    assert done.ids == ("DEC-0001",)
    assert (after.content, after.tags, after.agent) == (before.content, before.tags, before.agent)
    assert after.created_at == before.created_at
    assert is_life(after.life)
    assert after.life != before.life
    assert told.trash() == ()


def test_links_to_a_restored_memory_work_again(told: Session) -> None:
    told.delete("DEC-0001")
    assert told.get("FIND-0001").links[0].target == "DEC-0001"

    told.restore("DEC-0001")

    assert told.get(told.get("FIND-0001").links[0].target).content.startswith(SENTINEL)


def test_restore_with_history_brings_every_version_at_the_tip(told: Session) -> None:
    told.delete("DEC-0001")
    told.add("finding", "Meanwhile")

    done = told.restore("DEC-0001", with_history=True)

    assert done.versions == 2
    history = told.history("DEC-0001")
    assert [version.agent for version in history[:3]] == ["user-123", "veritas", "architect"]
    texts = [told.get("DEC-0001", at=version.commit).content for version in history[:3]]
    assert texts == [f"{SENTINEL} the {word}" for word in ("third", "second", "first")]


def test_restore_is_possible_on_day_29(told: Session, clock: Clock) -> None:
    told.delete("DEC-0001")
    clock.now += timedelta(days=29)

    assert told.restore("DEC-0001").ids == ("DEC-0001",)


def test_restore_is_refused_on_day_31(told: Session, clock: Clock) -> None:
    told.delete("DEC-0001")
    clock.now += timedelta(days=31)

    assert told.trash() == ()
    with pytest.raises(RefusedError, match="could be restored until 2026-02-10"):
        told.restore("DEC-0001")


def test_the_retention_is_a_setting(store: Store, clock: Clock) -> None:
    (store.path / "config.yaml").write_text("format: 1\ntrash_days: 2\n")
    with Store.open(store.path, clock=clock).create_session("brief") as session:
        session.add("decision", "For two days")
        session.delete("DEC-0001")
        clock.now += timedelta(days=3)

        with pytest.raises(RefusedError, match="which is past"):
            session.restore("DEC-0001")


def test_a_lost_key_fails_closed(store: Store, told: Session) -> None:
    told.delete("DEC-0001")
    keys_of(store)[0].unlink()
    before = told.head

    with pytest.raises(DamagedError, match=r"the key of .* is not in"):
        told.restore("DEC-0001")
    assert told.head == before


def test_a_wrong_key_fails_closed(store: Store, told: Session) -> None:
    told.delete("DEC-0001")
    keys_of(store)[0].write_bytes(bytes(32))
    before = told.head

    with pytest.raises(DamagedError, match="does not open"):
        told.restore("DEC-0001")
    assert told.head == before


def test_a_copy_that_was_changed_or_moved_to_another_deletion_does_not_open(store: Store, told: Session) -> None:  # fmt: skip
    told.delete("DEC-0001")
    told.delete("FIND-0001")
    one, other = sorted((store.path / "deleted" / "shop").glob("*/backup.tar.gz.sealed"))
    first, second = keys_of(store)
    one.write_bytes(other.read_bytes())
    first.write_bytes(second.read_bytes())

    with pytest.raises(DamagedError, match="does not open"):
        told.restore("DEC-0001")


def test_ten_of_a_hundred_come_back(store: Store, session: Session) -> None:
    with session.transaction() as t:
        for number in range(100):
            t.add("finding", f"{SENTINEL} number {number}")
    ids = [memory.id for memory in session.memories()]
    session.delete(ids, reason="all")
    chosen = random.Random(3).sample(ids, 10)

    session.restore(chosen)

    assert sorted(memory.id for memory in session.memories()) == sorted(chosen)
    assert all(
        memory.content.endswith(str(int(memory.id[5:]) - 1)) for memory in session.memories()
    )
    assert len(session.trash()) == 90


def test_restore_after_other_deletions(told: Session) -> None:
    told.delete("DEC-0001")
    told.delete("FIND-0001")
    told.add("finding", "Another")
    told.delete("FIND-0002")

    told.restore("DEC-0001")
    told.restore(["FIND-0001", "FIND-0002"])

    assert [memory.id for memory in told.memories()] == ["DEC-0001", "FIND-0001", "FIND-0002"]


def test_a_memory_is_deleted_and_restored_again_and_again(told: Session) -> None:
    lives = [told.get("DEC-0001").life]
    for _ in range(3):
        told.delete("DEC-0001")
        told.restore("DEC-0001")
        lives.append(told.get("DEC-0001").life)

    assert lives[0] == ""
    assert len(set(lives)) == 4
    known = told._handle.reader.snapshot().tombstones.lives("DEC-0001")
    assert [known.is_dead(life) for life in lives] == [True, True, True, False]
    assert known.past(lives[-1]) == set(lives)


def test_undo_and_rollback_never_bring_back_what_was_deleted(told: Session) -> None:
    start = told.log()[-2].at
    told.delete("DEC-0001")

    told.rollback(start)
    told.add("finding", "One more")
    told.undo()

    assert "DEC-0001" not in [memory.id for memory in told.memories()]
    assert told.verify().clean


def test_what_is_not_deleted_is_not_restored(told: Session) -> None:
    with pytest.raises(AlreadyExistsError, match="DEC-0001 is not deleted"):
        told.restore("DEC-0001")
    with pytest.raises(MemoryNotFoundError):
        told.restore("DEC-0099")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("DEC-1", "is a short id"),
        ("dec-0001", "is not written as ids are"),
        ("Turn-0001", "is not written as ids are"),
        ("DEC-42", "is a short id"),
    ],
)
def test_what_takes_away_takes_only_full_ids(told: Session, name: str, said: str) -> None:
    for act in (told.delete, told.purge):
        with pytest.raises(InvalidError, match=said):
            act(name)


def test_one_bad_id_restores_nothing(told: Session) -> None:
    told.delete("DEC-0001")
    before = told.head

    with pytest.raises(AlreadyExistsError):
        told.restore(["DEC-0001", "FIND-0001"])
    assert told.head == before


def test_no_lasting_folder_for_keys_refuses_and_offers_to_purge(
    store: Store, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOME")
    with Store.open(store.path, clock=clock).create_session("homeless") as session:
        session.add("decision", "Stays")

        with pytest.raises(RefusedError, match="no lasting folder") as caught:
            session.delete("DEC-0001")
        assert "--purge" in str(caught.value.hint)
        assert session.get("DEC-0001").content == "Stays"
        assert session.delete("DEC-0001", purge=True).purged


def test_a_key_dir_in_the_store_is_refused(store: Store) -> None:
    (store.path / "config.yaml").write_text(f"format: 1\nkey_dir: {store.path}/keys\n")

    with pytest.raises(InvalidError, match="key_dir is inside the store"):
        Store.open(store.path)


def test_a_key_dir_of_ones_own_is_used(store: Store, tmp_path: Path, clock: Clock) -> None:
    (store.path / "config.yaml").write_text(f"format: 1\nkey_dir: {tmp_path}/mine\n")
    with Store.open(store.path, clock=clock).create_session("kept") as session:
        session.add("decision", "Something")
        session.delete("DEC-0001")

    assert len(list((tmp_path / "mine").rglob("*.key"))) == 1


def test_a_state_is_deleted_and_restored(session: Session) -> None:
    session.set_state("veritas", {"current_context": {"task": "verify"}})
    session.delete("state-veritas")
    assert session.state("veritas") == {}

    session.restore("state-veritas")

    assert session.state("veritas") == {"current_context": {"task": "verify"}}


def test_an_edit_by_hand_keeps_its_comments_through_deletion(session: Session) -> None:
    session.add("decision", "With a comment")
    file = session.file("DEC-0001")
    file.write_text("# written by hand\n" + file.read_text())
    session.commit()
    session.delete("DEC-0001")

    session.restore("DEC-0001")

    assert file.read_text().startswith("# written by hand\n")


def test_the_audit_log_tells_what_happened_without_content(store: Store, told: Session) -> None:
    told.delete("DEC-0001", reason="ask bob@acme.io", by="ada")
    told.restore("DEC-0001", by="ada")
    told.delete("DEC-0001")
    told.purge("DEC-0001")

    lines = told.audit()
    assert [line.action for line in lines] == ["delete", "restore", "delete", "purge"]
    assert lines[0].ids == ("DEC-0001",)
    assert lines[0].reason == "ask [REDACTED:email]"
    text = (store.path / "audit.jsonl").read_text()
    assert SENTINEL not in text
    assert "bob@acme.io" not in everything(store.path).decode("utf-8", "replace")


def test_the_receipt_is_kept(told: Session) -> None:
    made = told.delete("DEC-0001", reason="why not")

    for name in (None, "DEC-0001", made.deletion):
        assert told.receipt(name)["deletion"] == made.deletion
    assert SENTINEL not in str(told.receipt())
