"""Checks of a plain `git push`, here and on a server."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import metadata
from smp_git.format.records import Tombstones
from smp_git.git import layout, references
from smp_git.git.references import HEADS, TAGS, TRAVELLING, WAITING, is_ancestor
from smp_git.git.repository import MAIN, Repository
from smp_git.git.transport import EMPTY_TREE
from smp_git.keep.hooks.install import Gate
from smp_git.model.errors import RefusedError
from smp_git.model.ids import parse_path
from smp_git.model.memory import CommitId
from smp_git.remove.history import plan
from smp_git.remove.history.reading import Read
from smp_git.remove.history.rewrite import Gone, Rewriter
from smp_git.sync.inspect.inspection import inspect
from smp_git.sync.twins import apart_there

_NONE: Final = "0" * 40
_SHOWN: Final = 5


class PushedUpdate(NamedTuple):
    """One reference of a remote: where it is, and where it shall be."""

    ref: str
    old: str
    new: str


def pushed(said: str) -> list[PushedUpdate]:
    """Return what Git tells a pre-push hook, without references that go."""
    rows = (line.split() for line in said.splitlines())
    return [PushedUpdate(ref, old, new) for _, new, ref, old in rows if new != _NONE]


def check(gate: Gate, remote: str, pushed: Iterable[PushedUpdate]) -> None:
    """Raise RefusedError if what is pushed holds anything deleted."""
    known = plan.effective(gate.reader)
    if not known:
        return
    repository = gate.reader.repository
    there = references.read(repository.git)
    tips = [tip for ref, tip in there.items() if ref.startswith(f"refs/remotes/{remote}/")]
    wanted = list(pushed)
    sent = [tip for tip in (*tips, *(each.old for each in wanted)) if repository.has(tip)]
    for each in wanted:
        found = held(repository.raw, known, each, sent)
        if found is not None:
            raise RefusedError(
                f"{each.ref.removeprefix('refs/heads/')} holds what was deleted{found}",
                hint="smp sync takes it out of the history and pushes the rest",
            )


def held(
    read: Read, known: Tombstones, update: PushedUpdate, clean: Iterable[str] = ()
) -> str | None:
    """Say which deleted memories a reference would hold, None if there are none.

    Nothing that the `clean` commits reach is looked at.
    """
    rewriter = Rewriter(read, known)
    rewriter.trust(set(clean) - {update.new})
    if rewriter.references({update.ref: update.new}).get(update.ref) == update.new:
        return None
    names = sorted(set(_named(rewriter)))
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f": {', '.join(names[:_SHOWN])}{more}" if names else ""


def _named(rewriter: Rewriter) -> Iterator[str]:
    for step in rewriter.steps.values():
        for item in step.loss:
            place = parse_path(item.path) if isinstance(item, Gone) else None
            if place is not None:
                yield place.text


_MARK = re.compile(rf"{WAITING}[a-z][a-z0-9]{{3}}")


def received(said: str) -> list[PushedUpdate]:
    """Return what Git tells a pre-receive hook."""
    rows = (line.split(" ", 2) for line in said.splitlines())
    return [PushedUpdate(ref, old, new) for old, new, ref in rows]


def receive(bare: Path, objects: Sequence[Path], pushed: Sequence[PushedUpdate]) -> None:
    """Raise an error if a repository must not take what is pushed to it.

    `objects` are the folders in which Git keeps what came in and what was there.
    """
    there = {ref: tip for ref, tip in references.read(bare).items() if ref.startswith("refs/")}
    with _seen_together(objects) as repository:
        _Push(repository, there, pushed).check()


@contextmanager
def _seen_together(objects: Sequence[Path]) -> Iterator[Repository]:
    """Yield a scratch repository that sees what came in and what was there."""
    with tempfile.TemporaryDirectory(prefix="smp-receive-") as name:
        git = Path(name) / ".git"
        layout.create_scratch(git, objects)
        repository = Repository(Path(name))
        try:
            yield repository
        finally:
            repository.close()


class _Push:
    """One push, beside what is there."""

    def __init__(
        self, repository: Repository, there: Mapping[str, str], pushed: Sequence[PushedUpdate]
    ) -> None:
        self._repository = repository
        self._there = there
        self._coming = [each for each in pushed if each.new != _NONE and not _is_mark(each)]
        self._going = [each.ref for each in pushed if each.new == _NONE]

    def check(self) -> None:
        """Raise an error for the first thing that must not be taken."""
        self._check_names()
        if not self._coming:
            return
        self._check_content()
        before = self._before
        known = before | self._tombstones(each.new for each in self._coming)
        clean = self._tips(HEADS) if known == before else []
        for each in self._coming:
            found = held(self._repository.raw, known, each, clean) if known else None
            if found is not None:
                raise RefusedError(
                    f"{_short(each.ref)} would bring back what was deleted{found}",
                    hint="smp sync takes it out of your history, then pushes",
                )
            self._check_forced(each, known)

    def _check_names(self) -> None:
        for each in self._coming:
            if not each.ref.startswith(TRAVELLING):
                raise RefusedError(
                    f"{each.ref} is not a reference of a session", hint="push branches and tags"
                )
        if MAIN in self._going:
            raise RefusedError(
                "the branch main is the session, and is not removed",
                hint="remove the whole repository on the server",
            )

    def _check_content(self) -> None:
        known = [CommitId(tip) for tip in self._tips(HEADS)]
        found = inspect(self._repository, {each.ref: each.new for each in self._coming}, known)
        mine = self._uid()
        if mine is None and MAIN not in [each.ref for each in self._coming]:
            raise RefusedError(
                "this repository holds no session yet", hint="push the branch main first"
            )
        if mine is not None and found.uid and found.uid != mine:
            raise RefusedError(
                f"what is pushed belongs to another session, {found.session}, not to the one that is here",
                hint="push it to a repository of its own",
            )

    def _uid(self) -> str | None:
        """Return which session is here, or None if none is yet."""
        tips = [self._there[MAIN]] if MAIN in self._there else self._tips(HEADS)
        for tip in tips:
            blob = self._repository.find(self._repository.commit(CommitId(tip)).tree, metadata.PATH)
            if blob is not None:
                return str(metadata.mapping(self._repository.blob(blob)).get("uid"))
        return None

    def _tips(self, prefix: str) -> list[str]:
        return [tip for ref, tip in self._there.items() if ref.startswith(prefix)]

    def _tombstones(self, tips: Iterable[str]) -> Tombstones:
        return plan.named(self._repository.raw, map(bytes.fromhex, tips))

    def _check_forced(self, update: PushedUpdate, known: Tombstones) -> None:
        """Refuse a reference that loses something, unless a deletion or new ids explain it."""
        if update.old == _NONE or update.ref.startswith("refs/smp/"):
            return
        if not self._is_kept(update, update.old, known) and not self._is_kept(
            update, self._apart[update.ref], known
        ):
            raise RefusedError(
                f"{_short(update.ref)} would lose what is here, and no deletion explains it",
                hint="smp sync merges both",
            )

    def _is_kept(self, update: PushedUpdate, old: str, known: Tombstones) -> bool:
        """Whether what is pushed has all that a reference held, but for what was deleted."""
        name = Rewriter(self._repository.raw, known).references({update.ref: old})[update.ref]
        if update.ref.startswith(TAGS):
            return update.new in (old, name)
        reached = [CommitId(each) for each in (old, name) if self._repository.has(each)]
        return any(is_ancestor(self._repository, each, CommitId(update.new)) for each in reached)

    @cached_property
    def _apart(self) -> Mapping[str, str]:
        """The references here, with new ids for memories that have the id of another one in what is pushed."""
        kept = {ref: tip for ref, tip in self._there.items() if ref.startswith((HEADS, TAGS))}
        pushed = {each.ref: each.new for each in self._coming}
        return apart_there(self._repository, kept, pushed, self._before)

    @cached_property
    def _before(self) -> Tombstones:
        return self._tombstones(self._there.values())


def _is_mark(update: PushedUpdate) -> bool:
    """Whether an update is the mark of a replica that waits for its turn."""
    return _MARK.fullmatch(update.ref) is not None and update.new == EMPTY_TREE


def _short(ref: str) -> str:
    return ref.removeprefix(HEADS).removeprefix("refs/")
