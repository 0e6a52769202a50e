"""What a remote holds, made clean: checked, and without what was deleted anywhere."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from smp_git.format.records import Tombstones
from smp_git.git import references
from smp_git.git.objects import COMMIT, FOLDER_MODE, TREE, Child, read_tree
from smp_git.git.packs import Packed
from smp_git.git.repository import Repository
from smp_git.model.memory import CommitId
from smp_git.remove.history.rewrite import TAG, History, Rewriter, Step, raw_commit


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


def cleaned(repository: Repository, named: Mapping[str, str], known: Tombstones, trusted: frozenset[str]) -> Arrived:  # fmt: skip
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


def boundary(repository: Repository, tips: Iterable[str], known: Iterable[CommitId]) -> frozenset[str]:  # fmt: skip
    """Return the commits on which what `tips` have more than `known` ones stands."""
    commits = commits_of(repository, tips)
    new = repository.beyond(commits, known)
    below = {parent for name in new for parent in repository.commit(name).parents}
    return frozenset((below | set(commits)) - set(new))


def _trust(rewriter: Rewriter, tip: str) -> None:
    name = bytes.fromhex(tip)
    tree = raw_commit(rewriter.read(name)[1]).tree
    rewriter.steps[name] = Step(name, name, tree, tree, (), dropped=False, touches=False)


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


def _files(rewriter: Rewriter, session: Repository, seen: set[bytes], children: Iterable[Child]) -> Iterator[Packed]:  # fmt: skip
    for each in children:
        name = bytes.fromhex(each.id)
        if each.mode == FOLDER_MODE or name in seen:
            continue
        seen.add(name)
        if not session.has(each.id):
            yield Packed(name, *rewriter.read(name))
