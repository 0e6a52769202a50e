"""The proof of a deletion: every object and every file is looked through."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from smp_git.erasure import pages, stream, wording
from smp_git.erasure.finder import Finder
from smp_git.erasure.needles import SHORTEST, Needles, Version, needles
from smp_git.erasure.pages import FOLDER
from smp_git.erasure.rewrite import TAG, raw_commit
from smp_git.errors import DamagedError
from smp_git.format.ids import is_index, parse_path
from smp_git.format.tombstones import Tombstones
from smp_git.git import references
from smp_git.git.alike import common, common_end
from smp_git.git.objects import BLOB, COMMIT, TREE
from smp_git.git.repository import Repository
from smp_git.memory import KINDS
from smp_git.snapshot import Reader

# So much new text is gathered before it is searched.
_CHUNK: Final = 1 << 22
# Versions of one thing begin alike; of so many bytes of them the last one is kept.
_KEY: Final = 24
_MOST_KEPT: Final = 1 << 24
# More than an entry of a tree takes, so that what is new in a tree is in whole entries.
_MARGIN: Final = 128
# Versions differ most often near their end; a short stretch is not worth telling exactly.
_NEAR: Final = 256
_SHORT: Final = 1_024
_FILE_NAMES: Final = re.compile(rb" ([^\0 ]{1,96}\.(?:yaml|md))\0")
_ITEM_LINES: Final = re.compile(rb"^-[^\n]*id[^\n]*", re.MULTILINE)
_FOLDERS: Final = "|".join(kind.folder for kind in KINDS.values()).encode()
_STAGED: Final = re.compile(rb"((?:%s)/[^\0]{1,96}\.(?:yaml|md))\0" % _FOLDERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What a scan found: counts and places, never text or object names."""

    clean: bool
    hits: tuple[str, ...]
    also_in: tuple[str, ...]
    objects: int
    files: int
    bytes: int
    text_searched: bool
    seconds: float

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "clean": self.clean,
            "hits": list(self.hits),
            "also_in": list(self.also_in),
            "objects": self.objects,
            "files": self.files,
            "bytes": self.bytes,
            "text_searched": self.text_searched,
            "seconds": round(self.seconds, 3),
        }


def verify(reader: Reader, tombstones: Tombstones, versions: Iterable[Version] = ()) -> Proof:
    """Look through everything for what the tombstones name and the versions say."""
    started = time.monotonic()
    wanted = needles(tombstones, versions)
    repository = Repository(reader.path)
    try:
        scan = _Scan(repository, wanted)
        scan.run()
        hits, also = scan.findings()
    finally:
        repository.close()
    return Proof(
        clean=not hits,
        hits=tuple(sorted(hits)),
        also_in=tuple(sorted(also)),
        objects=scan.objects,
        files=scan.files,
        bytes=scan.bytes,
        text_searched=bool(wanted.texts),
        seconds=time.monotonic() - started,
    )


class _Fresh:
    """Tells what of a text was not in one that was looked at before it."""

    def __init__(self) -> None:
        self._last: dict[bytes, bytes] = {}
        self._size = 0

    def stretch(self, data: bytes) -> tuple[int, int] | None:
        """Return where begins and ends what is new in `data`, None if nothing is.

        Of no length, it is where two stretches now meet that did not before.
        """
        key = data[:_KEY]
        old = self._last.get(key, b"")
        if old.startswith(data):
            return None
        self._size += len(data) - len(old)
        if self._size > _MOST_KEPT:
            self._last.clear()
            self._size = len(data)
        self._last[key] = data
        most = min(len(old), len(data))
        near = max(0, most - _NEAR)
        if old[:near] == data[:near] and len(data) - near < _SHORT:
            return near, len(data)
        start = common(old, data)
        return start, len(data) - common_end(old, data, most - start)


