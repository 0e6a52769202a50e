"""A plain `git commit` in a session: whole, or refused with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.keep import losses
from smp_git.read.snapshot import Reader
from tests.hooks.conftest import Person, assert_whole
from tests.support import git

pytestmark = pytest.mark.slow

ONE = "findings/000/FIND-0001.yaml"
NEW = """\
id: FIND-0004
kind: finding
created_at: "2026-01-11T15:00:00Z"
agent: veritas
finding: Written by hand
"""


@pytest.mark.parametrize("how", [("-a",), ("-i", ONE), ("-o", ONE), None], ids=str)
def test_edit_by_hand_is_committed_with_its_index(shop: Person, how: tuple[str, ...] | None) -> None:  # fmt: skip
    shop.changes(ONE, "No MFA", "No second factor")
    if how is None:
        shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "by hand", *(how or ()))

    assert shop.git("show", "--format=", "--name-only").split() == [ONE, "findings/000/index.yaml"]
    assert "No second factor" in (shop.folder / "findings/000/index.yaml").read_text()
    assert shop.subjects()[0] == "by hand"


def test_new_memory_by_hand(shop: Person) -> None:
    shop.writes("findings/000/FIND-0004.yaml", NEW)
    shop.git("add", "findings")
    shop.git("commit", "-q", "-m", "by hand")

    assert '"id":"FIND-0004"' in shop.git("show", "HEAD:findings/000/index.yaml")


def test_first_memory_of_a_page_and_the_last(shop: Person) -> None:
    shop.writes("decisions/001/DEC-0100.yaml", NEW.replace("FIND-0004", "DEC-0100").replace("finding", "decision"))  # fmt: skip
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "a page more")
    assert (shop.folder / "decisions/001/index.yaml").exists()
    shop.git("rm", "-q", "decisions/001/DEC-0100.yaml")
    shop.git("commit", "-q", "-m", "remove decision DEC-0100")

    assert not (shop.folder / "decisions/001").exists()


def test_index_edited_or_removed_by_hand_is_as_it_was(shop: Person) -> None:
    shop.writes("findings/000/index.yaml", "nonsense\n")
    (shop.folder / "decisions/000/index.yaml").unlink()
    shop.changes(ONE, "No MFA", "No second factor")
    shop.git("commit", "-qam", "by hand")

    assert shop.git("show", "--format=", "--name-only").split() == [ONE, "findings/000/index.yaml"]


def test_only_what_is_staged_counts(shop: Person) -> None:
    shop.changes(ONE, "No MFA", "No second factor")
    shop.git("add", ONE)
    shop.changes(ONE, "No second factor", "No third factor")
    shop.changes("findings/000/FIND-0002.yaml", "Slow", "Very slow")
    shop.git("commit", "-q", "-m", "by hand")

    index = shop.git("show", "HEAD:findings/000/index.yaml")
    assert "No second factor" in index
    assert "Very slow" not in index
    assert shop.git("status", "--porcelain").split() == ["M", ONE, "M", "findings/000/FIND-0002.yaml"]  # fmt: skip
    shop.git("commit", "-qam", "the rest")


def test_amended(shop: Person) -> None:
    shop.changes(ONE, "No MFA", "No second factor")
    shop.git("commit", "-qam", "by hand")
    shop.changes(ONE, "No second factor", "No third factor")
    shop.git("commit", "-qa", "--amend", "-m", "by hand, better")

    assert shop.subjects()[:2] == ["by hand, better", "decision DEC-0001: Use PostgreSQL"]


def test_executable_is_none_when_committed(shop: Person) -> None:
    (shop.folder / ONE).chmod(0o755)
    shop.changes(ONE, "No MFA", "No second factor")
    shop.git("commit", "-qam", "by hand")

    assert shop.git("ls-tree", "HEAD", ONE).startswith("100644")


def test_memory_that_the_index_has_not_seen_stays(shop: Person, session: Session, store: Store) -> None:  # fmt: skip
    with store.session(session.id) as other:
        shop.changes(ONE, "No MFA", "No second factor")
        name = other.add("finding", "Just now", agent="b").id
        shop.git("commit", "-qam", "by hand")

        assert other.get(name).content == "Just now"


def test_edit_that_git_could_not_see_is_not_left_out(shop: Person, store: Store) -> None:
    with store.session("shop") as other:
        path = other.add("finding", "Just now", agent="b").path
        shop.changes(path, "Just now", "A moment ago")
        said = shop.refused("commit", "-qam", "by hand")
        assert f"{path} was written a moment ago" in said
        assert shop.subjects()[0] == "finding FIND-0004: Just now"
        other.check()
        shop.git("commit", "-qam", "by hand")

        assert other.get("FIND-4").content == "A moment ago"


def test_later_write_to_the_same_memory_is_brought_in(shop: Person, store: Store) -> None:
    shop.changes(ONE, "finding: No MFA", "finding: No second factor")
    with store.session("shop") as other:
        other.edit("FIND-1", severity="critical")
    shop.git("commit", "-qam", "by hand")

    with store.session("shop") as other:
        memory = other.get("FIND-1")
    assert (memory.content, memory.fields["severity"]) == ("No second factor", "critical")


def test_later_write_to_the_same_field_is_a_conflict(shop: Person, store: Store) -> None:
    shop.changes(ONE, "finding: No MFA", "finding: No second factor")
    with store.session("shop") as other:
        other.edit("FIND-1", text="No third factor")
    said = shop.refused("commit", "-qam", "by hand")

    assert f"{ONE}: finding changed by hand and by a later write" in said
    shop.git("checkout", "-q", "HEAD", "--", ONE)


@pytest.mark.parametrize(
    ("path", "text", "message"),
    [
        ("findings/000/FIND-0004.yaml", NEW + "x: [\n", "findings/000/FIND-0004.yaml:"),
        ("findings/000/FIND-0005.yaml", NEW, "FIND-0005"),
        ("findings/000/notes.yaml", NEW, "no memory belongs at this path"),
        ("findings/FIND-0004.yaml", NEW, "no memory belongs at this path"),
        ("findings/000/FIND-0004.yaml", NEW + "note: AKIAQYLPMN5HHHFPZAM2\n", "FIND-0004.yaml:6: a secret"),
        ("metadata.yaml", "id: other\n", "metadata.yaml: id never changes"),
        ("metadata.yaml", "id: [\n", "metadata.yaml:"),
        ("tombstones.yaml", "- nonsense\n", "tombstones.yaml:1: not a record of a deletion"),
        (ONE, b"\xff\xfe", "UTF-8"),
        (".gitattributes", "* filter=mine\n", ".gitattributes: attributes that a session does not have"),
        (".editorconfig", "root = true\n", "a name that a session does not have"),
        ("replicas/mine.txt", "mine\n", "no replica belongs at this path"),
    ],
    ids=["syntax", "other id", "no id", "no page", "secret", "other session", "no metadata", "tombstone", "bytes", "attributes", "dot", "replica"],
)  # fmt: skip
def test_what_is_refused(shop: Person, path: str, text: str | bytes, message: str) -> None:
    head = shop.git("rev-parse", "HEAD")
    shop.writes(path, text)
    shop.git("add", "-A")
    said = shop.refused("commit", "-q", "-m", "by hand")

    assert message in said
    assert "Traceback" not in said
    assert shop.git("rev-parse", "HEAD") == head
    shop.git("reset", "-q", "--hard")
    shop.git("clean", "-qfd")


def test_link_is_refused(shop: Person) -> None:
    (shop.folder / ONE).unlink()
    shop.git("config", "core.symlinks", "true")
    (shop.folder / ONE).symlink_to("/etc/passwd")
    said = shop.refused("commit", "-qam", "by hand")

    assert f"{ONE} is a link" in said
    shop.git("reset", "-q", "--hard")


def test_secret_that_is_allowed_is_committed(shop: Person, store: Store) -> None:
    with store.session("shop") as session:
        session.override({"redaction": "off"})
    shop.writes("findings/000/FIND-0004.yaml", NEW + "note: AKIAQYLPMN5HHHFPZAM2\n")
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "by hand")


def test_deleted_memory_does_not_come_back(shop: Person, store: Store) -> None:
    text = (shop.folder / ONE).read_text()
    with store.session("shop") as session:
        session.delete("FIND-0001", purge=True)
    shop.writes(ONE, text)
    shop.git("add", "-A")
    said = shop.refused("commit", "-q", "-m", "by hand")

    assert f"{ONE}: FIND-0001 was deleted" in said
    assert f"git rm -f {ONE}" in said
    shop.git("rm", "-q", "-f", ONE)


def test_deletion_is_not_taken_back_by_hand(shop: Person, store: Store) -> None:
    with store.session("shop") as session:
        session.delete("FIND-0001", purge=True)
    shop.git("rm", "-q", "tombstones.yaml")
    said = shop.refused("commit", "-q", "-m", "by hand")

    assert "tombstones.yaml only grows" in said
    shop.git("reset", "-q", "--hard")


def test_removal_without_a_word_is_told_and_undone(shop: Person, store: Store) -> None:
    shop.git("rm", "-q", ONE)
    shop.git("commit", "-q", "-m", "tidy")
    with store.session("shop") as session:
        (problem,) = session.info().problems
        assert "removed FIND-0001 without saying so" in problem
        session.undo()


# Elsewhere


def test_commit_on_another_branch_is_whole(shop: Person) -> None:
    shop.git("checkout", "-q", "-b", "aside")
    shop.changes(ONE, "No MFA", "No second factor")
    shop.git("commit", "-qam", "by hand")
    assert "No second factor" in shop.git("show", "aside:findings/000/index.yaml")
    shop.git("checkout", "-q", "main")
    assert_whole(shop.folder)
    shop.git("merge", "-q", "aside")

    assert "No second factor" in (shop.folder / ONE).read_text()


def test_reverted_by_plain_git(shop: Person) -> None:
    shop.git("revert", "--no-edit", "HEAD~1")

    assert not (shop.folder / "findings/000/FIND-0003.yaml").exists()
    with_history = shop.subjects()
    assert with_history[0].startswith("Revert")
    shop.git("revert", "--no-edit", "HEAD")


def test_cherry_picked(shop: Person) -> None:
    shop.git("checkout", "-q", "-b", "aside", "HEAD~2")
    for number in (4, 5):
        shop.writes(f"findings/000/FIND-{number:04}.yaml", NEW.replace("0004", f"{number:04}"))
        shop.git("add", "-A")
        shop.git("commit", "-q", "-m", f"by hand {number}")
    shop.git("checkout", "-q", "main")
    shop.git("cherry-pick", "aside~2..aside")

    assert shop.subjects()[:2] == ["by hand 5", "by hand 4"]


def test_stashed_and_popped(shop: Person, store: Store) -> None:
    shop.changes(ONE, "No MFA", "No second factor")
    shop.git("stash", "-q")
    with store.session("shop") as session:
        session.add("finding", "Meanwhile", agent="b")
    shop.git("stash", "pop", "-q")
    shop.git("commit", "-qam", "by hand")

    assert shop.subjects()[:2] == ["by hand", "finding FIND-0004: Meanwhile"]


def test_reset_to_an_earlier_commit(shop: Person) -> None:
    shop.git("reset", "-q", "--hard", "HEAD~1")

    reader = Reader(shop.folder)
    (told,) = losses.problems(reader)
    reader.close()
    assert "removed 1 write from main" in told
    shop.git(*told.rpartition(": git ")[2].split())


# Where the hooks do nothing


def test_without_the_command_git_works_as_ever(shop: Person, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    shop.writes("notes.txt", "mine\n")
    shop.git("add", "-A")
    shop.git("commit", "-q", "-m", "by hand")
    shop.git("checkout", "-q", "-b", "aside")
    shop.git("checkout", "-q", "main")
    shop.git("merge", "-q", "aside")

    assert shop.subjects()[0] == "by hand"


def test_hooks_do_nothing_in_a_repository_that_is_no_session(shop: Person, tmp_path: Path) -> None:
    other = tmp_path / "other"
    git(tmp_path, "init", "-q", "-b", "main", str(other))
    git(other, "config", "core.hooksPath", str(shop.folder / ".git/hooks"))
    (other / "metadata.yaml").write_text("not: a session\n")
    git(other, "add", "-A")
    git(other, "commit", "-q", "-m", "first")
    git(other, "checkout", "-q", "-b", "aside")
    git(other, "commit", "-q", "--allow-empty", "-m", "second")
    git(other, "checkout", "-q", "main")
    git(other, "merge", "-q", "aside")
    git(tmp_path, "init", "-q", "--bare", "bare.git")
    git(other, "push", "-q", str(tmp_path / "bare.git"), "main")

    assert git(other, "log", "--format=%s").split() == ["second", "first"]
