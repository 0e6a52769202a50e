"""What a session can try aside: branches, their merges, tags, and values that contest each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Final, Self, cast

from smp_git.format import document
from smp_git.git.objects import ObjectId
from smp_git.git.references import HEADS, TAGS, collisions
from smp_git.git.repository import MAIN, MovedError
from smp_git.model.errors import (
    AlreadyExistsError,
    InvalidError,
    NotFoundError,
    RefusedError,
    shown,
)
from smp_git.model.memory import CONTESTED, CommitId, Memory, MemoryId, Value, check_value
from smp_git.model.times import format_time
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.remove.deletions import Deletions
from smp_git.write.git_index import IndexKeeper
from smp_git.write.stage import Stage
from smp_git.write.writer import Writer

# What merges and drops is loaded by what does: most programs stay on one branch.
if TYPE_CHECKING:
    from smp_git.remove.drop_branch import Dropped
    from smp_git.write.merge.join import MergeResult

_LONGEST: Final = 100
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]*(?:/[a-z0-9][a-z0-9._-]*)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Branch:
    """A branch of a session; `is_current` if this handle works on it."""

    name: str
    commit: CommitId
    written_at: datetime
    is_current: bool

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "name": self.name,
            "commit": self.commit,
            "written_at": format_time(self.written_at),
            "current": self.is_current,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Tag:
    """A name for one commit, which stays."""

    name: str
    commit: CommitId

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {"name": self.name, "commit": self.commit}


@dataclass(frozen=True, slots=True, kw_only=True)
class Contested:
    """A value that lost in a merge, and the one that stands; None is an absent field.

    `replica` and `at` say who gave the value and when; `in_history` that it was too
    large to be kept in the memory.
    """

    id: MemoryId
    title: str
    field: str
    kept: Value
    value: Value
    at: str
    replica: str
    in_history: bool

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "id": self.id,
            "title": self.title,
            "field": self.field,
            "kept": self.kept,
            "value": self.value,
            "at": self.at,
            "replica": self.replica,
            "in_history": self.in_history,
        }


class Branching(Deletions):
    """The branching half of a session. A handle works on one branch; the folder shows main."""

    _keeper: IndexKeeper
    _main: Writer | None = None

    @property
    def current_branch(self) -> str:
        """The branch that this handle works on."""
        return self._reader.ref.removeprefix(HEADS)

    def branch(self, name: str) -> Self:
        """Make a branch where this handle stands, and return a handle that works on it."""
        ref = HEADS + checked_name(self._rules.name(name, "the name of a branch"), "branch")
        self._writer.ready()
        with self._writer.holding(f"making branch {name}") as now:
            self._point(ref, now.id)
        made = self._again()
        made.switch(name)
        return made

    def switch(self, name: str) -> None:
        """Let this handle work on another branch; the folder goes on showing main.

        To be called while no other thread writes through this handle.
        """
        ref = self._branch_ref(name)
        self._keeper.flush()
        self._reader.bind(ref)
        if self._known_desk is not None:
            self._known_desk.close()
            self._known_desk = None
        self._look_anew()

    def branches(self) -> tuple[Branch, ...]:
        """Return the branches, main first, then by name."""
        self._reader.main()
        repository = self._reader.repository
        found = [
            Branch(
                name=ref.removeprefix(HEADS),
                commit=tip,
                written_at=repository.commit(tip).time,
                is_current=ref == self._reader.ref,
            )
            for ref, tip in repository.references().items()
            if ref.startswith(HEADS)
        ]
        return tuple(sorted(found, key=lambda branch: (branch.name != "main", branch.name)))

    def merge(self, name: str, *, agent: str | None = None) -> MergeResult:
        """Bring another branch into the one that this handle works on.

        Different fields of one memory merge; of two values of one field the newer stands
        and the other is kept as contested.
        """
        from smp_git.write.merge.join import join  # noqa: PLC0415 - few programs merge

        by = self._by(agent)
        self._writer.ready()
        with self._writer.holding(f"merging branch {name}"):
            theirs = self._reader.repository.head(self._branch_ref(name))
            assert theirs is not None  # noqa: S101 - just found
            self._refuse_twins(name, theirs)
            result = join(self._writer, self._reader.ref, theirs, by=by, source=f"branch {name}")
        self._look_anew()
        return result

    def _refuse_twins(self, name: str, theirs: CommitId) -> None:
        """Raise RefusedError if another branch has another memory under an id that is here."""
        from smp_git.remove.history.tombstones import effective  # noqa: PLC0415 - few programs merge
        from smp_git.sync.twins import part  # noqa: PLC0415

        reader = self._reader
        ours = {MAIN: reader.snapshot().id}
        found = part(reader.repository, ours, {MAIN: theirs}, effective(reader))
        if found:
            twin = (*found.ours, *found.theirs)[0].old
            raise RefusedError(
                f"{twin} on branch {name} is another memory than {twin} here",
                hint="smp sync with the remote that it came from gives one of them another id",
            )

    def drop_branch(self, name: str, *, discard: bool = False, by: str | None = None) -> Dropped:
        """Drop a branch; what only it held can be restored until the deadline.

        With `discard` it cannot. Raises RefusedError, with nothing changed, if no
        recoverable copy can be made here.
        """
        from smp_git.remove import drop_branch as branches  # noqa: PLC0415 - few programs drop branches

        ref = self._branch_ref(name)
        if ref == MAIN:
            raise RefusedError("main is the session itself", hint="delete memories, or the session")
        if ref == self._reader.ref:
            raise RefusedError(
                f"this handle works on {name}", hint="switch to another branch first"
            )
        if ref == self._reader.repository.checked_out():
            raise RefusedError(
                f"{name} is checked out in the folder", hint="git switch main brings main back"
            )
        return branches.drop(self._site(), ref, self._clock(), by=self._by(by), discard=discard)

    # Tags

    def tag(self, name: str, revision: str | datetime = "HEAD") -> Tag:
        """Name a commit for good, the newest one unless another is given."""
        ref = TAGS + checked_name(self._rules.name(name, "the name of a tag"), "tag")
        commit = self._at(revision).id
        self._writer.ready()
        with self._writer.holding(f"making tag {name}"):
            self._point(ref, commit)
        return Tag(name=name, commit=commit)

    def tags(self) -> tuple[Tag, ...]:
        """Return the tags, by name."""
        self._reader.main()
        repository = self._reader.repository
        names = sorted(ref for ref in repository.references() if ref.startswith(TAGS))
        return tuple(
            Tag(name=ref.removeprefix(TAGS), commit=repository.resolve(ref)) for ref in names
        )

    # Contested values

    def conflicts(self) -> tuple[Contested, ...]:
        """Return the values that lost in merges and are not settled yet, sorted like ids."""
        return self._read(None, _contested)

    def resolve_conflict(
        self,
        memory_id: str,
        field: str | None = None,
        *,
        take: str | None = None,
        value: object = None,
        agent: str | None = None,
    ) -> Memory:
        """Settle what is contested in a memory, or in one field of it, and return the memory.

        The present value stands, unless `take` names the replica whose value is to
        stand, or `value` is given.
        """
        if take is not None and value is not None:
            raise InvalidError("both a replica and a value are given", hint="leave one out")
        by = self._by(agent)
        cleaned = self._rules.cleaned(None, {field or "value": check_value(value, "the value")})
        given = cast("Value", cleaned.fields[field or "value"])

        def work(stage: Stage) -> Memory:
            old = stage.get(memory_id)
            names, said = _settled(old, field, take, given)
            left: list[Value] = [item for item in _items(old) if item["field"] not in names]
            return stage.settle(old.id, said, left)

        memory, _ = self._writer.run(by, work)
        return memory

    # Below

    def _point(self, ref: str, commit: CommitId) -> None:
        """Make a reference; the caller holds the lock."""
        repository = self._reader.repository
        name = ref.split("/", 2)[2]
        known = repository.references()
        if ref in known:
            raise AlreadyExistsError(f"{name} exists", hint="choose another name")
        for _, other in collisions([ref], known):
            raise InvalidError(
                f"{name} cannot stand beside {other.split('/', 2)[2]}", hint="choose another name"
            )
        try:
            with repository.store([]) as written:
                repository.publish(ref, None, commit, written)
        except MovedError:
            raise AlreadyExistsError(f"{name} exists", hint="choose another name") from None

    def _branch_ref(self, name: str) -> str:
        self._reader.main()
        if f"{HEADS}{name}" not in self._reader.repository.references():
            raise NotFoundError(f"no branch {shown(name)}", hint="smp branch lists them")
        return f"{HEADS}{name}"

    def _deleting(self) -> Writer:
        """Return the writer of deletions, which concern the whole session and stand on main."""
        if self._reader.ref == MAIN:
            return self._writer
        if self._main is None:
            reader = Reader(self._reader.path, durable=self._settings.durable)
            self._main = Writer(
                reader, self._clock, timeout_seconds=self._settings.lock_timeout_seconds
            )
        return self._main

    def _close_main(self) -> None:
        if self._main is not None:
            self._main.reader.close()
            self._main = None

    def _again(self) -> Self:
        """Return another handle on this session."""
        raise NotImplementedError

    def _look_anew(self) -> None:
        """Read what the session says of itself on the branch of this handle."""
        raise NotImplementedError


def checked_name(name: object, what: str) -> str:
    """Return a name for a branch or tag that Git takes everywhere; raise InvalidError."""
    fits = isinstance(name, str) and _NAME.fullmatch(name) and len(name) <= _LONGEST
    parts = name.split("/") if isinstance(name, str) and fits else []
    if not parts or any(".." in part or part.endswith((".", ".lock")) for part in parts):
        raise InvalidError(
            f"{shown(name)} is no name for a {what}",
            hint="up to 100 of a-z, 0-9, '-', '_', '/' and '.', each part beginning with a letter or digit",
        )
    return str(name)


def _items(memory: Memory) -> list[dict[str, Value]]:
    found = memory.fields.get(CONTESTED)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def _contested(snapshot: Snapshot) -> tuple[Contested, ...]:
    """Return what is contested; only files that speak of it are taken apart."""
    found = []
    for entry in snapshot.entries():
        if b"contested" not in snapshot.repository.blob(ObjectId(entry.blob)):
            continue
        memory = snapshot.get(entry.id)
        present = document.fields_of(memory)
        found += [
            Contested(
                id=memory.id,
                title=memory.title,
                field=str(item["field"]),
                kept=present.get(str(item["field"])),
                value=item.get("value"),
                at=str(item["at"]),
                replica=str(item["replica"]),
                in_history="value" not in item,
            )
            for item in _items(memory)
        ]
    return tuple(found)


def _settled(
    memory: Memory, field: str | None, take: str | None, value: Value
) -> tuple[list[str], dict[str, Value]]:
    """Return the fields that are settled, and those of them that get another value."""
    items = [item for item in _items(memory) if field in (None, item["field"])]
    names = list(dict.fromkeys(str(item["field"]) for item in items))
    if not names:
        what = f"{field} of {memory.id}" if field else memory.id
        raise NotFoundError(f"nothing is contested in {what}", hint="smp conflicts lists what is")
    if take is not None:
        said = _of_replica(memory, items, take)
        return list(said), said
    if value is not None and len(names) > 1:
        raise InvalidError(
            f"{', '.join(names)} of {memory.id} are contested", hint="name one with --field"
        )
    return names, {names[0]: value} if value is not None else {}


def _of_replica(memory: Memory, items: list[dict[str, Value]], replica: str) -> dict[str, Value]:
    """Return the values that a replica gave to contested fields."""
    mine = [item for item in items if item["replica"] == replica]
    if not mine:
        known = ", ".join(sorted({str(item["replica"]) or "''" for item in items}))
        raise NotFoundError(
            f"replica {shown(replica)} has no value in {memory.id}", hint=f"these have: {known}"
        )
    lost = [str(item["field"]) for item in mine if "value" not in item]
    if lost:
        raise RefusedError(
            f"the value of {lost[0]} was too large to be kept in {memory.id}",
            hint="smp log shows the commit that gave it",
        )
    return {str(item["field"]): item["value"] for item in mine}
