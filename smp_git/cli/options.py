"""Options that several commands have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.model.errors import RefusedError

if TYPE_CHECKING:
    pass
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept in the audit log")]
By = Annotated[str | None, typer.Option(metavar="NAME", help="Who requested it [env: SMP_AGENT]")]
Yes = Annotated[bool, typer.Option("--yes", help="Confirm what cannot be undone")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and change nothing")
]


def confirm(*, yes: bool) -> None:
    """Raise RefusedError unless what cannot be undone is confirmed."""
    if not yes:
        raise RefusedError("this cannot be undone", hint="nothing was changed; --yes goes ahead")


# Of commands in several rooms.
Id = Annotated[str, typer.Argument(metavar="ID", help="Memory, e.g. DEC-0042 or DEC-42")]
At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="REV|TIME",
        help="As of this revision or time: HEAD~3, a commit, '2 days ago'",
    ),
]
Agent = Annotated[
    str | None,
    typer.Option("-a", "--agent", metavar="AGENT", help="Agent making the write [env: SMP_AGENT]"),
]
