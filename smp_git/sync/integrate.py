"""A remote's clean references brought into a session, or into a new one: a clone."""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format.messages import MEND
from smp_git.format.records import Tombstones
from smp_git.git import disk, layout, references, staging
from smp_git.git.addresses import parse
from smp_git.git.references import ACCESS, HEADS, TAGS, is_ancestor, merge_bases
from smp_git.git.repository import MAIN, Repository
from smp_git.git.transport import Limits
from smp_git.git.transport import RemoteAccess as Way
from smp_git.model.errors import (
    AlreadyExistsError,
    ConflictError,
    RefusedError,
    RemoteNotFoundError,
)
from smp_git.model.ids import INDEX, SESSION_ID
from smp_git.model.memory import COMMENTS, CommitId
from smp_git.read.pages import rebuilt
from smp_git.read.replica import Identity, Local, new_tag
from smp_git.read.snapshot import Reader
from smp_git.remove.meeting import meet
from smp_git.sync import remotes
from smp_git.sync.heads import Arrived, cleaned, needed, topped
from smp_git.sync.inspect import inspection
from smp_git.sync.inspect.inspection import Inspected, inspect
from smp_git.sync.quarantine import Quarantine
from smp_git.sync.remotes import ORIGIN, Remote, Seen, branch_of, rescue, shown_ref, tracking
from smp_git.write import commit
from smp_git.write.commit import assemble
from smp_git.write.merge.join import join
from smp_git.write.merge.memories import Conflict
from smp_git.write.writer import Writer

_WAY_OUT: Final = "nothing is missing here; smp sync --accept brings the remote up to date again"


def check_related(
    reader: Reader, remote: str, clean: Mapping[str, str], *, accept: bool
) -> list[str]:
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
    own, kept = repository.head(ref), rescue(remote, ref)
    if own is not None:
        repository.point({kept: own})
    return RefusedError(
        f"remote {remote} {what} (branch {branch_of(ref)}), so nothing was merged", hint=hint
    )


class Integrated(NamedTuple):
    """Result for a remote's branches; `left` are those that were not to be made here."""

    merged: tuple[str, ...]
    contested: tuple[Conflict, ...]
    notes: tuple[str, ...]
    left: tuple[str, ...]


def integrate(
    writer: Writer, remote: str, clean: Mapping[str, str], inspected: Inspected, *, merge: bool
) -> Integrated:
    """Note where a remote's references are and, with `merge`, join them with ours.

    The caller holds the lock, and every object is here.
    """
    repository = writer.reader.repository
    merged: list[str] = []
    contested: list[Conflict] = []
    notes: list[str] = []
    before = references.read(repository.git)
    # First: a branch may have the name of the folder in which another now is.
    notes += _gone(repository, remote, clean, before, merge=merge)
    if merge:
        _check_names(remote, clean, references.read(repository.git))
    left = () if merge else tuple(ref for ref in clean if _is_left(remote, ref, clean[ref], before))
    noted = _noted(writer, remote, clean, left, before)
    # Waits for little now, and for all checked-out files if it comes behind them.
    repository.point({name: tip for name, (tip, of) in noted.items() if of in before})
    for ref, tip in sorted(clean.items(), key=lambda item: (item[0] != MAIN, item[0])):
        # Not a branch that was dropped here and got nothing more there.
        if (
            merge
            and ref.startswith(HEADS)
            and (ref in before or _is_left(remote, ref, tip, before))
        ):
            whole = repaired(writer.reader, CommitId(tip), inspected.lying.get(ref, ()))
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
    writer: Writer,
    remote: str,
    clean: Mapping[str, str],
    left: Collection[str],
    before: Mapping[str, str],
) -> dict[str, tuple[CommitId, str]]:
    """Return where references go that only remember, and tags and counts that are taken.

    With each is the reference here that it is about. A branch that is `left` is shown to
    plain Git only: one that is known to have been there, but is not here, counts as dropped.
    """
    moves: dict[str, tuple[CommitId, str]] = {}
    for ref, tip in clean.items():
        theirs = CommitId(tip)
        if ref.startswith(ACCESS):
            if _is_newer(writer, ref, theirs):
                moves[ref] = theirs, ref
            continue
        if ref not in left and not _is_contested(remote, ref, tip, before):
            moves[tracking(remote, ref)] = theirs, ref
        if ref.startswith(HEADS):
            moves[shown_ref(remote, ref)] = theirs, ref
        elif _is_taken(remote, ref, tip, before):
            moves[ref] = theirs, ref
    return moves


def _is_contested(remote: str, ref: str, tip: str, before: Mapping[str, str]) -> bool:
    """Whether a tag was moved here and there; then what was known of it stays."""
    ours, known = before.get(ref), before.get(tracking(remote, ref))
    return ref.startswith(TAGS) and ours not in (None, tip, known) and known != tip


def _is_taken(remote: str, ref: str, tip: str, before: Mapping[str, str]) -> bool:
    """Whether a tag of a remote is taken: a new one, or one that only the remote moved."""
    ours, known = before.get(ref), before.get(tracking(remote, ref))
    # What was known and is not here was removed here.
    return known != tip if ours is None else known == ours != tip


def repaired(reader: Reader, tip: CommitId, pages: Collection[str]) -> CommitId:
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
        written.flush()
    return CommitId(top.id)


