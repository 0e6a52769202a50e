"""A remote's clean references brought into the session: branches joined, tags and counts taken."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from smp_git.format.messages import MEND
from smp_git.git import references
from smp_git.git.ancestry import is_ancestor, merge_bases
from smp_git.git.repository import MAIN, Repository
from smp_git.model.errors import ConflictError, RefusedError
from smp_git.model.ids import INDEX
from smp_git.model.memory import COMMENTS, CommitId
from smp_git.read.pages import rebuilt
from smp_git.read.snapshot import Reader
from smp_git.sync.inspect.inspection import Inspected
from smp_git.sync.remotes import ACCESS, HEADS, Seen, branch_of, rescue, shown_ref, tracking
from smp_git.write import commit
from smp_git.write.commit import assemble
from smp_git.write.merge.join import join
from smp_git.write.merge.trees import Conflict
from smp_git.write.writer import Writer

_WAY_OUT: Final = "nothing is missing here; smp sync --accept brings the remote up to date again"


def check(reader: Reader, remote: str, clean: Mapping[str, str], *, accept: bool) -> list[str]:
    """Raise RefusedError if main of the remote is unrelated, or lost what it had.

    What is here is then kept under a rescue reference too; the caller holds the lock.
    Another branch may have been dropped and pushed anew: returns sentences that say so.
    """
    repository = reader.repository
    own = repository.head(MAIN)
    main = clean.get(MAIN)
    if main and own and not merge_bases(repository, own, CommitId(main)):
        raise _refused(
            reader,
            remote,
            MAIN,
            "has a history that shares nothing with this one",
            "compare them with git log; a new clone is smp clone",
        )
    notes = []
    for ref, tip in clean.items():
        if not ref.startswith(HEADS) or accept:
            continue
        before = repository.head(tracking(remote, ref))
        if before is not None and not is_ancestor(repository, before, CommitId(tip)):
            if ref == MAIN:
                raise _refused(reader, remote, ref, _lost(reader, before, tip), _WAY_OUT)
            notes.append(
                f"branch {branch_of(ref)} was recreated on {remote}; it is merged with the branch here"
            )
    return notes


def check_not_emptied(
    reader: Reader, remote: str, there: Mapping[str, str], seen: Seen, *, accept: bool
) -> None:
    """Raise RefusedError if a remote that held this session has no main branch now."""
    if MAIN not in there and seen.refs.get(MAIN) and not accept:
        what = "has no main branch" if there else "is empty"
        raise _refused(reader, remote, MAIN, f"{what}, though it held this session", _WAY_OUT)


def _lost(reader: Reader, before: CommitId, tip: str) -> str:
    count = len(reader.repository.beyond([before], [CommitId(tip)]))
    commits = "1 commit" if count == 1 else f"{count} commits"
    return f"went back: it no longer has {commits} that it had"


def _refused(reader: Reader, remote: str, ref: str, what: str, hint: str) -> RefusedError:
    repository = reader.repository
    own, aside = repository.head(ref), rescue(remote, ref)
    if own is not None:
        repository.point({aside: own})
    return RefusedError(
        f"remote {remote} {what} (branch {branch_of(ref)}), so nothing was merged", hint=hint
    )


class Integrated(NamedTuple):
    """What came of a remote's branches; `left` are those that were not to be made here."""

    merged: tuple[str, ...]
    contested: tuple[Conflict, ...]
    notes: tuple[str, ...]
    left: tuple[str, ...]


def integrate(
    writer: Writer, remote: str, clean: Mapping[str, str], inspected: Inspected, *, merge: bool
) -> Integrated:
    """Note where a remote's references stand and, with `merge`, join them with ours.

    The caller holds the lock, and every object is here.
    """
    repository = writer.reader.repository
    merged: list[str] = []
    contested: list[Conflict] = []
    notes: list[str] = []
    before = references.read(repository.git)
    # First: a branch may have the name of the folder in which another now stands.
    notes += _gone(repository, remote, clean, before, merge=merge)
    if merge:
        _check_names(remote, clean, references.read(repository.git))
    left = () if merge else tuple(ref for ref in clean if _is_left(remote, ref, clean[ref], before))
    noted = _noted(writer, remote, clean, left)
    # Waits for little now, and for all checked-out files if it comes behind them.
    repository.point({name: tip for name, (tip, of) in noted.items() if of in before})
    for ref, tip in sorted(clean.items(), key=lambda item: (item[0] != MAIN, item[0])):
        # Not a branch that was dropped here and got nothing more there.
        if (
            merge
            and ref.startswith(HEADS)
            and (ref in before or _is_left(remote, ref, tip, before))
        ):
            whole = mended(writer.reader, CommitId(tip), inspected.lying.get(ref, ()))
            joined = join(writer, ref, whole, source=f"{branch_of(ref)} of {remote}")
            contested += [each for each in joined.contested if each.field != COMMENTS]
            notes += [
                f"comments from one side of {each.id} were not kept; they are in the history"
                for each in joined.contested
                if each.field == COMMENTS
            ]
            merged += [branch_of(ref)] if joined.is_merge else []
            notes += [
                f"{path} is left as you changed it; smp commit merges both" for path in joined.left
            ]
    # Last: a branch that is known to have been there, but is not here, counts as dropped.
    repository.point({name: tip for name, (tip, _) in noted.items()})
    return Integrated(tuple(merged), tuple(contested), tuple(notes), left)


