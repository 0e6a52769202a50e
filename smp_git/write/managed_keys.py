"""The keys of a memory's file that smp keeps, as a person's edit left them: put right on the way in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from smp_git.format import document
from smp_git.format.document import KEY, OLD_KEY, life_of
from smp_git.format.records import Tombstones
from smp_git.model.errors import RefusedError
from smp_git.model.ids import parse_path
from smp_git.model.lives import FIRST, PURGED, REDACTED, Lives
from smp_git.model.memory import Value
from smp_git.read.snapshot import Snapshot

_ORDER: Final = ("id", "kind", KEY, "created_at")


def put_right(files: Mapping[str, bytes | None], base: Snapshot, known: Tombstones) -> dict[str, bytes | None]:  # fmt: skip
    """Return files that say the life which the memory has; all else stays as it is.

    Every file decodes. Raises RefusedError for one that says a life which was redacted or
    purged, or which nothing explains: it may be an old version.
    """
    return {path: _of_life(path, data, base, known) for path, data in files.items()}


def _of_life(path: str, data: bytes | None, base: Snapshot, known: Tombstones) -> bytes | None:
    place = parse_path(path)
    if data is None or place is None:
        return data
    blob = base.repository.find(base.tree, path)
    present = life_of(base.repository.blob(blob), path) if blob else None
    said, lives = life_of(data, path), known.lives(place.text)
    if said == present:
        return data
    if present is None:
        # A new file: what somebody typed for the life is none, unless it is known.
        if said is not None and (said == FIRST or lives.explains(said)):
            _check(path, said, lives)
            return data
        _check(path, FIRST, lives)
        return _written(data, path, FIRST)
    _check(path, said if said is not None else FIRST, lives)
    return _written(data, path, present)


def _check(path: str, life: str, lives: Lives) -> None:
    place = parse_path(path)
    if lives.is_gone and place is not None:
        raise RefusedError(
            f"{path}: {place.text} was deleted",
            hint=f"take it out with git rm -f {path}; smp restore {place.text} brings it back",
        )
    ended = lives.ended_by(life)
    if PURGED in ended or REDACTED in ended:
        what = "purged" if PURGED in ended else "redacted"
        raise RefusedError(
            f"{path} is of a life that was {what}, so it may hold what is gone",
            hint=f"git checkout HEAD -- {path} brings the present version back; edit that",
        )


def _written(data: bytes, path: str, life: str) -> bytes:
    """Return a file of another life with all else as it stands."""
    changes: dict[str, Value | None] = {OLD_KEY: None, KEY: life or None}
    spliced = document.spliced(data, path, changes, _ORDER)
    if spliced is not None and life_of(spliced, path) == life:
        return spliced
    return document.encode(replace(document.decode(data, path), life=life))
