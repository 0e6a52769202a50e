"""Conversations with assistants: transcripts of Claude Code, exports of accounts."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from smp_git import Store
from tests.support import ROOT

SESSION = "6f1c0d2e-8a1b-4c3d-9e4f-5a6b7c8d9e0f"


def _lines(path: Path, rows: Iterable[object]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def _row(number: int, kind: str, content: object, **more: object) -> dict[str, object]:
    return {
        "type": kind,
        "uuid": f"00000000-0000-0000-0000-{number:012}",
        "parentUuid": f"00000000-0000-0000-0000-{number - 1:012}" if number > 1 else None,
        "sessionId": SESSION,
        "timestamp": f"2026-03-01T09:{number:02}:00.000Z",
        "cwd": "/home/ada/shop",
        "gitBranch": "main",
        "message": {"role": kind, "content": content, "model": "claude-x"},
        **more,
    }


def _transcript(path: Path) -> Path:
    tool = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "README.md"}
    return _lines(
        path,
        [
            {"type": "summary", "summary": "Login", "leafUuid": "x"},
            {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
            _row(1, "user", "How do we do login?"),
            _row(2, "assistant", [{"type": "thinking", "thinking": "hm"}, tool]),
            _row(3, "user", [result]),
            _row(4, "assistant", [{"type": "text", "text": "With OAuth 2.0."}, tool]),
            _row(5, "user", "<command-name>/model</command-name>"),
            _row(6, "user", "caveat", isMeta=True),
            _row(7, "assistant", [{"type": "text", "text": "From a subagent."}], isSidechain=True),
            _row(1, "user", "How do we do login?"),
        ],
    )


def test_transcript_becomes_turns_of_what_was_said(store: Store, tmp_path: Path) -> None:
    done = store.import_(_transcript(tmp_path / "projects/-home-ada-shop/a.jsonl").parent.parent)

    assert done.format == "claude-code"
    assert done.added == 2
    assert sum(done.sessions[0].left_out.values()) == 8
    with store.session(f"claude-code-{SESSION}") as session:
        assert session.metadata.context["project_name"] == "shop"
        first, second = session.memories("turn")
        assert (first.agent, first.content) == ("user", "How do we do login?")
        assert (second.agent, second.content) == ("claude", "With OAuth 2.0.")
        assert second.fields["tools"] == ["Bash"]
        assert first.fields["source"] == f"claude-code:{SESSION}/{_row(1, 'user', '')['uuid']}"


def test_transcript_that_goes_on_brings_only_what_is_new(store: Store, tmp_path: Path) -> None:
    path = _transcript(tmp_path / "a.jsonl")
    store.import_(path)
    with path.open("a") as file:
        file.write(json.dumps(_row(8, "user", "And logout?")) + "\n")

    assert store.import_(path).added == 1


CHATGPT = [
    {
        "title": "Login for the shop",
        "create_time": 1_767_225_600.5,
        "conversation_id": "c-1",
        "current_node": "n4",
        "mapping": {
            "n0": {"id": "n0", "message": None, "parent": None, "children": ["n1"]},
            "n1": {
                "id": "n1",
                "parent": "n0",
                "message": {
                    "id": "n1",
                    "author": {"role": "system"},
                    "content": {"content_type": "text", "parts": [""]},
                    "create_time": None,
                },
            },
            "n2": {
                "id": "n2",
                "parent": "n1",
                "message": {
                    "id": "n2",
                    "author": {"role": "user"},
                    "content": {"content_type": "text", "parts": ["How do we do login?"]},
                    "create_time": 1_767_225_601.0,
                },
            },
            "n3": {
                "id": "n3",
                "parent": "n2",
                "message": {
                    "id": "n3",
                    "author": {"role": "assistant"},
                    "content": {"content_type": "text", "parts": ["With a cookie."]},
                    "create_time": 1_767_225_602.0,
                },
            },
            "n4": {
                "id": "n4",
                "parent": "n2",
                "message": {
                    "id": "n4",
                    "author": {"role": "assistant"},
                    "content": {"content_type": "text", "parts": ["With OAuth 2.0.", {"image": 1}]},
                    "create_time": 1_767_225_603.0,
                    "metadata": {"model_slug": "gpt-x"},
                },
            },
        },
    }
]
CLAUDE = [
    {
        "uuid": "11111111-2222-3333-4444-555555555555",
        "name": "Login",
        "created_at": "2026-01-01T10:00:00Z",
        "chat_messages": [
            {
                "uuid": "u1",
                "text": "How do we do login?",
                "sender": "human",
                "created_at": "2026-01-01T10:00:01Z",
                "attachments": [{"file_name": "a.txt", "extracted_content": "the file's text"}],
            },
            {
                "uuid": "u2",
                "content": [{"type": "text", "text": "With OAuth 2.0."}],
                "sender": "assistant",
                "created_at": "2026-01-01T10:00:02Z",
            },
        ],
    }
]


def _exported(folder: Path, value: object, how: str) -> Path:
    folder.mkdir(exist_ok=True)
    text = json.dumps(value)
    if how == "zip":
        with zipfile.ZipFile(folder / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("export/user.json", "{}")
            archive.writestr("export/conversations.json", text)
        return folder / "export.zip"
    (folder / "conversations.json").write_text(text)
    return folder if how == "folder" else folder / "conversations.json"


@pytest.mark.parametrize("how", ["file", "folder", "zip"])
def test_export_of_chatgpt(store: Store, tmp_path: Path, how: str) -> None:
    done = store.import_(_exported(tmp_path / "out", CHATGPT, how))

    assert (done.format, done.added, done.problems) == ("chatgpt", 3, ())
    with store.session("chatgpt-c-1") as session:
        assert session.metadata.context["title"] == "Login for the shop"
        texts = {memory.content: memory.tags for memory in session.memories("turn")}
        assert texts == {
            "How do we do login?": (),
            "With a cookie.": ("other-branch",),
            "With OAuth 2.0.": (),
        }
    assert store.import_(_exported(tmp_path / "out", CHATGPT, how)).added == 0


@pytest.mark.parametrize("how", ["file", "zip"])
def test_export_of_claude(store: Store, tmp_path: Path, how: str) -> None:
    done = store.import_(_exported(tmp_path / "out", CLAUDE, how))

    assert (done.format, done.added) == ("claude", 2)
    with store.session("claude-1111") as session:
        first, second = session.memories("turn")
        assert first.content == "How do we do login?\n\n[a.txt]\nthe file's text"
        assert second.fields["parent_given"] is None if "parent_given" in second.fields else True


def test_graph_of_the_mcp_memory_server(store: Store, tmp_path: Path) -> None:
    path = _lines(
        tmp_path / "memory.jsonl",
        [
            {
                "type": "entity",
                "name": "Ada",
                "entityType": "person",
                "observations": ["Prefers tea", "Works on the shop"],
            },
            {"type": "entity", "name": "Shop", "entityType": "project", "observations": []},
            {"type": "relation", "from": "Ada", "to": "Shop", "relationType": "works on"},
        ],
    )

    done = store.import_(path)

    assert (done.format, done.added) == ("mcp-memory", 2)
    with store.session(done.sessions[0].session) as session:
        ada, shop = session.memories("learning")
        assert ada.content == "Ada\n- Prefers tea\n- Works on the shop"
        assert ada.tags == ("person",)
        assert [(link.relation, link.target) for link in ada.links] == [("works_on", shop.id)]
        assert ada.fields["relation_names"] == {"works_on": "works on"}


def test_notes_keep_their_links_tags_and_times(store: Store, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    (vault / "deep").mkdir(parents=True)
    (vault / ".obsidian").mkdir()
    (vault / ".obsidian/app.json").write_text("{}")
    (vault / "deep/Login.md").write_text(
        "---\ntitle: Login\ntags: [Auth/OAuth]\ncreated: 2026-01-02\nstatus: draft\n---\n"
        "# Login\n\n- resolves [[Missing MFA]]\nSee [[missing mfa|the finding]] and "
        "[it](../Missing%20MFA.md). #security\n```\n#no-tag [[No link]]\n```\n"
    )
    (vault / "Missing MFA.md").write_text("Nobody asks for a second factor.\n")
    (vault / "picture.png").write_bytes(b"\x89PNG")

    done = store.import_(vault)

    assert (done.format, done.added, done.problems) == ("notes", 2, ())
    with store.session("notes-vault") as session:
        mfa, login = session.memories("artifact")
        assert login.title == "Login"
        assert login.tags == ("auth.oauth", "security")
        assert login.created_at.date().isoformat() == "2026-01-02"
        assert login.fields["status_given"] == "draft"
        assert {(link.relation, link.target) for link in login.links} == {("resolves", mfa.id)} | {
            ("references", mfa.id)
        }
        assert mfa.content == "Nobody asks for a second factor.\n"
        assert session.query("second factor").hits[0].memory.id == mfa.id


def test_secrets_are_taken_out_and_told(store: Store, tmp_path: Path) -> None:
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    path = _lines(tmp_path / "a.jsonl", [_row(1, "user", f"My token is {secret[:40]}, keep it.")])

    done = store.import_(path)

    assert done.sessions[0].redacted
    with store.session("claude-code-") as session:
        assert secret[:40] not in session.memories()[0].content


def test_transcript_that_the_real_program_wrote(store: Store) -> None:
    """Written by Claude Code 2.1.327 offline; lines of more than 2,500 bytes were left out."""
    done = store.import_(ROOT / "tests/data/foreign/claude-code/transcript.jsonl")

    assert (done.format, done.problems) == ("claude-code", ())
    with store.session(done.sessions[0].session) as session:
        assert [(each.agent, each.content) for each in session.memories("turn")] == [
            ("user", "Which database do we use for orders?"),
            ("claude", "PostgreSQL it is."),
        ]
        assert session.metadata.context["project_name"] == "shop"


def _shards(folder: Path, how: str, parts: dict[str, object]) -> Path:
    folder.mkdir()
    if how == "zip":
        with zipfile.ZipFile(folder / "export.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for name, value in parts.items():
                archive.writestr(name, json.dumps(value))
        return folder / "export.zip"
    for name, value in parts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(json.dumps(value))
    return folder


@pytest.mark.parametrize("how", ["folder", "zip"])
def test_export_of_chatgpt_in_several_files(store: Store, tmp_path: Path, how: str) -> None:
    second = json.loads(json.dumps(CHATGPT).replace('"c-1"', '"c-2"'))
    parts = {"conversations-000.json": CHATGPT, "conversations-001.json": second, "user.json": {}}

    done = store.import_(_shards(tmp_path / "out", how, parts))

    assert (done.format, done.added) == ("chatgpt", 6)
    assert store.sessions() == ("chatgpt-c-1", "chatgpt-c-2")


@pytest.mark.parametrize("how", ["folder", "zip"])
@pytest.mark.parametrize("form", ["of 2025", "of 2026"])
def test_what_claude_noted_comes_with_its_export(
    store: Store, tmp_path: Path, how: str, form: str
) -> None:
    noted = {
        "conversations_memory": "Ada prefers short answers.",
        "project_memories": {"p-1": "The shop is in Aarhus."},
        "account_uuid": "acct",
    }
    project = {
        "uuid": "p-1",
        "name": "Shop",
        "description": "All of the shop",
        "prompt_template": "Be brief.",
        "docs": [{"uuid": "d-1", "filename": "terms.md", "content": "Pay in 30 days."}],
        "created_at": "2026-01-01T10:00:00Z",
    }
    parts: dict[str, object] = {"conversations.json": CLAUDE, "users.json": [{"uuid": "acct"}]}
    if form == "of 2025":
        parts |= {"memories.json": [noted], "projects.json": [project]}
    else:
        parts |= {"memories/acct.json": noted, "projects/p-1.json": project}

    done = store.import_(_shards(tmp_path / "out", how, parts))

    assert (done.format, done.problems) == ("claude", ())
    with store.session("claude-account") as session:
        assert {memory.content for memory in session.memories("learning")} == {
            "Ada prefers short answers.",
            "The shop is in Aarhus.",
        }
        about, document = session.memories("artifact")
        assert about.content == "All of the shop\n\nBe brief."
        assert (document.title, document.content) == ("terms.md", "Pay in 30 days.")
        assert [link.target for link in document.links] == [about.id]


def test_memories_of_claude_alone(store: Store, tmp_path: Path) -> None:
    parts: dict[str, object] = {"memories/a.json": {"conversations_memory": "Short answers."}}

    assert store.import_(_shards(tmp_path / "out", "zip", parts)).added == 1


def test_notes_of_claude_code_come_with_its_transcripts(store: Store, tmp_path: Path) -> None:
    for name in ("-home-ada-shop", "-home-ada-site"):
        project = tmp_path / "projects" / name
        _transcript(project / f"{name}.jsonl")
        notes = project / "memory"
        notes.mkdir()
        (notes / "MEMORY.md").write_text("# Memory\n\n- [Tests](tests-run-slowly.md)\n")
        (notes / "tests-run-slowly.md").write_text(
            f"---\nname: tests-run-slowly\ndescription: of {name}\n---\nUse -n 2.\n"
        )

    done = store.import_(tmp_path / "projects")

    assert (done.format, done.problems) == ("claude-code", ())
    assert store.sessions()[1:] == ("notes-home-ada-shop-memory", "notes-home-ada-site-memory")
    again = store.import_(tmp_path / "projects/-home-ada-site/memory")
    assert (again.added, again.sessions[0].session) == (0, "notes-home-ada-site-memory")
    with store.session("notes-home-ada-site-memory") as session:
        index, note = session.memories("artifact")
        assert note.fields["description"] == "of -home-ada-site"
        assert [link.target for link in index.links] == [note.id]


def test_lines_of_turns_are_by_who_spoke(store: Store, tmp_path: Path) -> None:
    """As the guide shows for the checkpoints of LangGraph."""
    rows = [
        {"kind": "turn", "id": f"m{number}", "role": role, "text": f"Turn {number}"}
        for number, role in enumerate(("user", "assistant"))
    ]
    store.import_(_lines(tmp_path / "t1.jsonl", rows))

    with store.session("t1") as session:
        assert [memory.agent for memory in session.memories("turn")] == ["user", "assistant"]


def test_note_is_linked_by_the_title_of_one_that_comes_later(store: Store, tmp_path: Path) -> None:
    (tmp_path / "v").mkdir()
    (tmp_path / "v/a.md").write_text("- relates_to [[The Login]]\n")
    (tmp_path / "v/b.md").write_text("---\ntitle: The Login\n---\nText\n")
    store.import_(tmp_path / "v")

    with store.session("notes-v") as session:
        assert session.get("ART-1").links == (("relates_to", "ART-0002"),)
