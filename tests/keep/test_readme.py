"""The README of a session: it tells counts and ids, and names nothing that was deleted.

The sentences: a memory that is deleted is named by no README of any revision that is left;
replicas that all maintain and sync come to rest; what a person wrote stays.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.format import readme
from smp_git.format.records import Tombstones, tombstone
from smp_git.model.ids import FIRST, PURGED, Lives
from smp_git.remove.history.rewrite import History, Rewriter
from tests import golden
from tests.independent_scan import everything
from tests.support import git
from tests.sync.support import Machine, head, sound

TEXT = "The vault opens at 04:51"


@pytest.fixture
def told(store: Store, session: Session) -> Session:
    """A session with a README that names a decision and two findings."""
    session.add("decision", "Use PostgreSQL", agent="a")
    session.add("finding", TEXT, agent="a", severity="high")
    session.add("finding", "No TLS", agent="a")
    store.maintain()
    return session


def names(data: bytes) -> list[str]:
    return [name.decode() for name, _ in readme.named(data)]


def shown(session: Session) -> bytes:
    """Return the README in the folder, which must be the one of main."""
    data = (session.path / "README.md").read_bytes()
    assert git(session.path, "show", "main:README.md").encode() == data
    return data


def everywhere(folder: Path) -> set[str]:
    """Return what any README names, of any revision, reachable or not, packed or not."""
    found = (data for _, data in everything(folder) if readme.is_made(data))
    return {name for data in found for name in names(data)}


def commits(sessions: list[Session]) -> set[str]:
    return {line for each in sessions for line in git(each.path, "rev-list", "--all").split()}


# What it tells


def test_readme_tells_counts_and_ids_and_no_content(told: Session) -> None:
    data = shown(told)

    assert names(data) == ["DEC-0001", "FIND-0002", "FIND-0001"]
    assert b"| [findings](findings) | 2 |" in data
    assert all(text not in data for text in (b"PostgreSQL", b"vault", b"TLS", b"shop", b"user-123"))
    for link in re.findall(rb"\]\(([^)]+)\)", data):
        assert (told.path / link.decode()).exists()


def test_readme_is_made_anew_when_the_session_says_something_else(
    store: Store, told: Session
) -> None:
    before = told.head
    assert store.maintain().actions == ()
    assert told.head == before

    told.resolve("FIND-0001")
    new = told.add("decision", "Use SQLite", agent="a", links=[("supersedes", "DEC-0001")])
    planned = store.maintain(dry_run=True).actions
    assert told.get(new.id).commit == told.head
    assert store.maintain().actions == planned

    assert names(shown(told)) == ["DEC-0002", "FIND-0002"]
    assert git(told.path, "status", "--porcelain") == ""


def test_forge_is_told_what_is_generated(told: Session) -> None:
    for path, expected in (
        ("findings/000/index.yaml", "set"),
        ("README.md", "set"),
        ("findings/000/FIND-0001.yaml", "unspecified"),
    ):
        said = git(told.path, "check-attr", "linguist-generated", "gitlab-generated", "--", path)
        assert [line.rpartition(" ")[2] for line in said.splitlines()] == [expected] * 2


def test_empty_session_and_one_that_wants_none_have_no_readme(store: Store) -> None:
    with store.create_session("empty"), store.create_session("plain") as plain:
        plain.configure({"readme": False})
        plain.add("decision", "Use PostgreSQL")

        assert store.maintain().actions == ()
        assert [*store.path.glob("active/*/README.md")] == []


def test_earlier_programs_are_told_that_the_session_is_too_new(told: Session) -> None:
    assert (told.metadata.format, told.metadata.rule) == (2, 3)


def test_session_of_format_1_is_not_upgraded_for_a_readme(tmp_path: Path) -> None:
    place = golden.restored(tmp_path)
    before = git(place, "rev-parse", "main")

    assert "readme" not in {each.step for each in Store.open(tmp_path / "store").maintain(dry_run=True).actions}  # fmt: skip
    assert git(place, "rev-parse", "main") == before


# What a person wrote


@pytest.mark.parametrize("name", ["README.md", "readme.md"])
@pytest.mark.parametrize("is_committed", [False, True])
def test_readme_of_a_person_is_left_alone(
    store: Store, session: Session, name: str, *, is_committed: bool
) -> None:
    session.add("decision", "Use PostgreSQL")
    (session.path / name).write_text("# Ours\n")
    if is_committed:
        git(session.path, "add", name)
        git(session.path, "commit", "-q", "--no-verify", "-m", "say what this is")
    before = session.head

    store.maintain()

    assert session.head == before
    assert (session.path / name).read_text() == "# Ours\n"
    session.delete("DEC-0001")
    assert (session.path / name).read_text() == "# Ours\n"


def test_readme_that_a_person_takes_over_is_his(store: Store, told: Session) -> None:
    file = told.path / "README.md"
    file.write_text(file.read_text().partition("\n")[2])
    told.delete("FIND-0001")
    told.add("decision", "Use SQLite")

    store.maintain()

    assert "FIND-0001" in file.read_text()
    assert names(git(told.path, "show", "main:README.md").encode()) == ["DEC-0001", "FIND-0002"]


# Deletion


def test_deleted_memory_is_named_by_no_readme(store: Store, told: Session) -> None:
    git(told.path, "tag", "before")
    git(told.path, "add", "-A")
    told.add("decision", "Use SQLite")
    store.maintain()

    receipt = told.delete("FIND-0001")

    assert receipt.proof.hits == ()
    assert told.verify().hits == ()
    assert everywhere(told.path) == {"DEC-0001", "DEC-0002", "FIND-0002"}
    assert names(shown(told)) == ["DEC-0002", "DEC-0001", "FIND-0002"]
    assert git(told.path, "status", "--porcelain") == ""
    store.maintain()
    assert b"| [findings](findings) | 1 |" in shown(told)


def test_proof_finds_a_readme_that_names_the_deleted(told: Session) -> None:
    old = shown(told)
    told.delete("FIND-0001")
    file = told.path / "README.md"
    new = file.read_bytes()

    file.write_bytes(old)
    assert told.verify().hits == ("the file README.md",)
    file.write_bytes(new)
    (told.path / "old").write_bytes(old)
    git(told.path, "hash-object", "-w", "old")
    (told.path / "old").unlink()
    assert told.verify().hits == ("the README.md of history",)
    told.delete("FIND-0002")
    assert told.verify().hits == ()


def test_restored_memory_is_named_in_its_new_life_and_deleted_from_it(
    store: Store, told: Session
) -> None:
    told.delete("FIND-0001")
    told.restore("FIND-0001")
    store.maintain()
    lives = dict(readme.named(shown(told)))
    assert lives[b"FIND-0001"] == told.get("FIND-0001").life != ""

    told.delete("FIND-0002")
    assert names(shown(told)) == ["DEC-0001", "FIND-0001"]
    told.delete("FIND-0001")

    assert everywhere(told.path) == {"DEC-0001"}


def test_redacted_memory_is_named_by_later_readmes_alone(store: Store, told: Session) -> None:
    told.redact("04:51")
    assert "FIND-0001" not in names(shown(told))

    store.maintain()

    assert names(shown(told)) == ["DEC-0001", "FIND-0002", "FIND-0001"]
    assert told.verify().hits == ()


def test_rewriting_twice_is_rewriting_by_both(told: Session) -> None:
    repository = told._handle.reader.repository
    tip = bytes.fromhex(told.head)
    gone = {name: Tombstones([tombstone(name, Lives({FIRST: (PURGED,)}))]) for name in ("DEC-0001", "FIND-0001")}  # fmt: skip

    def rewritten(known: Tombstones, *before: Tombstones) -> bytes:
        rewriter, at = Rewriter(repository.raw, known), tip
        for each in before:
            first = Rewriter(repository.raw, each)
            at = first.rewritten(History({"refs/heads/main": tip})).refs["refs/heads/main"]
            rewriter = Rewriter(first.read, known)
        return rewriter.rewritten(History({"refs/heads/main": at})).refs["refs/heads/main"]

    one, other = gone.values()
    assert rewritten(one, other) == rewritten(other, one) == rewritten(one | other)
    assert rewritten(Tombstones()) == tip


def test_text_that_a_readme_holds_by_itself_is_no_trace(told: Session) -> None:
    told.add("decision", "newest decisions are what one file for each memory is for")

    report = told.redact("one file for each memory")

    assert "a file of history" not in " ".join(report.left)


# Replicas


@pytest.fixture
def two(tmp_path: Path) -> tuple[Machine, Session, Machine, Session]:
    hub = tmp_path / "hub.git"
    here, there = Machine(tmp_path, "here"), Machine(tmp_path, "there")
    one = here.begin(hub)
    one.add("finding", TEXT, agent="a")
    one.sync()
    return here, one, there, there.clone(hub)


Two = tuple[Machine, Session, Machine, Session]


def test_replicas_that_both_maintain_come_to_rest(two: Two, tmp_path: Path) -> None:
    here, one, there, other = two
    one.add("decision", "Use SQLite", agent="a")
    other.add("finding", "No TLS", agent="b")
    for _ in range(2):
        for machine, session in ((here, one), (there, other)):
            machine.store.maintain()
            session.sync()
        here.store.maintain()
        there.store.maintain()
    for session in (one, other, one, other):
        session.sync()
    before = commits([one, other])
    for machine, session in ((here, one), (there, other)) * 2:
        assert machine.store.maintain().actions == ()
        session.sync()

    assert commits([one, other]) == before
    assert one.head == other.head == head(tmp_path / "hub.git")
    assert shown(one) == shown(other)
    assert [*one.conflicts(), *other.conflicts()] == []
    sound(one)


def test_replica_that_only_reads_writes_no_readme(two: Two) -> None:
    here, one, there, other = two
    assert there.store.maintain().actions == ()
    here.store.maintain()
    one.sync()

    other.sync()

    assert other.head == one.head
    assert shown(other) == shown(one)


@pytest.mark.parametrize("deletes_first", [True, False])
def test_deletion_and_readme_that_meet_leave_no_name(two: Two, *, deletes_first: bool) -> None:
    here, one, there, other = two
    other.add("learning", "Tests first", agent="b")
    other.sync()
    one.sync()
    if deletes_first:
        one.delete("FIND-0001")
        there.store.maintain()
    else:
        here.store.maintain()
        there.store.maintain()
        one.delete("FIND-0001")
    assert "FIND-0001" in names(shown(other))

    for session in (one, other, one, other):
        session.sync()
    before = commits([one, other])
    for session in (one, other):
        session.sync()

    assert commits([one, other]) == before
    assert one.head == other.head
    for session in (one, other):
        assert "FIND-0001" not in everywhere(session.path)
        assert session.verify().hits == ()
        assert shown(session)
        sound(session)


def test_readme_of_a_person_wins_over_one_that_was_made(two: Two) -> None:
    here, one, _, other = two
    other.add("learning", "Tests first", agent="b")
    here.store.maintain()
    (other.path / "README.md").write_text("# Ours\n")
    git(other.path, "add", "README.md")
    git(other.path, "commit", "-q", "--no-verify", "-m", "say what this is")

    for session in (one, other, one):
        session.sync()

    assert shown(one) == shown(other) == b"# Ours\n"
    here.store.maintain()
    assert shown(one) == b"# Ours\n"


def test_readme_of_a_person_in_other_letters_is_alone(two: Two) -> None:
    here, one, _, other = two
    here.store.maintain()
    (other.path / "Readme.md").write_text("# Ours\n")
    git(other.path, "add", "Readme.md")
    git(other.path, "commit", "-q", "--no-verify", "-m", "say what this is")

    for session in (one, other, one, other):
        session.sync()

    assert one.head == other.head
    for session in (one, other):
        assert not (session.path / "README.md").exists()
        assert (session.path / "Readme.md").read_text() == "# Ours\n"
        sound(session)


def test_plain_git_merges_without_a_conflict_in_the_readme(two: Two, tmp_path: Path) -> None:
    """In a plain clone, where the program's merge driver is not known."""
    here, one, _, other = two
    here.store.maintain()
    one.sync()
    other.sync()
    one.add("decision", "Use SQLite", agent="a")
    here.store.maintain()
    one.sync()
    plain = tmp_path / "plain"
    git(tmp_path, "clone", "-q", str(other.path), str(plain))
    git(plain, "commit", "-q", "--allow-empty", "-m", "mine")
    readme_file = plain / "README.md"
    readme_file.write_text(readme_file.read_text().replace("DEC-0001", "DEC-0009"))
    git(plain, "commit", "-qam", "an edit")

    git(plain, "pull", "-q", "--no-rebase", "--no-edit", str(tmp_path / "hub.git"), "main")

    assert readme.is_made(readme_file.read_bytes())
    assert b"<<<<" not in readme_file.read_bytes()
