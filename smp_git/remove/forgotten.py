"""Memories of other programs in deleted sessions: told by the trash, then by digests alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import imports, metadata
from smp_git.git import disk
from smp_git.model.errors import SmpError
from smp_git.model.memory import Value
from smp_git.read import archives
from smp_git.read.imported import Taken, taken
from smp_git.read.snapshot import Reader
from smp_git.remove.audit import Record

# What a session's context calls the session that it was imported from.
SOURCE: Final = "source"


class ImportOrigin(NamedTuple):
    """Where a session was imported from, as its metadata or its summary tells."""

    uid: str = ""
    context: Mapping[str, Value] = {}

    @property
    def source(self) -> str | None:
        """The session of another program that it is, if it is one."""
        found = self.context.get(SOURCE)
        return found if isinstance(found, str) else None


def origin_at(place: Path) -> ImportOrigin:
    """Return where the session or the archive in a folder was imported from."""
    file = metadata.PATH if (place / ".git").exists() else archives.SUMMARY
    with suppress(OSError, SmpError):
        said = metadata.mapping((place / file).read_bytes())
        context = said.get("context")
        return ImportOrigin(str(said.get("uid", "")), context if isinstance(context, dict) else {})
    return ImportOrigin()


def taken_at(place: Path) -> Taken:
    """Return what the session or the archive in a folder has, or had, of other programs."""
    with suppress(OSError, SmpError):
        if (place / ".git").exists():
            with closing(Reader(place)) as reader:
                return taken(reader.main())
        found = imports.read((place / imports.PATH).read_bytes())
        return Taken(digests=found, uid=origin_at(place).uid)
    return Taken()


def place_of(store: Path, record: Record) -> Path:
    """Return where a deleted session is until it is purged."""
    return store / "deleted" / record.session_id / record.deletion / record.backup


def purged(store: Path) -> frozenset[str]:
    """Return the digests of what purged sessions were imported from."""
    with suppress(FileNotFoundError):
        return imports.read((store / imports.PATH).read_bytes())
    return frozenset()


def note_purged(store: Path, record: Record) -> None:
    """Note, by digests, that no import brings in again what a session held that is to be purged."""
    place = place_of(store, record)
    found = frozenset(_digests(place)) - purged(store)
    if found:
        data = imports.write(found | purged(store))
        disk.replace_durably(store / imports.PATH, data, store / f".{imports.PATH}.tmp")


def _digests(place: Path) -> Iterator[str]:
    known = taken_at(place)
    whole = origin_at(place).source
    if whole is not None:
        yield imports.digest("", whole)
    for source in (*known.ids, *known.removed):
        yield imports.digest("", source)
