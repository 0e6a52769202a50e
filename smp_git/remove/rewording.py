"""Replacement of redacted memories: files, records, sealed copies."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from typing import Final, NamedTuple

from smp_git.format import document
from smp_git.format.document import life_of
from smp_git.format.records import Tombstones
from smp_git.git import staging
from smp_git.git.objects import BLOB, object_id
from smp_git.git.references import HEADS
from smp_git.model.errors import InvalidFileError, RefusedError
from smp_git.model.ids import DELETED, REDACT, REDACTED, Edge, Lives, new_life, parse_id, parse_path
from smp_git.model.memory import CommitId, Memory, MemoryId
from smp_git.read.history import stamp
from smp_git.remove.history.journal import Brought
from smp_git.remove.history.plan import RewritePlan
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.site import Site, opened
from smp_git.write.merge.versions import MemoryHistory

_TICK: Final = timedelta(microseconds=1)


class NewWords(NamedTuple):
    """What a redaction leaves: of a memory, of its file as a person wrote it, of who wrote it."""

    memory: Callable[[Memory], Memory]
    file: Callable[[bytes, Memory, Memory], bytes]
    agent: Callable[[str], str]


class Rewording:
    """The texts, records and copies of one redaction, as the session is under the lock."""

    def __init__(self, site: Site, ids: Sequence[MemoryId], words: NewWords, now: datetime) -> None:
        self._site = site
        self._ids = ids
        self._words = words
        self._now = now
        # One name on every branch.
        self._lives = {name: new_life() for name in ids}
        self._made: dict[tuple[str, bytes], bytes] = {}
        self.sealed: list[DeadVersion] = []
        self.removed: set[str] = set()

    def files(self, plan: RewritePlan) -> Brought:
        """Return the redacted files of each branch that has the memories.

        A branch on which a memory is as it once was on the present one gets what that gets.
        """
        return {
            ref: {path: self._file(data, path) for path, data in found.items()}
            for ref, found in self._living(plan).items()
        }

    def _file(self, data: bytes, path: str) -> bytes:
        found = self._made.get((path, data))
        if found is None:
            found = self._made[path, data] = self._reworded(data, path)
        return found

    def _reworded(self, data: bytes, path: str) -> bytes:
        place = parse_path(path)
        assert place is not None  # noqa: S101 - only memories are reworded
        return reworded(data, path, self._words, self._lives[place.text], self._now)

    def _living(self, plan: RewritePlan) -> dict[str, dict[str, bytes]]:
        """Return the files of the memories by branch, as they are before the redaction."""
        repository, own = plan.repository, self._site.reader.ref
        tips = {ref: tip.hex() for ref, tip in plan.history.refs.items() if ref.startswith(HEADS)}
        found: dict[str, dict[str, bytes]] = {}
        for ref, tip in tips.items():
            tree = repository.commit(CommitId(tip)).tree
            for name in self._ids:
                path = parse_id(name).path
                blob = repository.find(tree, path)
                if blob is not None and not plan.known.is_dead(
                    name, life_of(repository.blob(blob), path)
                ):
                    found.setdefault(ref, {})[path] = repository.blob(blob)
        self._add_removed(plan, tips.get(own, ""), found)
        here = found.get(own, {})
        past: dict[str, set[str]] = {}
        if len(found) > 1 and own in tips:
            # Which versions the present branch ever had.
            history = MemoryHistory(plan.repository, [CommitId(tips[own])], here)
            past = {path: history.blobs(path) for path in here}
        for ref, files in found.items():
            if ref != own:
                files.update(
                    {
                        p: here[p]
                        for p, data in files.items()
                        if p in here and _name(data) in past[p]
                    }
                )
        return found

    def _add_removed(self, plan: RewritePlan, tip: str, found: dict[str, dict[str, bytes]]) -> None:
        """Add what no branch has any more, though it was never deleted.

        It was removed by an ordinary commit, and may be on another replica: what is
        left of it has to be in the history, so that it is known there.
        """
        shown = {path for files in found.values() for path in files}
        paths = {parse_id(name).path: name for name in self._ids}
        history = MemoryHistory(plan.repository, [CommitId(tip)], paths.keys() - shown)
        for path in paths.keys() - shown:
            last = history.living(path, plan.known.lives(paths[path]))
            if last is not None:
                self.removed.add(path)
                found.setdefault(self._site.reader.ref, {})[path] = last.file

    def records(self, plan: RewritePlan) -> Tombstones:
        """Return what ends and what begins; raise RefusedError for what cannot be redacted."""
        check_by_hand(self._site, self._ids)
        _check_staged(plan, self._ids)
        # Whatever cannot be reworded is known before anything is done.
        self.files(plan)
        tips = [
            CommitId(tip.hex())
            for tip in plan.history.refs.values()
            if plan.repository.raw(tip)[0] == b"commit"
        ]
        history = MemoryHistory(plan.repository, tips, [parse_id(name).path for name in self._ids])
        living = self._living(plan)
        gone: dict[MemoryId, list[DeadVersion]] = {}
        for version in plan.versions():
            gone.setdefault(version.id, []).append(version)
        return Tombstones.of(
            {
                name: self._record(name, plan, history, living, gone.get(name, []))
                for name in self._ids
            }
        )

    def _record(
        self,
        name: MemoryId,
        plan: RewritePlan,
        history: MemoryHistory,
        living: Mapping[str, Mapping[str, bytes]],
        versions: Sequence[DeadVersion],
    ) -> Lives:
        path, before, life = parse_id(name).path, plan.known.lives(name), self._lives[name]
        heads = [found[path] for found in living.values() if path in found]
        sealed = self._sealed_versions.get(name, [])
        ended = {each.life for each in versions if each.life is not None}
        ended |= {each.life for each in sealed if each.life is not None}
        origin = [life_of(data, path) for data in heads] or sorted(before.known | ended)
        known = before | Lives(dict.fromkeys(ended, (REDACTED,)))
        parents = known.newest(each for each in origin if each is not None)
        horizon = history.said(path).horizon()
        for each in sealed:
            horizon = _later(horizon, each)
        after = before.flagged(ended, REDACTED).begun(life, Edge(REDACT, parents, horizon))
        if heads:
            return after
        self._seal(versions, sealed)
        return after | Lives({life: (DELETED,)})

    @cached_property
    def _sealed_versions(self) -> dict[MemoryId, list[DeadVersion]]:
        found: dict[MemoryId, list[DeadVersion]] = {}
        for record in self._site.trash.records():
            for version in opened(self._site, record) or ():
                item = record.item(version.id)
                if item is not None and item.restored_at is None and version.id in self._ids:
                    found.setdefault(version.id, []).append(version)
        return found

    def _seal(self, versions: Sequence[DeadVersion], sealed: Sequence[DeadVersion]) -> None:
        """Keep the last version of a memory that is nowhere else, redacted, as a sealed copy."""
        current = [each for each in sealed if each.current] or list(sealed)
        for last in (current or versions)[-1:]:
            data = self._reworded(last.data, last.path)
            agent = self._words.agent(last.agent)
            life = self._lives[last.id]
            self.sealed.append(last._replace(life=life, agent=agent, current=True, data=data))


def check_by_hand(site: Site, ids: Sequence[MemoryId]) -> None:
    """Raise RefusedError if a person has changed one of the files: the edit would be lost."""
    repository = site.reader.repository
    tip = repository.head(repository.checked_out())
    tree = repository.commit(tip).tree if tip else None
    for name in ids:
        path = parse_id(name).path
        file = repository.path / path
        committed = repository.find(tree, path) if tree else None
        if file.is_file() and not file.is_symlink() and _name(file.read_bytes()) != committed:
            raise _by_hand(path, "changed")


def _check_staged(plan: RewritePlan, ids: Sequence[MemoryId]) -> None:
    """Raise RefusedError if an edit of one of the memories is staged, and in no commit."""
    file = plan.repository.git / "index"
    staged = staging.staged(file) if file.exists() else {}
    known = {_name(each.data) for each in plan.versions()}
    for path in (parse_id(name).path for name in ids):
        # The index may be behind: what it has then is an older version.
        if path in staged and staged[path].id not in known:
            raise _by_hand(path, "staged")


def _by_hand(path: str, verb: str) -> RefusedError:
    return RefusedError(
        f"{path} was {verb} by hand, so nothing was redacted",
        hint="commit it with smp commit, or put it back with git checkout HEAD, then redact",
    )


def _later(horizon: Mapping[str, str], each: DeadVersion) -> dict[str, str]:
    """Return a horizon that knows a sealed version too, of which only the time is known."""
    at = f"{each.at:%Y-%m-%dT%H:%M:%S.%f}Z/~"
    return {name: max(text, at) for name, text in {"*": "", **horizon}.items()}


def _name(data: bytes) -> str:
    return object_id(BLOB, data)


def reworded(data: bytes, path: str, words: NewWords, life: str, now: datetime) -> bytes:
    """Return a memory's file in other words; raise RefusedError if it does not parse."""
    try:
        old = document.decode(data, path)
    except InvalidFileError as error:
        raise RefusedError(
            f"a file that holds the text cannot be read: {error.message}",
            hint="fix it by hand and run smp commit, or delete the memory",
        ) from None
    before = stamp(old)
    new = replace(
        words.memory(old),
        life=life,
        updated_at=now if now > before else before + _TICK,
    )
    return words.file(data, old, new)
