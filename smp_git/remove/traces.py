"""Search for a text in every object, file and name, counted by kind of place."""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import IO, Final, NamedTuple

from smp_git.format import messages, readme, records, yamlfile
from smp_git.format.metadata import PATH as METADATA
from smp_git.git import staging
from smp_git.git.objects import BLOB, COMMIT, TREE, ObjectId, object_id, raw_commit
from smp_git.git.references import HEADS, TAGS
from smp_git.git.repository import Repository
from smp_git.model.errors import DamagedError, SmpError
from smp_git.model.ids import is_index, parse_path
from smp_git.model.memory import KINDS, CommitId, Value
from smp_git.read.replica import ERASURE, Use, use_of
from smp_git.remove.history import compressed, judge, places, reading
from smp_git.remove.history.compressed import ClosedError, Unpacker
from smp_git.remove.history.places import HIDDEN
from smp_git.remove.history.plan import RewritePlan
from smp_git.remove.history.reading import FOLDER, TAG, Walk
from smp_git.remove.wanted import Wanted, holds

_WITHOUT_HISTORY: Final = "smp anonymize makes a session without this history"


class TracePlace(NamedTuple):
    """A kind of place: what one and many are called, and what a person can do about it."""

    one: str
    many: str
    way_out: str


PLACES: Final[Mapping[str, TracePlace]] = {
    "versions": TracePlace("a version of a memory", "{} versions of memories", "redact once more"),
    "pages": TracePlace("an index page of memories", "{} index pages of memories", "smp check says more"),
    "metadata": TracePlace(METADATA, f"{METADATA} in {{}} versions", f"change {METADATA} by hand and run smp commit; " + _WITHOUT_HISTORY),
    "authors": TracePlace("the author of a commit", "the authors of {} commits", _WITHOUT_HISTORY),
    "messages": TracePlace("the message of a commit", "the messages of {} commits", _WITHOUT_HISTORY),
    "tagged": TracePlace("the message of a tag", "the messages of {} tags", "git tag -d removes a tag"),
    "branches": TracePlace("the name of a branch", "the names of {} branches", "git branch -m renames a branch, git push --delete removes it at a remote"),
    "tags": TracePlace("the name of a tag", "the names of {} tags", "git tag -d removes a tag, git push --delete at a remote"),
    "references": TracePlace("the name of a reference", "the names of {} references", "git update-ref -d removes a reference"),
    "notes": TracePlace("a note", "{} notes", "git notes remove, then git gc --prune=now"),
    "history": TracePlace("another file of history", "{} other files of history", "git rm takes a file out from now on; " + _WITHOUT_HISTORY),
    "names": TracePlace("the name of a file", "the names of {} files", "git mv renames a file from now on; " + _WITHOUT_HISTORY),
    "uncommitted": TracePlace("a file that is not committed", "{} files that are not committed", "change or remove the file, or run smp commit and redact once more"),
    "staged": TracePlace("a file that is only staged", "{} files that are only staged", "git restore --staged, then redact once more"),
    "archives": TracePlace("inside a compressed file", "inside {} compressed files", "remove the file"),
    "unreachable": TracePlace("an object that no reference reaches", "{} objects that no reference reaches", "git gc --prune=now removes them, and so does the next deletion"),
    "reflogs": TracePlace("a log of references", "{} logs of references", "git reflog expire --expire=now --all, or the next deletion"),
    "caches": TracePlace("a file that this replica keeps for itself", "{} files that this replica keeps for itself", "the next deletion removes them"),
    "git": TracePlace("a file of .git", "{} files of .git", "git config, or change the file by hand"),
    "records": TracePlace("the record or receipt of a deletion", "{} records and receipts of deletions", "smp purge destroys a copy with its record"),
    "audit": TracePlace("a line of the audit log", "{} lines of the audit log", "change audit.jsonl of the store by hand"),
    "format": TracePlace("an id or a word of the format, in one place", "ids or words of the format, in {} places", "these stay; name a longer text"),
}  # fmt: skip
_LOOSE: Final = re.compile(r"\.git/objects/[0-9a-f]{2}/[0-9a-f]{38}")
_PACKED: Final = re.compile(r"\.git/objects/pack/[^/]+\.(?:pack|idx|rev|bitmap)")
_NOTE: Final = re.compile("[0-9a-f/]{40,80}")
_WHEN: Final = re.compile(rb" -?\d+ [+-]\d{4}$", re.MULTILINE)
_FOLDERS: Final = "|".join(kind.folder for kind in KINDS.values())
_OURS: Final = re.compile(
    rf"(?:{_FOLDERS})(?:/\d+)?|replicas(?:/.*)?|metadata\.yaml|tombstones\.yaml|\.git(?:attributes|ignore)"
)
_TRAILER: Final = re.compile(r"(?:Memory|Turn): ")
_TOLD_ELSEWHERE: Final = frozenset((".git/HEAD", ".git/packed-refs", ".git/index"))
_NOT_TEXT: Final = frozenset(("id", "kind", "life", "created_at", "updated_at", "ids", "deletion"))


