"""The proof of a deletion: every object and every file is looked through."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from smp_git.format.records import Tombstones
from smp_git.git.repository import Repository
from smp_git.model.errors import DamagedError
from smp_git.read.snapshot import Reader
from smp_git.remove.history import places
from smp_git.remove.history.needles import DeadVersion, Needles, needles
from smp_git.remove.history.places import PlaceNames
from smp_git.remove.history.scan import Scan

_TRIES: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a scan found: counts and places, never text or object names.

    `not_searched` says what was not looked for, `not_looked_into` where nothing was.
    """

    clean: bool
    hits: tuple[str, ...]
    also_in: tuple[str, ...]
    not_searched: tuple[str, ...]
    not_looked_into: tuple[str, ...]
    objects: int
    files: int
    bytes: int
    text_searched: bool
    seconds: float

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "clean": self.clean,
            "hits": list(self.hits),
            "also_in": list(self.also_in),
            "not_searched": list(self.not_searched),
            "not_looked_into": list(self.not_looked_into),
            "objects": self.objects,
            "files": self.files,
            "bytes": self.bytes,
            "text_searched": self.text_searched,
            "seconds": round(self.seconds, 3),
        }


def verify(
    reader: Reader,
    tombstones: Tombstones,
    versions: Iterable[DeadVersion] = (),
    unknown: Iterable[str] = (),
) -> Proof:
    """Look through everything for what the tombstones name and the versions say.

    `unknown` says of which deleted memories nobody tells the text any more.
    """
    started = time.monotonic()
    versions = tuple(versions)
    wanted = needles(tombstones, versions)
    scan, (hits, also) = _scanned(reader, wanted, PlaceNames(versions))
    return Proof(
        clean=not hits,
        hits=tuple(sorted(hits)),
        also_in=tuple(sorted(also)),
        not_searched=(*unknown, *_too_short(wanted.short)),
        not_looked_into=tuple(sorted(scan.unread)),
        objects=scan.objects,
        files=scan.files,
        bytes=scan.bytes,
        text_searched=bool(wanted.texts or wanted.phrases),
        seconds=time.monotonic() - started,
    )


def _scanned(
    reader: Reader, wanted: Needles, names: PlaceNames
) -> tuple[Scan, tuple[set[str], set[str]]]:
    """Return a scan that went through; a gc of Git's that takes packs meanwhile breaks one."""
    for left in reversed(range(_TRIES)):
        repository = Repository(reader.path)
        try:
            scan = Scan(repository, wanted, names, places.beside(reader.path))
            scan.run()
            return scan, scan.findings()
        except DamagedError:
            if not left:
                raise
        finally:
            repository.close()
    raise AssertionError  # not reached: the last one returns or raises


def _too_short(number: int) -> list[str]:
    what = "a text that is" if number == 1 else f"{number} texts that are"
    return [f"{what} too short to distinguish from chance"] if number else []
