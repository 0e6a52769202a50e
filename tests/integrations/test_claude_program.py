"""The hooks in Claude Code's own program, which runs offline; skipped where its wheel is missing."""

from __future__ import annotations

import json
import re
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.agents.fence import marks
from smp_git.ask.context import tokens
from smp_git.integrations.claude_code.install import PLUGIN
from tests.integrations.program import Project, api, program
from tests.support import untyped

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(program() is None, reason="the wheel claude-agent-sdk is not installed"),
]
_FENCED = re.compile(r"<smp-memory .*?</smp-memory>", re.DOTALL)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """A project with three memories, into which the hooks were installed by the command."""
    with api() as server:
        made = Project(tmp_path / "project", tmp_path / "home", server)
        made.smp("claude", "install")
        with store(made).session("memory") as session:
            session.add("decision", "Use PostgreSQL for orders", agent="architect")
            session.add("finding", "Backups of orders are missing", agent="veritas")
            session.add("preference", "Short answers", category="style", key="length")
        yield made


def store(project: Project) -> Store:
    return Store.open(project.folder)


def said(project: Project) -> list[str]:
    with store(project).session("memory") as session:
        return [turn.content for turn in session.memories("turn")]


def logged(project: Project) -> str:
    path = store(project).path / ".claude/log"
    return path.read_text() if path.exists() else ""


def told(text: str) -> list[str]:
    """Return the marks of the memories that stand in what a model reads."""
    return [mark for block in _FENCED.findall(text) for mark in marks(block)]


def test_the_start_is_read_by_the_model_and_what_is_said_is_recorded(project: Project) -> None:
    with project.talk() as talk:
        assert talk.say("Which database?") == "Answer 1."
    assert talk.status == 0

    assert len(told(project.api.read())) == 3
    assert "> - **DEC-0001** Use PostgreSQL for orders" in project.api.read()
    assert said(project) == ["Which database?", "Answer 1."]
    assert logged(project) == ""


def test_a_prompt_gets_what_is_new_and_nothing_twice(project: Project) -> None:
    with project.talk() as talk:
        talk.say("Which database do we use for orders?")
        with store(project).session("memory") as session:
            session.add("decision", "Orders are kept for ten years", agent="architect")
        talk.say("How long are orders kept?")
        talk.say("And how long are orders kept again?")
    asked = project.api.read()

    assert "Orders are kept for ten years" in asked
    assert len(told(asked)) == len(set(told(asked))) == 4


def test_a_command_of_the_client_gets_nothing_and_works(project: Project) -> None:
    with project.talk() as talk:
        talk.say("Hello")
        before = len(told(project.api.read()))
        with store(project).session("memory") as session:
            session.add("decision", "Orders are kept for ten years", agent="architect")
        talk.say("/recall orders")
    asked = project.api.read()

    assert "Search the memory for: orders" in asked
    assert len(told(asked)) == before


def test_before_a_compaction_all_is_stored_and_after_it_the_context_is_told_again(
    project: Project,
) -> None:
    with project.talk() as talk:
        talk.say("Which database?")
        talk.say("/compact")
        talk.say("Go on")
    compacted = project.api.read()

    assert "Which database?" not in [m["content"] for m in project.api.asked[-1]["messages"]]
    assert {"~DEC-0001", "~turn-0001"} <= {mark.rpartition("~")[0] for mark in told(compacted)}
    assert len(told(compacted)) == len(set(told(compacted)))
    assert said(project)[:2] == ["Which database?", "Answer 1."]
    assert said(project)[-2] == "Go on"


def test_a_conversation_that_is_resumed_or_forked_is_told_nothing_twice(project: Project) -> None:
    with project.talk() as talk:
        talk.say("Which database do we use for orders?")
    with project.talk("--resume", talk.id) as again:
        again.say("And the backups of orders?")
    assert len(told(project.api.read())) == 3
    with project.talk("--resume", talk.id, "--fork-session") as fork:
        fork.say("Something else")
        fork.say("What about orders?")
    asked = told(project.api.read())

    assert fork.id != talk.id
    assert len(asked) == len(set(asked))
    assert [text for text in said(project) if not text.startswith("Answer")] == [
        "Which database do we use for orders?", "And the backups of orders?",
        "Something else", "What about orders?",
    ]  # fmt: skip


def test_two_conversations_at_once_keep_apart(project: Project) -> None:
    def one(name: str) -> str:
        with project.talk() as talk:
            for number in range(3):
                talk.say(f"Question {number} of {name}")
        return talk.id

    with ThreadPoolExecutor(2) as pool:
        ids = set(pool.map(one, ("ada", "bob")))
    with store(project).session("memory") as session:
        turns = session.memories("turn")

    assert {turn.fields["conversation_id"] for turn in turns} == ids
    assert len(turns) == len({turn.fields["source"] for turn in turns}) == 12
    assert logged(project) == ""


