"""Inspection of incoming commits, tags and references."""

from __future__ import annotations

import json
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format.records import Tombstones
from smp_git.git import transport
from smp_git.git.objects import BLOB, COMMIT, RawObjects
from smp_git.git.references import ACCESS, HEADS, TAGS, TRAVELLING
from smp_git.git.repository import Repository
from smp_git.git.transport import Limits
from smp_git.git.transport import RemoteAccess as Way
from smp_git.model.errors import DamagedError, UnfoundedError, UntrustedError, shown
from smp_git.model.ids import REDACT, REDACTED, Lives, generation, parse_id
from smp_git.model.memory import MAX_FILE_BYTES, CommitId, MemoryId
from smp_git.read.counts import FILE as COUNTS
from smp_git.sync.inspect.structure import FILE, Bounds, Structure
from smp_git.sync.inspect.tips import Tips
from smp_git.sync.quarantine import MAKE_WHOLE, Quarantine
from smp_git.sync.remotes import is_fit
from smp_git.write.merge.meeting import is_ended
from smp_git.write.merge.versions import MemoryHistory

# A commit of a hundred memories has a line and a trailer for each.
LARGEST: Final = 1 << 20
_MOST_PARENTS: Final = 64

_OBJECT_ID: Final = rb"[0-9a-f]{40}"
_PERSON: Final = rb"[^\0-\x1f\x7f<>]*<[^\0-\x1f\x7f<>]*> [0-9]{1,10} [+-][0-9]{4}"
# A header line that goes on in the next begins that one with a space.
_MORE: Final = rb"(?:[a-zA-Z][a-zA-Z0-9-]* [^\0\n]*\n(?: [^\0\n]*\n)*)*"
_COMMIT = re.compile(
    rb"tree (%b)\n((?:parent %b\n)*)author (%b)\ncommitter (%b)\n(%b)\n"
    % (_OBJECT_ID, _OBJECT_ID, _PERSON, _PERSON, _MORE)
)
_TAG_HEADER = re.compile(
    rb"object (%b)\ntype (commit|tag)\ntag ([^\0-\x1f\x7f]+)\n(?:tagger (%b)\n)?(%b)\n"
    % (_OBJECT_ID, _PERSON, _MORE)
)
_REPLICA = re.compile(rb"<([a-z][a-z0-9]{3})@smp>")
_ENCODING = re.compile(rb"^encoding (?!utf-?8$)", re.MULTILINE | re.IGNORECASE)


class StrictCommit(NamedTuple):
    """Tree and parents of a commit, and the tag of the replica that made it, if one did."""

    tree: bytes
    parents: tuple[bytes, ...]
    replica: str = ""


class StrictTag(NamedTuple):
    """Target of a tag."""

    target: bytes
    type: bytes


def commit(data: bytes, where: str) -> StrictCommit:
    """Return a commit's tree and parents; raise UntrustedError if anything is odd about it."""
    match = _COMMIT.match(data)
    if match is None:
        raise UntrustedError(f"{where}: its author, committer or time cannot be read")
    _check_text(data, match[5], match.end(), where)
    parents = tuple(bytes.fromhex(line[7:].decode()) for line in match[2].splitlines())
    if len(parents) > _MOST_PARENTS:
        raise UntrustedError(f"{where}: it has {len(parents)} parents")
    replica = _REPLICA.search(match[4])
    return StrictCommit(
        bytes.fromhex(match[1].decode()), parents, replica[1].decode() if replica else ""
    )


def tag(data: bytes, where: str) -> StrictTag:
    """Return what a tag names; raise UntrustedError if anything is odd about it."""
    match = _TAG_HEADER.match(data)
    if match is None:
        raise UntrustedError(f"{where}: it cannot be read, or names no commit")
    _check_text(data, match[5], match.end(), where)
    return StrictTag(bytes.fromhex(match[1].decode()), match[2])


