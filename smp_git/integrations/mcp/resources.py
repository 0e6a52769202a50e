"""Resources of the server: sessions and memories by address, a prompt, and what completes them."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import anyio
from mcp.server.mcpserver.exceptions import ResourceError
from mcp.types import Completion

from smp_git.agents.fence import harmless
from smp_git.integrations.mcp import answers
from smp_git.integrations.mcp.answers import told
from smp_git.integrations.mcp.desk import Sessions
from smp_git.model.errors import SmpError

_LISTED: Final = 1000
_COMPLETED: Final = 100


def add(server: Any, sessions: Sessions) -> None:
    """Add the resources, the prompt and their completion to a server."""

    def all_sessions() -> dict[str, object]:
        """The sessions of the store, and the address of each."""
        return {"sessions": [f"smp://session/{name}" for name in sessions.names()]}

    def one_session(session: str) -> dict[str, object]:
        """A session: its commit, and the addresses of its memories."""
        with told(ResourceError):
            found = sessions.get(session)
            listed = [
                {"id": each.id, "kind": each.kind, "title": harmless(each.title),
                 "uri": f"smp://memory/{found.session.id}/{each.id}"}
                for each in found.agent.query(limit=_LISTED)
            ]  # fmt: skip
            return {"id": found.session.id, "commit": found.session.head, "memories": listed}

    def one_memory(session: str, id: str) -> dict[str, Any]:
        """A memory as it is now."""
        with told(ResourceError):
            return answers.item(sessions.get(session).agent.get(id)).model_dump()

    def memory_then(session: str, id: str, revision: str) -> dict[str, Any]:
        """A memory as it was at a commit, tag or time."""
        with told(ResourceError):
            return answers.item(sessions.get(session).agent.get(id, at=revision)).model_dump()

    def load_memory(topic: str = "") -> str:
        """What is worth knowing, quoted from memory."""
        with told(ResourceError):
            made = sessions.get(None).agent.inject(
                topic or "what was decided and found", budget=4000
            )
        return made.text or "Nothing is remembered yet."

    as_json = {"mime_type": "application/json"}
    server.resource("smp://sessions", name="sessions", **as_json)(all_sessions)
    server.resource("smp://session/{session}", name="session", **as_json)(one_session)
    server.resource("smp://memory/{session}/{id}", name="memory", **as_json)(one_memory)
    server.resource("smp://memory/{session}/{id}/at/{revision}", name="memory_then", **as_json)(
        memory_then
    )
    server.prompt(title="Load memory")(load_memory)

    async def complete(_: Any, argument: Any, context: Any) -> Completion:
        given = (context.arguments if context else None) or {}
        known = await anyio.to_thread.run_sync(_values, sessions, argument.name, given)
        begun = argument.value.lower()
        values = [each for each in known if each.lower().startswith(begun)]
        return Completion(values=values[:_COMPLETED], total=len(values))

    server.completion()(complete)


def _values(sessions: Sessions, name: str, given: dict[str, str]) -> list[str]:
    """Return what an argument may be; what cannot be read has nothing to offer."""
    with suppress(SmpError):
        if name == "session":
            return list(sessions.names())
        found = sessions.get(given.get("session"))
        if name == "id":
            return [each.id for each in found.agent.memories()]
        if name == "revision":
            return ["HEAD", *(each.name for each in found.session.tags())]
    return []
