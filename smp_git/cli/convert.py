"""Commands that take memories in from other programs, and out to them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Annotated, Final, cast

import typer

from smp_git.ask.request import QueryParts
from smp_git.cli.app import command
from smp_git.cli.common import emit, folder, setting
from smp_git.cli.filters import (
    Agents,
    Kinds,
    MinImportance,
    MinPriority,
    NoSuperseded,
    Since,
    TagsAll,
    TagsAny,
    TagsNot,
    Until,
    Where,
    parts_of,
)
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
from smp_git.cli.terminal import note, put_all
from smp_git.cli.write import note_redacted
from smp_git.convert.export import FORMATS as WRITTEN
from smp_git.convert.formats import BUNDLE, FORMATS
from smp_git.convert.migrate import Migration
from smp_git.convert.report import Import, Imported
from smp_git.model.errors import InvalidError
from smp_git.store import Store

# So many problems are shown one by one; JSON has them all.
_SHOWN = 20
# The format that the ending of a file says.
_ENDINGS: Final = {
    ".md": "markdown", ".markdown": "markdown", ".json": "json", ".yaml": "yaml", ".yml": "yaml",
    ".bundle": "bundle",
}  # fmt: skip
_NAMED = 3


@command("import", example="smp import ~/.claude/projects")
def import_(
    ctx: typer.Context,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="A file, a folder or a zip")],
    as_format: Annotated[
        str | None,
        typer.Option(
            "--as",
            metavar="FORMAT",
            help=f"Read it as {', '.join((*FORMATS, BUNDLE))}; told by the content by default",
        ),
    ] = None,
    quota: Annotated[
        int | None,
        typer.Option(metavar="MB", help="Size of a session; what is larger becomes several", min=1),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Import sessions too that were deleted here")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be imported, and change nothing")
    ] = False,
) -> None:
    """Import memories of other programs

    Each session of the source becomes a session here, or with -s everything goes into
    one. A second import takes only what is new or was changed there. What was deleted,
    here or there, stays deleted. Secrets are taken out.
    """
    store = store_of(ctx)
    done = store.import_(
        folder(ctx) / path.expanduser(),
        as_format=as_format,
        session=setting(ctx, "session"),
        quota=quota * 1024 * 1024 if quota else None,
        again=again,
        dry_run=dry_run,
        progress=counting("memories imported:"),
    )
    emit(ctx, done.as_json(), lambda: "\n".join(_lines(done)))
    _tell(done)


def _lines(done: Import) -> list[str]:
    verbs = ("would import", "would change") if done.dry_run else ("imported", "changed")
    lines = [_line(each, *verbs) for each in done.sessions if each.added or each.updated]
    known = sum(each.known for each in done.sessions)
    gone = sum(each.deleted for each in done.sessions)
    if known:
        lines.append(f"{known:,} already here")
    if gone:
        lines.append(f"{gone:,} deleted, and not imported")
    return lines or ["nothing to import"]


def _line(each: Imported, added: str, updated: str) -> str:
    said = [
        f"{verb} {_kinds(counts)}"
        for verb, counts in ((added, each.added), (updated, each.updated))
        if counts
    ]
    return f"{each.session}: {', '.join(said)}"


def _kinds(counts: Counter[str]) -> str:
    return ", ".join(
        f"{count:,} {kind}{'s' if count > 1 else ''}" for kind, count in counts.items()
    )


def _tell(done: Import) -> None:
    left = Counter[str]()
    for each in done.sessions:
        left.update(each.left_out)
        note_redacted(each.redacted)
    if left:
        note(f"left out: {', '.join(f'{count:,} {what}' for what, count in left.most_common())}")
    gone = [each.source for each in done.sessions if each.was_deleted]
    if gone:
        names = ", ".join(gone[:_NAMED]) + (", …" if len(gone) > _NAMED else "")
        what = "1 session was" if len(gone) == 1 else f"{len(gone):,} sessions were"
        note(f"{what} deleted here, and not imported: {names}; --again imports deleted sessions")
    for problem in done.problems[:_SHOWN]:
        note(f"{problem.where}: {problem.reason}")
    if len(done.problems) > _SHOWN:
        note(f"{len(done.problems) - _SHOWN:,} more problems; --json lists them all")


@command(example="smp export --format markdown -o shop.md")
def export(
    ctx: typer.Context,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT]", help="Only what matches this text")
    ] = None,
    as_format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="FORMAT",
            help=f"One of {', '.join(WRITTEN)}; else what the ending of PATH says, or jsonl",
        ),
    ] = None,
    to: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PATH", help="A new file or folder; else stdout"),
    ] = None,
    kind: Kinds = [],  # noqa: B006 - typer copies it
    tag: TagsAll = [],  # noqa: B006
    any_tag: TagsAny = [],  # noqa: B006
    not_tag: TagsNot = [],  # noqa: B006
    agent: Agents = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    where: Where = [],  # noqa: B006
    min_priority: MinPriority = None,
    min_importance: MinImportance = None,
    no_superseded: NoSuperseded = False,
    anonymize: Annotated[
        bool, typer.Option("--anonymize", help="Take out names of people and projects, and paths")
    ] = False,
    user: OfUsers = [],  # noqa: B006
    project: OfProjects = [],  # noqa: B006
    keep_user_names: KeepUsers = False,
    keep_project_names: KeepProjects = False,
    keep_file_paths: KeepPaths = False,
    no_placeholders: NoPlaceholders = False,
    no_structure: NoStructure = False,
    all_sessions: Annotated[
        bool,
        typer.Option("--all-sessions", help="Export every session of the store, archived ones too"),
    ] = False,
) -> None:
    """Export a session, or what matches, in another format

    jsonl, json and yaml can be imported again; markdown is one document to read; 000,
    001, 003 and 004 are formats of other programs; a bundle has the whole history.
    What an anonymization takes out and keeps is said as for smp anonymize.
    """
    if any_of(ctx.params) and not anonymize:
        raise InvalidError("these options belong to --anonymize", hint="give that too")
    parts: QueryParts = cast("QueryParts", parts_of(ctx.params))
    switches = switches_of(ctx.params) if anonymize else False
    place = folder(ctx) / to.expanduser() if to else None
    as_format = as_format or _ENDINGS.get(to.suffix.lower() if to else "", "jsonl")
    if all_sessions:
        pieces = store_of(ctx).export(as_format, to=place, text=text, anonymous=switches, **parts)
        put_all(pieces)
    else:
        with session_of(ctx) as session:
            pieces = session.export(as_format, to=place, text=text, anonymous=switches, **parts)
            put_all(pieces)
    if place is not None:
        emit(ctx, {"path": str(place), "format": as_format}, str(place))
        note("an export is a copy: what is deleted here later is still in it")


@command(example="smp migrate --dry-run")
def migrate(
    ctx: typer.Context,
    project: Annotated[
        Path | None, typer.Argument(metavar="[PROJECT]", help="The project; here by default")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be migrated, and change nothing")
    ] = False,
) -> None:
    """Migrate a project that keeps its memory in older formats

    Looks in .bmad for sessions, memory, conversations and logs. Backs them up to
    .bmad/backup-pre-smp first, takes them into sessions, and checks that nothing is
    lost. It can be repeated.
    """
    place = folder(ctx) / (project or ".")
    done = Store.migrate(place, dry_run=dry_run, progress=counting("memories migrated:"))
    emit(ctx, done.as_json(), lambda: "\n".join(_migrated(done)))
    _tell(Import(format="", sessions=done.sessions))


def _migrated(done: Migration) -> list[str]:
    if done.dry_run:
        return [f"would migrate {path}" for path in done.found] or ["nothing to migrate"]
    lines = [f"backup: {done.backup}"]
    lines += [_line(each, "migrated", "changed") for each in done.sessions if each.added]
    known = sum(each.known for each in done.sessions)
    if known:
        lines.append(f"{known:,} already here")
    return lines + [f"{'yes' if holds else 'NO'}: {name}" for name, holds in done.checks.items()]
