"""Random histories of replicas and remotes, and what must hold after all have met.

    python -m tests.lives.machine 100 131        seeds from, to

Three to five replicas, one or two remotes and a person with the git command. Some replicas
are copies of a folder, some are put back to an earlier state, processes are killed.
The oracle is the user's sentence, in `tests.lives.ledger`.
"""

from __future__ import annotations

import os
import random
import shutil
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
from tests import independent_scan
from tests.conftest import Clock
from tests.lives.deaths import killed
from tests.lives.ledger import FIELDS, Ledger, files_of, in_history, soul_of, words
from tests.lives.meeting import reachable
from tests.lives.plain import Person
from tests.support import git, untyped
from tests.sync.images import copied, kept, put_back
from tests.sync.support import Machine

STEPS: Final = 30
_MOST_REPLICAS: Final = 5
_LETTERS: Final = "ABCDE"
WEIGHTS: Final[dict[str, float]] = {
    "add": 2, "edit": 5, "copy": 1, "by hand": 1, "undo": 0.7, "rollback": 0.7, "branch": 1,
    "delete": 1, "purge": 0.3, "restore": 2, "redact": 2, "sync": 6, "kill": 1,
    "git edit": 1, "git rm": 0.5, "git pull": 1, "git push": 0.7, "git fetch": 0.5, "git revert": 0.4,
    "git cherry-pick": 0.3, "git old": 0.7, "person": 2, "copy folder": 0.4, "keep": 0.5, "put back": 0.5, "clock": 0.3,
}  # fmt: skip


@dataclass
class Replica:
    """One folder with a session, and what is kept of it."""

    letter: str
    session: Session
    clock: Clock
    backup: Path | None = None
    # Deleted and redacted here since the last exchange with a remote.
    ended: set[str] = field(default_factory=set)
    redacted: set[str] = field(default_factory=set)

    @property
    def store(self) -> Path:
        return self.session.path.parents[1]

    def close(self) -> None:
        self.session.close()

    def open(self) -> None:
        """Open the session again, as another process does."""
        self.session = Store.open(self.store, clock=self.clock).session("shop")


