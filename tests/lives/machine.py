"""Random histories of several replicas and remotes, and what must hold after all have met.

The oracle is the user's sentence: what was redacted or deleted is nowhere, by a scan that
knows nothing of how it was taken out; what nobody removed is alive; all replicas are one.
"""

from __future__ import annotations

import os
import random
import string
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Final

from smp_git import Session, SmpError, Store
from smp_git.remove.history import journal
from tests import independent_scan
from tests.lives.meeting import reachable
from tests.support import git
from tests.sync.support import Machine

FIELDS: Final = ("rationale", "impact", "side_note")
_WEIGHTS: Final = {
    "edit": 5, "copy": 2, "by hand": 1, "undo": 1, "rollback": 1, "branch": 1, "delete": 1,
    "purge": 0.2, "restore": 2, "redact": 2, "sync": 6, "kill": 0.6,
}  # fmt: skip


class Run:
    """One random history."""

    def __init__(self, folder: Path, seed: int, *, weights: dict[str, float] = _WEIGHTS) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.weights = weights
        self.words: set[str] = set()
        self.remotes = [folder / f"{n}.git" for n in range(self.rng.choice((1, 1, 2)))]
        self.machines = [Machine(folder, name) for name in "ABCDE"[: self.rng.randint(2, 4)]]
        self.sessions = self._begun()
        # What was taken out, by memory; whether it was deleted, and ever restored.
        self.redacted: set[str] = set()
        self.deleted: dict[str, set[str]] = {}
        self.purged: set[str] = set()
        self.restored: set[str] = set()
        # Removed by an ordinary commit: an undo of its addition.
        self.removed: set[str] = set()
        self.log: list[str] = []

    def _begun(self) -> list[Session]:
        first = self.machines[0].store.create_session("shop", user="ada")
        self.names = [
            first.add(
                "decision",
                self.word(),
                agent="a",
                rationale=self.text(),
                impact=self.text(),
                side_note=self.text(),
            ).id
            for _ in range(2)
        ]
        for n, remote in enumerate(self.remotes):
            first.add_remote(f"r{n}", remote, create=True)
            first.sync(f"r{n}")
        sessions = [first]
        for machine in self.machines[1:]:
            session = machine.clone(self.remotes[0])
            for n, remote in enumerate(self.remotes[1:], 1):
                session.add_remote(f"r{n}", remote)
            sessions.append(session)
        return sessions

    def word(self) -> str:
        """Return a word that stands nowhere else."""
        word = "".join(self.rng.choices(string.ascii_lowercase, k=9))
        self.words.add(word)
        return word

    def text(self) -> str:
        return " ".join(self.word() for _ in range(self.rng.randint(1, 3)))

    def run(self, steps: int) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        number = self.rng.randrange(len(self.sessions))
        verb = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
        name = self.rng.choice(self.names)
        session = self.sessions[number]
        done = "refused"
        try:
            done = self._do(verb, session, number, name)
        except SmpError as error:
            done = f"refused: {error.message[:60]}"
        self.log.append(f"{'ABCDE'[number]} {verb} {name}: {done}")

    def _do(self, verb: str, session: Session, number: int, name: str) -> str:
        """Do one thing; return what came of it."""
        if verb in ("redact", "kill", "branch"):
            return self._at_length(verb, session, number, name)
        if verb in ("delete", "purge"):
            words = self._words_of(session, name)
            session.delete(name, purge=verb == "purge")
            self._note_deleted(name, words, purged=verb == "purge")
        elif verb in ("edit", "copy", "by hand"):
            self._write(verb, session, name)
        elif verb == "sync":
            session.sync(self.rng.choice(list(session.remotes)))
        else:
            self._go_back(verb, session, name)
        return "done"

    def _at_length(self, verb: str, session: Session, number: int, name: str) -> str:
        if verb == "redact":
            return self._redact(session)
        return self._kill(number, name) if verb == "kill" else self._branch(session, name)

    def _write(self, verb: str, session: Session, name: str) -> None:
        field = self.rng.choice(FIELDS)
        if verb == "by hand":
            self._by_hand(session, name)
        elif verb == "edit":
            session.edit(name, **{field: self.text()})
        else:
            memory = session.get(name)
            said = " ".join(str(memory.fields.get(each, "")) for each in FIELDS).split()
            have = [word for word in said if word in self.words]
            if have:
                text = f"{self.rng.choice(have)} {self.word()}"
                session.edit(name, **{field: text})

    def _go_back(self, verb: str, session: Session, name: str) -> None:
        if verb == "undo":
            session.undo()
            head = session._handle.reader.snapshot()
            self.removed.update(each for each in self.names if head.blob(each) is None)
        elif verb == "rollback":
            session.rollback(f"HEAD~{self.rng.randint(1, 3)}", name)
        else:
            session.restore(name)
            self.restored.add(name)

    def _note_deleted(self, name: str, words: set[str], *, purged: bool) -> None:
        self.deleted.setdefault(name, set()).update(words)
        if purged:
            self.purged.add(name)

    def _words_of(self, session: Session, name: str) -> set[str]:
        """Return the words of a memory in every version that a replica has of it."""
        path = f"decisions/000/{name}.yaml"
        shown = subprocess.run(["git", "log", "--all", "-p", "--format=", "--", path], cwd=session.path, capture_output=True, text=True, check=True).stdout  # fmt: skip
        return {word for word in self.words if word in shown}

    def _by_hand(self, session: Session, name: str) -> None:
        file = session.path / f"decisions/000/{name}.yaml"
        text = file.read_text() if file.exists() else ""
        lines = [line for line in text.splitlines() if not line.startswith("by_hand: ")]
        if not lines:
            return
        file.write_text("\n".join((*lines, f"by_hand: {self.word()}", "")))
        try:
            session.commit()
        except SmpError:
            subprocess.run(["git", "checkout", "--", "."], cwd=session.path, check=True, capture_output=True)  # fmt: skip
            raise

    def _branch(self, session: Session, name: str) -> str:
        if "idea" in [branch.name for branch in session.branches()]:
            if self.rng.random() < 0.5:
                session.merge("idea")
                return "merged"
            session.drop_branch("idea")
            return "dropped"
        with session.branch("idea") as idea:
            idea.edit(name, rationale=self.text())
        return "made"

    def _redact(self, session: Session) -> str:
        words = sorted(self._words_of(session, self.rng.choice(self.names)))
        if not words:
            return "nothing to redact"
        word = self.rng.choice(words)
        session.redact(word)
        self.redacted.add(word)
        return word

    def _kill(self, number: int, name: str) -> str:
        """Let a child die somewhere in the middle of a deletion, redaction or sync."""
        verb = self.rng.choice(("delete", "redact", "sync", "restore"))
        words = self._words_of(self.sessions[number], name)
        word = self.rng.choice(sorted(words)) if words else ""
        after = self.rng.randint(1, 12)
        store = self.sessions[number].path.parents[1]
        self.sessions[number].close()
        remote = self.rng.choice([f"r{n}" for n in range(len(self.remotes))])
        child = os.fork()
        if child == 0:
            _die(store, self.machines[number].clock, after, lambda s: _child(s, verb, name, word, remote))  # fmt: skip
        os.waitpid(child, 0)
        self.sessions[number] = session = self.machines[number].store.session("shop")
        gone = session._handle.reader.snapshot().entry(name) is None and verb == "delete"
        if gone:
            self._note_deleted(name, words, purged=False)
        if verb == "restore" and not gone:
            self.restored.add(name)
        if verb == "redact" and word and word.encode() not in b"".join(d for _, d in independent_scan.everything(session.path)):  # fmt: skip
            self.redacted.add(word)
        return f"{verb} {word} at {after}"

    def settle(self, rounds: int = 3) -> None:
        """Let every replica sync three times with every remote."""
        for _ in range(rounds):
            for session in self.sessions:
                for remote in session.remotes:
                    session.sync(remote)

    def rounds_to_rest(self) -> int:
        """Return after how many more rounds nothing changes."""
        before: list[object] = []
        for number in range(10):
            heads = [(s.log()[0].commit, git(s.path, "for-each-ref", "refs/heads")) for s in self.sessions]  # fmt: skip
            if heads == before and len({ref for ref, _ in heads}) == 1:
                return number - 1
            before = list(heads)
            self.settle(1)
        return 99

    def problems(self) -> list[str]:
        """Return everything that should not be."""
        found = []
        heads = [session.log()[0].commit for session in self.sessions]
        if len(set(heads)) != 1:
            found.append("the replicas differ")
        for session in self.sessions:
            for remote in session.remotes:
                session.sync(remote)
        if [session.log()[0].commit for session in self.sessions] != heads:
            found.append("idle syncs make commits")
        found += self._left()
        for session, machine in zip(self.sessions, self.machines, strict=True):
            found += [f"check: {problem.message}" for problem in session.check()]
            found += [f"verify: {hit}" for hit in session.verify().hits]
            found += self._not_alive(session)
            del machine
        return found

    def _left(self) -> list[str]:
        gone = set(self.redacted)
        for name, words in self.deleted.items():
            if name not in self.restored:
                gone |= words
        found = []
        for machine in self.machines:
            for where, data in independent_scan.everything(machine.store.path):
                found += [f"{word} in {where}" for word in gone if word.encode() in data]
        for remote in self.remotes:
            data = reachable(remote)
            found += [f"{word} in {remote.name}" for word in gone if word.encode() in data]
        return found

    def _not_alive(self, session: Session) -> list[str]:
        found = []
        for name in self.names:
            there = session._handle.reader.snapshot().entry(name) is not None
            if there and name in self.purged and self._is_final(session, name):
                found.append(f"{name} was purged and is alive")
            if there and name in self.deleted and name not in self.restored:
                found.append(f"{name} was deleted, never restored, and is alive")
            if not there and name not in self.deleted and name not in self.removed:
                found.append(f"{name} is gone, and nobody deleted it")
        return found

    def _is_final(self, session: Session, name: str) -> bool:
        return session._handle.reader.snapshot().tombstones.is_purged(name)

    def close(self) -> None:
        for session in self.sessions:
            session.close()


def _child(session: Session, verb: str, name: str, word: str, remote: str) -> None:
    if verb == "delete":
        session.delete(name)
    elif verb == "redact" and word:
        session.redact(word)
    elif verb == "restore":
        session.restore(name)
    elif verb == "sync":
        session.sync(remote)


def _die(store: Path, clock: object, after: int, act: Callable[[Session], None]) -> None:
    count = [0]
    reached = journal.reached

    def dying(step: str) -> None:
        count[0] += 1
        if count[0] >= after:
            os._exit(73)
        reached(step)

    journal.reached = dying
    try:
        act(Store.open(store, clock=clock).session("shop"))  # type: ignore[arg-type]
    finally:
        os._exit(0)


def _main() -> None:
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        with tempfile.TemporaryDirectory() as folder:
            run = Run(Path(folder), seed)
            run.run(30)
            run.settle()
            rounds = run.rounds_to_rest() + 3
            problems = run.problems()
            print(seed, "rest after", rounds, "rounds", "sound" if not problems else problems[:5])
            if problems:
                print("\n".join(run.log))
            run.close()


if __name__ == "__main__":
    _main()
