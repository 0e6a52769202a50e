"""All memories at one commit: immutable, read without a lock."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple, TypeVar

from smp_git.format import document, lines, metadata
from smp_git.format import records as tombstones
from smp_git.format.lines import Entry
from smp_git.format.metadata import Metadata
from smp_git.format.records import Tombstones
from smp_git.git.objects import (
    FOLDER_MODE,
    TREE,
    Child,
    Commit,
    ObjectId,
    object_id,
    write_tree,
)
from smp_git.git.repository import MAIN, Repository, gone
from smp_git.model.errors import (
    DamagedError,
    FormatError,
    InvalidError,
    InvalidFileError,
    MemoryNotFoundError,
    NotFoundError,
    SmpError,
)
from smp_git.model.ids import (
    FIRST,
    PAGE_SIZE,
    Id,
    is_elsewhere,
    is_page,
    parse_id,
    parse_target,
    short_id,
    sort_key,
    values_like,
)
from smp_git.model.memory import KINDS, CommitId, Memory, MemoryId, Value, kind_named
from smp_git.read import pages as index
from smp_git.read.pages import Page
from smp_git.read.replica import Local

_CACHED = 4096

_T = TypeVar("_T")
_UNHARMED: Final[Mapping[str, str]] = MappingProxyType({})


def _key(tree_id: ObjectId, dead: frozenset[MemoryId], lost: Iterable[str]) -> str:
    hidden = [*sorted(dead), *(f"-{path}" for path in sorted(lost))]
    return f"{tree_id} {' '.join(hidden)}" if hidden else tree_id


class Subject(NamedTuple):
    """The subject of a preference: a later one about the same replaces it."""

    category: object
    key: object


class PageCache:
    """Pages by tree id and memories by blob id: content addressing is the only rule."""

    def __init__(self, repository: Repository, local: Local, epoch: bytes | None = None) -> None:
        self.repository = repository
        self.buried = local.tombstones
        self._local = local
        self._epoch = local.epoch() if epoch is None else epoch
        # What was read from elsewhere, or not at all: what is to be said, by path, by place.
        self._damage: dict[tuple[str, ObjectId], dict[str, str]] = {}
        self._pages: dict[tuple[str, ObjectId], Page] = {}
        self._known: tuple[tuple[ObjectId | None, Tombstones], Tombstones, Tombstones] | None = None
        self._memories: dict[tuple[str, ObjectId], Memory] = {}
        self._subjects: dict[tuple[str, ObjectId], dict[Subject, list[MemoryId]]] = {}
        self._metadata: tuple[ObjectId, Metadata] | None = None

    def is_current(self) -> bool:
        """Whether no rewrite of the history was published since these pages could be read."""
        return self._local.epoch() == self._epoch

    def pass_over(self, place: tuple[str, ObjectId], path: str, error: DamagedError) -> str:
        """Take note of what cannot be read, and return what is to be said of it.

        Raises the error if history was rewritten meanwhile: then another look finds it.
        """
        if not self.is_current():
            raise error
        return self._damage.setdefault(place, {}).setdefault(path, index.lost(path, error))

    def note_spared(self, place: tuple[str, ObjectId], path: str, blob: ObjectId) -> None:
        """Take note if a file had to be read from elsewhere."""
        if blob in self.repository.spared:
            sentence = index.spared(path, self.repository.spared[blob])
            self._damage.setdefault(place, {}).setdefault(path, sentence)

    def damage(self, path: str, tree_id: ObjectId) -> Mapping[str, str]:
        """Return what of a page is damaged, as far as it was looked at, with what to say of it."""
        return self._damage.get((path, tree_id), _UNHARMED)

    def passed_over(self) -> tuple[str, ...]:
        """Return everything that is to be said of damage that was met."""
        return tuple(
            dict.fromkeys(each for said in self._damage.values() for each in said.values())
        )

    def metadata(self, blob: ObjectId) -> Metadata:
        """Return what the session says of itself in a file."""
        known = self._metadata
        if known is None or known[0] != blob:
            data = self.repository.blob(blob, metadata.PATH)
            said = metadata.read(data, self.repository.path.name)
            known = self._metadata = blob, said
        return known[1]

    def records(self, blob: ObjectId | None) -> Tombstones:
        """Return what a commit's records and this replica's own say together."""
        key = blob, self.buried()
        if self._known is None or self._known[0] != key:
            data = self.repository.blob(blob, tombstones.PATH) if blob else None
            said = tombstones.read(data) if data is not None else Tombstones()
            self._known = key, said, said | key[1]
        return self._known[2]

    def said(self, blob: ObjectId | None) -> Tombstones:
        """Return the records of a commit."""
        self.records(blob)
        assert self._known is not None  # noqa: S101 - just made
        return self._known[1]

    def dead(self, path: str, tree_id: ObjectId, known: Tombstones) -> frozenset[MemoryId]:
        """Return the memories of a page that are of a life that may not be present."""
        names = known.on_page(path) if known else ()
        if not names:
            return frozenset()
        entries = self.page(path, tree_id).entries
        there = (entry for name in names if (entry := entries.get(name)) is not None)
        return frozenset(each.id for each in there if known.is_dead(each.id, each.life or FIRST))

    def page(self, path: str, tree_id: ObjectId) -> Page:
        """Return the page at `path` whose tree is `tree_id`."""
        found = self._pages.get((path, tree_id))
        if found is None:
            if len(self._pages) >= _CACHED:
                self._pages.clear()
            found = index.load(self.repository, path, tree_id)
            if found.damaged:
                if not self.is_current():
                    raise DamagedError(found.damaged[0])
                self._damage.setdefault((path, tree_id), {}).update(
                    {each.partition(" ")[0]: each for each in found.damaged}
                )
            self._pages[path, tree_id] = found
        return found

    def know_page(self, page: Page, tree_id: ObjectId) -> None:
        """Take note of a page that was just written, so that it need not be read."""
        self._pages[page.path, tree_id] = page

    def subjects(self, path: str, tree_id: ObjectId) -> dict[Subject, list[MemoryId]]:
        """Return the memories of a page that are not superseded, by what they are about."""
        found = self._subjects.get((path, tree_id))
        if found is None:
            if len(self._subjects) >= _CACHED:
                self._subjects.clear()
            found = self._subjects[path, tree_id] = _by_subject(self.page(path, tree_id))
        return found

    def memory(self, path: str, blob_id: ObjectId, commit: CommitId) -> Memory:
        """Return the memory of a commit at `path` whose file is `blob_id`; raise InvalidFileError."""
        found = self._memories.get((path, blob_id))
        if found is None:
            if len(self._memories) >= _CACHED:
                self._memories.clear()
            found = document.decode(self.repository.blob(blob_id, path), path)
            self._memories[path, blob_id] = found
        # Nested fields are copied, so that no caller changes what the next one reads.
        return replace(found, fields=_copied(found), commit=commit)


def _by_subject(page: Page) -> dict[Subject, list[MemoryId]]:
    out: dict[Subject, list[MemoryId]] = {}
    for entry in page.entries.values():
        if entry.key and entry.status != "superseded":
            out.setdefault(Subject(entry.category, entry.key), []).append(entry.id)
    return out


def _copied(memory: Memory) -> MappingProxyType[str, Value]:
    return MappingProxyType(
        {
            name: deepcopy(value) if isinstance(value, (dict, list)) else value
            for name, value in memory.fields.items()
        }
    )


class Lens(NamedTuple):
    """What a reader does not see: which memories of a page, by its path, and what it is told instead."""

    hidden: Callable[[Snapshot, str], frozenset[MemoryId]]
    refusal: Callable[[MemoryId], SmpError]


class Snapshot:
    """The session at one commit. Answers stay the same whatever is written meanwhile.

    Through a lens, what it hides is in no page that is shown, and cannot be got. With
    pages `beside`, these are there in the place of the commit's own.
    """

    def __init__(
        self,
        pages: PageCache,
        commit_id: CommitId,
        lens: Lens | None = None,
        beside: Mapping[str, Page] | None = None,
    ) -> None:
        self._cache = pages
        self._lens = lens
        self._beside = beside
        self._hidden: dict[str, frozenset[MemoryId]] = {}
        self.repository = pages.repository
        self.id = commit_id
        self._newest: dict[str, list[tuple[str, Child]]] = {}
        # The entries of values by their keys, as gathered by who listed them.
        self.by_key: dict[tuple[str, ...], Entry] | None = None
        # The versions of memories whose entries were at hand.
        self._listed: dict[str, ObjectId] = {}

    def is_current(self) -> bool:
        """Whether what was read of it may be kept: nothing was deleted meanwhile."""
        return self._cache.is_current()

    def beside(self, found: Iterable[tuple[Entry, str]]) -> Snapshot:
        """Return the same commit with other memories in the place of its own: entries and lines."""
        pages: dict[str, dict[MemoryId, tuple[Entry, str]]] = {}
        for entry, line in found:
            pages.setdefault(parse_id(entry.id).page, {})[entry.id] = entry, line
        made = {
            path: Page(
                path=path,
                lines={name: line for name, (_, line) in rows.items()},
                entries={name: entry for name, (entry, _) in rows.items()},
            )
            for path, rows in sorted(pages.items())
        }
        return Snapshot(self._cache, self.id, self._lens, made)

    @cached_property
    def commit(self) -> Commit:
        """The commit itself."""
        return self.repository.commit(self.id)

    @property
    def tree(self) -> ObjectId:
        """The tree of the commit."""
        return self.commit.tree

    @cached_property
    def metadata(self) -> Metadata:
        """The session's metadata; raise FormatError if there is none."""
        blob = self.repository.find(self.tree, metadata.PATH)
        if blob is None:
            raise FormatError(f"{self.repository.path} is a Git repository, but not a session")
        found = self._cache.metadata(blob)
        self._cache.note_spared(self._root, metadata.PATH, blob)
        return found

    @cached_property
    def tombstones(self) -> Tombstones:
        """Tombstones of this branch, with those known here from others.

        What is known here stays known where the file cannot be read.
        """
        blob = self.repository.find(self.tree, tombstones.PATH)
        try:
            found = self._cache.records(blob)
        except DamagedError as error:
            self._cache.pass_over(self._root, tombstones.PATH, error)
            return self._cache.records(None)
        if blob:
            self._cache.note_spared(self._root, tombstones.PATH, blob)
        return found

    @property
    def _root(self) -> tuple[str, ObjectId]:
        return "", self.tree

    @cached_property
    def said(self) -> Tombstones:
        """The records of this commit itself."""
        return self._cache.said(self.repository.find(self.tree, tombstones.PATH))

    def dead(self, path: str) -> frozenset[MemoryId]:
        """Return the memories of a page that were deleted, and that plain Git brought back."""
        if self._beside is not None:
            return frozenset()
        tree_id = self.repository.folder(self.tree, path) if self.tombstones else None
        return self._cache.dead(path, tree_id, self.tombstones) if tree_id else frozenset()

    def shown_pages(self, kind: str | None = None) -> dict[str, str]:
        """Return a name for each page as it is shown: it changes when what is shown does."""
        pages = self.page_ids(kind)
        return {path: self._name(path, tree) for path, tree in pages.items()}

    def shown_name(self, path: str) -> str | None:
        """Return the name of one page as it is shown, None if it is not there."""
        tree_id = self.folder_of(path)
        return self._name(path, tree_id) if tree_id else None

    def folder_of(self, path: str) -> ObjectId | None:
        """Return the tree of a page, or what stands for it beside the commit."""
        if self._beside is None:
            return self.repository.folder(self.tree, path)
        page = self._beside.get(path)
        if page is None:
            return None
        return ObjectId(" ".join(entry.blob for entry in page.entries.values()))

    def _page(self, path: str, tree_id: ObjectId) -> Page:
        """Return a page that is there."""
        return self._cache.page(path, tree_id) if self._beside is None else self._beside[path]

    def _name(self, path: str, tree_id: ObjectId) -> str:
        if self._beside is not None:
            return _key(tree_id, self._unseen(path), ())
        dead = self._cache.dead(path, tree_id, self.tombstones) if self.tombstones else frozenset()
        return _key(tree_id, dead | self._unseen(path), self._cache.damage(path, tree_id))

    def damage(self, kinds: Iterable[str] | None = None) -> tuple[str, ...]:
        """Say what the store has lost of some kinds, as far as it was looked at.

        Through a lens nothing is said: it may be of what is hidden.
        """
        if self._lens is not None or self._beside is not None:
            return ()
        found = dict(self._cache.damage(*self._root))
        for kind in KINDS if kinds is None else kinds:
            folder = KINDS[kind].folder
            for path, tree_id in ((folder, self.tree), *self.page_ids(kind).items()):
                found |= self._cache.damage(path, tree_id)
        return tuple(found.values())

    def shown_page(self, path: str) -> Page | None:
        """Return the page at `path` without what was deleted or is hidden, or None."""
        page, unseen = self.page(path), self._unseen(path)
        absent = self.dead(path) | unseen
        if page is None or not absent:
            return page
        entries = {name: entry for name, entry in page.entries.items() if name not in absent}
        # What is wrong with a line may be said in words of it.
        return replace(page, entries=entries, problems=() if unseen else page.problems)

    def _unseen(self, path: str) -> frozenset[MemoryId]:
        """Return the memories of a page that the lens hides."""
        if self._lens is None:
            return frozenset()
        found = self._hidden.get(path)
        if found is None:
            found = self._hidden[path] = self._lens.hidden(self, path)
        return found

    def is_hidden(self, memory_id: MemoryId) -> bool:
        """Whether a lens hides a memory; what has no valid file is hidden from every lens."""
        return self._lens is not None and self.entry(memory_id) is None

    def _refuse_hidden(self, memory_id: MemoryId) -> None:
        if self._lens is not None and self.is_hidden(memory_id):
            raise self._lens.refusal(memory_id)

    def page_ids(self, kind: str | None = None) -> dict[str, ObjectId]:
        """Return the tree id of every page, by its path."""
        out: dict[str, ObjectId] = {}
        if self._beside is not None:
            folder_of_kind = f"{kind_named(kind).folder}/" if kind else ""
            found = {path: self.folder_of(path) for path in self._beside}
            return {
                path: tree
                for path, tree in found.items()
                if tree and path.startswith(folder_of_kind)
            }
        root = self.repository.tree(self.tree)
        for each in [kind_named(kind)] if kind else KINDS.values():
            folder = root.get(each.folder)
            if folder is None or folder.mode != FOLDER_MODE:
                continue
            if each.name == "state":
                out[each.folder] = folder.id
                continue
            for name, child in self._folder(each.folder, folder.id).items():
                if child.mode == FOLDER_MODE and is_page(name):
                    out[f"{each.folder}/{name}"] = child.id
        return out

    def _folder(self, path: str, tree_id: ObjectId) -> Mapping[str, Child]:
        """Return the pages of a kind, none if its folder cannot be read."""
        place = path, self.tree
        try:
            found = self.repository.tree(tree_id)
        except DamagedError as error:
            self._cache.pass_over(place, path, error)
            return {}
        self._cache.note_spared(place, path, tree_id)
        return found

    def know_pages(self, names: Mapping[str, str]) -> None:
        """Take note of pages by their paths and trees, so that folders of just these need not be read."""
        folders: dict[str, dict[str, Child]] = {}
        for path, tree_id in names.items():
            folder, _, name = path.partition("/")
            if name and len(tree_id) == len(self.tree):
                folders.setdefault(folder, {})[name] = Child(FOLDER_MODE, ObjectId(tree_id))
        for children in folders.values():
            # What the name of a tree is made from is what is in it.
            self.repository.know_tree(object_id(TREE, write_tree(children)), children)

    def pages(self, kind: str | None = None) -> Iterator[Page]:
        """Yield the pages of a kind, or of all."""
        for path, tree_id in self.page_ids(kind).items():
            yield self._page(path, tree_id)

    def newest_pages(self, kind: str) -> Iterator[Page]:
        """Yield the pages of a numbered kind, the highest numbers first."""
        folder = kind_named(kind).folder
        ordered = self._newest.get(folder)
        if ordered is None:
            tree_id = self.repository.folder(self.tree, folder)
            found = self._folder(folder, tree_id) if tree_id else {}
            # Names of pages are as long as their numbers are high.
            names = sorted(sorted(found, reverse=True), key=len, reverse=True)
            ordered = self._newest[folder] = [(name, found[name]) for name in names]
        for name, child in ordered:
            if child.mode == FOLDER_MODE and is_page(name):
                yield self._cache.page(f"{folder}/{name}", child.id)

    def preferences(self, subject: Subject) -> list[MemoryId]:
        """Return the preferences about a subject that are not superseded, sorted like ids."""
        found: list[MemoryId] = []
        for path, tree_id in self.page_ids("preference").items():
            found += self._cache.subjects(path, tree_id).get(subject, ())
        return sorted(found, key=sort_key)

    def page(self, path: str) -> Page | None:
        """Return the page at `path`, or None."""
        tree_id = self.folder_of(path)
        return self._page(path, tree_id) if tree_id else None

    def entries(self, kind: str | None = None) -> list[Entry]:
        """Return the index entries, sorted like ids."""
        found = [
            entry
            for path in self.page_ids(kind)
            if (page := self.shown_page(path)) is not None
            for entry in page.entries.values()
        ]
        return sorted(found, key=lambda entry: sort_key(entry.id))

    def entry(self, memory_id: str) -> Entry | None:
        """Return the index entry of a full id, or None."""
        place = parse_id(memory_id)
        page = self.shown_page(place.page)
        return page.entries.get(place.text) if page else None

    def files(self) -> Iterator[tuple[str, ObjectId]]:
        """Yield every tracked file, past the folders that cannot be read."""
        waiting = [("", self.tree)]
        while waiting:
            path, tree_id = waiting.pop()
            try:
                found = self.repository.tree(tree_id)
            except DamagedError as error:
                self.pass_over(path.rstrip("/") or "the folder of the session", error)
                continue
            for name, child in found.items():
                if child.mode == FOLDER_MODE:
                    waiting.append((f"{path}{name}/", child.id))
                else:
                    yield f"{path}{name}", child.id

    def blob(self, memory_id: str) -> ObjectId | None:
        """Return the object id of a memory's file, or None."""
        if memory_id in self._listed:
            return self._listed[memory_id]
        if self._beside is not None:
            page = self._beside.get(parse_id(memory_id).page)
            entry = page.entries.get(MemoryId(memory_id)) if page else None
            return ObjectId(entry.blob) if entry else None
        path = parse_id(memory_id).path
        try:
            return self.repository.find(self.tree, path)
        except DamagedError as error:
            said = self._cache.pass_over(self._root, path.rpartition("/")[0], error)
            raise DamagedError(f"{memory_id}: {said}", hint=error.hint) from error

    def file(self, memory_id: str) -> bytes | None:
        """Return the bytes of a memory's file, or None."""
        blob = self.blob(memory_id)
        if blob is not None:
            self._refuse_hidden(MemoryId(memory_id))
        return self.repository.blob(blob) if blob else None

    def get(self, memory_id: str) -> Memory:
        """Return a memory by its full id; raise MemoryNotFoundError."""
        blob = self.blob(memory_id)
        if blob is None:
            raise MemoryNotFoundError(f"no memory {memory_id}", hint="smp list shows what is there")
        return self._got(memory_id, blob)

    def listed(self, entry: Entry) -> Memory:
        """Return the memory of an index entry of this snapshot, whose folder need not be read."""
        blob = self._listed[entry.id] = ObjectId(entry.blob)
        return self._got(entry.id, blob)

    def _got(self, memory_id: str, blob: ObjectId) -> Memory:
        place = parse_id(memory_id)
        path = place.path
        if self._lens is not None and place.text in self._unseen(place.page):
            raise self._lens.refusal(MemoryId(memory_id))
        try:
            found = self._cache.memory(path, blob, self.id)
        except DamagedError as error:
            said = self._cache.pass_over(self._place(memory_id), path, error)
            raise DamagedError(f"{memory_id}: {said}", hint=error.hint) from error
        except InvalidFileError:
            # Of what cannot be read nobody knows whose it is.
            self._refuse_hidden(MemoryId(memory_id))
            raise
        self._cache.note_spared(self._place(memory_id), path, blob)
        if self.tombstones.is_dead(memory_id, found.life):
            raise MemoryNotFoundError(
                f"{memory_id} was deleted, and plain Git brought a version of it back",
                hint=f"smp delete {memory_id} takes it out; smp trash lists what can be restored",
            )
        return found

    def _place(self, memory_id: str) -> tuple[str, ObjectId]:
        page = parse_id(memory_id).page
        return page, self.repository.folder(self.tree, page) or self.tree

    def readable(self, memory_id: str) -> Memory | None:
        """Return a memory, None if it is not there or its file cannot be read."""
        try:
            return self.get(memory_id)
        except (DamagedError, InvalidFileError, MemoryNotFoundError) as error:
            self._reraise_if_rewritten(error)
            return None

    def readable_file(self, memory_id: str) -> bytes | None:
        """Return the bytes of a memory's file, None if it is not there or cannot be read."""
        try:
            return self.file(memory_id)
        except DamagedError as error:
            path = parse_id(memory_id).path
            self._cache.pass_over(self._place(memory_id), path, error)
            return None

    def shown(self, entry: Entry) -> Memory:
        """Return a memory; if its file cannot be read, what its index line says."""
        try:
            return self.listed(entry)
        except (DamagedError, InvalidFileError) as error:
            self._reraise_if_rewritten(error)
            path = parse_id(entry.id).path
            return replace(lines.told_by(entry, path, error.message), commit=self.id)

    def _reraise_if_rewritten(self, error: SmpError) -> None:
        if isinstance(error, DamagedError) and not self._cache.is_current():
            raise error

    def memories(self, kind: str | None = None) -> list[Memory]:
        """Return the memories, sorted like ids; one that cannot be read as its line has it."""
        return [self.shown(entry) for entry in self.entries(kind)]

    def walk(self) -> Iterator[Commit]:
        """Yield the commits up to this one, newest first, past those that cannot be read."""
        lost: dict[CommitId, DamagedError] = {}
        yield from self.repository.walk(self.id, lost)
        for name, error in lost.items():
            self.pass_over(f"commit {name[:12]} and what led to it", error)

    def pass_over(self, what: str, error: DamagedError) -> None:
        """Take note of something of the whole session that cannot be read."""
        self._cache.pass_over(self._root, what, error)

    def problems(self) -> list[str]:
        """Say what the indexes got wrong and which files cannot be read."""
        found = [problem for page in self.pages() for problem in page.problems]
        return list(dict.fromkeys((*found, *self.damage())))

    def find(self, text: str) -> MemoryId:
        """Return the id that `text` names: exact, else kind and number if unique."""
        found = self._named(text)
        self._refuse_hidden(found)
        return found

    def _named(self, text: str) -> MemoryId:
        try:
            place = parse_id(text)
        except InvalidError:
            place = None
        if place is not None and self.blob(place.text) is not None:
            return place.text
        if place is None or place.tag == "":
            return self._abbreviated(text)
        raise MemoryNotFoundError(f"no memory {text}", hint="smp list shows what is there")

    def full(self, text: str) -> MemoryId:
        """Return the full id that a text names, also `SESSION:ID`, though the memory may be gone."""
        if is_elsewhere(text):
            return parse_target(text)
        try:
            return self.find(text)
        except MemoryNotFoundError:
            short = short_id(text)
            return short.text if short is not None else parse_id(text).text

    def _abbreviated(self, text: str) -> MemoryId:
        short, like = short_id(text), values_like(text)
        found: list[MemoryId] = []
        if short is not None:
            found = self._numbered(short)
        elif like is not None:
            found = self._beginning(*like)
        else:
            parse_id(text)
        if len(found) > 1:
            raise InvalidError(
                f"{text} matches several memories", hint=f"one of {', '.join(found)}"
            )
        if not found:
            raise MemoryNotFoundError(f"no memory {text}", hint="smp list shows what is there")
        return found[0]

    def _numbered(self, short: Id) -> list[MemoryId]:
        page = self.page(short.page)
        names = page.entries if page else {}
        places = [parse_id(name) for name in names]
        return sorted(
            place.text
            for place in places
            if place.number == short.number and short.tag in ("", place.tag)
        )

    def _beginning(self, path: str, start: str) -> list[MemoryId]:
        """Return the values of a page whose ids begin so."""
        page = self.page(path)
        return sorted(name for name in (page.entries if page else ()) if name.startswith(start))

    def highest(self, kind: str, tag: str) -> int:
        """Return the highest number of a kind with this tag; 0 if there is none."""
        for page in self.newest_pages(kind):
            places = map(sort_key, page.entries)
            numbers = [number for _, number, own in places if own == tag]
            if page.damaged and not page.is_whole:
                # Any of its numbers may be one of those that cannot be read.
                numbers.append((int(page.path.rpartition("/")[2]) + 1) * PAGE_SIZE - 1)
            if numbers:
                return max(numbers)
        return 0


