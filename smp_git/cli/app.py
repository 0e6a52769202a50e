"""The program `smp`: its options, errors, and the store and session that a command is about."""

from __future__ import annotations

import inspect
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeVar

import typer

from smp_git.cli.terminal import forget_notes, note, report, say
from smp_git.model.errors import (
    InvalidError,
    NotFoundError,
    NotStoreError,
    SessionArchivedError,
    SessionNotFoundError,
    SmpError,
)
from smp_git.session import Session
from smp_git.store import Store

# Of commands in several rooms.
Id = Annotated[str, typer.Argument(metavar="ID", help="Memory, e.g. DEC-0042 or DEC-42")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="REV|TIME",
        help="As of this revision or time: HEAD~3, a commit, '2 days ago'",
    ),
]
Agent = Annotated[
    str | None, typer.Option("-a", "--agent", help="Agent making the write [env: SMP_AGENT]")
]


def text_from(given: str | None, file: Path | None) -> str:
    """Return the text: an argument, a file, or standard input for `-`."""
    if file is not None and given not in (None, "-"):
        raise InvalidError("both text and --file are given", hint="leave one out")
    if file is not None:
        try:
            return _decoded(file.read_bytes(), str(file))
        except OSError as error:
            raise InvalidError(f"cannot read {file}: {error.strerror}") from None
    if given == "-":
        return _decoded(sys.stdin.buffer.read(), "standard input")
    if given is None:
        raise InvalidError(
            "no text", hint="give it as an argument, with --file, or - for standard input"
        )
    return given


def text_of_file(file: Path) -> str:
    """Return the text of a file, or standard input for `-`."""
    return text_from("-", None) if str(file) == "-" else text_from(None, file)


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(f"{what} is not UTF-8 at byte {error.start}") from None


def fields_from(given: list[str]) -> dict[str, object]:
    """Return the fields of `name=value` options; a value that is valid JSON is parsed."""
    out: dict[str, object] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidError(f"{item!r} is not a field", hint="a field is name=value")
        out[name] = value_from(value)
    return out


