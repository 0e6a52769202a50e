"""What the Git hooks of a session call."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final

import typer

from smp_git.cli.app import command, emit, folder, note
from smp_git.format import config
from smp_git.format.config import Settings
from smp_git.git.layout import OWN
from smp_git.keep.hooks.install import Gate, opened
from smp_git.model.errors import InvalidError
from smp_git.model.memory import CommitId

_FULL_ID = re.compile(r"[0-9a-f]{40}")


@command(hidden=True, example="smp hook pre-commit")
def hook(
    name: Annotated[str, typer.Argument(help="The hook that Git runs")],
    arguments: Annotated[list[str] | None, typer.Argument(help="What Git gives it")] = None,
) -> None:
    """Do what a hook of Git asks for, in the repository that stands in this folder."""
    work = _HOOKS.get(name)
    if work is None:
        raise InvalidError(f"no hook {name!r}", hint=f"the hooks are: {', '.join(_HOOKS)}")
    work(Path.cwd(), arguments or [])


def _gate(place: Path) -> Gate:
    return opened(place, _settings(place), lambda: datetime.now(UTC))


def _settings(session: Path) -> Settings:
    """Return the settings of the store that a session stands in, if it stands in one."""
    for place in (session.parent.parent, session.parent):
        if (place / "active").is_dir() and (place / config.CONFIG).is_file():
            return config.load(place)
    return Settings()


def _pre_commit(session: Path, _: list[str]) -> None:
    from smp_git.keep.hooks.proposal import make_whole  # noqa: PLC0415 - a hook starts fast

    make_whole(_gate(session), session / os.environ.get("GIT_INDEX_FILE", ".git/index"))


def _moved(session: Path, *, merged: bool = False, rewritten: bool = False) -> None:
    from smp_git.keep.hooks.merge import bring_up  # noqa: PLC0415 - a hook starts fast

    for text in bring_up(_gate(session), merged=merged, rewritten=rewritten):
        note(text)


def _merge(session: Path, arguments: list[str]) -> None:
    """Bring one file together for Git, in the place that Git gives; leave it to a person else."""
    from smp_git.git.repository import Repository  # noqa: PLC0415 - a hook starts fast
    from smp_git.keep.hooks.merge import Driver  # noqa: PLC0415 - a hook starts fast

    base, ours, theirs, path = arguments
    driver = Driver(Repository(session), _theirs(session / ".git"))
    made = driver.merged(path, *(Path(file).read_bytes() for file in (base, ours, theirs)))
    if made is None:
        note(
            f"{path} was changed on both sides and is left as it is here; edit it, then git add {path}"
        )
        raise typer.Exit(1)
    Path(ours).write_bytes(made)
    for conflict in driver.contested:
        note(f"{conflict.id}: both sides changed {conflict.field}; smp conflicts lists the values")


def _theirs(git: Path) -> CommitId | None:
    """Return the commit that Git is merging, or picking in a rebase, if it says so."""
    heads = [name.removeprefix("GITHEAD_") for name in os.environ if name.startswith("GITHEAD_")]
    try:
        heads = heads or (git / "rebase-merge" / "done").read_text().splitlines()[-1].split()[1:2]
    except (OSError, IndexError):
        return None
    return CommitId(heads[0]) if len(heads) == 1 and _FULL_ID.fullmatch(heads[0]) else None


def _pre_push(session: Path, arguments: list[str]) -> None:
    from smp_git.keep.hooks.push import check, pushed  # noqa: PLC0415 - a hook starts fast

    check(_gate(session), arguments[0] if arguments else "", pushed(sys.stdin.read()))


def _pre_receive(bare: Path, _: list[str]) -> None:
    from smp_git.keep.hooks.push import receive, received  # noqa: PLC0415 - a hook starts fast

    # Git keeps what comes in apart until it is taken, and says where.
    new = os.environ.get("GIT_OBJECT_DIRECTORY", "objects")
    old = os.environ.get("GIT_ALTERNATE_OBJECT_DIRECTORIES", "")
    folders = [new, *old.split(os.pathsep), "objects"]
    receive(
        bare, [bare / each for each in dict.fromkeys(folders) if each], received(sys.stdin.read())
    )


_HOOKS: Final[dict[str, Callable[[Path, list[str]], None]]] = {
    "merge": _merge,
    "pre-commit": _pre_commit,
    "pre-push": _pre_push,
    "pre-receive": _pre_receive,
    "post-commit": lambda session, _: _moved(session),
    "post-checkout": lambda session, _: _moved(session),
    "post-merge": lambda session, _: _moved(session, merged=True),
    "post-rewrite": lambda session, _: _moved(session, rewritten=True),
}


@command(example="smp hooks install --server /srv/memory/shop.git")
def hooks(
    ctx: typer.Context,
    action: Annotated[
        str, typer.Argument(metavar="[ACTION]", help="list, install or remove")
    ] = "list",
    server: Annotated[
        Path | None,
        typer.Option(
            "--server", metavar="PATH", help="Of the bare repository on a server, not of a session"
        ),
    ] = None,
) -> None:
    """List the hooks of a session or a server, install or remove them

    They make plain Git safe: git commit, merge, pull, rebase and push in a session, and
    what a server takes. A new session has them. A hook of your own is left alone.
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
