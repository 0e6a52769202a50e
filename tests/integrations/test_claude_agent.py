"""Transcripts of the Claude Agent SDK in a session: its own suite, its own program, resumed from Git alone."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("claude_agent_sdk.testing", reason="the extra claude is not installed")

from claude_agent_sdk import (
    ClaudeAgentOptions,
    InMemorySessionStore,
    ResultMessage,
    delete_session_via_store,
    fork_session_via_store,
    get_session_messages_from_store,
    list_sessions_from_store,
    query,
    rename_session_via_store,
)
from claude_agent_sdk.testing import run_session_store_conformance

from smp_git import Session, Store
from smp_git.integrations.claude_agent import SmpSessionStore
from smp_git.model.errors import InvalidError
from tests import independent_scan
from tests.integrations.loops import goes_on
from tests.integrations.program import Api, api
from tests.support import ROOT, git, smp

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
SECRET = "Zebra-Kumquat-4711"
MAIL = "jane.roe@gmail.com"
KEY: Any = {"project_key": "-home-ann-shop", "session_id": "c0ffee00-0000-4000-8000-000000000001"}
SUB: Any = {**KEY, "subpath": "subagents/agent-1"}


def entry(number: int, text: str, role: str = "user", **more: Any) -> Any:
    uuid = f"00000000-0000-4000-8000-{number:012d}"
    return {
        "type": role, "uuid": uuid, "timestamp": f"2026-01-11T14:30:{number % 60:02d}.000Z",
        "sessionId": KEY["session_id"], "message": {"role": role, "content": text}, **more,
    }  # fmt: skip


def run(work: Any) -> Any:
    return asyncio.run(work)


@pytest.fixture
def kept(session: Session) -> SmpSessionStore:
    return SmpSessionStore(session)


def test_sdks_own_suite_all_contracts(store: Store) -> None:
    sessions: list[Session] = []

    def fresh() -> SmpSessionStore:
        sessions.append(store.create_session(f"s{len(sessions)}"))
        return SmpSessionStore(sessions[-1])

    run(run_session_store_conformance(fresh))

    assert len(sessions) >= 14
    for each in sessions:
        each.close()


@pytest.mark.parametrize("again", ["the same store", "another one"])
def test_entry_with_an_id_is_there_once(
    session: Session, kept: SmpSessionStore, again: str
) -> None:
    other = kept if again == "the same store" else SmpSessionStore(session)
    one, two, title = entry(1, "one"), entry(2, "two"), {"type": "custom-title", "customTitle": "x"}

    run(kept.append(KEY, [one, title, one]))
    head = session.head
    run(other.append(KEY, [one]))
    assert session.head == head
    run(other.append(KEY, [title, two, one]))

    assert run(kept.load(KEY)) == [one, title, title, two]


def test_batch_is_one_commit_and_its_turns_another(session: Session, kept: SmpSessionStore) -> None:
    before = len(session.log())

    run(
        kept.append(
            KEY,
            [entry(1, "Which database?"), entry(2, "PostgreSQL.", "assistant"), {"type": "mode"}],
        )
    )

    assert len(session.log()) == before + 2
    turns = session.memories("turn")
    assert [(turn.content, turn.fields["role"]) for turn in turns] == [
        ("Which database?", "user"),
        ("PostgreSQL.", "assistant"),
    ]
    assert {turn.fields["conversation_id"] for turn in turns} == {KEY["session_id"]}
    run(SmpSessionStore(session, turns=False).append(KEY, [entry(3, "not told")]))
    run(kept.append(SUB, [entry(4, "of a subagent", isSidechain=True)]))
    assert len(session.memories("turn")) == 2


def test_who_was_killed_before_the_turns_has_them_at_the_next_try(session: Session) -> None:
    run(SmpSessionStore(session, turns=False).append(KEY, [entry(1, "Which database?")]))

    run(SmpSessionStore(session).append(KEY, [entry(1, "Which database?")]))

    assert [turn.content for turn in session.memories("turn")] == ["Which database?"]
    assert len(run(SmpSessionStore(session).load(KEY))) == 1


def test_odd_and_large_entries_come_back_equal(session: Session, kept: SmpSessionStore) -> None:
    entries: list[Any] = [
        entry(1, "\ud83d\0\u2028ü", extra={"": {"k" * 300: [2**70, 1e-7, None]}}),
        entry(2, "a", image={"data": "A" * 600_000}),
        entry(3, "b", image={"data": "B" * 9_000_000}),
        entry(4, "c"),
        *(entry(number, f"text {number} " * 200) for number in range(5, 300)),
    ]  # fmt: skip
    session.configure({"quota_bytes": 100_000_000})
    run(kept.append(KEY, entries[:2]))
    run(kept.append(KEY, entries[2:]))

    assert run(kept.load(KEY)) == entries
    assert run(SmpSessionStore(session).load(KEY)) == entries
    assert session.check() == ()


def test_secrets_are_taken_out_of_texts_and_nothing_else(
    session: Session, kept: SmpSessionStore
) -> None:
    signature = "EqQB" + "xY7z/+" * 60
    thought = {"type": "thinking", "thinking": f"they are {MAIL}", "signature": signature}
    clear = {"type": "thinking", "thinking": "nothing in here", "signature": signature}
    said = entry(1, "", "assistant")
    said["message"]["content"] = [
        thought,
        clear,
        {"type": "text", "text": f"I write to {MAIL}"},
        {"type": "tool_use", "id": "toolu_" + "aB3x" * 10, "name": "x", "input": {"to": MAIL}},
    ]

    run(kept.append(KEY, [said]))

    (found,) = run(kept.load(KEY))
    assert found["message"]["content"] == [
        clear, {"type": "text", "text": "I write to [REDACTED:email]"},
        {"type": "tool_use", "id": "toolu_" + "aB3x" * 10, "name": "x", "input": {"to": "[REDACTED:email]"}},
    ]  # fmt: skip
    assert independent_scan.scan(session.path, [MAIL.encode()]) == []
    run(SmpSessionStore(session, secrets="keep").append(SUB, [said]))
    assert run(kept.load(SUB)) == [said]
    with pytest.raises(InvalidError, match="holds a secret"):
        run(SmpSessionStore(session, secrets="refuse").append(KEY, [said]))


def test_loop_goes_on_while_an_append_waits(session: Session, kept: SmpSessionStore) -> None:
    assert goes_on(session, lambda: kept.append(KEY, [entry(1, "one")]))
    assert run(kept.load(KEY)) == [entry(1, "one")]


def test_summaries_are_those_of_the_sdks_own_store(session: Session, kept: SmpSessionStore) -> None:
    theirs = InMemorySessionStore()
    for batch in ([entry(1, "First question")], [{"type": "summary", "summary": "s"}, entry(2, "x", gitBranch="main")], [{"type": "custom-title", "customTitle": "T"}]):  # fmt: skip
        for each in (kept, theirs):
            run(each.append(KEY, batch))
    project = KEY["project_key"]

    (mine,), (other,) = (
        run(kept.list_session_summaries(project)),
        run(theirs.list_session_summaries(project)),
    )
    assert (mine["session_id"], mine["data"]) == (other["session_id"], other["data"])
    (listed,) = run(kept.list_sessions(project))
    assert mine["mtime"] >= listed["mtime"] > 1e12


_APPENDING = """
import asyncio, sys
from smp_git import Store
from smp_git.integrations.claude_agent import SmpSessionStore
async def work(session):
    kept = SmpSessionStore(session)
    for number in range(8):
        entry = {"type": "x", "uuid": f"{sys.argv[2]}-{number}", "shared": False}
        both = {"type": "x", "uuid": f"shared-{number}"}
        await kept.append({"project_key": "p", "session_id": "s"}, [both, entry])
