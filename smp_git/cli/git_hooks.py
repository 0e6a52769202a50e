"""The hooks that Git runs in a session; no typer is loaded here."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from smp_git.cli.terminal import note, report
from smp_git.format import config
from smp_git.keep.hooks.install import Gate, open_gate
from smp_git.model.errors import InvalidError, SmpError
from smp_git.model.memory import CommitId
from smp_git.model.settings import Settings
from smp_git.read.places import is_store

_FULL_ID = re.compile(r"[0-9a-f]{40}")


def run_hook(arguments: Sequence[str]) -> int:
    """Do what a hook of Git asks for, in the repository in this folder; return the exit status.

    This is all that runs at every commit of a person, so it loads no typer.
    """
    try:
        return do(arguments[0], arguments[1:])
    except SmpError as error:
        report(error)
        return error.exit_status


def do(name: str, arguments: Sequence[str]) -> int:
    """Do what the hook `name` asks for; return the exit status."""
    work = _HOOKS.get(name)
    if work is None:
        raise InvalidError(f"no hook {name!r}", hint=f"the hooks are: {', '.join(_HOOKS)}")
    return work(Path.cwd(), list(arguments)) or 0


def _gate(place: Path) -> Gate:
    return open_gate(place, _settings(place), lambda: datetime.now(UTC))


def _settings(session: Path) -> Settings:
    """Return the settings of the store that a session is in, if it is in one."""
    for place in (session.parent.parent, session.parent):
        if is_store(place):
            return config.load(place)
    return Settings()


def _pre_commit(session: Path, _: list[str]) -> None:
    from smp_git.keep.hooks.proposal import make_whole  # noqa: PLC0415 - a hook starts fast

    make_whole(_gate(session), session / os.environ.get("GIT_INDEX_FILE", ".git/index"))


def _moved(session: Path, *, merged: bool = False, rewritten: bool = False) -> None:
    from smp_git.keep.hooks.merge import bring_up  # noqa: PLC0415 - a hook starts fast

    for text in bring_up(_gate(session), merged=merged, rewritten=rewritten):
        note(text)


def _merge(session: Path, arguments: list[str]) -> int:
    """Bring one file together for Git, in the place that Git gives; leave it to a person else."""
    from smp_git.git.repository import Repository  # noqa: PLC0415 - a hook starts fast
    from smp_git.keep.hooks.merge import Driver  # noqa: PLC0415 - a hook starts fast

    base, ours, theirs, path = arguments
    driver = Driver(Repository(session), _theirs(session / ".git"))
    made = driver.merged(path, *(Path(file).read_bytes() for file in (base, ours, theirs)))
    if made is None:
        note(
            f"{path} was changed on both sides and is left unchanged here; edit it, then git add {path}"
        )
        return 1
    Path(ours).write_bytes(made)
    for conflict in driver.contested:
        note(f"{conflict.id}: both sides changed {conflict.field}; smp conflicts lists the values")
    return 0


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


_HOOKS: Final[dict[str, Callable[[Path, list[str]], int | None]]] = {
    "merge": _merge,
    "pre-commit": _pre_commit,
    "pre-push": _pre_push,
    "pre-receive": _pre_receive,
    "post-commit": lambda session, _: _moved(session),
    "post-checkout": lambda session, _: _moved(session),
    "post-merge": lambda session, _: _moved(session, merged=True),
    "post-rewrite": lambda session, _: _moved(session, rewritten=True),
}
