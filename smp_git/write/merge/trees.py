"""Two commits brought together: what has to change in the files of one for both to be said."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from smp_git.format import imports, readme, records
from smp_git.format.document import life_of
from smp_git.format.metadata import PATH as METADATA
from smp_git.format.records import Tombstones
from smp_git.git.objects import BLOB, FOLDER_MODE, ObjectId, object_id
from smp_git.git.references import independent, merge_bases
from smp_git.git.repository import Repository
from smp_git.model.ids import PAGE_SIZE, Id, is_index, is_page, parse_path
from smp_git.model.memory import KINDS, CommitId
from smp_git.read.history import WHOLE, Origin, is_alike, origins
from smp_git.write.merge import memories
from smp_git.write.merge.memories import Conflict, FileVersion, Stamp, stamp_of

FILE: Final = "file"
_REPLICAS: Final = "replicas/"
# Bases that were merged crosswise this often are taken one after the other instead.
_DEEPEST: Final = 16


class Merged(NamedTuple):
    """The files to change on our side for a merge.

    `files` holds what has to change, None for what goes; page indexes are left out, for
    they follow from the files. `contested` is what this merge had to decide, `unread` the
    files taken over though they do not parse.
    """

    files: Mapping[str, bytes | None]
    contested: tuple[Conflict, ...] = ()
    unread: frozenset[str] = frozenset()


def merge(
    repository: Repository, ours: CommitId, theirs: CommitId, tombstones: Tombstones
) -> Merged:
    """Return what brings `theirs` into `ours`; the same files come out the other way round.

    Nothing that `tombstones`, or those of either side, say is gone is in the result.
    Without a merge base everything counts as added; whether that is right is for the
    caller to say.
    """
    views = _view(repository, ours), _view(repository, theirs)
    said = [_tombstones(repository, view) for view in views]
    merger = _Merger(repository, tombstones | said[0] | said[1])
    done = merger.merged(*views, _DEEPEST)
    conflicts = sorted(done.conflicts, key=lambda each: (str(each.id), each.field))
    return Merged(done.files, tuple(conflicts), frozenset(done.unread))


class _View(NamedTuple):
    """A tree with some files changed, made of commits; without commits it is empty."""

    commits: tuple[CommitId, ...]
    tree: ObjectId | None
    over: Mapping[str, bytes | None] = {}


_EMPTY: Final = _View((), None)


def _view(repository: Repository, commit: CommitId) -> _View:
    return _View((commit,), repository.commit(commit).tree)


class _Three(NamedTuple):
    """A file as it was and as it is on both sides; None where it is not."""

    base: bytes | None
    left: bytes | None
    right: bytes | None


class _MergedFiles:
    """The result of a merge so far."""

    def __init__(self) -> None:
        self.files: dict[str, bytes | None] = {}
        self.conflicts: list[Conflict] = []
        self.unread: set[str] = set()


class _Merger:
    """Merges views of one repository under one set of tombstones."""

    def __init__(self, repository: Repository, tombstones: Tombstones) -> None:
        self.repository = repository
        self.tombstones = tombstones
        self._bases: dict[tuple[frozenset[CommitId], frozenset[CommitId]], _View] = {}

    def merged(self, left: _View, right: _View, depth: int) -> _MergedFiles:
        """Return what brings `right` into `left`."""
        key = frozenset(left.commits), frozenset(right.commits)
        if key not in self._bases:
            self._bases[key] = self._base(left, right, depth)
        return _Merge(self, left, right, self._bases[key]).done

    def _base(self, left: _View, right: _View, depth: int) -> _View:
        """Return what both sides come from: a merge base, or several of them merged."""
        found = {
            name
            for mine in left.commits
            for theirs in right.commits
            for name in merge_bases(self.repository, mine, theirs)
        }
        names = independent(self.repository, found) if len(found) > 1 else sorted(found)
        views = [_view(self.repository, name) for name in names]
        # Two replicas that merged the same have the same tree under two commits.
        distinct = list({view.tree: view for view in views}.values())
        if not distinct or not depth:
            return distinct[0] if distinct else _EMPTY
        base = distinct[0]
        for view in distinct[1:]:
            done = self.merged(base, view, depth - 1)
            base = _View((*base.commits, *view.commits), base.tree, {**base.over, **done.files})
        return base

    def living(self, place: Id, data: bytes | None) -> bytes | None:
        """Return a memory's file unless it is of a life that may not be present."""
        return _living(self.tombstones, place, data)

    def blob(self, view: _View, path: str) -> ObjectId | None:
        """Return the object id of a file in a view."""
        if path in view.over:
            data = view.over[path]
            return object_id(BLOB, data) if data is not None else None
        return self.repository.find(view.tree, path) if view.tree else None

    def data(self, view: _View, path: str) -> bytes | None:
        """Return the bytes of a file in a view."""
        if path in view.over:
            return view.over[path]
        blob = self.blob(view, path)
        return self.repository.blob(blob) if blob else None


