"""One Git repository in about twenty verbs."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from heapq import heapify, heappop, heappush
from pathlib import Path
from typing import Final, TypeVar

from smp_git.git import disk, libgit2, references, storage
from smp_git.git.objects import (
    BLOB,
    COMMIT,
    FOLDER_MODE,
    TREE,
    Child,
    Commit,
    Object,
    ObjectId,
    ObjectStore,
    read_commit,
    read_tree,
    unreadable,
)
from smp_git.git.standby import Spare, Standby
from smp_git.model.errors import (
    DamagedError,
    FormatError,
    InvalidRevisionError,
    LockedError,
    SessionNotFoundError,
    SmpError,
    shown,
)
from smp_git.model.memory import CommitId

_CACHED: Final = 20_000
# A ref is locked for milliseconds; an older lock of somebody else's is given up.
_REF_LOCK_SECONDS: Final = 5.0
_ABANDONED_SECONDS: Final = 60.0
_ID_LENGTH: Final = 40

MAIN: Final = "refs/heads/main"
_MERGE_HEAD: Final = "MERGE_HEAD"
# What tells that Git is in the middle of something.
_IN_PROGRESS: Final = {
    _MERGE_HEAD: "a merge",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
    "sequencer": "a cherry-pick or revert",
}
_ENDED_BY_A_COMMIT: Final = frozenset(("CHERRY_PICK_HEAD", "REVERT_HEAD"))
_REPAIR: Final = "smp check names what is concerned; smp repair repairs it from what remains"


class MovedError(Exception):
    """A reference was not where it was expected; nothing was changed."""


# A path, what it was and is, and whether these are folders.
_Difference = tuple[str, ObjectId | None, ObjectId | None, bool]


class Repository:
    """A repository, read through libgit2 and written in Git's own protocol.

    A reference always names a commit all of whose objects are complete and, with
    `durable`, durable.
    """

    def __init__(self, path: Path, *, durable: bool = True) -> None:
        self.path = path
        self.git = path / ".git"
        self._git = str(self.git)
        self.durable = durable
        if not self.git.is_dir():
            raise SessionNotFoundError(f"no session at {path}")
        if not _is_plain(path):
            # It says what is wrong, if anything is.
            self._repo  # noqa: B018 - opened by the look at it
        self._objects = ObjectStore(self.git / "objects")
        self._commits: dict[CommitId, Commit] = {}
        self._trees: dict[ObjectId, dict[str, Child]] = {}
        self._common: dict[tuple[CommitId, CommitId], CommitId | None] = {}
        self._standby = Standby(path)
        # What the store lacks and was read all the same, and from where.
        self.spared: dict[ObjectId, str] = {}

    @cached_property
    def _repo(self) -> libgit2.Repository:
        """The repository as libgit2 sees it; most questions need no more than single objects."""
        return _open(self.path)

    @property
    def looks_into_packs(self) -> bool:
        """Whether libgit2 was loaded for what was read."""
        return self._objects.looks_into_packs

    def close(self) -> None:
        """Let go of packs and files."""
        self._commits.clear()
        self._trees.clear()
        if "_repo" in vars(self):
            self._repo.free()

    # Reading

    def head(self, ref: str = MAIN) -> CommitId | None:
        """Return the commit that `ref` names, or None if there is no such reference."""
        try:
            found = _loose_reference(f"{self._git}/{ref}")
        except (ValueError, OSError):
            raise DamagedError(
                f"{ref} of session {self.path.name} cannot be read",
                hint="smp repair points it at the newest whole commit",
            ) from None
        return found or self._packed(ref)

    def _packed(self, ref: str) -> CommitId | None:
        found = self._repo.references.get(ref)
        return CommitId(str(found.resolve().target)) if found is not None else None

    def references(self) -> dict[str, CommitId]:
        """Return every reference and the commit (or tag) it names."""
        found = references.read(self.git).items()
        return {name: CommitId(tip) for name, tip in found if name != references.HEAD}

    def checked_out(self) -> str:
        """Return the reference whose files are in the folder."""
        fd = os.open(f"{self._git}/HEAD", os.O_RDONLY)
        try:
            text = os.read(fd, 4096).decode()
        finally:
            os.close(fd)
        return text.strip().removeprefix("ref: ")

    def commit(self, commit_id: CommitId) -> Commit:
        """Return a commit; raise DamagedError if it is missing or broken."""
        found = self._commits.get(commit_id)
        if found is None:
            found = read_commit(commit_id, self._read(commit_id, COMMIT))
            _remember(self._commits, commit_id, found)
        return found

    def tree(self, tree_id: ObjectId) -> dict[str, Child]:
        """Return the entries of a tree by name; the caller must not change them."""
        found = self._trees.get(tree_id)
        if found is None:
            found = read_tree(self._read(tree_id, TREE))
            _remember(self._trees, tree_id, found)
        return found

    def know_tree(self, tree_id: ObjectId, children: dict[str, Child]) -> None:
        """Take note of a tree that was just made, so that it need not be read."""
        _remember(self._trees, tree_id, children)

    def blob(self, blob_id: ObjectId, path: str | None = None) -> bytes:
        """Return the bytes of a file's version; where it may be checked out spares loading libgit2."""
        if path is not None and self._objects.needs_libgit2(blob_id):
            found = self._standby.checked_out(path, blob_id)
            if found is not None:
                return found
        return self._read(blob_id, BLOB)

    def size(self, blob_id: ObjectId) -> int:
        """Return the size of an object without reading it."""
        try:
            return self._objects.header(blob_id)[1]
        except DamagedError as error:
            raise _damaged(self.git, blob_id, error) from error

    def _read(self, name: str, kind: bytes) -> bytes:
        try:
            found, data = self._objects.read(name)
        except DamagedError as error:
            spare = self._standby.find(kind, ObjectId(name))
            if spare is None:
                raise _damaged(self.git, name, error) from error
            self.spared[ObjectId(name)] = spare.place
            return spare.data
        if found != kind:
            raise DamagedError(
                f"object {name[:12]} is a {found.decode()}, not a {kind.decode()}", hint=_REPAIR
            )
        return data

    def spare(self, name: ObjectId) -> tuple[bytes, Spare] | None:
        """Return an object as the checked-out files or Git's index have it, with its type."""
        for kind in (BLOB, TREE):
            found = self._standby.find(kind, name)
            if found is not None:
                return kind, found
        return None

    def raw(self, name: bytes) -> tuple[bytes, bytes]:
        """Return the type and bytes of any object, as the store has it."""
        try:
            return self._objects.read(name.hex())
        except DamagedError as error:
            raise _damaged(self.git, name.hex(), error) from error

    def kind(self, name: bytes) -> bytes:
        """Return the type of an object without reading it; raise DamagedError."""
        return self._objects.header(name.hex())[0]

    def remotes(self) -> dict[str, str]:
        """Return the address of each remote by its name."""
        return {str(each.name): str(each.url) for each in self._repo.remotes}

    def has(self, name: str) -> bool:
        """Whether an object is in the store."""
        return name in self._objects

    def find(self, tree_id: ObjectId, path: str) -> ObjectId | None:
        """Return the blob at `path` below a tree, or None."""
        above, _, file = path.rpartition("/")
        folder = self.folder(tree_id, above) if above else tree_id
        child = self.tree(folder).get(file) if folder else None
        return child.id if child is not None and child.mode != FOLDER_MODE else None

    def folder(self, tree_id: ObjectId, path: str) -> ObjectId | None:
        """Return the tree of the folder at `path` below a tree, or None."""
        for name in path.split("/"):
            child = self.tree(tree_id).get(name)
            if child is None or child.mode != FOLDER_MODE:
                return None
            tree_id = child.id
        return tree_id

    def files(self, tree_id: ObjectId, prefix: str = "") -> Iterator[tuple[str, ObjectId]]:
        """Yield every file below a tree, with its path."""
        # No recursion: a person may commit folders deeper than Python calls into itself.
        stack = [self._below(tree_id, prefix)]
        while stack:
            for path, child in stack[-1]:
                if child.mode == FOLDER_MODE:
                    stack.append(self._below(child.id, f"{path}/"))
                    break
                yield path, child.id
            else:
                stack.pop()

    def _below(self, tree_id: ObjectId, prefix: str) -> Iterator[tuple[str, Child]]:
        for name, child in self.tree(tree_id).items():
            yield prefix + name, child

    def changes(
        self, old: ObjectId | None, new: ObjectId | None, prefix: str = ""
    ) -> Iterator[tuple[str, ObjectId | None, ObjectId | None]]:
        """Yield (path, old blob, new blob) of every file that differs between two trees."""
        stack = [self._differences(old, new, prefix)]
        while stack:
            for path, left, right, is_folder in stack[-1]:
                if is_folder:
                    stack.append(self._differences(left, right, path))
                    break
                yield path, left, right
            else:
                stack.pop()

    def _differences(
        self, old: ObjectId | None, new: ObjectId | None, prefix: str
    ) -> Iterator[_Difference]:
        """Yield what differs right below two folders: folders by `name/`, and files."""
        if old == new:
            return
        before = self.tree(old) if old else {}
        after = self.tree(new) if new else {}
        for name in sorted(before.keys() | after.keys()):
            left, right = before.get(name), after.get(name)
            if left == right:
                continue
            left_tree = left.id if left and left.mode == FOLDER_MODE else None
            right_tree = right.id if right and right.mode == FOLDER_MODE else None
            if left_tree != right_tree:
                yield f"{prefix}{name}/", left_tree, right_tree, True
            left_file = left.id if left and not left_tree else None
            right_file = right.id if right and not right_tree else None
            if left_file != right_file:
                yield f"{prefix}{name}", left_file, right_file, False

    def walk(
        self, start: CommitId, lost: dict[CommitId, DamagedError] | None = None
    ) -> Iterator[Commit]:
        """Yield the commits reachable from `start`, newest first, none before its children.

        A commit that cannot be read is put among the `lost` ones, if there is a place for them.
        """
        # As long as there is one way back, no other commit can come first.
        waiting = [self.commit(start)]
        while len(waiting) == 1:
            (commit,) = waiting
            yield commit
            waiting = self._parents(commit, lost)
        yield from self._walk_apart(waiting, lost)

    def _parents(self, commit: Commit, lost: dict[CommitId, DamagedError] | None) -> list[Commit]:
        found = []
        for name in dict.fromkeys(commit.parents):
            try:
                found.append(self.commit(name))
            except DamagedError as error:
                if lost is None:
                    raise
                lost[name] = error
        return found

    def _walk_apart(
        self, starts: Sequence[Commit], lost: dict[CommitId, DamagedError] | None
    ) -> Iterator[Commit]:
        """Yield the commits that several reach, newest first, none before its children."""
        known = {commit.id: commit for commit in starts}
        children = dict.fromkeys(known, 0)
        unread = list(starts)
        while unread:
            for parent in self._parents(unread.pop(), lost):
                children[parent.id] = children.get(parent.id, 0) + 1
                if parent.id not in known:
                    known[parent.id] = parent
                    unread.append(parent)
        ready = [_by_time(each) for each in starts if not children[each.id]]
        heapify(ready)
        while ready:
            commit = known[heappop(ready)[-1]]
            yield commit
            for name in dict.fromkeys(commit.parents):
                if name not in known:
                    continue
                children[name] -= 1
                if not children[name]:
                    heappush(ready, _by_time(known[name]))

    def beyond(self, tips: Iterable[CommitId], known: Iterable[CommitId]) -> list[CommitId]:
        """Return the commits that `tips` reach and `known` ones do not."""
        walker = self._repo.walk(None)
        wanted, hidden = list(tips), list(known)

        try:
            for tip in wanted:
                walker.push(libgit2.Oid(hex=tip))
            for tip in hidden:
                walker.hide(libgit2.Oid(hex=tip))
            return [CommitId(str(found.id)) for found in walker]
        except _unreadable() as error:
            raise _damaged(self.git, wanted[0] if wanted else "", error) from error

    def common(self, left: CommitId, right: CommitId) -> CommitId | None:
        """Return a best common ancestor of two commits, one of them if it is one; None if unrelated."""
        pair = left, right
        if pair not in self._common:
            ends = libgit2.Oid(hex=left), libgit2.Oid(hex=right)
            try:
                # Its stub leaves out that there may be none.
                found: libgit2.Oid | None = self._repo.merge_base(*ends)
            except _unreadable() as error:
                raise _damaged(self.git, left, error) from error
            _remember(self._common, pair, CommitId(str(found)) if found is not None else None)
        return self._common[pair]

    def resolve(self, text: str, ref: str = MAIN) -> CommitId:
        """Return the commit that Git understands by `text`, `HEAD` being `ref`."""
        named = text.replace("HEAD", ref, 1) if text.startswith("HEAD") else text
        try:
            found = self._repo.revparse_single(named).peel(libgit2.Commit)
        except (libgit2.GitError, KeyError, ValueError) as error:
            raise InvalidRevisionError(
                f"{shown(text)} is not a revision of session {self.path.name}",
                hint="a commit, tag or branch, HEAD~3, or a time, e.g. '2 days ago'",
            ) from error
        return CommitId(str(found.id))

    def index(self) -> libgit2.Index:
        """Return Git's index of the checked-out files as it is on the disk."""
        index: libgit2.Index = self._repo.index
        index.read(force=True)
        return index

    # Writing

    def store(self, objects: Sequence[Object]) -> storage.Written:
        """Put new objects on the disk; nothing names them yet."""
        folder = self.git / "objects"
        written = storage.Written(folder)
        try:
            storage.store(folder, objects, written)
        except BaseException:
            written.close()
            raise
        for item in objects:
            if item.type == COMMIT:
                name = CommitId(item.id)
                _remember(self._commits, name, read_commit(name, item.data))
        return written

    def publish(
        self, ref: str, expected: CommitId | None, new: CommitId, written: storage.Written
    ) -> None:
        """Move `ref` from `expected` to `new`, after making durable what was `written`.

        The caller holds the session's lock. Raises MovedError, with nothing changed, if
        the reference is elsewhere.
        """
        scratch = f"{self._git}/smp/ref"
        fd = self._scratch(scratch, new)
        try:
            if self.durable:
                written.keep(os.dup(fd), f"{self._git}/smp")
                written.flush_data()
            while not self._move(ref, expected, scratch, written):
                self._pack(written)
            if self.durable:
                disk.flush_name(fd, (self.git / ref).parent, self._git)
        finally:
            os.close(fd)
            with suppress(FileNotFoundError):
                os.unlink(scratch)  # noqa: PTH108 - a Path costs more than the call
        if written.is_exposed():
            # A gc that began just before may not know yet what the reference names.
            self._pack(written)

    def _pack(self, written: storage.Written) -> None:
        written.pack()
        if self.durable:
            written.flush()

    def point(self, moves: Mapping[str, CommitId]) -> None:
        """Move references that nobody else moves, each wherever it is, all with one barrier.

        The caller holds the session's lock, and everything that they name is durable.
        After a power cut each is where it was or where it is.
        """
        changed = {ref: new for ref, new in moves.items() if self.head(ref) != new}
        if not changed:
            return
        with storage.Written(self.git / "objects") as written:
            places = {}
            for number, (ref, new) in enumerate(changed.items()):
                places[ref] = f"{self._git}/smp/ref-{number}.tmp"
                written.keep(self._scratch(places[ref], new), f"{self._git}/smp")
            if self.durable:
                written.flush_data()
            for ref, place in places.items():
                # Whoever repairs knows the lock of a dead process by this name.
                os.rename(place, own := f"{self._git}/smp/ref")  # noqa: PTH104
                with self._locked_ref(ref, own) as lock:
                    disk.rename_into(lock, f"{self._git}/{ref}")
                os.unlink(own)  # noqa: PTH108 - a Path costs more than the call

    def _scratch(self, scratch: str, new: CommitId) -> int:
        """Return a descriptor of a new file that says `new`."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        try:
            fd = os.open(scratch, flags, 0o600)
        except FileExistsError:
            # Never truncated: it may be the same file as a reference published before a crash.
            os.unlink(scratch)  # noqa: PTH108 - a Path costs more than the call
            fd = os.open(scratch, flags, 0o600)
        try:
            disk.write_all(fd, f"{new}\n".encode())
        except BaseException:
            os.close(fd)
            os.unlink(scratch)  # noqa: PTH108 - a Path costs more than the call
            raise
        return fd

    def _move(
        self, ref: str, expected: CommitId | None, scratch: str, written: storage.Written
    ) -> bool:
        """Move a reference; return False if a `git gc` may remove what it is to name."""
        with self._locked_ref(ref, scratch) as lock:
            self._compare(ref, expected)
            if written.is_exposed():
                return False
            disk.rename_into(lock, f"{self._git}/{ref}")
            return True

    def _compare(self, ref: str, expected: CommitId | None) -> None:
        """Raise MovedError if a reference is not where it is expected."""
        try:
            found = _loose_reference(f"{self._git}/{ref}")
        except (ValueError, OSError):
            raise MovedError(ref) from None
        if (found or self._packed(ref)) != expected:
            raise MovedError(ref)

    @contextmanager
    def _locked_ref(self, ref: str, scratch: str) -> Iterator[str]:
        """Hold Git's own lock of a reference, a link to `scratch`; yield its file."""
        lock = f"{self._git}/{ref}.lock"
        self._lock_ref(lock, scratch)
        try:
            yield lock
        finally:
            with suppress(FileNotFoundError):
                os.unlink(lock)  # noqa: PTH108 - a Path costs more than the call

    def _lock_ref(self, lock: str, scratch: str) -> None:
        deadline = time.monotonic() + _REF_LOCK_SECONDS
        while True:
            try:
                os.link(scratch, lock)
            except FileExistsError:
                _drop_abandoned(Path(lock))
            except FileNotFoundError:
                Path(lock).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            else:
                return
            if time.monotonic() > deadline:
                raise LockedError(
                    f"another Git process holds {lock}",
                    hint="wait for it to end; if none runs, remove that file",
                )
            time.sleep(0.005)


