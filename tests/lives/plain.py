"""What a person does with the git command: in the folder of a replica, and in a clone of a remote."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.lives.ledger import files_of, soul_of

_SETTINGS: Final = (
    "-c", "core.hooksPath=/dev/null", "-c", "user.name=a person", "-c", "user.email=person@example.com",
)  # fmt: skip


def run(folder: Path, *arguments: str) -> bool:
    """Run Git past the hooks; return whether it did what was asked."""
    command = ["git", *_SETTINGS, *arguments]
    return not subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode


class Person:
    """Somebody with Git and no more."""

    def __init__(self, rng: random.Random, write: Callable[[str, str], str]) -> None:
        self._rng = rng
        # Notes a new text of a memory and a field, and returns it.
        self._write = write

    def clone(self, remote: Path, folder: Path) -> Path:
        """Clone a remote as anybody would."""
        run(folder.parent, "clone", "-q", str(remote), folder.name)
        return folder

    def edit(self, folder: Path) -> str:
        """Change a line of a memory by hand, and commit it."""
        name = self._any(folder)
        if name is None:
            return "nothing there"
        path = folder / f"decisions/000/{name}.yaml"
        soul = soul_of(path.read_bytes()) if path.exists() else None
        if soul is None:
            return "not checked out"
        lines = [line for line in path.read_text().splitlines() if not line.startswith("by_hand: ")]
        path.write_text("\n".join((*lines, f"by_hand: {self._write(soul, 'by_hand')}", "")))
        return self._committed(folder, f"edit {name} by hand")

    def remove(self, folder: Path) -> str:
        """Take a memory away by an ordinary commit."""
        name = self._any(folder)
        if name is None or not run(folder, "rm", "-q", f"decisions/000/{name}.yaml"):
            return "nothing there"
        return self._committed(folder, f"remove {name}")

    def put_back(self, folder: Path, name: str, old: bytes | None) -> str:
        """Commit an old version of a memory's file, as a copy elsewhere or an old clone has it."""
        path = folder / f"decisions/000/{name}.yaml"
        if old is None or run(folder, "rev-parse", "-q", "--verify", "MERGE_HEAD"):
            return "nothing to put back"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(old)
        run(folder, "add", "--", str(path))
        return self._committed(folder, f"put {name} back")

    def pull(self, folder: Path, remote: str) -> str:
        """Merge what a remote has, if that goes by itself."""
        if not run(folder, "fetch", "-q", remote):
            return "not fetched"
        if run(folder, "merge", "-q", "--no-edit", f"{remote}/main"):
            return "merged"
        run(folder, "merge", "--abort")
        return "conflict"

    def push(self, folder: Path, remote: str) -> str:
        return "pushed" if run(folder, "push", "-q", remote, "main") else "not pushed"

    def fetch(self, folder: Path, remote: str) -> str:
        """Fetch what a remote has, past every check."""
        return "fetched" if run(folder, "fetch", "-q", remote) else "not fetched"

    def start_anew(self, folder: Path, remote: str) -> str:
        """Take what a remote has in the place of everything here."""
        run(folder, "fetch", "-q", remote)
        return "reset" if run(folder, "reset", "-q", "--hard", f"{remote}/main") else "not reset"

    def revert(self, folder: Path) -> str:
        """Take back a commit that is not the first."""
        back = self._rng.randint(0, 2)
        if not run(folder, "rev-parse", "--verify", f"HEAD~{back + 1}"):
            return "nothing to revert"
        if run(folder, "revert", "--no-edit", f"HEAD~{back}"):
            return f"reverted ~{back}"
        run(folder, "revert", "--abort")
        return "conflict"

    def cherry_pick(self, folder: Path, remote: str) -> str:
        """Take one commit of a remote, and not what it stands on."""
        run(folder, "fetch", "-q", remote)
        if run(folder, "cherry-pick", "-x", f"{remote}/main~{self._rng.randint(0, 2)}"):
            return "picked"
        run(folder, "cherry-pick", "--abort")
        return "conflict"

    def _any(self, folder: Path) -> str | None:
        names = sorted(files_of(folder, "HEAD"))
        return self._rng.choice(names) if names else None

    def _committed(self, folder: Path, message: str) -> str:
        if run(folder, "commit", "-q", "-a", "--no-verify", "-m", message):
            return message
        run(folder, "reset", "-q", "--hard")
        return "not committed"
