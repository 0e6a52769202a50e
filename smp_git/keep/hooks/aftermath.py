"""After plain Git moved a session: its indexes mended, what is local brought up to date."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final

from smp_git.format.messages import MEND
from smp_git.git import staging
from smp_git.git.objects import BLOB, object_id
from smp_git.git.repository import MAIN
from smp_git.keep.hooks.gate import Gate
from smp_git.model.errors import DamagedError, InvalidFileError
from smp_git.model.ids import INDEX
from smp_git.model.memory import CommitId
from smp_git.read import pages as index
from smp_git.read.snapshot import Reader, Snapshot
from smp_git.write import recovery
from smp_git.write.stage import Stage

_SHOWN: Final = 10


def bring_up(gate: Gate, *, merged: bool = False, rewritten: bool = False) -> list[str]:
    """Mend the indexes in a commit of their own, if they are wrong; return what to tell.

    `merged` and `rewritten` say that more than the latest commit may be new.

    While Git goes on by itself with what it remembers, nothing is done: a commit in
    between would be lost on it.
    """
    reader = gate.reader
    if rewritten:
        reader.local.raise_epoch()
    moved = merged or rewritten
    if reader.repository.checked_out() != MAIN or (gate.is_under_way() and not moved):
        return []
    notes: list[str] = []
    with gate.writer.holding("bringing a session up to date") as snapshot:
        if recovery.is_needed(reader):
            recovery.repair(reader)
        before = list(_before(reader, snapshot, moved=moved))
        stale = _stale(snapshot, before, notes)
    if stale:
        _, change = gate.writer.run(gate.agent, partial(_mend, before), subject=MEND)
        pages = "1 page" if len(stale) == 1 else f"{len(stale)} pages"
        notes.append(f"commit {str(change.commit)[:12]} mends the index of {pages}")
    with gate.writer.holding("refreshing Git's index") as snapshot:
        staging.refresh(reader.repository, snapshot.tree)
        _settle(reader, snapshot)
    return notes + _returned(reader, snapshot)


def _mend(before: list[Snapshot], stage: Stage) -> None:
    for path, data in _stale(stage.base, before, []).items():
        stage.put_file(path, data, "")


def _before(reader: Reader, snapshot: Snapshot, *, moved: bool) -> Iterator[Snapshot]:
    """Yield the commits that the session stood at before Git moved it."""
    for parent in snapshot.commit.parents[:1]:
        yield reader.at(parent)
    if moved:
        with suppress(FileNotFoundError, UnicodeDecodeError):
            yield reader.at(CommitId((reader.repository.git / "ORIG_HEAD").read_text("ascii").strip()))  # fmt: skip


def _stale(snapshot: Snapshot, before: list[Snapshot], notes: list[str]) -> dict[str, bytes | None]:
    """Return the page indexes that are not what their files ask for, as they must be."""
    repository = snapshot.repository
    pages = snapshot.page_ids()
    suspects = {page.path for page in snapshot.pages() if page.problems}
    for known in map(_pages, before):
        suspects |= {path for path, tree in pages.items() if known.get(path) != tree}
    out: dict[str, bytes | None] = {}
    for path in sorted(suspects):
        try:
            wanted = index.rebuilt(repository, path, pages[path]).encode()
        except InvalidFileError as error:
            notes.append(f"the index of {path} stays as it is: {error.message}")
            continue
        blob = repository.find(snapshot.tree, f"{path}/{INDEX}")
        if (repository.blob(blob) if blob else b"") != wanted:
            out[f"{path}/{INDEX}"] = wanted or None
    return out


def _pages(snapshot: Snapshot) -> Mapping[str, str]:
    try:
        return snapshot.page_ids()
    except DamagedError:
        # Where the session stood before is gone since: every page is looked at.
        return {}


def _settle(reader: Reader, snapshot: Snapshot) -> None:
    """Take note of the files that writes had left alone and that now stand as committed."""
    left = reader.local.left_alone()
    done = [path for path in left if _standing(reader.path / path) == snapshot.repository.find(snapshot.tree, path)]  # fmt: skip
    if done:
        reader.local.note_left_alone({}, done)


def _standing(path: Path) -> str | None:
    try:
        return object_id(BLOB, path.read_bytes())
    except OSError:
        return None


def _returned(reader: Reader, snapshot: Snapshot) -> list[str]:
    """Say which deleted memories came back with what was moved in."""
    back = [name for path in snapshot.page_ids() for name in sorted(snapshot.dead(path))]
    if not back:
        return []
    more = f" and {len(back) - _SHOWN} more" if len(back) > _SHOWN else ""
    return [f"{', '.join(back[:_SHOWN])}{more} had been deleted; smp sync takes them out again"]