class _Merge:
    """One merge of two views over a base."""

    def __init__(self, merger: _Merger, left: _View, right: _View, base: _View) -> None:
        self._merger = merger
        self._left, self._right, self._base = left, right, base
        self.done = _MergedFiles()
        self._hard: dict[str, tuple[FileVersion | None, FileVersion, FileVersion]] = {}
        for path in self._differing():
            if not is_index(path):
                self._look(path)
        self._join()
        self._bury()
        self._make_room()
        self._make_way()

    def _differing(self) -> list[str]:
        repository = self._merger.repository
        trees = self._left.tree, self._right.tree
        paths = {path for path, _, _ in repository.changes(*trees)}
        overlaid = {*self._left.over, *self._right.over}
        blob = self._merger.blob
        unlike = {path for path in overlaid if blob(self._left, path) != blob(self._right, path)}
        return sorted((paths - overlaid) | unlike)

    def _look(self, path: str) -> None:
        place = parse_path(path)
        if place is not None:
            self._memory(path, place)
        elif path == records.PATH:
            self._tombstones()
        elif path == imports.PATH:
            found = self._three(path)
            said = imports.read(found.left or b"") | imports.read(found.right or b"")
            self._take(path, imports.write(said) or None, from_left=found.left)
        else:
            self._other(path)

    def _three(self, path: str) -> _Three:
        views = self._base, self._left, self._right
        names = [self._merger.blob(view, path) for view in views]
        known: dict[ObjectId | None, bytes | None] = {}
        for name, view in zip(names, views, strict=True):
            if name not in known:
                known[name] = self._merger.data(view, path)
        return _Three(*(known[name] for name in names))

    def _take(self, path: str, data: bytes | None, *, from_left: bytes | None) -> None:
        """Note the file as the merge leaves it, if that is not how our side has it."""
        if data != from_left:
            self.done.files[path] = data

    # Memories

    def _memory(self, path: str, place: Id) -> None:
        found = self._three(path)
        if self._merger.tombstones.names(place.text):
            found = _Three(*(self._merger.living(place, data) for data in found))
        if found.left == found.right:
            self._settle(path, found.left, None)
        elif found.base in (found.left, found.right):
            changed = found.right if found.left == found.base else found.left
            self._one_changed(path, place, found.base, changed)
        else:
            self._both_changed_memory(path, place, found)

    def _one_changed(self, path: str, place: Id, base: bytes | None, changed: bytes | None) -> None:
        made = memories.version(changed, path)
        if changed is not None and made is None:
            # What cannot be read counts as unchanged.
            self._report(place.text)
            changed = base if base is not None else changed
            made = memories.version(changed, path)
        self._settle(path, changed, made)

    def _both_changed_memory(self, path: str, place: Id, found: _Three) -> None:
        left, right = memories.version(found.left, path), memories.version(found.right, path)
        if left and right and left.memory.life == right.memory.life:
            base = memories.version(found.base, path)
            same_life = base and base.memory.life == left.memory.life
            self._hard[path] = base if same_life else None, left, right
            return
        unread = [
            data
            for data, side in ((found.left, left), (found.right, right))
            if data is not None and side is None
        ]
        if unread:
            self._report(place.text)
        later = self._later(place, left, right)
        if later is not None:
            self._settle(path, later.file, later)
        elif len(unread) == 1:
            # The other side removed it.
            self._settle(path, None, None)
        else:
            data = found.base if found.base is not None else self._newer(path, found)[0]
            self._settle(path, data, memories.version(data, path))

    def _later(
        self, place: Id, left: FileVersion | None, right: FileVersion | None
    ) -> FileVersion | None:
        """Return the only version there is, or that of the later life."""
        if left is None or right is None:
            return left or right
        known = self._merger.tombstones.lives(place.text)

        def rank(side: FileVersion) -> tuple[int, str]:
            return len(known.past(side.memory.life)), side.memory.life

        return max(left, right, key=rank)

    def _report(self, name: str) -> None:
        self.done.conflicts.append(Conflict(name, FILE, None, ()))

    def _settle(self, path: str, data: bytes | None, made: FileVersion | None) -> None:
        self._take(path, data, from_left=self._merger.data(self._left, path))
        if path in self.done.files and made is None and data is not None:
            self.done.unread.add(path)

    def _join(self) -> None:
        """Decide the fields that both sides changed, with one look into each history."""
        asked = {
            path: fields
            for path, versions in self._hard.items()
            if (fields := memories.disputed(*versions))
        }
        ours = self._origins(self._left, asked)
        theirs = self._origins(self._right, asked)
        for path, (base, left, right) in self._hard.items():

            def stamps(
                name: str, path: str = path, left: FileVersion = left, right: FileVersion = right
            ) -> tuple[Stamp, Stamp]:
                key = path, name
                return stamp_of(ours.get(key), left), stamp_of(theirs.get(key), right)

            made = memories.joined(base, left, right, stamps)
            self._settle(path, made.file, FileVersion(made.file, made.memory, {}))
            self.done.conflicts += made.lost

    def _origins(
        self, view: _View, asked: Mapping[str, Iterable[str]]
    ) -> Mapping[tuple[str, str], Origin]:
        """Return where fields of a view come from, asked of its commits that have them so."""
        if not asked:
            return {}
        starts = {name: self._having(view, name, asked) for name in view.commits}
        return origins(self._merger.repository, starts)

    def _having(
        self, view: _View, commit: CommitId, asked: Mapping[str, Iterable[str]]
    ) -> dict[str, list[str]]:
        if len(view.commits) == 1:
            return {path: list(fields) for path, fields in asked.items()}
        there = _view(self._merger.repository, commit)
        out: dict[str, list[str]] = {}
        for path, fields in asked.items():
            here = memories.version(self._merger.data(view, path), path)
            then = memories.version(self._merger.data(there, path), path)
            if here and then:
                out[path] = [name for name in fields if is_alike(here.fields, then.fields, name)]
        return out

    # Other files

    def _tombstones(self) -> None:
        found = self._three(records.PATH)
        said = records.read(found.left or b"") | records.read(found.right or b"")
        self._take(records.PATH, records.write(said) or None, from_left=found.left)

    def _other(self, path: str) -> None:
        base, left, right = self._three(path)
        if path.startswith(_REPLICAS) and (left is None or right is None):
            kept = right if left is None else left
        elif base in (left, right):
            kept = right if left == base else left
        elif left is None or right is None:
            kept = right if left is None else left
        else:
            self._both_changed(path, _Three(base, left, right), left, right)
            return
        self._take(path, kept, from_left=left)

    def _both_changed(self, path: str, found: _Three, left: bytes, right: bytes) -> None:
        told = readme.merged(left, right) if path == readme.PATH else None
        if told is not None:
            # Neither tells of both sides; the next maintenance does.
            self._take(path, told, from_left=left)
            return
        newer, older = self._newer(path, found)
        made = None
        if path.startswith(_REPLICAS):
            # Replicas that were copied before they were registered.
            self._take(path, min(left, right), from_left=left)
            return
        if path == METADATA:
            made = memories.joined_metadata(found.base, newer or b"", older or b"")
        if made is None:
            self._report(path)
            self._take(path, newer, from_left=left)
            return
        self._take(path, made.file, from_left=left)
        self.done.conflicts += made.lost

    def _newer(self, path: str, found: _Three) -> tuple[bytes | None, bytes | None]:
        """Return both versions of a file as a whole, that of the later commit first."""
        asked = {path: [WHOLE]}
        ours, theirs = (
            self._origins(view, asked).get((path, WHOLE)) for view in (self._left, self._right)
        )
        rows = [(ours, found.left), (theirs, found.right)]
        rows.sort(key=lambda row: (_moment(row[0]), row[1] or b""), reverse=True)
        return rows[0][1], rows[1][1]

    # What may not be in the result

    def _bury(self) -> None:
        """Remove the deleted memories that both sides still have."""
        tombstones = self._merger.tombstones
        if not self._left.tree:
            return
        for place in _buried(self._merger.repository, self._left.tree, tombstones):
            if place.path not in self.done.files:
                data = self._merger.data(self._left, place.path)
                if self._merger.living(place, data) is None:
                    self._settle(place.path, None, None)

    def _make_room(self) -> None:
        """Keep a folder where the other side has a file of that name."""
        find, tree = self._merger.repository.find, self._left.tree
        for path in [path for path, data in self.done.files.items() if data is not None]:
            if tree and self._merger.repository.folder(tree, path) is not None:
                del self.done.files[path]
            above = path.rpartition("/")[0]
            while above:
                if self.done.files.get(above) is not None or (tree and find(tree, above)):
                    self.done.files[above] = None
                above = above.rpartition("/")[0]

    def _make_way(self) -> None:
        """Take out a README that was made where a person has one in other letters.

        Some systems take both for one file, so that no replica would take them in.
        """
        left = self._merger.data(self._left, readme.PATH)
        if not readme.is_made(self.done.files.get(readme.PATH, left) or b""):
            return
        tree = self._left.tree
        names = {*self._merger.repository.tree(tree)} if tree else set()
        names |= {path.partition("/")[0] for path, data in self.done.files.items() if data}
        names -= {path for path, data in self.done.files.items() if data is None}
        if any(readme.is_alike(name) for name in names):
            self._take(readme.PATH, None, from_left=left)
            if left is None:
                self.done.files.pop(readme.PATH)


