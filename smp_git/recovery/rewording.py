"""What a redaction puts in the place of what it takes out: files, records, sealed copies."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cached_property
from types import MappingProxyType
from typing import Final

from smp_git import lives
from smp_git.erasure.erase import Version
from smp_git.erasure.plan import Plan
from smp_git.erasure.publish import Brought
from smp_git.errors import InvalidFileError, RefusedError
from smp_git.format import document
from smp_git.format.ids import parse_id
from smp_git.format.life import life_of
from smp_git.format.tombstones import Tombstones
from smp_git.git.objects import BLOB, object_id
from smp_git.git.references import HEADS
from smp_git.lives import DELETED, REDACT, REDACTED, Edge, Lives
from smp_git.memory import CommitId, Memory, MemoryId, Value, agent_name, check_fields, title_of
from smp_git.merging.masking import replaced
from smp_git.merging.sayings import History
from smp_git.origins import stamp
from smp_git.recovery import copies
from smp_git.recovery.seal import Kept
from smp_git.recovery.site import Site

_TICK: Final = timedelta(microseconds=1)


class Rewording:
    """The texts, records and copies of one redaction, as the session is under the lock."""

    def __init__(self, site: Site, ids: Sequence[MemoryId], regex: re.Pattern[str], replacement: str, now: datetime) -> None:  # fmt: skip
        self._site = site
        self._ids = ids
        self._regex = regex
        self._replacement = replacement
        self._now = now
        # One name on every branch.
        self._lives = {name: lives.new_life() for name in ids}
        self.sealed: list[Kept] = []
        self.removed: set[str] = set()

    def files(self, plan: Plan) -> Brought:
        """Return the redacted files of each branch that has the memories.

        A branch on which a memory is as it once was on the present one gets what that gets.
        """
        return {
            ref: {path: self._file(data, path) for path, data in found.items()}
            for ref, found in self._standing(plan).items()
        }

    def _file(self, data: bytes, path: str) -> bytes:
        name = next(name for name in self._ids if parse_id(name).path == path)
        return reworded(data, path, self._regex, self._replacement, self._lives[name], self._now)

    def _standing(self, plan: Plan) -> dict[str, dict[str, bytes]]:
        """Return the files of the memories by branch, as they are before the redaction."""
        repository, own = plan.repository, self._site.reader.ref
        tips = {ref: tip.hex() for ref, tip in plan.history.refs.items() if ref.startswith(HEADS)}
        found: dict[str, dict[str, bytes]] = {}
        for ref, tip in tips.items():
            tree = repository.commit(CommitId(tip)).tree
            for name in self._ids:
                path = parse_id(name).path
                blob = repository.find(tree, path)
                if blob is not None and not plan.known.is_dead(name, life_of(repository.blob(blob), path)):  # fmt: skip
                    found.setdefault(ref, {})[path] = repository.blob(blob)
        self._stand_in_history(plan, tips.get(own, ""), found)
        here = found.get(own, {})
        past = self._past(plan, tips[own], here) if len(found) > 1 and own in tips else {}
        for ref, files in found.items():
            if ref != own:
                files.update({p: here[p] for p, data in files.items() if p in here and _name(data) in past[p]})  # fmt: skip
        return found

    def _stand_in_history(self, plan: Plan, tip: str, found: dict[str, dict[str, bytes]]) -> None:
        """Add what no branch has any more, though it was never deleted.

        It was removed by an ordinary commit, and may stand on another replica: what is
        left of it has to be in the history, so that it is known there.
        """
        shown = {path for files in found.values() for path in files}
        paths = {parse_id(name).path: name for name in self._ids}
        history = History(plan.repository, [CommitId(tip)], paths.keys() - shown)
        for path in paths.keys() - shown:
            last = history.living(path, plan.known.lives(paths[path]))
            if last is not None:
                self.removed.add(path)
                found.setdefault(self._site.reader.ref, {})[path] = last.file

    def _past(self, plan: Plan, tip: str, files: Mapping[str, bytes]) -> dict[str, set[str]]:
        """Return which versions the present branch ever had of some files."""
        history = History(plan.repository, [CommitId(tip)], files)
        return {path: history.blobs(path) for path in files}

    def records(self, plan: Plan) -> Tombstones:
        """Return what ends and what begins; raise RefusedError for what cannot be redacted."""
        tips = [CommitId(tip.hex()) for tip in plan.history.refs.values() if plan.repository.raw(tip)[0] == b"commit"]  # fmt: skip
        history = History(plan.repository, tips, [parse_id(name).path for name in self._ids])
        standing = self._standing(plan)
        gone: dict[MemoryId, list[Version]] = {}
        for version in plan.versions():
            gone.setdefault(version.id, []).append(version)
        return Tombstones.of(
            {
                name: self._record(name, plan, history, standing, gone.get(name, []))
                for name in self._ids
            }
        )

    def _record(self, name: MemoryId, plan: Plan, history: History, standing: Mapping[str, Mapping[str, bytes]], versions: Sequence[Version]) -> Lives:  # fmt: skip
        path, before, life = parse_id(name).path, plan.known.lives(name), self._lives[name]
        heads = [found[path] for found in standing.values() if path in found]
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
        self._seal(name, [*versions], sealed)
        return after | Lives({life: (DELETED,)})

    @cached_property
    def _sealed_versions(self) -> dict[MemoryId, list[Kept]]:
        found: dict[MemoryId, list[Kept]] = {}
        for record in self._site.trash.records():
            for version in copies.opened(self._site, record):
                item = record.item(version.id)
                if item is not None and item.restored_at is None and version.id in self._ids:
                    found.setdefault(version.id, []).append(version)
        return found

    def _seal(self, name: MemoryId, versions: Sequence[Version], sealed: Sequence[Kept]) -> None:
        """Keep the last version of a memory that stands nowhere, redacted, as a sealed copy."""
        current = [each for each in sealed if each.current] or list(sealed)
        last = current[-1] if current else None
        if last is None and versions:
            each = versions[-1]
            last = Kept(id=name, life=each.life, at=each.at, agent=each.agent, commit=each.commit, current=True, data=each.data)  # fmt: skip
        if last is not None:
            data = reworded(last.data, parse_id(name).path, self._regex, self._replacement, self._lives[name], self._now)  # fmt: skip
            agent = _slug(last.agent, self._regex)
            self.sealed.append(replace(last, life=self._lives[name], agent=agent, current=True, data=data))  # fmt: skip


def _later(horizon: Mapping[str, str], each: Kept) -> dict[str, str]:
    """Return a horizon that knows a sealed version too, of which only the time is known."""
    at = f"{each.at:%Y-%m-%dT%H:%M:%S.%f}Z/~"
    return {name: max(text, at) for name, text in {"*": "", **horizon}.items()}


def _name(data: bytes) -> str:
    return object_id(BLOB, data)


def _slug(agent: str, regex: re.Pattern[str]) -> str:
    return "redacted" if regex.search(agent) else agent


def reworded(data: bytes, path: str, regex: re.Pattern[str], replacement: str, life: str, now: datetime) -> bytes:  # fmt: skip
    """Return a memory's file without what `regex` fits; raise RefusedError if it does not parse."""
    try:
        old = document.decode(data, path)
    except InvalidFileError as error:
        raise RefusedError(
            f"a file that holds the text cannot be read: {error.message}",
            hint="mend it by hand and run smp commit, or delete the memory",
        ) from None
    before = stamp(old)
    new = replace(
        _reworded(old, regex, replacement),
        life=life,
        updated_at=now if now > before else before + _TICK,
    )
    kept = document.edited(data, old, new)
    # A comment of a person may hold it too; then the file is written anew.
    return document.encode(new) if regex.search(kept.decode()) else kept


def _reworded(memory: Memory, regex: re.Pattern[str], replacement: str) -> Memory:
    place = parse_id(memory.id)

    def change(text: str) -> str:
        return regex.sub(lambda _: replacement, text)

    fields = {name: value for name, value in memory.fields.items() if not regex.search(name)} | {
        re.sub(r"[^A-Za-z0-9_.-]", "_", f"x{change(name)}")[:64]: value
        for name, value in memory.fields.items()
        if regex.search(name)
    }
    content = document.check_content(place.kind, change(memory.content))
    cleared: dict[str, Value] = {name: replaced(value, change) for name, value in fields.items()}
    checked = check_fields(place.kind, cleared)
    return replace(
        memory,
        agent=agent_name(_slug(memory.agent, regex)),
        content=content,
        title=title_of(content, checked) or document.default_title(place),
        tags=tuple(tag for tag in memory.tags if not regex.search(tag)),
        links=tuple(link for link in memory.links if not regex.search(" ".join(link))),
        fields=MappingProxyType(checked),
    )