def _check_text(data: bytes, more: bytes, message_at: int, where: str) -> None:
    try:
        data.decode()
    except UnicodeDecodeError:
        raise UntrustedError(f"{where}: its message or a name is not UTF-8") from None
    if more and _ENCODING.search(more):
        raise UntrustedError(f"{where}: its message is not UTF-8")
    # Other control characters come from titles: whatever a program printed may be remembered.
    if data.find(b"\0", message_at) >= 0:
        raise UntrustedError(f"{where}: its message holds NUL characters")


_TAG: Final = b"tag"
_DEEPEST_TAG: Final = 5
_ID = re.compile(r"[0-9a-f]{40}")


class Inspected(NamedTuple):
    """Result of an inspection that found everything sound.

    `commits` is how many were looked through, `sound` those on which these are built that were
    known to be so, `replicas` are the tags of those that made them; `lying` are the pages, by branch, whose index does not say what their files say.
    """

    uid: str
    session: str
    commits: int
    sound: frozenset[str]
    tombstones: Tombstones
    lying: Mapping[str, tuple[str, ...]]
    replicas: frozenset[str] = frozenset()


def inspect(
    repository: Repository,
    refs: Mapping[str, str],
    known: Iterable[CommitId],
    bounds: Bounds = Bounds(),
) -> Inspected:
    """Look through everything that references of a remote reach and `known` commits do not."""
    inspection = Inspection(repository, refs, known, bounds)
    inspection.look_at_tips()
    return inspection.look_through()


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except DamagedError as error:
        raise UntrustedError(
            f"what the remote sent is incomplete: {error.message}", hint=MAKE_WHOLE
        ) from error
    except RecursionError:
        raise UntrustedError("what the remote sent is nested too deep") from None


