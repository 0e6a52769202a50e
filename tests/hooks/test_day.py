"""A day with plain Git: edited, committed, branched, merged, pushed; sound at its end."""

from __future__ import annotations

from smp_git import Store
from tests.hooks.conftest import Person
from tests.support import git

ONE = "findings/000/FIND-0001.yaml"


def test_day_with_plain_git(pushed: Person, hub: Person, store: Store) -> None:
    pushed.git("checkout", "-q", "-b", "aside")
    pushed.changes(ONE, "agent: veritas", "agent: veritas\nseverity: high")
    pushed.git("commit", "-qam", "aside")
    pushed.git("checkout", "-q", "main")
    pushed.changes(ONE, "No MFA", "No second factor")
    pushed.git("commit", "-qam", "here")
    pushed.git("merge", "-q", "--no-edit", "aside")
    pushed.git("push", "-q")
    with store.session("shop") as session:
        memory = session.get("FIND-1")
        session.delete("FIND-0001", purge=True)

    assert (memory.content, memory.fields["severity"]) == ("No second factor", "high")
    assert "would lose" not in pushed.tries("push", "-q", "--force").stderr
    assert "No second factor" not in hub.git("log", "-p", "main")
    said = pushed.refused("push", "-q", "--force", "origin", "HEAD~2:main")
    assert "remote: smp: main would lose what is here" in said
    assert git(hub.folder, "fsck", "--strict", "--no-dangling") == ""
