"""Store: the door to a folder of sessions."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Unpack

from smp_git.format import config, dialect, messages, records
from smp_git.format.config import FORMAT
from smp_git.git import disk, layout, staging
from smp_git.git.disk import reporting
from smp_git.git.objects import BLOB, COMMIT, EMPTY_TREE, Object, write_commit
from smp_git.git.repository import MAIN, Repository
from smp_git.git.trees import with_files
from smp_git.model.errors import (
    AlreadyExistsError,
    InvalidError,
    NotStoreError,
    SessionNotFoundError,
    SmpError,
    shown,
)
from smp_git.model.memory import CommitId, Value, agent_name, check_tags, check_text, check_value
from smp_git.model.times import format_time
from smp_git.read.replica import Identity, Local, new_tag
from smp_git.remove.deletions import Home
from smp_git.session import Session
from smp_git.sync.sharing import GLOBAL, Sharing

if TYPE_CHECKING:
    from smp_git.ask.answer import Answer
    from smp_git.ask.request import QueryParts

PLACE: Final = Path(".bmad/sessions")

_NOTHING: Final[Mapping[str, object]] = MappingProxyType({})

_SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_DEVICE = re.compile(r"(?i:con|prn|aux|nul|com\d|lpt\d)")
# A session is made in milliseconds.
_ABANDONED_SECONDS: Final = 600.0


def _now() -> datetime:
    return datetime.now(UTC)  # noqa: TID251 - the clock of the program; tests pass their own


class Store(Sharing):
    """A folder of sessions."""

    def __init__(self, path: Path, *, clock: Callable[[], datetime] = _now) -> None:
        self.path = path
        self.clock = clock
        self.settings = config.load(path)
        self._asked: dict[str, Session] = {}

    def __repr__(self) -> str:
        return f"Store({str(self.path)!r})"

    @cached_property
    def key_folder(self) -> Path | None:
        """Where the keys of sealed copies stand; None if there is no lasting place."""
        from smp_git.remove import seal  # noqa: PLC0415 - few programs delete

        return seal.folder(self.settings.key_dir, os.environ, self.path)  # noqa: TID251 - the one door

    def surroundings(self) -> Mapping[str, str]:
        """Return the environment, for what Git needs to reach a remote."""
        return os.environ  # noqa: TID251 - the one door

    @classmethod
    def init(
        cls, path: str | os.PathLike[str] | None = None, *, clock: Callable[[], datetime] = _now
    ) -> Store:
        """Make a store at `path`, or open the one that is there.

        Without a path it is `.bmad/sessions` in the current folder.
        """
        place = _absolute(path) if path is not None else Path.cwd() / PLACE
        with reporting(f"a store at {place}"):
            if place.exists() and not place.is_dir():
                raise NotStoreError(f"{place} is a file", hint="name a folder")
            if not _is_store(place) and place.is_dir() and any(place.iterdir()):
                raise AlreadyExistsError(
                    f"{place} holds other files", hint="name an empty or a new folder"
                )
            (place / "active").mkdir(mode=0o700, parents=True, exist_ok=True)
            place.chmod(0o700)
            if not (place / ".gitignore").exists():
                (place / ".gitignore").write_text("*\n")
            if not (place / "config.yaml").exists():
                said = f"format: {FORMAT}\n".encode()
                disk.replace_durably(place / "config.yaml", said, place / ".config.yaml.tmp")
        return cls(place, clock=clock)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str] | None = None, *, clock: Callable[[], datetime] = _now
    ) -> Store:
        """Open the store at `path`, or in the project at `path`.

        Without a path: `SMP_ROOT`, else the nearest one from the current folder up.
        """
        given = path if path is not None else os.environ.get("SMP_ROOT")  # noqa: TID251 - the one door
        if given:
            return cls(_store_at(_absolute(given)), clock=clock)
        here = Path.cwd()
        for folder in (here, *here.parents):
            for place in (folder / PLACE, folder):
                if _is_store(place):
                    return cls(place, clock=clock)
        raise NotStoreError(f"no store in {here} or above", hint="smp init makes one")

    # Sessions

    def create_session(
        self,
        id: str | None = None,
        *,
        user: str | None = None,
        agents: Iterable[str] = (),
        context: Mapping[str, object] | None = None,
        tags: Iterable[str] = (),
        overrides: Mapping[str, object] = _NOTHING,
    ) -> Session:
        """Make a session and return it; without an id it is named by its date.

        `overrides` are settings of this session alone, such as `{"redaction": "off"}`.
        """
        now = self.clock()
        name = self._new_id(id, now)
        return self._created(
            self.path / "active" / name, name, now, user, agents, context, tags, overrides
        )

    def global_session(self) -> Session:
        """Return the session of what holds across sessions, made at its first use."""
        place = self.path / GLOBAL
        if not place.exists():
            self._created(place, GLOBAL, self.clock(), None, (), None, ()).close()
        return self._opened(place)

    def session(self, id: str) -> Session:
        """Open a session by its id or the beginning of it, if that is unique."""
        if id == GLOBAL:
            return self.global_session()
        return self._opened(self.path / "active" / self.find_session(id))

    def find_session(self, text: str) -> str:
        """Return the id that begins with `text`; raise SessionNotFoundError or InvalidError."""
        names = self.sessions()
        if text in names:
            return text
        found = [name for name in names if name.startswith(str(text))] if text else []
        if len(found) > 1:
            raise InvalidError(
                f"{shown(text)} begins several sessions", hint=f"one of {', '.join(found[:10])}"
            )
        if not found:
            raise SessionNotFoundError(
                f"no session {shown(text)} in {self.path}", hint="smp sessions lists them"
            )
        return found[0]

    def sessions(self) -> tuple[str, ...]:
        """Return the ids of the sessions, sorted."""
        try:
            folders = list((self.path / "active").iterdir())
        except FileNotFoundError:
            return ()
        return tuple(
            sorted(
                folder.name
                for folder in folders
                if (folder / ".git").is_dir() and not folder.name.startswith(".")
            )
        )

    def query(
        self,
        text: str | None = None,
        *,
        now: datetime | None = None,
        spec: Mapping[str, object] | None = None,
        **parts: Unpack[QueryParts],
    ) -> Answer:
        """Return the memories of all sessions that answer, the best first.

        Each hit names its session; a session that rests counts for less. Sessions stay
        open for the next question, until `close`.
        """
        from smp_git.ask.across import across  # noqa: PLC0415 - most programs ask one session

        moment = now or self.clock()
        return across(self._asked_sessions(), text, moment, spec, parts)

    def close(self) -> None:
        """Let go of the sessions that questions opened."""
        while self._asked:
            self._asked.popitem()[1].close()

    def _asked_sessions(self) -> list[Session]:
        names = self.sessions()
        for gone in self._asked.keys() - set(names):
            self._asked.pop(gone).close()
        for name in names:
            if name not in self._asked:
                self._asked[name] = self._opened(self.path / "active" / name)
        return [self._asked[name] for name in names]

    def check(self) -> tuple[str, ...]:
        """Return everything that is wrong with any session."""
        found = []
        for name in self.sessions():
            try:
                with self.session(name) as session:
                    found += [f"{name}: {problem.message}" for problem in session.check()]
            except SmpError as error:
                found.append(f"{name}: {error.message}")
        return tuple(found)

    def _opened(self, place: Path) -> Session:
        shared = self.path / GLOBAL
        return Session(
            place,
            self.clock,
            self.settings,
            shared=None if place == shared else shared,
            home=Home(
                self.path,
                self.settings,
                lambda: self.key_folder,
                self.anonymize_session,
                self.surroundings,
            ),
        )

    def _store_at(self, path: str | os.PathLike[str]) -> Store:
        return Store.init(path, clock=self.clock)

    def _new_id(self, given: str | None, now: datetime) -> str:
        if given is None:
            return f"session-{now:%Y-%m-%d}-{secrets.token_hex(3)}"
        text = str(given)
        if text != given or not _SESSION_ID.fullmatch(text) or _DEVICE.fullmatch(text):
            raise InvalidError(
                f"{shown(given)} is no id for a session",
                hint="1 to 64 letters, digits, '-' or '_', first a letter or digit",
            )
        taken = {name.lower(): name for name in (*self.sessions(), GLOBAL)}
        if given.lower() in taken:
            raise AlreadyExistsError(
                f"session {taken[given.lower()]} exists", hint="choose another id, or use it"
            )
        return given

    def _created(
        self,
        place: Path,
        name: str,
        now: datetime,
        user: str | None,
        agents: Iterable[str],
        context: Mapping[str, object] | None,
        tags: Iterable[str],
        overrides: Mapping[str, object] = _NOTHING,
    ) -> Session:
        identity = Identity(new_tag(), creator=True)
        metadata: dict[str, Value] = {
            "id": name,
            "uid": secrets.token_hex(16),
            "format": records.FORMAT,
            "rule": records.RULE,
            "created_at": format_time(now),
            "replica": identity.tag,
        }
        rules = self.settings.redaction.overridden(overrides, "overrides")
        rules.name(name, "the id of a session")
        if user is not None:
            agent_name(rules.name(user, "the name of a user"))
            metadata["user"] = check_text(user, "user")
        if isinstance(agents, str):
            raise InvalidError(f"agents are a list of names, not {shown(agents)}")
        metadata["agents"] = [
            agent_name(rules.name(agent, "the name of an agent")) for agent in agents
        ]
        if context is not None and not isinstance(context, Mapping):
            raise InvalidError(f"a context is a mapping, not {shown(context)}")
        said = rules.cleaned(None, {"context": dict(context or {})}).fields
        metadata["context"] = check_value(said["context"], "context")
        metadata["tags"] = list(check_tags(rules.names(tags, "a tag")))
        if overrides:
            metadata["overrides"] = check_value(rules.settings(overrides), "overrides")
        with reporting(f"session {name}"):
            _build(
                place,
                metadata,
                identity,
                agent_name(user or "user"),
                now,
                durable=self.settings.durable,
            )
        return self._opened(place)


def _build(
    place: Path,
    metadata: Mapping[str, Value],
    identity: Identity,
    author: str,
    now: datetime,
    *,
    durable: bool,
) -> None:
    """Make a session aside and move it into its place, whole."""
    _sweep(place.parent)
    aside = place.parent / f".new-{secrets.token_hex(8)}"
    try:
        layout.create(aside)
        local = Local(aside / ".git")
        local.identify(aside, identity, place)
        local.note_boot()
        replica = {"tag": identity.tag, "registered_at": format_time(now)}
        files = {
            **layout.TRACKED,
            "metadata.yaml": dialect.write(metadata).encode(),
            f"replicas/{identity.tag}.yaml": dialect.write(replica).encode(),
        }
        _first_commit(aside, files, identity, author, now, durable=durable)
        try:
            aside.rename(place)
        except OSError as error:
            if place.exists():
                raise AlreadyExistsError(f"session {place.name} exists") from error
            raise
        if durable:
            disk.force_folder(place.parent)
            disk.force_folder(place.parent.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _sweep(folder: Path) -> None:
    """Remove the sessions that a dead process left half-made."""
    for aside in folder.glob(".new-*"):
        with suppress(FileNotFoundError):
            if time.time() - aside.stat().st_mtime > _ABANDONED_SECONDS:
                shutil.rmtree(aside, ignore_errors=True)


def _first_commit(
    folder: Path,
    files: Mapping[str, bytes],
    identity: Identity,
    author: str,
    now: datetime,
    *,
    durable: bool,
) -> None:
    repository = Repository(folder, durable=durable)
    blobs = {path: Object(BLOB, data) for path, data in files.items()}
    edits = {path: blob.id for path, blob in blobs.items()}
    tree, trees = with_files(repository, EMPTY_TREE, edits)
    text = messages.write((), author, subject=messages.CREATE)
    commit = Object(
        COMMIT,
        write_commit(
            tree,
            (),
            *identity.signs(author, now),
            text,
        ),
    )
    with repository.store([*blobs.values(), *trees, commit]) as written:
        for path, data in files.items():
            target = folder / path
            target.parent.mkdir(mode=0o700, exist_ok=True)
            target.write_bytes(data)
            target.chmod(0o600)
        staging.refresh(repository, tree)
        # A repository without its settings could not be opened after a power cut.
        written.keep_files(folder)
        repository.publish(MAIN, None, CommitId(commit.id), written)
    repository.close()


def _is_store(place: Path) -> bool:
    return (place / "active").is_dir() and (place / "config.yaml").is_file()


def _absolute(path: str | os.PathLike[str]) -> Path:
    if "\0" in os.fspath(path):
        raise NotStoreError(f"{shown(path)} is no path")
    return Path(path).absolute()


def _store_at(path: Path) -> Path:
    try:
        found = [place for place in (path, path / PLACE) if _is_store(place)]
        there = path.exists()
    except OSError as error:
        raise NotStoreError(f"{shown(str(path))} cannot be opened: {error.strerror}") from error
    if found:
        return found[0]
    if not there:
        raise NotStoreError(f"{path} does not exist", hint="smp init makes a store")
    raise NotStoreError(f"{path} is no store", hint="smp init makes one; a store holds config.yaml")
