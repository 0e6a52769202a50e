"""Stores and their sessions: made and found."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import Final

from smp_git.format import config, dialect, metadata, records
from smp_git.format.config import FORMAT
from smp_git.git import disk, staging
from smp_git.git.disk import reporting
from smp_git.git.objects import BLOB, EMPTY_TREE, Object
from smp_git.git.repository import MAIN, Repository
from smp_git.keep import opening
from smp_git.model.errors import (
    AlreadyExistsError,
    InvalidError,
    NotStoreError,
    SessionNotFoundError,
    SmpError,
    shown,
)
from smp_git.model.ids import SESSION_ID
from smp_git.model.memory import CommitId, Value, agent_name, check_tags, check_text, check_value
from smp_git.model.names import ARCHIVED, CONFIG
from smp_git.model.settings import split
from smp_git.model.times import format_time
from smp_git.read.places import is_store
from smp_git.read.replica import Identity, Local, new_tag
from smp_git.write.handle import GLOBAL, Handle, Home


def init(place: Path) -> None:
    """Make a store at a place that has none yet; raise an error if something else is there."""
    with reporting(f"a store at {place}"):
        if place.exists() and not place.is_dir():
            raise NotStoreError(f"{place} is a file", hint="name a folder")
        if not is_store(place) and place.is_dir() and any(place.iterdir()):
            raise AlreadyExistsError(
                f"{place} holds other files", hint="name an empty or a new folder"
            )
        (place / "active").mkdir(mode=0o700, parents=True, exist_ok=True)
        place.chmod(0o700)
        if not (place / ".gitignore").exists():
            (place / ".gitignore").write_text("*\n")
        if not (place / CONFIG).exists():
            said = f"format: {FORMAT}\n".encode()
            disk.replace_durably(place / CONFIG, said, place / f".{CONFIG}.tmp")


def absolute(path: str | os.PathLike[str]) -> Path:
    """Return a path from the root; raise NotStoreError if it cannot be one."""
    if "\0" in os.fspath(path):
        raise NotStoreError(f"{shown(path)} is not a path")
    return Path(path).absolute()


def home_at(path: Path, clock: Callable[[], datetime], environment: Mapping[str, str]) -> Home:
    """Return a store as what is done in it needs it."""
    return Home(path=path, settings=config.load(path), clock=clock, environment=environment)


_DEVICE: Final = re.compile(r"(?i:con|prn|aux|nul|com\d|lpt\d)")
# A session is made in milliseconds.
_ABANDONED_SECONDS: Final = 600.0


def session_ids(store: Path) -> tuple[str, ...]:
    """Return the ids of the sessions, sorted."""
    try:
        folders = list((store / "active").iterdir())
    except FileNotFoundError:
        return ()
    return tuple(
        sorted(
            folder.name
            for folder in folders
            if (folder / ".git").is_dir() and not folder.name.startswith(".")
        )
    )


def find_session(store: Path, text: str) -> str:
    """Return the id that begins with `text`; raise SessionNotFoundError or InvalidError.

    Raises SessionArchivedError if only an archived session has it.
    """
    names = session_ids(store)
    if text in names:
        return text
    from smp_git.read import archives  # noqa: PLC0415 - most name a session that is at hand

    kept = archives.names(store)
    if text in kept:
        raise archives.archived_error(text)
    found = [name for name in names if name.startswith(str(text))] if text else []
    if len(found) > 1:
        raise InvalidError(
            f"{shown(text)} matches several sessions", hint=f"one of {', '.join(found[:10])}"
        )
    put_away = [name for name in kept if name.startswith(str(text))] if text else []
    if not found and len(put_away) == 1:
        raise archives.archived_error(put_away[0])
    if not found:
        raise SessionNotFoundError(
            f"no session {shown(text)} in {store}", hint="smp sessions lists them"
        )
    return found[0]


@contextmanager
def naming(session: str, left: list[str]) -> Iterator[None]:
    """Go on past a session that cannot be read, and name it among what is left."""
    try:
        yield
    except SmpError as error:
        left.append(f"{session}: {error.message}" + (f"; {error.hint}" if error.hint else ""))


def place_of(home: Home, name: str) -> Path:
    """Return the folder of a session by its whole id."""
    return home.path / GLOBAL if name == GLOBAL else home.path / "active" / name


def ready(store: Path, name: str) -> Path:
    """Return the folder of a session that is about to be opened, its archive settled."""
    if name == GLOBAL:
        return store / GLOBAL
    if (store / ARCHIVED).is_dir():
        from smp_git.read import archives  # noqa: PLC0415 - most stores have none
        from smp_git.remove import archive  # noqa: PLC0415 - as above

        archive.settle(store, name)
        if archives.is_archived(store, name):
            raise archives.archived_error(name)
    return store / "active" / name


def open_by_id(home: Home, name: str) -> Handle:
    """Open a session by its whole id."""
    place, shared = ready(home.path, name), home.path / GLOBAL
    return opening.open_session(
        place, home.clock, home.settings, shared=None if place == shared else shared, home=home
    )


def new_id(home: Home, given: str | None, now: datetime) -> str:
    """Return the id of a new session; raise an error if it cannot be one."""
    if given is None:
        return f"session-{now:%Y-%m-%d}-{os.urandom(3).hex()}"
    text = str(given)
    if text != given or not SESSION_ID.fullmatch(text) or _DEVICE.fullmatch(text):
        raise InvalidError(
            f"{shown(given)} is not a valid id for a session",
            hint="1 to 64 letters, digits, '-' or '_', first a letter or digit",
        )
    from smp_git.read import archives  # noqa: PLC0415 - a session is made once

    names = (*session_ids(home.path), *archives.names(home.path), GLOBAL)
    taken = {name.lower(): name for name in names}
    if given.lower() in taken:
        raise AlreadyExistsError(
            f"session {taken[given.lower()]} exists", hint="choose another id, or use it"
        )
    return given


def create_session(
    home: Home,
    name: str,
    now: datetime,
    *,
    user: str | None = None,
    agents: Iterable[str] = (),
    context: Mapping[str, object] | None = None,
    tags: Iterable[str] = (),
    overrides: Mapping[str, object] | None = None,
) -> Path:
    """Make a session whose id is new, and return its folder."""
    place, identity = place_of(home, name), Identity(new_tag(), creator=True)
    told = _metadata(home, name, identity, now, user, agents, context, tags, overrides or {})
    with reporting(f"session {name}"):
        _build(
            place, told, identity, agent_name(user or "user"), now, durable=home.settings.durable
        )
    return place


def _metadata(
    home: Home,
    name: str,
    identity: Identity,
    now: datetime,
    user: str | None,
    agents: Iterable[str],
    context: Mapping[str, object] | None,
    tags: Iterable[str],
    overrides: Mapping[str, object],
) -> dict[str, Value]:
    """Return what a new session says of itself, checked and without secrets."""
    given = {name: check_value(value, name) for name, value in overrides.items()}
    rules = home.settings.of_session(given, "overrides").rules
    told: dict[str, Value] = {
        "id": rules.name(name, "the id of a session"),
        "uid": os.urandom(16).hex(),
        "format": records.FORMAT,
        "rule": records.RULE,
        "created_at": format_time(now),
        "replica": identity.tag,
    }
    if user is not None:
        agent_name(rules.name(user, "the name of a user"))
        told["user"] = check_text(user, "user")
    if isinstance(agents, str):
        raise InvalidError(f"agents must be a list of names, not {shown(agents)}")
    told["agents"] = [agent_name(rules.name(agent, "the name of an agent")) for agent in agents]
    if context is not None and not isinstance(context, Mapping):
        raise InvalidError(f"a context must be a mapping, not {shown(context)}")
    said = rules.cleaned(None, {"context": dict(context or {})}).fields
    told["context"] = check_value(said["context"], "context")
    told["tags"] = list(check_tags(rules.names(tags, "a tag")))
    clean = {k: check_value(v, k) for k, v in rules.settings(given).items()}
    told |= {name: said for name, said in split(clean).items() if said}
    return told


def _build(
    place: Path,
    told: Mapping[str, Value],
    identity: Identity,
    author: str,
    now: datetime,
    *,
    durable: bool,
) -> None:
    """Make a session in a scratch folder and move it into its place, whole."""
    from smp_git.git import layout  # noqa: PLC0415 - a session is made once

    _sweep(place.parent)
    scratch = place.parent / f".new-{os.urandom(8).hex()}"
    try:
        layout.create(scratch)
        local = Local(scratch / ".git")
        local.identify(scratch, identity, place)
        local.note_boot()
        replica = {"tag": identity.tag, "registered_at": format_time(now)}
        files = {
            **layout.TRACKED,
            metadata.PATH: dialect.write(told).encode(),
            f"replicas/{identity.tag}.yaml": dialect.write(replica).encode(),
        }
        _first_commit(scratch, files, identity, author, now, durable=durable)
        try:
            scratch.rename(place)
        except OSError as error:
            if place.exists():
                raise AlreadyExistsError(f"session {place.name} exists") from error
            raise
        if durable:
            disk.flush_folder(place.parent)
            disk.flush_folder(place.parent.parent)
    finally:
        disk.remove_folder(scratch)


def _sweep(folder: Path) -> None:
    """Remove the sessions that a dead process left half-made."""
    for scratch in folder.glob(".new-*"):
        with suppress(FileNotFoundError):
            if time.time() - scratch.stat().st_mtime > _ABANDONED_SECONDS:
                disk.remove_folder(scratch)


def _first_commit(
    folder: Path,
    files: Mapping[str, bytes],
    identity: Identity,
    author: str,
    now: datetime,
    *,
    durable: bool,
) -> None:
    from smp_git.format import messages  # noqa: PLC0415 - a session is made once
    from smp_git.write import commit  # noqa: PLC0415 - as above

    repository = Repository(folder, durable=durable)
    blobs = {path: Object(BLOB, data) for path, data in files.items()}
    edits = {path: blob.id for path, blob in blobs.items()}
    tree, trees = commit.with_files(repository, EMPTY_TREE, edits)
    text = messages.write((), author, subject=messages.CREATE)
    first = commit.signed(tree, (), identity, author, now, text)
    with repository.store([*blobs.values(), *trees, first]) as written:
        for path, data in files.items():
            target = folder / path
            target.parent.mkdir(mode=0o700, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o600)
        staging.refresh(repository, tree)
        # A repository without its settings could not be opened after a power cut.
        written.keep_files(folder)
        repository.publish(MAIN, None, CommitId(first.id), written)
    repository.close()