class Inspection:
    """One look through what a remote sent: first at what it holds now, then at how that came.

    `known` are the branches that the session has checked out or could: their state is
    compared with what the remote's branches hold now. Raises UntrustedError, naming the
    commit or branch and the path, for the first thing that a session does not hold.
    """

    def __init__(
        self,
        repository: Repository,
        refs: Mapping[str, str],
        known: Iterable[CommitId],
        bounds: Bounds = Bounds(),
    ) -> None:
        self._repository = repository
        self._objects = RawObjects(repository.git)
        self._refs = refs
        self._known = list(known)
        self._bounds = bounds

    def look_at_tips(self) -> Tips:
        """Look at what the branches and tags hold now, and return it."""
        _check_references(self._refs, self._bounds)
        with _refusing():
            tips = {
                ref: self._tip(ref, tip)
                for ref, tip in self._refs.items()
                if not ref.startswith(ACCESS)
            }
            self._tips = set(tips.values())
            # What is known is not asked for: most often that is everything.
            unknown = self._tips.difference(self._known)
            self._new = self._repository.beyond(unknown, self._known) if unknown else []
            if len(self._new) > self._bounds.commits:
                raise UntrustedError(f"{len(self._new):,} commits are more than a session has")
            for ref in self._refs.keys() - tips.keys():
                self._check_counts(ref, bytes.fromhex(self._refs[ref]))
            self._found = self._look_at(tips)
        return self._found

    def _look_at(self, tips: Mapping[str, CommitId]) -> Tips:
        structure = Structure(self._objects, self._bounds)
        structure.trust(self._root(bytes.fromhex(tip)) for tip in self._known)
        found = Tips(self._objects, structure, self._bounds)
        for ref, tip in sorted(tips.items()):
            look = found.look_at_tag if ref.startswith(TAGS) else found.look
            look(ref, self._root(bytes.fromhex(tip)))
        return found

    def look_through(self, sound: Container[CommitId] = ()) -> Inspected:
        """Look through the commits that lead to the tips, but for those known to be `sound`."""
        tips = self._found
        with _refusing():
            new = {name: self._commit(name) for name in self._new if name not in sound}
            below = {parent.hex() for commit in new.values() for parent in commit.parents}
            below = below.union(self._tips) - new.keys()
            # What every commit holds that is not in the commits that the new ones are built on.
            past = Structure(self._objects, self._bounds, history=True)
            past.trust(self._root(bytes.fromhex(name)) for name in sorted(below))
            for name, commit in new.items():
                past.check(commit.tree, f"commit {name[:12]}")
        return Inspected(
            tips.uid,
            tips.session,
            len(new),
            frozenset(name for name in below if name in sound),
            tips.tombstones,
            dict(tips.lying),
            frozenset(each.replica for each in new.values()),
        )

    def _commit(self, name: str) -> StrictCommit:
        where = f"commit {name[:12]}"
        return commit(self._read(bytes.fromhex(name), COMMIT, where), where)

    def _read(self, name: bytes, wanted: bytes, where: str) -> bytes:
        kind, size = self._objects.header(name)
        if kind != wanted:
            raise UntrustedError(f"{where}: a {kind.decode()}, not a {wanted.decode()}")
        if size > LARGEST:
            raise UntrustedError(f"{where}: {size:,} bytes; the limit is {LARGEST:,}")
        return self._objects.read(name)[1]

    def _root(self, name: bytes) -> bytes:
        return bytes.fromhex(self._objects.read(name)[1][5:45].decode())

    def _tip(self, ref: str, tip: str) -> CommitId:
        """Return the commit that a branch names, or a tag at last."""
        found = self._peeled(ref, tip) if ref.startswith(TAGS) else CommitId(tip)
        kind, _ = self._objects.header(bytes.fromhex(found))
        if kind != COMMIT:
            raise UntrustedError(f"a branch or tag names a {kind.decode()}, not a commit")
        return found

    def _peeled(self, ref: str, tip: str) -> CommitId:
        name = bytes.fromhex(tip)
        for _ in range(_DEEPEST_TAG):
            kind, _ = self._objects.header(name)
            if kind != _TAG:
                return CommitId(name.hex())
            where = f"tag {shown(ref.removeprefix(TAGS))}"
            name = tag(self._read(name, _TAG, where), where).target
        raise UntrustedError(f"{ref}: a tag of a tag, more than {_DEEPEST_TAG} times")

    def _check_counts(self, ref: str, tip: bytes) -> None:
        """Check the access counts of a replica: one commit without parents, one file."""
        found = commit(self._read(tip, COMMIT, ref), ref)
        rows = Structure(self._objects, self._bounds).rows(found.tree, ref)
        if found.parents or [(mode, name) for mode, name, _ in rows] != [(FILE, COUNTS.encode())]:
            raise UntrustedError(f"{ref}: more than the counts of a replica")
        kind, size = self._objects.header(rows[0][2])
        if kind != BLOB or size > MAX_FILE_BYTES:
            raise UntrustedError(f"{ref}: counts of {size:,} bytes")
        try:
            counts = json.loads(self._objects.read(rows[0][2])[1])
        except ValueError:
            counts = None
        if not isinstance(counts, dict) or not all(map(_is_count, counts.values())):
            raise UntrustedError(f"{ref}: its counts cannot be read")


def _is_count(value: object) -> bool:
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004 - how often, when last
        return False
    return type(value[0]) is int and isinstance(value[1], str)


def _check_references(refs: Mapping[str, str], bounds: Bounds) -> None:
    """Check the names that a remote gives its references: ours will have the same."""
    if len(refs) > bounds.references:
        raise UntrustedError(f"{len(refs):,} references are more than a session has")
    for ref, tip in refs.items():
        if not ref.startswith(TRAVELLING):
            raise UntrustedError(f"{shown(ref)} is not a reference of a session")
        if not is_fit(ref) or not _ID.fullmatch(tip):
            raise UntrustedError(f"{shown(ref)} is not a valid name for a branch or tag")


_WAY_OUT: Final = "smp sync --accept makes the remote as this replica is"


def check_lives(tips: Tips, known: Tombstones) -> None:
    """Raise UnfoundedError for a life at a tip that no record explains."""
    for name, found in tips.lives.items():
        lives = known.lives(name)
        for life in sorted(found):
            if not lives.explains(life) and not generation(life):
                raise UnfoundedError(
                    f"{name} is there in a life that no record explains", hint=_WAY_OUT
                )


