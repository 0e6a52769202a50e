"""A branch dropped: what only it held is kept first, so that it can be brought back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from smp_git.format.document import life_of
from smp_git.git import references
from smp_git.git.references import only_in
from smp_git.model.errors import NotFoundError, RefusedError
from smp_git.model.ids import parse_path
from smp_git.model.memory import CommitId, MemoryId
from smp_git.remove.delete import items_of
from smp_git.remove.history import journal
from smp_git.remove.history.needles import DeadVersion
from smp_git.remove.record import DROPPED, Record
from smp_git.remove.seal import Kept
from smp_git.remove.site import Site
from smp_git.remove.trash import BACKUP, new_deletion


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """A branch that is gone: where it stood, and the memories that can be restored from it."""

    name: str
    commit: CommitId
    ids: tuple[MemoryId, ...] = ()
    deletion: str | None = None

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "name": self.name,
            "commit": self.commit,
            "ids": list(self.ids),
            "deletion": self.deletion,
        }


def drop(site: Site, ref: str, now: datetime, *, by: str, discard: bool) -> Dropped:
    """Drop a branch; unless `discard`, the versions of memories that only it held are sealed.

    Raises RefusedError, with nothing changed, if they cannot be.
    """
    site.writer.ready()
    site.sweep()
    name = ref.removeprefix("refs/heads/")
    repository = site.reader.repository
    with site.writer.holding(f"dropping branch {name}"):
        tip = repository.head(ref)
        if tip is None:
            raise NotFoundError(f"no branch {name}", hint="smp branch lists them")
        versions = [] if discard else list(_only_there(site, ref, tip))
        deletion = _kept(site, name, versions, tip, now, by) if versions else None
        references.drop(repository.git, ref)
        journal.reached("branch dropped")
        ids = tuple(dict.fromkeys(version.id for version in versions))
        if deletion:
            reason = f"branch {name} was dropped"
            site.note(DROPPED, at=now, by=by, ids=ids, deletion=deletion, reason=reason)
    return Dropped(name=name, commit=tip, ids=ids, deletion=deletion)


def _kept(
    site: Site, name: str, versions: list[DeadVersion], tip: CommitId, now: datetime, by: str
) -> str:
    """Seal versions, and return the id under which the trash has them."""
    try:
        site.trash.check()
    except RefusedError as error:
        raise RefusedError(
            error.message,
            hint="name one with key_dir in config.yaml, merge the branch first, or drop it for good with --discard",
        ) from error
    deletion = new_deletion(now)
    record = Record(
        deletion=deletion,
        session_id=site.trash.session_id,
        session_uid=site.trash.uid,
        deleted_at=now,
        deleted_by=by,
        reason=f"branch {name} was dropped",
        items=tuple(items_of(versions)),
        recovery_deadline=now + site.trash.retention,
        backup=BACKUP,
        key=deletion,
        action=DROPPED,
    )
    at_tip = site.reader.at(tip)
    site.trash.keep(record, [_copied(each, at_tip.file(each.id)) for each in versions])
    # It counts before the branch goes: a crash leaves one copy too many, never none.
    site.trash.confirm(deletion)
    return deletion


def _copied(version: DeadVersion, present: bytes | None) -> Kept:
    return Kept(
        id=version.id,
        life=version.life,
        at=version.at,
        agent=version.agent,
        commit=version.commit,
        current=version.data == present,
        data=version.data,
    )


def _only_there(site: Site, ref: str, tip: CommitId) -> Iterator[DeadVersion]:
    """Yield the versions of memories that no other branch or tag has, oldest first."""
    repository, known = site.reader.repository, site.tombstones()
    refs = repository.references()
    others = {
        repository.resolve(each)
        for each in refs
        if each != ref and each.startswith(("refs/heads/", "refs/tags/"))
    }
    trees = [repository.commit(other).tree for other in others]
    seen: set[tuple[str, str]] = set()
    for commit in reversed(only_in(repository, tip, others)):
        before = repository.commit(commit.parents[0]).tree if commit.parents else None
        for path, _, blob in repository.changes(before, commit.tree):
            place = parse_path(path)
            if place is None or blob is None or (path, blob) in seen:
                continue
            seen.add((path, blob))
            data = repository.blob(blob)
            life = life_of(data, path)
            if not known.is_dead(place.text, life) and all(
                repository.find(tree, path) != blob for tree in trees
            ):
                yield DeadVersion(
                    id=place.text,
                    path=path,
                    life=life,
                    at=commit.time,
                    agent=commit.author,
                    commit=commit.id,
                    data=data,
                )
