"""Commands to look at a session: the page on this machine, and the report in one file."""

from __future__ import annotations

import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import asker, emit, folder, setting
from smp_git.cli.options import Agent
from smp_git.cli.place import session_of, store_of
from smp_git.cli.progress import counting
from smp_git.cli.switches import (
    KeepPaths,
    KeepProjects,
    KeepUsers,
    NoPlaceholders,
    NoStructure,
    OfProjects,
    OfUsers,
    any_of,
    switches_of,
)
from smp_git.cli.terminal import note
from smp_git.model.errors import InvalidError
from smp_git.web import report as reports
from smp_git.web import serve


@command(example="smp web --open")
def web(
    ctx: typer.Context,
    port: Annotated[
        int, typer.Option(help="Port; 0 takes a free one", min=0, max=65_535, metavar="N")
    ] = 0,
    agent: Agent = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show only; nothing can be changed from the page")
    ] = False,
    in_browser: Annotated[
        bool, typer.Option("--open", help="Open the page in the browser")
    ] = False,
) -> None:
    """Serve a page to look at the sessions of the store

    On this machine alone. The link works once; it lets the browser that opens it in, until
    the command is stopped with Ctrl-C. With -s the page begins at that session. Needs the
    extra web.
    """
    store = store_of(ctx)
    session = setting(ctx, "session", "SMP_SESSION")

    def tell(link: str) -> None:
        emit(ctx, {"link": link}, link)
        note("the link works once; Ctrl-C stops the page")
        if in_browser:
            webbrowser.open(link)

    with suppress(KeyboardInterrupt):
        start = store.find_session(session) if session else None
        wanted = serve.Showing(port, start, asker(ctx, agent), read_only)
        serve.serve(store, wanted, tell)


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
    user: OfUsers = [],  # noqa: B006 - typer copies it
    project: OfProjects = [],  # noqa: B006
    keep_user_names: KeepUsers = False,
    keep_project_names: KeepProjects = False,
    keep_file_paths: KeepPaths = False,
    no_placeholders: NoPlaceholders = False,
    no_structure: NoStructure = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace the file if it is there already")
    ] = False,
) -> None:
    """Write a session as one HTML file that opens anywhere

    With its timeline, each memory's fields, history and links, what time does to it, the
    branches, the trash, receipts and the size. It asks nothing from anywhere, and is read
    without a script. An anonymized one has no history; what is taken out and kept is said
    as for smp anonymize. Needs the extra web.
    """
    if any_of(ctx.params) and not anonymize:
        raise InvalidError("these options belong to --anonymize", hint="give that too")
    clock = store_of(ctx).clock
    with session_of(ctx) as session:
        place = folder(ctx) / (to.expanduser() if to else f"{session.id}.html")
        done = reports.write(
            session,
            place,
            clock,
            anonymous=switches_of(ctx.params) if anonymize else False,
            force=force,
            progress=counting("memories written:"),
        )
    emit(ctx, done.as_json(), f"{done.path}")
    if not setting(ctx, "json"):
        note("a report is a copy: what is deleted here later is still in it")