def value_from(text: str) -> object:
    """Return what an option says: the value if it is valid JSON, else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def links_from(given: list[str]) -> list[tuple[str, str]]:
    """Return the links of `relation:id` options."""
    out = []
    for item in given:
        relation, colon, target = item.partition(":")
        if not colon:
            raise InvalidError(f"{item!r} is not a link", hint="a link is resolves:FIND-0001")
        out.append((relation, target))
    return out


_F = TypeVar("_F", bound=Callable[..., Any])

_ORDER = (
    "demo", "init", "new", "use", "sessions", "archive", "unarchive", "maintain", "stats", "info", "config", "add", "show", "list", "edit", "resolve",
    "supersede", "pin", "unpin", "link", "state", "query", "similar", "related", "context",
    "watch", "topics", "timeline", "agents", "summary", "aggregate", "explain", "log", "diff",
    "blame", "undo", "rollback", "path", "commit", "check", "repair", "branch", "switch", "merge", "tag",
    "conflicts", "resolve-conflict", "import", "export", "migrate", "size", "compact",
    "compacted", "bring-back", "recall", "recall-test",
)  # fmt: skip


class _Command(NamedTuple):
    """A command, and what its help ends with."""

    work: Callable[..., Any]
    example: str
    hidden: bool


_commands: Final[dict[str, _Command]] = {}
# The sessions that this call has opened.
_in_use: Final[list[Session]] = []
# So many sentences about damage are read; more are not.
_TOLD: Final = 10
# What the common options of this call say.
_given: Final[dict[str, Any]] = {}


def command(
    name: str | None = None, *, example: str = "", hidden: bool = False
) -> Callable[[_F], _F]:
    """Add a command; its docstring is its help, `example` the last line of it."""

    def add(work: _F) -> _F:
        _commands[name or work.__name__] = _Command(work, example, hidden)
        return work

    return add


def homes() -> dict[str, str]:
    """Return the module of each command that is loaded, by name."""
    return {name: each.work.__module__ for name, each in _commands.items()}


def program(only: str | None = None) -> typer.Typer:
    """Return the program, with the commands that are loaded or one of them."""
    app = typer.Typer(
        context_settings={"help_option_names": ["-h", "--help"]},
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        help="Durable memory for AI agents: sessions of YAML and Markdown in Git, every write a commit",
    )
    app.callback()(_common)
    # In the order in which a newcomer meets them.
    names = sorted(
        _commands, key=lambda name: _ORDER.index(name) if name in _ORDER else len(_ORDER)
    )
    for name in names if only is None else [only]:
        each = _commands[name]
        epilog = f"Example: {each.example}" if each.example else None
        app.command(name, epilog=epilog, hidden=each.hidden)(_with_common(each.work))
    return app


def _common(
    common_session: Annotated[
        str | None,
        typer.Option(
            "-s",
            "--session",
            help="Session id, or a unique prefix of it [env: SMP_SESSION]",
            metavar="ID",
        ),
    ] = None,
    common_branch: Annotated[
        str | None,
        typer.Option("--branch", help="Branch to work on [env: SMP_BRANCH]", metavar="NAME"),
    ] = None,
    common_root: Annotated[
        str | None,
        typer.Option("--root", help="Folder of the store [env: SMP_ROOT]", metavar="DIR"),
    ] = None,
    common_folder: Annotated[
        str | None, typer.Option("-C", help="Run as if started in this folder", metavar="DIR")
    ] = None,
    common_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object instead of text")
    ] = False,
) -> None:
    """Note what is before the command."""
    _given.clear()
    _note(locals())


_COMMON: Final = inspect.signature(_common, eval_str=True).parameters
_PREFIX: Final = "common_"


def _note(found: Mapping[str, Any]) -> None:
    _given.update({name.removeprefix(_PREFIX): value for name, value in found.items() if value})


def common_in(found: Mapping[str, Any]) -> list[str]:
    """Return which common options the parameters of a command give."""
    return [name.removeprefix(_PREFIX) for name in _COMMON if found.get(name)]


def _with_common(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that takes the common options too, and tells what went wrong."""

    @wraps(work)
    def run(**given: Any) -> Any:
        _note({name: given.pop(name) for name in _COMMON})
        with _boundary():
            return work(**given)

    own = inspect.signature(work, eval_str=True)
    later = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in _COMMON.values()]
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *later])  # type: ignore[attr-defined]
    return run


@contextmanager
def _boundary() -> Iterator[None]:
    """Turn every SmpError into a message on stderr and its exit status."""
    _in_use.clear()
    forget_notes()
    try:
        yield
        for session in _in_use:
            _tell_damage(session)
    except SmpError as error:
        report(error, as_json=bool(_given.get("json")))
        raise typer.Exit(error.exit_status) from None
    except BrokenPipeError:
        # Whoever reads has seen enough; the interpreter must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None


def setting(ctx: typer.Context, name: str, variable: str | None = None) -> str | None:
    """Return a common option: from the command line, else from the environment."""
    given = _given.get(name)
    return str(given) if given else (os.environ.get(variable) if variable else None)


def asker(ctx: typer.Context, given: str | None) -> str | None:
    """Return who writes or asks: as given, else from the environment."""
    return given or setting(ctx, "agent", "SMP_AGENT")


def folder(ctx: typer.Context) -> Path:
    """Return the folder that the command runs in."""
    return Path(setting(ctx, "folder") or ".").absolute()


def emit(ctx: typer.Context, value: dict[str, object], text: str | Callable[[], str]) -> None:
    """Print the JSON object, or the text for people."""
    if _given.get("json"):
        say(json.dumps(value, ensure_ascii=False))
        return
    shown = text if isinstance(text, str) else text()
    if shown:
        say(shown, marked=True)


def store_of(ctx: typer.Context) -> Store:
    """Open the store: `--root`, `SMP_ROOT`, or the nearest from the folder up."""
    root = setting(ctx, "root", "SMP_ROOT")
    here = folder(ctx)
    if root:
        return Store.open(here / root)
    for place in (here, *here.parents):
        try:
            return Store.open(place)
        except NotStoreError:
            continue
    raise NotStoreError(f"no store in {here} or above", hint="smp init makes one")


