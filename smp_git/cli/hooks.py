"""The commands about Git hooks: `smp hooks`, and `smp hook` for those that Git runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smp_git.cli.app import command, emit, folder
from smp_git.cli.hook import do
from smp_git.cli.terminal import note
from smp_git.git.layout import OWN
from smp_git.model.errors import InvalidError


@command(hidden=True, example="smp hook pre-commit")
def hook(
    name: Annotated[str, typer.Argument(help="The hook that Git runs")],
    arguments: Annotated[list[str] | None, typer.Argument(help="Arguments from Git")] = None,
) -> None:
    """Run a Git hook in the repository of this folder."""
    raise typer.Exit(do(name, arguments or []))


@command(example="smp hooks install --server /srv/memory/shop.git")
def hooks(
    ctx: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="[ACTION]", help="list, install or remove")
    ] = "list",
    server: Annotated[
        Path | None,
        typer.Option(
            "--server",
            metavar="PATH",
            help="Use the bare repository on a server instead of a session",
        ),
    ] = None,
) -> None:
    """List, install or remove the hooks of a session or server

    Hooks make plain Git safe in a session (git commit, merge, pull, rebase and push),
    and check what a server accepts. A new session has them. Your own hooks are left
    alone.
    """
    from smp_git.keep.hooks import install  # noqa: PLC0415 - a hook starts fast

    session, bare = {
        "list": (install.standing, install.standing_on_server),
        "install": (install.install, install.install_on_server),
        "remove": (install.remove, install.remove_from_server),
    }.get(action, (None, None))
    if session is None or bare is None:
        raise InvalidError(f"smp hooks does not {action}", hint="smp hooks list, install or remove")
    found = bare(folder(ctx) / server) if server else session(_session_folder(ctx))
    emit(ctx, found.as_json(), "\n".join(f"{name}  {state}" for name, state in found.hooks.items()))
    own = [name for name, state in found.hooks.items() if state == OWN]
    if own and action == "install":
        note(
            f"left alone, because they are your own: {', '.join(own)}; let them call smp hook NAME"
        )


def _session_folder(ctx: typer.Context) -> Path:
    from smp_git.cli.place import session_of  # noqa: PLC0415 - a hook starts fast

    with session_of(ctx) as session:
        return session.path
