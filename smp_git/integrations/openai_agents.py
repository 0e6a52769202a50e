"""Sessions of the OpenAI Agents SDK: what was said in a conversation, item by item."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, cast

from agents.memory import SessionSettings
from agents.memory.session_settings import coerce_session_settings, resolve_session_limit
from anyio import to_thread

from smp_git.model.errors import InvalidFileError
from smp_git.read.values import Key, SeenValues
from smp_git.session import Session
from smp_git.write.values import Secrets, Writing

if TYPE_CHECKING:
    from agents.items import TResponseInputItem

_ROOT: Final = "openai-agents"
_REASON: Final = "deleted by the program"
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

    What is popped or cleared stays in the history until maintenance erases it, or is erased
    at once with `erase`. A secret in an item is replaced by a placeholder, unless `secrets` says
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
        if items:
            await to_thread.run_sync(self._added, tuple(items))

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove the latest item and return it, None if there is none."""
        if self._erase:
            return await to_thread.run_sync(self._erase_latest)
        return await to_thread.run_sync(self._values.write, self._popped)

    async def clear_session(self) -> None:
        """Remove all items."""

        def clear() -> None:
            if self._erase:
                self._values.erase_found(lambda seen: seen.keys(self._prefix), reason=_REASON)
            elif keys := self._values.read(lambda seen: seen.keys(self._prefix)):
                self._values.remove(*keys)

        await to_thread.run_sync(clear)

    def _erase_latest(self) -> TResponseInputItem | None:
        latest: list[TResponseInputItem] = []

        def find(seen: SeenValues) -> list[Key]:
            keys, latest[:] = self._latest(seen)
            return keys

        self._values.erase_found(find, reason=_REASON)
        return latest[0] if latest else None

    def _added(self, items: Sequence[TResponseInputItem]) -> None:
        ready = [self._values.prepared(item) for item in items]

        def work(now: Writing) -> None:
            for item in ready:
                now.append(self._prefix, item)

        self._values.write(work)

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
        keys, latest = self._latest(now)
        for key in keys:
            now.remove(key)
        return latest[0] if latest else None

    def _latest(self, seen: SeenValues | Writing) -> tuple[list[Key], list[TResponseInputItem]]:
        """Return the latest item, if there is one, and its key behind those that cannot be read."""
        keys: list[Key] = []
        for key in reversed(seen.keys(self._prefix)):
            keys.append(key)
            with suppress(InvalidFileError):
                if (stored := seen.get(key)) is not None:
                    return keys, [cast("TResponseInputItem", stored.value)]
        return keys, []