def _by_time(commit: Commit) -> tuple[float, CommitId]:
    return -commit.time.timestamp(), commit.id


def _loose_reference(path: str) -> CommitId | None:
    """Return what a reference's own file says, None if it has none; raise ValueError if it is torn."""
    try:
        fd = os.open(path, os.O_RDONLY)
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        text = os.read(fd, 200).decode("ascii").strip()
    except IsADirectoryError:
        # Of references of longer names, or of none any more.
        return None
    finally:
        os.close(fd)
    if len(text) != _ID_LENGTH or not text.isalnum():
        raise ValueError(path)
    return CommitId(text)


def in_progress(git: Path) -> str | None:
    """Return what Git is in the middle of, or None."""
    return next((what for name, what in _IN_PROGRESS.items() if (git / name).exists()), None)


def goes_on(git: Path) -> bool:
    """Whether Git goes on by itself with what it remembers.

    After a single cherry-pick or revert it does not: a person's commit ends it.
    """
    return any((git / name).exists() for name in _IN_PROGRESS.keys() - _ENDED_BY_A_COMMIT)


def merged_heads(git: Path) -> list[CommitId]:
    """Return the commits that a merge which waits for its commit brings in."""
    try:
        return [CommitId(head) for head in (git / _MERGE_HEAD).read_text("ascii").split()]
    except FileNotFoundError:
        return []


