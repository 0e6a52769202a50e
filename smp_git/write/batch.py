"""Many memories added in one commit, each given as a mapping; links between them by their own names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from smp_git.model.errors import InvalidError, QuotaExceededError, shown
from smp_git.write import edits
from smp_git.write.handle import Handle
from smp_git.write.stage import Draft, full_links
from smp_git.write.transaction import Transaction
from smp_git.write.writer import Change

# What is no field of a memory in a mapping.
_KEYS: Final = (
    "id",
    "kind",
    "text",
    "content",
    "agent",
    "tags",
    "links",
    "at",
    "created_at",
    "fields",
)
_PROGRESS_EVERY: Final = 200
# What the file of any memory has at least.
_LEAST_BYTES: Final = 100


class _Item(NamedTuple):
    """A checked memory, what the batch calls it, and the links it shall have."""

    name: str
    made: Draft
    links: list[object]


def add_many(
    handle: Handle,
    items: Iterable[Mapping[str, object]],
    agent: str | None,
    progress: Callable[[int], None],
) -> Change:
    """Add every item or none; raise InvalidError that names the item."""
    found = _checked_items(handle, items, agent)
    with Transaction(handle, agent, None) as tx:
        given = tx.reserve(Counter(item.made.kind.name for item in found))
        names = {item.name: next(given[item.made.kind.name]) for item in found}
        for number, item in enumerate(found):
            links = full_links(item.links, lambda name: names.get(name) or tx.full_id(name))
            tx.put(replace(item.made, links=links))
            if (number + 1) % _PROGRESS_EVERY == 0:
                progress(number + 1)
        return tx.commit()


def _checked_items(
    handle: Handle, items: Iterable[Mapping[str, object]], agent: str | None
) -> list[_Item]:
    """Return the items; raise QuotaExceededError once they are more than the session may hold."""
    most, size = handle.settings.quota_bytes, 0
    found = []
    for number, item in enumerate(items):
        found.append(_checked(handle, number + 1, item, agent))
        size += _LEAST_BYTES + len(found[-1].made.content)
        if size > most:
            raise QuotaExceededError(
                f"a batch of more than {most:,} bytes has no room in the session",
                hint="smp config set quota_bytes=N gives it more, or add less at once",
            )
    return found


def _checked(handle: Handle, number: int, item: object, agent: str | None) -> _Item:
    try:
        known = _mapping(item, "an item")
        links = _list(known.get("links", ()), "links")
        name = str(known.get("id") or f"#{number}")
        return _Item(name, _draft(handle, known, agent), links)
    except InvalidError as error:
        raise InvalidError(f"item {number}: {error.message}", hint=error.hint) from None


def _mapping(value: object, what: str) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise InvalidError(f"{what} must be a mapping, not {shown(value)}")


def _list(value: object, what: str) -> list[object]:
    if isinstance(value, (list, tuple)):
        return list(value)
    raise InvalidError(f"{what} must be a list, not {shown(value)}")


def _draft(handle: Handle, item: Mapping[str, object], agent: str | None) -> Draft:
    inner = _mapping(item.get("fields", {}), "fields")
    fields = {**{name: value for name, value in item.items() if name not in _KEYS}, **inner}
    at, tags = item.get("at", item.get("created_at")), _list(item.get("tags", ()), "tags")
    if at is not None and not isinstance(at, str):
        raise InvalidError(f"at must be a time, not {shown(at)}")
    text, who = item.get("text", item.get("content", "")), item.get("agent") or agent
    kind = item.get("kind")
    return edits.new(
        handle,
        kind,  # type: ignore[arg-type]  # what is no kind is refused by name
        text,  # type: ignore[arg-type]  # what is no text is refused too
        who,  # type: ignore[arg-type]
        tags,  # type: ignore[arg-type]
        (),
        at,
        fields,
    )
