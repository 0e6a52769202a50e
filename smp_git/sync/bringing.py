"""What a meeting of lives brings to the branches of both sides, on top of their rewritten tips."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from smp_git.format import records as tombstones
from smp_git.format.records import Tombstones
from smp_git.git import packs, references, storage
from smp_git.git.packs import Packed
from smp_git.git.repository import Repository
from smp_git.model.errors import ConflictError
from smp_git.model.ids import parse_id
from smp_git.model.memory import CommitId
from smp_git.read.snapshot import PageCache, Reader, Snapshot
from smp_git.remove.history import carry
from smp_git.remove.history.generations import renames
from smp_git.remove.history.plan import Plan
from smp_git.remove.history.rewrite import History, Made, Rewriter
from smp_git.sync.heads import Files, Meeting, meet
from smp_git.sync.incoming import Arrived
from smp_git.sync.names import HEADS, MAIN
from smp_git.sync.quarantine import Quarantine


class MovedHeadsError(ConflictError):
    """The branches here moved while what came in was looked at; nothing was changed."""


def heads_of(reader: Reader) -> dict[str, str]:
    """Return where the branches of a session are."""
    found = references.read(reader.repository.git).items()
    return {ref: tip for ref, tip in found if ref.startswith(HEADS)}


class Bringing:
    """Gives a rewrite what each branch here gets, as the branches are under the lock."""

    def __init__(self, repository: Repository, there: Mapping[str, str], known: Tombstones, ours: Mapping[str, str], meeting: Meeting) -> None:  # fmt: skip
        self._repository = repository
        self._there = there
        self._known = known
        self._ours = dict(ours)
        self._meeting = meeting
        self.removed: set[str] = set()

    def records(self, plan: Plan) -> Tombstones:
        """Return what is known of lives that were joined; raise MovedHeadsError if that changed."""
        before = self._meeting
        self._look_again(plan)
        if (before.records, before.theirs) != (self._meeting.records, self._meeting.theirs):
            raise MovedHeadsError("the session moved while it was synced", hint="sync again")
        return self._meeting.records

    def files(self, plan: Plan) -> Files:
        """Return the files that each branch gets."""
        self._look_again(plan)
        return self._meeting.ours

    def _look_again(self, plan: Plan) -> None:
        ours = {ref: tip.hex() for ref, tip in plan.history.refs.items() if ref.startswith(HEADS)}
        if ours != self._ours:
            self._ours = ours
            self._meeting = meet(self._repository, ours, self._there, self._known)


def of_this_format(held: Quarantine, there: Mapping[str, str], known: Tombstones) -> dict[str, str]:
    """Return what came with its generations written as lives."""
    found = renames(held.repository, there.values(), known)
    if not found:
        return dict(there)
    rewriter = Rewriter(held.repository.raw, known, found)
    refs = rewriter.rewritten(History({ref: bytes.fromhex(tip) for ref, tip in there.items()})).refs
    keep(held, rewriter.made)
    return {ref: tip.hex() for ref, tip in refs.items()}


def keep(held: Quarantine, made: Mapping[bytes, Made]) -> None:
    """Put new objects beside what came in."""
    packed = [Packed(n, m.type, m.data, m.like) for n, m in made.items()]
    if packed:
        storage.write_pack(held.git / "objects", packs.pack(packed))


def topped(reader: Reader, held: Quarantine, arrived: Arrived, files: Files) -> Arrived:
    """Return what came with commits on top that bring files, the same on every replica."""
    if arrived.rewriter is not None:
        keep(held, arrived.rewriter.made)
    clean = dict(arrived.clean)
    for ref, brought in files.items():
        base = Snapshot(PageCache(held.repository, reader.local), CommitId(clean[ref]))
        said = carry.records(base.said, brought, arrived.known)
        made = carry.made(base, {**brought, tombstones.PATH: tombstones.write(said)})
        with held.repository.store(made.objects):
            clean[ref] = made.id
    return arrived._replace(clean=clean)


def returned(before: Tombstones, known: Tombstones, there: Mapping[str, str], repository: Repository) -> Iterator[str]:  # fmt: skip
    """Say which memories that were deleted here live again, restored elsewhere."""
    tip = there.get(MAIN)
    if tip is None:
        return
    tree = repository.commit(CommitId(tip)).tree
    for each in known.items:
        name = each.first.text
        if each.lives.is_plain or each.lives.is_gone or not before.is_gone(name):
            continue
        if repository.find(tree, parse_id(name).path) is not None:
            yield f"{name} was deleted here and restored elsewhere; it lives again"
