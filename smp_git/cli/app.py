"""The program `smp`: its commands, and what every one of them begins and ends with."""

from __future__ import annotations

import errno
import inspect
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from importlib import import_module
from typing import Any, Final, NamedTuple, TypeVar

import typer
from typer.core import TyperGroup

from smp_git.cli.catalogue import READING, ROOMS
from smp_git.cli.common import COMMON, SAID, common_options, take_note
from smp_git.cli.inputs import in_utc
from smp_git.cli.place import in_use, tell_damage
from smp_git.cli.progress import PROGRESS
from smp_git.cli.terminal import OutputError, drop, forget_notes, report
from smp_git.model.errors import InvalidError, SmpError, StorageError

_F = TypeVar("_F", bound=Callable[..., Any])
# As a shell has it for what was interrupted.
_INTERRUPTED: Final = 130


class _Command(NamedTuple):
    """A command, and what its help ends with."""

    work: Callable[..., Any]
    example: str
    hidden: bool


# These go on until a person ends them, leave the terminal to another program, or talk themselves.
_TALKING: Final = ("watch", "web", "mcp", "hook", "claude", "demo", "bisect", "completion", "help")

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


def build(name: str | None = None, cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """Return the program with the command `name` alone, or with all commands."""
    for room in [ROOMS[name]] if name else dict.fromkeys(ROOMS.values()):
        import_module(f"smp_git.cli.{room}")
    app = typer.Typer(
        cls=cls,
        # Help and completion are our own: typer's differ from version to version.
        context_settings={"help_option_names": []},
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )
    app.callback()(common_options)
    # Each command that is there is taken apart, with all its options, at every call.
    for each in [name] if name else ROOMS:
        found = _commands[each]
        epilog = f"Example: {found.example}" if found.example else None
        app.command(each, epilog=epilog, hidden=found.hidden)(_with_common(found.work))
    return app


def _with_common(work: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command that takes the common options too, and tells what went wrong."""
    own = inspect.signature(work, eval_str=True)
    times = [each.name for each in own.parameters.values() if _is_time(each.annotation)]

    @wraps(work)
    def run(**given: Any) -> None:
        take_note({name: given.pop(name) for name in COMMON})
        given |= {name: in_utc(given[name], is_end=name == "until") for name in times}
        # Inside typer too, which has other ideas of an interrupt and a closed pipe.
        with boundary():
            in_use.clear()
            forget_notes()
            name = str(SAID.get("command"))
            with nullcontext() if name in _TALKING else PROGRESS.of(f"smp {name}"):
                work(**given)
            for session in in_use:
                tell_damage(session)

    later = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in COMMON.values()]
    run.__signature__ = own.replace(parameters=[*own.parameters.values(), *later])  # type: ignore[attr-defined]
    return run


def _is_time(annotation: Any) -> bool:
    """Whether an option or argument says that it takes a time."""
    (about, *_) = getattr(annotation, "__metadata__", [None])
    return "TIME" in (getattr(about, "metavar", None) or "")


@contextmanager
def boundary() -> Iterator[None]:
    """Turn what went wrong into a message on stderr and an exit status."""
    try:
        yield
    except OutputError as error:
        report(error)
        # What is done is done, and is not to be done once more.
        is_done = SAID.get("command") not in READING and not SAID.get("is_only_said")
        sys.exit(0 if is_done else error.exit_status)
    except SmpError as error:
        report(error, as_json=bool(SAID.get("json")))
        sys.exit(error.exit_status)
    except KeyboardInterrupt:
        report(SmpError("interrupted"))
        sys.exit(_INTERRUPTED)
    except BrokenPipeError:
        # Whoever reads has seen enough.
        drop(sys.stdout)
        sys.exit(0)
    except OSError as error:
        told = _told(error)
        report(told, as_json=bool(SAID.get("json")))
        sys.exit(told.exit_status)


def _told(error: OSError) -> SmpError:
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.ENAMETOOLONG:
        return InvalidError(f"{where}{error.strerror}", hint="nothing has such a name")
    return StorageError(
        f"{where}{error.strerror or error}", hint="check that the folder is there, and who owns it"
    )
