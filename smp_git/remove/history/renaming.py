"""Lives and ids written anew in all of history: a function of it and of the first versions.

Format 1 numbered the lives of a memory, and two replicas could begin one number apart.
A life of format 2 that was generation 2 is named after the first version that it had.

Two replicas with one tag may give one id to two memories. The commits from an addition on
are written anew: path, file, index line and message name the new id, and so does everything
in these commits that named the old one.
"""

from __future__ import annotations

import hashlib
import re
import string
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from smp_git.format import document, metadata
from smp_git.format import records as tombstones
from smp_git.format.document import KEY, OLD_KEY, life_of
from smp_git.format.records import Tombstones
from smp_git.git import command
from smp_git.git.command import FileChange
from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.git.repository import Repository
from smp_git.model.errors import InvalidError, InvalidFileError
from smp_git.model.ids import (
    FIRST,
    GENERATION,
    Edge,
    Id,
    Lives,
    generation,
    of_generation,
    parse_id,
    parse_path,
    sort_key,
)
from smp_git.model.memory import KINDS, CommitId, MemoryId, Value
from smp_git.read.pages import row_of
from smp_git.remove.history import judge, reading

_CANONICAL: Final = re.compile(rb"^generation: [1-9][0-9]{0,6}\n", re.MULTILINE)
_ORDER: Final = ("id", "kind", KEY, "created_at")


_OLD_LINE: Final = re.compile(rb'"blob":"([0-9a-f]{40})"')
_OLD_NUMBER: Final = re.compile(rb'"gen":[0-9]{1,7}')
_SIZE: Final = re.compile(rb'"size":([0-9]+)')


class Renames:
    """Files of generations as they become: new bytes by object id, lives by memory."""

    def __init__(self) -> None:
        self.files: dict[bytes, bytes] = {}
        self.lives: dict[MemoryId, set[str]] = {}
        self._named: dict[bytes, bytes] = {}

    def add(self, blob: str, data: bytes, name: MemoryId, life: str) -> None:
        """Note a file, what becomes of it, and its life."""
        self.files[bytes.fromhex(blob)] = data
        self._named[bytes.fromhex(blob)] = life.encode()
        self.lives.setdefault(name, set()).add(life)

    def index(self, index: bytes) -> bytes:
        """Return an index whose lines name the new files and their lives."""
        if b'"gen":' not in index:
            return index
        return b"".join(map(self._line, index.splitlines(keepends=True)))

    def _line(self, line: bytes) -> bytes:
        match = _OLD_LINE.search(line)
        old = bytes.fromhex(match[1].decode()) if match else b""
        if old not in self.files:
            return line
        new = self.files[old]
        line = line.replace(old.hex().encode(), object_id(BLOB, new).encode(), 1)
        line = _OLD_NUMBER.sub(b'"life":"%s"' % self._named[old], line, count=1)
        return _SIZE.sub(b'"size":%d' % len(new), line, count=1)

    def __bool__(self) -> bool:
        return bool(self.files)

    def records(self) -> Tombstones:
        """Return how the lives came about, as far as format 1 tells."""
        edge = Edge(GENERATION, (FIRST,))
        return Tombstones.of(
            {name: Lives({}, dict.fromkeys(found, edge)) for name, found in self.lives.items()}
        )


def renames(repository: Repository, tips: Iterable[str], known: Tombstones) -> Renames:
    """Return what becomes of every version of a generation above 1 that some commits reach."""
    found = Renames()
    names = {parse_id(name).path: name for name in tombstones.ids_of(known)}
    if not names:
        return found
    named: dict[str, str] = {}
    for change in command.file_changes(repository.git, tips, sorted(names)):
        if change.new is None or change.new in named:
            continue
        data = repository.blob(ObjectId(change.new))
        number = generation(life_of(data, change.path) or FIRST)
        if number < 2 or life_of(data, change.path) != of_generation(number):  # noqa: PLR2004 - the first has no number
            continue
        before = named.get(change.old or "", "")
        life = before if generation(before) == number else of_generation(number, data)
        named[change.new] = life
        found.add(change.new, _renamed(data, change.path, life), names[change.path], life)
    return found