def _is_newer(writer: Writer, ref: str, theirs: CommitId) -> bool:
    """Whether another replica's access counts are newer than those known here."""
    repository = writer.reader.repository
    ours = repository.head(ref)
    if ref == ACCESS + writer.identity().tag or ours == theirs:
        return False
    return ours is None or repository.commit(ours).time <= repository.commit(theirs).time


def _tags_gone(
    repository: Repository, remote: str, clean: Mapping[str, str], before: Mapping[str, str]
) -> list[str]:
    notes = []
    prefix = tracking(remote, TAGS)
    for name, known in before.items():
        ref = TAGS + name.removeprefix(prefix)
        if not name.startswith(prefix) or ref in clean:
            continue
        if before.get(ref) == known:
            repository.point({rescue(remote, ref): CommitId(known)})
            references.drop(repository.git, ref)
            tag = ref.removeprefix(TAGS)
            notes.append(f"tag {tag} was removed on {remote}; it is kept as {rescue(remote, ref)}")
        references.drop(repository.git, name)
    return notes


def _gone(
    repository: Repository,
    remote: str,
    clean: Mapping[str, str],
    before: Mapping[str, str],
    *,
    merge: bool,
) -> list[str]:
    """Follow the branches and tags that are gone from the remote, where nothing changed here."""
    notes = _tags_gone(repository, remote, clean, before) if merge else []
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


def addressed(text: str, pattern: str | None, base: Path) -> Remote:
    """Return the remote at an address, or that a store's pattern gives the session `text`."""
    if pattern is not None and SESSION_ID.fullmatch(text):
        return Remote(ORIGIN, parse(pattern.replace("{session}", text), base), is_own=False)
    return Remote(ORIGIN, parse(text, Path().absolute()))


def clone(
    folder: Path, remote: Remote, way: Way, limits: Limits, choose: Callable[[str], Path]
) -> Path:
    """Make a session from a remote and return its path; until it is whole it is in `folder`.

    `choose` returns the place of the new session, given the name that the remote says; it
    raises an error if that cannot be. The session appears whole or not at all.
    """
    scratch = folder / f".new-{secrets.token_hex(8)}"
    try:
        with disk.reporting(f"a session to {folder}"):
            layout.create(scratch)
            identity = Identity(new_tag(), creator=False)
            named_there, said = _filled(scratch, remote, way, limits)
            place = choose(said)
            local = Local(scratch / ".git")
            local.identify(scratch, identity, place)
            local.note_boot()
            if remote.is_own:
                remotes.add(scratch, remote.name, remote.address)
            remotes.keep_seen(
                local.folder,
                remote.name,
                remotes.Seen(address=remote.address.text, refs=named_there),
            )
            # Everything at once: one by one, ten thousand files would take a minute.
            os.sync()
            _move(scratch, place)
        return place
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _filled(
    scratch: Path, remote: Remote, way: Way, limits: Limits
) -> tuple[Mapping[str, str], str]:
    """Bring everything in; return what the remote named, and the id of its session."""
    git, address = scratch / ".git", remote.address.text
    with inspection.fetched(git, address, way, limits) as (held, left_out):
        there = dict(held.refs)
        if MAIN not in there:
            raise RemoteNotFoundError(
                f"{remote.address.text} holds no session yet",
                hint="push one to it first: smp remote add, then smp sync",
            )
        inspected = inspect(held.repository, there, ())
        arrived = _settled(scratch, held, there, inspected.tombstones)
        repository = Repository(scratch)
        if arrived.is_rewritten:
            held.adopt_objects(needed(arrived, repository))
        else:
            held.adopt()
    repository.close()
    _placed(scratch, remote.name, arrived, inspected.lying)
    return {**there, **left_out}, inspected.session


def _settled(
    scratch: Path, held: Quarantine, there: Mapping[str, str], told: Tombstones
) -> Arrived:
    """Return what came without what was deleted, each branch with the memories that live on it."""
    meeting = meet(held.repository, {}, there, told)
    arrived = cleaned(held.repository, there, told | meeting.records, frozenset())
    if not meeting.theirs:
        return arrived
    with closing(Reader(scratch)) as reader:
        return topped(reader, held, arrived, meeting)


def _placed(
    scratch: Path,
    remote: str,
    arrived: Arrived,
    lying: Mapping[str, Collection[str]],
) -> None:
    """Point the references at what came, its indexes repaired, and write the files of main."""
    reader = Reader(scratch)
    repository = reader.repository
    moves: dict[str, CommitId] = {}
    for ref, tip in arrived.clean.items():
        names = [] if ref.startswith(ACCESS) else [tracking(remote, ref)]
        names += [shown_ref(remote, ref)] if ref.startswith(HEADS) else []
        moves |= dict.fromkeys(names, CommitId(tip))
        moves[ref] = repaired(reader, CommitId(tip), lying.get(ref, ()))
    repository.point(moves)
    Local(repository.git).keep_tombstones(arrived.known)
    tree = repository.commit(moves[MAIN]).tree
    made: set[Path] = set()
    for path, blob in repository.files(tree):
        target = repository.path / path
        if target.parent not in made:
            disk.make_folders(target.parent)
            made.add(target.parent)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            disk.write_all(fd, repository.blob(blob))
        finally:
            os.close(fd)
    staging.refresh(repository, tree)
    reader.close()


def _move(scratch: Path, place: Path) -> None:
    try:
        scratch.rename(place)
    except OSError as error:
        if place.exists():
            raise AlreadyExistsError(f"session {place.name} exists") from error
        raise
    disk.flush_folder(place.parent)
