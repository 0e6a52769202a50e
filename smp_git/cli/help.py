"""Help: of the program, of a group of commands, of one command; the same for a terminal and for pages."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from smp_git import __version__
from smp_git.cli.app import build
from smp_git.cli.catalogue import ENTRIES, GROUPS, ROOMS
from smp_git.cli.screen import columns, folded, page
from smp_git.cli.terminal import paint
from smp_git.model.errors import UsageError, nearest
from smp_git.model.memory import SEARCHED, kind_named

# What a newcomer needs, as it is typed.
_FIRST: Final = (
    "new [SESSION]", "add KIND TEXT", "list", "show ID", "query TEXT",
    "edit ID", "log", "undo", "delete ID", "sync",
)  # fmt: skip
# What takes fields of a kind.
_WITH_FIELDS: Final = ("add", "edit", "supersede")
_ASKING: Final = frozenset(("-h", "--help"))
# What other programs call it.
_ELSEWHERE: Final = {
    "ask": "query", "find": "query", "grep": "query", "search": "query",
    "cat": "show", "get": "show", "view": "show",
    "ls": "list", "history": "log", "revert": "undo", "checkout": "switch",
    "create": "add", "note": "add", "remember": "add", "save": "add", "store": "add", "write": "add",
    "change": "edit", "update": "edit",
    "erase": "delete", "forget": "delete", "remove": "delete", "rm": "delete",
    "pull": "sync", "doctor": "check", "fsck": "check", "gc": "maintain",
    "version": "--version", "unlink": "link --remove", "drop": "branch --drop",
    "serve": "web or mcp", "server": "web or mcp", "ui": "web",
}  # fmt: skip
# A word of a shell, an option with its value; and what ends a line that goes on.
_WORD: Final = re.compile(r"(?:--?[\w-]+ (?!-))?(?:'[^']*'|\"[^\"]*\"|\S)+")
_GOES_ON: Final = " \\"
# The common options that have a value, when they are before the command.
_VALUED: Final = frozenset(("-s", "--session", "--branch", "--root", "-C"))
_TITLE: Final = "smp: durable memory for AI agents, in Git"
# Lines of help are no longer than this, however wide the terminal is.
_WIDEST: Final = 100
_PIPE: Final = 80
# A name that is longer stands on a line of its own.
_LONGEST: Final = 28


class Param(NamedTuple):
    """An argument or an option: its names, what stands for its value, and what it does."""

    names: tuple[str, ...]
    place: str
    text: str
    default: str
    is_argument: bool
    is_required: bool
    repeats: bool

    @property
    def label(self) -> str:
        """The option or argument as it is typed."""
        if self.is_argument:
            return self.place
        return f"{', '.join(self.names)} {self.place}".rstrip()


class Description(NamedTuple):
    """A command: its title, what more is to be said, and what it takes."""

    name: str
    title: str
    more: tuple[str, ...]
    arguments: tuple[Param, ...]
    options: tuple[Param, ...]
    example: str

    @property
    def usage(self) -> str:
        """The command as it is typed."""
        return " ".join(("smp", self.name, *(each.place for each in self.arguments)))


def answer(arguments: Sequence[str], name: str | None) -> bool:
    """Print the help that is asked for; return whether any was.

    `name` is the command that the arguments name.
    """
    before = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    asked = not _ASKING.isdisjoint(before)
    if not arguments:
        page(folded(bare()))
    elif asked:
        page(folded(about([name] if name else [])))
    elif name is None and "--version" in before:
        page(f"smp {__version__}")
    else:
        return False
    return True


def command_in(arguments: Sequence[str]) -> str | None:
    """Return the first argument that is neither a common option nor the value of one."""
    rest = iter(arguments)
    for each in rest:
        if each in _VALUED:
            next(rest, None)
        elif not each.startswith("-"):
            return each
        elif each != "--json" and each.partition("=")[0] not in _VALUED:
            return None
    return None


def about(words: Sequence[str]) -> str:
    """Return the help of a command, of a group or of the program; raise UsageError."""
    text = " ".join(words).removeprefix("smp ")
    group = next((group for group in GROUPS if group.lower() == text.lower()), None)
    if text in ROOMS:
        return _of_command(describe(text))
    if text and not group:
        raise unknown(text)
    return "\n".join(_group(group)) if group else every()


def unknown(name: str) -> UsageError:
    """Return the error for a command that there is not."""
    near = _ELSEWHERE.get(name) or nearest(name, ENTRIES)
    hint = f"did you mean {near}?" if near else "smp help lists the commands"
    return UsageError(f"no command {name!r}", hint=hint)


def bare() -> str:
    """Return what a newcomer is told."""
    lines = [_TITLE, ""]
    lines += _rows([(f"smp {line}", ENTRIES[line.split()[0]].summary) for line in _FIRST])
    lines += ["", *_folded("smp demo shows what it can do, and leaves it on the disk to look at.")]
    lines += _folded("smp help lists all commands, and smp help COMMAND explains one.")
    return "\n".join(lines)


def every() -> str:
    """Return all commands by group, and the options of every command."""
    lines = [_TITLE, "", "usage: smp COMMAND [ARGUMENTS] [OPTIONS]"]
    wide = max(map(len, ENTRIES))
    for name in GROUPS:
        lines += ["", *_group(name, wide)]
    lines += ["", paint("bold", "Options of every command")]
    shared = [(each.label, each.text) for each in common()]
    lines += _rows(
        [*shared, ("-h, --help", "Explain the command"), ("--version", "Print the version")]
    )
    lines += ["", *_folded("smp help COMMAND explains a command. Also: man smp, git smp COMMAND.")]
    return "\n".join(lines)


def _group(name: str, wide: int = 0) -> list[str]:
    rows = _rows([(each, entry.summary) for each, entry in GROUPS[name].items()], wide)
    return [paint("bold", name), *rows]


def _of_command(found: Description) -> str:
    lines = [f"usage: {paint('bold', found.usage)} [OPTIONS]", "", found.title]
    for paragraph in found.more:
        lines += ["", *_folded(paragraph)]
    if found.arguments:
        lines += ["", paint("bold", "Arguments"), *_params(found.arguments)]
    if found.options:
        lines += ["", paint("bold", "Options"), *_params(found.options)]
    if found.name in _WITH_FIELDS:
        rows = [(kind.name, ", ".join(kind.fields)) for kind in map(kind_named, SEARCHED)]
        lines += ["", paint("bold", "Fields; smp fields KIND explains them"), *_rows(rows)]
    lines += ["", paint("bold", "Options of every command"), *_params(common())]
    if found.example:
        lines += ["", paint("bold", "Example"), *_typed(found.example)]
    return "\n".join(lines)


def _typed(example: str) -> list[str]:
    """Return a command that can be copied to a shell, on lines that fit the terminal."""
    room = columns()
    first, *rest = _WORD.findall(example)
    lines = [f"  {first}"]
    for word in rest:
        if room is not None and len(lines[-1]) + len(word) + len(_GOES_ON) + 1 > room:
            lines[-1] += _GOES_ON
            lines.append(f"    {word}")
        else:
            lines[-1] += f" {word}"
    return lines


def _params(params: Sequence[Param]) -> list[str]:
    return _rows([(each.label, told(each)) for each in params])


def told(param: Param) -> str:
    """Return what an option or argument does, with its default."""
    again = " (may be repeated)" if param.repeats and not param.is_argument else ""
    default = f" ({param.default} by default)" if param.default else ""
    return f"{param.text}{again}{default}"


def _rows(rows: Sequence[tuple[str, str]], wide: int = 0) -> list[str]:
    """Return lines of two columns, the second folded."""
    wide = wide or max((len(name) for name, _ in rows if len(name) <= _LONGEST), default=_LONGEST)
    lines = []
    for name, text in rows:
        first, *rest = textwrap.wrap(text, _room() - wide - 4) or [""]
        head = f"  {paint('cyan', name)}"
        lines += (
            [f"{head}{' ' * (wide - len(name))}  {first}"]
            if len(name) <= wide
            else [head, f"{' ' * (wide + 4)}{first}"]
        )
        lines += [f"{' ' * (wide + 4)}{line}" for line in rest]
    return lines


def _folded(text: str) -> list[str]:
    return textwrap.wrap(text, _room())


def _room() -> int:
    return min(columns() or _PIPE, _WIDEST)


def describe(name: str) -> Description:
    """Return what a command says of itself."""
    command = _group_of(name).commands[name]
    title, _, rest = (command.help or "").partition("\n")
    more = [" ".join(part.split()) for part in rest.split("\n\n") if part.strip()]
    shared = {each.names for each in common()}
    params = [each for param in command.params if (each := _param(param)).names not in shared]
    return Description(
        name,
        title,
        tuple(more),
        tuple(each for each in params if each.is_argument),
        tuple(each for each in params if not each.is_argument),
        (command.epilog or "").removeprefix("Example: "),
    )


def common() -> tuple[Param, ...]:
    """Return the options of every command."""
    return tuple(_param(each) for each in _group_of("status").params)


def _group_of(name: str) -> Any:
    import typer.main  # noqa: PLC0415 - what is listed without it is listed at once

    return typer.main.get_command(build(name))


def _param(param: Any) -> Param:
    is_argument = param.param_type_name == "argument"
    is_flag = getattr(param, "is_flag", False)
    place = param.metavar or ("" if is_flag else param.name.upper())
    if is_argument and not param.required and not place.startswith("["):
        place = f"[{place}]"
    default = param.default if isinstance(param.default, str) and param.default else ""
    return Param(
        names=tuple(param.opts) if not is_argument else (param.name,),
        place=place,
        text=param.help or "",
        default=default or _counted(param),
        is_argument=is_argument,
        is_required=param.required,
        repeats=bool(getattr(param, "multiple", False)) or param.nargs == -1,
    )


def _counted(param: Any) -> str:
    """Return a default that is a number or a place."""
    value = param.default
    is_number = isinstance(value, int) and not isinstance(value, bool)
    return str(value) if value and (is_number or hasattr(value, "parts")) else ""
