"""Values: what a program keeps under keys of its own, each write of several of them one commit."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from smp_git.keep import quota
from smp_git.model.errors import (
    ConflictError,
    InvalidError,
    MemoryNotFoundError,
    RefusedError,
    shown,
)
from smp_git.model.memory import MemoryId, agent_name
from smp_git.model.times import When
from smp_git.read import history
from smp_git.read.values import Key, ListedValue, SeenValues, StoredValue, ValueVersion, places_of
from smp_git.write import values as staged
from smp_git.write.handle import Handle
from smp_git.write.stage import Stage
from smp_git.write.values import (
    POLICIES,
    AnyKey,
    Policy,
    PreparedValue,
    Secrets,
    Writing,
    key_of,
)

if TYPE_CHECKING:
    from smp_git.remove.history.journal import Receipt

Find = Callable[[SeenValues], Iterable[AnyKey]]
_T = TypeVar("_T")


class Values:
    """The values of a session: JSON under keys, which the program that keeps them gets back exactly.

    Made by `Session.values`. A key is a text or several; a value is anything that JSON can
    say. What holds a secret is refused, or by `secrets` stored without it, or as it is.

    >>> values = session.values("app")
    >>> values.put(("user", "ada"), {"name": "Ada"}).key
    ('user', 'ada')
    """

    def __init__(
        self, handle: Handle, agent: str | None, secrets: Secrets, opaque: Iterable[str] = ()
    ) -> None:
        if secrets not in POLICIES:
            raise InvalidError(
                f"no policy {shown(secrets)} for secrets", hint=f"one of {', '.join(POLICIES)}"
            )
        self._handle = handle
        self._agent = agent_name(handle.actor(agent))
        self._policy = Policy(secrets, frozenset(opaque))

    # Reading

    def get(self, key: AnyKey, *, at: When | None = None) -> StoredValue | None:
        """Return what is kept under a key, or was at a revision; None if nothing is."""
        wanted = key_of(key)
        return self.read(lambda seen: seen.get(wanted), at=at)

    def list(self, prefix: AnyKey = (), *, at: When | None = None) -> tuple[ListedValue, ...]:
        """Return what is kept under keys that begin so, sorted by key, without the values."""
        wanted = key_of(prefix) if prefix else ()
        return self.read(lambda seen: tuple(seen.list(wanted)), at=at)

    def items(self, prefix: AnyKey = (), *, at: When | None = None) -> tuple[StoredValue, ...]:
        """Return the values under keys that begin so, sorted by key."""
        wanted = key_of(prefix) if prefix else ()
        return self.read(lambda seen: tuple(seen.items(wanted)), at=at)

    def read(self, answer: Callable[[SeenValues], _T], *, at: When | None = None) -> _T:
        """Return an answer that asks several things of one commit."""
        return self._handle.read(at, lambda snapshot: answer(SeenValues(snapshot)))

    def history(self, key: AnyKey) -> tuple[ValueVersion, ...]:
        """Return the versions of a key, newest first."""
        wanted = key_of(key)
        return self.read(lambda seen: tuple(seen.versions(wanted)))

    # Use, which is counted outside the history, on all replicas together

    def now(self) -> datetime:
        """Return the time, by the clock of the store."""
        return self._handle.clock()

    def note_use(self, ids: Iterable[str]) -> None:
        """Note that values are used now."""
        if used := list(ids):
            self._handle.accesses.note(used, self.now())
            self._handle.accesses.flush()

    def used_at(self, id: str) -> datetime | None:
        """Return when a value was noted to be used last, None if never."""
        found = self._handle.accesses.of(id)
        return found.last_at if found is not None else None

    # Writing

    def put(self, key: AnyKey, value: object, *, expected: object = ...) -> StoredValue:
        """Keep a value under a key.

        With `expected`, the revision that must be there (None: nothing), anything else is a
        ConflictError, and nothing is written.
        """
        wanted, ready = key_of(key), self.prepared(value)
        return self.write(lambda now: now.put(wanted, ready, expected=expected))

    def put_all(self, values: Mapping[Key, object]) -> None:
        """Keep several values in one commit, all or none."""
        ready = {key_of(key): self.prepared(value) for key, value in values.items()}

        def work(now: Writing) -> None:
            for key, value in ready.items():
                now.put(key, value)

        self.write(work)

    def remove(self, *keys: AnyKey) -> int:
        """Remove what is kept under keys; return how many were there.

        The history keeps it, until `smp maintain` erases what was removed long ago, or
        until `erase`.
        """
        wanted = [key_of(key) for key in keys]
        return self.write(lambda now: sum(map(now.remove, wanted)))

    def write(self, work: Callable[[Writing], _T]) -> _T:
        """Do `work` on what is there, with nobody else writing, and commit what it stages.

        It may be done again, on what is there then, and holds the lock: prepare large
        values before.
        """
        handle, rules = self._handle, self._handle.rules

        def replica() -> str:
            return handle.writer.identity().tag

        def on(stage: Stage) -> _T:
            return work(Writing(stage, rules, self._policy, replica))

        done, _ = quota.with_room(
            handle, lambda: handle.writer.run(self._agent, handle.guarded(on))
        )
        return done

    def prepared(self, value: object) -> PreparedValue:
        """Return a value checked and searched for secrets; raise InvalidError if it may not be stored."""
        return staged.prepared(value, self._handle.rules, self._policy)

    def erase(
        self, *keys: AnyKey, reason: str | None = None, purge: bool = False
    ) -> Receipt | None:
        """Delete keys from the session and all of its history; None if there is nothing of them.

        They can be restored until the deadline; with `purge`, they cannot.
        """
        return self._erase(lambda _: keys, reason, purge=purge)[1]

    def erase_found(
        self,
        find: Find,
        *,
        reason: str | None = None,
        beside: Callable[[], Iterable[str]] = tuple,
    ) -> tuple[Key, ...]:
        """Delete the keys that `find` finds as `erase` does, and return them.

        They go as `find` saw them: it is asked again if one changed meanwhile. The memories
        `beside` them go with them, such as the turns of a transcript.
        """
        return self._erase(find, reason, purge=False, beside=beside)[0]

    def _erase(
        self,
        find: Find,
        reason: str | None,
        *,
        purge: bool,
        beside: Callable[[], Iterable[str]] = tuple,
    ) -> tuple[tuple[Key, ...], Receipt | None]:
        from smp_git.remove.delete import delete  # noqa: PLC0415 - few programs delete

        while found := self.read(lambda seen: _erasable(seen, find)):
            ids = [*(name for places in found.values() for name in places), *beside()]
            check = partial(self._check_found, find, found)
            try:
                receipt = delete(
                    self._handle, ids, {}, reason=reason, reasons=None, by=self._agent, purge=purge,
                    check=check,
                )  # fmt: skip
            except (ConflictError, MemoryNotFoundError, RefusedError):
                # Another one may have erased some of them, too.
                if self.read(lambda seen: _erasable(seen, find)) == found:
                    raise
            else:
                return tuple(found), receipt
        return (), None

    def _check_found(self, find: Find, found: Mapping[Key, object]) -> None:
        if _erasable(SeenValues(self._handle.reader.snapshot()), find) != found:
            raise ConflictError(
                "what was to be erased changed meanwhile; nothing was deleted", hint="try again"
            )


def _erasable(seen: SeenValues, find: Find) -> dict[Key, dict[MemoryId, str | None]]:
    """Return the keys that are found and there, or in the history: the ids of each, and its revisions."""
    found = {key: dict(_places(seen, key)) for key in map(key_of, find(seen))}
    return {key: places for key, places in found.items() if places}


def _places(seen: SeenValues, key: Key) -> Iterator[tuple[MemoryId, str | None]]:
    """Yield the ids under which a key is there or in the history, each with its revision."""
    places = list(places_of(seen.snapshot, key))
    for place in places:
        if place.entry is not None:
            yield place.id.text, place.entry.blob
        elif place is places[-1] and any(history.versions(seen.snapshot, place.id.text)):
            yield place.id.text, None