def _renamed(data: bytes, path: str, life: str) -> bytes:
    """Return a file that names its life instead of its generation."""
    plain = _CANONICAL.sub(f"{KEY}: {life}\n".encode(), data, count=1)
    if life_of(plain, path) == life:
        return plain
    changes: dict[str, Value | None] = {OLD_KEY: None, KEY: life}
    spliced = document.spliced(data, path, changes, _ORDER)
    if spliced is not None and life_of(spliced, path) == life:
        return spliced
    try:
        return document.encode(replace(document.decode(data, path), life=life))
    except InvalidFileError:
        return data


def raised(repository: Repository, tip: str) -> bytes | None:
    """Return the metadata of a commit with the present format, None if there is nothing to raise."""
    blob = repository.find(repository.commit(CommitId(tip)).tree, metadata.PATH)
    return metadata.raised(repository.blob(blob)) if blob else None


_FIRST: Final = string.ascii_lowercase
_REST: Final = string.ascii_lowercase + string.digits
_FOLDERS: Final = tuple(sorted(kind.folder for kind in KINDS.values()))
_LINE_BLOB: Final = re.compile(rb'"blob":"([0-9a-f]{40})"')


class Move(NamedTuple):
    """A memory that takes another id, told from others of its id by its first versions."""

    old: MemoryId
    new: MemoryId
    roots: tuple[str, ...]


def moved_id(old: MemoryId, digest: str) -> MemoryId:
    """Return the id that a memory takes: its number, under a tag made of its first version."""
    place = parse_id(old)
    rest = int.from_bytes(hashlib.sha256(f"{old} {digest}".encode()).digest()[:8], "big")
    rest, first = divmod(rest, len(_FIRST))
    tag = _FIRST[first]
    for _ in range(3):
        rest, digit = divmod(rest, len(_REST))
        tag += _REST[digit]
    return Id(place.kind, place.number, tag).text


class NewIds:
    """Ids that are written otherwise in the files and messages of some commits."""

    def __init__(self, moves: Iterable[Move]) -> None:
        self.ids = {each.old: each.new for each in moves}
        said = {old.encode(): new.encode() for old, new in self.ids.items()}
        # Tags of memories are small letters.
        self._said = said | {old.lower(): new.lower() for old, new in said.items()}
        # Behind a colon it is the id of another session's memory.
        either = b"|".join(map(re.escape, self._said))
        self._pattern = re.compile(
            rb"(?<![A-Za-z0-9_-])(?<![A-Za-z0-9_-]:)(?:%s)(?![A-Za-z0-9_]|-[A-Za-z0-9])" % either
        )
        self._turns = [parse_id(old) for old in self.ids if parse_id(old).kind.name == "turn"]

    def replaced(self, text: bytes) -> bytes:
        """Return a text that names the ids as they become."""
        return self._pattern.sub(lambda found: self._said[found[0]], text)

    def file(self, data: bytes) -> bytes:
        """Return a memory's file that names the ids as they become, numbers of turns too."""
        text = self.replaced(data)
        for turn in self._turns:
            number = rb"(?m)^(turn_ref:[ \t]*)[\"']?0*%d[\"']?(?=[ \t]*$)" % turn.number
            text = re.sub(number, rb"\g<1>" + self.ids[turn.text].encode(), text)
        return text


class File(NamedTuple):
    """A file as it becomes: its path, its bytes, and its index line if it can be read."""

    path: str
    data: bytes
    line: bytes | None


class Moves:
    """Files, index lines and messages that name some memories, as they become."""

    def __init__(self, moves: Iterable[Move] = ()) -> None:
        self.moves = tuple(moves)
        self._files: dict[bytes, dict[str, File]] = {}
        self._names: dict[bytes, NewIds] = {}

    def __bool__(self) -> bool:
        return bool(self._names)

    def name(self, commit: bytes, names: NewIds) -> None:
        """Note which ids a commit names otherwise."""
        self._names[commit] = names

    def names(self, commit: bytes) -> NewIds:
        """Return which ids a commit names otherwise."""
        return self._names[commit]

    def add(self, path: str, blob: bytes, file: File) -> None:
        """Note what becomes of a file."""
        self._files.setdefault(blob, {})[path] = file

    @property
    def wanted(self) -> dict[bytes, frozenset[bytes]]:
        """The pages on which something changes, by folder; an empty name is the folder itself."""
        found: dict[bytes, set[bytes]] = {}
        for path in {path for below in self._files.values() for path in below}:
            folder, _, rest = path.partition("/")
            found.setdefault(folder.encode(), set()).add(rest.rpartition("/")[0].encode())
        return {folder: frozenset(names) for folder, names in found.items()}

    def file(self, page: str, piece: bytes) -> File | None:
        """Return what becomes of an entry of a page, None if it stays as it is."""
        below = self._files.get(piece[-20:])
        if below is None:
            return None
        name = reading.read_entry(piece).name.decode("utf-8", "surrogateescape")
        return below.get(f"{page}/{name}")

    def message(self, commit: bytes, message: bytes) -> bytes:
        """Return the message of a commit, or of a tag on it, with the ids as they become."""
        names = self._names.get(commit)
        return names.replaced(message) if names else message


