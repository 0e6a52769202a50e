"""Fields and tags that a query names and no memory has."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from smp_git.ask.catalogue import Catalogue
from smp_git.ask.desk import Side
from smp_git.ask.request import Query
from smp_git.model.errors import InvalidQueryError, nearest
from smp_git.model.memory import KINDS


def refuse_unknown_fields(sides: Iterable[Side], query: Query) -> None:
    """Raise InvalidQueryError for a field that no memory of any of the sessions can have."""
    unknown: dict[str, str] | None = None
    for side in sides:
        lacking = side.engine.unknown(query)
        unknown = lacking if unknown is None else {k: v for k, v in unknown.items() if k in lacking}
        if not unknown:
            return
    for name, hint in (unknown or {}).items():
        raise InvalidQueryError(f"no memory has a field {name!r}", hint=hint)


def tag_notes(sides: Sequence[Side], query: Query) -> tuple[str, ...]:
    """Say which tags of a query nobody has."""
    asked = dict.fromkeys((*query.tags, *query.any_tags, *query.not_tags))
    for side in sides if asked else ():
        side.catalogue.follow(side.snapshot, KINDS)
    catalogues = [side.catalogue for side in sides]
    return tuple(
        _unknown_tag(tag, catalogues)
        for tag in asked
        if not any(each.sets.get(("tag", tag)) for each in catalogues)
    )


def _unknown_tag(tag: str, catalogues: Iterable[Catalogue]) -> str:
    known = sorted({name for each in catalogues for name in each.tags()})
    close = nearest(tag, known)
    return f"no memory has the tag {tag}" + (f"; perhaps {close}" if close else "")
