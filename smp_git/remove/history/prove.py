"""Proof of a deletion: one pass over every object and every file, and one that names places."""

from __future__ import annotations

import io
import re
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

from smp_git.format import document, readme
from smp_git.format.metadata import PATH as METADATA
from smp_git.format.records import Tombstones
from smp_git.git import layout, staging
from smp_git.git.objects import BLOB, COMMIT, TREE, ObjectId, Raw, raw_commit
from smp_git.git.repository import Repository
from smp_git.model.errors import DamagedError, FormatError, InvalidError
from smp_git.model.ids import is_index, parse_path
from smp_git.model.memory import KINDS
from smp_git.model.results import Result
from smp_git.read.snapshot import Reader
from smp_git.remove.history import compressed, judge, places, reading
from smp_git.remove.history.compressed import ClosedError, Unpacker
from smp_git.remove.history.judge import Judge, own_id
from smp_git.remove.history.places import Beside, PlaceNames
from smp_git.remove.history.reading import FOLDER, TAG, Walk
from smp_git.remove.history.search import DeadVersion, Fresh, Needles, Phrase, Search, needles

# So much new text is gathered before it is searched.
_CHUNK: Final = 1 << 22
# More than an entry of a tree takes, so that what is new in a tree is in whole entries.
_MARGIN: Final = 128
_SMALL: Final = 256
_FILE_NAMES: Final = re.compile(rb" ([^\0 ]{1,96}\.(?:yaml|md))\0")
_ITEM_LINES: Final = re.compile(rb"^-[^\n]*id[^\n]*", re.MULTILINE)
_FOLDERS: Final = "|".join(kind.folder for kind in KINDS.values()).encode()
_STAGED: Final = re.compile(rb"((?:%s)/[^\0]{1,96}\.(?:yaml|md))\0" % _FOLDERS)
# Objects of the session, and those that a sync under way has fetched.
_OBJECTS: Final = rf"\.git/(?:{layout.PLACE.as_posix()}/[^/]+/\.git/)?objects"
_LOOSE: Final = re.compile(rf"{_OBJECTS}/[0-9a-f]{{2}}/[0-9a-f]{{38}}")
_PACKED: Final = re.compile(rf"({_OBJECTS}/pack/[^/]+)\.(?:pack|idx)")
_NOTE: Final = re.compile("[0-9a-f/]{40,80}")
_HISTORY: Final = "an index line of history"


