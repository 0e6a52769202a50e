"""Options of every command, and what they say in this call."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from smp_git.cli.screen import folded, page
from smp_git.cli.terminal import note, say
from smp_git.model.errors import InvalidError
from smp_git.model.memory import agent_name

# What the common options of this call say.
SAID: Final[dict[str, Any]] = {}


def common_options(
    common_session: Annotated[
        str | None,
        typer.Option(
            "-s",
            "--session",
            help="Session id, or a unique prefix of it [env: SMP_SESSION]",
            metavar="SESSION",
        ),
    ] = None,
    common_branch: Annotated[
        str | None,
        typer.Option("--branch", help="Branch to work on [env: SMP_BRANCH]", metavar="BRANCH"),
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
    take_note(locals())


COMMON: Final = inspect.signature(common_options, eval_str=True).parameters
_PREFIX: Final = "common_"


def take_note(found: Mapping[str, Any]) -> None:
    """Note what the common options of this call say."""
    SAID.update({name.removeprefix(_PREFIX): value for name, value in found.items() if value})


def common_in(found: Mapping[str, Any]) -> list[str]:
    """Return which common options the parameters of a command give."""
    return [name.removeprefix(_PREFIX) for name in COMMON if found.get(name)]


def setting(ctx: typer.Context, name: str, variable: str | None = None) -> str | None:
    """Return a common option: from the command line, else from the environment."""
    given = SAID.get(name)
    return str(given) if given else (os.environ.get(variable) if variable else None)


def asker(ctx: typer.Context, given: str | None) -> str | None:
    """Return who writes or asks: as given, else from the environment; tell how that is written."""
    who = given if given is not None else setting(ctx, "agent", "SMP_AGENT") or None
    with suppress(InvalidError):
        if who is not None and agent_name(who) != who:
            note(f"agent {who!r} is written {agent_name(who)}")
    return who


def folder(ctx: typer.Context) -> Path:
    """Return the folder that the command runs in."""
    return Path(setting(ctx, "folder") or ".").absolute()


def emit(
    ctx: typer.Context,
    value: dict[str, object],
    text: str | Callable[[], str],
    *,
    empty: str = "",
    paged: bool = False,
    newest_last: bool = False,
    copied: bool = False,
    changes: bool = True,
) -> None:
    """Print the JSON object, or the painted text for people; an empty one is told as `empty`.

    A terminal gets lines that fit it, but for what is `copied` from there, e.g. a path.
    Without `changes`, what is printed is all that the call was for; so it is with a plan.
    """
    SAID["is_only_said"] = not changes or bool(value.get("dry_run"))
    if SAID.get("json"):
        say(json.dumps(value, ensure_ascii=False))
        return
    whole = text if isinstance(text, str) else text()
    shown = whole if copied else folded(whole)
    if not shown and empty:
        note(empty)
    elif shown and paged:
        page(shown, newest_last=newest_last)
    elif shown:
        say(shown, painted=True)
