"""Options that several commands have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.model.errors import RefusedError

if TYPE_CHECKING:
    pass
Reason = Annotated[str | None, typer.Option(metavar="TEXT", help="Why; kept in the audit log")]
By = Annotated[str | None, typer.Option(metavar="NAME", help="Who requested it [env: SMP_AGENT]")]
Yes = Annotated[bool, typer.Option("--yes", help="Go ahead with what would be asked for first")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and change nothing")
]


def confirm(what: str = "this cannot be undone", *, yes: bool) -> None:
    """Raise RefusedError unless a plan that was shown is confirmed."""
    if not yes:
        raise RefusedError(what, hint="nothing was changed; --yes goes ahead")


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
