"""A person's edit and a later write of the same memory, brought together."""

from __future__ import annotations

from collections.abc import Mapping

from smp_git.format import document
from smp_git.model.errors import ConflictError
from smp_git.model.ids import parse_path
from smp_git.model.memory import Value, is_same

# Every write sets it, so that it says nothing about a conflict.
_STAMP = "updated_at"


def reconciled(base: bytes, mine: bytes, theirs: bytes, path: str) -> bytes:
    """Return the person's file `mine` with what `theirs` changed since `base`.

    Raises ConflictError, naming the fields, if both changed the same one differently,
    and InvalidFileError if a version does not parse.
    """
    before, by_hand, later = (
        document.fields_of(document.decode(file, path)) for file in (base, mine, theirs)
    )
    changed = {
        name: later.get(name)
        for name in (*before, *later)
        if _differ(before, later, name) and _differ(by_hand, later, name)
    }
    both = sorted(name for name in changed if name != _STAMP and _differ(before, by_hand, name))
    if both:
        raise _conflict(path, both)
    place = parse_path(path)
    main = place.kind.main if place is not None and place.kind.suffix == "md" else None
    content = changed.pop(main, None) if main else None
    text = content if isinstance(content, str) else None
    merged = document.spliced(mine, path, changed, tuple(later), text)
    if merged is None:
        raise _conflict(path, sorted(changed))
    return merged


def _differ(left: Mapping[str, Value], right: Mapping[str, Value], name: str) -> bool:
    return (name in left) != (name in right) or not is_same(left.get(name), right.get(name))


def _conflict(path: str, fields: list[str]) -> ConflictError:
    return ConflictError(
        f"{path}: {', '.join(fields)} changed by hand and by a later write; nothing was committed",
        hint="take the later values over into the file (smp show prints them), commit, then change them",
    )
