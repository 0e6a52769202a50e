"""Access of one agent: what it does not see of a session, and what it may write there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from typing import TYPE_CHECKING

from smp_git.agents.requirements import Requirements
from smp_git.agents.rules import AccessRule, is_private, kind_of
from smp_git.format.lines import Entry, entry_of
from smp_git.model.errors import AccessError, SmpError
from smp_git.model.ids import parse_id, sort_key
from smp_git.model.memory import Memory, MemoryId
from smp_git.read.snapshot import Lens, Reader, Snapshot

if TYPE_CHECKING:
    from smp_git.write.stage import Stage

_KEPT = 4096
# What may be private, by page and tree.
PrivateAt = Mapping[tuple[str, str], Sequence[Entry]]


@dataclass(slots=True)
class Permissions:
    """What an agent may read and write; without rules all but what is private to others."""

    agent: str
    required: Requirements
    _local: dict[tuple[str, str], frozenset[MemoryId]] = field(default_factory=dict)

    def lens_on(self, reader: Reader, private: Callable[[], PrivateAt]) -> Lens:
        """Return the lens through which the agent reads a session.

        `private` tells what may be private of some pages, which need not be read then.
        Of the past it sees what it might have seen then and may see now.
        """
        # What was the present when an answer began is so to its end.
        began: Snapshot | None = None

        def hidden(snapshot: Snapshot, path: str) -> frozenset[MemoryId]:
            nonlocal began
            found = self._hidden(snapshot, path, private)
            if began is snapshot:
                return found
            now = reader.snapshot()
            if now.id == snapshot.id:
                began = snapshot
                return found
            then, present = _entries(snapshot, path), _entries(now, path)
            return found | self._hidden(now, path, private) | (then.keys() - present.keys())

        return Lens(hidden, self.unreadable)

    def _hidden(
        self, snapshot: Snapshot, path: str, private: Callable[[], PrivateAt]
    ) -> frozenset[MemoryId]:
        key = path, str(snapshot.folder_of(path))
        found = self._local.get(key)
        if found is None:
            if len(self._local) >= _KEPT:
                self._local.clear()
            # Without rules all is seen that is not private.
            known = private().get(key) if self.required.reads is None else None
            every = _entries(snapshot, path).values() if known is None else known
            found = frozenset(entry.id for entry in every if not self._sees(entry))
            self._local[key] = found
        return found - self._newest(snapshot, path) if found else found

    def _sees(self, entry: Entry) -> bool:
        """Whether a memory may be read, whatever else is there."""
        rules = self.required.reads
        if not self._is_own(entry, rules):
            return False
        return rules is None or any(rule.last is None and rule.means(entry) for rule in rules)

    def _is_own(self, entry: Entry, rules: Sequence[AccessRule] | None) -> bool:
        """Whether a memory is not another agent's alone, or a rule names it."""
        if not is_private(entry):
            return True
        own = parse_id(entry.id).tag if kind_of(entry) == "state" else entry.agent
        if own == self.agent or entry.id == f"state-{self.agent}":
            return True
        # Only by its name is somebody's state opened to another.
        return any(
            kind_of(entry) == "state" and not rule.is_whole and rule.means(entry)
            for rule in rules or ()
        )

    def _newest(self, snapshot: Snapshot, path: str) -> frozenset[MemoryId]:
        """Return the memories of a page that are new enough for a rule that counts."""
        out: set[MemoryId] = set()
        counted = [rule for rule in self.required.reads or () if rule.last is not None]
        entries = _entries(snapshot, path) if counted else {}
        for rule in counted:
            if any(rule.means(each) for each in entries.values()):
                out |= _last(snapshot, rule) & entries.keys()
        return frozenset(name for name in out if self._is_own(entries[name], None))

    def unreadable(self, memory_id: MemoryId) -> SmpError:
        """Return what an agent is told of a memory that it may not read."""
        return self._refusal(f"may not read {memory_id}", "read_access", self.required.reads)

    def check_staged(self, stage: Stage) -> None:
        """Raise AccessError unless all that is staged may be written, as it was and as it will be."""
        for name, memory in stage.memories.items():
            before = stage.base.blob(name)
            if before is not None:
                self.check_write(stage.base.get(name), before)
            self.check_write(memory, before or "")

    def check_write(self, memory: Memory, blob: str = "") -> None:
        """Raise AccessError unless a memory may be written."""
        self.check_entry(entry_of(memory, blob, 0))

    def check_entry(self, entry: Entry) -> None:
        """Raise AccessError unless a memory that the index tells of may be written."""
        rules = self.required.writes
        means = rules is None or any(rule.means(entry) for rule in rules)
        if not means or not self._is_own(entry, rules):
            kind = kind_of(entry)
            # An id that is not given yet says nothing.
            what = entry.id if entry.blob or kind == "state" else f"such a {kind}"
            raise self._refusal(f"may not write {what}", "write_access", rules)

    def check_kind(self, kind: str, what: str) -> None:
        """Raise AccessError unless every memory of a kind may be written."""
        rules = self.required.writes
        if rules is not None and not any(r.is_whole and kind in r.kinds for r in rules):
            raise self._refusal(f"may not write {what}", "write_access", rules)

    def _refusal(self, what: str, name: str, rules: Sequence[AccessRule] | None) -> AccessError:
        said = "it is private to another agent"
        if rules is not None:
            said = f"{name} is {', '.join(rule.text for rule in rules) or 'empty'}"
        return AccessError(
            f"{self.agent} {what}: {said}", hint="the requirements of the workflow decide"
        )


def _entries(snapshot: Snapshot, path: str) -> Mapping[MemoryId, Entry]:
    page = snapshot.page(path)
    return page.entries if page is not None else {}


def _last(snapshot: Snapshot, rule: AccessRule) -> set[MemoryId]:
    """Return the newest memories that a rule means."""
    (kind,) = rule.kinds
    every = (entry for page in snapshot.pages(kind) for entry in page.entries.values())
    newest = nlargest(rule.last or 0, every, key=lambda each: (each.at, sort_key(each.id)))
    return {entry.id for entry in newest}
