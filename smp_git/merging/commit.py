"""A branch brought up to another commit: left, moved forward, or merged; one publishing step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from smp_git.assembly import Assembly, Change, assemble
from smp_git.errors import ConflictError, RefusedError
from smp_git.format import messages
from smp_git.format.ids import parse_path
from smp_git.format.messages import MERGE, Touch
from smp_git.git.ancestry import merge_bases
from smp_git.git.objects import COMMIT, Object, write_commit
from smp_git.git.repository import MovedError
from smp_git.memory import CommitId, agent_name
from smp_git.merging.memories import Conflict
from smp_git.merging.merge import has_buried, merge
from smp_git.snapshot import Snapshot
from smp_git.transaction import Writer

AtHand = Callable[[bytes], tuple[bytes, bytes] | None]

# How often a person's own commit may come between before it is given up.
_MOST_MOVES: Final = 20
_HELD_BYTES: Final = 16 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """What bringing another history into a branch came to.

    `commit` is the branch's head now; `is_merge` tells a commit with two parents from a
    branch that was only moved forward, or had everything already. `contested` is what
    this merge had to decide, `left` the files left alone because a person had changed them.
    """

    commit: CommitId
    is_merge: bool = False
    contested: tuple[Conflict, ...] = ()
    touches: tuple[Touch, ...] = ()
    left: tuple[str, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "commit": self.commit,
            "is_merge": self.is_merge,
            "contested": [conflict.as_json() for conflict in self.contested],
            "touched": [
                {"id": t.id, "kind": t.kind, "change": t.verb or "add"} for t in self.touches
            ],
            "left": list(self.left),
        }


def _nothing(_name: bytes) -> None:
    """Have no object at hand."""


def join(writer: Writer, ref: str, theirs: CommitId, *, by: str, source: str = "the other branch", at_hand: AtHand = _nothing) -> MergeResult:  # fmt: skip
    """Bring `theirs` into a branch, which is made if it is not there; the caller holds the lock.

    `by` is the agent of a merge commit; `at_hand` gives the type and bytes of objects
    that need not be looked for. Raises RefusedError if the two have no commit in
    common; `source` names the other one then.
    """
    for _ in range(_MOST_MOVES):
        try:
            return _joined(writer, ref, theirs, agent_name(by), source, at_hand)
        except MovedError:
            continue
    raise ConflictError(
        f"session {writer.reader.path.name} is being moved by another Git process",
        hint="wait for it to end, then try again",
    )


def _joined(writer: Writer, ref: str, theirs: CommitId, agent: str, source: str, at_hand: AtHand) -> MergeResult:  # fmt: skip
    repository = writer.reader.repository
    ours = repository.head(ref)
    if ours is None:
        with repository.store([]) as written:
            repository.publish(ref, None, theirs, written)
        return MergeResult(commit=theirs)
    bases = merge_bases(repository, ours, theirs)
    if not bases:
        branch = ref.removeprefix("refs/heads/")
        raise RefusedError(f"{source} and {branch} have no commit in common", hint="they are different sessions")  # fmt: skip
    if bases == [theirs]:
        return MergeResult(commit=ours)
    base = writer.reader.at(ours)
    if bases == [ours] and not has_buried(repository, theirs, base.tombstones):
        return _forwarded(writer, ref, base, theirs, at_hand)
    return _merged(writer, ref, base, theirs, agent)


def _forwarded(writer: Writer, ref: str, base: Snapshot, theirs: CommitId, at_hand: AtHand) -> MergeResult:  # fmt: skip
    repository = writer.reader.repository
    tree = repository.commit(theirs).tree
    changes = [Change(*each) for each in repository.changes(base.tree, tree)]
    files = list(_files(changes, at_hand))
    left = writer.publish(ref, base.id, theirs, Assembly(tree, files, changes, {}), [])
    return MergeResult(commit=theirs, touches=tuple(_touches(changes)), left=tuple(left))


def _files(changes: Iterable[Change], at_hand: AtHand) -> Iterable[Object]:
    """Yield what is at hand of new files, as much as may be held in memory."""
    size = 0
    for change in changes:
        found = at_hand(bytes.fromhex(change.new)) if change.new and size < _HELD_BYTES else None
        if found is not None:
            size += len(found[1])
            yield Object(*found)


def _touches(changes: Iterable[Change]) -> Iterable[Touch]:
    for change in changes:
        place = parse_path(change.path)
        if place is not None:
            verb = "remove" if change.new is None else "edit" if change.old else ""
            yield Touch(verb, place.kind.name, place.text)


def _merged(writer: Writer, ref: str, base: Snapshot, theirs: CommitId, agent: str) -> MergeResult:
    repository, now = writer.reader.repository, writer.clock()
    found = merge(repository, base.id, theirs, base.tombstones)
    files = dict(found.files)
    path, registration = writer.registration(now)
    if path not in files and repository.find(base.tree, path) is None:
        files[path] = registration
    made = assemble(base, files, found.unread)
    commit = Object(
        COMMIT,
        write_commit(
            made.tree,
            (base.id, theirs),
            *writer.identity().signs(agent, now),
            messages.write((), agent, subject=MERGE),
        ),
    )
    new = CommitId(commit.id)
    left = writer.publish(ref, base.id, new, made, [*made.objects, commit])
    return MergeResult(
        commit=new,
        is_merge=True,
        contested=found.contested,
        touches=found.touches,
        left=tuple(left),
    )
