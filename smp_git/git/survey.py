"""Survey of an object store: everything that a reference leads to, read once and verified."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.git import references, storage
from smp_git.git.objects import COMMIT, Raw, raw_commit
from smp_git.git.references import STASH
from smp_git.git.repository import Repository
from smp_git.model.errors import DamagedError
from smp_git.model.memory import CommitId

_ENTRY: Final = re.compile(rb"(\d+) ([^\0]+)\0(.{20})", re.DOTALL)
_FOLDER: Final = b"40000"
_SUBMODULE: Final = b"160000"
_TAG: Final = b"tag"
# A person may commit folders deeper than Python calls into itself.
_DEEPEST: Final = 200


class Lost(NamedTuple):
    """An object that cannot be read: what it is, where it is used, and the newest commit of those."""

    name: bytes
    path: str
    commit: str
    is_folder: bool
    why: str

    @property
    def is_commit(self) -> bool:
        """Whether this is a commit or a tag, and not a file or a folder."""
        return not self.path and not self.is_folder


@dataclass
class Survey:
    """What references lead to: the commits, newest first below each, and what cannot be read."""

    refs: dict[str, CommitId] = field(default_factory=dict)
    torn: dict[str, str] = field(default_factory=dict)
    commits: dict[bytes, Raw] = field(default_factory=dict)
    tags: dict[bytes, bytes] = field(default_factory=dict)
    lost: dict[bytes, Lost] = field(default_factory=dict)
    # The folders below which something is lost.
    tainted: set[bytes] = field(default_factory=set)
    objects: int = 0
    # The packs that are not as they were written, or whose index is not.
    packs: list[Path] = field(default_factory=list)

    def add(self, repository: Repository, commit: bytes) -> None:
        """Look through a commit that no reference leads to, too."""
        if commit not in self.commits:
            _Verifier(repository, self).tip("", commit)


def survey(repository: Repository) -> Survey:
    """Read and verify every object that a reference leads to."""
    found = Survey()
    found.refs, found.torn = references.read_each(repository.git)
    look = _Verifier(repository, found)
    for ref, tip in sorted(found.refs.items(), key=lambda pair: pair[0] != "refs/heads/main"):
        look.tip(ref, bytes.fromhex(tip))
    for entry in references.read_stash(repository.git) if STASH in found.refs else ():
        look.tip(STASH, bytes.fromhex(entry.id))
    found.packs = storage.broken_packs(repository.git / "objects")
    return found


class _Verifier:
    """One look through a store."""

    def __init__(self, repository: Repository, found: Survey) -> None:
        self._raw = repository.raw
        self._found = found
        self._seen: set[bytes] = set()

    def _read(self, name: bytes, path: str, commit: str, *, folder: bool) -> bytes | None:
        """Return the bytes of an object, None if it is lost."""
        self._found.objects += 1
        try:
            return self._raw(name)[1]
        except DamagedError as error:
            self._found.lost[name] = Lost(name, path, commit, folder, error.message)
            return None

    def tip(self, ref: str, name: bytes) -> None:
        """Look through everything that a reference leads to."""
        try:
            kind, data = self._raw(name)
        except DamagedError as error:
            self._found.lost.setdefault(name, Lost(name, "", ref, False, error.message))  # noqa: FBT003 - a field
            return
        while kind == _TAG:
            self._found.tags[name] = data
            name = bytes.fromhex(data[7:47].decode())
            try:
                kind, data = self._raw(name)
            except DamagedError as error:
                self._found.lost.setdefault(name, Lost(name, "", ref, False, error.message))  # noqa: FBT003 - as above
                return
        if kind == COMMIT:
            self._commits(name)

    def _commits(self, start: bytes) -> None:
        waiting = [start]
        while waiting:
            name = waiting.pop()
            if name in self._seen:
                continue
            self._seen.add(name)
            data = self._read(name, "", name.hex(), folder=False)
            if data is None:
                continue
            commit = self._found.commits[name] = raw_commit(data)
            self._tree(commit.tree, "", name.hex())
            waiting += reversed(commit.parents)

    def _tree(self, name: bytes, path: str, commit: str) -> bool:
        """Look through a folder; return whether all of it is whole."""
        if name in self._seen:
            return name not in self._found.tainted and name not in self._found.lost
        self._seen.add(name)
        data = self._read(name, path, commit, folder=True)
        if data is None:
            return False
        is_whole = True
        for mode, part, child in _ENTRY.findall(data):
            if child in self._seen:
                is_whole &= child not in self._found.tainted and child not in self._found.lost
                continue
            if mode == _SUBMODULE:
                continue
            below = f"{path}/{_text(part)}" if path else _text(part)
            if mode == _FOLDER and below.count("/") < _DEEPEST:
                is_whole &= self._tree(child, below, commit)
            elif mode != _FOLDER:
                self._seen.add(child)
                is_whole &= self._read(child, below, commit, folder=False) is not None
        if not is_whole:
            self._found.tainted.add(name)
        return is_whole


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")
