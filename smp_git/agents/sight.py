"""Sight of one agent: a session as it may see it, with questions answered from that alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from smp_git.agents.permissions import Permissions, PrivateAt
from smp_git.agents.rules import PRIVATE
from smp_git.ask.catalogue import Catalogue
from smp_git.ask.desk import Desk, kept
from smp_git.ask.sources import DONE
from smp_git.model.memory import Memory, MemoryId
from smp_git.write.handle import Handle

if TYPE_CHECKING:
    from smp_git.read.history import MemoryDiff, Version


class Sight:
    """A handle behind a lens, and a desk that knows nothing else."""

    def __init__(
        self, handle: Handle, shared: Callable[[], Handle | None], access: Permissions
    ) -> None:
        self.whole = handle
        self._whole_shared = shared
        self.access = access
        self._handle: Handle | None = None
        self._desk: Desk | None = None
        self._kept: Catalogue | None = None
        self._known_private: PrivateAt | None = None
        self._beside: Sight | None = None

    @property
    def handle(self) -> Handle:
        """The handle that shows what the agent may see, and writes what it may write."""
        if self._handle is None or self._handle.reader.ref != self.whole.reader.ref:
            self.close()
            reader = self.whole.reader
            self._handle = replace(
                self.whole,
                reader=reader.through(self.access.lens_on(reader, self._private)),
                guard=self.access.check_staged,
                known={},
                mains=[],
            )
        return self._handle

    @property
    def desk(self) -> Desk:
        """Where the agent's questions are answered."""
        handle = self.handle
        if self._desk is None:
            self._private()
            self._desk = Desk(handle, self._kept)
        return self._desk

    def _private(self) -> PrivateAt:
        """Return what the catalogue that the last process left says that may be private."""
        if self._known_private is None:
            self._kept = kept(self.whole)
            sets = self._kept.sets if self._kept else None
            members = sets.get(("tag", PRIVATE)) | sets.get(("kind", "state")) if sets else 0
            self._known_private = self._kept.pages_with(members) if self._kept else {}
        return self._known_private

    def shared_desk(self) -> Desk | None:
        """Return where the session of what holds across sessions answers, if there is one."""
        if self._beside is None:
            handle = self._whole_shared()
            if handle is None:
                return None
            self._beside = Sight(handle, lambda: None, self.access)
        return self._beside.desk

    def close(self) -> None:
        """Let go of what was opened."""
        if self._desk is not None:
            self._desk.close()
        if self._handle is not None:
            self._handle.reader.close()
        if self._beside is not None:
            self._beside.close()
        self._desk = self._handle = self._beside = self._kept = self._known_private = None


def open_only(kind: str) -> list[tuple[str, str, str]]:
    """Return the conditions of a query for what is not over."""
    return [("status", "not_equals", status) for status in DONE[kind]]


def preferences(sight: Sight, topic: str | None) -> tuple[Memory, ...]:
    """Return the preferences that hold, the session's before those of all sessions."""
    out: dict[tuple[object, object], Memory] = {}
    for desk in (sight.desk, sight.shared_desk()):
        for memory in _preferences(desk, topic) if desk is not None else ():
            fields = memory.fields
            key = fields.get("key") or fields.get("topic")
            subject = (fields.get("category"), key) if key else (desk, memory.id)
            out.setdefault(subject, memory)
    return tuple(out.values())


def _preferences(desk: Desk, topic: str | None) -> list[Memory]:
    wanted = {"kinds": ["preference"], "include_superseded": False, "limit": None}
    now = desk.handle.clock()
    asked = desk.asked(topic, {**wanted, "where": open_only("preference")}, {}, now)
    found = desk.handle.read(None, lambda snapshot: desk.answer(snapshot, asked, now))
    return [hit.memory for hit in found]


def versions(sight: Sight, name: str) -> tuple[Version, ...]:
    """Return the commits that changed a memory, as far as it might be seen after each."""
    from smp_git.read import history  # noqa: PLC0415 - read by few

    handle = sight.handle
    # What was seen then is looked up in all there was.
    memory_id = handle.reader.snapshot().find(name)

    def answer(_: object) -> tuple[Version, ...]:
        return tuple(
            _told(version, memory_id)
            for version, blob in history.versions(sight.whole.reader.snapshot(), memory_id)
            if blob is None or not handle.reader.at(version.commit).is_hidden(memory_id)
        )

    return handle.read(None, answer)


def _told(version: Version, memory_id: MemoryId) -> Version:
    """Return a version without what its commit says of other memories."""
    from smp_git.format.messages import BATCH, head  # noqa: PLC0415 - as above

    if not version.touches:
        # Of a batch that the counts tell of, some may be hidden.
        return replace(version, subject=head(version.subject))
    if all(touch.id == memory_id for touch in version.touches):
        return version
    own = tuple(touch for touch in version.touches if touch.id == memory_id)
    subject = next((f"{touch.verb} {touch.kind} {touch.id}".strip() for touch in own), BATCH)
    return replace(version, subject=subject, touches=own, reason=None)


def differences(sight: Sight, old: str, new: str) -> tuple[MemoryDiff, ...]:
    """Return how memories differ that may be seen at both ends, wherever they are there."""
    from smp_git.read import history  # noqa: PLC0415 - read by few

    handle = sight.handle

    def answer(_: object) -> tuple[MemoryDiff, ...]:
        left, right = handle.at(old), handle.at(new)
        return tuple(
            each
            for each in history.diff(left, right)
            if not any(side.blob(each.id) and side.is_hidden(each.id) for side in (left, right))
            and not handle.reader.snapshot().is_hidden(each.id)
        )

    return handle.read(None, answer)
