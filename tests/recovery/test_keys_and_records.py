"""A copy is bound to its deadline and its store, a damaged record hides nothing, reasons are kept."""

from __future__ import annotations

import json
import shutil
from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from smp_git import Session, Store
from smp_git.model.errors import DamagedError, InvalidError, RefusedError
from smp_git.remove import seal
from smp_git.remove.interrupted import site_of
from tests.conftest import Clock
from tests.recovery.test_recovery import keys_of
from tests.support import smp


@pytest.fixture
def deleted(session: Session) -> Session:
    session.add("decision", "Close the shop on Mondays", agent="ada")
    session.add("decision", "Open it on Sundays", agent="ada")
    session.delete("DEC-0001", reason="holds a name", by="ada")
    return session


def record_of(store: Store) -> Path:
    (path,) = (store.path / "deleted" / "shop").glob("*/record.yaml")
    return path


# The deadline


def test_a_deadline_that_was_changed_does_not_open_the_copy(store: Store, deleted: Session, clock: Clock) -> None:  # fmt: skip
    path = record_of(store)
    text = path.read_text()
    path.write_text(text.replace('recovery_deadline: "2026', 'recovery_deadline: "2027'))
    assert path.read_text() != text
    clock.now += timedelta(days=60)

    with pytest.raises(DamagedError, match="deadline"):
        deleted.restore("DEC-0001")

    path.write_text(text)
    clock.now -= timedelta(days=50)
    assert deleted.restore("DEC-0001").ids == ("DEC-0001",)


def test_a_copy_of_the_first_form_still_opens(store: Store, deleted: Session) -> None:
    trash = site_of(deleted._handle).trash
    (record,) = trash.records()
    (key,) = keys_of(store)
    bound = seal.Bound(record.deletion, trash.uid, record.recovery_deadline)
    file = trash.place(record.deletion) / record.backup
    data = seal.opened(file.read_bytes(), key.read_bytes(), bound)
    said = b"\0".join((b"smp-git sealed copy", record.deletion.encode(), trash.uid.encode()))
    nonce = bytes(12)
    file.write_bytes(b"SMP-GIT SEALED 1\n" + nonce + ChaCha20Poly1305(key.read_bytes()).encrypt(nonce, data, said))  # fmt: skip
    key.with_suffix(".json").unlink()

    assert deleted.restore("DEC-0001").ids == ("DEC-0001",)


# A damaged record


@pytest.mark.parametrize("damage", ["", "nothing\n", "deletion: [\n", "deletion:\n  id: x\n"])
def test_a_damaged_record_is_listed_with_what_is_known(store: Store, deleted: Session, damage: str) -> None:  # fmt: skip
    path = record_of(store)
    path.write_text(damage)

    (found,) = deleted.damaged_copies()

    assert (found.deletion, found.ids, found.deleted_by) == (path.parent.name, ("DEC-0001",), "ada")
    assert found.deleted_at is not None
    assert found.deadline is not None
    assert deleted.trash() == ()
    done = smp("--root", store.path, "-s", "shop", "trash")
    assert path.parent.name in done.stdout
    assert "DEC-0001" in done.stdout


def test_a_record_that_is_missing_is_listed_too(store: Store, deleted: Session) -> None:
    path = record_of(store)
    path.unlink()
    (path.parent / "receipt.json").unlink()

    (found,) = deleted.damaged_copies()

    assert (found.ids, found.deleted_by) == ((), None)
    assert found.deleted_at is not None
    with pytest.raises(DamagedError) as error:
        deleted.purge("DEC-0001")
    assert path.parent.name in str(error.value.hint)


@pytest.mark.parametrize("has_receipt", [True, False])
def test_purge_destroys_a_damaged_copy_and_its_key(store: Store, deleted: Session, has_receipt: bool) -> None:  # fmt: skip
    path = record_of(store)
    path.write_text("nothing\n")
    if not has_receipt:
        (path.parent / "receipt.json").unlink()

    done = smp("--root", store.path, "-s", "shop", "--json", "purge", path.parent.name, "--now", "--yes")  # fmt: skip

    assert json.loads(done.stdout)["damaged"] == [path.parent.name]
    assert keys_of(store) == []
    assert list(store.path.rglob("*.sealed")) == []
    assert deleted.damaged_copies() == ()
    assert deleted.audit()[-1].deletion == path.parent.name


def test_a_damaged_copy_goes_after_its_deadline(store: Store, deleted: Session, clock: Clock) -> None:  # fmt: skip
    record_of(store).write_text("nothing\n")
    assert deleted.purge(expired=True, dry_run=True).copies == 0
    clock.now += timedelta(days=31)

    assert deleted.purge(expired=True).copies == 1
    assert keys_of(store) == []


def test_a_damaged_record_is_not_passed_over(store: Store, deleted: Session) -> None:
    """A redaction that cannot see what a copy holds says how to go on, and changes nothing."""
    deleted.add("decision", "Paint the door")
    record_of(store).write_text("nothing\n")
    before = deleted.head

    with pytest.raises(DamagedError) as error:
        deleted.redact("Paint")
    assert "smp purge" in str(error.value.hint)
    assert deleted.head == before
    deleted.purge(["DEC-0001", record_of(store).parent.name])
    assert deleted.redact("Paint").left == ()


# A copied store


@pytest.fixture
def copied(store: Store, deleted: Session, clock: Clock) -> Store:
    place = store.path.with_name("copied")
    shutil.copytree(store.path, place)
    return Store.open(place, clock=clock)


