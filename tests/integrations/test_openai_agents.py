"""Sessions of the OpenAI Agents SDK, held to what its own session in SQLite does."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

pytest.importorskip("agents.memory", reason="the extra openai is not installed")

from agents import Agent, RunConfig, Runner, SessionSettings, SQLiteSession
from agents.memory import Session as Protocol
from agents.testing import ScriptedModel
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from smp_git import Session, Store
from smp_git.integrations.openai_agents import SmpSession
from tests import independent_scan
from tests.integrations.loops import goes_on
from tests.support import ROOT, git

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
SECRET = "Zebra-Kumquat-4711"
MAIL = "jane.roe@gmail.com"


def item(text: str, role: str = "user") -> Any:
    return {"role": role, "content": text}


def answer(text: str) -> Any:
    part = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(
        id="1", type="message", role="assistant", content=[part], status="completed"
    )


items = st.lists(
    st.builds(item, st.text(max_size=5), st.sampled_from(("user", "assistant"))), max_size=3
)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("add_items"), items),
        st.tuples(st.just("get_items"), st.none() | st.integers(-1, 4)),
        st.tuples(st.just("pop_item")),
        st.tuples(st.just("clear_session")),
    ),
    max_size=8,
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=steps, limit=st.none() | st.integers(0, 3))
def test_operations_do_what_the_session_in_sqlite_does(
    session: Session, steps: list[Any], limit: int | None
) -> None:
    said = SessionSettings(limit=limit)
    name = f"c{session.head}"

    async def told(each: Any) -> list[Any]:
        return [await getattr(each, name)(*rest) for name, *rest in [*steps, ("get_items", None)]]

    theirs = SQLiteSession(name, session_settings=said)
    mine = asyncio.run(told(SmpSession(name, session, session_settings=said)))
    assert mine == asyncio.run(told(theirs))
    theirs.close()


def test_it_is_a_session_by_the_sdks_own_word(session: Session) -> None:
    assert isinstance(SmpSession("c", session), Protocol)
    assert SmpSession("c", session, session_settings={"limit": 2}).session_settings.limit == 2


def test_runner_goes_on_with_what_was_said(session: Session) -> None:
    model = ScriptedModel([[answer(text)] for text in ("one", "two", "three")])
    agent = Agent(name="test", model=model)

    async def work() -> Any:
        for prompt in ("first", "second"):
            await Runner.run(agent, prompt, session=SmpSession("c", session))
        limited = RunConfig(session_settings=SessionSettings(limit=1))
        await Runner.run(agent, "third", session=SmpSession("c", session), run_config=limited)
        return await SmpSession("c", session).get_items()

    before = len(session.log())
    found = asyncio.run(work())

    assert [each["role"] for each in found] == ["user", "assistant"] * 3
    assert [each["content"] for each in found[::2]] == ["first", "second", "third"]
    assert len(session.log()) - before <= 6
    assert session.check() == ()


def test_conversations_are_apart_and_items_exact(session: Session) -> None:
    odd: Any = {
        "type": "reasoning",
        "id": "rs_" + "aB3x" * 12,
        "encrypted_content": "gAAAA" + "xY7z" * 50,
        "summary": [],
        "": {"n": 2**70},
    }

    async def work() -> Any:
        one, two = SmpSession("a", session), SmpSession("a/b", session)
        await one.add_items([odd])
        await two.add_items([item("\ud83d\0ü")])
        return await one.get_items(), await two.get_items()

    assert asyncio.run(work()) == ([odd], [item("\ud83d\0ü")])


def test_secret_is_taken_out_unless_the_program_chose(session: Session) -> None:
    async def work(**said: Any) -> Any:
        kept = SmpSession("c", session, **said)
        await kept.add_items([item(f"write to {MAIL}")])
        return (await kept.get_items())[-1]["content"]

    assert asyncio.run(work()) == "write to [REDACTED:email]"
    assert asyncio.run(work(secrets="keep")) == f"write to {MAIL}"


def test_item_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    session = Store.init(tmp_path / "apart").session("shop", create=True)

    async def fill() -> None:
        kept = SmpSession("c", session)
        for text in ("one", "two", "three"):
            await kept.add_items([item(text)])

    asyncio.run(fill())
    last = session.values().list("openai-agents")[-1]
    file = session.file(last.id)
    session.close()
    file.write_text("key: [broken\n")
    git(session.path, "-c", "core.hooksPath=/dev/null", "commit", "-qam", "break one")
    session = Store.open(tmp_path / "apart").session("shop")

    async def work() -> Any:
        kept = SmpSession("c", session)
        return (
            await kept.get_items(),
            await kept.get_items(1),
            await kept.pop_item(),
            await kept.get_items(),
        )

    everything, latest, popped, left = asyncio.run(work())
    assert everything == [item("one"), item("two")]
    assert latest == [item("two")] == [popped]
    assert left == [item("one")]


def test_cleared_conversation_is_erased_when_asked(store: Store, session: Session) -> None:
    async def work() -> Any:
        kept = SmpSession("c", session, erase=True)
        await kept.add_items([item(SECRET), item(f"{SECRET} again")])
        await kept.clear_session()
        await kept.clear_session()
        await kept.add_items([item("new")])
        return await kept.get_items()

    assert asyncio.run(work()) == [item("new")]
    assert independent_scan.scan(store.path, [SECRET.encode()]) == []


def test_popped_item_is_erased_when_asked(store: Store, session: Session) -> None:
    async def work() -> Any:
        kept = SmpSession("c", session, erase=True)
        await kept.add_items([item("first"), item(SECRET)])
        popped = await kept.pop_item()
        left = await kept.get_items()
        return popped, left, await kept.pop_item(), await kept.pop_item()

    assert asyncio.run(work()) == (item(SECRET), [item("first")], item("first"), None)
    assert independent_scan.scan(store.path, [SECRET.encode()]) == []


def test_item_is_popped_once_by_those_that_pop_at_the_same_time(session: Session) -> None:
    async def work() -> Any:
        kept = SmpSession("c", session, erase=True)
        await kept.add_items([item(str(number)) for number in range(5)])
        return await asyncio.gather(*(kept.pop_item() for _ in range(4))), await kept.get_items()

    popped, left = asyncio.run(work())
    assert sorted(each["content"] for each in popped) == list("1234")
    assert left == [item("0")]


def test_loop_goes_on_while_a_write_waits(session: Session) -> None:
    kept = SmpSession("c", session)

    assert goes_on(session, lambda: kept.add_items([item("one")]))
    assert asyncio.run(kept.get_items()) == [item("one")]


_ADDING = """
import asyncio, sys
from smp_git import Store
from smp_git.integrations.openai_agents import SmpSession
async def work(session):
    kept = SmpSession("c", session)
    for number in range(10):
        await kept.add_items([{"role": "user", "content": f"{sys.argv[2]} {number}"}] * 2)
with Store.open(sys.argv[1]).session("shop") as session:
    asyncio.run(work(session))
"""


def test_two_processes_add_to_one_conversation(store: Store, session: Session) -> None:
    running = [
        subprocess.Popen([sys.executable, "-W", "ignore", "-c", _ADDING, str(store.path), name], cwd=ROOT)
        for name in ("one", "two")
    ]  # fmt: skip

    assert [each.wait(180) for each in running] == [0, 0]
    found: Any = asyncio.run(SmpSession("c", session).get_items())
    assert len(found) == 40
    for name in ("one", "two"):
        numbers = [each["content"] for each in found if each["content"].startswith(name)]
        assert numbers == [f"{name} {number}" for number in range(10) for _ in range(2)]
