"""Two replicas, one memory: what each does, and what stands everywhere afterwards."""

from __future__ import annotations

import subprocess
from pathlib import Path

from smp_git import Session, SmpError
from tests import independent_scan
from tests.support import git, own, untyped
from tests.sync.support import Machine

X = "xantippe"
Y = "yggdrasil"
# Each operation on one replica, as steps.
OPERATIONS = {
    "nothing": (),
    "edit f": ("edit f",),
    "edit g": ("edit g",),
    "edit g with x": ("edit g with x",),
    "delete": ("delete",),
    "purge": ("purge",),
    "remove": ("remove",),
    "delete, restore": ("delete", "restore"),
    "delete, restore, edit g": ("delete", "restore", "edit g"),
    "redact x": ("redact x",),
    "redact y": ("redact y",),
    "redact x, edit f": ("redact x", "edit f"),
    "edit f, redact x": ("edit f", "redact x"),
    "redact x, delete": ("redact x", "delete"),
    "redact x, delete, restore": ("redact x", "delete", "restore"),
}
# The fields that the steps call f and g.
FIELDS = {"f": "rationale", "g": "side_note"}


def reachable(remote: Path) -> bytes:
    """Return the bytes of every object that a reference of a remote reaches."""
    names = git(remote, "rev-list", "--objects", "--all", "--no-object-names")
    return subprocess.run(["git", "cat-file", "--batch"], cwd=remote, input=names.encode(), capture_output=True, check=True).stdout  # fmt: skip


class Meeting:
    """Two machines and their remotes, with one memory that both know."""

    def __init__(self, folder: Path, remotes: int = 1) -> None:
        self.machines = {name: Machine(folder, name) for name in "AB"}
        self.remotes = [folder / f"{number}.git" for number in range(remotes)]
        a = self.machines["A"].store.create_session("shop", user="ada")
        a.add(
            "decision",
            "kiwi",
            agent="a",
            rationale=f"alpha {X} bravo {Y} charlie",
            **own(side_note="delta echo"),
        )
        for number, remote in enumerate(self.remotes):
            a.add_remote(f"r{number}", remote, create=True)
            a.sync(f"r{number}")
        b = self.machines["B"].clone(self.remotes[0])
        for number, remote in enumerate(self.remotes):
            if number:
                b.add_remote(f"r{number}", remote)
        self.sessions = {"A": a, "B": b}
        self.redacted: set[str] = set()
        self.notes: dict[str, list[str]] = {"A": [], "B": []}

    def do(self, name: str, steps: tuple[str, ...]) -> None:
        """Do steps on one replica."""
        for step in steps:
            self._step(self.sessions[name], name, step)

    def _step(self, session: Session, name: str, step: str) -> None:
        verb, _, rest = step.partition(" ")
        if verb == "edit":
            field = FIELDS[rest[0]]
            text = f"has {X} {name.lower()}side" if "with x" in rest else f"new {name.lower()}side {rest[0]}text"  # fmt: skip
            session.edit("DEC-0001", **untyped({field: text}))
        elif verb == "delete":
            session.delete("DEC-0001")
        elif verb == "purge":
            session.delete("DEC-0001", purge=True)
        elif verb == "remove":
            (session.path / "decisions/000/DEC-0001.yaml").unlink()
            session.commit()
        elif verb == "restore":
            session.restore("DEC-0001")
        elif verb == "redact":
            text = X if rest == "x" else Y
            self.redacted.add(text)
            session.redact(text)

    def settle(self, order: str) -> None:
        """Let both sync three times with every remote."""
        for _ in range(3):
            for name in order:
                session = self.sessions[name]
                for remote in session.remotes:
                    self.notes[name] += session.sync(remote).notes

    def shown(self) -> str:
        """Say what stands on both sides, and where a copy can be restored."""
        a = self.sessions["A"]
        try:
            memory = a.get("DEC-0001")
        except SmpError:
            where = "".join(name for name, s in self.sessions.items() if any(i.id == "DEC-0001" for i in s.trash()))  # fmt: skip
            return "gone" + (f", can be restored at {where}" if where else "")
        fields = {short: memory.fields.get(name) for short, name in FIELDS.items()}
        return " ".join(f"{short}={value}" for short, value in fields.items())

    def problems(self) -> list[str]:
        """Return everything that should not be."""
        found = []
        heads = {s.log()[0].commit for s in self.sessions.values()}
        if len(heads) != 1:
            found.append("the replicas differ")
        for machine in self.machines.values():
            for where, data in independent_scan.everything(machine.store.path):
                found += [f"{text} in {where}" for text in self.redacted if text.encode() in data]
        for remote in self.remotes:
            data = reachable(remote)
            found += [f"{text} in {remote.name}" for text in self.redacted if text.encode() in data]
        for name, session in self.sessions.items():
            found += [f"{name}: {problem.message}" for problem in session.check()]
            proof = session.verify()
            found += [f"{name}: verify {hit}" for hit in proof.hits]
        return found