def has_buried(repository: Repository, commit: CommitId, tombstones: Tombstones) -> bool:
    """Whether a commit has a memory that is gone according to `tombstones`."""
    tree = repository.commit(commit).tree
    for place in _buried(repository, tree, tombstones):
        blob = repository.find(tree, place.path)
        data = repository.blob(blob) if blob else None
        if data is not None and _living(tombstones, place, data) is None:
            return True
    return False


def _buried(repository: Repository, tree: ObjectId, tombstones: Tombstones) -> Iterator[Id]:
    """Yield the memories of a tree that have a tombstone."""
    for page, folder in _pages(repository, tree, _graves(tombstones)):
        for name in repository.tree(folder):
            place = parse_path(f"{page}/{name}")
            if place is not None and tombstones.names(place.text):
                yield place


def _graves(tombstones: Tombstones) -> dict[str, list[range]]:
    """Return the numbers of the pages that tombstones concern, by folder."""
    out: dict[str, list[range]] = {}
    for each in tombstones.items:
        span = range(each.first.number // PAGE_SIZE, each.last.number // PAGE_SIZE + 1)
        known = out.setdefault(each.first.kind.folder, [])
        if not known or known[-1] != span:
            known.append(span)
    return out


def _pages(
    repository: Repository, tree: ObjectId, spans: Mapping[str, Iterable[range]]
) -> Iterator[tuple[str, ObjectId]]:
    """Yield the pages of a tree whose numbers are in the spans."""
    for kind in KINDS.values():
        folder = repository.folder(tree, kind.folder) if kind.folder in spans else None
        if folder is None:
            continue
        if kind.name == "state":
            yield kind.folder, folder
            continue
        for name, child in repository.tree(folder).items():
            if (
                child.mode == FOLDER_MODE
                and is_page(name)
                and any(int(name) in span for span in spans[kind.folder])
            ):
                yield f"{kind.folder}/{name}", child.id


def _living(tombstones: Tombstones, place: Id, data: bytes | None) -> bytes | None:
    """Return a memory's file unless it is of a life that may not be present."""
    if data is None or tombstones.is_dead(place.text, life_of(data, place.path)):
        return None
    return data


def _moment(origin: Origin | None) -> tuple[float, str]:
    return (origin.commit.time.timestamp(), origin.replica) if origin else (0.0, "")


def _tombstones(repository: Repository, view: _View) -> Tombstones:
    blob = repository.find(view.tree, records.PATH) if view.tree else None
    return records.read(repository.blob(blob)) if blob else Tombstones()
