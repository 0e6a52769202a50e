"""Plain Git on two machines, then `smp sync` on both: the same session, nothing lost."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from smp_git import Session, Store
from tests.hooks.conftest import Person, assert_whole
from tests.support import git

pytestmark = pytest.mark.slow

ONE = "findings/000/FIND-0001.yaml"
TWO = "findings/000/FIND-0002.yaml"


@pytest.fixture
def here(store: Store, hub: Person, tmp_path: Path) -> Iterator[Session]:
    """A session that a guarded server has."""
    with (store.path / "config.yaml").open("a") as config:
        config.write(f"key_dir: {tmp_path / 'keys'}\n")
    with Store.open(store.path, clock=store.clock).create_session("shop") as session:
        for text in ("No MFA", "Slow checkout", "The password is apple pie"):
            session.add("finding", text, agent="veritas")
        session.add_remote("origin", hub.folder)
        session.sync()
        session.check()
        yield session


@pytest.fixture
def there(here: Session, hub: Person, store: Store, tmp_path: Path) -> Iterator[Session]:
    """The same session on another machine."""
    elsewhere = Store.init(tmp_path / "elsewhere", clock=store.clock)
    (elsewhere.path / "config.yaml").write_text(f"format: 1\nkey_dir: {tmp_path / 'more-keys'}\n")
    with Store.open(elsewhere.path, clock=store.clock).clone(str(hub.folder)) as session:
        session.check()
        yield session


def _brought_together(here: Session, there: Session) -> None:
    """Sync both until nothing moves, and check that they are one."""
    for session in (here, there, here, there):
        session.sync()
    assert here.head == there.head
    for session in (here, there):
        session.check()
        assert_whole(session.path)


def test_committed_on_both_sides(here: Session, there: Session) -> None:
    for session, text in ((here, "here"), (there, "there")):
        person = Person(session.path)
        person.changes(TWO, "Slow checkout", f"Slow checkout, said {text}")
        person.writes(f"decisions/000/DEC-000{len(text)}.yaml", f'id: DEC-000{len(text)}\nkind: decision\ncreated_at: "2026-01-11T15:00:00Z"\nagent: ada\ndecision: Made {text}\n')  # fmt: skip
        person.git("add", "-A")
        person.git("commit", "-q", "-m", f"by hand {text}")
    _brought_together(here, there)

    assert {memory.content for memory in here.memories("decision")} == {"Made here", "Made there"}
    assert here.get("FIND-0002").fields["contested"]


def test_pulled_and_pushed_by_hand(here: Session, there: Session) -> None:
    one, two = Person(here.path), Person(there.path)
    one.changes(ONE, "No MFA", "No second factor")
    one.git("commit", "-qam", "here")
    one.git("push", "-q", "origin", "main")
    two.changes(ONE, "agent: veritas", "agent: veritas\nseverity: high")
    two.git("commit", "-qam", "there")
    two.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    two.git("push", "-q", "origin", "main")
    there.add("finding", "By an agent", agent="b")
    _brought_together(here, there)

    memory = here.get("FIND-0001")
    assert (memory.content, memory.fields["severity"]) == ("No second factor", "high")


def test_rebased_by_hand(here: Session, there: Session) -> None:
    one, two = Person(here.path), Person(there.path)
    one.changes(ONE, "No MFA", "No second factor")
    one.git("commit", "-qam", "here")
    one.git("push", "-q", "origin", "main")
    two.changes(TWO, "Slow", "Very slow")
    two.git("commit", "-qam", "there")
    two.git("pull", "-q", "--rebase", "origin", "main")
    two.git("push", "-q", "origin", "main")
    _brought_together(here, there)

    assert git(here.path, "log", "--format=%s", "-2").split() == ["there", "here"]


def test_deleted_here_and_pulled_by_hand_there(here: Session, there: Session, hub: Person) -> None:
    two = Person(there.path)
    two.changes(TWO, "Slow", "Very slow")
    two.git("commit", "-qam", "there")
    here.delete("FIND-0003", purge=True)
    here.sync()
    done = two.tries("pull", "--no-rebase", "--no-edit", "origin", "main")
    assert "FIND-0003 had been deleted; smp sync takes them out again" in done.stderr
    assert "holds what was deleted: FIND-0003" in two.refused("push", "origin", "main")
    _brought_together(there, here)

    for folder in (here.path, there.path, hub.folder):
        assert "apple pie" not in git(folder, "log", "-p", "--all")
    assert here.get("FIND-0002").content == "Very slow checkout"


def test_deleted_and_pulled_by_hand_here(here: Session, there: Session, hub: Person) -> None:
    here.delete("FIND-0003")
    one = Person(here.path)
    one.git("pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    assert (here.path / "findings/000/FIND-0003.yaml").exists()
    _brought_together(here, there)

    for folder in (here.path, there.path, hub.folder):
        assert "apple pie" not in git(folder, "log", "-p", "--all")
    here.restore("FIND-0003")
    assert here.get("FIND-0003").content == "The password is apple pie"