class Run:
    """One random history."""

    def __init__(self, folder: Path, seed: int, *, weights: dict[str, float] = WEIGHTS) -> None:
        self.rng = random.Random(seed)
        self.folder = folder
        self.weights = weights
        self.ledger = Ledger()
        self.log: list[str] = []
        self.notes: list[str] = []
        # Every version that anybody had of a memory's file.
        self.versions: dict[str, list[bytes]] = {}
        self._count = 0
        self.remotes = [folder / f"{n}.git" for n in range(self.rng.choice((1, 1, 2)))]
        self.replicas = self._begun(self.rng.randint(3, 4))
        self.git = Person(self.rng, self._text)
        self.person = self.git.clone(self.remotes[0], folder / "person")

    def _begun(self, number: int) -> list[Replica]:
        machines = [Machine(self.folder, letter, "redaction: off") for letter in _LETTERS[:number]]
        first = machines[0].store.create_session("shop", user="ada")
        for _ in range(2):
            self._add(first)
        for n, remote in enumerate(self.remotes):
            first.add_remote(f"r{n}", remote, create=True)
            first.sync(f"r{n}")
        found = [Replica("A", first, machines[0].clock)]
        for machine, letter in zip(machines[1:], _LETTERS[1:], strict=False):
            session = machine.clone(self.remotes[0])
            session.remove_remote("origin")
            for n, remote in enumerate(self.remotes):
                session.add_remote(f"r{n}", remote)
            found.append(Replica(letter, session, machine.clock))
        return found

    # What is written

    def _word(self) -> str:
        """Return a word that stands nowhere else."""
        self._count += 1
        return f"w{self._count}x" + "".join(self.rng.choices(string.ascii_lowercase, k=5))

    def _said(self) -> str:
        return " ".join(self._word() for _ in range(self.rng.randint(1, 3)))

    def _text(self, soul: str, name: str, text: str | None = None) -> str:
        """Return a text of a field of a memory, and note that somebody writes it."""
        text = text or self._said()
        self.ledger.wrote(soul, name, text)
        return text

    def _add(self, session: Session) -> str:
        self._count += 1
        soul = f"soul{self._count}q"
        fields: dict[str, Any] = {name: self._said() for name in FIELDS[:3]}
        content = f"{soul} {self._word()}"
        self.ledger.born(soul, content, fields)
        return session.add("decision", content, agent="a", **fields).id

    # Steps

    def run(self, steps: int = STEPS) -> None:
        for _ in range(steps):
            self.step()

    def step(self) -> None:
        replica = self.rng.choice(self.replicas)
        verb = self.rng.choices(list(self.weights), list(self.weights.values()))[0]
        before = files_of(replica.session.path)
        name = self.rng.choice(sorted(before) or ["DEC-0001"])
        done = "refused"
        try:
            done = self._do(verb, replica, name) or "done"
        except SmpError as error:
            done = f"refused: {error.message[:70]}"
        after = files_of(replica.session.path)
        for each, data in after.items():
            if data not in self.versions.setdefault(each, []):
                self.versions[each].append(data)
        self._compare(verb, before, after)
        self.log.append(f"{replica.letter} {verb} {name}: {done}")

    def _compare(self, verb: str, before: dict[str, bytes], after: dict[str, bytes], *, local: bool = False) -> None:  # fmt: skip
        """Note what a step took away on a main branch, knowing it; `local` is what nobody else has."""
        brings = verb in ("sync", "git pull", "kill")
        kept = () if local else after.values()
        self.ledger.stands(
            before.values(), after.values(), kept, excuse=verb not in ("sync", "git pull")
        )
        if not brings:
            left = set(map(soul_of, after.values()))
            for soul in set(map(soul_of, before.values())) - left - {None}:
                self.ledger.told[str(soul)].is_removed = True

    def _do(self, verb: str, replica: Replica, name: str) -> str | None:
        """Do one thing; say what came of it."""
        session = replica.session
        if verb.startswith("git "):
            # An open handle lets Git's index follow a moment later; a person is slower than that.
            session.check()
            remote = f"r{self.rng.randrange(len(self.remotes))}"
            return self._plainly(verb, session.path, remote, name)
        special: dict[str, Callable[[], str | None]] = {
            "add": lambda: self._add(session),
            "person": self._outside,
            "branch": lambda: self._branch(session, name),
            "redact": lambda: self._redact(replica, name),
            "delete": lambda: self._delete(replica, name, purge=False),
            "purge": lambda: self._delete(replica, name, purge=True),
            "restore": lambda: self._restore(session),
            "sync": lambda: self._sync(replica),
            "kill": lambda: self._kill(replica, name),
            "copy folder": lambda: self._copy_folder(replica),
            "keep": lambda: self._keep(replica),
            "put back": lambda: self._put_back(replica),
            "clock": lambda: self._turn_clock(replica),
        }
        return special[verb]() if verb in special else self._write(verb, session, name)

    def _write(self, verb: str, session: Session, name: str) -> str | None:
        if verb == "undo":
            session.undo()
            return None
        if verb == "rollback":
            back = self.rng.randint(1, 3)
            session.rollback(f"HEAD~{back}", name)
            return f"to HEAD~{back}"
        soul = self._soul(session, name)
        if soul is None:
            return "not there"
        if verb == "by hand":
            return self._by_hand(session, name, soul)
        field_name = self.rng.choice(FIELDS[:3])
        said = self._said()
        if verb == "copy":
            there = sorted(words(session.file(name).read_bytes()))
            said = f"{self.rng.choice(there)} {said}" if there else said
        session.edit(name, **untyped({field_name: self._text(soul, field_name, said)}))
        return f"{field_name} = {said}"

    def _soul(self, session: Session, name: str) -> str | None:
        data = files_of(session.path).get(name)
        return soul_of(data) if data is not None else None

    def _by_hand(self, session: Session, name: str, soul: str) -> str:
        file = session.file(name)
        lines = [line for line in file.read_text().splitlines() if not line.startswith("by_hand: ")]
        file.write_text("\n".join((*lines, f"by_hand: {self._text(soul, 'by_hand')}", "")))
        try:
            session.commit()
        except SmpError:
            git(session.path, "checkout", "--", ".")
            raise
        return "committed"

    def _branch(self, session: Session, name: str) -> str:
        if "idea" in [branch.name for branch in session.branches()]:
            if self.rng.random() < 0.5:
                session.merge("idea")
                return "merged"
            session.drop_branch("idea")
            return "dropped"
        soul = self._soul(session, name)
        if soul is not None:
            with session.branch("idea") as idea:
                idea.edit(name, rationale=self._text(soul, "rationale"))
        return "made"

    # What takes away, and what brings back

    def _delete(self, replica: Replica, name: str, *, purge: bool) -> str:
        soul = self._soul(replica.session, name)
        replica.session.delete(name, purge=purge)
        return self._note_deleted(replica, soul, purge=purge)

    def _note_deleted(self, replica: Replica, soul: str | None, *, purge: bool) -> str:
        if soul is None:
            return "not there"
        told = self.ledger.told[soul]
        told.is_deleted = True
        told.is_purged = told.is_purged or purge
        replica.ended.add(soul)
        return soul

    def _restore(self, session: Session) -> str:
        there = sorted(item.id for item in session.trash())
        if not there:
            return "nothing to restore"
        name = self.rng.choice(there)
        session.restore(name)
        soul = self._soul(session, name)
        if soul is not None:
            self.ledger.told[soul].is_restored = True
        return f"{name} {soul}"

    def _redact(self, replica: Replica, name: str) -> str:
        there = sorted(in_history(replica.session.path, name) - self.ledger.redacted)
        if not there:
            return "nothing to redact"
        word = self.rng.choice(there)
        done = replica.session.redact(word)
        self.ledger.reach(word)
        if done.receipt is None or done.left:
            return f"{word}: left in {done.left}"
        self.ledger.redact(word)
        replica.redacted.add(word)
        return word

    def _kill(self, replica: Replica, name: str) -> str:
        """Let a child die somewhere in the middle of a deletion, redaction, restoration or sync."""
        verb, soul = self.rng.choice(("delete", "redact", "sync", "restore")), self._soul(replica.session, name)  # fmt: skip
        there = sorted(in_history(replica.session.path, name))
        word = self.rng.choice(there) if there else ""
        trash = sorted(item.id for item in replica.session.trash())
        target = self.rng.choice(trash) if verb == "restore" and trash else name
        remote, after = f"r{self.rng.randrange(len(self.remotes))}", self.rng.randint(1, 60)
        replica.close()

        def work() -> None:
            session = Store.open(replica.store, clock=replica.clock).session("shop")
            acts: dict[str, Callable[[], object]] = {
                "delete": lambda: session.delete(name),
                "redact": lambda: session.redact(word) if word else None,
                "restore": lambda: session.restore(target),
                "sync": lambda: session.sync(remote),
            }
            acts[verb]()

        died = killed(work, after)
        replica.clock.now += timedelta(seconds=20)
        replica.open()
        self._note_killed(replica, verb, soul, word, target)
        return f"{verb} {word if verb == 'redact' else target} at {after} ({'killed' if died else 'done'})"

    def _note_killed(self, replica: Replica, verb: str, soul: str | None, word: str, target: str) -> None:  # fmt: skip
        """Note what came of a killed process, as far as its replica shows it."""
        found = self._soul(replica.session, target)
        if verb == "delete" and soul is not None and found is None:
            self._note_deleted(replica, soul, purge=False)
        if verb == "restore" and found is not None:
            self.ledger.told[found].is_restored = True
        if verb == "redact" and word and not self._holds(replica, word):
            self.ledger.redact(word)
            replica.redacted.add(word)

    @staticmethod
    def _holds(replica: Replica, word: str) -> bool:
        replica.close()
        found = any(word.encode() in data for _, data in independent_scan.everything(replica.store))
        replica.open()
        return found

    def _sync(self, replica: Replica, remote: str | None = None) -> str:
        remote = remote or self.rng.choice(list(replica.session.remotes))
        done = replica.session.sync(remote)
        replica.ended.clear()
        replica.redacted.clear()
        said = [*done.notes, *(f"{name} was deleted elsewhere" for name in done.rewritten)]
        self.notes += said
        return f"{remote} {'; '.join(said)}"

    # Folders, clocks, and Git without the program

    def _copy_folder(self, replica: Replica) -> str:
        """Make a replica of a copy of a whole store, as it is or as an image of a container is."""
        if len(self.replicas) == _MOST_REPLICAS:
            return "enough of them"
        letter, is_image = _LETTERS[len(self.replicas)], self.rng.random() < 0.7
        with suppress(SmpError):
            self._sync(replica)
        replica.close()
        if is_image:
            session = copied(replica.session, self.folder, letter)
            clock = session._handle.clock
        else:
            shutil.copytree(replica.store, self.folder / letter, symlinks=True)
            clock = Clock()
            clock.now = replica.clock.now
            session = Store.open(self.folder / letter, clock=clock).session("shop")
        replica.open()
        clock.now += timedelta(seconds=self.rng.randint(0, 900))  # type: ignore[attr-defined]
        self.replicas.append(Replica(letter, session, clock))  # type: ignore[arg-type]
        return f"as {'an image' if is_image else 'a folder'} to {letter}"

    def _keep(self, replica: Replica) -> str:
        self._count += 1
        folder = self.folder / f"kept{self._count}"
        folder.mkdir()
        # Nothing goes on in the background while a folder is copied.
        replica.close()
        replica.backup = kept(replica.session, folder)
        replica.open()
        return "kept"

    def _put_back(self, replica: Replica) -> str:
        """Put a folder back to an earlier state; what no remote knows yet is forgotten with it."""
        if replica.backup is None:
            return "nothing kept"
        self.ledger.forget(replica.ended, replica.redacted)
        replica.session = put_back(replica.session, replica.backup)
        clock = replica.session._handle.clock
        replica.clock = clock  # type: ignore[assignment]
        return "put back"

    def _turn_clock(self, replica: Replica) -> str:
        replica.clock.now += timedelta(minutes=self.rng.choice((-90, -5, 5, 90)))
        return f"now {replica.clock.now}"

    def _plainly(self, verb: str, folder: Path, remote: str, name: str) -> str:
        acts: dict[str, Callable[[], str]] = {
            "git edit": lambda: self.git.edit(folder),
            "git rm": lambda: self.git.remove(folder),
            "git pull": lambda: self.git.pull(folder, remote),
            "git push": lambda: self.git.push(folder, remote),
            "git fetch": lambda: self.git.fetch(folder, remote),
            "git revert": lambda: self.git.revert(folder),
            "git cherry-pick": lambda: self.git.cherry_pick(folder, remote),
            "git old": lambda: self.git.put_back(folder, name, self._old(folder, name)),
        }
        return acts[verb]()

    def _old(self, folder: Path, name: str) -> bytes | None:
        """Return an earlier version of a memory, of the one that a folder has if it has it."""
        here = files_of(folder).get(name)
        soul = soul_of(here) if here is not None else None
        found = [each for each in self.versions.get(name, ()) if soul in (None, soul_of(each))]
        return self.rng.choice(found) if found else None

    def _outside(self) -> str:
        """Let the person do something in a clone that knows nothing of the program."""
        before = files_of(self.person, "HEAD")
        verb = self.rng.choice(("edit", "edit", "rm", "revert", "pull and push", "pull and push", "anew"))  # fmt: skip
        if verb == "anew":
            return f"anew: {self.git.start_anew(self.person, 'origin')}"
        if verb == "pull and push":
            pulled = self.git.pull(self.person, "origin")
            pushed = self.git.push(self.person, "origin")
            if pushed == "pushed":
                there = files_of(self.person, "HEAD").values()
                self.ledger.stands(there, there, there, excuse=False)
            return f"{pulled}, {pushed}"
        said = self._plainly(f"git {verb}", self.person, "origin", "")
        self._compare(verb, before, files_of(self.person, "HEAD"), local=True)
        return f"{verb}: {said}"

    # The end

    def settle(self, rounds: int = 3) -> None:
        """Let every replica sync with every remote, so many times."""
        for _ in range(rounds):
            for replica in self.replicas:
                for remote in replica.session.remotes:
                    self.log.append(f"{replica.letter} settle: {self._sync(replica, remote)}")

    def rounds_to_rest(self) -> int:
        """Return after how many more rounds nothing changes."""
        before = self._heads()
        for number in range(10):
            self.settle(1)
            now = self._heads()
            if now == before and len(set(now)) == 1:
                return number
            before = now
        return 99

    def _heads(self) -> list[str]:
        """Return where the branches of every replica and remote are."""
        folders = [*(replica.session.path for replica in self.replicas), *self.remotes]
        return [git(each, "for-each-ref", "--format=%(refname) %(objectname)", "refs/heads") for each in folders]  # fmt: skip

    def problems(self) -> list[str]:
        """Return everything that should not be."""
        found = []
        heads = self._heads()
        if len(set(heads)) != 1:
            found.append(f"the replicas and remotes differ: {heads}")
        self.settle(1)
        if self._heads() != heads:
            found.append("idle syncs make commits")
        for replica in self.replicas:
            found += [f"{replica.letter}: {each}" for each in self._of(replica)]
        for remote in self.remotes:
            data = reachable(remote)
            found += [f"{word} in {remote.name}" for word in self.ledger.gone() if word.encode() in data]  # fmt: skip
        return found

    def _of(self, replica: Replica) -> list[str]:
        session, gone = replica.session, sorted(self.ledger.gone())
        found = [f"check: {problem.message}" for problem in session.check()]
        found += [f"verify: {hit}" for hit in session.verify().hits]
        found += [f"git status: {line}" for line in git(session.path, "status", "--porcelain").splitlines()]  # fmt: skip
        git(session.path, "fsck", "--strict")
        # Nothing goes on in the background while the folder is read.
        replica.close()
        for where, data in independent_scan.everything(replica.store):
            found += [f"{word} in {where}" for word in gone if word.encode() in data]
        return found + self.ledger.problems(files_of(session.path), self.notes)

    def close(self) -> None:
        for replica in self.replicas:
            replica.close()


