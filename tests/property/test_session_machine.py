"""A session beside a plain dictionary: after any sequence of steps both say the same."""

from __future__ import annotations

import contextlib
import shutil
import tempfile
from copy import deepcopy
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
)

from smp_git import Memory, Session, Store
from smp_git.model.errors import MemoryNotFoundError, RefusedError
from smp_git.model.ids import parse_id
from smp_git.model.memory import is_same
from tests import strategies
from tests.conftest import Clock
from tests.support import git, untyped

WRITTEN = ("decision", "finding", "learning", "artifact")
EDITABLE = st.fixed_dictionaries(
    {},
    optional={
        "impact": strategies.texts,
        "note": st.none() | strategies.values,
        "importance": st.floats(0, 1) | st.none(),
    },
)

Told = dict[str, Any]


def told(memory: Memory) -> Told:
    """Return what the model keeps of a memory."""
    fields = deepcopy(dict(memory.fields))
    resolution = fields.get("resolution")
    if isinstance(resolution, dict):
        resolution.pop("resolved_at", None)
    return {
        "content": memory.content,
        "tags": list(memory.tags),
        "links": [list(link) for link in memory.links],
        "fields": fields,
    }


def given(**fields: Any) -> Told:
    return {name: value for name, value in fields.items() if value is not None}