class _Scan:
    """One pass over everything. A stretch that was looked at before is not looked at again."""

    def __init__(self, repository: Repository, wanted: Needles) -> None:
        self._repository = repository
        self._wanted = wanted
        self._finder = Finder(wanted.texts)
        self._fresh_trees = _Fresh()
        self._fresh_texts = _Fresh()
        self._named: dict[bytes, bool] = {}
        self._files_of: dict[bytes, bool] = {}
        self._chunk: list[bytes] = []
        self._size = 0
        self._found: set[bytes] = set()
        self._short: set[bytes] = set()
        self._hits: set[str] = set()
        self._also: set[str] = set()
        self.objects = self.files = self.bytes = 0

    def run(self) -> None:
        """Look through the objects, then the files."""
        for name, kind, data in stream.objects(self._repository):
            self.objects += 1
            self.bytes += len(data)
            self._object(name, kind, data)
        for path, data in _files(self._repository.path):
            self.files += 1
            self.bytes += len(data)
            self._file(path, data)
        self._search()

    def findings(self) -> tuple[set[str], set[str]]:
        """Return the hits, and the live memories that say the same."""
        if self._found or self._short:
            self._place_texts()
        return self._hits, self._also

    # What is looked at

    def _object(self, name: bytes, kind: bytes, data: bytes) -> None:
        if kind == TREE:
            self._tree(data)
            return
        if kind == BLOB:
            if name in self._wanted.blobs:
                (self._found if len(data) >= SHORTEST else self._short).add(data)
            if self._is_version(data):
                self._hits.add("a version of a memory's file")
        elif kind == COMMIT:
            self._commit(data)
            self._lines(data, "an index line of history")
            return
        self._text(data, "an index line of history")

    def _file(self, path: str, data: bytes) -> None:
        if self._is_gone_file(path.rpartition("/")[2].encode("utf-8", "surrogateescape")):
            place = parse_path(path)
            if place is not None and self._is_named(place.text.encode()) and self._is_version(data):
                self._hits.add(f"the file {path}")
        if path == ".git/index" and any(map(self._is_staged_gone, set(_STAGED.findall(data)))):
            self._hits.add(f"the file {path}")
        self._text(data, f"an index line of {path}")

    def _is_staged_gone(self, path: bytes) -> bool:
        if not self._is_gone_file(path.rpartition(b"/")[2]):
            return False
        place = parse_path(path.decode("utf-8", "surrogateescape"))
        return place is not None and self._is_named(place.text.encode()) and not self._stands(place.path)  # fmt: skip

    def _stands(self, path: str) -> bool:
        """Whether a living life of the memory at a path is checked out."""
        file = self._repository.path / path
        return file.is_file() and not self._is_version(file.read_bytes())

    def _tree(self, data: bytes) -> None:
        stretch = self._fresh_trees.stretch(data) if len(data) > _NEAR else (0, len(data))
        if stretch is None:
            return
        start, end = stretch
        for name in _FILE_NAMES.findall(data, max(0, start - _MARGIN), end + _MARGIN):
            if self._is_gone_file(name) and self._is_gone_entry(data, name):
                self._hits.add("a path of history")

    def _is_gone_file(self, name: bytes) -> bool:
        """Whether a file of this name may be a gone memory's."""
        found = self._files_of.get(name)
        if found is None:
            stem, _, suffix = name.rpartition(b".")
            found = suffix in (b"yaml", b"md") and bool(
                self._is_named(stem) or self._is_named(b"state-" + stem)
            )
            self._files_of[name] = found
        return found

    def _is_named(self, memory_id: bytes) -> bool:
        found = self._named.get(memory_id)
        if found is None:
            found = self._named[memory_id] = self._wanted.known.names_text(memory_id)
        return found

    def _is_dead(self, item: pages.Item) -> bool:
        return self._is_named(item.id) and self._wanted.known.lives_of_text(item.id).is_dead(
            item.life
        )

    def _is_gone_entry(self, tree: bytes, name: bytes) -> bool:
        for entry in pages.entries(tree):
            if entry.name == name:
                try:
                    kind, data = self._repository.raw(entry.id)
                except DamagedError:
                    return True
                return kind != BLOB or self._is_version(data)
        return False

    def _is_version(self, data: bytes) -> bool:
        """Whether bytes are a memory's file that should be gone."""
        return pages.is_dead_file(data, self._wanted.known)

    def _commit(self, data: bytes) -> None:
        if not any(map(self._is_named, wording.mentions(data))):
            return
        raw = raw_commit(data)
        gone = [each for each in wording.mentions(raw.message) if self._is_named(each) and not self._is_there(raw.tree, each)]  # fmt: skip
        if wording.without(raw.message, gone.__contains__, touches=False) != raw.message:
            self._hits.add("a commit message")

    def _is_there(self, tree: bytes, memory_id: bytes) -> bool:
        try:
            path = pages.path_of(memory_id)
            return self._repository.find(tree.hex(), path) is not None  # type: ignore[arg-type]
        except DamagedError:
            return False

    def _text(self, data: bytes, place: str) -> None:
        stretch = self._fresh_texts.stretch(data)
        if stretch is None:
            return
        # Nothing that is looked for goes beyond a line.
        start = data.rfind(b"\n", 0, stretch[0]) + 1
        end = data.find(b"\n", stretch[1])
        self._lines(data[start:] if end < 0 else data[start:end], place)

    def _lines(self, fresh: bytes, place: str) -> None:
        """Look at lines that were not looked at before."""
        for line in _ITEM_LINES.findall(fresh) if b"\n-" in fresh or fresh[:1] == b"-" else ():
            item = pages.item(line)
            if item.id and self._is_dead(item):
                self._hits.add(place)
        if self._finder:
            self._chunk.append(fresh)
            self._size += len(fresh)
            if self._size > _CHUNK:
                self._search()

    def _search(self) -> None:
        self._found |= self._finder.found(b"\n".join(self._chunk))
        self._chunk.clear()
        self._size = 0

    # Where the text that was found stands

    def _place_texts(self) -> None:
        paths = _paths(self._repository)
        self._finder = Finder(self._found)
        for name, kind, data in stream.objects(self._repository):
            if kind != TREE and (data in self._short or self._finder.is_in(data)):
                self._place(name, kind, data, paths)
        for path, data in _files(self._repository.path):
            if self._finder.is_in(data):
                self._place_file(path, data)

    def _place(self, name: bytes, kind: bytes, data: bytes, paths: dict[bytes, set[str]]) -> None:
        if kind == COMMIT:
            self._place_lines(raw_commit(data).message, "a commit message")
        elif kind == TAG:
            self._hits.add("the message of a tag")
        else:
            places = paths.get(bytes.fromhex(name.decode()), set())
            if not places:
                self._hits.add("an object that no reference reaches, or a note")
            for path in places:
                self._place_file(path, data)

    def _place_file(self, path: str, data: bytes) -> None:
        place = parse_path(path)
        if place is not None:
            if self._is_version(data) or not (
                place.name or pages.own_id(data) == place.text.encode()
            ):
                self._hits.add(f"the file {path}")
            else:
                self._also.add(place.text)
        elif is_index(path):
            self._place_items(path, data)
        elif path == "metadata.yaml":
            self._also.add(path)
        else:
            self._hits.add(f"the file {path}")

    def _place_items(self, path: str, data: bytes) -> None:
        for item in pages.items(data)[1]:
            if self._finder.is_in(item.text):
                if item.id and not self._is_dead(item):
                    self._also.add(item.id.decode("utf-8", "replace"))
                else:
                    self._hits.add(f"an index line of {path}")

    def _place_lines(self, message: bytes, place: str) -> None:
        for line in message.split(b"\n"):
            if self._finder.is_in(line):
                named = wording.mentions(line)
                if named and not self._is_named(named[0]):
                    self._also.add(named[0].decode())
                else:
                    self._hits.add(place)


