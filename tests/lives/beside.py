"""Random histories of what works beside writing and deleting, and what must hold afterwards.

    python -m tests.lives.beside 100 131        seeds from, to

Two replicas and a remote. Each history takes a few of the operations, so that pairs and triples
of them meet often: compactions and what brings back, imports, archives, values, undo, branches,
maintenance, names taken out, beside deletions, redactions, syncs and killed processes.
The oracles are plain Git, a scan of every byte, and what this module wrote and took away.
"""

from __future__ import annotations

import json
import random
import re
import string
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any, Final

from smp_git import Session, SmpError, Store
from smp_git.model.errors import DamagedError, InvalidFileError, StorageError
from smp_git.model.memory import MemoryId
from tests import independent_scan
from tests.conftest import Clock
from tests.lives.deaths import killed
from tests.lives.machine import isolate
from tests.support import git
from tests.sync.support import Machine

STEPS: Final = 18
# Besides these each history has so many others.
_ALWAYS: Final = ("add", "sync", "year")
_OTHERS: Final = 6
_WORD: Final = re.compile(r"w\d+x[a-z]{5}")
_SOUL: Final = re.compile(r"soul\d+q")
_FILE: Final = re.compile(r"[a-z]+/\d{3}/([A-Za-z]+-[0-9a-z-]+)\.(?:yaml|md)")
# What the program makes of other memories.
_MADE: Final = (b"type: summary", b"type: recall")
_EDITED: Final = ("DEC", "LEARN", "FIND", "ART")
_MAY_REMOVE: Final = frozenset(
    ("compact", "delete", "purge", "undo", "rollback", "kill", "branch", "forget made")
)


@dataclass
class Replica:
    """A store with the session, and the log that is imported there."""

    letter: str
    path: Path
    clock: Clock
    store: Store
    session: Session
    log: list[dict[str, object]] = field(default_factory=list)

    def open(self) -> None:
        """Open the session again, from the archive if it is there."""
        self.store = Store.open(self.path, clock=self.clock)
        with suppress(SmpError):
            self.store.unarchive_session("shop")
        self.session = self.store.session("shop")

    def files(self) -> dict[str, bytes]:
        """Return the memories of main, by plain Git."""
        rows = [row.split(None, 3) for row in git(self.session.path, "ls-tree", "-r", "main").splitlines()]  # fmt: skip
        found = {match[1]: row[2] for row in rows if (match := _FILE.fullmatch(row[3]))}
        return {name: git(self.session.path, "cat-file", "blob", blob).encode() for name, blob in found.items()}  # fmt: skip

    def souls(self) -> dict[str, list[str]]:
        """Return the memories that somebody wrote, by the word that tells each."""
        found: dict[str, list[str]] = {}
        for name, data in self.files().items():
            match = _SOUL.search(data.decode())
            if match and not any(each in data for each in _MADE):
                found.setdefault(match[0], []).append(name)
        return found