def drop_own_ref_lock(git: Path, ref: str = MAIN) -> None:
    """Remove the ref lock of a writer of ours that died; the caller holds the session's lock."""
    own, lock, target = git / "smp" / "ref", git / f"{ref}.lock", git / ref
    with suppress(FileNotFoundError):
        # An earlier version died with the names exchanged; nobody else links a lock to a reference.
        if lock.samefile(target):
            lock.unlink()
    disk.drop_own_lock(own, lock)


def _drop_abandoned(lock: Path) -> None:
    try:
        age = time.time() - lock.stat().st_mtime
    except FileNotFoundError:
        return
    if age > _ABANDONED_SECONDS:
        lock.unlink(missing_ok=True)


def _remember(cache: dict[_K, _V], key: _K, value: _V) -> None:
    if len(cache) >= _CACHED:
        cache.clear()
    cache[key] = value


_K = TypeVar("_K")
_V = TypeVar("_V")


def is_shallow(git: Path) -> bool:
    """Whether a repository holds only the latest part of its history."""
    with suppress(OSError):
        return (git / "shallow").exists()
    # Who may not look is told so by what he does next.
    return False


def _damaged(git: Path, name: str, error: Exception) -> DamagedError:
    if is_shallow(git):
        return DamagedError(
            f"object {name[:12]} is not here: this is a shallow clone, whose older history is elsewhere",
            hint="git fetch --unshallow brings it",
        )
    return error if isinstance(error, DamagedError) else unreadable(name, error)


