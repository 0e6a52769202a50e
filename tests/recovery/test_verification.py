"""The proof at a later time: texts are searched while a copy tells them, and what is not is said."""

from __future__ import annotations

from pathlib import Path

from smp_git import Session, Store
from tests.recovery.conftest import SENTINEL
from tests.support import git, git_input

TEXT = f"{SENTINEL} the second"


def put(session: Session, text: str = TEXT) -> Path:
    made = session.path / "mine.txt"
    made.write_text(text)
    return made


def test_text_of_a_deleted_memory_is_searched(told: Session) -> None:
    told.delete("DEC-0001")
    assert told.verify().clean

    made = put(told)

    proof = told.verify()
    assert proof.hits == ("the file mine.txt",)
    assert proof.text_searched
    assert proof.not_searched == ()
    made.unlink()


def test_what_a_receipt_reports_verify_reports_too(told: Session) -> None:
    made = put(told)

    receipt = told.delete("DEC-0001")

    assert not receipt.proof.clean
    assert told.verify().hits == receipt.proof.hits
    made.unlink()


def test_after_a_purge_is_said_that_no_text_was_searched(told: Session) -> None:
    told.delete("DEC-0001")
    made = put(told)

    purged = told.purge("DEC-0001")

    assert purged.proof is not None
    assert purged.proof.hits == ("the file mine.txt",)
    proof = told.verify()
    assert proof.clean and not proof.text_searched
    assert proof.not_searched == (
        "the text of a deleted or redacted memory, which no copy here holds",
    )
    made.unlink()


def test_purge_of_what_was_deleted_before_searches_the_text_of_its_copy(told: Session) -> None:
    told.delete("DEC-0001")
    made = put(told)

    receipt = told.delete("DEC-0001", purge=True)

    assert receipt.proof.hits == ("the file mine.txt",)
    assert told.receipt("DEC-0001")["proof"] == receipt.proof.as_json()
    made.unlink()


def test_copy_that_does_not_open_is_said(told: Session, store: Store) -> None:
    told.delete("DEC-0001")
    assert store.key_folder is not None
    for key in store.key_folder.rglob("*.key"):
        key.write_bytes(b"another")

    proof = told.verify()

    assert proof.clean
    assert proof.not_searched == ("the text of DEC-0001: its sealed copy does not open here",)


def test_what_was_restored_is_no_longer_looked_for(told: Session) -> None:
    told.delete("DEC-0001")
    told.restore("DEC-0001", with_history=True)

    proof = told.verify()

    assert proof.clean
    assert (proof.also_in, proof.not_searched) == ((), ())


def test_reason_that_quotes_the_text_is_found(told: Session) -> None:
    told.delete("DEC-0001", reason=TEXT)

    hits = told.verify().hits

    assert {hit.rpartition("/")[2] for hit in hits} == {
        "the file audit.jsonl",
        "record.yaml",
        "receipt.json",
    }


def test_message_in_the_name_of_a_memory_that_says_otherwise_is_found(told: Session) -> None:
    told.delete("DEC-0001")
    assert told.verify().clean

    git(told.path, "commit", "-q", "--allow-empty", "-m", f"edit finding FIND-0001: {TEXT}")

    proof = told.verify()
    assert "a commit message" in proof.hits
    assert proof.also_in == ()


def test_message_that_quotes_the_message_of_a_living_memory_is_no_hit(told: Session) -> None:
    told.add("preference", TEXT, agent="veritas")
    told.delete("DEC-0001")
    added = git(told.path, "log", "-1", "--format=%H", "--grep", "^preference PREF-0001").strip()

    git(told.path, "-c", "core.logAllRefUpdates=false", "revert", "--no-edit", added)

    assert "PREF-0001: " in git(told.path, "log", "-1", "--format=%s")
    proof = told.verify()
    assert proof.hits == ()
    assert proof.also_in == ("PREF-0001",)


def test_only_a_dead_version_in_the_index_of_git_is_found(told: Session) -> None:
    told.delete("DEC-0001")
    told.restore("DEC-0001")
    file = told.file("DEC-0001")
    path = file.relative_to(told.path).as_posix()
    living = git(told.path, "rev-parse", f"HEAD:{path}").strip()
    file.unlink()
    told.commit()
    git(told.path, "update-index", "--add", "--cacheinfo", f"100644,{living},{path}")
    assert told.verify().hits == ()

    dead = git_input(told.path, b"id: DEC-0001\n", "hash-object", "-w", "--stdin")
    git(told.path, "update-index", "--add", "--cacheinfo", f"100644,{dead},{path}")
    assert "the file .git/index" in told.verify().hits
    git(told.path, "read-tree", "HEAD")
