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
from smp_git.cli.switches import (
    KeepPaths,
    KeepProjects,
    KeepUsers,
    NoPlaceholders,
    NoStructure,
    OfProjects,
    OfUsers,
    switches_of,
)
from smp_git.cli.terminal import listed
from smp_git.model.errors import InvalidError

# So many memories are named where there are more.
_NAMED = 5

if TYPE_CHECKING:
    from smp_git.keep.anonymize import AnonymizedMemories
    from smp_git.keep.mask import Switches
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
    ids: Annotated[
        list[str] | None,
        typer.Argument(metavar="[ID]...", help="Only these memories, which stay where they are"),
    ] = None,
    copy: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Make the copy in the store at this folder, and leave this session unchanged",
        ),
    ] = None,
    user: OfUsers = [],  # noqa: B006 - typer copies it
    project: OfProjects = [],  # noqa: B006
    keep_user_names: KeepUsers = False,
    keep_project_names: KeepProjects = False,
    keep_file_paths: KeepPaths = False,
    no_placeholders: NoPlaceholders = False,
    no_structure: NoStructure = False,
    all_sessions: Annotated[
        bool,
        typer.Option(
            "--all-sessions",
            help="Every session in the store; a name gets the same placeholder everywhere",
        ),
    ] = False,
    reason: Reason = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Replace a session with a copy without names

    The copy has a new id and no history. The old session is deleted and can be restored
    until its deadline: that is shown first, and done with --yes. With ids, the names in these memories alone are replaced, in every
    version of them; their earlier versions are gone for good, as after a redaction.
    """
    switches = switches_of(ctx.params)
    if ids:
        _refuse_beside_ids(copy, all_sessions=all_sessions)
        return _memories(ctx, ids, switches, reason, by, dry_run=dry_run, yes=yes)
    if copy is None and (dry_run or not yes):
        _plan(ctx, all_sessions=all_sessions)
        return confirm("sessions are replaced, not copied", yes=dry_run)
    if dry_run:
        raise InvalidError(
            "--dry-run with --copy has nothing to show", hint="the session stays as it is"
        )
    if all_sessions:
        found = store_of(ctx).anonymize(switches, copy=copy, by=asker(ctx, by))
        value: dict[str, object] = {
            "sessions": [each.as_json() for each in found],
            "total": len(found),
        }
        return emit(ctx, value, "\n".join(each.session for each in found))
    with reached(ctx) as session:
        done = session.anonymize(switches, copy=copy, by=asker(ctx, by))
    return emit(ctx, done.as_json(), done.session)


def _plan(ctx: typer.Context, *, all_sessions: bool) -> None:
    """Print which sessions would be replaced."""
    names = store_of(ctx).sessions() if all_sessions else (_reached_name(ctx),)
    value: dict[str, object] = {"sessions": [*names], "total": len(names), "dry_run": True}
    emit(ctx, value, listed([f"would replace {name} by a copy without names" for name in names]))


def _reached_name(ctx: typer.Context) -> str:
    with reached(ctx) as session:
        return session.id


def _refuse_beside_ids(copy: Path | None, *, all_sessions: bool) -> None:
    if copy is not None or all_sessions:
        raise InvalidError(
            "single memories are anonymized where they are",
            hint="smp export --anonymize makes a copy of what matches",
        )


def _memories(
    ctx: typer.Context,
    ids: list[str],
    switches: Switches,
    reason: str | None,
    by: str | None,
    *,
    dry_run: bool,
    yes: bool,
) -> None:
    with reached(ctx) as session:
        if dry_run or not yes:
            plan = session.anonymize_memories(ids, switches, dry_run=True)
            emit(ctx, plan.as_json(), lambda: _anonymized(plan, "would anonymize"))
            return confirm(yes=dry_run or not plan.ids)
        who = asker(ctx, by)
        done = session.anonymize_memories(ids, switches, reason=reason, by=who)
    emit(ctx, done.as_json(), lambda: _anonymized(done, "anonymized"))
    return tell(done.receipt.proof if done.receipt else None)


def _anonymized(done: AnonymizedMemories, verb: str) -> str:
    lines = [f"{verb} {name}" for name in done.ids] or ["none of them holds a name"]
    if done.also_in:
        rest = f" and {len(done.also_in) - _NAMED:,} more" if len(done.also_in) > _NAMED else ""
        lines.append(f"  names are also in {', '.join(done.also_in[:_NAMED])}{rest}")
    if done.receipt and not done.receipt.proof.clean:
        lines += proof_lines(done.receipt.proof.as_json())
    return "\n".join(lines)
