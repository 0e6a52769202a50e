"""A plain `git commit` about to be made: checked, and its page indexes made whole."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from smp_git.format import document, lines, metadata, records
from smp_git.format.document import life_of
from smp_git.format.lines import Entry
from smp_git.format.records import Tombstones
from smp_git.git import staging
from smp_git.git.objects import BLOB, FILE_MODE, Child, Object, ObjectId, object_id
from smp_git.git.repository import MAIN, Repository, merged_heads
from smp_git.keep.hooks.install import Gate
from smp_git.model.errors import InvalidFileError, LockedError, RefusedError, UntrustedError
from smp_git.model.ids import INDEX, is_index, parse_path
from smp_git.model.memory import VALUE, MemoryId, Value
from smp_git.model.settings import Settings
from smp_git.read.pages import changed, row_of
from smp_git.read.snapshot import Snapshot
from smp_git.remove.history import plan
from smp_git.sync.inspect.structure import check_path
from smp_git.write import hand_edits, handle
from smp_git.write.commit import TreeChange, check_out
from smp_git.write.hand_edits import Handmade

_EXECUTABLE: Final = "100755"
# What a session is made with and keeps.
_FIXED: Final = ("id", "uid", "format", "rule", "created_at", "replica")


class Proposal(NamedTuple):
    """Staged files beside the commit that they are built on; only what differs."""

    base: Snapshot
    staged: Mapping[str, Child | None]
    files: Mapping[str, bytes | None]
    merged_in: frozenset[str]


def make_whole(gate: Gate, index_file: Path) -> None:
    """Check what is staged and bring the indexes of its pages up to it.

    Raises an error naming every file, with its line, that cannot be committed; then the
    commit must not go on.
    """
    before = staging.staged(index_file)
    if not handle.before_commit(gate.writer, index_file):
        raise _held()
    # The commit would leave out edits of files that Git had not heard of yet.
    for path, child in staging.staged(index_file).items():
        if before.get(path) == child or parse_path(path) is None:
            continue
        target = gate.reader.path / path
        if target.is_file() and object_id(BLOB, target.read_bytes()) != child.id:
            raise LockedError(
                f"{path} was written a moment ago, after Git had looked for your edits",
                hint="smp check brings Git up to date; then commit again",
            )
    with gate.writer.holding("checking a commit"):
        base = gate.base()
        if base is None:
            return
        proposal = _proposed(gate, base, index_file)
        check(proposal, gate)
        _stage(gate, proposal, index_file)


def _proposed(gate: Gate, base: Snapshot, index_file: Path) -> Proposal:
    repository = base.repository
    staged = staging.staged(index_file)
    committed = dict(repository.files(base.tree))
    differing = {
        path: staged.get(path)
        for path in sorted(staged.keys() | committed.keys())
        if path not in staged or staged[path] != (FILE_MODE, committed.get(path))
    }
    files = {
        path: _data(repository, path, child)
        for path, child in differing.items()
        if parse_path(path) is not None or path in (metadata.PATH, records.PATH)
    }
    return Proposal(base, differing, files, frozenset(_merged_in(gate, differing)))


def _data(repository: Repository, path: str, child: Child | None) -> bytes | None:
    if child is None:
        return None
    if child.mode not in (FILE_MODE, _EXECUTABLE):
        raise InvalidFileError(f"{path} is a link", hint="put the file itself there")
    most = document.largest(parse_path(path))
    if repository.size(child.id) > most:
        raise InvalidFileError(f"{path} is larger than {most:,} bytes")
    return repository.blob(child.id)


def _merged_in(gate: Gate, staged: Mapping[str, Child | None]) -> Iterator[str]:
    """Yield the files that are as another history which is being merged has them."""
    repository = gate.reader.repository
    for tree in [repository.commit(head).tree for head in merged_heads(gate.git)]:
        for path, child in staged.items():
            if child is not None and repository.find(tree, path) == child.id:
                yield path


def check(proposal: Proposal, gate: Gate) -> None:
    """Raise an error naming what cannot be committed."""
    own = {
        path: data
        for path, data in proposal.files.items()
        if parse_path(path) is not None and path not in proposal.merged_in
    }
    strangers = [
        path
        for path, child in proposal.staged.items()
        if child is not None and parse_path(path) is None and not is_index(path)
    ]
    hand_edits.check(Handmade(own, (), tuple(strangers)), gate.rules)
    _check_places(proposal, strangers)
    _check_tombstones(proposal, gate)
    if metadata.PATH in proposal.staged:
        _check_metadata(proposal, gate)
    _check_values(proposal)


def _check_values(proposal: Proposal) -> None:
    """Refuse values in a session whose format has none: other replicas would not take it in."""
    repository, base = proposal.base.repository, proposal.base.tree
    blob = repository.find(base, metadata.PATH)
    said = proposal.files.get(metadata.PATH) or (repository.blob(blob) if blob else b"")
    number = metadata.mapping(said).get("format")
    if isinstance(number, int) and number >= records.WITH_VALUES:
        return
    for path, data in proposal.files.items():
        place = parse_path(path)
        if data is not None and place is not None and place.kind.name == VALUE:
            raise RefusedError(
                f"{path}: the session has no values yet, and the first one is not put by hand",
                hint=f"git rm --cached {path} takes it out of the commit",
            )


def _check_places(proposal: Proposal, paths: Iterable[str]) -> None:
    """Refuse what no other replica would take in."""
    for path in paths:
        child = proposal.staged[path]
        try:
            check_path(path, bytes.fromhex(child.id) if child else b"")
        except UntrustedError as error:
            raise InvalidFileError(
                error.message, hint=f"git rm --cached {path} takes it out of the commit"
            ) from None


def _check_tombstones(proposal: Proposal, gate: Gate) -> None:
    """Refuse what was deleted, and a deletion that is taken back."""
    known = plan.effective(gate.reader)
    if records.PATH in proposal.staged:
        said = records.read(proposal.files[records.PATH] or b"")
        if not said.covers(proposal.base.said):
            raise RefusedError(
                f"{records.PATH} only grows, and a line of it is gone",
                hint=f"git checkout HEAD -- {records.PATH} brings it back; smp restore takes a deletion back",
            )
        known |= said
    for path, data in proposal.files.items() if known else ():
        place = parse_path(path) if data is not None else None
        if place is not None and known.is_gone(place.text):
            raise RefusedError(
                f"{path}: {place.text} was deleted",
                hint=f"take it out with git rm -f {path}; smp restore {place.text} brings it back",
            )
    _check_merged_lives(proposal, known)


def _check_merged_lives(proposal: Proposal, known: Tombstones) -> None:
    """Refuse a plain merge of heads that have a memory in different lives."""
    for path in proposal.merged_in:
        place, data = parse_path(path), proposal.files.get(path)
        if place is None or data is None:
            continue
        life, lives = life_of(data, path), known.lives(place.text)
        before = proposal.base.file(place.text)
        present = life_of(before, path) if before is not None else life
        if (
            lives.is_dead(life)
            or (life not in ("", None) and not lives.explains(str(life)))
            or life != present
        ):
            raise RefusedError(
                f"{path}: the two sides have {place.text} in different lives, which plain Git cannot merge",
                hint="git merge --abort, then smp sync or smp merge merges both",
            )


def _check_metadata(proposal: Proposal, gate: Gate) -> None:
    data = proposal.files[metadata.PATH]
    if data is None:
        raise RefusedError(
            f"{metadata.PATH} is gone, and without it this is not a session",
            hint=f"git checkout HEAD -- {metadata.PATH} brings it back",
        )
    new = metadata.mapping(data)
    repository, base = proposal.base.repository, proposal.base.tree
    blob = repository.find(base, metadata.PATH)
    old = metadata.mapping(repository.blob(blob)) if blob else {}
    for name in _FIXED if old else ():
        if new.get(name) != old.get(name) and not _is_raised(name, old.get(name), new.get(name)):
            raise RefusedError(
                f"{metadata.PATH}: {name} never changes",
                hint=f"git checkout HEAD -- {metadata.PATH} brings it back",
            )
    known = metadata.settings(old)
    said = metadata.settings(new).items()
    fresh = {name: value for name, value in said if name not in known or known[name] != value}
    Settings().of_session(fresh, metadata.PATH)


def _is_raised(name: str, old: Value, new: Value) -> bool:
    """Whether a merge brings the session to a newer format that this program knows."""
    return (
        name in ("format", "rule")
        and isinstance(old, int)
        and isinstance(new, int)
        and old < new <= metadata.KNOWN[name]
    )


# Making it whole


def _stage(gate: Gate, proposal: Proposal, index_file: Path) -> None:
    """Stage the indexes of the pages, and what later writes changed in the same memories."""
    files = dict(proposal.files)
    reader = gate.reader
    if reader.repository.checked_out() == MAIN:
        own = {path: data for path, data in files.items() if parse_path(path) is not None}
        mine = {path: data for path, data in own.items() if path not in proposal.merged_in}
        right = hand_edits.put_right(mine, proposal.base, plan.effective(reader))
        files |= right
        own |= right
        files |= hand_edits.brought_together(Handmade(own, (), ()), proposal.base, reader.local)
    wanted = {path: data for path, data in files.items() if data != proposal.files[path]}
    wanted |= _indexes(proposal, files)
    blobs = {
        path: Object(BLOB, data) if data is not None else None for path, data in wanted.items()
    }
    edits = {path: blob.id if blob else None for path, blob in blobs.items()}
    edits |= {
        path: child.id
        for path, child in proposal.staged.items()
        if child is not None and child.mode == _EXECUTABLE and path not in edits
    }
    if not edits:
        return
    with reader.repository.store([blob for blob in blobs.values() if blob]) as written:
        if reader.repository.durable:
            written.flush()
    own_index = index_file.resolve() == (gate.git / "index").resolve()
    if not staging.put(reader.repository, edits, None if own_index else index_file):
        raise _held()
    _check_out(gate, proposal, edits)


def _indexes(proposal: Proposal, files: Mapping[str, bytes | None]) -> dict[str, bytes | None]:
    """Return the page indexes that are not staged as the files ask for."""
    rows: dict[str, dict[MemoryId, tuple[str, Entry] | None]] = {}
    for path in proposal.staged:
        if is_index(path):
            rows.setdefault(path.rpartition("/")[0], {})
    for path, data in files.items():
        place = parse_path(path)
        if place is not None:
            blob = Object(BLOB, data).id if data is not None else ""
            row = row_of(data, path, blob) if data is not None else None
            rows.setdefault(place.page, {})[place.text] = row
    pages = (changed(proposal.base.page(path), path, below) for path, below in rows.items())
    wanted = {
        f"{page.path}/{INDEX}": lines.write_page(page.lines).encode() if page.lines else None
        for page in pages
    }
    return {path: data for path, data in wanted.items() if _staged(proposal, path) != _name(data)}


def _name(data: bytes | None) -> ObjectId | None:
    return Object(BLOB, data).id if data is not None else None


def _staged(proposal: Proposal, path: str) -> ObjectId | None:
    if path in proposal.staged:
        child = proposal.staged[path]
        return child.id if child else None
    return proposal.base.repository.find(proposal.base.tree, path)


def _check_out(gate: Gate, proposal: Proposal, edits: Mapping[str, ObjectId | None]) -> None:
    reader = gate.reader
    changes = [TreeChange(path, _staged(proposal, path), new) for path, new in edits.items()]
    check_out(reader.path, changes, reader.repository.blob, reader.local.scratch("checkout"))
    for path, child in proposal.staged.items():
        target = reader.path / path
        if child is not None and child.mode == _EXECUTABLE and target.is_file():
            target.chmod(0o600)


def _held() -> LockedError:
    return LockedError("another Git process holds the index", hint="commit again")
