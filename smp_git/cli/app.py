"""The program `smp`: one boundary for errors, the same options for every command."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

from smp_git.cli.terminal import say
from smp_git.model.errors import SmpError

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
        _option("-s", "--session", name="session", text="Session, or the beginning of its id [env: SMP_SESSION]", metavar="ID"),
        _option("--branch", name="branch", text="Branch to work on [env: SMP_BRANCH]", metavar="NAME"),
        _option("--root", name="root", text="Folder of the store [env: SMP_ROOT]", metavar="DIR"),
        _option("-C", name="folder", text="Run as if started in this folder", metavar="DIR"),
        _option("--json", name="json", text="Print one JSON object instead of text", is_flag=True, default=False),
    ]  # fmt: skip


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
        return [name for name in _ORDER if name in known] + [name for name in known if name not in _ORDER]  # fmt: skip

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