def session_of(ctx: typer.Context) -> Session:
    """Open the session on its branch: `--branch`, `SMP_BRANCH`, the terminal's, or main."""
    store = store_of(ctx)
    session = _open(ctx, store)
    given = setting(ctx, "branch", "SMP_BRANCH")
    branch = given or _chosen_branch(store, session.id)
    if not branch:
        return session
    try:
        session.switch(branch)
    except NotFoundError as error:
        session.close()
        hint = error.hint if given else "it was chosen in this terminal; smp switch main goes back"
        raise NotFoundError(error.message, hint=hint) from None
    return session


@contextmanager
def reached(ctx: typer.Context) -> Iterator[Session]:
    """Open the session, from its archive if it is archived, into which it goes back."""
    try:
        session = session_of(ctx)
    except SessionArchivedError as error:
        with store_of(ctx).within_archive(str(error.session_id)) as archived:
            yield archived
        note(f"session {error.session_id} is archived again")
        return
    with session:
        yield session


def main_of(ctx: typer.Context) -> Session:
    """Open the session: `-s`, `SMP_SESSION`, the terminal's current one, or the only one."""
    return _open(ctx, store_of(ctx))


def _tell_damage(session: Session) -> None:
    """Tell what could not be read, each once."""
    found = session.passed_over
    for each in found[:_TOLD]:
        note(each)
    if len(found) > _TOLD:
        note(f"and {len(found) - _TOLD} more; smp check names them")


def _open(ctx: typer.Context, store: Store) -> Session:
    """Open the session that is meant, and tell what plain Git took off it, once."""
    session = store.session(name_of(ctx, store))
    _in_use.append(session)
    for each in session.news():
        note(each)
    return session


def name_of(ctx: typer.Context, store: Store) -> str:
    """Return the session that is meant: `-s`, `SMP_SESSION`, the terminal's, or the only one."""
    named = setting(ctx, "session", "SMP_SESSION") or current(store)
    if named:
        return named
    known = store.sessions()
    if len(known) == 1:
        return known[0]
    if not known:
        raise NotFoundError(f"the store at {store.path} has no session", hint="smp new makes one")
    raise NotFoundError(
        f"{len(known)} sessions, and none is current in this terminal",
        hint="name one with -s ID, or choose one with smp use ID",
    )


def make_current(store: Store, session_id: str, branch: str = "") -> None:
    """Let commands of this terminal mean this session, and a branch of it."""
    place = store.path / ".current"
    place.mkdir(mode=0o700, exist_ok=True)
    (place / _terminal()).write_text(f"{session_id}\n{branch}\n")


def current(store: Store) -> str | None:
    """Return the session that this terminal's commands mean, or None."""
    name = _chosen(store)[0]
    try:
        return store.find_session(name) if name else None
    except SessionArchivedError as error:
        return error.session_id
    except SessionNotFoundError:
        return None


def _chosen_branch(store: Store, session_id: str) -> str | None:
    """Return the branch of a session that this terminal's commands mean, or None."""
    session, branch = _chosen(store)
    return branch or None if session == session_id else None


def _chosen(store: Store) -> tuple[str, str]:
    """Return the session and the branch that were chosen in this terminal, empty if none were."""
    try:
        lines = (store.path / ".current" / _terminal()).read_text().split("\n")
    except OSError:
        return "", ""
    return lines[0], lines[1] if lines[1:] else ""


def _terminal() -> str:
    """Return what tells this terminal from others: its session of processes and when it began."""
    if not hasattr(os, "getsid"):
        return os.environ.get("WT_SESSION", "console")
    leader = os.getsid(0)
    try:
        # The 22nd field is the start time, so that a number used again is another terminal.
        started = Path(f"/proc/{leader}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        started = "0"
    return f"{sys.platform}-{leader}-{started}"
