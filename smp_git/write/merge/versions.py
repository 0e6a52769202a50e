"""Past versions of a memory, life by life: the source of stamps and of known words."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Final, NamedTuple

from smp_git.format import document, messages
from smp_git.format.document import life_of
from smp_git.git import command
from smp_git.git.command import FileChange
from smp_git.git.objects import Commit, ObjectId
from smp_git.git.repository import Repository
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import Lives
from smp_git.model.memory import COMMON_FIELDS, CONTESTED, KINDS, CommitId, Memory, Value, is_same
from smp_git.read.history import replica_of, stamp
from smp_git.write.merge import memories
from smp_git.write.merge.masking import NONE, Words, words_of, words_of_memory, words_of_value
from smp_git.write.merge.memories import FileVersion

# Where a stamp has no field of its own.
ANY: Final = "*"
# What these commits write was not typed by anybody then.
_GIVEN: Final = ("restore", "redact", "carry", "join", "merge")
# No fields: they say when and by whom, not what.
_BESIDE: Final = frozenset(("id", "kind", "life", "created_at", "updated_at", CONTESTED))


_OWN_NAMES: Final = frozenset(
    (
        *COMMON_FIELDS,
        "agent",
        "tags",
        "links",
        *(n for k in KINDS.values() for n in (k.main, *k.fields)),
    )
)


def stamp_text(at: datetime, replica: str) -> str:
    """Return when a value was written and by which replica, as a text that sorts."""
    return f"{at:%Y-%m-%dT%H:%M:%S.%f}Z/{replica}"


class Saying(NamedTuple):
    """A value that a version gave a field, None for a field that it took away.

    `typed` is what somebody wrote then, `left` what a redaction left as it was; all else
    came from another life or a merge.
    """

    life: str
    name: str
    value: Value
    stamp: str
    typed: bool
    left: bool = False


class FirstVersion(NamedTuple):
    """The first version that a line of history has of a life, and whether a redaction made it."""

    memory: Memory
    left: bool


class Said:
    """Everything that the versions of one memory said, oldest first."""

    def __init__(
        self, sayings: Iterable[Saying], firsts: Iterable[FirstVersion], unread: Words
    ) -> None:
        self.sayings = tuple(sayings)
        self._firsts = tuple(firsts)
        # The words of versions that cannot be read.
        self.unread = unread

    @cached_property
    def lives(self) -> frozenset[str]:
        """The lives of which there is a version."""
        return frozenset(each.life for each in self.sayings)

    def with_version(self, made: Memory, sides: Iterable[Memory]) -> Said:
        """Return this with a version that two sides came to, as the commit that brings it will say."""
        same = [each for each in sides if each.life == made.life]
        text = stamp_text(stamp(made), "")
        sayings = _changed(made, same, text, typed=False, left=False)
        firsts = () if same else (FirstVersion(made, left=False),)
        return Said((*self.sayings, *sayings), (*self._firsts, *firsts), self.unread)

    def shown(self, life: str) -> Words | None:
        """Return the words that all first versions of a life show, None if there is none.

        Where a redaction began it, what was carried onto it elsewhere does not count.
        """
        firsts = [each for each in self._firsts if each.memory.life == life]
        own = [each for each in firsts if each.left] or firsts
        found = [words_of_memory(each.memory) for each in own]
        if not found:
            return None
        out = found[0]
        for each in found[1:]:
            out &= each
        return out

    def inherited(self, life: str) -> Words:
        """Return the words of a life that nobody typed in it."""
        out = self.unread
        for each in self._firsts:
            if each.memory.life == life:
                out |= words_of_memory(each.memory)
        for saying in self.sayings:
            if saying.life == life and not saying.typed:
                out |= words_of_value(saying.value)
        return out

    def known_to(self, horizons: Iterable[Mapping[str, str]], past: frozenset[str]) -> Words:
        """Return the words in lives of a past that redactions with these horizons knew.

        A redaction without a horizon may have known everything.
        """
        bounds = list(horizons)
        out = self.unread
        for saying in self.sayings:
            if saying.life not in past:
                continue
            if any(is_known(saying, each) for each in bounds) or not saying.typed:
                out |= words_of_value(saying.value)
                out |= NONE if saying.name in _OWN_NAMES else words_of(saying.name)
        return out

    def saying(self, past: Container[str], name: str, value: Value) -> Saying | None:
        """Return what last gave a field this value, in one of some lives.

        Who typed it goes before the redaction that left it so, and that before a carry.
        """
        found = None
        for each in self.sayings:
            if each.name != name or each.life not in past or not is_same(each.value, value):
                continue
            if found is None or (each.typed, each.left) >= (found.typed, found.left):
                found = each
        return found

    def since(self, life: str, name: str, value: Value, known: Lives) -> str:
        """Return since when a field has its value in a life.

        What a redaction left as it was has the stamp that it had before.
        """
        last = self.saying((life,), name, value)
        edge = known.edges.get(life)
        if last is None:
            return bound(edge.horizon, name) if edge is not None else ""
        return written(last, known)

    def horizon(self) -> dict[str, str]:
        """Return the youngest stamp of each field, those that are gone included.

        Fields that a person named are taken together: their names may be content.
        """
        found: dict[str, str] = {}
        for saying in self.sayings:
            name = saying.name if saying.name in _OWN_NAMES else ANY
            found[name] = max(found.get(name, ""), saying.stamp)
        return found


def written(saying: Saying, known: Lives) -> str:
    """Return when a value was written: before the redaction, if that left it as it was."""
    edge = known.edges.get(saying.life)
    is_left = saying.left and edge is not None and edge.horizon
    return bound(edge.horizon, saying.name) if edge is not None and is_left else saying.stamp


def bound(horizon: Mapping[str, str], name: str) -> str:
    """Return the youngest stamp of a field that a redaction knew."""
    return horizon.get(name, horizon.get(ANY, ""))


def is_known(saying: Saying, horizon: Mapping[str, str]) -> bool:
    """Whether a redaction with this horizon may have known a saying."""
    return not horizon or saying.stamp <= bound(horizon, saying.name)


def fields(memory: Memory) -> dict[str, Value]:
    """Return what a memory says, by field; tags and links as lists."""
    said: dict[str, Value] = {
        name: value for name, value in document.fields_of(memory).items() if name not in _BESIDE
    }
    return said


class _KnownVersion(NamedTuple):
    memory: Memory | None
    data: bytes


class MemoryHistory:
    """Reads what versions said out of the commits that some tips reach."""

    def __init__(
        self, repository: Repository, tips: Iterable[CommitId], paths: Iterable[str]
    ) -> None:
        self._repository = repository
        self._versions: dict[tuple[str, str], _KnownVersion] = {}
        self._changes: dict[str, list[FileChange]] = {}
        for change in command.file_changes(repository.git, tips, sorted(paths)):
            self._changes.setdefault(change.path, []).append(change)

    def said(self, path: str) -> Said:
        """Return everything that the versions of the memory at `path` said."""
        sayings: list[Saying] = []
        firsts: list[FirstVersion] = []
        unread = NONE
        for commit, changes in self._by_commit(path):
            after = self._introduced(path, commit, changes)
            if after is None:
                continue
            if after.memory is None:
                unread |= words_of(after.data.decode("utf-8", "replace"))
                continue
            before = [self._version(path, each.old).memory for each in changes if each.old]
            same = [each for each in before if each is not None and each.life == after.memory.life]
            left = _is_redaction(commit)
            if not same:
                firsts.append(FirstVersion(after.memory, left))
            sayings += _sayings(commit, after.memory, same, left=left)
        return Said(sayings, firsts, unread)

    def blobs(self, path: str) -> set[str]:
        """Return the object ids that the file at `path` ever had."""
        return {change.new for change in self._changes.get(path, ()) if change.new}

    def latest(self, path: str) -> dict[str, FileVersion]:
        """Return the latest version of each life of the memory at `path`."""
        found: dict[str, FileVersion] = {}
        for commit, changes in self._by_commit(path):
            after = self._introduced(path, commit, changes)
            version = memories.version(after.data, path) if after and after.memory else None
            if version is not None:
                found[version.memory.life] = version
        return found

    def living(self, path: str, known: Lives) -> FileVersion | None:
        """Return the latest version of a life that is present, of the newest such life."""
        found: _KnownVersion | None = None
        for commit, changes in self._by_commit(path):
            after = self._introduced(path, commit, changes)
            memory = after.memory if after else None
            if memory is None or known.is_dead(memory.life):
                continue
            if (
                found is None
                or found.memory is None
                or found.memory.life in known.past(memory.life)
            ):
                found = after
        return memories.version(found.data, path) if found is not None else None

    def _by_commit(self, path: str) -> Iterator[tuple[Commit, list[FileChange]]]:
        found: dict[str, list[FileChange]] = {}
        for change in self._changes.get(path, ()):
            found.setdefault(change.commit, []).append(change)
        for name, changes in found.items():
            yield self._repository.commit(CommitId(name)), changes

    def _introduced(
        self, path: str, commit: Commit, changes: list[FileChange]
    ) -> _KnownVersion | None:
        """Return the version that a commit made, None if a parent had it or it is gone."""
        new = changes[0].new
        if new is None or len(changes) < len(commit.parents):
            return None
        return self._version(path, new)

    def _version(self, path: str, blob: str | None) -> _KnownVersion:
        found = self._versions.get((path, blob or ""))
        if found is None:
            data = self._repository.blob(ObjectId(blob or ""))
            found = self._versions[path, blob or ""] = _KnownVersion(_decoded(data, path), data)
        return found


def _decoded(data: bytes, path: str) -> Memory | None:
    if life_of(data, path) is None:
        return None
    try:
        return document.decode(data, path)
    except InvalidFileError:
        return None


def _is_redaction(commit: Commit) -> bool:
    """Whether a commit is that of a redaction."""
    message = messages.read(commit.message)
    return message.subject.startswith("redact ") or any(
        each.verb == "redact" for each in message.touches
    )


def _sayings(
    commit: Commit, after: Memory, before: list[Memory], *, left: bool
) -> Iterator[Saying]:
    """Yield what a version says that none of those before it in its life said."""
    verb = messages.read(commit.message).touches
    given = (
        not before
        or len(commit.parents) > 1
        or any(each.verb in _GIVEN for each in verb)
        or commit.message.startswith(_GIVEN)
    )
    at = stamp(after)
    if any(stamp(each) == at for each in before):
        # Written by hand, which leaves the time as it was.
        at = max(at, commit.time)
    yield from _changed(
        after, before, stamp_text(at, replica_of(commit)), typed=not given, left=left
    )


def _changed(
    after: Memory, before: list[Memory], text: str, *, typed: bool, left: bool
) -> Iterator[Saying]:
    now, then = fields(after), [fields(each) for each in before]
    for name in dict.fromkeys((*now, *(name for each in then for name in each))):
        value = now.get(name)
        if not any(is_same(each.get(name), value) for each in then):
            yield Saying(after.life, name, value, text, typed=typed, left=left)