class Reader:
    """A handle on one branch of a session; opens it anew when a rewrite raised the epoch."""

    def __init__(
        self, path: Path, ref: str = MAIN, *, durable: bool = True, lens: Lens | None = None
    ) -> None:
        self.path = path
        self.ref = ref
        self.lens = lens
        self.local = Local(path / ".git")
        self._durable = durable
        self._opening = threading.Lock()
        # The tree whose bytes were counted last, and how many they are.
        self.size: tuple[ObjectId, int] | None = None
        # Who is told when the session is found to have moved, as long as he is there.
        self.watched: Callable[[], Callable[[], None] | None] = lambda: None
        self._open()

    def _open(self) -> None:
        self._epoch = self.local.epoch()
        self.repository = Repository(self.path, durable=self._durable)
        self._pages = PageCache(self.repository, self.local, self._epoch)
        self._latest: Snapshot | None = None

    def through(self, lens: Lens) -> Reader:
        """Return another reader of the same branch, to which a lens hides a part of it."""
        return Reader(self.path, self.ref, durable=self._durable, lens=lens)

    def passed_over(self) -> tuple[str, ...]:
        """Say what could not be read so far, or had to be read from elsewhere."""
        return self._pages.passed_over() if self.lens is None else ()

    def close(self) -> None:
        """Let go of the repository."""
        self.repository.close()

    def reopen(self) -> None:
        """Open the repository anew, so that packs that are gone are no longer trusted."""
        with self._opening:
            old = self.repository
            self._open()
            old.close()

    def bind(self, ref: str) -> None:
        """Make this a handle on another branch."""
        self.ref = ref
        self._latest = None

    def main(self) -> Snapshot:
        """Return the branch whose files are in the folder, as it is now."""
        return self.snapshot() if self.ref == MAIN else self.at(self._head(MAIN))

    def snapshot(self) -> Snapshot:
        """Return the session as it is now."""
        head = self._head(self.ref)
        latest = self._latest
        if latest is None or latest.id != head:
            has_moved, latest = latest is not None, Snapshot(self._pages, head, self.lens)
            self._latest = latest
            if has_moved and (watching := self.watched()):
                watching()
        return latest

    def _head(self, ref: str) -> CommitId:
        if self.local.epoch() != self._epoch:
            self.reopen()
        head = self.repository.head(ref)
        if head is None and not self.local.folder.parent.exists():
            raise gone(self.path)
        if head is None:
            branch = ref.removeprefix("refs/heads/")
            missing = DamagedError if ref == MAIN else NotFoundError
            hint = f"smp -s {self.path.name} repair" if ref == MAIN else "smp branch lists them"
            raise missing(f"session {self.path.name} has no branch {branch}", hint=hint)
        return head

    def know_pages(self, tree_id: ObjectId, pages: Mapping[str, Page]) -> None:
        """Take note of the pages of a tree that was just written."""
        for path, page in pages.items():
            folder = self.repository.folder(tree_id, path)
            if folder is not None:
                self._pages.know_page(page, folder)

    def at(self, commit_id: CommitId) -> Snapshot:
        """Return the session at another commit."""
        return Snapshot(self._pages, commit_id, self.lens)

    def read(self, answer: Callable[[Snapshot], _T]) -> _T:
        """Return the answer on the present session, asked once more if a rewrite came between."""
        before = self.snapshot()
        try:
            return answer(before)
        except DamagedError:
            self.reopen()
            after = self.snapshot()
            return answer(after)
