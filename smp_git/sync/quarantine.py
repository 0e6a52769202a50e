"""A scratch repository that sees a session's objects: incoming ones are there until they are checked."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Collection, Iterable
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from smp_git.git import command, disk, layout, references, storage
from smp_git.git.objects import Object
from smp_git.git.references import TRAVELLING
from smp_git.git.repository import Repository
from smp_git.git.storage import Packed, Written
from smp_git.git.transport import Limits, RemoteAccess, fetch
from smp_git.model.errors import StorageError, UntrustedError

_HAVE: Final = "refs/have/"
_THEIRS: Final = "refs/theirs/"
_REFS: Final = "refs/"
# From here on a pack costs less than its objects would as files of their own.
_PACK_FROM: Final = 64
_MOST_REFERENCES: Final = 10_000
MAKE_WHOLE: Final = "a shallow clone cannot be a remote: run git fetch --unshallow there"
# Read in this order, a pack is visible only once it is whole.
_SUFFIXES: Final = (".pack", ".rev", ".idx")


class Quarantine:
    """Incoming objects and references, out of reach of the session until they are adopted.

    Only inside a `with`; at its end nothing of it is left.
    """

    def __init__(self, session: Path) -> None:
        self._session = session
        self._open = ExitStack()
        # The references of the remote, by its own names.
        self.refs: dict[str, str] = {}

    def __enter__(self) -> Self:
        with ExitStack() as opening, disk.reporting("incoming objects"):
            self.path = opening.enter_context(layout.scratch_folder(self._session))
            self.git = self.path / ".git"
            layout.create_scratch(self.git, [self._session / "objects"])
            self._open = opening.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if "repository" in self.__dict__:
            self.repository.close()
        self._open.__exit__(kind, error, trace)

    @cached_property
    def repository(self) -> Repository:
        """The incoming objects together with those of the session, for reading."""
        return Repository(self.path)

    def fetch(
        self, address: str, access: RemoteAccess, limits: Limits, leave_out: Iterable[str] = ()
    ) -> None:
        """Fetch everything that travels from a remote, but for the references to be left out."""
        self._name_what_is_there()
        specs = [f"+{each}*:{_THEIRS}{each.removeprefix(_REFS)}*" for each in TRAVELLING]
        specs += [f"^{each}" for each in leave_out]
        fetch(self.git, address, specs, access, limits)
        self.refs = {
            _REFS + name.removeprefix(_THEIRS): value
            for name, value in references.read(self.git).items()
            if name.startswith(_THEIRS)
        }
        if not self.refs and any(storage.stored_names(self.git / "objects")):
            # Git takes no branch of a shallow clone, though it fetches what that has.
            raise UntrustedError(f"{address}: what it sent is not whole", hint=MAKE_WHOLE)
        if len(self.refs) > _MOST_REFERENCES:
            raise UntrustedError(f"{address}: it has more than {_MOST_REFERENCES:,} references")

    def _name_what_is_there(self) -> None:
        """Let Git tell the remote what the session has, so that only the rest is sent."""
        there = sorted(set(references.read(self._session).values()))
        whole = [name for name in there if self.repository.has(name)]
        rows = (f"{name} {_HAVE}{number:06d}\n" for number, name in enumerate(whole))
        (self.git / "packed-refs").write_text("".join(rows))

    # Taking over

    def adopt(self, names: Iterable[bytes] | None = None) -> Collection[bytes]:
        """Put objects that came in, or all, into the session, and return them; nothing names them yet.

        The caller holds the session's lock. What is adopted is flushed, names and all.
        """
        objects = self._session / "objects"
        own = set(storage.stored_names(self.git / "objects"))
        wanted = own if names is None else own & set(names)
        with disk.reporting("incoming objects"), Written(objects) as written:
            rest = self._moved_packs(wanted, written) if len(wanted) >= _PACK_FROM else wanted
            if len(rest) >= _PACK_FROM:
                self._packed(rest, written)
            else:
                self._loose(rest, written)
            written.flush()
        return wanted

    def _moved_packs(self, wanted: set[bytes], written: Written) -> set[bytes]:
        """Move the packs of which everything is wanted; return what is in none of them."""
        target = self._session / "objects" / "pack"
        for index in storage.indexes(self.git / "objects"):
            names = set(storage.names(index))
            if names <= wanted:
                wanted = wanted - names
                for suffix in _SUFFIXES:
                    _move(index.with_suffix(suffix), target, written)
        return wanted

    def _packed(self, wanted: set[bytes], written: Written) -> None:
        """Make one pack in the session of some objects."""
        target = self._session / "objects" / "pack"
        done = subprocess.run(  # noqa: S603 - our own arguments
            command.arguments(
                self.git, "pack-objects", "-q", "--delta-base-offset", str(target / "pack")
            ),
            input=b"".join(name.hex().encode() + b"\n" for name in sorted(wanted)),
            env=command.environment(),
            capture_output=True,
            check=False,
        )
        if done.returncode:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise StorageError(f"cannot pack the incoming objects: {said}")
        stem = f"pack-{done.stdout.decode().strip()}"
        for suffix in _SUFFIXES:
            _keep(target / f"{stem}{suffix}", written)

    def _loose(self, wanted: set[bytes], written: Written) -> None:
        items = [Object(*self.repository.raw(name)) for name in sorted(wanted)]
        if [item.id for item in items] != [name.hex() for name in sorted(wanted)]:
            raise UntrustedError("the incoming objects include one under the name of another")
        storage.store(self._session / "objects", items, written)

    def adopt_objects(self, objects: Iterable[Packed]) -> None:
        """Put objects made from incoming objects into the session; nothing names them yet."""
        folder = self._session / "objects"
        items = list({item.name: item for item in objects}.values())
        with disk.reporting("incoming objects"), Written(folder) as written:
            if len(items) < _PACK_FROM:
                storage.store(folder, [Object(item.type, item.data) for item in items], written)
            else:
                storage.store_pack(folder, storage.pack(items), written)
            written.flush()


def sweep(session: Path) -> int:
    """Remove what processes that are gone left in quarantine; return how many there were."""
    return layout.sweep_scratch(session)


def _move(path: Path, folder: Path, written: Written) -> None:
    if not path.exists():
        return
    target = folder / path.name
    path.chmod(0o400)
    path.rename(target)
    _keep(target, written)


def _keep(path: Path, written: Written) -> None:
    if path.exists():
        written.keep(os.open(path, os.O_RDONLY), str(path.parent))
