"""The proof of a deletion: every object and every file is looked through."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.erasure import pages, stream, wording
from smp_git.erasure.needles import Needles, Version, needles
from smp_git.erasure.pages import FOLDER
from smp_git.erasure.rewrite import TAG, raw_commit
from smp_git.errors import DamagedError
from smp_git.format.ids import is_index, parse_path
from smp_git.format.tombstones import Tombstones
from smp_git.git import references
from smp_git.git.objects import BLOB, COMMIT, TREE
from smp_git.git.repository import Repository
from smp_git.snapshot import Reader

# So much new text is gathered before it is searched.
_CHUNK: Final = 1 << 22
_HEAD: Final = len("100644 ")


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


class _Source(NamedTuple):
    """Where a text comes from: an object (its id and type) or a file (its path)."""

    name: bytes
    type: bytes


_FILE: Final = b"file"


class _Scan:
    """One pass over everything. What was seen line by line is not searched again."""

    def __init__(self, repository: Repository, wanted: Needles) -> None:
        self._repository = repository
        self._wanted = wanted
        self._lines: set[bytes] = set()
        self._parts: set[bytes] = set()
        self._chunk: list[bytes] = []
        self._size = 0
        self._found: set[bytes] = set()
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
        if self._found:
            self._place_texts()
        return self._hits, self._also

    # What is looked at

    def _object(self, name: bytes, kind: bytes, data: bytes) -> None:
        if kind == TREE:
            self._tree(data)
            return
        if kind == BLOB:
            if name.decode() in self._wanted.blobs:
                self._found.add(data)
            if self._is_version(data):
                self._hits.add("a version of a memory's file")
        elif kind == COMMIT:
            self._commit(data)
        self._text(data, "an index line of history")

    def _file(self, path: str, data: bytes) -> None:
        if path.encode("utf-8", "surrogateescape") in self._wanted.paths and self._is_version(data):
            self._hits.add(f"the file {path}")
        for each in self._wanted.paths if path == ".git/index" else ():
            if each + b"\0" in data and not self._stands(each.decode()):
                self._hits.add(f"the file {path}")
        self._text(data, f"an index line of {path}")

    def _stands(self, path: str) -> bool:
        """Whether a later generation of the memory at a path is checked out."""
        file = self._repository.path / path
        return file.is_file() and not self._is_version(file.read_bytes())

    def _tree(self, data: bytes) -> None:
        parts = data.split(b"\0")
        for part in set(parts) - self._parts:
            self._parts.add(part)
            name = part.rpartition(b" ")[2] if part[-5:] == b".yaml" or part[-3:] == b".md" else b""
            if name in self._wanted.names and self._is_gone_entry(data, name):
                self._parts.discard(part)
                self._hits.add("a path of history")

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
        name = pages.own_id(data)
        limit = self._wanted.known.limit_of_text(name) if name else 0
        if not limit:
            return False
        return pages.generation(data, has_front_matter=data.startswith(b"---")) <= limit

    def _commit(self, data: bytes) -> None:
        raw = raw_commit(data)
        known = self._wanted.known
        if not any(map(known.limit_of_text, wording.mentions(raw.message))):
            return
        gone = [each for each in wording.mentions(raw.message) if known.limit_of_text(each) and not self._is_there(raw.tree, each)]  # fmt: skip
        if wording.without(raw.message, gone.__contains__, touches=False) != raw.message:
            self._hits.add("a commit message")

    def _is_there(self, tree: bytes, memory_id: bytes) -> bool:
        try:
            path = pages.path_of(memory_id)
            return self._repository.find(tree.hex(), path) is not None  # type: ignore[arg-type]
        except DamagedError:
            return False

    def _text(self, data: bytes, place: str) -> None:
        fresh = set(data.split(b"\n")) - self._lines
        self._lines |= fresh
        for line in fresh:
            if line[:1] == b"-" and b"id" in line:
                item = pages.item(line)
                if item.id and item.generation <= self._wanted.known.limit_of_text(item.id):
                    self._hits.add(place)
        if self._wanted.texts and fresh:
            self._chunk.append(b"\n".join(fresh))
            self._size += len(self._chunk[-1])
            if self._size > _CHUNK:
                self._search()

    def _search(self) -> None:
        text = b"\n".join(self._chunk)
        self._found.update(each for each in self._wanted.texts if each in text)
        self._chunk.clear()
        self._size = 0

    # Where the text that was found stands

    def _place_texts(self) -> None:
        paths = _paths(self._repository)
        for name, kind, data in stream.objects(self._repository):
            if kind != TREE and any(each in data for each in self._found):
                self._place(name, kind, data, paths)
        for path, data in _files(self._repository.path):
            if any(each in data for each in self._found):
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
            if any(each in item.text for each in self._found):
                if item.id and item.generation > self._wanted.known.limit_of_text(item.id):
                    self._also.add(item.id.decode("utf-8", "replace"))
                else:
                    self._hits.add(f"an index line of {path}")

    def _place_lines(self, message: bytes, place: str) -> None:
        for line in message.split(b"\n"):
            if any(each in line for each in self._found):
                named = wording.mentions(line)
                if named and not self._wanted.known.limit_of_text(named[0]):
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
    stack = [folder]
    while stack:
        for entry in sorted(stack.pop().iterdir()):
            if entry.is_symlink():
                continue
            if entry.is_dir():
                stack.append(entry)
                continue
            path = entry.relative_to(folder).as_posix()
            if not _is_object(path):
                try:
                    yield path, entry.read_bytes()
                except FileNotFoundError:
                    continue


def _is_object(path: str) -> bool:
    if not path.startswith(".git/objects/"):
        return False
    rest = path.removeprefix(".git/objects/")
    loose = len(rest) == 41 and rest[2] == "/"  # noqa: PLR2004 - an id, cut after two digits
    return loose or (rest.startswith("pack/pack-") and rest.endswith((".pack", ".idx")))
