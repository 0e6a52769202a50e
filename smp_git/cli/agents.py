"""Commands for programs that run agents: the MCP server, and what a workflow asks of memory."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from smp_git.agents.workflow import Prepared
from smp_git.cli.app import command
from smp_git.cli.common import asker, emit, folder, setting
from smp_git.cli.place import session_of, store_of
from smp_git.cli.terminal import note, say
from smp_git.integrations.claude_code import install
from smp_git.integrations.mcp import clients, serve
from smp_git.integrations.mcp.desk import Offer
from smp_git.model.errors import InvalidError, NotStoreError
from smp_git.model.names import PLACE
from smp_git.store import Store


@command(example="smp mcp --print-config claude")
def mcp(
    ctx: typer.Context,
    agent: Annotated[
        str | None,
        typer.Option(
            "-a", "--agent", metavar="AGENT", help="Agent in whose name is read and written"
        ),
    ] = None,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Offer only the tools that read")
    ] = False,
    workflow: Annotated[
        Path | None,
        typer.Option(help="Workflow file whose memory_requirements bind the agent", metavar="FILE"),
    ] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP on this machine, with a token")
    ] = False,
    port: Annotated[
        int, typer.Option(metavar="N", help="Port for --http; 0 takes a free one", min=0)
    ] = 0,
    print_config: Annotated[
        str | None,
        typer.Option(
            "--print-config",
            metavar="claude|cursor|vscode|codex|desktop",
            help="Print the configuration of a client",
        ),
    ] = None,
    write: Annotated[
        bool,
        typer.Option("--install", help="With --print-config: write it into the client's own file"),
    ] = False,
) -> None:
    """Serve the memory to a client of the Model Context Protocol

    Over standard input and output, as clients start it, or over HTTP. The session is -s,
    or the only one; one is made when something is remembered first. The token for --http
    is SMP_MCP_TOKEN, or a new one, which is printed.
    """
    if print_config is not None:
        _configure(ctx, print_config, is_written=write)
        return
    offer = Offer(
        _store(ctx, read_only=read_only),
        setting(ctx, "session", "SMP_SESSION"),
        asker(ctx, agent) or "assistant",
        folder(ctx) / workflow if workflow else None,
        read_only,
    )
    if not http:
        serve.serve_stdio(offer)
        return
    serve.serve_http(
        offer,
        port,
        os.environ.get("SMP_MCP_TOKEN"),
        lambda address, token: say(f"{address}\ntoken: {token}", err=True),
    )


def _store(ctx: typer.Context, *, read_only: bool) -> Store:
    try:
        return store_of(ctx)
    except NotStoreError:
        root = setting(ctx, "root", "SMP_ROOT")
        place = folder(ctx) / (Path(root) if root else PLACE)
        # A client may start in the root of the disk, where nobody wants a store.
        if read_only or place.parent.parent == Path(place.anchor):
            raise
        return Store.init(place)


def _configure(ctx: typer.Context, client: str, *, is_written: bool) -> None:
    """Print what a client needs to be told, or write it after showing the change."""
    call = _call(ctx)
    text = clients.configuration(client, call)
    if not is_written:
        emit(ctx, {"client": client, "configuration": text}, text.rstrip("\n"))
        return
    place = clients.place_of(client, folder(ctx), Path.home(), sys.platform)
    file = clients.changed(client, place, call)
    before, after = file.before.splitlines(), file.after.splitlines()
    shown = "\n".join(difflib.unified_diff(before, after, str(place), str(place), lineterm=""))
    emit(ctx, {"client": client, "path": str(place), "diff": shown}, shown or "nothing to change")
    if file.before != file.after:
        clients.write(file)
        note(f"wrote {place}; restart {client} to use it")


def _call(ctx: typer.Context) -> list[str]:
    """Return the command by which a client starts the server, wherever it is started."""
    program = Path(sys.argv[0])
    call = (
        [str(program.absolute())]
        if program.name in ("smp", "git-smp")
        else [sys.executable, "-m", "smp_git"]
    )
    try:
        call += ["--root", str(store_of(ctx).path)]
    except NotStoreError:
        call += ["--root", str((folder(ctx) / PLACE).absolute())]
    if session := setting(ctx, "session", "SMP_SESSION"):
        call += ["--session", session]
    return [*call, "mcp"]


@command(example='smp prepare deep-verify.yaml "Self-Check" --agent veritas --explain')
def prepare(
    ctx: typer.Context,
    workflow: Annotated[
        Path, typer.Argument(metavar="FILE", help="Workflow file with memory_requirements")
    ],
    phase: Annotated[
        str | None, typer.Argument(metavar="[PHASE]", help="Phase, or a unique part of its name")
    ] = None,
    agent: Annotated[
        str | None,
        typer.Option("-a", "--agent", metavar="AGENT", help="Agent to prepare [env: SMP_AGENT]"),
    ] = None,
    budget: Annotated[
        int,
        typer.Option(metavar="N", help="Maximum number of tokens, at about four characters each"),
    ] = 4000,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show the queries that the hints became")
    ] = False,
) -> None:
    """Print what a workflow wants to recall, before a phase of it

    Only what its memory_requirements let the agent read.
    """
    with session_of(ctx) as session:
        who = asker(ctx, agent) or "assistant"
        made = session.agent(who, folder(ctx) / workflow).prepare(
            phase, budget=budget, explain=explain
        )
        emit(ctx, made.as_json(), _queries(made) if explain else made.text.rstrip("\n"))


def _queries(made: Prepared) -> str:
    lines = []
    for each in made.answers:
        lines.append(f"{each.source}: {each.query}")
        lines += [f"  {hit.id} {hit.title} ({', '.join(hit.why)})" for hit in each.answer]
        lines += [f"  {each.problem}"] if each.problem else []
    return "\n".join(lines)


@command(example="smp claude install --dry-run")
def claude(
    ctx: typer.Context,
    action: Annotated[str, typer.Argument(metavar="install|uninstall", help="What to do")],
    project: Annotated[
        bool, typer.Option("--project", help="For this project only; the default")
    ] = False,
    user: Annotated[bool, typer.Option("--user", help="For all projects of the user")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the change, write nothing")
    ] = False,
) -> None:
    """Give Claude Code a memory: hooks, the commands /remember, /recall, /forget, and a skill

    For a project, a store and a session are made if there is none. Hooks call
    `smp claude` with session-start, prompt, stop, pre-compact and session-end; they never
    stop a prompt.
    """
    if action not in ("install", "uninstall"):
        raise InvalidError(f"no action {action!r}", hint="install or uninstall")
    if project and user:
        raise InvalidError("both --project and --user are given", hint="leave one out")
    place = (Path.home() if user else folder(ctx)) / ".claude"
    if action == "uninstall":
        changes = install.removed(place)
    else:
        changes = install.installed(place, _hook_call(ctx, user=user, dry_run=dry_run))
    lines = [line for each in changes for line in _shown(each)]
    value = {"changes": [str(each.path) for each in changes], "dry_run": dry_run}
    emit(ctx, value, "\n".join(lines) or "nothing to change")
    if not dry_run:
        install.write(changes)
        if changes:
            note("restart Claude Code to use it" if action == "install" else "done")


def _hook_call(ctx: typer.Context, *, user: bool, dry_run: bool) -> list[str]:
    """Return the program that hooks call, and for a project the session."""
    program = Path(sys.argv[0])
    # A name that the shell finds outlives the environment it was installed from.
    found = shutil.which("smp")
    call = ["smp" if found or program.name != "smp" else str(program.absolute())]
    name = setting(ctx, "session", "SMP_SESSION")
    if not user:
        known = () if dry_run else _session_for(ctx, name)
        call += ["--session", *known] if known else ["--session", name] if name else []
    return call


def _session_for(ctx: typer.Context, name: str | None) -> tuple[str, ...]:
    store = _store(ctx, read_only=False)
    known = store.sessions()
    if name is None and len(known) == 1:
        return known
    if name in known:
        return (str(name),)
    if name is None and known:
        raise InvalidError(f"the store has {len(known)} sessions", hint="name one with -s ID")
    store.create_session(name or "memory", agents=["claude"]).close()
    return (name or "memory",)


def _shown(change: install.InstalledFile) -> list[str]:
    before, after = (text.splitlines() if text else [] for text in change[1:])
    return list(
        difflib.unified_diff(before, after, str(change.path), str(change.path), lineterm="")
    )