# What Git's own settings may say, line by line, for nothing but files and sha1 to be meant.
_SETTING: Final = re.compile(
    rb"[ \t]*(?:[#;].*|\[[^\]]*\][ \t]*(?:[#;].*)?|[A-Za-z][A-Za-z0-9-]*[ \t]*(?:=.*[^\\])?)?"
)
_PLAIN_VERSION: Final = re.compile(rb"(?m)^\s*repositoryformatversion\s*=\s*0\s*$")


def _is_plain(path: Path) -> bool:
    """Whether a repository is of the user's own and in the usual form, as far as a look tells."""
    git = path / ".git"
    try:
        owners = {os.stat(each).st_uid for each in (path, git)}  # noqa: PTH116 - as elsewhere
        said = (git / "config").read_bytes()
        is_there = all((git / name).exists() for name in ("HEAD", "objects", "refs"))
    except OSError:
        return False
    return (
        hasattr(os, "geteuid")
        and owners == {os.geteuid()}
        and is_there
        and b"extensions" not in said.lower()
        and _PLAIN_VERSION.search(said) is not None
        and all(map(_SETTING.fullmatch, said.splitlines()))
    )


def _unreadable() -> tuple[type[Exception], ...]:
    """Return what libgit2 raises; only a failure asks."""
    return KeyError, ValueError, OSError, libgit2.GitError


def _open(path: Path) -> libgit2.Repository:
    try:
        return libgit2.Repository(str(path / ".git"))
    except libgit2.GitError as error:
        raise _unopened(path, str(error)) from error


def gone(path: Path) -> SmpError:
    """Return the error of a session whose folder is no longer there."""
    return SessionNotFoundError(
        f"session {path.name} is no longer at {path}",
        hint="it was deleted or moved; smp sessions lists what is there",
    )


def _unopened(path: Path, reason: str) -> SmpError:
    from smp_git.git import layout  # noqa: PLC0415 - looked at when all else failed

    if "not owned by current user" in reason:
        return FormatError(
            f"{path} belongs to another user, so Git refuses it",
            hint="run as its owner, or change the owner of the folder",
        )
    if not (path / ".git").exists():
        return gone(path)
    if not layout.is_configured(path / ".git") or not (path / ".git/HEAD").exists():
        return DamagedError(
            f"Git's settings or HEAD of {path} cannot be read",
            hint=f"smp -s {path.name} repair writes them anew",
        )
    return FormatError(
        f"the repository at {path} cannot be opened: {reason}",
        hint="its format must be files and sha1: no reftable, partial clone or sha256",
    )
