"""A new first commit for a session whose history is lost as a whole and whose files stand."""

from __future__ import annotations

from pathlib import Path

from smp_git.format import document, lines, messages, metadata, records
from smp_git.git import layout
from smp_git.git.objects import BLOB, EMPTY_TREE, Object
from smp_git.git.repository import MAIN, Repository
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import INDEX, parse_path
from smp_git.model.memory import CommitId, MemoryId
from smp_git.read.pages import row_of
from smp_git.read.replica import Identity, Local, new_tag
from smp_git.write import commit
from smp_git.write.commit import checked_out_files, with_files
from smp_git.write.handle import Home

_REPLICAS = "replicas/"


def refound(repository: Repository, home: Home, *, dry_run: bool) -> int | None:
    """Commit what the folder holds without a parent; return how many memories that are.

    None if the folder does not say which session it is: then nothing is done.
    """
    place, local = repository.path, Local(repository.git)
    files = dict(checked_out_files(place))
    try:
        metadata.read(files[metadata.PATH], place.name)
        known = local.tombstones() | records.read(files.get(records.PATH, b""))
    except (KeyError, InvalidFileError):
        return None
    memories: dict[str, bytes] = {}
    pages: dict[str, dict[MemoryId, str]] = {}
    for path, data in files.items():
        at = parse_path(path)
        try:
            if at is None or known.is_dead(at.text, document.decode(data, path).life):
                continue
        except InvalidFileError:
            continue
        memories[path] = data
        name = Object(BLOB, data).id
        pages.setdefault(at.page, {})[at.text] = row_of(data, path, name)[0]
    if dry_run:
        return len(memories)
    kept = {path: data for path, data in files.items() if _is_of_session(path)}
    kept |= memories
    kept |= {f"{page}/{INDEX}": lines.write_page(rows).encode() for page, rows in pages.items()}
    _commit(repository, local, kept, home, place)
    return len(memories)


def _is_of_session(path: str) -> bool:
    own = (metadata.PATH, records.PATH, *layout.TRACKED)
    return path in own or (path.startswith(_REPLICAS) and path.count("/") == 1)


def _commit(
    repository: Repository, local: Local, files: dict[str, bytes], home: Home, place: Path
) -> None:
    blobs = {path: Object(BLOB, data) for path, data in files.items()}
    edits = {path: blob.id for path, blob in blobs.items()}
    tree, trees = with_files(repository, EMPTY_TREE, edits)
    identity = local.identity(place) or Identity(new_tag(), creator=False)
    agent = f"smp-{identity.tag}"
    text = messages.write((), agent, subject=messages.EDITS)
    first = commit.signed(tree, (), identity, agent, home.clock(), text)
    with repository.store([*blobs.values(), *trees, first]) as written:
        written.flush()
    repository.point({MAIN: CommitId(first.id)})
