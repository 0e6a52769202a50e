"""Commands that take a text, or names, out of a session."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from smp_git.cli.app import command
from smp_git.cli.common import asker, emit
from smp_git.cli.inputs import text_from
from smp_git.cli.options import By, DryRun, Reason, Yes, confirm
from smp_git.cli.place import reached, store_of
from smp_git.cli.proof import FOUND, proof_lines, tell
from smp_git.model.errors import InvalidError

if TYPE_CHECKING:
    from smp_git.remove.redact import Redaction


@command(example='smp redact "the project name" --dry-run')
def redact(
    ctx: typer.Context,
    pattern: Annotated[
        str,
        typer.Argument(
            metavar="TEXT|-",
            help="The text to remove; - reads it from standard input, which keeps it out of the shell's history",
        ),
    ],
    regex: Annotated[
        bool, typer.Option("--regex", help="The text is a regular expression")
    ] = False,
    replacement: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Text to put in its place; by default the one from the settings, or [REDACTED]",
        ),
    ] = None,
    reason: Reason = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Remove a text from every version of every memory

    For each memory that held it, the earlier versions are gone for good; the present
    version stays under its id, without the text. Exits with 9 if the text is left
    elsewhere, and names the kinds of places.
    """
    text = text_from(pattern, None).removesuffix("\n")
    wanted = _compiled(text) if regex else text
    with reached(ctx) as session:
        if dry_run or not yes:
            plan = session.redact(wanted, replacement, dry_run=True)
            emit(ctx, plan.as_json(), lambda: _redaction(plan, "would redact"))
            return confirm(yes=dry_run)
        done = session.redact(wanted, replacement, reason=reason, by=asker(ctx, by))
    emit(ctx, done.as_json(), lambda: _redaction(done, "redacted"))
    if done.left:
        raise typer.Exit(FOUND)
    return tell(done.receipt.proof if done.receipt else None)


def _compiled(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text)
    except re.error as error:
        raise InvalidError(f"not a regular expression: {error}") from None


def _redaction(done: Redaction, verb: str) -> str:
    lines = [f"{verb} {name}" for name in done.ids]
    lines += [f"{verb} {name}, which is only in the history" for name in done.gone]
    if not lines:
        lines.append("no memory holds it")
    lines += [f"  left: {place}" for place in done.left]
    lines += [f"  not looked into: {place}" for place in done.not_looked_into]
    lines += [f"  hint: {each}" for each in done.ways_out]
    if done.receipt and not done.receipt.proof.clean:
        lines += proof_lines(done.receipt.proof.as_json())
    return "\n".join(lines)


@command(example="smp anonymize --copy ../public")
def anonymize(
    ctx: typer.Context,
    copy: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Make the copy in the store at this folder, and leave this session unchanged",
        ),
    ] = None,
    user: Annotated[
        list[str], typer.Option(metavar="NAME", help="Another user name to replace")
    ] = [],  # noqa: B006
    project: Annotated[
        list[str], typer.Option(metavar="NAME", help="Another project name to replace")
    ] = [],  # noqa: B006
    keep_user_names: Annotated[
        bool, typer.Option("--keep-user-names", help="Keep user names")
    ] = False,
    keep_project_names: Annotated[
        bool, typer.Option("--keep-project-names", help="Keep project names")
    ] = False,
    keep_file_paths: Annotated[
        bool, typer.Option("--keep-file-paths", help="Keep file paths")
    ] = False,
    no_placeholders: Annotated[
        bool,
        typer.Option("--no-placeholders", help="Write [REMOVED] instead of User-1 and Project-A"),
    ] = False,
    no_structure: Annotated[
        bool, typer.Option("--no-structure", help="Drop the links between memories")
    ] = False,
    all_sessions: Annotated[
        bool,
        typer.Option(
            "--all-sessions",
            help="Every session in the store; a name gets the same placeholder everywhere",
        ),
    ] = False,
    by: By = None,
) -> None:
    """Replace a session with a copy without names

    The copy has a new id and no history. The old session is deleted and can be restored
    until its deadline.
    """
    from smp_git.keep.anonymize import Switches  # noqa: PLC0415 - as the library has it

    switches = Switches(
        user_names=not keep_user_names,
        project_names=not keep_project_names,
        file_paths=not keep_file_paths,
        placeholders=not no_placeholders,
        structure=not no_structure,
        users=tuple(user),
        projects=tuple(project),
    )
    if all_sessions:
        found = store_of(ctx).anonymize(switches, copy=copy, by=asker(ctx, by))
        value: dict[str, object] = {
            "sessions": [each.as_json() for each in found],
            "total": len(found),
        }
        emit(ctx, value, "\n".join(each.session for each in found))
        return
    with reached(ctx) as session:
        done = session.anonymize(switches, copy=copy, by=asker(ctx, by))
    emit(ctx, done.as_json(), done.session)
