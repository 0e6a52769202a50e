"""A branch brought up to another commit: left, moved forward, or merged; one publishing step."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, NamedTuple

from smp_git.format import messages
from smp_git.format.messages import MERGE, Touch
from smp_git.git.objects import Object, ObjectId
from smp_git.git.references import merge_bases
from smp_git.git.repository import MovedError, Repository
from smp_git.model.errors import ConflictError, RefusedError
from smp_git.model.ids import parse_path, sort_key
from smp_git.model.memory import CommitId, agent_name
from smp_git.model.results import Result
from smp_git.read.history import MemoryDiff, bytes_diff, diff
from smp_git.read.replica import is_products
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.write import commit
from smp_git.write.commit import Assembly, TreeChange, assemble
from smp_git.write.merge.memories import Conflict
from smp_git.write.merge.trees import has_buried, merge
from smp_git.write.writer import Writer

# How often a person's own commit may come between before it is given up.
_MOST_MOVES: Final = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeResult:
    """The result of a merge.

    `commit` is the branch's head now; `is_merge` tells a commit with two parents from a
    branch that was only moved forward, or had everything already. `contested` is what
    this merge had to decide, `left` the files left alone because a person had changed them.

    >>> session.branch("idea").edit("DEC-0001", impact="high").id
    'DEC-0001'
    >>> session.merge("idea").contested
    ()
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MergePlan(Result):
    """What a merge would do to each memory; without `is_merge` the branch is only moved forward.

    >>> session.branch("idea").edit("DEC-0001", impact="high").id
    'DEC-0001'
    >>> [each.id for each in session.merge("idea", dry_run=True).memories]
    ['DEC-0001']
    """

    is_merge: bool
    memories: tuple[MemoryDiff, ...] = ()
    contested: tuple[Conflict, ...] = ()

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {"dry_run": True, **Result.as_json(self)}


def plan(
    reader: Reader, ref: str, theirs: CommitId, *, source: str = "the other branch"
) -> MergePlan:
    """Return what `join` would do for an agent, and change nothing."""
    repository, base = reader.repository, reader.snapshot()
    bases = _bases(repository, base.id, theirs, ref, source)
    if bases == [theirs]:
        return MergePlan(is_merge=False)
    if bases == [base.id] and not has_buried(repository, theirs, base.tombstones):
        return MergePlan(is_merge=False, memories=diff(base, reader.at(theirs)))
    found = merge(repository, base.id, theirs, base.tombstones)
    places = [(place, data) for path, data in found.files.items() if (place := parse_path(path))]
    return MergePlan(
        is_merge=True,
        memories=tuple(
            bytes_diff(place, base.file(place.text), data)
            for place, data in sorted(places, key=lambda each: each[0].sort_key)
        ),
        contested=found.contested,
    )


def join(
    writer: Writer,
    ref: str,
    theirs: CommitId,
    *,
    by: str | None = None,
    source: str = "the other branch",
) -> MergeResult:
    """Bring `theirs` into a branch, which is made if it is not there; the caller holds the lock.

    `by` is the agent who asked for the merge, and signs it. Without one the merge commit
    is a function of its two parents: replicas that merge the same make the same commit.
    Raises RefusedError if the two have no commit in common; `source` names the other one then.
    """
    agent = agent_name(by) if by is not None else None
    for _ in range(_MOST_MOVES):
        try:
            return _joined(writer, ref, theirs, agent, source)
        except MovedError:
            continue
    raise ConflictError(
        f"session {writer.reader.path.name} is being moved by another Git process",
        hint="wait for it to end, then try again",
    )


def _joined(
    writer: Writer, ref: str, theirs: CommitId, agent: str | None, source: str
) -> MergeResult:
    repository = writer.reader.repository
    ours = repository.head(ref)
    if ours is None:
        with repository.store([]) as written:
            repository.publish(ref, None, theirs, written)
        return MergeResult(commit=theirs)
    bases = _bases(repository, ours, theirs, ref, source)
    if bases == [theirs]:
        return MergeResult(commit=ours)
    base = writer.reader.at(ours)
    if bases == [ours] and not has_buried(repository, theirs, base.tombstones):
        return _forwarded(writer, ref, base, theirs)
    if agent is not None:
        return _published(writer, ref, base, _commit_by(writer, agent, base, theirs, source))
    if _gives_way(repository, base, theirs):
        return _forwarded(writer, ref, base, theirs)
    return _published(writer, ref, base, _commit_of(writer.reader, base, theirs))


