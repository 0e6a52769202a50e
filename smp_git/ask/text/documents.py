"""What is searched, and what is found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One memory as the search sees it.

    Turns with the same `sitting` lend each other words; without one, a pause of six
    hours ends a sitting.
    """

    id: str
    kind: str
    at: str
    text: str
    speaker: str = ""
    role: str = ""
    title: str = ""
    tags: tuple[str, ...] = ()
    sitting: str = ""

    @property
    def seconds(self) -> int:
        """The moment `at` in whole seconds since 1970, raising ValueError if it is none."""
        moment = datetime.fromisoformat(self.at)
        return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp())


class TextHit(NamedTuple):
    """A document that answers, with a score from 0 to 1.

    `source` is the neighbour whose words it was found by, if it says none itself.
    """

    id: str
    score: float
    source: str = ""


class Reason(NamedTuple):
    """Why a document answers: its score as a sum, what it says of the question, whom it borrows from."""

    parts: Mapping[str, float]
    words: tuple[str, ...] = ()
    near: str = ""