# What goes wrong stops nothing


def test_a_broken_store_stops_no_prompt(project: Project) -> None:
    head = store(project).path / "active/memory/.git/refs/heads/main"
    head.write_text("0" * 40 + "\n")
    with project.talk() as talk:
        assert talk.say("Hello") == "Answer 1."

    assert "The memory of this project, smp, cannot be used" in project.api.read()
    assert '"event": "prompt"' in logged(project)


def test_a_locked_session_stops_no_prompt_and_loses_no_turn(project: Project) -> None:
    with store(project).session("memory") as session:
        with session._handle.writer.holding("a test"), project.talk() as talk:
            started = time.monotonic()
            assert talk.say("Hello") == "Answer 1."
            assert time.monotonic() - started < 30
        assert len(told(project.api.read())) == 3
        assert session.memories("turn") == ()
    assert "LockedError" in logged(project)
    with project.talk("--resume", talk.id) as again:
        again.say("And again")

    assert said(project) == ["Hello", "Answer 1.", "And again", "Answer 2."]


def test_without_a_home_nothing_is_different(project: Project) -> None:
    with project.talk(without="HOME") as talk:
        assert talk.say("Hello") == "Answer 1."

    assert len(told(project.api.read())) == 3
    assert said(project) == ["Hello", "Answer 1."]


# What it costs


def _filled(session: Session) -> None:
    """Add what three months of work on a shop leave: 400 memories of nine areas."""
    areas = (
        "orders",
        "login",
        "search",
        "mail",
        "billing",
        "stock",
        "reports",
        "caching",
        "backups",
    )
    with session.transaction(agent="architect") as tx:
        for number in range(400):
            area, kind = areas[number % 9], ("decision", "finding", "learning")[number % 3]
            text = f"{area}, case {number}: what was tried with {areas[number % 7]} held because of {areas[number % 5]}"
            tx.add(untyped(kind), text, tags=[area])


def test_twenty_prompts_show_what_memory_adds(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    with store(project).session("memory") as session:
        _filled(session)
    questions = [
        f"{ask} {area}?"
        for ask in ("What did we decide about", "What is open in", "Why is it so with")
        for area in ("orders", "login", "search", "mail", "billing", "stock", "reports")
    ][:20]
    sizes = []
    with project.talk() as talk:
        for question in questions:
            talk.say(question)
            sizes.append(sum(map(tokens, _FENCED.findall(project.api.read()))))
    asked = told(project.api.read())
    added = [after - before for before, after in zip([0, *sizes], sizes, strict=False)]
    with capsys.disabled():
        print(
            f"\ntokens added by memory to 20 prompts with 400 memories: {added}, {sizes[-1]} in all"
        )

    assert len(asked) == len(set(asked))
    assert sizes[0] <= 1500 + 800
    assert all(each <= 800 for each in added[1:])
    assert logged(project) == ""


# The plugin, and the server


def test_the_plugin_is_accepted_and_its_hooks_run(tmp_path: Path) -> None:
    with api() as server:
        project = Project(tmp_path / "project", tmp_path / "home", server)
        project.smp("init")
        project.smp("new", "shop")
        with store(project).session("shop") as session:
            session.add("decision", "Use PostgreSQL for orders", agent="architect")
        found = program()
        assert found
        checked = subprocess.run(
            [found, "plugin", "validate", PLUGIN], env=project.environment, cwd=tmp_path,
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        with project.talk("--plugin-dir", str(PLUGIN)) as talk:
            talk.say("Hello")
        assert checked.returncode == 0, checked.stdout + checked.stderr
        assert len(told(server.read())) == 1
        with store(project).session("shop") as session:
            assert [turn.content for turn in session.memories("turn")] == ["Hello", "Answer 1."]


@pytest.mark.skipif(find_spec("mcp") is None, reason="the extra mcp is not installed")
def test_the_model_remembers_through_the_server_that_was_installed(project: Project) -> None:
    project.smp("mcp", "--print-config", "claude", "--install")
    tool = "mcp__smp__remember"
    given = {"text": "Carts expire after an hour", "kind": "decision"}
    project.api.replies.append({"type": "tool_use", "id": "t1", "name": tool, "input": given})
    options = ("--mcp-config", ".mcp.json", "--strict-mcp-config", "--allowedTools", tool)
    with project.talk(*options) as talk:
        talk.say("Remember that carts expire after an hour")
    offered = {each["name"] for each in project.api.asked[0]["tools"]}

    assert {tool, "mcp__smp__context"} <= offered
    assert "Memory that lasts between conversations" in json.dumps(project.api.asked[0])
    with store(project).session("memory") as session:
        assert session.get("DEC-0002").content == given["text"]
    results = [
        block
        for message in project.api.asked[-1]["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block.get("type") == "tool_result"
    ]
    assert '"DEC-0002"' in json.dumps(results).replace("\\", "")
