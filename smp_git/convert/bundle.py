"""A session with its whole history in one file: a zip of a manifest and a Git bundle."""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from smp_git.convert.files import member, whole
from smp_git.git import addresses, command
from smp_git.git.references import ACCESS, HEADS, TAGS
from smp_git.keep.every import clone, opened
from smp_git.model.errors import DamagedError, InvalidError
from smp_git.model.times import format_time
from smp_git.sync.exchange import remove_remote
from smp_git.write.handle import Handle, Home, fold_counts

_MANIFEST: Final = "smp-bundle.json"
_BUNDLE: Final = "session.bundle"
_REFS: Final = (HEADS, TAGS, ACCESS)


def write(handle: Handle, place: Path) -> None:
    """Write a session with all its branches, tags and read counts; whole or not at all."""
    fold_counts(handle, everything=True)
    repository = handle.reader.repository
    refs = [ref for ref in repository.references() if ref.startswith(_REFS)]
    manifest = {
        "smp_bundle": 1,
        "session": handle.name,
        "head": handle.reader.main().id,
        "exported_at": format_time(handle.clock()),
    }
    with whole(place) as scratch, tempfile.TemporaryDirectory() as name:
        packed = Path(name) / _BUNDLE
        command.bundle(repository.git, refs, packed)
        with zipfile.ZipFile(scratch, "w", zipfile.ZIP_STORED) as archive:
            scratch.chmod(0o600)
            archive.writestr(_MANIFEST, json.dumps(manifest, indent=2) + "\n")
            archive.write(packed, _BUNDLE)


def is_bundle(archive: zipfile.ZipFile) -> bool:
    """Whether a zip is an export with history."""
    return _MANIFEST in archive.namelist()


def take(home: Home, path: Path, name: str | None) -> Path:
    """Make a session of an export with history, looked through as if it came from a remote."""
    with _unpacked(path) as bare:
        folder = clone(home, str(bare), name or _session(path), ask=False, progress=None)
    with opened(home, folder.name) as handle:
        remove_remote(handle, "origin")
    return folder


def _session(path: Path) -> str | None:
    with member(path, _MANIFEST) as file:
        try:
            said = json.loads(file.read(65_536)).get("session")
        except (ValueError, AttributeError):
            raise InvalidError(f"{path} has a manifest that cannot be read") from None
    return str(said) if said else None


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """Unpack the bundle into a bare repository for as long as the block lasts."""
    with tempfile.TemporaryDirectory(prefix="smp-import-") as name:
        packed, bare = Path(name) / _BUNDLE, Path(name) / "session.git"
        with member(path, _BUNDLE) as file, packed.open("wb") as out:
            shutil.copyfileobj(file, out)
        addresses.create_bare(bare)
        try:
            command.unbundle(bare, packed, _REFS)
        except DamagedError as error:
            raise DamagedError(f"{path} cannot be read: {error.message}") from None
        yield bare
