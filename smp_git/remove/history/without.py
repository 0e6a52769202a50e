"""History without objects that are lost: each commit that had one keeps the version before.

What is lost cannot come back, and a commit that names it is not whole: Git refuses to copy,
to check and to pack it. So those commits, and all after them, are written anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from smp_git.format import lines
from smp_git.git.objects import BLOB, COMMIT, TREE, Object, Raw, changed_commit, object_id
from smp_git.git.repository import Repository
from smp_git.git.survey import Survey
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import INDEX, parse_path
from smp_git.model.memory import MemoryId
from smp_git.read.pages import row_of
from smp_git.remove.history.reading import FOLDER, TreeEntry, entries

_EMPTY: Final = bytes.fromhex("4b825dc642cb6eb9a060e54bf8d69288fbee4904")
_TAG: Final = b"tag"
_FILE: Final = b"100644"


class Left(NamedTuple):
    """A file that was lost: where, what it was, and the version that took its place."""

    path: str
    name: bytes
    instead: bytes | None


class Without:
    """The commits of a survey, written anew without what is lost."""

    def __init__(
        self,
        repository: Repository,
        seen: Survey,
        instead: Mapping[bytes, Object],
        joined: Mapping[bytes, bytes],
    ) -> None:
        self._repository = repository
        self._seen = seen
        self._instead = instead
        self._joined = joined
        self._trees: dict[tuple[bytes, bytes | None], bytes | None] = {}
        self.made: dict[bytes, Object] = {bytes.fromhex(each.id): each for each in instead.values()}
        self.commits: dict[bytes, bytes] = {}
        # The tree of each commit as it is now.
        self._tree_of: dict[bytes, bytes] = {}
        self.left: dict[tuple[str, bytes], Left] = {}
        for name in _parents_first(seen.commits, joined):
            self.commits[name] = self._commit(name, seen.commits[name])

    def tip(self, name: bytes) -> bytes | None:
        """Return what takes the place of a commit or tag, None if it is lost."""
        data = self._seen.tags.get(name)
        if data is None:
            return self.commits.get(name)
        target = bytes.fromhex(data[7:47].decode())
        new = self.tip(target)
        if new is None or new == target:
            return name if new else None
        changed = data.replace(target.hex().encode(), new.hex().encode(), 1)
        return self._made(_TAG, changed.partition(b"-----BEGIN PGP SIGNATURE-----")[0])

    def _commit(self, name: bytes, raw: Raw) -> bytes:
        parents = list(dict.fromkeys(self._parents(raw)))
        base = self._tree_of.get(parents[0]) if parents else None
        tree = self._tree(raw.tree, "", base) or _EMPTY
        if tree == _EMPTY and raw.tree != _EMPTY:
            self._made(TREE, b"")
        if tree == raw.tree and tuple(parents) == raw.parents:
            self._tree_of[name] = tree
            return name
        new = self._made(COMMIT, changed_commit(raw, tree, parents))
        self._tree_of[new] = tree
        return new

    def _parents(self, raw: Raw) -> Iterator[bytes]:
        """Yield the parents as they are now; past a lost one, what it came from."""
        for each in raw.parents:
            found = self.commits.get(self._joined.get(each, each))
            if found is not None:
                yield found

    def _tree(self, name: bytes, path: str, base: bytes | None) -> bytes | None:
        """Return a folder without what is lost, None if nothing is left of it."""
        if name in self._seen.lost:
            self._leave(path, name, base)
            return base
        if name not in self._seen.tainted:
            return name
        key = name, base
        if key not in self._trees:
            self._trees[key] = self._changed(name, path, base)
        return self._trees[key]

    def _changed(self, name: bytes, path: str, base: bytes | None) -> bytes | None:
        before = {each.name: each for each in entries(self._read(base))} if base else {}
        kept: list[TreeEntry] = []
        is_page = False
        for each in entries(self._read(name)):
            below = f"{path}/{_text(each.name)}" if path else _text(each.name)
            is_page |= parse_path(below) is not None
            new = self._entry(each, below, before.get(each.name))
            if new is not None:
                kept.append(new)
        if is_page:
            kept = self._with_index(kept, path)
        data = b"".join(b"%s %s\0%s" % each for each in sorted(kept, key=_place))
        return self._made(TREE, data) if kept else None

    def _entry(self, each: TreeEntry, path: str, before: TreeEntry | None) -> TreeEntry | None:
        if each.id in self._seen.lost and each.mode != FOLDER:
            made = self._instead.get(each.id)
            if made is not None:
                return TreeEntry(each.mode, each.name, bytes.fromhex(made.id))
            old = before if before is not None and before.mode != FOLDER else None
            self._leave(path, each.id, old.id if old else None)
            return old
        if each.mode != FOLDER:
            return each
        below = before.id if before is not None and before.mode == FOLDER else None
        new = self._tree(each.id, path, below)
        return TreeEntry(FOLDER, each.name, new) if new else None

    def _with_index(self, kept: list[TreeEntry], path: str) -> list[TreeEntry]:
        """Return a page whose index is that of its files."""
        rows: dict[MemoryId, str] = {}
        for each in kept:
            place = parse_path(f"{path}/{_text(each.name)}")
            if place is None or each.mode == FOLDER:
                continue
            try:
                rows[place.text] = row_of(self._read(each.id), place.path, each.id.hex())[0]
            except InvalidFileError:
                continue
        others = [each for each in kept if each.name != INDEX.encode()]
        if not rows:
            return others
        name = self._made(BLOB, lines.write_page(rows).encode())
        return [*others, TreeEntry(_FILE, INDEX.encode(), name)]

    def _leave(self, path: str, name: bytes, instead: bytes | None) -> None:
        if path.rpartition("/")[2] != INDEX:
            self.left.setdefault((path, name), Left(path, name, instead))

    def _read(self, name: bytes) -> bytes:
        made = self.made.get(name)
        return made.data if made is not None else self._repository.raw(name)[1]

    def _made(self, kind: bytes, data: bytes) -> bytes:
        name = bytes.fromhex(object_id(kind, data))
        self.made.setdefault(name, Object(kind, data))
        return name


def _place(entry: TreeEntry) -> bytes:
    return entry.name + b"/" if entry.mode == FOLDER else entry.name


def _text(name: bytes) -> str:
    return name.decode("utf-8", "surrogateescape")


def _parents_first(commits: Mapping[bytes, Raw], joined: Mapping[bytes, bytes]) -> Iterable[bytes]:
    """Return the commits, each after all that it comes from."""
    done: dict[bytes, None] = {}
    for start in commits:
        waiting = [start]
        while waiting:
            name = waiting[-1]
            parents = (joined.get(each, each) for each in commits[name].parents)
            open_ones = [each for each in parents if each in commits and each not in done]
            if open_ones:
                waiting += open_ones
            else:
                done.setdefault(waiting.pop())
    return done