class FoundTraces(NamedTuple):
    """Counts of a text by kind of place, and what could not be looked into."""

    counts: Mapping[str, int]
    unread: tuple[str, ...]

    def left(self) -> tuple[str, ...]:
        """Return the places in words, with counts and without any text."""
        return tuple(
            place.one if self.counts[kind] == 1 else place.many.format(f"{self.counts[kind]:,}")
            for kind, place in PLACES.items()
            if self.counts.get(kind)
        )

    def ways_out(self) -> tuple[str, ...]:
        """Return what a person can do, once each."""
        found = (place.way_out for kind, place in PLACES.items() if self.counts.get(kind))
        return tuple(dict.fromkeys(found))


def find(repository: Repository, wanted: Wanted) -> FoundTraces:
    """Look for a text in every object, every file and every name of a session."""
    search = _Traces(repository, wanted, repository.raw)
    matched, copies = search.objects()
    tips = reading.tips_of(repository)
    if matched:
        search.reached(tips, matched.__contains__)
        search.unreached(matched, copies)
    search.names(tips)
    search.files()
    return search.result()


def foresee(repository: Repository, wanted: Wanted, plan: RewritePlan) -> FoundTraces:
    """Say where a text will be once what a plan takes out is gone."""
    search = _Traces(repository, wanted, plan.rewriter.read, is_plan=True)
    tips = dict(plan.result.refs)
    tips |= {f"stash@{{{number}}}": tip for number, tip in enumerate(plan.result.stashed)}
    going = frozenset(version.path for version in plan.versions())
    search.reached(tips, lambda _: True)
    search.staged(going)
    search.names(tips)
    search.files(going)
    return search.result()