def _bases(
    repository: Repository, ours: CommitId, theirs: CommitId, ref: str, source: str
) -> list[CommitId]:
    """Return what two commits have in common; raise RefusedError if that is nothing."""
    found = merge_bases(repository, ours, theirs)
    if not found:
        branch = ref.removeprefix("refs/heads/")
        raise RefusedError(
            f"{source} and {branch} have no commit in common", hint="they are different sessions"
        )
    return found


def _gives_way(repository: Repository, base: Snapshot, theirs: CommitId) -> bool:
    """Whether our head says nothing that theirs does not, and is the one to be left behind.

    Two that differ in nothing but merges of syncs would be merged again and again, each
    time by somebody who has not seen the last one. Of the merges that only one of them
    has, the greatest id decides: a bigger history never gives way to a part of it.
    """
    if repository.commit(theirs).tree != base.tree:
        return False
    ours = repository.beyond([base.id], [theirs])
    others = repository.beyond([theirs], [base.id])
    if max(ours) > max(others) or has_buried(repository, theirs, base.tombstones):
        return False
    commits = map(repository.commit, (*ours, *others))
    return all(len(each.parents) > 1 and is_products(each.committer_email) for each in commits)


def _forwarded(writer: Writer, ref: str, base: Snapshot, theirs: CommitId) -> MergeResult:
    repository = writer.reader.repository
    tree = repository.commit(theirs).tree
    changes = [TreeChange(*each) for each in repository.changes(base.tree, tree)]
    left = writer.publish(ref, base.id, theirs, Assembly(tree, [], changes, {}), [])
    return MergeResult(commit=theirs, touches=tuple(_touches(changes)), left=tuple(left))


def _touches(changes: Iterable[TreeChange]) -> Iterable[Touch]:
    for change in changes:
        place = parse_path(change.path)
        if place is not None:
            verb = "remove" if change.new is None else "edit" if change.old else ""
            yield Touch(verb, place.kind.name, place.text)


class _Made(NamedTuple):
    """A merge commit that is not written yet; `changes` are those that our side sees."""

    commit: Object
    tree: Assembly
    changes: list[TreeChange]
    contested: tuple[Conflict, ...]


def _commit_by(writer: Writer, agent: str, base: Snapshot, theirs: CommitId, source: str) -> _Made:
    """Make the merge that an agent asked for: ours first, signed by agent and replica."""
    now = writer.clock()
    found = merge(base.repository, base.id, theirs, base.tombstones)
    files = dict(found.files)
    path, registration = writer.registration(now)
    if path not in files and base.repository.find(base.tree, path) is None:
        files[path] = registration
    tree = assemble(base, files, found.unread)
    subject = messages.merge_of(source, _touches(tree.changes))
    message = messages.write((), agent, subject=subject)
    made = commit.signed(tree.tree, (base.id, theirs), writer.identity(), agent, now, message)
    return _Made(made, tree, tree.changes, found.contested)


def _commit_of(reader: Reader, base: Snapshot, theirs: CommitId) -> _Made:
    """Make the merge that follows from its parents alone, whoever makes it, and when."""
    first, second = sorted((base.id, theirs))
    repository, left = reader.repository, base if first == base.id else reader.at(first)
    found = merge(repository, first, second, base.tombstones)
    tree = assemble(left, found.files, found.unread)
    at = max(repository.commit(name).time for name in (first, second))
    made = commit.derived(tree.tree, (first, second), at, MERGE)
    return _Made(made, tree, _changes(repository, base.tree, left.tree, tree), found.contested)


def _changes(
    repository: Repository, ours: ObjectId, left: ObjectId, made: Assembly
) -> list[TreeChange]:
    """Return what our tree sees of a tree that was made on top of another."""
    if ours == left:
        return made.changes
    after = {path: new for path, _, new in repository.changes(ours, left)}
    after |= {change.path: change.new for change in made.changes}
    before = {path: repository.find(ours, path) for path in after}
    return [
        TreeChange(path, before[path], new)
        for path, new in sorted(after.items(), key=itemgetter(0))
        if before[path] != new
    ]


def _published(writer: Writer, ref: str, base: Snapshot, made: _Made) -> MergeResult:
    new = CommitId(made.commit.id)
    seen = made.tree._replace(changes=made.changes)
    left = writer.publish(ref, base.id, new, seen, [*made.tree.objects, made.commit])
    return MergeResult(
        commit=new,
        is_merge=True,
        contested=made.contested,
        touches=tuple(sorted(_touches(made.changes), key=lambda touch: sort_key(touch.id))),
        left=tuple(left),
    )
