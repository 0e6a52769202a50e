"""The program `smp`: its commands, and what every one of them begins and ends with."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, Final, NamedTuple, TypeVar

import typer

from smp_git.cli.catalogue import ROOMS
from smp_git.cli.common import COMMON, SAID, common_options, take_note
from smp_git.cli.place import in_use, tell_damage
from smp_git.cli.terminal import forget_notes, report
from smp_git.model.errors import (
    SmpError,
)

_F = TypeVar("_F", bound=Callable[..., Any])


class _Command(NamedTuple):
    """A command, and what its help ends with."""

    work: Callable[..., Any]
    example: str
    hidden: bool


_commands: Final[dict[str, _Command]] = {}


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
    app.callback()(common_options)
    order = list(ROOMS)
    for name in sorted(_commands, key=order.index) if only is None else [only]:
        each = _commands[name]
        epilog = f"Example: {each.example}" if each.example else None
        app.command(name, epilog=epilog, hidden=each.hidden)(_with_common(each.work))
    return app


def _with_common(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that takes the common options too, and tells what went wrong."""

    @wraps(work)
    def run(**given: Any) -> Any:
        take_note({name: given.pop(name) for name in COMMON})
        with _boundary():
            return work(**given)

    own = inspect.signature(work, eval_str=True)
    later = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in COMMON.values()]
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *later])  # type: ignore[attr-defined]
    return run


@contextmanager
def _boundary() -> Iterator[None]:
    """Turn every SmpError into a message on stderr and its exit status."""
    in_use.clear()
    forget_notes()
    try:
        yield
        for session in in_use:
            tell_damage(session)
    except SmpError as error:
        report(error, as_json=bool(SAID.get("json")))
        raise typer.Exit(error.exit_status) from None
    except BrokenPipeError:
        # Whoever reads has seen enough; the interpreter must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(0) from None
