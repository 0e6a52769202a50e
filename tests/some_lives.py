"""Lives of memories at random, and what is dead of them, said once more in plain words."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hypothesis import strategies as st

from smp_git.model import ids
from smp_git.model.ids import FIRST, FLAGS, Edge, Lives, generation

# Restorations, redactions, joins, and what format 1 numbered.
NAMED = ("brightly", "quietest", "j0123456789ab", "jfedcba987654", "mountain", "seashore")
NUMBERED = ("g2", "g2-01234567", "g2-89abcdef", "g3", "g3-01234567", "g17")
POOL = (FIRST, *NAMED, *NUMBERED)

names = st.sampled_from(POOL)
flags = st.lists(st.sampled_from(FLAGS), max_size=3, unique=True)
stamps = st.sampled_from(("", "2026-01-11T14:30:00.000000Z/aaaa", "2026-01-12T00:00:00.000000Z/~"))
horizons = st.dictionaries(st.sampled_from(("*", "rationale", "decision", "tags")), stamps, max_size=3)  # fmt: skip


@st.composite
def edges(draw: st.DrawFn, life: str, parents: Iterable[str] = POOL) -> Edge:
    """How a life of the pool came about: by what its name says, from some of `parents`."""
    if generation(life):
        cause = ids.GENERATION
    elif life.startswith(("j0", "jf")):
        cause = ids.JOIN
    else:
        cause = draw(st.sampled_from((ids.RESTORE, ids.REDACT)))
    found = draw(st.lists(st.sampled_from(tuple(parents)), max_size=3, unique=True))
    return Edge(cause, found, draw(horizons) if cause == ids.REDACT else None)


@st.composite
def stories(draw: st.DrawFn, pool: Iterable[str] = POOL, before: Iterable[str] = (FIRST,)) -> dict[str, Edge]:  # fmt: skip
    """How some lives of a memory came about, each from lives that were there before it."""
    chosen = draw(st.lists(st.sampled_from(tuple(pool)), max_size=5, unique=True))
    found: dict[str, Edge] = {}
    # What format 1 numbered was there before anything had a name.
    for life in sorted(set(chosen) - {FIRST}, key=lambda each: (not generation(each), chosen.index(each))):  # fmt: skip
        older = [each for each in found if not generation(life) or generation(each) < generation(life)]  # fmt: skip
        found[life] = draw(edges(life, (*before, *older)))
    return found


@st.composite
def flagged(draw: st.DrawFn, pool: Iterable[str] = POOL) -> dict[str, list[str]]:
    """Flags on some lives."""
    return draw(st.dictionaries(st.sampled_from(tuple(pool)), flags, max_size=4))


counts = st.sampled_from((0, 0, 0, 2, 3))


@st.composite
def grown(draw: st.DrawFn) -> Lives:
    """What may be known of a memory: lives that came from earlier ones, and flags."""
    return Lives(draw(flagged()), draw(stories()), draw(counts))


@st.composite
def odd(draw: st.DrawFn) -> Lives:
    """What anybody may write: lives that came from each other, or from nowhere."""
    found = {life: draw(edges(life)) for life in draw(st.sets(names)) - {FIRST}}
    return Lives(draw(flagged()), found, draw(counts))


anything = st.one_of(grown(), odd())


# The rules, as they stand in the design, without anything that makes them fast.


def past(known: Lives, life: str) -> set[str]:
    """A life, and all that it came from."""
    found = {life}
    while True:
        more = {older for each in found for older in _origins(known, each)} - found
        if not more:
            return found
        found |= more


def _origins(known: Lives, life: str) -> set[str]:
    if life == FIRST:
        return set()
    origins = {FIRST} | {
        each for each in known.known if generation(each) > 1 and generation(each) < generation(life)
    }
    return origins | set(known.edges[life].parents if life in known.edges else ())


def is_dead(known: Lives, life: str) -> bool:
    """Whether no version of a life may stand: rules 1 to 4."""
    behind = past(known, life)
    return bool(
        _is_flagged(known, life)
        or any(ids.PURGED in known.flags.get(each, ()) for each in behind)
        or is_deleted(known, life)
        or {each for each in known.edges if _redacts(known.edges, each)} - behind
    )


def _is_flagged(known: Lives, life: str) -> bool:
    return bool(known.flags.get(life)) or 0 < generation(life) <= known.generation


def is_deleted(known: Lives, life: str, seen: tuple[str, ...] = ()) -> bool:
    """Whether a life was deleted, or came by redaction or join from nothing that was not."""
    if ids.DELETED in known.flags.get(life, ()) or 0 < generation(life) <= known.generation:
        return True
    edge = known.edges.get(life)
    if edge is None or life == FIRST or life in seen or edge.cause not in (ids.REDACT, ids.JOIN):  # fmt: skip
        return False
    return bool(edge.parents) and all(is_deleted(known, each, (*seen, life)) for each in edge.parents)  # fmt: skip


def _redacts(known: Mapping[str, Edge], life: str) -> bool:
    return known[life].cause in (ids.REDACT, ids.GENERATION)