class SessionMachine(RuleBasedStateMachine):
    """The session, the model, and every state the model had, by commit."""

    ids = Bundle("ids")

    @initialize()
    def create(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="smp-machine-"))
        self.clock = Clock()
        store = Store.init(self.folder / "store", clock=self.clock)
        (store.path / "config.yaml").write_text("format: 1\ndurability: relaxed\nredaction: off\n")
        self.open()
        self.model: dict[str, Told] = {}
        self.seen: set[str] = set()
        self.given_up: set[str] = set()
        self.undoable: list[dict[str, Told]] = []
        self.states = {self.session.head: deepcopy(self.model)}

    def open(self) -> None:
        store = Store.open(self.folder / "store", clock=self.clock)
        self.session: Session = (
            store.session("machine") if store.sessions() else store.create_session("machine")
        )

    def wrote(self, before: dict[str, Told]) -> None:
        """Note that a write was made, if it changed anything."""
        if self.session.head not in self.states:
            self.undoable.append(before)
            self.states[self.session.head] = deepcopy(self.model)

    def took(self, memory_id: str) -> None:
        assert memory_id not in self.seen, "a number was given twice"
        self.seen.add(memory_id)

    # Writing

    @rule(target=ids, kind=st.sampled_from((*WRITTEN, "turn")), text=strategies.contents, tags=strategies.tags, fields=EDITABLE)  # fmt: skip
    def add(self, kind: str, text: str, tags: list[str], fields: dict[str, Any]) -> str:
        before = deepcopy(self.model)
        memory = self.session.add(untyped(kind), text, tags=tags, agent="ada", **fields)
        self.took(memory.id)
        self.model[memory.id] = {
            "content": text, "tags": tags, "links": [], "fields": given(**fields),
        }  # fmt: skip
        self.wrote(before)
        return memory.id

    @rule(memory_id=ids, fields=EDITABLE, text=st.none() | strategies.contents)
    def edit(self, memory_id: str, fields: dict[str, Any], text: str | None) -> None:
        before = deepcopy(self.model)
        with self.refusal(memory_id, turns=True):
            self.session.edit(memory_id, text=text, agent="veritas", **fields)
            self.edited(memory_id, text, fields)
        self.wrote(before)

    def edited(self, memory_id: str, text: str | None, fields: dict[str, Any]) -> None:
        kept = self.model[memory_id]
        kept["content"] = kept["content"] if text is None else text
        merged = {**kept["fields"], **fields}
        kept["fields"] = given(**merged)

    @contextlib.contextmanager
    def refusal(self, memory_id: str, *, turns: bool) -> Any:
        """Expect the error that an absent memory or a turn calls for."""
        absent = memory_id not in self.model
        refused = turns and memory_id.startswith("turn-")
        try:
            yield
        except MemoryNotFoundError:
            assert absent
        except RefusedError:
            assert refused
        else:
            assert not absent
            assert not refused

    @rule(memory_id=ids, action=st.none() | strategies.contents)
    def resolve(self, memory_id: str, action: str | None) -> None:
        before = deepcopy(self.model)
        refused = not memory_id.startswith(("FIND", "DEC"))
        with self.refusal(memory_id, turns=False) if not refused else contextlib.suppress(MemoryNotFoundError, RefusedError):  # fmt: skip
            self.session.resolve(memory_id, action=action, by="ada")
            fields = self.model[memory_id]["fields"]
            resolution = {**fields.get("resolution", {}), "resolved_by": "ada"}
            fields["resolution"] = resolution | ({"action_taken": action} if action else {})
            if memory_id.startswith("DEC"):
                fields["status"] = "resolved"
            else:
                fields["resolution"]["status"] = "resolved"
                fields.pop("status", None)
        self.wrote(before)

    @rule(memory_id=ids, pinned=st.booleans())
    def pin(self, memory_id: str, *, pinned: bool) -> None:
        before = deepcopy(self.model)
        with self.refusal(memory_id, turns=True):
            (self.session.pin if pinned else self.session.unpin)(memory_id)
            self.edited(memory_id, None, {"pinned": True if pinned else None})
        self.wrote(before)

    @rule(memory_id=ids, other=ids)
    def link(self, memory_id: str, other: str) -> None:
        if memory_id == other:
            return
        before = deepcopy(self.model)
        with self.refusal(memory_id, turns=True):
            self.session.link(memory_id, "led_to", other)
            links = self.model[memory_id]["links"]
            if ["led_to", other] not in links:
                links.append(["led_to", other])
        self.wrote(before)

    @rule(target=ids, memory_id=ids, text=strategies.contents)
    def supersede(self, memory_id: str, text: str) -> Any:
        if memory_id.startswith(("turn-", "state-")) or memory_id not in self.model:
            return multiple()
        before = deepcopy(self.model)
        memory = self.session.supersede(memory_id, text, agent="ada")
        self.took(memory.id)
        self.model[memory.id] = {
            "content": text, "tags": self.model[memory_id]["tags"],
            "links": [["supersedes", memory_id]], "fields": {},
        }  # fmt: skip
        if self.session.get(memory_id, at="HEAD~1").status != "superseded":
            self.edited(memory_id, None, {"status": "superseded"})
        self.wrote(before)
        return memory.id

    @rule(agent=st.sampled_from(("ada", "veritas")), fields=EDITABLE)
    def set_state(self, agent: str, fields: dict[str, Any]) -> None:
        before = deepcopy(self.model)
        self.session.set_state(agent, fields)
        old = self.model.get(f"state-{agent}", {"tags": [], "links": []})
        self.model[f"state-{agent}"] = {**old, "content": "", "fields": given(**fields)}
        self.wrote(before)

    @rule(target=ids, texts=st.lists(strategies.contents, min_size=1, max_size=4), fields=EDITABLE, fail=st.booleans())  # fmt: skip
    def transaction(self, texts: list[str], fields: dict[str, Any], *, fail: bool) -> Any:
        before = deepcopy(self.model)
        new = []
        with contextlib.suppress(ZeroDivisionError), self.session.transaction("ada", reason="several at once") as tx:  # fmt: skip
            for text in texts:
                memory = tx.add("learning", text)
                self.took(memory.id)
                new.append(memory.id)
                self.model[memory.id] = {"content": text, "tags": [], "links": [], "fields": {}}
            tx.edit(new[0], **fields)
            self.edited(new[0], None, fields)
            if fail:
                raise ZeroDivisionError
        if fail:
            self.model = before
            self.given_up.update(new)
            return multiple()
        self.wrote(before)
        return multiple(*new)

    # Going back

    @rule()
    def undo(self) -> None:
        if not self.undoable:
            with contextlib.suppress(RefusedError):
                self.session.undo()
                raise AssertionError("there was nothing to undo")
            return
        self.session.undo()
        self.model = self.undoable.pop()
        self.states[self.session.head] = deepcopy(self.model)

    @rule(back=st.integers(0, 30))
    def rollback(self, back: int) -> None:
        before = deepcopy(self.model)
        target = self.session.log()[min(back, len(self.states) - 1)].commit
        self.session.rollback(target)
        self.model = deepcopy(self.states[target])
        self.wrote(before)

    @rule(memory_id=ids, back=st.integers(0, 30))
    def rollback_one(self, memory_id: str, back: int) -> None:
        before = deepcopy(self.model)
        target = self.session.log()[min(back, len(self.states) - 1)].commit
        with contextlib.suppress(MemoryNotFoundError):
            self.session.rollback(target, memory_id)
            self.model[memory_id] = deepcopy(self.states[target][memory_id])
        assert (memory_id in self.states[target]) == (self.model.get(memory_id) == self.states[target].get(memory_id) is not None)  # fmt: skip
        self.wrote(before)

    # By hand

    @rule(memory_id=ids, note=strategies.words, comment=st.booleans())
    def edit_by_hand(self, memory_id: str, note: str, *, comment: bool) -> None:
        if memory_id not in self.model:
            return
        before = deepcopy(self.model)
        file = self.session.file(memory_id)
        lines = file.read_bytes().decode().split("\n")
        start = 1 if file.suffix == ".md" else 0
        key = f"hand{len(self.states)}"
        lines[start:start] = [*(["# by hand"] if comment else []), f'{key}:   "{note}"']
        file.write_bytes("\n".join(lines).encode())
        self.session.commit(agent="person")
        self.model[memory_id]["fields"][key] = note
        self.wrote(before)

    @rule(memory_id=ids)
    def remove_by_hand(self, memory_id: str) -> None:
        if memory_id not in self.model:
            return
        before = deepcopy(self.model)
        self.session.file(memory_id).unlink()
        self.session.commit(agent="person")
        del self.model[memory_id]
        self.wrote(before)

    @rule(target=ids, skip=st.integers(1, 5), text=strategies.words)
    def add_by_hand(self, skip: int, text: str) -> str:
        before = deepcopy(self.model)
        highest = max((parse_id(name).number for name in self.seen), default=0)
        name = f"DEC-{highest + skip:04d}"
        path = self.session.path / parse_id(name).path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f'created_at: 2026-01-12T00:00:00Z\ndecision: "{text}"\n')
        self.session.commit(agent="person")
        self.took(name)
        self.model[name] = {"content": text, "tags": [], "links": [], "fields": {}}
        self.wrote(before)
        return name

    @rule(data=st.data())
    def commit_by_git(self, data: st.DataObject) -> None:
        """A commit of a person's own, beside the memories."""
        (self.session.path / "notes.txt").write_text(data.draw(strategies.words))
        self.session.check()
        git(self.session.path, "add", "notes.txt")
        with contextlib.suppress(Exception):
            git(self.session.path, "commit", "-q", "-m", "my notes")
        self.states[self.session.head] = deepcopy(self.model)

    @rule(lose_counters=st.booleans())
    def reopen(self, *, lose_counters: bool) -> None:
        self.session.close()
        if lose_counters:
            (self.session.path / ".git/smp/counters.json").unlink(missing_ok=True)
            # What was never written anywhere may then be given again.
            self.seen -= self.given_up
        self.open()

    # What always holds

    @rule(back=st.integers(0, 30))
    def read_the_past(self, back: int) -> None:
        commit = self.session.log()[min(back, len(self.states) - 1)].commit

        assert_says(self.session.memories(at=commit), self.states[commit])

    @precondition(lambda self: hasattr(self, "session"))
    @invariant()
    def session_says_what_the_model_says(self) -> None:
        assert_says(self.session.memories(), self.model)
        assert self.session.check() == ()

    def teardown(self) -> None:
        if not hasattr(self, "session"):
            return
        self.session.close()
        try:
            assert git(self.session.path, "fsck", "--strict", "--no-dangling") == ""
            assert git(self.session.path, "status", "--porcelain") == ""
        finally:
            shutil.rmtree(self.folder)


def assert_says(memories: tuple[Memory, ...], model: Any) -> None:
    found: Any = {str(memory.id): told(memory) for memory in memories}

    assert found == model
    assert is_same(found, model)


SessionMachine.TestCase.settings = settings(
    max_examples=max(6, (settings.default or settings()).max_examples // 8),
    stateful_step_count=20,
    deadline=None,
)
test_session_agrees_with_the_model = SessionMachine.TestCase
