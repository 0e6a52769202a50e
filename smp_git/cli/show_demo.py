"""The command that shows the product at work."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from smp_git.cli import demo as story
from smp_git.cli.app import command, emit, folder


@command(example="smp demo")
def demo(ctx: typer.Context, path: Annotated[Path, typer.Argument(help="Folder of the demo's store")] = Path("smp-demo")) -> None:  # fmt: skip
    """Show a session at work, and leave it on the disk

    Three agents write turns, decisions, findings and preferences; they are read,
    changed, compared and undone. What they wrote is an ordinary Git repository.
    """
    told = story.run(folder(ctx) / path)
    emit(
        ctx, {"store": str(told.store), "session": told.session, "path": str(told.path)}, told.text
    )