class _Traces:
    """One search, and what it has found so far."""

    def __init__(
        self,
        repository: Repository,
        wanted: Wanted,
        read: Callable[[bytes], tuple[bytes, bytes]],
        *,
        is_plan: bool = False,
    ) -> None:
        self._repository = repository
        self._wanted = wanted
        self._read = read
        self._is_plan = is_plan
        self._counts: Counter[str] = Counter()
        self._unread: set[str] = set()
        self._names: dict[bytes, bool] = {}
        self._reached: set[bytes] = set()
        self._paths: dict[str, set[str]] = {}
        self._unpacker = Unpacker(repository.git / "smp")

    def result(self) -> FoundTraces:
        """Return what was found."""
        counts = self._counts + Counter({kind: len(found) for kind, found in self._paths.items()})
        return FoundTraces(counts, tuple(sorted(self._unread)))

    # Objects

    def objects(self) -> tuple[set[bytes], set[bytes]]:
        """Return the objects in which the text is, and those in which it is compressed."""
        matched, packed = set[bytes](), set[bytes]()
        last = b""
        for name, kind, data in reading.objects(self._repository):
            last = bytes.fromhex(name.decode()) if name else last
            if kind == TREE:
                is_in = any(self._is_name(each.name) for each in reading.entries(data))
            else:
                is_in = self._wanted.is_in(data)
            if is_in:
                matched.add(last)
            if kind == BLOB and name and self._is_inside("", data, partial(io.BytesIO, data)):
                matched.add(last)
                packed.add(last)
        return matched, packed

    def reached(self, tips: Mapping[str, bytes], is_wanted: Callable[[bytes], bool]) -> None:
        """Look at what references reach, and place what is wanted of it."""
        for kind, name, data, path in reading.reached(self._read, tips.values()):
            self._reached.add(name)
            if kind == TAG:
                self._counts["tagged"] += self._fits(data.partition(b"\n\n")[2])
            elif kind == COMMIT and is_wanted(name):
                self._commit(data)
            elif path:
                if self._is_name(data):
                    self._note_name(path)
                if kind not in (FOLDER, b"160000") and is_wanted(name):
                    self._blob(path, name)

    def _blob(self, path: str, name: bytes) -> None:
        data = self._read(name)[1]
        if self._is_inside("", data, lambda: io.BytesIO(data)):
            self._counts["archives"] += 1
        if not self._wanted.is_in(data) and parse_path(path) is None:
            return
        kind = self._kind_of(path, data)
        if kind == "metadata":
            self._counts[kind] += 1
        elif kind:
            self._paths.setdefault(kind, set()).add(path)

    def _kind_of(self, path: str, data: bytes) -> str:
        """Return the kind of place of a file of history, or nothing if it is none."""
        if parse_path(path) is not None:
            if holds(self._wanted, data, path):
                return "versions"
            return "format" if self._wanted.is_in(data) else ""
        if is_index(path):
            return "pages" if any(map(self._is_telling, judge.items(data)[1])) else "format"
        if path == METADATA:
            return "metadata"
        if path == records.PATH or (path == readme.PATH and readme.is_made(data)):
            return "format"
        return "notes" if _NOTE.fullmatch(path) else "history"

    def _is_telling(self, item: judge.IndexItem) -> bool:
        """Whether an item of an index holds the text in what a memory says."""
        if not self._wanted.is_in(item.text):
            return False
        try:
            rows = yamlfile.read('"items":\n' + item.text.decode(), "an index").get("items")
        except (SmpError, ValueError):
            return True
        return self._wanted.holds(_said(rows))

    def _commit(self, data: bytes) -> None:
        raw = raw_commit(data)
        head, message = _WHEN.sub(b"", raw.rest), raw.message.decode("utf-8", "replace")
        self._counts["authors"] += self._fits(head)
        if self._wanted.fits(_free_lines(message)):
            self._counts["messages"] += 1
        elif self._wanted.fits(message):
            self._paths.setdefault("format", set()).add(f"commit {object_id(COMMIT, data)}")

    def unreached(self, matched: Iterable[bytes], packed: set[bytes]) -> None:
        """Count what no reference reaches; what is staged has a name of its own."""
        staged = staging.named(self._repository.git)
        for name in matched:
            if name not in self._reached | staged.blobs | staged.trees:
                self._counts["archives" if name in packed else "unreachable"] += 1
        self.staged()

    def staged(self, going: frozenset[str] = frozenset()) -> None:
        """Count what Git's index has and no reference reaches; a page is made anew."""
        file = self._repository.git / "index"
        for path, child in staging.staged(file).items() if file.exists() else ():
            if bytes.fromhex(child.id) in self._reached or path in going or is_index(path):
                continue
            if child.mode != "160000":
                self._counts["staged"] += self._wanted.is_in(self._repository.blob(child.id))

    # Names

    def names(self, tips: Mapping[str, bytes]) -> None:
        """Look at the names of branches, tags and other references."""
        for name in tips:
            if name.startswith("refs/") and self._wanted.fits(name.partition("/")[2]):
                kind = (
                    "branches"
                    if name.startswith((HEADS, "refs/remotes/"))
                    else "tags"
                    if name.startswith(TAGS)
                    else "references"
                )
                self._counts[kind] += 1
        head = self._repository.checked_out()
        if head.startswith(HEADS) and head not in tips and self._wanted.fits(head):
            self._counts["branches"] += 1

    def _is_name(self, name: bytes) -> bool:
        found = self._names.get(name)
        if found is None:
            found = self._names[name] = self._wanted.fits(name.decode("utf-8", "replace"))
        return found

    def _note_name(self, path: str) -> None:
        is_ours = parse_path(path) is not None or is_index(path) or _OURS.fullmatch(path)
        self._paths.setdefault("format" if is_ours else "names", set()).add(path)

    # Files

    def files(self, going: frozenset[str] = frozenset()) -> None:
        """Look into every file of the folder and of `.git`, and those beside the session."""
        walk = Walk(str(self._repository.path))
        for path in walk:
            if not _LOOSE.fullmatch(path) and not _PACKED.fullmatch(path):
                self._file(path, list(walk.pieces(path)), going)
        self._skipped(walk)
        for each in places.beside(self._repository.path):
            near = Walk(str(each.path.parent))
            self._beside(each.name, b"".join(near.pieces(each.path.name)))
            self._skipped(near)

    def _file(self, path: str, data: list[bytes], going: frozenset[str]) -> None:
        kind = self._kind_of_file(path)
        if not kind or (path in going and kind == "uncommitted"):
            return
        at = self._repository.path / path
        if kind == "uncommitted" and self._is_committed(path, data):
            return
        if self._is_inside(path, data[0] if data else b"", lambda: reading.opened(at)):
            self._counts["archives"] += 1
        if kind == "uncommitted" and self._is_name(
            path.rpartition("/")[2].encode("utf-8", "surrogateescape")
        ):
            self._note_name(path)
        if any(map(self._wanted.is_in, data)):
            self._counts[kind] += 1

    def _kind_of_file(self, path: str) -> str:
        """Return the kind of place of a file of the folder, nothing for what is told elsewhere."""
        if not path.startswith(".git/"):
            return "uncommitted"
        if path in _TOLD_ELSEWHERE or path.startswith(".git/refs/"):
            return ""
        if path.startswith(".git/smp/"):
            if path == f".git/smp/{ERASURE}" or (self._is_plan and path == ".git/smp/lock"):
                # The journal goes in a moment; the lock says who wrote last: this redaction.
                return ""
            is_kept = use_of(path.rpartition("/")[2]) is Use.KEPT
            return "format" if is_kept else "" if self._is_plan else "caches"
        if path.startswith((".git/logs/", ".git/syncing/", ".git/objects/")):
            return "" if self._is_plan else "reflogs" if path.startswith(".git/logs/") else "git"
        place = places.place_of(f"global/{path}")
        is_going = place is not None and place.care in (places.Care.DROPPED, places.Care.PASSING)
        return "" if self._is_plan and is_going else "git"

    def _is_committed(self, path: str, data: list[bytes]) -> bool:
        """Whether a file is as the commit has it that is checked out: then history tells of it."""
        if len(data) != 1:
            return not data
        tip = self._repository.head(self._repository.checked_out())
        if tip is None:
            return False
        try:
            blob = self._repository.find(self._repository.commit(CommitId(tip)).tree, path)
        except DamagedError:
            return False
        return blob == ObjectId(object_id(BLOB, data[0]))

    def _beside(self, name: str, data: bytes) -> None:
        if not self._wanted.is_in(data):
            return
        if name == "audit.jsonl":
            lines = [line for line in data.split(b"\n") if self._wanted.is_in(line)]
            telling = sum(map(self._is_told, lines))
            self._counts["audit"] += telling
            self._counts["format"] += not telling
        else:
            self._counts["records" if self._is_told(data) else "format"] += 1

    def _is_told(self, data: bytes) -> bool:
        """Whether a record holds the text in what somebody said, not in an id or a key."""
        try:
            found: Value = json.loads(data)
        except ValueError:
            try:
                found = yamlfile.read(data.decode(), "a record")
            except (SmpError, ValueError):
                return True
        return self._wanted.holds(_said(found))

    def _is_inside(self, path: str, head: bytes, opened: Callable[[], IO[bytes]]) -> bool:
        """Whether the text is in what is compressed in a file."""
        if not compressed.is_compressed(path, head[: compressed.HEAD]):
            return False
        try:
            with opened() as file:
                return any(
                    self._wanted.is_in(inner.data) for inner in self._unpacker.inside(path, file)
                )
        except (ClosedError, OSError) as error:
            where = self._shown(path) if path else "a file of history"
            self._unread.add(f"{where}: {error}")
        return False

    def _skipped(self, walk: Walk) -> None:
        self._unread.update(f"{self._shown(each.path)}: {each.why}" for each in walk.unread)

    def _shown(self, path: str) -> str:
        """Return a path as a receipt may keep it."""
        parts = (HIDDEN if self._wanted.fits(each) else each for each in path.split("/"))
        return (
            "/".join(parts).encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        )

    def _fits(self, data: bytes) -> bool:
        return self._wanted.fits(data.decode("utf-8", "replace"))


def _free_lines(message: str) -> str:
    """Return what a message says beside ids and the words that name what was done."""
    return "\n".join(_free(line) for line in message.splitlines())


def _free(line: str) -> str:
    if touches := messages.read(line).touches:
        return touches[0].title
    return "" if _TRAILER.match(line) else line


def _said(value: Value) -> Value:
    """Return the values of a record or an item, without keys, ids and times."""
    if isinstance(value, dict):
        return [
            _said(item)
            for key, item in value.items()
            if key not in _NOT_TEXT or isinstance(item, dict)
        ]
    if isinstance(value, list):
        return [_said(item) for item in value]
    return value
