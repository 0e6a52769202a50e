"""Every field of the sources' own examples arrives, and goes back out as it was."""

from __future__ import annotations

import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest

from smp_git import Memory, Session, Store
from smp_git.format.yamlfile import read as read_yaml
from tests.support import ROOT

FOREIGN = ROOT / "tests/data/foreign"


def of(session: Session, source: str) -> Memory:
    """Return the memory that had an id in the source."""
    found = [
        memory
        for memory in session.memories()
        if str(memory.fields.get("source_given") or memory.fields.get("source")).endswith(
            f"/{source}"
        )
    ]
    assert len(found) == 1, source
    return found[0]


def test_minimal_log_arrives(store: Store) -> None:
    done = store.import_(FOREIGN / "000")

    assert (done.format, done.added, done.problems) == ("000", 4, ())
    with store.session("session-2026-01-11") as session:
        decision = of(session, "m002")
        assert (decision.content, decision.agent) == ("Use OAuth", "architect")
        assert decision.fields["importance"] == 0.95
        assert session.get(decision.id).access_count == 3
        assert of(session, "m003").fields["severity"] == "critical"
        preference = of(session, "m004")
        assert preference.fields["key"] == "verification_depth"
        assert preference.content == "verification_depth: thorough"
        assert not [each for each in session.memories() if "Token in a log" in each.content]


def test_session_folder_with_manifest_arrives(store: Store) -> None:
    done = store.import_(FOREIGN / "001")

    assert (done.format, done.problems) == ("001", ())
    with store.session("sess-2026-01-11-abc123") as session:
        assert session.metadata.user == "user-789"
        assert session.metadata.agents == ("bmad-master", "architect", "analyst")
        assert session.metadata.tags == ("architecture", "payments", "scalability")
        assert session.metadata.context["project_name"] == "payment-system"
        assert session.metadata.created_at.isoformat() == "2026-01-11T10:00:00+00:00"
        turn, decision = of(session, "msg-001"), of(session, "dec-001")
        finding = of(session, "finding-003")
        assert turn.fields["memory_refs"] == [decision.id, finding.id]
        assert turn.fields["conversation_id"] == "conv-xyz"
        assert turn.fields["parent_given"] == "msg-000"
        assert turn.fields["tokens"] == 15
        assert {link.target for link in decision.links} == {turn.id, finding.id}
        assert decision.fields["links_given"] == ["references:msg-002"]
        assert decision.fields["approved_by"] == ["user-789"]
        assert finding.content == "Database connection pooling not configured"
        preference = of(session, "pref-001")
        assert preference.fields["learned_from"] == ["sess-2026-01-10-xyz", "sess-2026-01-11-abc"]
    with store.session("global") as shared:
        assert {memory.fields.get("key") for memory in shared.memories()} == {
            "response_style",
            "greeting",
            "pooling",
        }


def test_folder_of_yaml_and_markdown_arrives(store: Store) -> None:
    done = store.import_(FOREIGN / "003")

    assert (done.format, done.problems) == ("003", ())
    with store.session("session-2026-01-11-abc123") as session:
        assert session.metadata.user == "user-123"
        assert session.metadata.context["primary_topic"] == "authentication"
        assert session.metadata.tags == ("oauth", "security", "requirements")
        third = of(session, "turn-3")
        assert third.content.startswith("I've identified three concerns in section 3.2:\n\n1.")
        assert third.content.endswith("- Finding: Missing session timeout [FIND-002]")
        assert third.fields["memory_refs"] == [
            of(session, "FIND-001").id,
            of(session, "FIND-002").id,
        ]
        second = of(session, "DEC-002")
        assert second.fields["impact"] == "high"
        assert second.fields["turn_ref_given"] == "turn-8"
        assert second.fields["alternatives"] == [
            {
                "option": "Session cookies",
                "rejected_because": "Not suitable for API authentication",
            },
            {
                "option": "Opaque tokens",
                "rejected_because": "Requires additional lookup on every request",
            },
        ]
        assert session.get(second.id).access_count == 5
        finding = of(session, "FIND-001")
        assert finding.status == "resolved"
        assert finding.fields["turn_ref"] == of(session, "turn-3").id
        preference = of(session, "PREF-001")
        assert preference.fields["source"] == "user_statement"
        state = session.state("veritas")
        assert state["session_learnings"] == [
            "User prefers explicit security requirements over defaults",
            "Requirements review should check for MFA in all auth sections",
            "Session management is often overlooked in initial requirements",
        ]
        assert of(session, "review-notes").content.startswith("# Review notes")
    (old,) = store.archived_sessions()
    assert (old.session, old.text("archived_at")) == (
        "session-2025-12-01-old001",
        "2026-01-05T00:00:00Z",
    )
    store.unarchive_session(old.session)
    with store.session(old.session) as session:
        assert session.memories()[0].content == "The team chose PostgreSQL."
    with store.session("global") as shared:
        assert of(shared, "PREF-G01").fields["topic"] == "verification_depth"


