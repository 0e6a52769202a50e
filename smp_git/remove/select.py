"""Which memories a deletion is about: by id, tag, time, agent, kind or text, all of which must hold."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from smp_git.format import document
from smp_git.format.lines import Entry
from smp_git.model.errors import InvalidError, InvalidFileError, MemoryNotFoundError
from smp_git.model.ids import parse_id
from smp_git.model.memory import MemoryId, agent_name, check_tags, kind_named
from smp_git.read.snapshot import Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """What memories to take; a tag stands for those below it too, a text is looked for without case."""

    ids: tuple[MemoryId, ...] = ()
    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    agents: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    text: str | None = None

    @property
    def criteria(self) -> bool:
        """Whether anything but ids is asked for."""
        return bool(self.tags or self.since or self.until or self.agents or self.kinds or self.text)


def selection(ids: str | Iterable[str] = (), *, tags: Iterable[str] = (), since: datetime | None = None, until: datetime | None = None, agents: Iterable[str] = (), kinds: Iterable[str] = (), text: str | None = None) -> Selection:  # fmt: skip
    """Return a checked selection; raise InvalidError if it would take everything."""
    named = (ids,) if isinstance(ids, str) else tuple(ids)
    made = Selection(
        ids=tuple(dict.fromkeys(parse_id(name).text for name in named)),
        tags=check_tags(tags),
        since=since,
        until=until,
        agents=tuple(agent_name(agent) for agent in agents),
        kinds=tuple(kind_named(kind).name for kind in kinds),
        text=text,
    )
    if not made.ids and not made.criteria:
        raise InvalidError("nothing says what to delete", hint="name ids, or give a criterion")
    return made


def select(snapshot: Snapshot, wanted: Selection) -> tuple[MemoryId, ...]:
    """Return the ids that a selection takes; raise MemoryNotFoundError if there is none.

    Ids alone may also name memories that are only in the history.
    """
    if not wanted.criteria:
        return wanted.ids
    found = tuple(
        entry.id
        for entry in snapshot.entries()
        if _fits(entry, wanted) and (wanted.text is None or _holds(snapshot, entry, wanted.text))
    )
    if not found:
        raise MemoryNotFoundError(
            "no memory meets all of this", hint="smp list shows what is there"
        )
    return found


def _fits(entry: Entry, wanted: Selection) -> bool:
    at = datetime.fromisoformat(entry.at)
    return (
        (not wanted.ids or entry.id in wanted.ids)
        and (not wanted.tags or any(_below(tag, wanted.tags) for tag in entry.tags))
        and (wanted.since is None or at >= wanted.since)
        and (wanted.until is None or at <= wanted.until)
        and (not wanted.agents or entry.agent in wanted.agents)
        and (not wanted.kinds or parse_id(entry.id).kind.name in wanted.kinds)
    )


def _below(tag: str, wanted: tuple[str, ...]) -> bool:
    return any(tag == above or tag.startswith(f"{above}.") for above in wanted)


def _holds(snapshot: Snapshot, entry: Entry, text: str) -> bool:
    """Whether a memory says `text` anywhere: its values, or its file as a person wrote it."""
    folded = text.casefold()
    try:
        memory = snapshot.get(entry.id)
    except InvalidFileError:
        memory = None
    if memory is not None:
        values = (memory.content, *_texts(document.mapping_of(memory)))
        if any(folded in value.casefold() for value in values):
            return True
    return folded in (snapshot.file(entry.id) or b"").decode("utf-8", "replace").casefold()


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        return [text for pair in value.items() for item in pair for text in _texts(item)]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return []