class Run:
    """One random history."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.problems: list[str] = []
        self._count = 0
        self._words: dict[str, set[str]] = {}
        # What is not there any more: deleted, redacted, taken out by an ordinary commit.
        self._deleted: set[str] = set()
        self._redacted: set[str] = set()
        self._removed: set[str] = set()
        self.acts = self._acts()
        others = sorted(self.acts.keys() - {*_ALWAYS})
        self.verbs = [*_ALWAYS, *self.rng.sample(others, _OTHERS)]
        self.log = [" ".join(self.verbs)]
        self.remote = folder / "remote.git"
        self.replicas = self._begun()

    def _acts(self) -> dict[str, Callable[[Replica], object]]:
        return {
            "add": self._add, "year": self._year, "talk": self._talk, "edit": self._edit,
            "sync": lambda it: it.session.sync().notes,
            "compact": lambda it: it.session.compact(1 - 1e-9).commit,
            "bring back": self._bring_back, "maintain": self._maintain, "recall": self._recall,
            "delete": lambda it: self._delete(it, purge=False),
            "purge": lambda it: self._delete(it, purge=True),
            "forget made": self._forget_made, "restore": self._restore, "redact": self._redact,
            "names": self._names, "undo": lambda it: it.session.undo().touches,
            "redo": lambda it: it.session.redo().touches, "rollback": self._rollback,
            "branch": self._branch, "settings": self._settings, "tag": self._tag,
            "value": self._value, "import": self._import, "archive": self._archive,
            "kill": self._kill,
        }  # fmt: skip

    def _begun(self) -> list[Replica]:
        machines = [Machine(self.folder, each, "redaction: off", "auto_compact: off") for each in "AB"]  # fmt: skip
        first = machines[0].store.create_session("shop", user="ada")
        first.add_remote("origin", self.remote, create=True)
        one = Replica("A", self.folder / "A", machines[0].clock, machines[0].store, first)
        for _ in range(5):
            self._add(one)
            self._talk(one)
        one.clock.now += timedelta(days=200)
        self._talk(one)
        first.sync()
        second = machines[1].clone(self.remote)
        machines[1].clock.now = one.clock.now
        return [one, Replica("B", self.folder / "B", machines[1].clock, machines[1].store, second)]

    # What is written

    def _text(self, soul: str | None = None) -> str:
        self._count += 1
        soul = soul or f"soul{self._count}q"
        word = f"w{self._count}x" + "".join(self.rng.choices(string.ascii_lowercase, k=5))
        self._words.setdefault(soul, set()).add(word)
        return f"{soul} says {word}"

    def _any(self, replica: Replica, *kinds: str) -> tuple[str, str]:
        found = [
            (name, soul)
            for soul, names in replica.souls().items()
            for name in names
            if not kinds or name.partition("-")[0] in kinds
        ]
        return self.rng.choice(sorted(found)) if found else ("DEC-0001", "")

    def _add(self, replica: Replica) -> object:
        kind: Any = self.rng.choice(("decision", "learning", "finding", "artifact"))
        return replica.session.add(kind, f"{self._text()} {'x' * 200}", agent="a").id

    def _talk(self, replica: Replica) -> None:
        for _ in range(12):
            text = f"We agreed that Vendor{self._count} gets it. {self._text()}"
            replica.session.add("turn", text, agent="user")

    def _edit(self, replica: Replica) -> object:
        name, soul = self._any(replica, *_EDITED)
        return replica.session.edit(name, rationale=self._text(soul)).id if soul else None

    def _year(self, replica: Replica) -> None:
        replica.clock.now += timedelta(days=self.rng.choice((1, 9, 40, 250)))

    def _branch(self, replica: Replica) -> str:
        if "idea" in [each.name for each in replica.session.branches()]:
            replica.session.merge("idea")
            return "merged"
        name, soul = self._any(replica, *_EDITED)
        with replica.session.branch("idea") as idea:
            if soul:
                idea.edit(name, rationale=self._text(soul))
        return f"made, with {name}"

    def _settings(self, replica: Replica) -> None:
        replica.session.configure({"quota_bytes": self.rng.randint(5_000_000, 9_000_000)})

    def _tag(self, replica: Replica) -> object:
        has_one = "v" in [each.name for each in replica.session.tags()]
        return replica.session.tag("v", f"HEAD~{self.rng.randint(0, 2)}", move=has_one).commit

    def _value(self, replica: Replica) -> object:
        values, key = replica.session.values("app"), f"k{self.rng.randint(0, 2)}"
        act = self.rng.choice(("put", "put", "remove", "erase"))
        if act == "put":
            self._count += 1
            given = {"number": self._count, "long": "y" * self.rng.choice((10, 10, 1_200_000))}
            values.put(key, given)
            if (kept := values.get(key)) is None or kept.value != given:
                self._bad(replica, f"{key} is not what was put")
            return key
        done: object = values.remove(key) if act == "remove" else self._proved(replica, values.erase(key))  # fmt: skip
        if values.get(key) is not None:
            self._bad(replica, f"{key} is there after {act}")
        return key, act, done

    def _import(self, replica: Replica) -> object:
        text, path = self._text(), self.folder / f"{replica.letter}.jsonl"
        line = {"id": f"m{self._count}", "type": "finding", "ts": "2026-01-11T14:30:00Z"}
        replica.log.append({**line, "data": {"issue": text, "severity": "low"}})
        path.write_text("".join(json.dumps(each) + "\n" for each in replica.log))
        return replica.store.import_(path, session="shop").sessions[0].as_json()

    # What takes away, and what brings back

    def _bring_back(self, replica: Replica) -> object:
        found = sorted(each.id for each in replica.session.compacted())
        if not found:
            return None
        name = self.rng.choice(found)
        replica.session.bring_back(name)
        if name not in replica.files():
            self._bad(replica, f"{name} was brought back and is not there")
        return name

    def _maintain(self, replica: Replica) -> object:
        replica.session.close()
        try:
            done = replica.store.maintain()
            return [(each.step, each.count) for each in done.actions], dict(done.failed)
        finally:
            replica.open()

    def _archive(self, replica: Replica) -> None:
        replica.session.close()
        try:
            replica.store.archive_session("shop")
        finally:
            replica.open()

    def _recall(self, replica: Replica) -> object:
        name, soul = self._any(replica)
        return replica.session.recall(f"what of {soul}", name).id if soul else None

    def _proved(self, replica: Replica, receipt: Any) -> bool:
        """Whether there is a receipt, whose proof is clean."""
        if receipt is not None and not receipt.proof.clean:
            self._bad(replica, f"the proof of {receipt.deletion} found {receipt.proof.hits}")
        return receipt is not None

    def _delete(self, replica: Replica, *, purge: bool) -> object:
        name, soul = self._any(replica)
        self._proved(replica, replica.session.delete(name, purge=purge))
        self._deleted.add(soul)
        return name, soul

    def _forget_made(self, replica: Replica) -> object:
        found = [name for name, data in replica.files().items() if any(each in data for each in _MADE)]  # fmt: skip
        return [self._proved(replica, replica.session.delete(name)) for name in found[:1]]

    def _restore(self, replica: Replica) -> object:
        found = sorted(each.id for each in replica.session.trash())
        if not found:
            return None
        name = self.rng.choice(found)
        replica.session.restore(name, with_history=self.rng.random() < 0.3)
        self._deleted -= {soul for soul, names in replica.souls().items() if name in names}
        return name

    def _in_history(self, replica: Replica) -> list[str]:
        shown = git(replica.session.path, "log", "--all", "-p", "--format=")
        return sorted(set(_WORD.findall(shown)) - self._redacted)

    def _redact(self, replica: Replica) -> object:
        word = self.rng.choice(self._in_history(replica) or ["nothing"])
        done = replica.session.redact(word)
        if self._proved(replica, done.receipt) and not done.left:
            self._redacted.add(word)
        return word, done.ids, done.gone

    def _names(self, replica: Replica) -> object:
        name, soul = self._any(replica)
        return replica.session.anonymize_memories(name).ids if soul else None

    def _rollback(self, replica: Replica) -> object:
        name, _ = self._any(replica)
        return replica.session.rollback(f"HEAD~{self.rng.randint(1, 4)}", name).touches

    def _kill(self, replica: Replica) -> object:
        """Let a child die somewhere in the middle of what it does."""
        compacted = [each.id for each in replica.session.compacted()] or [MemoryId("LEARN-0001")]
        word, back = self.rng.choice(self._in_history(replica) or ["nothing"]), self.rng.choice(compacted)  # fmt: skip
        name, soul = self._any(replica)
        log = self.folder / f"{replica.letter}.jsonl"
        acts: dict[str, Callable[[Store, Session], object]] = {
            "compact": lambda _, it: it.compact(1 - 1e-9),
            "bring back": lambda _, it: it.bring_back(back),
            "redact": lambda _, it: it.redact(word),
            "delete": lambda _, it: it.delete(name),
            "names": lambda _, it: it.anonymize_memories(name),
            "sync": lambda _, it: it.sync(),
            "erase": lambda _, it: it.values("app").erase("k0"),
            "import": lambda store, _: store.import_(log, session="shop"),
            "archive": lambda store, _: store.archive_session("shop"),
            "maintain": lambda store, _: store.maintain(),
        }
        verb, after = self.rng.choice(sorted(acts)), self.rng.randint(1, 50)
        replica.session.close()

        def work() -> None:
            store = Store.open(replica.path, clock=replica.clock)
            acts[verb](store, store.session("shop"))

        died = killed(work, after)
        replica.clock.now += timedelta(seconds=20)
        replica.open()
        if verb == "delete" and soul and soul not in replica.souls():
            self._deleted.add(soul)
        return verb, after, died

    # Steps

    def run(self, steps: int = STEPS) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        replica, verb = self.rng.choice(self.replicas), self.rng.choice(self.verbs)
        before = replica.souls().keys()
        try:
            said = self.acts[verb](replica)
        except (DamagedError, InvalidFileError, StorageError) as error:
            said = f"{type(error).__name__}: {error}"
            self._bad(replica, f"{verb}: {said}")
        except SmpError as error:
            said = f"refused: {error.message[:90]}"
        self.log.append(f"{replica.letter} {verb}: {said}")
        self._compare(replica, verb, before)

    def _compare(self, replica: Replica, verb: str, before: Any) -> None:
        """Note what a step took away, and say what it should not have."""
        there = replica.souls()
        lost = before - there.keys()
        if verb in _MAY_REMOVE:
            self._removed |= lost
        elif lost - self._removed - self._deleted:
            self._bad(replica, f"{verb} lost {sorted(lost)}")
        for soul, names in there.items():
            if len(names) > 1:
                self._bad(replica, f"{soul} is there more than once after {verb}: {names}")

    def _bad(self, replica: Replica, what: str) -> None:
        self.problems.append(f"{replica.letter}: {what}")

    # The end

    def _settle(self, rounds: int) -> list[str]:
        for _ in range(rounds):
            for replica in self.replicas:
                self.log.append(f"{replica.letter} settles: {replica.session.sync().notes}")
        folders = [*(replica.session.path for replica in self.replicas), self.remote]
        return [git(each, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads") for each in folders]  # fmt: skip

    def found(self) -> list[str]:
        """Return everything that should not be, after all have met."""
        latest = max(replica.clock.now for replica in self.replicas)
        for replica in self.replicas:
            replica.clock.now = latest
        heads = self._settle(4)
        if len(set(heads)) != 1:
            self.problems.append(f"the replicas and the remote differ: {heads}")
        if self._settle(1) != heads:
            self.problems.append("idle syncs make commits")
        for replica in self.replicas:
            self._look(replica)
        return self.problems

    def _look(self, replica: Replica) -> None:
        session, there = replica.session, replica.souls().keys()
        for problem in session.check():
            self._bad(replica, f"check: {problem.message}")
        if not (proof := session.verify()).clean:
            self._bad(replica, f"verify: {proof.hits}")
        if status := git(session.path, "status", "--porcelain"):
            self._bad(replica, f"git status: {status}")
        git(session.path, "fsck", "--strict")
        if back := there & self._deleted:
            self._bad(replica, f"{sorted(back)} were deleted and are there")
        if lost := self._words.keys() - there - self._removed - self._deleted:
            self._bad(replica, f"{sorted(lost)} are gone, and nobody removed them")
        gone = self._redacted.union(*(self._words.get(soul, set()) for soul in self._deleted))
        session.close()
        for where, data in independent_scan.everything(replica.path):
            for word in _WORD.findall(data.decode("utf-8", "replace")):
                if word in gone:
                    self._bad(replica, f"{word} in {where}")
        replica.open()

    def close(self) -> None:
        for replica in self.replicas:
            replica.session.close()


def tried(folder: Path, seed: int) -> Run:
    """Do one history; its problems say what should not be."""
    run = Run(folder, seed)
    try:
        run.run()
        run.found()
    except Exception as error:  # noqa: BLE001 - each is a problem of its own
        run.problems.append(f"{type(error).__name__}: {error}")
    finally:
        run.close()
    return run


def _main() -> None:
    isolate(tempfile.mkdtemp())
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        with tempfile.TemporaryDirectory() as folder:
            run = tried(Path(folder), seed)
            print(seed, run.problems[:6] or "sound", flush=True)
            if run.problems:
                print("\n".join(run.log), flush=True)


if __name__ == "__main__":
    _main()