class Scan:
    """One pass over everything. A stretch that was looked at before is not looked at again."""

    def __init__(
        self,
        repository: Repository,
        wanted: Needles,
        names: PlaceNames,
        beside: Iterable[Beside] = (),
    ) -> None:
        self._repository = repository
        self._wanted = wanted
        self._names = names
        self._beside = {each.name: each.path for each in beside}
        self._judge = Judge(wanted.known)
        self._search = Search(wanted.texts, wanted.phrases)
        self._fresh_trees = Fresh()
        self._fresh_texts = Fresh()
        self._files_of: dict[bytes, bool] = {}
        self._chunk: list[bytes] = []
        self._size = 0
        self._texts: set[bytes] = set()
        self._phrases: set[Phrase] = set()
        self._copied: set[bytes] = set()
        self._unpacker = Unpacker(repository.git / "smp")
        self._hits: set[str] = set()
        self._also: set[str] = set()
        self.unread: set[str] = set()
        self.objects = self.files = self.bytes = 0

    def run(self) -> None:
        """Look through the objects, then the files."""
        for name, kind, data in reading.objects(self._repository):
            self.objects += bool(name)
            self.bytes += len(data)
            self._object(name, kind, data)
        for path, pieces in self._all_files():
            self.files += 1
            for number, piece in enumerate(pieces):
                self.bytes += len(piece)
                if not number:
                    self._head(path, piece)
                self._text(piece, f"an index line of {self._names.file(path)}")
        self._look()

    def findings(self) -> tuple[set[str], set[str]]:
        """Return the hits, and the live memories that say the same."""
        if self._texts or self._phrases or self._copied:
            self._place_all()
        return self._hits, self._also

    def _all_files(self) -> Iterator[tuple[str, Iterator[bytes]]]:
        """Yield every file but the objects, which are looked through inflated."""
        walk = Walk(str(self._repository.path))
        for path in walk:
            if not self._is_object(path):
                yield path, walk.pieces(path)
        self._skipped(walk)
        for name, file in self._beside.items():
            near = Walk(str(file.parent))
            yield name, near.pieces(file.name)
            self._skipped(near)

    def _skipped(self, walk: Walk) -> None:
        self.unread.update(f"{self._names.file(each.path)}: {each.why}" for each in walk.unread)

    def _is_object(self, path: str) -> bool:
        if _LOOSE.fullmatch(path):
            return True
        pack = _PACKED.fullmatch(path)
        top = self._repository.path
        return pack is not None and all(
            (top / f"{pack[1]}.{each}").is_file() for each in ("pack", "idx")
        )

    # What is looked at

    def _object(self, name: bytes, kind: bytes, data: bytes) -> None:
        if kind == TREE:
            self._tree(data)
            return
        if kind == BLOB and name:
            if self._judge.is_in_readme(data):
                self._hits.add(f"the {readme.PATH} of history")
            if name in self._wanted.blobs or self._judge.is_dead_file(data):
                self._copied.add(name)
            self._open(
                "", data[: compressed.HEAD], lambda: io.BytesIO(data), "an archive of history"
            )
        elif kind == COMMIT:
            self._commit(data)
            self._lines(data, _HISTORY)
            return
        self._text(data, _HISTORY)

    def _head(self, path: str, data: bytes) -> None:
        """Look at a file as a whole: its name, whose version it is, what is compressed in it."""
        name = path.rpartition("/")[2].encode("utf-8", "surrogateescape")
        if self._judge.is_dead_file(data):
            self._hits.add(f"the file {self._names.file(path)}")
        if path == readme.PATH and self._judge.is_in_readme(data):
            self._hits.add(f"the file {path}")
        if path == ".git/index" and any(map(self._is_staged_gone, set(_STAGED.findall(data)))):
            self._hits.add(f"the file {path}")
        if self._search.is_in_words(b" " + name):
            self._hits.add(f"the name of the file {self._names.file(path)}")
        self._open(
            path,
            data[: compressed.HEAD],
            lambda: reading.opened(self._beside.get(path) or self._repository.path / path),
            f"the file {self._names.file(path)}",
        )

    def _open(self, path: str, head: bytes, file: Callable[[], IO[bytes]], place: str) -> None:
        """Look into a compressed file at once; what is closed is named."""
        if not compressed.is_compressed(path, head):
            return
        try:
            with file() as opened:
                for kind, data in self._unpacker.inside(path, opened):
                    self.bytes += len(data)
                    if self._is_telling(kind, data):
                        self._hits.add(f"inside {place}")
        except ClosedError as error:
            self.unread.add(f"{place.removeprefix('the file ')}: {error}")
        except FileNotFoundError:
            # It went meanwhile.
            return
        except OSError as error:
            self.unread.add(f"{place.removeprefix('the file ')}: {error.strerror}")

    def _is_telling(self, kind: bytes, data: bytes) -> bool:
        """Whether bytes that nobody needs tell of the deleted in any way."""
        if kind == TREE:
            return self._search.is_in_words(data)
        if self._search.is_in(data) or (kind == BLOB and self._judge.is_dead_file(data)):
            return True
        return any(self._judge.is_dead_item(judge.item(line)) for line in _ITEM_LINES.findall(data))

    def _is_staged_gone(self, path: bytes) -> bool:
        if not self._is_gone_file(path.rpartition(b"/")[2]):
            return False
        place = parse_path(path.decode("utf-8", "surrogateescape"))
        if place is None or not self._judge.concerns(place.text.encode()):
            return False
        # A later life of it may be checked out, or have been until its file was removed.
        file = self._repository.path / place.path
        if file.is_file():
            return self._judge.is_dead_file(file.read_bytes())
        try:
            staged = [data for _, data in staging.files(self._repository, [place.path])]
        except (DamagedError, FormatError):
            return True
        return not staged or any(map(self._judge.is_dead_file, staged))

    def _tree(self, data: bytes) -> None:
        stretch = self._fresh_trees.stretch(data) if len(data) > _SMALL else (0, len(data))
        if stretch is None:
            return
        start, end = max(0, stretch[0] - _MARGIN), stretch[1] + _MARGIN
        for name in _FILE_NAMES.findall(data, start, end):
            if self._is_gone_file(name) and self._is_gone_entry(data, name):
                self._hits.add("a path of history")
        self._gather(data[start:end])

    def _is_gone_file(self, name: bytes) -> bool:
        """Whether a file of this name may be a gone memory's."""
        found = self._files_of.get(name)
        if found is None:
            stem, _, suffix = name.rpartition(b".")
            found = suffix in (b"yaml", b"md") and (
                self._judge.concerns(stem) or self._judge.concerns(b"state-" + stem)
            )
            self._files_of[name] = found
        return found

    def _is_gone_entry(self, tree: bytes, name: bytes) -> bool:
        for entry in reading.entries(tree):
            if entry.name == name:
                try:
                    kind, data = self._repository.raw(entry.id)
                except DamagedError:
                    return True
                return kind != BLOB or self._judge.is_dead_file(data)
        return False

    def _commit(self, data: bytes) -> None:
        if not any(map(self._judge.concerns, judge.mentions(data))):
            return
        raw = raw_commit(data)
        gone = [
            each
            for each in judge.mentions(raw.message)
            if self._judge.concerns(each) and not self._is_there(raw.tree, each)
        ]
        if judge.without(raw.message, gone.__contains__, touches=False) != raw.message:
            self._hits.add("a commit message")

    def _is_there(self, tree: bytes, memory_id: bytes) -> bool:
        try:
            path = judge.path_of(memory_id)
            return self._repository.find(tree.hex(), path) is not None  # type: ignore[arg-type]
        except DamagedError:
            return False

    def _text(self, data: bytes, place: str) -> None:
        stretch = self._fresh_texts.stretch(data)
        if stretch is None:
            return
        # A text is in one line, a phrase may be in several that were there before.
        reach = self._search.reach
        start = data.rfind(b"\n", 0, max(0, stretch[0] - reach)) + 1
        end = data.find(b"\n", stretch[1] + reach)
        self._lines(data[start:] if end < 0 else data[start:end], place)

    def _lines(self, fresh: bytes, place: str) -> None:
        """Look at lines that were not looked at before."""
        for line in _ITEM_LINES.findall(fresh) if b"\n-" in fresh or fresh[:1] == b"-" else ():
            if self._judge.is_dead_item(judge.item(line)):
                self._hits.add(place)
        self._gather(fresh)

    def _gather(self, fresh: bytes) -> None:
        if self._search:
            self._chunk.append(fresh)
            self._size += len(fresh)
            if self._size > _CHUNK:
                self._look()

    def _look(self) -> None:
        texts, phrases = self._search.found(b"\n".join(self._chunk))
        self._texts |= texts
        self._phrases |= phrases
        self._chunk.clear()
        self._size = 0

    # Where the text that was found is

    def _place_all(self) -> None:
        paths = self._paths()
        self._search = Search(self._texts, self._phrases)
        for name, kind, data in reading.objects(self._repository):
            if kind == TREE:
                if self._search.is_in_words(data):
                    self._hits.add("the name of a file of history")
            elif name in self._copied or self._search.is_in(data):
                self._place(name, kind, data, paths)
        for path, pieces in self._all_files():
            for piece in pieces:
                if self._search.is_in(piece):
                    self._place_file(path, piece)

    def _paths(self) -> dict[bytes, set[str]]:
        """Return where each file of history is."""
        found: dict[bytes, set[str]] = {}
        tips = reading.tips_of(self._repository).values()
        for kind, name, _, path in reading.reached(self._repository.raw, tips):
            if path and kind != FOLDER:
                found.setdefault(name, set()).add(path)
        return found

    def _place(self, name: bytes, kind: bytes, data: bytes, paths: dict[bytes, set[str]]) -> None:
        if kind == COMMIT:
            self._place_commit(data)
        elif kind == TAG:
            self._hits.add("the message of a tag")
        else:
            places = paths.get(bytes.fromhex(name.decode()), set())
            if not places:
                self._hits.add("an object that no reference reaches")
            for path in places:
                if _NOTE.fullmatch(path):
                    self._hits.add("a note")
                else:
                    self._place_file(path, data)

    def _place_file(self, path: str, data: bytes) -> None:
        place = parse_path(path)
        if place is not None:
            if self._judge.is_dead_file(data) or not (
                place.kind.name == "state" or own_id(data) == place.text.encode()
            ):
                self._hits.add(f"the file {path}")
            else:
                self._also.add(place.text)
        elif is_index(path):
            self._place_items(path, data)
        elif path == METADATA:
            self._also.add(path)
        else:
            self._hits.add(f"the file {self._names.file(path)}")

    def _place_items(self, path: str, data: bytes) -> None:
        for item in judge.items(data)[1]:
            if self._search.is_in(item.text):
                if item.id and not self._judge.is_dead_item(item):
                    self._also.add(item.id.decode("utf-8", "replace"))
                else:
                    self._hits.add(f"an index line of {path}")

    def _place_commit(self, data: bytes) -> None:
        """Place a text by the lines of a message, or else in the commit's other parts."""
        raw = raw_commit(data)
        found = False
        for line in raw.message.split(b"\n"):
            if self._search.is_in(line):
                found = True
                whose = self._speaker(raw, line)
                if whose:
                    self._also.add(whose)
                else:
                    self._hits.add("a commit message")
        if not found and self._search.is_in(raw.message):
            self._hits.add("a commit message")
        elif not found:
            self._hits.add("the author of a commit")

    def _speaker(self, commit: Raw, line: bytes) -> str | None:
        """Return the memory that a line names and that says the same, living, at the commit or before it."""
        texts, phrases = self._search.found(line)
        for name in judge.named(line):
            for tree in self._trees_at(commit):
                said = self._search.found(self._said(tree, name))
                if texts <= said[0] and phrases <= said[1]:
                    return name.decode()
        return None

    def _trees_at(self, commit: Raw) -> Iterator[bytes]:
        yield commit.tree
        for parent in commit.parents:
            with suppress(DamagedError):
                yield raw_commit(self._repository.raw(parent)[1]).tree

    def _said(self, tree: bytes, memory_id: bytes) -> bytes:
        """Return what the living version of a memory in a tree says, nothing if there is none."""
        with suppress(DamagedError, InvalidError):
            path = judge.path_of(memory_id)
            blob = self._repository.find(ObjectId(tree.hex()), path)
            data = self._repository.blob(blob) if blob else b""
            if data and not self._judge.is_dead_file(data):
                title = document.decode(data, path).title
                return data + b"\n" + title.encode("utf-8", "surrogatepass")
        return b""


