"""Heads of a remote made clean, and what each branch gets where lives died or met."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from smp_git.format.document import life_of
from smp_git.format.records import PATH, Tombstones, write
from smp_git.git import references, storage
from smp_git.git.objects import COMMIT, FOLDER_MODE, TREE, Child, raw_commit, read_tree
from smp_git.git.references import HEADS
from smp_git.git.repository import MAIN, Repository
from smp_git.git.storage import Packed
from smp_git.model.errors import ConflictError
from smp_git.model.ids import Lives, parse_id
from smp_git.model.memory import CommitId, MemoryId
from smp_git.read.snapshot import PageCache, Reader, Snapshot
from smp_git.remove.history.plan import RewritePlan
from smp_git.remove.history.reading import TAG
from smp_git.remove.history.renaming import renames
from smp_git.remove.history.rewrite import History, MadeObject, Rewriter, RewrittenCommit
from smp_git.sync.quarantine import Quarantine
from smp_git.write import commit
from smp_git.write.merge import memories
from smp_git.write.merge.meeting import Met, is_ended, met
from smp_git.write.merge.memories import FileVersion
from smp_git.write.merge.versions import MemoryHistory, Said

OURS: Final = "ours"
THEIRS: Final = "theirs"

Files = dict[str, dict[str, bytes]]


class Head(NamedTuple):
    """One branch of one side."""

    side: str
    ref: str


class Meeting(NamedTuple):
    """What a meeting comes to: records of lives that were joined, and the files of branches.

    `notes` name the memories and fields of which words were taken out, `removed` the files
    that are for the history only: ordinary commits removed these memories.
    """

    records: Tombstones
    ours: Files
    theirs: Files
    notes: tuple[str, ...] = ()
    removed: frozenset[str] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.ours or self.theirs)


_NOBODY: Final = Meeting(Tombstones(), {}, {})


def meet(
    repository: Repository, ours: Mapping[str, str], theirs: Mapping[str, str], known: Tombstones
) -> Meeting:
    """Return what the branches of two sides come to under the records of both.

    Both sides are as they were before any rewrite; `repository` has the objects of both.
    """
    named = [each for each in known.items if not each.lives.is_plain]
    if not named:
        return _NOBODY
    tips = {Head(OURS, ref): tip for ref, tip in ours.items() if ref.startswith(HEADS)}
    tips |= {Head(THEIRS, ref): tip for ref, tip in theirs.items() if ref.startswith(HEADS)}
    look = _Look(repository, tips, [each.first.text for each in named])
    found: dict[MemoryId, Lives] = {}
    files: dict[str, Files] = {OURS: {}, THEIRS: {}}
    notes: list[str] = []
    removed: set[str] = set()
    for each in named:
        there = look.lives(each.first.path)
        one = _One(look, each.first.text, each.lives)
        if not there and _is_left_apart(each.lives):
            if one.settle_in_history():
                removed.add(each.first.path)
        elif _is_unsettled(there, each.lives):
            one.settle()
        else:
            continue
        if one.lives != each.lives:
            found[each.first.text] = one.lives
        for head, data in one.brought():
            files[head.side].setdefault(head.ref, {})[each.first.path] = data
        notes += one.notes()
    return Meeting(
        Tombstones.of(found), files[OURS], files[THEIRS], tuple(notes), frozenset(removed)
    )


def _is_unsettled(found: Collection[str], known: Lives) -> bool:
    """Whether branches have a memory in lives of which one has to give way."""
    return len(found) > 1 or any(_is_overtaken(known, life) for life in found)


def _is_left_apart(known: Lives) -> bool:
    """Whether redactions that did not know of each other are all that is left of a memory."""
    left = [life for life in known.redactions if _is_overtaken(known, life)]
    return len(left) > 1 and all(map(known.is_dead, known.known))


def _is_overtaken(known: Lives, life: str) -> bool:
    """Whether a life is dead, but was not deleted: a redaction took its place."""
    return known.is_dead(life) and not is_ended(known, life)


class _Look:
    """Reads heads and histories of both sides."""

    def __init__(
        self, repository: Repository, tips: Mapping[Head, str], names: list[MemoryId]
    ) -> None:
        self._repository = repository
        self._names = names
        self.tips = tips
        self._trees = {tip: repository.commit(CommitId(tip)).tree for tip in set(tips.values())}

    def lives(self, path: str) -> set[str]:
        """Return the lives that branches have a memory in, as far as they can be told."""
        blobs = {self._repository.find(tree, path) for tree in self._trees.values()} - {None}
        found = {life_of(self._repository.blob(blob), path) for blob in blobs if blob}
        return {life for life in found if life is not None}

    def version(self, head: Head, path: str) -> FileVersion | None:
        """Return the version of a memory on a branch, None if it is not there or unreadable."""
        blob = self._repository.find(self._trees[self.tips[head]], path)
        return memories.version(self._repository.blob(blob), path) if blob else None

    @cached_property
    def history(self) -> MemoryHistory:
        """What the histories of both sides said of the memories."""
        tips = sorted({CommitId(tip) for tip in self.tips.values()})
        return MemoryHistory(self._repository, tips, [parse_id(name).path for name in self._names])


class _One:
    """One memory on all branches of both sides."""

    def __init__(self, look: _Look, name: MemoryId, known: Lives) -> None:
        self._look = look
        self._name = name
        self._path = parse_id(name).path
        self._before = {
            head: found
            for head in look.tips
            if (found := look.version(head, self._path)) is not None
        }
        self._after: dict[Head, FileVersion] = dict(self._before)
        self._masked: set[str] = set()
        self.lives = known

    def settle(self) -> None:
        """Let lives meet until none is left that has to."""
        for ref in sorted(
            {head.ref for head in self._look.tips}, key=lambda ref: (ref != MAIN, ref)
        ):
            left, right = self._after.get(Head(OURS, ref)), self._after.get(Head(THEIRS, ref))
            if left and right and left.memory.life != right.memory.life:
                self._meet(left, right, Head(OURS, ref), Head(THEIRS, ref))
        for head in sorted(self._after, key=lambda head: (head.ref != MAIN, head)):
            if _is_overtaken(self.lives, self._after[head].memory.life):
                target = self._in_its_place(head)
                if target is not None:
                    self._meet(self._after[head], target, head)
                else:
                    self._join_with_history(head)

    def settle_in_history(self) -> bool:
        """Join what redactions left of a memory that no branch has any more.

        Without that another replica on which it lives has nothing to compare with.
        """
        latest = sorted(self._look.history.latest(self._path).items())
        left = [
            version
            for life, version in latest
            if _is_overtaken(self.lives, life) and self.lives.past(life) & self.lives.redactions
        ]
        if len(left) < 2:  # noqa: PLR2004 - one alone is not apart from any
            return False
        heads = [head for head in self._look.tips if head.ref == MAIN]
        joined = left[0]
        for version in left[1:]:
            joined = self._meet(joined, version, *heads) or joined
        return not self.lives.is_dead(joined.memory.life)

    def _meet(self, left: FileVersion, right: FileVersion, *heads: Head) -> FileVersion | None:
        """Give heads what two versions come to, if that is neither of them."""
        found: Met | None = met(self.lives, left, right, self._said)
        if found is None:
            return None
        self.lives |= found.lives
        self._masked.update(found.masked)
        made = memories.version(found.file, self._path)
        assert made is not None  # noqa: S101 - what was made here can be read
        # Another branch may meet it before it is in any history.
        self._said = self._said.with_version(made.memory, (left.memory, right.memory))
        for head in heads:
            self._after[head] = made
        return made

    def _in_its_place(self, head: Head) -> FileVersion | None:
        """Return the version that is in the place of one on another branch or in history."""
        order = sorted(self._after, key=lambda each: (each.ref != head.ref, each.ref != MAIN, each))
        for each in order:
            if not self.lives.is_dead(self._after[each].memory.life):
                return self._after[each]
        return self._look.history.living(self._path, self.lives)

    def _join_with_history(self, head: Head) -> None:
        """Join a head with redactions that no branch shows any more: it lacks them all the same."""
        for life, version in sorted(self._look.history.latest(self._path).items()):
            mine = self._after[head].memory.life
            if not is_ended(self.lives, life) and self.lives.missing(mine, life):
                self._meet(self._after[head], version, head)

    @cached_property
    def _said(self) -> Said:
        return self._look.history.said(self._path)

    def brought(self) -> Iterator[tuple[Head, bytes]]:
        """Yield the files that branches get."""
        for head, version in self._after.items():
            before = self._before.get(head)
            is_new = before is None or version.file != before.file
            if is_new and not self.lives.is_dead(version.memory.life):
                yield head, version.file

    def notes(self) -> Iterator[str]:
        """Say of which fields words were taken out."""
        if self._masked:
            fields = ", ".join(sorted(self._masked))
            yield f"{self._name}: a redaction met other changes; look at {fields}, where words or a value may have gone"


class Arrived(NamedTuple):
    """The references of a remote as it names them, and as they are here once cleaned."""

    named: Mapping[str, str]
    clean: Mapping[str, str]
    known: Tombstones
    rewriter: Rewriter | None

    @property
    def is_rewritten(self) -> bool:
        """Whether the remote holds anything that was deleted."""
        return self.named != self.clean


def cleaned(
    repository: Repository, named: Mapping[str, str], known: Tombstones, trusted: frozenset[str]
) -> Arrived:
    """Return what `named` references come to without what is `known` to be deleted.

    What the `trusted` commits reach holds nothing deleted.
    """
    if not known or not named:
        return Arrived(named, named, known, None)
    rewriter = Rewriter(repository.raw, known)
    for tip in trusted:
        _trust(rewriter, tip)
    tips = {ref: bytes.fromhex(tip) for ref, tip in named.items()}
    result = rewriter.rewritten(History(tips)).refs
    return Arrived(named, {ref: tip.hex() for ref, tip in result.items()}, known, rewriter)


def commits_of(repository: Repository, tips: Iterable[str]) -> list[CommitId]:
    """Return the commits among some objects; annotated tags are left out."""
    return [CommitId(t) for t in set(tips) if repository.raw(bytes.fromhex(t))[0] == COMMIT]


def boundary(
    repository: Repository, tips: Iterable[str], known: Iterable[CommitId]
) -> frozenset[str]:
    """Return the commits on which what `tips` have more than `known` ones is built."""
    commits = commits_of(repository, tips)
    new = repository.beyond(commits, known)
    below = {parent for name in new for parent in repository.commit(name).parents}
    return frozenset((below | set(commits)) - set(new))


def _trust(rewriter: Rewriter, tip: str) -> None:
    name = bytes.fromhex(tip)
    tree = raw_commit(rewriter.read(name)[1]).tree
    rewriter.steps[name] = RewrittenCommit(name, name, tree, tree, (), dropped=False, touches=False)


def needed(arrived: Arrived, session: Repository) -> Iterator[Packed]:
    """Yield every object of a rewritten history that the session does not have."""
    rewriter = arrived.rewriter
    assert rewriter is not None  # noqa: S101 - only what was rewritten is taken so
    waiting = [bytes.fromhex(tip) for tip in arrived.clean.values()]
    # A commit that nothing names may be left by a sync that was killed before its trees came.
    whole = set(session.beyond(commits_of(session, references.read(session.git).values()), ()))
    seen: set[bytes] = set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        is_here = session.has(name.hex())
        kind, data = rewriter.read(name)
        if kind == COMMIT:
            if name.hex() in whole:
                continue
            commit = raw_commit(data)
            waiting += [commit.tree, *commit.parents]
        elif kind == TREE:
            children = read_tree(data).values()
            waiting += [bytes.fromhex(each.id) for each in children if each.mode == FOLDER_MODE]
            yield from _files(rewriter, session, seen, children)
        elif kind == TAG:
            waiting.append(bytes.fromhex(data[7:47].decode()))
        if not is_here:
            made = rewriter.made.get(name)
            yield Packed(name, kind, data, made.like if made else None)


def _files(
    rewriter: Rewriter, session: Repository, seen: set[bytes], children: Iterable[Child]
) -> Iterator[Packed]:
    for each in children:
        name = bytes.fromhex(each.id)
        if each.mode == FOLDER_MODE or name in seen:
            continue
        seen.add(name)
        if not session.has(each.id):
            yield Packed(name, *rewriter.read(name))


class MovedHeadsError(ConflictError):
    """The branches here moved while what came in was looked at; nothing was changed."""


def heads_of(reader: Reader) -> dict[str, str]:
    """Return where the branches of a session are."""
    found = references.read(reader.repository.git).items()
    return {ref: tip for ref, tip in found if ref.startswith(HEADS)}


class Bringing:
    """Gives a rewrite what each branch here gets, as the branches are under the lock."""

    def __init__(
        self,
        repository: Repository,
        there: Mapping[str, str],
        known: Tombstones,
        ours: Mapping[str, str],
        meeting: Meeting,
    ) -> None:
        self._repository = repository
        self._there = there
        self._known = known
        self._ours = dict(ours)
        self._meeting = meeting
        self.removed = set(meeting.removed)

    def records(self, plan: RewritePlan) -> Tombstones:
        """Return what is known of lives that were joined; raise MovedHeadsError if that changed."""
        before = self._meeting
        self._look_again(plan)
        if (before.records, before.theirs) != (self._meeting.records, self._meeting.theirs):
            raise MovedHeadsError(
                "the session changed while it was being synced", hint="sync again"
            )
        return self._meeting.records

    def files(self, plan: RewritePlan) -> Files:
        """Return the files that each branch gets."""
        self._look_again(plan)
        return self._meeting.ours

    def _look_again(self, plan: RewritePlan) -> None:
        ours = {ref: tip.hex() for ref, tip in plan.history.refs.items() if ref.startswith(HEADS)}
        if ours != self._ours:
            self._ours = ours
            self._meeting = meet(self._repository, ours, self._there, self._known)
            self.removed = set(self._meeting.removed)


def of_this_format(held: Quarantine, there: Mapping[str, str], known: Tombstones) -> dict[str, str]:
    """Return what came with its generations written as lives."""
    found = renames(held.repository, there.values(), known)
    if not found:
        return dict(there)
    rewriter = Rewriter(held.repository.raw, known, found)
    refs = rewriter.rewritten(History({ref: bytes.fromhex(tip) for ref, tip in there.items()})).refs
    keep_made(held.repository, rewriter.made)
    return {ref: tip.hex() for ref, tip in refs.items()}


def keep_made(repository: Repository, made: Mapping[bytes, MadeObject]) -> None:
    """Put new objects beside what came in."""
    packed = [Packed(n, m.type, m.data, m.like) for n, m in made.items()]
    if packed:
        storage.write_pack(repository.git / "objects", packed)


def topped(reader: Reader, held: Quarantine, arrived: Arrived, meeting: Meeting) -> Arrived:
    """Return what came with commits on top that bring files, the same on every replica."""
    if arrived.rewriter is not None:
        keep_made(held.repository, arrived.rewriter.made)
    clean = dict(arrived.clean)

    def add(ref: str, files: Mapping[str, bytes | None]) -> None:
        made = commit.carrying(at(ref), files)
        with held.repository.store(made.objects):
            clean[ref] = made.id

    def at(ref: str) -> Snapshot:
        return Snapshot(PageCache(held.repository, reader.local), CommitId(clean[ref]))

    for ref, brought in meeting.theirs.items():
        said = commit.carried_records(at(ref).said, brought, arrived.known)
        add(ref, {**brought, PATH: write(said)})
        if gone := brought.keys() & meeting.removed:
            add(ref, dict.fromkeys(sorted(gone)))
    return arrived._replace(clean=clean)


def returned(
    before: Tombstones, known: Tombstones, there: Mapping[str, str], repository: Repository
) -> Iterator[str]:
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
            yield f"{name} was deleted here and restored elsewhere; it is restored here too"
