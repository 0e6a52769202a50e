"""Subscriptions of clients: who watches a session or a memory is told what anybody writes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, Final

import anyio
from mcp.server.subscriptions import InMemorySubscriptionBus, ResourceUpdated
from mcp.types import EmptyResult, SubscribeRequestParams, UnsubscribeRequestParams

from smp_git.integrations.mcp.desk import Open, Sessions
from smp_git.model.errors import SmpError

_POLL_SECONDS: Final = 1.0
_ASKING: Final = ("subscriptions/listen", "resources/subscribe")
_WATCHED = re.compile(r"smp://(session|memory)/([^/]+)(?:/([^/]+))?")


class Subscriptions:
    """What clients watch, in the protocol's newer way by one bus, in its older by their own list."""

    def __init__(self, sessions: Sessions) -> None:
        self.bus = InMemorySubscriptionBus()
        self._sessions = sessions
        self._heads: dict[str, str] = {}
        self._older: dict[str, list[Any]] = {}
        self._are_memories_watched = False

    def serve(self, server: Any) -> None:
        """Let a server take subscriptions of the older way too."""
        lowlevel = server.lowlevel
        lowlevel.add_request_handler("resources/subscribe", SubscribeRequestParams, self._add)
        lowlevel.add_request_handler("resources/unsubscribe", UnsubscribeRequestParams, self._drop)

    async def note(self, ctx: Any, call_next: Callable[[Any], Any]) -> Any:
        """Open, as the server's middleware, what is to be watched: nothing else may open it."""
        for uri in _asked(ctx.params or {}) if ctx.method in _ASKING else ():
            match = _WATCHED.fullmatch(uri)
            if match is not None:
                self._are_memories_watched |= match[1] == "memory"
                with suppress(SmpError):
                    await self._look(await anyio.to_thread.run_sync(self._sessions.get, match[2]))
        return await call_next(ctx)

    async def _add(self, ctx: Any, params: Any) -> EmptyResult:
        self._older.setdefault(str(params.uri), []).append(ctx.session)
        return EmptyResult()

    async def _drop(self, ctx: Any, params: Any) -> EmptyResult:
        with suppress(ValueError):
            self._older.get(str(params.uri), []).remove(ctx.session)
        return EmptyResult()

    async def announce(self) -> None:
        """Tell, as long as the server runs, of sessions that anybody, in any process, wrote to."""
        while True:
            await anyio.sleep(_POLL_SECONDS)
            for each in self._sessions.opened():
                with suppress(SmpError):
                    for uri in await self._look(each):
                        await self._tell(uri)

    async def _look(self, opened: Open) -> list[str]:
        """Return the addresses of what has changed since the last look."""
        name = opened.session.id
        head = await anyio.to_thread.run_sync(_head, opened)
        before = self._heads.setdefault(name, head)
        self._heads[name] = head
        if before == head:
            return []
        changed: list[str] = []
        if self._are_memories_watched:
            changed = await anyio.to_thread.run_sync(_changed, opened, before, head)
        return [f"smp://session/{name}", *(f"smp://memory/{name}/{each}" for each in changed)]

    async def _tell(self, uri: str) -> None:
        await self.bus.publish(ResourceUpdated(uri=uri))
        for client in list(self._older.get(uri, ())):
            try:
                await client.send_resource_updated(uri)
            except Exception:  # noqa: BLE001 - whoever is gone is told nothing more
                self._older[uri].remove(client)


def _asked(params: Mapping[str, Any]) -> Iterator[str]:
    """Yield the addresses that a request asks to watch."""
    wanted = params.get("notifications")
    listed = wanted.get("resourceSubscriptions") if isinstance(wanted, Mapping) else None
    for each in (*(listed if isinstance(listed, list) else ()), params.get("uri")):
        if isinstance(each, str):
            yield each


def _head(opened: Open) -> str:
    return opened.session.head


def _changed(opened: Open, old: str, new: str) -> list[str]:
    """Return the memories that changed and that the agent may read."""
    with suppress(SmpError):
        return [each.id for each in opened.agent.diff(old, new)]
    return []