def check_redactions(
    repository: Repository, tips: Mapping[str, str], before: Tombstones, told: Tombstones
) -> None:
    """Raise UnfoundedError for a redaction that would end a memory and that nobody has.

    Its life is in some history, or it was deleted. `before` is what was known here.
    """
    for name in unfounded(repository, tips, before, told):
        raise UnfoundedError(
            f"{name} was redacted according to a record, and no history has what was left of it",
            hint=_WAY_OUT,
        )


def unfounded(
    repository: Repository, tips: Mapping[str, str], before: Tombstones, told: Tombstones
) -> Iterator[MemoryId]:
    """Yield the memories of which a redaction is `told` whose life no history has."""
    for each in told.items:
        if each.lives.is_plain:
            continue
        name, known = each.first.text, before.lives(each.first.text) | each.lives
        fresh = [
            life
            for life in each.lives.redactions - before.lives(name).redactions
            if known.edges[life].cause == REDACT and not is_ended(known, life)
        ]
        if fresh and not _end_nothing(fresh, before.lives(name), known):
            path = parse_id(name).path
            commits = [CommitId(tip) for ref, tip in tips.items() if ref.startswith(HEADS)]
            there = MemoryHistory(repository, commits, [path]).said(path).lives
            if any(not any(life in known.past(other) for other in there) for life in fresh):
                yield MemoryId(name)


def _end_nothing(fresh: list[str], before: Lives, known: Lives) -> bool:
    """Whether every other life of a memory is dead whatever these redactions say."""
    flags = {
        life: (f - {REDACTED}) | before.flags.get(life, f - f) for life, f in known.flags.items()
    }
    edges = {life: edge for life, edge in known.edges.items() if life not in fresh}
    bare = Lives(flags, edges, known.generation)
    return all(map(bare.is_dead, bare.known - set(fresh)))


# How often a remote may name others while it is looked at.
_MOST_LOOKS: Final = 3


class Fetched(NamedTuple):
    """Incoming references, and those that were left out with what they name."""

    held: Quarantine
    left_out: Mapping[str, str]


def odd(repository: Repository, refs: Mapping[str, str]) -> dict[str, str]:
    """Return the references with a name that is not fit, and branches and tags of no commit."""
    return {
        ref: tip
        for ref, tip in refs.items()
        if not is_fit(ref)
        or (ref.startswith((HEADS, TAGS)) and not _leads_to_commit(repository, tip))
    }


def _leads_to_commit(repository: Repository, tip: str) -> bool:
    try:
        for _ in range(_DEEPEST_TAG):
            kind, data = repository.raw(bytes.fromhex(tip))
            if kind != b"tag":
                return kind == COMMIT
            tip = tag(data, tip).target.hex()
    except (DamagedError, UntrustedError):
        # Not for its name: whoever looks at it says what is wrong.
        return True
    return False


def said(ref: str, where: str) -> str:
    """Return the sentence about a reference that is left out."""
    kind = "branch" if ref.startswith(HEADS) else "tag" if ref.startswith(TAGS) else "reference"
    name = ref.removeprefix(HEADS).removeprefix(TAGS)
    why = "it names no commit" if is_fit(ref) else "no session takes one of that name"
    return f"{kind} {shown(name)} {where} is left out: {why}"


@contextmanager
def fetched(session: Path, address: str, way: Way, limits: Limits) -> Iterator[Fetched]:
    """Yield what came in, without the references that no replica takes in."""
    left_out: dict[str, str] = {}
    for _ in range(_MOST_LOOKS):
        with Quarantine(session) as held:
            try:
                held.fetch(address, way, limits, left_out)
            except UntrustedError:
                # What is wrong may be below a name that is left out.
                named = transport.advertised(address, way)
                more = {
                    ref: tip
                    for ref, tip in named.items()
                    if not is_fit(ref) and ref not in left_out
                }
                if not more:
                    raise
            else:
                more = odd(held.repository, held.refs)
                if not more:
                    yield Fetched(held, left_out)
                    return
        left_out |= more
    raise UntrustedError(f"{address}: it names other branches each time it is asked")