def test_memory_folder_arrives(store: Store) -> None:
    done = store.import_(FOREIGN / "004")

    assert (done.format, done.added, done.problems) == ("004", 4, ())
    with store.session("sess_20260110_user123") as session:
        assert session.metadata.preferences["language"] == "en"
        assert session.metadata.overrides["decay"] == {
            "preset": "half-life",
            "enabled": True,
            "half_life_hours": 168,
            "floor": 0.1,
        }
        finding = of(session, "mem_003")
        assert (finding.fields["severity"], finding.fields["severity_given"]) == (
            "critical",
            "blocker",
        )
        assert finding.tags == ("security.tokens",)
        assert [link.target for link in finding.links] == [of(session, "mem_abc123xyz").id]
        assert not [each for each in session.memories() if "my address" in each.content]


def test_line_that_was_changed_is_named_and_nothing_else_is_lost(
    store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "sess_1"
    folder.mkdir()
    lines = (FOREIGN / "004/sessions/sess_20260110_user123/memory.jsonl").read_text().splitlines()
    lines[0] = lines[0].replace("Hello", "Hullo")
    torn = '{"id": "mem_9", "type'
    (folder / "memory.jsonl").write_text("\n".join([*lines, torn]))
    (folder / "metadata.json").write_text("{}")

    done = store.import_(folder)

    assert [each.where for each in done.problems] == [
        "sess_1/memory.jsonl:1",
        f"sess_1/memory.jsonl:{len(lines) + 1}",
    ]
    assert "checksum" in done.problems[0].reason
    assert "torn" in done.problems[1].reason
    assert done.added == len(lines) - 1


def _folder_as_json(folder: Path) -> dict[str, Any]:
    """Return the content of an exported or imported folder, without what is computed."""
    out: dict[str, Any] = {}
    for file in sorted(folder.rglob("*")):
        name = file.relative_to(folder).as_posix()
        if file.suffix == ".jsonl":
            out[name] = [json.loads(line) for line in file.read_text().splitlines()]
        elif file.suffix == ".yaml" and not name.startswith(("indexes/", "metadata")):
            out[name] = read_yaml(file.read_text(), name)
    return out


_COMPUTED = ("decay_factor", "checksum", "priority", "decay", "index.json")


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(each) for name, each in value.items() if name not in _COMPUTED}
    return [_plain(each) for each in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("name", "session_id", "folder"),
    [
        ("001", "sess-2026-01-11-abc123", "001/sessions/sess-2026-01-11-abc123"),
        ("003", "session-2026-01-11-abc123", "003/active/session-2026-01-11-abc123"),
        ("004", "sess_20260110_user123", "004/sessions/sess_20260110_user123"),
    ],
)
def test_what_came_in_goes_out_as_it_was(
    store: Store, tmp_path: Path, name: str, session_id: str, folder: str
) -> None:
    store.import_(FOREIGN / name)
    with store.session(session_id) as session:
        list(session.export(name, to=tmp_path / "out"))

    before, after = _folder_as_json(FOREIGN / folder), _folder_as_json(tmp_path / "out")
    for file, said in _plain(before).items():
        if file == "tombstones.jsonl":
            continue
        _assert_holds(_plain(after)[file], said, file)


def _assert_holds(after: Any, before: Any, where: str) -> None:
    """Assert that everything that was said is said again; more may be."""
    if isinstance(before, dict):
        for name, value in before.items():
            assert name in after, f"{where}.{name}"
            _assert_holds(after[name], value, f"{where}.{name}")
    elif isinstance(before, list) and before and isinstance(before[0], dict) and "id" in before[0]:
        found = {each["id"]: each for each in after}
        for each in before:
            if each["id"] != "mem_004":
                _assert_holds(found[each["id"]], each, f"{where}[{each['id']}]")
    else:
        assert _as_said(after) == _as_said(before), where


def _as_said(value: Any) -> Any:
    """Return a value with times in one spelling."""
    if isinstance(value, str) and value[:2] == "20" and value.endswith("Z"):
        return value.replace(".678000Z", ".678Z")
    return value


def test_conversation_goes_out_word_for_word(store: Store, tmp_path: Path) -> None:
    store.import_(FOREIGN / "003")
    with store.session("session-2026-01-11-abc123") as session:
        list(session.export("003", to=tmp_path / "out"))
        texts = [each.content for each in session.memories("turn")]
    again = Store.init(tmp_path / "again")
    again.import_(tmp_path / "out")

    with again.session("session-2026-01-11-abc123") as session:
        assert [each.content for each in session.memories("turn")] == texts
    assert "## Turn 3 - 2026-01-11T14:30:30Z" in (tmp_path / "out/conversation.md").read_text()


def _packed(folder: Path, archive: Path) -> None:
    archive.parent.mkdir(parents=True)
    with tarfile.open(archive, "w:gz") as tar:
        tar.add(folder, folder.name)


