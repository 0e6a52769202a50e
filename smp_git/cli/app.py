"""The program `smp`: one boundary for errors, the same options for every command."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from smp_git.model.errors import InvalidError, SmpError

# What was written elsewhere may move the cursor, rename the window or hide what follows.
_STEERING = re.compile(r"[\x00-\x08\x0b-\x0c\x0e-\x1f\x7f-\x9f]|\r(?!\n)")


def say(text: str, *, err: bool = False) -> None:
    """Print a line; a pipe and a file get it as it is."""
    stream = sys.stderr if err else sys.stdout
    # Whatever `color` says of colours: without it what looks like one is left out of a pipe.
    typer.echo(visible(text) if stream.isatty() else text, err=err, color=True)


def visible(text: str) -> str:
    """Return `text` with control characters written out, as JSON writes them."""
    return _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def text_from(given: str | None, file: Path | None, what: str = "text") -> str:
    """Return the text: an argument, a file, or the standard input for `-`."""
    if file is not None and given not in (None, "-"):
        raise InvalidError(f"both {what} and --file are given", hint="leave one out")
    if file is not None:
        try:
            return _decoded(file.read_bytes(), str(file))
        except OSError as error:
            raise InvalidError(f"cannot read {file}: {error.strerror}") from None
    if given == "-":
        return _decoded(sys.stdin.buffer.read(), "the standard input")
    if given is None:
        raise InvalidError(
            f"no {what}", hint="give it as an argument, with --file, or - for the standard input"
        )
    return given


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise InvalidError(f"{what} is not UTF-8 at byte {error.start}") from None


def fields_from(given: list[str]) -> dict[str, object]:
    """Return the fields of `name=value` options; a value that is JSON is taken as such."""
    out: dict[str, object] = {}
    for item in given:
        name, equals, value = item.partition("=")
        if not equals or not name:
            raise InvalidError(f"{item!r} is no field", hint="a field is name=value")
        out[name] = _value(value)
    return out


def _value(text: str) -> object:
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
            raise InvalidError(f"{item!r} is no link", hint="a link is resolves:FIND-0001")
        out.append((relation, target))
    return out


_F = TypeVar("_F", bound=Callable[..., Any])


def _remember(name: str) -> Callable[[Any, Any, Any], Any]:
    def callback(ctx: Any, _parameter: Any, value: Any) -> Any:
        if value not in (None, False):
            ctx.find_root().meta[name] = value
        return value

    return callback


def _option(*names: str, name: str, text: str, **more: Any) -> TyperOption:
    return TyperOption(
        param_decls=[*names], callback=_remember(name), expose_value=False, help=text, **more
    )


def _common() -> list[TyperOption]:
    """Return the options that every command takes, before or after its name."""
    return [
        _option(
            "-s",
            "--session",
            name="session",
            text="Session, or the beginning of its id [env: SMP_SESSION]",
            metavar="ID",
        ),
        _option(
            "--branch", name="branch", text="Branch to work on [env: SMP_BRANCH]", metavar="NAME"
        ),
        _option("--root", name="root", text="Folder of the store [env: SMP_ROOT]", metavar="DIR"),
        _option("-C", name="folder", text="Run as if started in this folder", metavar="DIR"),
        _option(
            "--json",
            name="json",
            text="Print one JSON object instead of text",
            is_flag=True,
            default=False,
        ),
    ]


_ORDER = (
    "demo", "init", "new", "use", "sessions", "info", "add", "show", "list", "edit", "resolve",
    "supersede", "pin", "unpin", "link", "state", "query", "similar", "related", "context",
    "watch", "topics", "timeline", "agents", "summary", "aggregate", "explain", "log", "diff",
    "blame", "undo", "rollback", "path", "commit", "check", "branch", "switch", "merge", "tag",
    "conflicts", "resolve-conflict",
)  # fmt: skip


class _Command(TyperCommand):
    """A command with the common options."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *_common()]


class _Program(TyperGroup):
    """Turns every SmpError into a message on stderr and its exit status."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.params = [*self.params, *_common()]

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the commands in the order in which a newcomer meets them."""
        known = super().list_commands(ctx)
        return [name for name in _ORDER if name in known] + [
            name for name in known if name not in _ORDER
        ]

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except SmpError as error:
            _report(error, as_json=bool(ctx.meta.get("json")))
            raise typer.Exit(error.exit_status) from None
        except BrokenPipeError:
            # Whoever reads has seen enough; the interpreter must not complain at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from None


def _report(error: SmpError, *, as_json: bool) -> None:
    if as_json:
        say(json.dumps({"error": error.as_json()}, ensure_ascii=False), err=True)
        return
    say(f"smp: {error.message}", err=True)
    if error.hint:
        say(f"hint: {error.hint}", err=True)


app = typer.Typer(
    cls=_Program,
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="A memory for AI agents that lasts: sessions of YAML and Markdown in Git, every write a commit",
)


def command(
    name: str | None = None, *, example: str = "", hidden: bool = False
) -> Callable[[_F], _F]:
    """Register a command; its docstring is its help, `example` the last line of it."""
    epilog = f"Example: {example}" if example else None
    return app.command(name, cls=_Command, epilog=epilog, hidden=hidden)


def setting(ctx: typer.Context, name: str, variable: str | None = None) -> str | None:
    """Return a common option: from the command line, else from the environment."""
    given = ctx.find_root().meta.get(name)
    return str(given) if given else (os.environ.get(variable) if variable else None)


def asker(ctx: typer.Context, given: str | None) -> str | None:
    """Return who writes or asks: as given, else from the environment."""
    return given or setting(ctx, "agent", "SMP_AGENT")


def folder(ctx: typer.Context) -> Path:
    """Return the folder that the command runs in."""
    return Path(setting(ctx, "folder") or ".").absolute()


def emit(ctx: typer.Context, value: dict[str, object], text: str | Callable[[], str]) -> None:
    """Print the JSON object, or the text for people."""
    if ctx.find_root().meta.get("json"):
        say(json.dumps(value, ensure_ascii=False))
        return
    shown = text if isinstance(text, str) else text()
    if shown:
        say(shown)


def note(text: str) -> None:
    """Tell a person something on stderr."""
    say(f"note: {text}", err=True)