def _paths(repository: Repository) -> dict[bytes, set[str]]:
    """Return where each file of history stands."""
    found: dict[bytes, set[str]] = {}
    seen: set[tuple[str, bytes]] = set()
    commits: set[bytes] = set()
    stack = [bytes.fromhex(tip) for tip in references.read(repository.git).values()]
    stack += [bytes.fromhex(entry.id) for entry in references.read_stash(repository.git)]
    while stack:
        name = stack.pop()
        if name in commits:
            continue
        commits.add(name)
        kind, data = repository.raw(name)
        if kind == TAG:
            stack.append(bytes.fromhex(data[7:47].decode()))
        elif kind == COMMIT:
            raw = raw_commit(data)
            stack += raw.parents
            _note_paths(repository, "", raw.tree, found, seen)
    return found


def _note_paths(repository: Repository, prefix: str, tree: bytes, found: dict[bytes, set[str]], seen: set[tuple[str, bytes]]) -> None:  # fmt: skip
    if (prefix, tree) in seen:
        return
    seen.add((prefix, tree))
    for entry in pages.entries(repository.raw(tree)[1]):
        path = prefix + entry.name.decode("utf-8", "surrogateescape")
        if entry.mode == FOLDER:
            _note_paths(repository, f"{path}/", entry.id, found, seen)
        else:
            found.setdefault(entry.id, set()).add(path)


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield every file of a session but the objects: those are looked through inflated."""
    stack = [(str(folder), "")]
    while stack:
        here, prefix = stack.pop()
        try:
            entries = sorted(os.scandir(here), key=_name)
        except FileNotFoundError:
            # A sync that ends meanwhile takes its folders with it.
            continue
        for entry in entries:
            path = prefix + entry.name
            if entry.is_symlink():
                continue
            if entry.is_dir():
                stack.append((entry.path, f"{path}/"))
            elif not _is_object(path):
                try:
                    yield path, _content(entry.path)
                except FileNotFoundError:
                    continue


def _name(entry: os.DirEntry[str]) -> str:
    return entry.name


def _content(path: str) -> bytes:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        size = os.fstat(fd).st_size
        data = os.read(fd, size + 1)
        if len(data) == size:
            return data
        parts = [data]
        while parts[-1]:
            parts.append(os.read(fd, _CHUNK))
        return b"".join(parts)
    finally:
        os.close(fd)


def _is_object(path: str) -> bool:
    if not path.startswith(".git/objects/"):
        return False
    rest = path.removeprefix(".git/objects/")
    loose = len(rest) == 41 and rest[2] == "/"  # noqa: PLR2004 - an id, cut after two digits
    return loose or (rest.startswith("pack/pack-") and rest.endswith((".pack", ".idx")))
