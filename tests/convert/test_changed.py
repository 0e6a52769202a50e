"""A second import takes what its source changed, and overwrites nothing that was changed here."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.convert import revising
from tests.support import git, smp


def _vault(place: Path, **notes: str) -> Path:
    place.mkdir(parents=True, exist_ok=True)
    for name, text in notes.items():
        (place / f"{name}.md").write_text(text)
    return place


def _graph(path: Path, entities: Iterable[object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in entities))
    return path


def _ada(*observations: str) -> dict[str, object]:
    return {"type": "entity", "name": "Ada", "entityType": "person", "observations": observations}


def test_note_that_was_changed_is_changed_here(store: Store, tmp_path: Path) -> None:
    vault = _vault(tmp_path / "vault", a="# A\n", b="# B\n\nSee [[a]].\n")
    store.import_(vault)
    _vault(vault, a="---\ntags: [new]\n---\n# A\n\nMore. See [[b]].\n")

    again = store.import_(vault)

    assert (again.added, again.updated, again.sessions[0].known) == (0, 1, 2)
    with store.session("notes-vault") as session:
        note = session.get("ART-0001")
        assert note.content == "# A\n\nMore. See [[b]].\n"
        assert note.tags == ("new",)
        assert [link.target for link in note.links] == ["ART-0002"]
        assert [version.reason for version in session.history("ART-0001")] == [
            "import from notes",
            "import from notes",
        ]
        head = session.head
    assert store.import_(vault).updated == 0
    with store.session("notes-vault") as session:
        assert session.head == head


def test_edit_made_while_the_source_is_compared_stays(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    vault = _vault(tmp_path / "vault", a="# A\n", b="# B\n")
    store.import_(vault)
    _vault(vault, a="# A\n\nMore.\n", b="# B\n\nMore.\n")
    session, found = store.session("notes-vault"), revising.revisions

    def late(*arguments: Any) -> Any:
        yield from found(*arguments)
        session.edit("ART-0001", text="# A\n\nBy an agent.\n")

    monkeypatch.setattr(revising, "revisions", late)
    again = store.import_(vault)

    assert again.updated == 1
    assert [each.where for each in again.problems] == ["a.md"]
    assert session.get("ART-0001").content == "# A\n\nBy an agent.\n"
    assert session.get("ART-0002").content == "# B\n\nMore.\n"
    session.close()


def test_entity_that_was_told_more_is_told_more_here(store: Store, tmp_path: Path) -> None:
    path = _graph(tmp_path / "memory.jsonl", [_ada("Prefers tea")])
    store.import_(path)
    shop = {"type": "entity", "name": "Shop", "entityType": "project", "observations": []}
    works = {"type": "relation", "from": "Ada", "to": "Shop", "relationType": "works on"}
    _graph(path, [_ada("Prefers tea", "Works on the shop"), shop, works])

    again = store.import_(path)

    assert (again.added, again.updated) == (1, 1)
    with store.session(again.sessions[0].session) as session:
        ada = session.get("LEARN-0001")
        assert ada.content == "Ada\n- Prefers tea\n- Works on the shop"
        assert [(link.relation, link.target) for link in ada.links] == [("works_on", "LEARN-0002")]


def test_state_that_was_changed_is_changed_here(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "session-1"
    (place / "agent-states").mkdir(parents=True)
    (place / "metadata.yaml").write_text("session: {id: session-1}\n")
    state = place / "agent-states/veritas.yaml"
    state.write_text("agent_state: {agent_id: veritas, current_context: {task: read}}\n")
    store.import_(place)
    state.write_text("agent_state: {agent_id: veritas, current_context: {task: write}}\n")

    assert store.import_(place).updated == 1
    with store.session("session-1") as session:
        assert session.state("veritas")["current_context"] == {"task": "write"}
        session.set_state("veritas", {"current_context": {"task": "think"}})
    assert store.import_(place).problems == ()
    state.write_text("agent_state: {agent_id: veritas, current_context: {task: sleep}}\n")
    assert "changed there and here" in store.import_(place).problems[0].reason
    with store.session("session-1") as session:
        assert session.state("veritas")["current_context"] == {"task": "think"}


def test_what_was_changed_here_stays_and_is_named_only_if_the_source_changed_too(
    store: Store, tmp_path: Path
) -> None:
    vault = _vault(tmp_path / "vault", a="# A\n", b="# B\n")
    store.import_(vault)
    with store.session("notes-vault") as session:
        session.edit("ART-0001", text="# A\n\nMine.\n")
        session.edit("ART-0002", tags=["mine"])

    assert store.import_(vault).problems == ()
    _vault(vault, a="# A\n\nTheirs.\n")
    (problem,) = store.import_(vault).problems

    assert problem.where == "a.md"
    assert "ART-0001 stays as it is" in problem.reason
    with store.session("notes-vault") as session:
        assert session.get("ART-0001").content == "# A\n\nMine.\n"


def test_tag_and_pin_that_were_added_here_stay(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    line = {"id": "m1", "type": "finding", "ts": "2026-01-01T00:00:00Z", "priority": 0.9}
    log.write_text(json.dumps({**line, "data": {"issue": "One"}}) + "\n")
    store.import_(log)
    with store.session("log") as session:
        session.pin("FIND-0001")
        session.edit("FIND-0001", tags=["mine"])

    log.write_text(json.dumps({**line, "priority": 0.4, "data": {"issue": "One"}}) + "\n")

    assert (store.import_(log).updated, store.import_(log).problems) == (0, ())


def test_redacted_text_does_not_come_back(store: Store, tmp_path: Path) -> None:
    vault = _vault(tmp_path / "vault", a="# A\n\nThe code word is Nightingale.\n")
    store.import_(vault)
    with store.session("notes-vault") as session:
        session.redact("Nightingale")

    assert store.import_(vault).updated == 0
    _vault(vault, a="# A\n\nThe code word is Nightingale. More.\n")
    store.import_(vault)

    with store.session("notes-vault") as session:
        assert "Nightingale" not in git(session.path, "log", "-p", "--all")


def test_secret_is_taken_out_of_a_change_too(store: Store, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    vault = _vault(tmp_path / "vault", a="# A\n")
    store.import_(vault)
    _vault(vault, a=f"# A\n\nThe token is {secret[:40]}.\n")

    assert store.import_(vault).updated == 1
    assert store.import_(vault).updated == 0
    with store.session("notes-vault") as session:
        assert secret[:40] not in session.get("ART-0001").content


def test_dry_run_tells_what_would_change(store: Store, tmp_path: Path) -> None:
    vault = _vault(tmp_path / "vault", a="# A\n")
    store.import_(vault)
    _vault(vault, a="# A\n\nMore.\n")

    done = smp("--root", store.path, "import", vault, "--dry-run")

    assert done.stdout == "notes-vault: would change 1 artifact\n1 already here\n"
    assert store.import_(vault).updated == 1


def _two(session: Session) -> list[str]:
    return [memory.content for memory in session.memories("finding")]


def test_two_entries_with_one_id_are_two_memories(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    line = {"id": "m1", "type": "finding", "ts": "2026-01-01T00:00:00Z"}
    log.write_text(
        "".join(json.dumps({**line, "data": {"issue": text}}) + "\n" for text in ("One", "Two"))
    )
    store.import_(log)

    assert (store.import_(log).added, store.import_(log).updated) == (0, 0)
    with store.session("log") as session:
        assert _two(session) == ["One", "Two"]
        session.delete("FIND-0001")
    assert store.import_(log).added == 0
    with store.session("log") as session:
        assert _two(session) == ["Two"]


def test_folders_of_one_name_are_two_sessions(store: Store, tmp_path: Path) -> None:
    one = _vault(tmp_path / "one/docs", index="# Of one\n")
    two = _vault(tmp_path / "two/docs", index="# Of two\n")
    store.import_(one)
    store.import_(two)

    assert store.sessions() == ("notes-docs", "notes-docs-2")
    assert (store.import_(one).added, store.import_(two).added) == (0, 0)
    store.import_(one, session="both")
    store.import_(two, session="both")
    with store.session("both") as session:
        assert [each.title for each in session.memories()] == ["Of one", "Of two"]


def test_folder_that_was_moved_goes_on_where_its_session_is_named(
    store: Store, tmp_path: Path
) -> None:
    old = _vault(tmp_path / "old/docs", a="# A\n")
    store.import_(old)
    new = tmp_path / "new/docs"
    new.parent.mkdir()
    shutil.move(old, new)
    _vault(new, a="# A\n\nMore.\n", b="# B\n")

    again = store.import_(new, session="notes-docs")

    assert (again.added, again.updated) == (1, 1)
    assert store.import_(new, session="notes-docs").added == 0


def test_new_entry_is_linked_to_one_that_came_before(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "session-1"
    place.mkdir()
    (place / "metadata.yaml").write_text("session: {id: session-1}\n")
    (place / "findings.yaml").write_text("findings:\n- {id: FIND-9, finding: No MFA}\n")
    store.import_(place)
    (place / "decisions.yaml").write_text(
        "decisions:\n- {id: DEC-9, decision: Ask for it, resolves: FIND-9}\n"
    )

    store.import_(place)

    with store.session("session-1") as session:
        assert [link.target for link in session.get("DEC-0001").links] == ["FIND-0001"]


def test_session_that_cannot_be_written_stops_no_other(store: Store, tmp_path: Path) -> None:
    logs = tmp_path / "logs"
    logs.mkdir()
    line = {"id": "m1", "type": "finding", "ts": "2026-01-01T00:00:00Z", "data": {"issue": "One"}}
    for name in "abc":
        (logs / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    store.import_(logs)
    for name in "abc":
        with (logs / f"{name}.jsonl").open("a") as file:
            file.write(json.dumps({**line, "id": "m2"}) + "\n")
    metadata = store.path / "active/b/metadata.yaml"
    metadata.write_text(metadata.read_text().replace("format: 2", "format: 99"))
    git(metadata.parent, "commit", "-q", "-a", "--no-verify", "-m", "from the future")

    done = store.import_(logs)

    assert done.added == 2
    assert ["format 99" in each.reason for each in done.problems] == [True]
    git(metadata.parent, "reset", "-q", "--hard", "HEAD^")
    assert store.import_(logs).added == 1


def test_vault_in_git_is_imported(store: Store, tmp_path: Path) -> None:
    vault = _vault(tmp_path / "vault", a="# A\n")
    git(tmp_path, "init", "-q", str(vault))

    assert store.import_(vault).added == 1
