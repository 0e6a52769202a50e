"""Commands that show and change settings."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Final

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit, setting
from smp_git.cli.inputs import fields_from
from smp_git.cli.place import session_of, store_of
from smp_git.cli.screen import pairs
from smp_git.format import yamlfile
from smp_git.model.errors import InvalidError
from smp_git.model.settings import row_of, table

if TYPE_CHECKING:
    from smp_git.keep.configure import Configured

_ACTIONS: Final = ("list", "get", "set", "unset")
# A setting and its value.
_PAIR: Final = 2


@command(example="smp config set trash_days=90")
def config(
    ctx: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="[list|get|set|unset]", help="What to do")
    ] = "list",
    name: Annotated[
        list[str] | None,
        typer.Argument(metavar="[SETTING|SETTING=VALUE]...", help="Settings; for set with values"),
    ] = None,
    here: Annotated[
        bool, typer.Option("--here", help="For the session of this terminal alone; so does -s ID")
    ] = False,
) -> None:
    """Show or change settings

    They are those of the store, or with -s ID of one session, which override the
    store's. Each is shown with where it is set. As in git config, a name alone shows a
    setting, and with a value behind it sets it.
    """
    action, given = _meant(action, name or [])
    in_session = here or setting(ctx, "session") is not None
    with session_of(ctx) if in_session else nullcontext(store_of(ctx)) as place:
        if action in ("set", "unset"):
            changes = fields_from(given) if action == "set" else dict.fromkeys(given)
            if not changes:
                raise InvalidError("nothing to change", hint="smp config set NAME=VALUE")
            place.configure(changes)
            given = list(changes)
        elif action not in _ACTIONS or (action == "get") != bool(given):
            raise InvalidError(
                f"smp config does not {' '.join([action, *given])}",
                hint="smp config list, get NAME, set NAME=VALUE or unset NAME",
            )
        every = place.configuration()
    known = {each.name: each for each in every}
    shown = [known[row_of(each, action).name] for each in given] if given else list(every)
    value: dict[str, object] = {"settings": [each.as_json() for each in shown]}
    bare = action == "get"
    emit(
        ctx,
        value,
        lambda: _settings(shown, named=not bare),
        copied=bare,
        changes=action in ("set", "unset"),
    )


def _meant(action: str, given: Sequence[str]) -> tuple[str, list[str]]:
    """Return what to do with which settings, where it is said as for git config."""
    if action not in _ACTIONS and not given:
        return ("set" if "=" in action else "get"), [action]
    if action not in _ACTIONS and len(given) == 1 and action in table():
        action, given = "set", [action, *given]
    is_pair = action == "set" and len(given) == _PAIR and "=" not in given[0]
    return action, ["=".join(given)] if is_pair else [*given]


def _settings(shown: Sequence[Configured], *, named: bool) -> str:
    if not named:
        return "\n".join(map(str, shown))
    return pairs(
        [
            (each.name, f"{each}" + (f"  ({each.source})" if each.source != "default" else ""))
            for each in shown
        ]
    )


@command(hidden=True, example="smp override redaction=off")
def override(
    ctx: typer.Context,
    setting: Annotated[
        list[str],
        typer.Argument(
            metavar="SETTING=VALUE...", help="A setting for this session only; null removes it"
        ),
    ],
) -> None:
    """Set settings of a session, as smp config --here set does"""
    with session_of(ctx) as session:
        change = session.override(fields_from(setting))
        emit(ctx, change.as_json(), yamlfile.written(session.metadata.settings))
