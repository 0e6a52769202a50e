"""Writes the pages of docs/man from the program: `python -m tests.man_pages`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from smp_git import __version__
from smp_git.cli.catalogue import ENTRIES, GROUPS
from smp_git.cli.help import Description, Param, common, describe, told
from tests.support import ROOT

FOLDER: Final = ROOT / "docs/man"
_ENVIRONMENT: Final = (
    ("SMP_ROOT", "Folder of the store, as --root."),
    ("SMP_SESSION", "Session, as --session."),
    ("SMP_BRANCH", "Branch, as --branch."),
    ("SMP_AGENT", "Who writes, as --agent and --by."),
    ("SMP_PAGER, PAGER", "Pager for what is longer than the terminal; cat for none."),
    ("NO_COLOR, FORCE_COLOR", "No colour on a terminal, or colour in a pipe."),
    ("VISUAL, EDITOR", "Editor of smp add and smp edit without a text."),
)


def pages() -> dict[str, str]:
    """Return every page by its file."""
    found = {f"smp-{name}.1": _of_command(describe(name)) for name in ENTRIES}
    # `git smp --help` asks for this one.
    return {"smp.1": _program(), "git-smp.1": ".so man1/smp.1\n", **found}


def _program() -> str:
    lines = [
        *_head("smp", "durable memory for AI agents, in Git"),
        ".B smp\n.I COMMAND\n[\\fIARGUMENTS\\fR] [\\fIOPTIONS\\fR]",
        ".SH DESCRIPTION",
        "A session is a Git repository of YAML and Markdown files, and every write is a commit.",
        "Results go to standard output, messages and notes to standard error.",
        "Each command has a page of its own, e.g.",
        "\\fBsmp\\-add\\fR(1).",
    ]
    for group, entries in GROUPS.items():
        lines.append(f'.SH "{group.upper()}"')
        for name, entry in entries.items():
            lines += [".TP", f"\\fBsmp\\-{_plain(name)}\\fR(1)", _plain(entry.summary)]
    lines += [".SH OPTIONS", *_params(common())]
    lines += [".TP", "\\fB\\-h\\fR, \\fB\\-\\-help\\fR", "Explain the command"]
    lines += [".TP", "\\fB\\-\\-version\\fR", "Print the version"]
    lines.append(".SH ENVIRONMENT")
    for name, text in _ENVIRONMENT:
        lines += [".TP", f"\\fB{name}\\fR", _plain(text)]
    lines += [".SH SEE ALSO", "\\fBgit\\fR(1)"]
    return "\n".join(lines) + "\n"


def _of_command(found: Description) -> str:
    words = " ".join(f"\\fI{_plain(each.place)}\\fR" for each in found.arguments)
    lines = [
        *_head(f"smp-{found.name}", found.title[0].lower() + found.title[1:]),
        f"\\fBsmp {_plain(found.name)}\\fR {words} [\\fIOPTIONS\\fR]",
        ".SH DESCRIPTION",
        f"{_plain(found.title)}.",
    ]
    for paragraph in found.more:
        lines += [".PP", _plain(paragraph)]
    if found.arguments:
        lines += [".SH ARGUMENTS", *_params(found.arguments)]
    lines.append(".SH OPTIONS")
    lines += _params(found.options)
    lines += [*_params(common()), ".SH EXAMPLE", ".EX", _plain(found.example), ".EE"]
    lines += [".SH SEE ALSO", "\\fBsmp\\fR(1)"]
    return "\n".join(lines) + "\n"


def _head(name: str, title: str) -> list[str]:
    return [
        f'.\\" Made by `python -m tests.man_pages`.\n.TH {name.upper()} 1 "" "smp {__version__}"',
        ".SH NAME",
        f"{_plain(name)} \\- {_plain(title)}",
        ".SH SYNOPSIS",
    ]


def _params(params: Sequence[Param]) -> Iterator[str]:
    for each in params:
        if each.is_argument:
            label = f"\\fI{_plain(each.place)}\\fR"
        else:
            label = ", ".join(f"\\fB{_plain(name)}\\fR" for name in each.names)
            label += f" \\fI{_plain(each.place)}\\fR" if each.place else ""
        yield from (".TP", label, _plain(told(each)))


def _plain(text: str) -> str:
    """Return a text as roff prints it."""
    safe = text.replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{safe}" if safe.startswith((".", "'")) else safe


def write() -> None:
    """Write the pages, and remove those of commands that are gone."""
    FOLDER.mkdir(exist_ok=True)
    made = pages()
    for old in FOLDER.glob("*.1"):
        if old.name not in made:
            old.unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text)


if __name__ == "__main__":
    write()
