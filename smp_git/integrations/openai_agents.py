"""Sessions of the OpenAI Agents SDK: what was said in a conversation, item by item."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from agents.memory import SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
from anyio import to_thread

from smp_git.model.errors import InvalidFileError
from smp_git.read.values import SeenValues
from smp_git.session import Session
from smp_git.write.values import Secrets, Writing

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

_ROOT: Final = "openai-agents"
# What is made by chance, and must come back as it was: no text that somebody wrote.
_OPAQUE: Final = frozenset(
    (
        "id",
        "call_id",
        "response_id",
        "encrypted_content",
        "file_id",
        "approval_request_id",
        "signature",
    )
)


class SmpSession:
    """A conversation of the OpenAI Agents SDK in a session; each call of `add_items` is one commit.

    What is cleared stays in the history until maintenance erases it, or is erased at once
    with `erase`. A secret in an item is replaced by a placeholder, unless `secrets` says
    otherwise.
    """

    def __init__(
        self,
        session_id: str,
        session: Session,
        *,
        session_settings: SessionSettings | dict[str, Any] | None = None,
        agent: str = _ROOT,
        secrets: Secrets = "redact",
        erase: bool = False,
    ) -> None:
        self.session_id = session_id
        self.session_settings = coerce_session_settings(session_settings or SessionSettings())
        self._prefix = (_ROOT, session_id)
        self._values = session.values(agent, secrets=secrets, opaque=_OPAQUE)
        self._erase = erase

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the items in order, or the latest so many of them."""
        most = resolve_session_limit(limit, self.session_settings)
        return await to_thread.run_sync(self._values.read, lambda seen: self._items(seen, most))

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Add items behind those that are there."""
        ready = [self._values.prepared(item) for item in items]

        def work(now: Writing) -> None:
            for item in ready:
                now.append(self._prefix, item)

        if ready:
            await to_thread.run_sync(self._values.write, work)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and return it, None if there is none."""
        return await to_thread.run_sync(self._values.write, self._popped)

    async def clear_session(self) -> None:
        """Remove all items."""

        def clear() -> None:
            keys = [each.key for each in self._values.list(self._prefix)]
            if keys and self._erase:
                self._values.erase(*keys, reason="deleted by the program")
            elif keys:
                self._values.remove(*keys)

        await to_thread.run_sync(clear)

    def _items(self, seen: SeenValues, most: int | None) -> list[TResponseInputItem]:
        found: list[Any] = []
        for each in reversed(seen.list(self._prefix)):
            if most is not None and 0 <= most <= len(found):
                break
            # One item that cannot be read does not take the conversation with it.
            with suppress(InvalidFileError):
                stored = seen.get(each.key)
                found += [stored.value] if stored is not None else []
        return found[::-1]

    def _popped(self, now: Writing) -> TResponseInputItem | None:
        for key in reversed(now.keys(self._prefix)):
            stored = None
            with suppress(InvalidFileError):
                stored = now.get(key)
            now.remove(key)
            if stored is not None:
                return cast("TResponseInputItem", stored.value)
        return None
