"""Commands to look at a session: the page on this machine, and the report in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit, folder, setting
from smp_git.cli.convert import counting, done_counting
from smp_git.cli.place import session_of, store_of
from smp_git.cli.terminal import note
from smp_git.web import report as reports


@command(example="smp report -o shop.html")
def report(
    ctx: typer.Context,
    to: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="FILE", help="The file; SESSION.html by default"),
    ] = None,
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Take out names of people and projects, and paths")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it is there already")
    ] = False,
) -> None:
    """Write a session as one HTML file that opens anywhere

    With its timeline, each memory's fields, history and links, what time does to it, the
    branches, the trash, receipts and the size. It asks nothing from anywhere, and is read
    without a script. An anonymized one has no history. Needs the extra web.
    """
    clock = store_of(ctx).clock
    with session_of(ctx) as session:
        place = folder(ctx) / (to.expanduser() if to else f"{session.id}.html")
        done = reports.write(
            session,
            place,
            clock,
            anonymous=anonymize,
            force=force,
            progress=counting("memories written:"),
        )
    done_counting()
    emit(ctx, done.as_json(), f"{done.path}")
    if not setting(ctx, "json"):
        note("a report is a copy: what is deleted here later is still in it")
