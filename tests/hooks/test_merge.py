"""A plain `git merge`, `pull` and `rebase` in a session: the same memories as our own merge."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from smp_git import Store
from smp_git.read.snapshot import Reader
from smp_git.remove.history import plan
from smp_git.write.merge.trees import merge
from tests.hooks.conftest import Person, assert_no_markers, assert_whole
from tests.support import git

pytestmark = pytest.mark.slow

ONE = "findings/000/FIND-0001.yaml"
TWO = "findings/000/FIND-0002.yaml"


@pytest.fixture
def aside(shop: Person) -> Person:
    """The same session, on a branch that edits and adds, main having edited and added as well."""
    shop.git("checkout", "-q", "-b", "aside")
    shop.changes(ONE, "agent: veritas", "agent: veritas\nseverity: high")
    shop.changes(TWO, "Slow checkout", "Checkout takes 9 s")
    shop.git("commit", "-qam", "aside")
    shop.git("checkout", "-q", "main")
    shop.changes(ONE, "No MFA", "No second factor")
    shop.changes(TWO, "Slow checkout", "Checkout takes 8 s")
    shop.git("commit", "-qam", "here")
    return shop


def _our_own(folder: Path, ours: str, theirs: str) -> dict[str, bytes]:
    """Return the files that our own merge makes, without the indexes."""
    reader = Reader(folder)
    repository = reader.repository
    left, right = (repository.resolve(name) for name in (ours, theirs))
    made = merge(repository, left, right, plan.effective(reader))
    files: dict[str, bytes | None] = {path: repository.blob(blob) for path, blob in repository.files(repository.commit(left).tree)}  # fmt: skip
    files |= made.files
    reader.close()
    return {path: data for path, data in files.items() if data is not None and not path.endswith("/index.yaml")}  # fmt: skip


def _files(folder: Path) -> dict[str, bytes]:
    names = git(folder, "ls-tree", "-r", "--name-only", "HEAD").split()
    return {name: (folder / name).read_bytes() for name in names if not name.endswith("/index.yaml")}  # fmt: skip


def test_merged_as_our_own_merge_does(aside: Person) -> None:
    wanted = _our_own(aside.folder, "main", "aside")
    aside.git("merge", "-q", "--no-edit", "aside")

    assert _files(aside.folder) == wanted
    assert b"No second factor" in wanted[ONE] and b"severity: high" in wanted[ONE]
    assert b"contested:" in wanted[TWO]
    assert aside.subjects()[0] == "Merge branch 'aside'"
    assert len(aside.git("show", "-s", "--format=%P").split()) == 2


def test_written_while_a_merge_waits_for_the_person(aside: Person, store: Store) -> None:
    """A file that both sides changed, and one that stands as the other side has it."""
    aside.git("checkout", "-q", "aside")
    aside.changes("findings/000/FIND-0003.yaml", "agent: veritas", "agent: veritas\nseverity: low")
    aside.git("commit", "-qam", "aside, too")
    aside.git("checkout", "-q", "main")
    aside.git("merge", "-q", "--no-commit", "aside")
    with store.session(aside.folder.name) as session:
        for name in ("FIND-0001", "FIND-0003"):
            session.edit(name, agent="architect", status="investigating")

    aside.git("commit", "-q", "--no-edit")

    with store.session(aside.folder.name) as session:
        for name, severity in (("FIND-0001", "high"), ("FIND-0003", "low")):
            found = session.get(name)
            assert (found.fields["severity"], found.fields["status"]) == (severity, "investigating")
    assert_whole(aside.folder)


def test_merged_the_other_way_round_is_the_same(aside: Person) -> None:
    aside.git("branch", "other", "main")
    aside.git("merge", "-q", "--no-edit", "aside")
    here = _files(aside.folder)
    aside.git("checkout", "-q", "aside")
    aside.git("merge", "-q", "--no-edit", "other")
    there = _files(aside.folder)
    aside.git("checkout", "-q", "main")

    assert here == there


def test_rebased(aside: Person) -> None:
    aside.git("checkout", "-q", "aside")
    aside.git("rebase", "-q", "main")
    aside.git("checkout", "-q", "main")
    aside.git("merge", "-q", "--ff-only", "aside")

    assert aside.subjects()[:2] == ["aside", "here"]
    assert "severity: high" in (aside.folder / ONE).read_text()


def test_main_rebased(aside: Person, store: Store) -> None:
    epoch = aside.folder / ".git/smp/epoch"
    before = epoch.read_bytes() if epoch.exists() else b""
    aside.git("rebase", "-q", "aside")

    assert aside.subjects()[:2] == ["here", "aside"]
    assert epoch.read_bytes() != before
    with store.session("shop") as session:
        session.add("finding", "After", agent="b")


def test_removed_here_and_changed_there_is_left_to_the_person(aside: Person) -> None:
    aside.git("rm", "-q", TWO)
    aside.git("commit", "-q", "-m", "remove finding FIND-0002")
    done = aside.tries("merge", "-q", "--no-edit", "aside")
    assert done.returncode == 1
    assert "CONFLICT (modify/delete)" in done.stdout
    assert_no_markers(aside.folder)
    aside.git("rm", "-q", TWO)
    aside.git("commit", "-q", "--no-edit")

    assert not (aside.folder / TWO).exists()
    assert TWO not in (aside.folder / "findings/000/index.yaml").read_text()


def test_removed_there_and_changed_here_may_be_kept(aside: Person) -> None:
    aside.git("rm", "-q", TWO)
    aside.git("commit", "-q", "-m", "remove finding FIND-0002")
    aside.tries("merge", "-q", "--no-edit", "aside")
    aside.git("add", TWO)
    aside.git("commit", "-q", "--no-edit")

    assert "takes 9 s" in (aside.folder / TWO).read_text()


def test_file_that_does_not_parse_is_left_to_the_person(aside: Person) -> None:
    aside.git("checkout", "-q", "aside")
    aside.writes(ONE, "nonsense: [\n")
    aside.git("commit", "-qam", "broken", "--no-verify")
    aside.git("checkout", "-q", "main")
    done = aside.tries("merge", "--no-edit", "aside")
    assert done.returncode == 1
    assert f"{ONE} was changed on both sides and is left unchanged here" in done.stderr
    assert_no_markers(aside.folder)
    assert "No second factor" in (aside.folder / ONE).read_text()
    aside.git("add", ONE)
    aside.git("commit", "-q", "--no-edit")


def test_metadata_and_tombstones_are_merged(shop: Person, store: Store) -> None:
    shop.git("checkout", "-q", "-b", "aside")
    shop.changes("metadata.yaml", "tags: []", "tags:\n- other")
    shop.git("commit", "-qam", "aside")
    shop.git("checkout", "-q", "main")
    shop.changes("metadata.yaml", "user: user-123", "user: ada")
    shop.git("commit", "-qam", "here")
    shop.git("merge", "-q", "--no-edit", "aside")

    with store.session("shop") as session:
        assert (session.metadata.user, session.metadata.tags) == ("ada", ("other",))


def test_index_that_came_in_wrong_is_mended(shop: Person) -> None:
    shop.git("checkout", "-q", "-b", "aside")
    shop.changes(ONE, "No MFA", "No second factor")
    shop.git("-c", "core.hooksPath=/dev/null", "commit", "-qam", "without hooks")
    shop.git("checkout", "-q", "main")
    said = shop.tries("merge", "--no-edit", "aside")

    assert said.returncode == 0
    assert "repairs the index of 1 page" in said.stderr
    assert shop.subjects()[:2] == ["mend indexes", "without hooks"]


def test_reverted_picked_and_merged_commits_in_a_row(aside: Person) -> None:
    aside.git("cherry-pick", "aside")
    aside.git("revert", "--no-edit", "HEAD")
    aside.git("merge", "-q", "--no-edit", "aside")


# Two replicas


@pytest.fixture
def pair(shop: Person, store: Store, tmp_path: Path) -> tuple[Person, Person]:
    """Two clones of a session by plain Git, with the hooks, and a bare repository between."""
    git(tmp_path, "init", "-q", "--bare", "-b", "main", "hub.git")
    shop.git("remote", "add", "origin", str(tmp_path / "hub.git"))
    shop.git("push", "-q", "-u", "origin", "main")
    other = store.path / "active" / "copy"
    git(tmp_path, "clone", "-q", str(tmp_path / "hub.git"), str(other))
    return shop, Person(other)


def _with_hooks(person: Person, store: Store) -> None:
    git(person.folder, "config", "pull.rebase", "false")
    done = subprocess.run(["smp", "--root", str(store.path), "-s", person.folder.name, "hooks", "install"], check=True, capture_output=True, text=True)  # fmt: skip
    assert "pre-commit  installed" in done.stdout


def test_pulled_and_pushed_between_two_clones(pair: tuple[Person, Person], store: Store) -> None:
    here, there = pair
    _with_hooks(there, store)
    for name in ("shop", "copy"):
        with store.session(name) as session:
            session.add("finding", f"Of {name}", agent="b")
            session.edit("FIND-0001", text=f"Said by {name}")
            session.edit("FIND-0003", severity="low" if name == "shop" else "high")
    here.git("push", "-q")
    there.git("pull", "-q", "--no-rebase", "--no-edit")
    there.git("push", "-q")
    here.git("pull", "-q", "--ff-only")

    assert_whole(there.folder)
    assert here.git("rev-parse", "HEAD") == there.git("rev-parse", "HEAD")
    with store.session("copy") as session:
        assert {memory.content for memory in session.memories("finding")} >= {"Of shop", "Of copy"}
        assert session.get("FIND-0001").fields["contested"]


def test_pulled_with_rebase(pair: tuple[Person, Person], store: Store) -> None:
    here, there = pair
    _with_hooks(there, store)
    there.changes(ONE, "No MFA", "No second factor")
    there.git("commit", "-qam", "there")
    with store.session("shop") as session:
        session.add("finding", "Here", agent="b")
    here.git("push", "-q")
    there.git("pull", "-q", "--rebase")

    assert_whole(there.folder)
    assert there.subjects()[:2] == ["there", "finding FIND-0004: Here"]


@pytest.mark.parametrize("plain", [True, False], ids=["plain clone", "smp not found"])
def test_without_the_driver_ours_stays_and_no_marker_is_written(pair: tuple[Person, Person], store: Store, plain: bool, monkeypatch: pytest.MonkeyPatch) -> None:  # fmt: skip
    here, there = pair
    if not plain:
        _with_hooks(there, store)
    for person, text in ((here, "Said here"), (there, "Said there")):
        person.changes(ONE, "No MFA", text)
        person.git("commit", "-qam", text)
    here.git("push", "-q")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    done = there.tries("pull", "--no-rebase", "--no-edit")

    assert done.returncode != 0
    assert "CONFLICT" in done.stdout
    assert_no_markers(there.folder)
    assert "Said there" in (there.folder / ONE).read_text()
    there.git("merge", "--abort")
    there.git("reset", "-q", "--hard", "origin/main")


def test_readmes_of_two_sides_never_conflict(shop: Person, store: Store) -> None:
    store.maintain()
    shop.git("checkout", "-q", "-b", "aside")
    shop.changes("README.md", "[DEC-0001]", "[DEC-0002]")
    shop.git("commit", "-qam", "aside")
    shop.git("checkout", "-q", "main")
    with store.session("shop") as session:
        session.add("decision", "Use Kafka", agent="architect")
    store.maintain()
    wanted = _our_own(shop.folder, "main", "aside")

    shop.git("merge", "-q", "--no-edit", "aside")

    assert _files(shop.folder) == wanted
    assert wanted["README.md"].count(b"smp maintain") == 1
    shop.changes("README.md", "A memory of AI agents", "Our memory")
    shop.git("commit", "-qam", "an edit by hand")
    store.maintain()
    assert b"# A memory of AI agents" in (shop.folder / "README.md").read_bytes()