# For as long as Git takes packs away, a scan that they break is done again.
_PATIENCE_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof(Result):
    """Findings of a scan: counts and places, never text or object names.

    `not_searched` says what was not looked for, `not_looked_into` where nothing was.

    >>> session.delete("FIND-0001").proof.clean
    True
    """

    clean: bool
    hits: tuple[str, ...]
    also_in: tuple[str, ...]
    not_searched: tuple[str, ...]
    not_looked_into: tuple[str, ...]
    objects: int
    files: int
    bytes: int
    text_searched: bool
    seconds: float


def verify(
    reader: Reader,
    tombstones: Tombstones,
    versions: Iterable[DeadVersion] = (),
    unknown: Iterable[str] = (),
) -> Proof:
    """Look through everything for what the tombstones name and the versions say.

    `unknown` says of which deleted memories nobody tells the text any more.
    """
    started = time.monotonic()
    versions = tuple(versions)
    wanted = needles(tombstones, versions)
    scan, (hits, also) = _scanned(reader, wanted, PlaceNames(versions))
    short = "a text that is" if wanted.short == 1 else f"{wanted.short} texts that are"
    too_short = [f"{short} too short to distinguish from chance"] if wanted.short else []
    return Proof(
        clean=not hits,
        hits=tuple(sorted(hits)),
        also_in=tuple(sorted(also)),
        not_searched=(*unknown, *too_short),
        not_looked_into=tuple(sorted(scan.unread)),
        objects=scan.objects,
        files=scan.files,
        bytes=scan.bytes,
        text_searched=bool(wanted.texts or wanted.phrases),
        seconds=round(time.monotonic() - started, 3),
    )


def _scanned(
    reader: Reader, wanted: Needles, names: PlaceNames
) -> tuple[Scan, tuple[set[str], set[str]]]:
    """Return a scan that went through; a gc of Git's that takes packs meanwhile breaks one."""
    end = time.monotonic() + _PATIENCE_SECONDS
    while True:
        before = _packs(reader.repository.git)
        repository = Repository(reader.path)
        try:
            scan = Scan(repository, wanted, names, places.beside(reader.path))
            scan.run()
            return scan, scan.findings()
        except DamagedError:
            if _packs(repository.git) == before or time.monotonic() > end:
                raise
        finally:
            repository.close()


def _packs(git: Path) -> set[str]:
    return {each.name for each in (git / "objects" / "pack").iterdir()}