def tried(folder: Path, seed: int) -> tuple[Run, int, list[str]]:
    """Do one history; return it, the rounds it took to come to rest, and what should not be."""
    run = Run(folder, seed)
    try:
        run.run()
        run.log.append("--- settle")
        run.settle()
        more = run.rounds_to_rest()
        return run, more, run.problems()
    except Exception as error:  # noqa: BLE001 - each is a problem of its own
        return run, 0, [f"{type(error).__name__}: {error}"]
    finally:
        run.close()


def isolate(home: str) -> None:
    """Let nobody's Git configuration or store be of concern."""
    for name in [name for name in os.environ if name.startswith(("GIT_", "SMP_", "XDG_"))]:
        del os.environ[name]
    os.environ |= {"HOME": home, "GIT_CONFIG_NOSYSTEM": "1", "GIT_TERMINAL_PROMPT": "0"}


def _main() -> None:
    home = tempfile.mkdtemp()
    isolate(home)
    for seed in range(int(sys.argv[1]), int(sys.argv[2])):
        with tempfile.TemporaryDirectory() as folder:
            run, more, problems = tried(Path(folder), seed)
            print(seed, "rest after", 3 + more, "rounds", problems[:6] or "sound", flush=True)
            if problems:
                print("\n".join(run.log), flush=True)
    shutil.rmtree(home)


if __name__ == "__main__":
    _main()