with Store.open(sys.argv[1]).session("shop") as session:
    asyncio.run(work(session))
"""


def test_two_processes_append_to_one_transcript(
    store: Store, session: Session, kept: SmpSessionStore
) -> None:
    running = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", _APPENDING, str(store.path), name], cwd=ROOT)
        for name in ("one", "two")
    ]  # fmt: skip

    assert [each.wait(180) for each in running] == [0, 0]
    found = [each["uuid"] for each in run(kept.load({"project_key": "p", "session_id": "s"}))]
    assert len(found) == len(set(found)) == 24
    assert [name for name in found if name.startswith("one")] == [f"one-{n}" for n in range(8)]


def test_replicas_append_to_one_transcript(store: Store, session: Session, tmp_path: Path) -> None:
    git(tmp_path, "init", "-q", "--bare", "hub.git")
    session.add_remote("origin", tmp_path / "hub.git")
    run(SmpSessionStore(session).append(KEY, [entry(1, "start")]))
    session.sync()
    other = Store.init(tmp_path / "other")
    other.clone(str(tmp_path / "hub.git"))
    with other.session("shop") as there:
        for number, each in ((2, session), (3, there)):
            run(SmpSessionStore(each).append(KEY, [entry(number, f"of {number}")]))
        for each in (session, there, session):
            each.sync()

        found = [run(SmpSessionStore(each).load(KEY)) for each in (session, there)]
        assert found[0] == found[1]
        assert {line["message"]["content"] for line in found[0]} == {"start", "of 2", "of 3"}
        assert session.conflicts() == ()


def test_deleted_conversation_is_erased_with_its_turns_when_asked(
    store: Store, session: Session
) -> None:
    kept = SmpSessionStore(session, erase=True)
    run(kept.append(KEY, [entry(1, f"{SECRET} said")]))
    run(kept.append(SUB, [entry(2, SECRET)]))
    run(kept.append({**KEY, "session_id": "other"}, [entry(3, "stays")]))

    run(kept.delete(KEY))

    assert run(kept.load(KEY)) is run(kept.load(SUB)) is None
    assert independent_scan.scan(store.path, [SECRET.encode()]) == []
    assert [turn.content for turn in session.memories("turn")] == ["stays"]
    assert "~/.claude/projects" in str(session.receipt()["out_of_reach"])
    run(kept.append(KEY, [entry(1, "anew")]))
    assert [line["message"]["content"] for line in run(kept.load(KEY))] == ["anew"]


@pytest.mark.slow
def test_what_is_appended_while_a_conversation_is_erased_goes_or_stays_whole(
    store: Store, session: Session
) -> None:
    session.close()
    code = (
        "import asyncio, json, sys\n"
        "from smp_git import Store\n"
        "from smp_git.integrations.claude_agent import SmpSessionStore\n"
        "kept = SmpSessionStore(Store(sys.argv[1]).session('shop'), erase=True)\n"
        "key, batches = json.loads(sys.argv[2]), json.loads(sys.argv[3])\n"
        "for batch in batches: asyncio.run(kept.append(key, batch))\n"
    )
    batches = [[entry(n, f"said {n}")] for n in range(16)]
    appending = subprocess.Popen(
        [sys.executable, "-c", code, str(store.path), json.dumps(KEY), json.dumps(batches)],
        cwd=ROOT,
    )
    with store.session("shop") as mine:
        kept = SmpSessionStore(mine, erase=True)
        while appending.poll() is None:
            if run(kept.load(KEY)):
                run(kept.delete(KEY))
        assert appending.returncode == 0
        found = [line["message"]["content"] for line in run(kept.load(KEY)) or ()]
        # What came before a deletion is gone, and what came after it is there.
        assert found == [f"said {n}" for n in range(16 - len(found), 16)]
        summaries = run(kept.list_session_summaries(KEY["project_key"]))
        assert len(summaries) == bool(found)
        assert all(each["data"]["first_prompt"] == found[0] for each in summaries)
        assert {turn.content for turn in mine.memories("turn")} <= set(found)
        # The last one ends with both.
        assert mine.receipt() is not None


# The program itself


@pytest.fixture
def server() -> Iterator[Api]:
    with api() as server:
        yield server


class Desk:
    """A folder in which the SDK runs its program against an API on this machine."""

    def __init__(self, server: Api, folder: Path) -> None:
        self.server, self.folder, self.home = server, folder / "project", folder / "home"
        self.folder.mkdir()
        self.environment = {
            "HOME": str(self.home), "CLAUDE_CONFIG_DIR": str(self.home / ".claude"),
            "ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": server.address,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }  # fmt: skip

    def say(self, prompt: str, kept: SmpSessionStore, **options: Any) -> str:
        """Say something and return the id of the conversation."""

        async def work() -> str:
            said = ClaudeAgentOptions(
                cwd=self.folder, env=self.environment, session_store=kept, **options
            )
            done = [each async for each in query(prompt=prompt, options=said)]
            (result,) = (each for each in done if isinstance(each, ResultMessage))
            assert not result.is_error
            return str(result.session_id)

        return str(run(work()))

    def forget(self) -> None:
        """Delete everything that the program keeps."""
        shutil.rmtree(self.home)


@pytest.fixture
def desk(server: Api, tmp_path: Path) -> Desk:
    return Desk(server, tmp_path)


@pytest.mark.slow
def test_conversation_goes_on_from_git_alone(
    desk: Desk, session: Session, kept: SmpSessionStore
) -> None:
    first = desk.say("Which database do we use?", kept)
    second = desk.say("And which queue?", kept, resume=first)
    desk.forget()

    third = desk.say("What did I ask?", SmpSessionStore(session), resume=second)

    assert first == second == third
    read = desk.server.read()
    for text in (
        "Which database do we use?",
        "Answer 1.",
        "And which queue?",
        "Answer 2.",
        "What did I ask?",
    ):
        assert text in read
    assert [turn.content for turn in session.memories("turn")] == [
        "Which database do we use?", "Answer 1.", "And which queue?", "Answer 2.", "What did I ask?", "Answer 3.",
    ]  # fmt: skip
    assert session.check() == ()


@pytest.mark.slow
def test_hooks_store_and_import_of_a_conversation_give_one_set_of_turns(
    desk: Desk, store: Store, session: Session, kept: SmpSessionStore
) -> None:
    name = desk.say("Which database do we use?", kept)
    told = [turn.content for turn in session.memories("turn")]
    (transcript,) = desk.home.glob(f".claude/projects/*/{name}.jsonl")

    asked = {"session_id": name, "transcript_path": str(transcript), "cwd": str(desk.folder)}
    smp(
        "claude",
        "session-end",
        "-s",
        "shop",
        cwd=store.path.parent,
        stdin=json.dumps({**asked, "cwd": str(store.path.parent)}),
    )
    done = store.import_(transcript, session="shop")

    assert (
        [turn.content for turn in session.memories("turn")]
        == told
        == ["Which database do we use?", "Answer 1."]
    )
    assert done.added == 0
    assert not (store.path / ".claude/log").exists()


@pytest.mark.slow
def test_sdks_own_calls_work_on_it(desk: Desk, session: Session, kept: SmpSessionStore) -> None:
    name = desk.say("Which database do we use?", kept)
    folder = str(desk.folder)

    async def work() -> None:
        await rename_session_via_store(kept, name, "Databases", directory=folder)
        (found,) = await list_sessions_from_store(kept, directory=folder)
        assert (found.session_id, found.summary) == (name, "Databases")
        messages = await get_session_messages_from_store(kept, name, directory=folder)
        assert len(messages) == 2
        forked = await fork_session_via_store(kept, name, directory=folder)
        assert len(await list_sessions_from_store(kept, directory=folder)) == 2
        assert await get_session_messages_from_store(kept, forked.session_id, directory=folder)
        await delete_session_via_store(kept, name, directory=folder)
        assert len(await list_sessions_from_store(kept, directory=folder)) == 1

    run(work())
