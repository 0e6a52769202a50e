"""The version of a memory that a page showed: what a write names, and what changed since."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from contextlib import suppress

from smp_git.format import document
from smp_git.model.errors import ConflictError, SmpError
from smp_git.model.memory import Memory
from smp_git.model.wording import word_diff
from smp_git.session import Session
from smp_git.web.views.memory import FieldDelta, shown_fields
from smp_git.web.wording import as_text


def version_of(memory: Memory) -> str:
    """Return what tells one version of a memory from any other one, wherever it was read.

    A rewrite of the history, which gives each commit another name, leaves it as it is.
    """
    said = document.mapping_of(memory)
    text = json.dumps(said, ensure_ascii=True, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


class StaleError(ConflictError):
    """A memory is no longer as the page showed it; nothing was written."""

    def __init__(self, memory: Memory, changed: Iterable[FieldDelta]) -> None:
        super().__init__(
            f"{memory.id} changed since the page was made; nothing was written",
            hint="look at it as it is now, and try again",
        )
        self.memory = memory
        self.changed = tuple(changed)


def check(session: Session, memory: Memory, seen: str, commit: str) -> None:
    """Raise StaleError if a memory is another version than the one that was shown at a commit."""
    if version_of(memory) != seen:
        raise StaleError(memory, _since(session, memory, commit))


def _since(session: Session, memory: Memory, commit: str) -> list[FieldDelta]:
    """Return how a memory changed since a commit; nothing if that is no longer there."""
    with suppress(SmpError):
        old = shown_fields(session.get(memory.id, at=commit))
        new = shown_fields(memory)
        return [
            FieldDelta(name, word_diff(as_text(old.get(name)), as_text(new.get(name))))
            for name in {**old, **new}
            if old.get(name) != new.get(name)
        ]
    return []