def test_session_that_was_archived_there_is_archived_here(store: Store, tmp_path: Path) -> None:
    name = "session-2026-01-11-abc123"
    place = tmp_path / "sessions/archived" / name
    _packed(FOREIGN / "003/active" / name, place / "archive.tar.gz")
    (place / "summary.yaml").write_text(
        "archived_at: 2026-02-01T00:00:00Z\narchived_by: bmad-master\nreason: the shop is built\n"
    )

    done = store.import_(tmp_path / "sessions")

    assert (done.problems, store.sessions()) == ((), ())
    (put_away,) = store.archived_sessions()
    assert [put_away.text(key) for key in ("archived_at", "archived_by", "reason", "user")] == [
        "2026-02-01T00:00:00Z",
        "bmad-master",
        "the shop is built",
        "user-123",
    ]
    (line,) = store.audit(action="archive")
    assert (line.session, line.by, line.reason) == (name, "bmad-master", "the shop is built")
    assert store.import_(tmp_path / "sessions").added == 0
    assert store.query("OAuth").archived[0].session == name


def test_archive_beside_session_folders_is_archived_here(store: Store, tmp_path: Path) -> None:
    name, root = "sess-2026-01-11-abc123", tmp_path / "memory"
    _packed(FOREIGN / "001/sessions" / name, root / f"archive/{name}.tar.gz")
    manifest = json.loads((FOREIGN / "001/sessions" / name / "manifest.json").read_text())
    said = json.dumps({**manifest, "archived_at": "2026-02-01T00:00:00Z"})
    (root / f"archive/{name}.manifest.json").write_text(said)

    done = store.import_(root)

    assert (done.format, done.added, done.problems) == ("001", 4, ())
    (put_away,) = store.archived_sessions()
    assert put_away.text("archived_at") == "2026-02-01T00:00:00Z"


def test_archive_that_cannot_be_read_is_named(store: Store, tmp_path: Path) -> None:
    place = tmp_path / "sessions/archived/session-1"
    place.mkdir(parents=True)
    (place / "archive.tar.gz").write_bytes(b"\x1f\x8b torn")
    (place / "summary.yaml").write_text("summary: The team chose PostgreSQL.\n")

    (problem,) = store.import_(tmp_path / "sessions").problems

    assert problem.where == "session-1/archive.tar.gz"
    assert store.archived_sessions()[0].session == "session-1"


def test_archived_session_that_goes_on_there_is_archived_again(
    store: Store, tmp_path: Path
) -> None:
    place = tmp_path / "sessions/archived/session-1"
    place.mkdir(parents=True)
    (place / "metadata.yaml").write_text("session: {id: session-1, status: archived}\n")
    findings = place / "findings.yaml"
    findings.write_text("findings:\n- {id: F-1, finding: One}\n")
    store.import_(tmp_path / "sessions")
    before = store.archived_sessions()[0].text("archived_at")
    findings.write_text(findings.read_text() + "- {id: F-2, finding: Two}\n")

    assert store.import_(tmp_path / "sessions").added == 1
    (put_away,) = store.archived_sessions()
    assert (put_away.text("archived_at"), put_away.said["counts"]) == (before, {"finding": 2})


def test_settings_of_a_memory_folder_become_those_of_its_sessions(
    store: Store, tmp_path: Path
) -> None:
    root = tmp_path / "memory"
    shutil.copytree(FOREIGN / "004", root)
    config = {
        "storage": {"max_session_size_mb": 5, "compaction_threshold": 0.9, "auto_compact": True},
        "decay": {
            "type_specific": {
                "conversation": {"half_life_hours": 24},
                "preference": {"decay_enabled": False},
            },
            "min_decay_factor": 0.2,
        },
    }
    (root / "config.json").write_text(json.dumps(config))
    place = next((root / "sessions").iterdir()) / "metadata.json"
    own = json.loads(place.read_text()) | {"compaction_config": {"auto_compact": False}}
    place.write_text(json.dumps(own))

    assert store.import_(root).problems == ()
    with store.session("sess_20260110_user123") as session:
        said = session.metadata.overrides
        assert (said["quota_bytes"], said["auto_compact"]) == (5 * 1024 * 1024, False)
        assert said["quota_warn_percent"] == 90
        assert said["decay"] == {
            "preset": "half-life",
            "enabled": True,
            "half_life_hours": 168,
            "floor": 0.1,
            "turn": {"half_life_hours": 24},
            "preference": {"rate": 0},
        }
        list(session.export("004", to=tmp_path / "out"))
    back = json.loads((tmp_path / "out/metadata.json").read_text())
    assert back["preferences"] == own["preferences"]
    assert back["decay_config"] == own["decay_config"]


def test_settings_that_make_no_sense_are_named_and_nothing_else_is_lost(
    store: Store, tmp_path: Path
) -> None:
    folder = tmp_path / "sess_1"
    folder.mkdir()
    shutil.copy(FOREIGN / "004/sessions/sess_20260110_user123/memory.jsonl", folder)
    (folder / "metadata.json").write_text(
        '{"session_id": "sess_1", "user_id": "ada", "preferences": {"verbosity": 17},'
        ' "decay_config": {"half_life_hours": "long"}}'
    )

    done = store.import_(folder)

    assert ["says less" in each.reason for each in done.problems] == [True]
    with store.session("sess_1") as session:
        assert (session.metadata.user, len(session.memories())) == ("ada", done.added)