def _check_names(remote: str, clean: Mapping[str, str], here: Mapping[str, str]) -> None:
    """Raise ConflictError if a branch there and one here cannot both be: a file and its folder."""
    ours = [ref for ref in here if ref.startswith(HEADS)]
    new = [ref for ref in clean if ref.startswith(HEADS) and ref not in here]
    for ref, other in references.collisions(new, ours):
        raise ConflictError(
            f"branch {branch_of(ref)} of {remote} cannot exist beside {branch_of(other)} here",
            hint=f"git branch -m {branch_of(other)} NAME gives the one here another name",
        )


def _is_left(remote: str, ref: str, tip: str, before: Mapping[str, str]) -> bool:
    """Whether a branch of a remote is not here, and has what was not here either."""
    return ref.startswith(HEADS) and ref not in before and before.get(tracking(remote, ref)) != tip


def _noted(
    writer: Writer, remote: str, clean: Mapping[str, str], left: Collection[str]
) -> dict[str, tuple[CommitId, str]]:
    """Return where references go that only remember, and tags and counts that are taken.

    With each is the reference here that it is about. A branch that is `left` is shown to
    plain Git only: one that is known to have been there, but is not here, counts as dropped.
    """
    repository = writer.reader.repository
    moves: dict[str, tuple[CommitId, str]] = {}
    for ref, tip in clean.items():
        theirs = CommitId(tip)
        if ref.startswith(ACCESS):
            if _is_newer(writer, ref, theirs):
                moves[ref] = theirs, ref
            continue
        if ref not in left:
            moves[tracking(remote, ref)] = theirs, ref
        if ref.startswith(HEADS):
            moves[shown_ref(remote, ref)] = theirs, ref
        elif repository.head(ref) is None:
            moves[ref] = theirs, ref
    return moves


def mended(reader: Reader, tip: CommitId, pages: Collection[str]) -> CommitId:
    """Return a commit on top of another that puts right what its page indexes say wrongly.

    Replicas that repair the same make the same commit.
    """
    if not pages:
        return tip
    base, repository = reader.at(tip), reader.repository
    trees = base.page_ids()
    files: dict[str, bytes | None] = {}
    for page in pages:
        tree = trees.get(page)
        files[f"{page}/{INDEX}"] = (
            (rebuilt(repository, page, tree).encode() or None) if tree else None
        )
    made = assemble(base, files)
    top = commit.derived(made.tree, (tip,), repository.commit(tip).time, MEND)
    with repository.store([*made.objects, top]) as written:
        written.force()
    return CommitId(top.id)


def _is_newer(writer: Writer, ref: str, theirs: CommitId) -> bool:
    """Whether another replica's access counts are newer than those known here."""
    repository = writer.reader.repository
    ours = repository.head(ref)
    if ref == ACCESS + writer.identity().tag or ours == theirs:
        return False
    return ours is None or repository.commit(ours).time <= repository.commit(theirs).time


def _gone(
    repository: Repository,
    remote: str,
    clean: Mapping[str, str],
    before: Mapping[str, str],
    *,
    merge: bool,
) -> list[str]:
    """Follow the branches that were dropped on the remote, where nothing was added here."""
    notes = []
    prefix = tracking(remote, HEADS)
    for name, known in before.items():
        ref = HEADS + name.removeprefix(prefix)
        if not name.startswith(prefix) or ref in clean or ref == MAIN:
            continue
        references.drop(repository.git, shown_ref(remote, ref))
        if ref in before and not merge:
            continue
        if before.get(ref) == known and ref != repository.checked_out():
            repository.point({rescue(remote, ref): CommitId(known)})
            references.drop(repository.git, ref)
            notes.append(
                f"branch {branch_of(ref)} was dropped on {remote}; it is kept as {rescue(remote, ref)}"
            )
        elif ref in before:
            notes.append(
                f"branch {branch_of(ref)} was dropped on {remote}, but has more here; it stays"
            )
        references.drop(repository.git, name)
    return notes