def test_a_purge_in_a_copied_store_leaves_the_keys_of_the_original(store: Store, deleted: Session, copied: Store) -> None:  # fmt: skip
    with copied.session("shop") as other:
        done = other.purge("DEC-0001")
        assert done.kept_keys == (str(store.path.resolve()),)
        assert other.trash() == ()
    assert list(copied.path.rglob("*.sealed")) == []

    assert deleted.restore("DEC-0001").ids == ("DEC-0001",)


def test_a_copied_store_does_not_open_with_the_keys_of_the_original(copied: Store) -> None:
    with copied.session("shop") as other:
        with pytest.raises(DamagedError, match="belongs to the store at"):
            other.restore("DEC-0001")
        other.delete("DEC-0002")
        assert other.restore("DEC-0002").ids == ("DEC-0002",)


def test_a_whole_session_purged_in_a_copied_store_leaves_the_keys(deleted: Session, copied: Store) -> None:  # fmt: skip
    copied.delete_session("shop")
    copied.purge_session("shop")

    assert deleted.restore("DEC-0001").ids == ("DEC-0001",)


@pytest.mark.parametrize("moves", [True, False], ids=["moved", "copied, and the original is gone"])
def test_a_store_that_stands_alone_opens_and_destroys(tmp_path: Path, clock: Clock, moves: bool) -> None:  # fmt: skip
    store = Store.init(tmp_path / "here", clock=clock)
    with store.create_session("shop", user="ada") as session:
        session.add("decision", "Close")
        session.add("decision", "Open")
        session.delete(["DEC-0001", "DEC-0002"])
    there = tmp_path / "there"
    if moves:
        store.path.rename(there)
    else:
        shutil.copytree(store.path, there)
        shutil.rmtree(store.path)

    with Store.open(there, clock=clock).session("shop") as session:
        session.restore("DEC-0001")
        assert session.purge("DEC-0002").kept_keys == ()
    assert keys_of(store) == [] or len(keys_of(store)) == 1


# Key and copy in one tree


@pytest.mark.parametrize("variable", ["XDG_DATA_HOME", "HOME"])
@pytest.mark.parametrize("inside", ["store", "project"])
def test_keys_beside_the_copies_are_refused(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, variable: str, inside: str) -> None:  # fmt: skip
    project = tmp_path / "project"
    store = Store.init(project / ".bmad" / "sessions", clock=clock)
    home = (store.path if inside == "store" else project) / "home"
    home.mkdir()
    monkeypatch.setenv(variable, str(home))
    store = Store.open(project, clock=clock)
    with store.create_session("shop", user="ada") as session:
        session.add("decision", "Close")
        before = session.head

        with pytest.raises(RefusedError, match="store or the project"):
            session.delete("DEC-0001")
        assert session.head == before
        assert not list(tmp_path.rglob("*.key"))
        session.delete("DEC-0001", purge=True)


def test_where_one_tree_begins(tmp_path: Path) -> None:
    for name in ("home/.bmad/sessions", "repository/.git", "repository/memory"):
        (tmp_path / name).mkdir(parents=True)
    home, repository = tmp_path / "home", tmp_path / "repository"
    data = ".local/share/smp-git/keys"

    assert not seal.shares_tree(home / data, home / ".bmad/sessions")
    assert seal.shares_tree(home / "x/smp-git/keys", home / ".bmad/sessions")
    assert seal.shares_tree(repository / data, repository / "memory")
    assert not seal.shares_tree(home / data, repository / "memory")


# Reasons


def test_each_memory_may_have_a_reason_of_its_own(store: Store, session: Session) -> None:
    session.add("decision", "Close")
    session.add("decision", "Open")

    session.delete(["DEC-0001", "DEC-0002"], reason="privacy", reasons={"DEC-0002": "of ghp_16C7e42F292c6912E7710c838347Ae178B4a"})  # fmt: skip

    first, second = session.trash()
    assert first.reason == "privacy"
    assert second.reason is not None
    assert "ghp_16C7" not in second.reason
    assert "reason_specific: " in record_of(store).read_text()
    assert dict(session.audit()[-1].reasons) == {"DEC-0002": second.reason}


def test_a_reason_for_another_memory_is_refused(session: Session) -> None:
    session.add("decision", "Close")
    with pytest.raises(InvalidError, match="DEC-0009"):
        session.delete("DEC-0001", reasons={"DEC-0009": "no"})
    assert session.get("DEC-0001").content == "Close"


def test_the_audit_log_shows_reasons_and_takes_filters(store: Store, deleted: Session) -> None:
    with store.create_session("other", user="eve") as other:
        other.add("decision", "Close")
        other.delete("DEC-0001", by="eve")
    deleted.delete("DEC-0002", reasons={"DEC-0002": "too late"})
    deleted.restore("DEC-0002")

    def shown(*options: str) -> list[str]:
        return smp("--root", store.path, "audit", *options).stdout.splitlines()

    assert len(shown()) == 4
    assert shown("--id", "DEC-0001", "-s", "shop")[0].endswith("DEC-0001  holds a name")
    assert shown("--action", "delete", "--id", "DEC-0002")[0].endswith("DEC-0002: too late")
    (hers,) = shown("--by", "eve")
    assert hers.split()[1:] == ["eve", "delete", "other", "DEC-0001"]
    nothing = smp("--root", store.path, "audit", "--action", "purge")
    assert nothing.stdout == ""
    assert nothing.stderr == "note: nothing in the audit log\n"
    assert shown("--since", "2100-01-01") == []
    assert len(shown("--until", "2100-01-01")) == 4
    assert [line.action for line in deleted.audit(action="restore")] == ["restore"]
    done = smp("--root", store.path, "audit", "--since", "no time", check=False)
    assert done.returncode == 4
