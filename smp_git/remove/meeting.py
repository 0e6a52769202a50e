"""Files for branches on which lives of a memory died or met, brought by a commit of their own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from smp_git.format.document import life_of
from smp_git.format.records import Tombstones
from smp_git.git import references
from smp_git.git.references import HEADS
from smp_git.git.repository import MAIN, Repository
from smp_git.model.errors import ConflictError
from smp_git.model.ids import Lives, parse_id
from smp_git.model.memory import CommitId, MemoryId
from smp_git.read.snapshot import Reader
from smp_git.remove.history.plan import RewritePlan, effective
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
    """Outcome of a meeting: records of lives that were joined, and the files of branches.

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
        elif len(there) > 1 or any(_gives_way(each.lives, life) for life in there):
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


def _is_left_apart(known: Lives) -> bool:
    """Whether redactions that did not know of each other are all that is left of a memory."""
    left = [life for life in known.redactions if _is_overtaken(known, life)]
    return len(left) > 1 and all(map(known.is_dead, known.known))


def _is_overtaken(known: Lives, life: str) -> bool:
    """Whether a life is dead, but was not deleted: a redaction took its place."""
    return known.is_dead(life) and not is_ended(known, life)


def _gives_way(known: Lives, life: str) -> bool:
    """Whether another life may be in the place of this one."""
    return _is_overtaken(known, life) or (known.is_dead(life) and not known.is_gone)


class _Look:
    """Reads heads and histories of both sides."""

    def __init__(
        self, repository: Repository, tips: Mapping[Head, str], names: list[MemoryId]
    ) -> None:
        self._repository = repository
        self._names = names
        self.tips = tips
        self._trees = {tip: repository.commit(CommitId(tip)).tree for tip in set(tips.values())}
        self._histories: dict[str, MemoryHistory] = {}

    def lives(self, path: str) -> set[str]:
        """Return the lives that branches have a memory in, as far as they can be told."""
        blobs = {self._repository.find(tree, path) for tree in self._trees.values()} - {None}
        found = {life_of(self._repository.blob(blob), path) for blob in blobs if blob}
        return {life for life in found if life is not None}

    def version(self, head: Head, path: str) -> FileVersion | None:
        """Return the version of a memory on a branch, None if it is not there or unreadable."""
        blob = self._repository.find(self._trees[self.tips[head]], path)
        return memories.version(self._repository.blob(blob), path) if blob else None

    def before(self, head: Head, path: str, known: Lives) -> FileVersion | None:
        """Return the last version of a memory in the history of a branch that is alive, if any."""
        tip = self.tips[head]
        if tip not in self._histories:
            self._histories[tip] = self._history_of([CommitId(tip)])
        return self._histories[tip].living(path, known)

    @cached_property
    def history(self) -> MemoryHistory:
        """The memories in the histories of both sides."""
        return self._history_of(sorted({CommitId(tip) for tip in self.tips.values()}))

    def _history_of(self, tips: Iterable[CommitId]) -> MemoryHistory:
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
        self._was_put_back = False
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
            if self.lives.is_dead(self._after[head].memory.life):
                self._replace_dead(head)

    def _replace_dead(self, head: Head) -> None:
        """Give a branch what is in the place of a version that may not stay."""
        before = self._look.before(head, self._path, self.lives)
        self._was_put_back |= before is not None
        if not _is_overtaken(self.lives, self._after[head].memory.life):
            self._after[head] = before or self._after[head]
            return
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
        """Say of which fields words were taken out, and that an old version is gone."""
        if self._was_put_back:
            yield f"{self._name}: plain Git had put an old version back; the present one is in its place again"
        if self._masked:
            fields = ", ".join(sorted(self._masked))
            yield f"{self._name}: a redaction met other changes; look at {fields}, where words or a value may have gone"


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

    @property
    def known(self) -> Tombstones:
        """Everything that is known of lives, those that were joined included."""
        return self._known | self._meeting.records

    @property
    def notes(self) -> tuple[str, ...]:
        """Name the memories and fields of which words were taken out."""
        return self._meeting.notes

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


def put_back(reader: Reader) -> Bringing | None:
    """Return what each branch gets that has an old version of a living memory; None if none has.

    Plain Git may have put it there: a file of an old clone, an old commit picked.
    """
    known, ours = effective(reader), heads_of(reader)
    meeting = meet(reader.repository, ours, {}, known)
    return Bringing(reader.repository, {}, known, ours, meeting) if meeting.ours else None