def index_with(text: bytes, changed: Mapping[bytes, File]) -> bytes:
    """Return a page's index with the lines of some files, by the blob they were, as they become."""
    lines = judge.plain_lines(text)
    if lines is None:
        return text
    made = [_line(line, changed) for line in lines]
    return b"".join(each + b"\n" for each in _sorted(made))


def _line(line: bytes, changed: Mapping[bytes, File]) -> bytes:
    match = _LINE_BLOB.search(line)
    file = changed.get(bytes.fromhex(match[1].decode())) if match else None
    return line if file is None or file.line is None else file.line.rstrip(b"\n")


def _sorted(lines: list[bytes]) -> list[bytes]:
    """Return the lines of an index in their order, as they are if one of them has none."""
    try:
        keys = {line: sort_key(judge.item(line + b"\n").id.decode()) for line in lines}
    except (InvalidError, UnicodeDecodeError):
        return lines
    return sorted(lines, key=keys.__getitem__)


def moves_in(repository: Repository, tips: Iterable[str], asked: Iterable[Move]) -> Moves:
    """Return what becomes of everything that some commits and tags reach."""
    found = Moves(asked)
    tips = list(tips)
    if not found.moves:
        return found
    members = _members(repository, tips, found.moves)
    made: dict[frozenset[int], NewIds] = {}
    for commit, numbers in members.items():
        if numbers not in made:
            made[numbers] = NewIds(found.moves[number] for number in sorted(numbers))
        found.name(commit, made[numbers])
    below = {parent for each in members for parent in _parents(repository, each)}
    _note_files(repository, found, members.keys() - below, below - members.keys())
    return found


def _members(
    repository: Repository, tips: list[str], moves: tuple[Move, ...]
) -> dict[bytes, frozenset[int]]:
    """Return the commits that descend from additions, with the numbers of their moves."""
    paths = [parse_id(each.old).path for each in moves]
    own: dict[bytes, set[int]] = {}
    for change in command.file_changes(repository.git, tips, sorted(set(paths))):
        for number, each in enumerate(moves):
            if change.old is None and paths[number] == change.path and change.new in each.roots:
                own.setdefault(bytes.fromhex(change.commit), set()).add(number)
    members: dict[bytes, frozenset[int]] = {}
    if not own:
        return members
    for commit in command.history(repository.git, tips):
        numbers = set(own.get(commit, ()))
        for parent in _parents(repository, commit):
            numbers |= members.get(parent, frozenset())
        if numbers:
            members[commit] = frozenset(numbers)
    return members


def _parents(repository: Repository, commit: bytes) -> Iterator[bytes]:
    return map(bytes.fromhex, repository.commit(CommitId(commit.hex())).parents)


def _note_files(
    repository: Repository, found: Moves, tips: Iterable[bytes], below: Iterable[bytes]
) -> None:
    """Note the files that commits between some tips and what is below them wrote."""
    edge = [repository.commit(CommitId(name.hex())).tree for name in below]
    asked = [*(tip.hex() for tip in tips), *(f"^{name.hex()}" for name in below)]
    for change in command.file_changes(repository.git, asked, _FOLDERS) if found else ():
        place = parse_path(change.path)
        if place is None or change.new is None:
            continue
        if all(repository.find(tree, change.path) != change.new for tree in edge):
            file = _file(repository, place, change, found.names(bytes.fromhex(change.commit)))
            if file is not None:
                found.add(change.path, bytes.fromhex(change.new), file)


def _file(repository: Repository, place: Id, change: FileChange, names: NewIds) -> File | None:
    """Return what becomes of a version of a memory, None if it stays as it is."""
    old = repository.blob(ObjectId(change.new or ""))
    data = names.file(old)
    new = parse_id(names.ids.get(place.text, place.text))
    if data == old and new == place:
        return None
    try:
        line = row_of(data, new.path, object_id(BLOB, data))[0].encode()
    except InvalidFileError:
        line = None
    return File(new.path, data, line)
