"""The Anthropic SDK's memory tool in a session, held to what its own tool on files does."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

pytest.importorskip("anthropic.lib.tools", reason="the extra anthropic is not installed")

from anthropic import Anthropic, AsyncAnthropic
from anthropic.lib.tools import ToolError
from anthropic.lib.tools._beta_builtin_memory_tool import BetaLocalFilesystemMemoryTool

from smp_git import Session, Store
from smp_git.integrations.anthropic import SmpAsyncMemoryTool, SmpMemoryTool
from tests import independent_scan
from tests.integrations.loops import goes_on
from tests.integrations.program import Api, api

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
SECRET = "Zebra-Kumquat-4711"

paths = st.lists(st.sampled_from(("a", "b", "ü", ".hidden", "..", ".", "")), max_size=3).map(
    lambda parts: "/".join(("/memories", *parts))
) | st.sampled_from(("/memories", "/memories/a/b.txt", "/etc/passwd", "memories/a", "/memories/../x"))  # fmt: skip
texts = st.sampled_from(
    ("", "x", "one\ntwo\nthree", "aa\naa\n", "ends\n", "\r\nü😀\tx", "a" * 1500)
)
commands = st.one_of(
    st.fixed_dictionaries({"command": st.just("view"), "path": paths}, optional={"view_range": st.lists(st.integers(-1, 4), min_size=2, max_size=2)}),
    st.fixed_dictionaries({"command": st.just("create"), "path": paths, "file_text": texts}),
    st.fixed_dictionaries({"command": st.just("create"), "path": paths, "file_text": texts}),
    st.fixed_dictionaries({"command": st.just("str_replace"), "path": paths, "old_str": st.sampled_from(("x", "aa", "two", "nothing", "")), "new_str": texts}),
    st.fixed_dictionaries({"command": st.just("insert"), "path": paths, "insert_line": st.integers(-1, 4), "insert_text": texts}),
    st.fixed_dictionaries({"command": st.just("delete"), "path": paths}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": paths, "new_path": paths}),
)  # fmt: skip
# How large a folder is: files know it otherwise.
_SIZE = re.compile(r"^[\d.]+[BKMG]\t(?=.*/$|/memories\S*$)", re.MULTILINE)


def told(tool: Any, command: dict[str, Any]) -> str:
    try:
        return _SIZE.sub("", str(tool.call(command)))
    except ToolError as error:
        return f"error: {error}"
    except OSError as error:
        # What files cannot do, in words of the operating system.
        return f"error: {type(error).__name__}"


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(commands, max_size=8))
@example(steps=[{"command": "create", "path": "/memories/a", "file_text": "aaa"}, {"command": "str_replace", "path": "/memories/a", "old_str": "aa", "new_str": "b"}, {"command": "view", "path": "/memories/a"}])  # fmt: skip
def test_answers_are_those_of_the_sdks_own_tool(
    store: Store, tmp_path_factory: pytest.TempPathFactory, steps: list[dict[str, Any]]
) -> None:
    theirs = BetaLocalFilesystemMemoryTool(str(tmp_path_factory.mktemp("files")))
    with store.create_session(f"s{len(store.sessions())}") as session:
        mine = SmpMemoryTool(session)
        for command in steps:
            expected, found = told(theirs, command), told(mine, command)
            if "OSError" in expected or "Error" in expected.partition("error: ")[2][:22]:
                assert found.startswith("error: ")
                return
            if command["command"] in ("delete", "rename") and _is_empty_folder(
                theirs, expected, found
            ):
                return
            assert found == expected, command


def _is_empty_folder(theirs: Any, expected: str, found: str) -> bool:
    """Whether the two differ for a folder without files, which only a file system has."""
    return (
        "does not exist" in found and "does not exist" not in expected
    ) or "already exists" in expected


@pytest.fixture
def tool(session: Session) -> SmpMemoryTool:
    return SmpMemoryTool(session)


def do(tool: Any, command: str, **said: Any) -> str:
    return str(tool.call({"command": command, **said}))


def test_folder_is_listed_two_levels_deep(tool: SmpMemoryTool) -> None:
    for name, text in (
        ("a.txt", "x" * 1536),
        ("d/e/f/deep", "1"),
        ("d/b", "22"),
        (".hidden", "x"),
        ("d/.x/y", "x"),
    ):
        do(tool, "create", path=f"/memories/{name}", file_text=text)

    assert do(tool, "view", path="/memories").split("\n") == [
        "Here're the files and directories up to 2 levels deep in /memories, excluding hidden items:",
        "1.5K\t/memories", "1.5K\t/memories/a.txt", "3B\t/memories/d/", "2B\t/memories/d/b", "1B\t/memories/d/e/",
    ]  # fmt: skip


def test_every_change_is_in_the_history(session: Session, tool: SmpMemoryTool) -> None:
    do(tool, "create", path="/memories/n.md", file_text="one\n")
    do(tool, "insert", path="/memories/n.md", insert_line=1, insert_text="two")
    do(tool, "str_replace", path="/memories/n.md", old_str="one", new_str="1")
    do(tool, "delete", path="/memories/n.md")

    found = [each.stored.value if each.stored else None for each in tool.history("/memories/n.md")]
    assert found == [None, "1\ntwo\n", "one\ntwo\n", "one\n"]
    session.undo()
    assert "two" in do(tool, "view", path="/memories/n.md")
    file = next(session.path.glob("values/*/VAL-*.yaml")).read_text()
    assert "text: |\n  1\n  two\n" in file


def test_folder_is_moved_and_cleared_in_one_commit(session: Session, tool: SmpMemoryTool) -> None:
    for name in ("a/x", "a/y/z"):
        do(tool, "create", path=f"/memories/{name}", file_text=name)
    before = len(session.log())

    do(tool, "rename", old_path="/memories/a", new_path="/memories/b/c")
    assert len(session.log()) == before + 1
    assert do(tool, "view", path="/memories/b/c/y/z").endswith("\ta/y/z")
    with pytest.raises(ToolError, match="into itself"):
        do(tool, "rename", old_path="/memories/b", new_path="/memories/b/c/d")
    tool.clear_all_memory()
    assert len(session.log()) == before + 2
    assert session.values().list() == ()


def test_secret_is_taken_out_and_the_model_sees_that(session: Session, tool: SmpMemoryTool) -> None:
    do(tool, "create", path="/memories/n", file_text="write to jane.roe@gmail.com\n")

    assert "[REDACTED:email]" in do(tool, "view", path="/memories/n")
    strict = SmpMemoryTool(session, secrets="refuse")
    with pytest.raises(ToolError, match="holds a secret"):
        do(strict, "create", path="/memories/m", file_text="write to jane.roe@gmail.com")


def test_what_the_session_refuses_is_told_to_the_model(
    session: Session, tool: SmpMemoryTool
) -> None:
    session.configure({"quota_bytes": 100_000})

    with pytest.raises(ToolError, match="needs"):
        do(tool, "create", path="/memories/large", file_text="word " * 40_000)
    with pytest.raises(ToolError, match="bytes"):
        do(tool, "create", path="/memories/" + "long" * 300, file_text="x")


def test_deleted_file_is_erased_when_asked(store: Store, session: Session) -> None:
    tool = SmpMemoryTool(session, erase=True)
    do(tool, "create", path="/memories/n", file_text=SECRET)
    do(tool, "delete", path="/memories/n")

    assert independent_scan.scan(store.path, [SECRET.encode()]) == []


def test_moved_file_is_erased_under_its_old_paths_too(store: Store, session: Session) -> None:
    tool = SmpMemoryTool(session, erase=True)
    do(tool, "create", path="/memories/d/n", file_text=SECRET)
    do(tool, "rename", old_path="/memories/d", new_path="/memories/e")
    assert SECRET in do(tool, "view", path="/memories/e/n")
    do(tool, "delete", path="/memories/e")

    assert independent_scan.scan(store.path, [SECRET.encode()]) == []


# Through the SDK's own client


@pytest.fixture
def server() -> Iterator[Api]:
    with api() as server:
        for number, command in enumerate((
            {"command": "create", "path": "/memories/n.md", "file_text": "likes coffee\n"},
            {"command": "create", "path": "/memories/n.md", "file_text": "again"},
            {"command": "view", "path": "/memories"},
        )):  # fmt: skip
            server.replies.append(
                {"type": "tool_use", "id": f"t{number}", "name": "memory", "input": command}
            )
        yield server


def results(server: Api) -> list[tuple[str, bool]]:
    """What the tool answered, as the model read it in the end."""
    blocks = [
        block
        for each in server.asked[-1]["messages"]
        if isinstance(each["content"], list)
        for block in each["content"]
    ]
    return [
        (str(each["content"]), bool(each.get("is_error")))
        for each in blocks
        if each["type"] == "tool_result"
    ]


def test_model_uses_it_through_the_sdk(session: Session, server: Api) -> None:
    client = Anthropic(base_url=server.address, api_key="none", max_retries=0)

    client.beta.messages.tool_runner(
        model="claude", max_tokens=100, messages=[{"role": "user", "content": "hi"}], tools=[SmpMemoryTool(session)], thread=False
    ).until_done()  # fmt: skip

    created, refused, listed = results(server)
    assert created == ("File created successfully at: /memories/n.md", False)
    assert refused[1] and "already exists" in refused[0]
    assert "13B\t/memories/n.md" in listed[0]


def test_model_uses_it_through_the_asynchronous_sdk(session: Session, server: Api) -> None:
    async def work() -> None:
        client = AsyncAnthropic(base_url=server.address, api_key="none", max_retries=0)
        runner = client.beta.messages.tool_runner(
            model="claude", max_tokens=100, messages=[{"role": "user", "content": "hi"}], tools=[SmpAsyncMemoryTool(session)], thread=False
        )  # fmt: skip
        await runner.until_done()
        await client.close()

    asyncio.run(work())

    assert [failed for _, failed in results(server)] == [False, True, False]


def test_loop_goes_on_while_a_command_waits(session: Session) -> None:
    tool: Any = SmpAsyncMemoryTool(session)
    made = {"command": "create", "path": "/memories/a", "file_text": "x\n"}

    assert goes_on(session, lambda: tool.call(made))
    assert session.values().get(("anthropic-memory", "a")) is not None


def test_asynchronous_tool_has_every_command(session: Session) -> None:
    tool: Any = SmpAsyncMemoryTool(session)

    async def work() -> list[str]:
        return [str(await tool.call(command)) for command in (
            {"command": "create", "path": "/memories/a", "file_text": "x\n"},
            {"command": "insert", "path": "/memories/a", "insert_line": 1, "insert_text": "y"},
            {"command": "str_replace", "path": "/memories/a", "old_str": "x", "new_str": "z"},
            {"command": "rename", "old_path": "/memories/a", "new_path": "/memories/b"},
            {"command": "view", "path": "/memories/b"},
            {"command": "delete", "path": "/memories/b"},
        )] + [await tool.clear_all_memory()]  # fmt: skip

    found = asyncio.run(work())
    assert found[4].endswith("     1\tz\n     2\ty\n     3\t")
    assert found[-1] == "All memory cleared"
