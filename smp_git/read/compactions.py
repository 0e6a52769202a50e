"""What compactions took out, as the history tells: the commits of their steps, and what is absent since."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from smp_git.format import messages
from smp_git.format.document import life_of
from smp_git.model.errors import DamagedError
from smp_git.model.ids import parse_id, parse_path
from smp_git.model.memory import CommitId, MemoryId
from smp_git.model.times import format_time
from smp_git.read.snapshot import Reader, Snapshot

_STEPS: Final = {subject: step for step, subject in messages.COMPACTED.items()}
# What this step takes out is kept in the history for good.
ARCHIVING: Final = "findings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Compacted:
    """A memory that a compaction took out, and the last commit that has it.

    >>> session.compacted()
    ()
    """

    id: MemoryId
    step: str
    at: datetime
    commit: CommitId
    before: CommitId

    @property
    def is_archived(self) -> bool:
        """Whether it is kept in the history for good."""
        return self.step == ARCHIVING

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "id": self.id,
            "step": self.step,
            "at": format_time(self.at),
            "commit": self.commit,
            "archived": self.is_archived,
        }


def compactions(snapshot: Snapshot) -> Iterator[tuple[CommitId, datetime, str]]:
    """Yield the commits of compactions, the latest first, each with its time and step."""
    for commit in snapshot.walk():
        step = _STEPS.get(commit.message.partition("\n")[0])
        if step is not None and commit.parents:
            yield commit.id, commit.time, step


def last_compaction(snapshot: Snapshot) -> datetime | None:
    """Return when the session was last compacted."""
    return next((at for _, at, _ in compactions(snapshot)), None)


def compacted(snapshot: Snapshot) -> tuple[Compacted, ...]:
    """Return what compactions took out and is still absent, the latest first."""
    found = dict[MemoryId, Compacted]()
    for name, at, step in compactions(snapshot):
        before = snapshot.repository.commit(name).parents[0]
        for each in _taken_out(snapshot, before, name):
            made = Compacted(id=each, step=step, at=at, commit=name, before=before)
            found.setdefault(each, made)
    return tuple(found.values())


def _taken_out(snapshot: Snapshot, before: CommitId, after: CommitId) -> Iterator[MemoryId]:
    """Yield what a commit took out and nobody has brought back, past what cannot be read."""
    repository = snapshot.repository
    try:
        trees = repository.commit(before).tree, repository.commit(after).tree
        changes = list(repository.changes(*trees))
    except DamagedError as error:
        snapshot.pass_over(f"what commit {after[:12]} took out", error)
        return
    for path, old, new in changes:
        place = parse_path(path)
        if place is None or old is None or new is not None or snapshot.blob(place.text):
            continue
        try:
            life = life_of(repository.blob(old), path)
        except DamagedError as error:
            snapshot.pass_over(path, error)
        else:
            if not snapshot.tombstones.is_dead(place.text, life):
                yield place.text


def archived(reader: Reader, snapshot: Snapshot) -> Snapshot | None:
    """Return the findings that compactions archived, as one looks at them; None if there are none."""
    found = []
    for each in compacted(snapshot):
        page = reader.at(each.before).page(parse_id(each.id).page)
        if each.is_archived and page is not None and each.id in page.entries:
            found.append((page.entries[each.id], page.lines[each.id]))
    return snapshot.beside(found) if found else None
