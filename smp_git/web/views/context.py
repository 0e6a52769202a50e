"""The context of a prompt: what an agent would be told, what not, and why."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from typing import Final, NamedTuple

from smp_git.ask.context import TITLES, Context, LeftOut, Piece, tokens
from smp_git.model.errors import InvalidQueryError
from smp_git.web.look import Look
from smp_git.web.wording import percent

_BUDGET: Final = 2000


class PieceView(NamedTuple):
    """A memory in a context, and how many tokens it takes."""

    piece: Piece
    tokens: int


class Section(NamedTuple):
    """A section of a context, its tokens and which part of the budget they are."""

    name: str
    title: str
    pieces: tuple[PieceView, ...]
    tokens: int
    start: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Briefing:
    """What an agent would be told for a prompt, and what was left out; None until one is asked for."""

    prompt: str
    agent: str
    budget: int
    agents: tuple[str, ...]
    context: Context | None = None
    sections: tuple[Section, ...] = ()
    left_out: tuple[tuple[str, tuple[LeftOut, ...]], ...] = ()


def briefing(look: Look, prompt: str, agent: str, budget: str) -> Briefing:
    """Return what a context for a prompt holds; nothing in it counts as used."""
    session = look.session
    asked = _number(budget)
    empty = Briefing(
        prompt=prompt,
        agent=agent,
        budget=asked,
        agents=tuple(each.agent for each in session.agents(at=look.at)),
    )
    if not prompt and not agent and not budget:
        return empty
    made = session.context(
        agent or None, prompt=prompt or None, budget=asked, at=look.at, now=look.now
    )
    left = sorted(made.left_out, key=lambda each: list(TITLES).index(each.section))
    return Briefing(
        prompt=prompt,
        agent=agent,
        budget=asked,
        agents=empty.agents,
        context=made,
        sections=tuple(_sections(made)),
        left_out=tuple(
            (TITLES[name], tuple(found)) for name, found in groupby(left, lambda each: each.section)
        ),
    )


def _number(text: str) -> int:
    try:
        return int(text) if text else _BUDGET
    except ValueError:
        raise InvalidQueryError(f"{text!r} is not a number of tokens") from None


def _sections(made: Context) -> list[Section]:
    out, start = list[Section](), 0.0
    for name, found in groupby(made.pieces, lambda piece: piece.section):
        pieces = tuple(PieceView(each, tokens(each.text)) for each in found)
        total = sum(each.tokens for each in pieces)
        share = percent(total, made.budget_tokens)
        out.append(Section(name, TITLES[name], pieces, total, start, share))
        start += share
    return out
