"""pydantic-ai's conversations in a session, held to what its store in memory does."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip(
    "pydantic_ai.conversation_store", reason="the extra pydantic-ai is not installed"
)

from pydantic_ai import Agent
from pydantic_ai.conversation import Conversation
from pydantic_ai.conversation_store import (
    ConversationConflict,
    ConversationRecord,
    ConversationStore,
    InMemoryConversationStore,
)
from pydantic_ai.exceptions import UserError
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel

from smp_git import Session, Store
from smp_git.integrations import pydantic_ai
from smp_git.integrations.pydantic_ai import SmpConversationStore
from smp_git.model.errors import InvalidError
from tests import independent_scan
from tests.integrations.loops import goes_on

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
SECRET = "Zebra-Kumquat-4711"
MAIL = "jane.roe@gmail.com"


def request(text: str) -> ModelMessage:
    return ModelRequest(parts=[UserPromptPart(content=text)])


def talk(*texts: str, name: str = "c") -> Conversation:
    return Conversation(messages=[request(text) for text in texts], conversation_id=name)


@pytest.fixture
def kept(session: Session) -> SmpConversationStore:
    return SmpConversationStore(session)


# What may be done, by name: each takes a store and two numbers and returns what is compared.

NAMES = ("a", "b")


async def save(store: ConversationStore, one: int, two: int) -> Any:
    name = NAMES[one % 2]
    loaded = await store.load(name, limit=2 if two % 3 == 1 else None) or Conversation(
        conversation_id=name
    )
    loaded.messages.append(request(f"{one} {two}"))
    return len(await store.save(loaded, scope="s" if two % 2 and loaded.revision is None else None))


async def rewrite(store: ConversationStore, one: int, two: int) -> Any:
    name = NAMES[one % 2]
    record = await store.read_record(name)
    history = await store.load(name)
    said = [*(history.messages if history else [])[: two % 4], request("rewritten")]
    revision = record.revision if record else None
    return len(
        await store.save(Conversation(messages=said, conversation_id=name, revision=revision))
    )


async def branch(store: ConversationStore, one: int, two: int) -> Any:
    record = await store.read_record(NAMES[one % 2])
    done = await store.branch(
        NAMES[one % 2], at=two % 4, expected_revision=record.revision if record else None
    )
    return said(done)


async def fork(store: ConversationStore, one: int, two: int) -> Any:
    return said(
        await store.fork(NAMES[one % 2], at=two % 4 or None, new_conversation_id=NAMES[two % 2])
    )


async def delete(store: ConversationStore, one: int, two: int) -> Any:
    return await store.delete(NAMES[one % 2], scope="s" if two % 2 else None)


async def load(store: ConversationStore, one: int, two: int) -> Any:
    found = await store.load(NAMES[one % 2], limit=(None, 0, 1, 2, 9, -1)[two])
    return said(found) if found else None


async def listed(store: ConversationStore, one: int, two: int) -> Any:
    found = await store.list_conversations(scope="s" if one % 2 else None)
    return sorted(
        (each.conversation_id, each.scope, each.forked_from, len(each.branches)) for each in found
    )


def said(conversation: Conversation) -> list[str]:
    return [str(part.content) for message in conversation.messages for part in message.parts]


OPERATIONS: list[Callable[..., Any]] = [save, save, rewrite, branch, fork, delete, load, listed]


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(OPERATIONS), st.integers(0, 5), st.integers(0, 5)), max_size=9
    )
)
def test_operations_do_what_the_store_in_memory_does(store: Store, steps: list[Any]) -> None:
    async def told(each: ConversationStore) -> list[Any]:
        out: list[Any] = []
        for operation, one, two in steps:
            try:
                out.append(await operation(each, one, two))
            except UserError as error:
                out.append(type(error).__name__)
        return [*out, await load(each, 0, 4), await load(each, 1, 4)]

    with store.create_session(f"s{len(store.sessions())}") as session:
        mine = asyncio.run(told(SmpConversationStore(session)))
        assert mine == asyncio.run(told(InMemoryConversationStore()))
        entries = session.values().list(("pydantic-ai", "entries"))
        reached = sum(len(each) for each in mine[-2:] if each)
        assert len(entries) >= reached or not reached


def test_agent_goes_on_with_what_was_saved(session: Session, kept: SmpConversationStore) -> None:
    agent = Agent(TestModel(custom_output_text="hello"))

    async def work() -> Any:
        conversation = Conversation(conversation_id="c")
        for prompt in ("one", "two"):
            result = await agent.run(prompt, conversation=conversation)
            await kept.save(result)
            found = await kept.load("c")
            assert found is not None
            conversation = found
        return conversation

    before = len(session.log())
    conversation = asyncio.run(work())

    assert [type(each).__name__ for each in conversation.messages] == [
        "ModelRequest",
        "ModelResponse",
    ] * 2
    assert conversation.usage.requests == 2
    assert len(session.log()) == before + 2


def test_save_over_another_ones_save_is_a_conflict_that_writes_nothing(session: Session) -> None:
    one, two = SmpConversationStore(session), SmpConversationStore(session)

    async def work() -> None:
        await one.save(talk("first"))
        mine, theirs = await one.load("c"), await two.load("c")
        assert mine is not None and theirs is not None
        mine.messages.append(request("mine"))
        await one.save(mine)
        theirs.messages.append(request("theirs"))
        head = session.head
        with pytest.raises(ConversationConflict):
            await two.save(theirs)
        with pytest.raises(ConversationConflict):
            await two.save(talk("anew"))
        with pytest.raises(ConversationConflict):
            await two.delete_record("c", expected_revision="stale")
        with pytest.raises(ConversationConflict):
            await two.write_record(
                ConversationRecord(conversation_id="d", head_id="nobody"), expected_revision=None
            )
        assert session.head == head

    asyncio.run(work())


def test_two_that_save_at_once_leave_one_history(
    session: Session, kept: SmpConversationStore
) -> None:
    async def add(number: int) -> None:
        while True:
            found = await kept.load("c") or Conversation(conversation_id="c")
            found.messages.append(request(str(number)))
            try:
                await kept.save(found)
            except ConversationConflict:
                continue
            return

    async def work() -> list[str]:
        await asyncio.gather(*(add(number) for number in range(6)))
        return said(await kept.load("c") or talk())

    assert sorted(asyncio.run(work())) == list("012345")


def test_loop_goes_on_while_a_save_waits(session: Session, kept: SmpConversationStore) -> None:
    assert goes_on(session, lambda: kept.save(talk("one")))
    assert said(asyncio.run(kept.load("c")) or talk()) == ["one"]


def test_parts_of_every_sort_come_back_equal(kept: SmpConversationStore) -> None:
    messages: list[ModelMessage] = [
        ModelRequest(parts=[UserPromptPart(content=["ü\ud83d", BinaryContent(b"\0\xff" * 40, media_type="image/png")])]),
        ModelResponse(parts=[
            ThinkingPart("hm", signature="Ab9" * 60), TextPart("said"),
            ToolCallPart("search", {"q": ["x", {"y": None}]}, tool_call_id="call_" + "aB3" * 12),
        ]),
    ]  # fmt: skip

    async def work() -> Any:
        await kept.save(Conversation(messages=messages, conversation_id="/ü. c"))
        return await kept.load("/ü. c")

    # As the framework itself reads what it wrote as JSON.
    plain = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
    assert asyncio.run(work()).messages == ModelMessagesTypeAdapter.validate_python(plain)


def test_secret_is_refused_and_nothing_is_saved(
    session: Session, kept: SmpConversationStore
) -> None:
    head = session.head

    with pytest.raises(InvalidError, match=r"a secret \(email\) at message\.parts\[0\]\.content"):
        asyncio.run(kept.save(talk("hello", f"write to {MAIL}")))
    assert session.head == head

    asyncio.run(SmpConversationStore(session, secrets="redact").save(talk(f"write to {MAIL}")))
    assert said(asyncio.run(kept.load("c")) or talk()) == ["write to [REDACTED:email]"]


def test_deleted_conversation_leaves_what_a_fork_uses(store: Store, session: Session) -> None:
    kept = SmpConversationStore(session, erase=True)

    async def work() -> list[str]:
        await kept.save(talk("shared", f"{SECRET} alone"))
        await kept.fork("c", at=1, new_conversation_id="d")
        await kept.delete("c")
        return said(await kept.load("d") or talk())

    assert asyncio.run(work()) == ["shared"]
    assert independent_scan.scan(store.path, [SECRET.encode()]) == []


def test_fork_that_is_made_while_a_conversation_is_deleted_is_whole(
    session: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = SmpConversationStore(session, erase=True)
    asyncio.run(kept.save(talk("shared", "alone")))
    released, asked = pydantic_ai._released, []

    def meanwhile(*given: Any) -> Any:
        asked.append(found := released(*given))
        if len(asked) == 1:
            forking = kept.fork("c", at=1, new_conversation_id="d")
            thread = threading.Thread(target=asyncio.run, args=(forking,))
            thread.start()
            thread.join()
        return found

    monkeypatch.setattr(pydantic_ai, "_released", meanwhile)

    asyncio.run(kept.delete("c"))
    assert said(asyncio.run(kept.load("d")) or talk()) == ["shared"]
    assert asyncio.run(kept.load("c")) is None


def test_entry_that_is_not_there_is_a_lookup_error(kept: SmpConversationStore) -> None:
    with pytest.raises(LookupError):
        asyncio.run(kept.read_entry("nobody"))
