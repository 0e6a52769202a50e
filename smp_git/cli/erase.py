"""Commands that delete, bring back, purge and prove."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smp_git.cli.app import command
from smp_git.cli.common import asker, emit
from smp_git.cli.inputs import text_from
from smp_git.cli.options import By, DryRun, Reason, Yes, confirm
from smp_git.cli.person import actor
from smp_git.cli.place import reached, store_of
from smp_git.cli.proof import FOUND, left_lines, proof_lines, receipt_text, tell
from smp_git.cli.screen import due, exact, table, when
from smp_git.cli.terminal import counted, in_counts, listed, note, paint
from smp_git.model.errors import InvalidError
from smp_git.model.given import as_kinds
from smp_git.model.memory import MemoryId
from smp_git.model.times import format_time
from smp_git.session import Session

if TYPE_CHECKING:
    from smp_git.remove.purge import Purged
    from smp_git.remove.trash import Damaged
Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="Memories by their full ids, e.g. DEC-0042"),
]


@command(example='smp delete DEC-0042 --reason "holds a name"')
def delete(
    ctx: typer.Context,
    ids: Ids = None,
    tag: Annotated[
        list[str], typer.Option("-t", "--tag", metavar="TAG", help="With this tag, or one below it")
    ] = [],  # noqa: B006 - typer copies it
    since: Annotated[str | None, typer.Option(metavar="TIME", help="At or after this time")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="At or before this time")
    ] = None,
    agent: Annotated[
        list[str], typer.Option("-a", "--agent", metavar="AGENT", help="Written by this agent")
    ] = [],  # noqa: B006
    kind: Annotated[
        list[str], typer.Option("-k", "--kind", metavar="KIND", help="Of this kind")
    ] = [],  # noqa: B006
    text: Annotated[
        str | None,
        typer.Option(metavar="TEXT|-", help="Containing this text; - reads it from standard input"),
    ] = None,
    reason: Reason = None,
    reason_for: Annotated[
        list[str],
        typer.Option(
            "--reason-for", metavar="ID=TEXT", help="Reason for this memory, if it differs"
        ),
    ] = [],  # noqa: B006
    by: By = None,
    purge: Annotated[bool, typer.Option("--purge", help="Keep no copy; cannot be undone")] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Delete memories from the session and all of its history

    They can be restored until the deadline shown in the receipt. A memory must match
    all the criteria given; what matches is shown first, and deleted with --yes. Exits
    with 9 if any trace is left.
    """
    wanted = text_from(text, None) if text is not None else None
    reasons = dict(map(_reason_for, reason_for))
    with reached(ctx) as session:
        plan = session.delete(
            ids or (),
            tags=tag,
            since=since,
            until=until,
            agents=agent,
            kinds=as_kinds(kind),
            text=wanted,
            purge=purge,
            dry_run=True,
        )
        is_asked = purge or any((tag, since, until, agent, kind, wanted))
        if dry_run or (is_asked and not yes):
            emit(ctx, plan.as_json(), lambda: _titled(session, plan.ids))
            what = "this cannot be undone" if purge else f"{counted(len(plan.ids), 'memory')} match"
            return confirm(what, yes=dry_run)
        receipt = session.delete(
            plan.ids, reason=reason, reasons=reasons, by=asker(ctx, by), purge=purge
        )
    emit(ctx, receipt.as_json(), lambda: receipt_text(receipt.as_json()))
    return tell(receipt.proof)


def _reason_for(text: str) -> tuple[str, str]:
    name, equals, reason = text.partition("=")
    if not equals or not reason.strip():
        raise InvalidError(
            f"{name} has no reason given", hint='e.g. --reason-for DEC-0042="holds a name"'
        )
    return name.strip(), reason.strip()


def _titled(session: Session, ids: tuple[MemoryId, ...]) -> str:
    titles = {memory.id: memory.title for memory in session.memories() if memory.id in ids}
    return listed(
        [f"would delete {name}: {titles.get(name, '(only in the history)')}" for name in ids]
    )


@command(example="smp trash")
def trash(
    ctx: typer.Context,
    sessions: Annotated[
        bool, typer.Option("--sessions", help="List deleted sessions instead")
    ] = False,
) -> None:
    """List deleted memories that can be restored"""
    if sessions:
        found = store_of(ctx).deleted_sessions()
        rows: list[Mapping[str, Any]] = [
            {
                "id": r.session_id,
                "deleted_at": format_time(r.deleted_at),
                "deleted_by": r.deleted_by,
                "reason": r.reason,
                "deadline": format_time(r.recovery_deadline),
            }
            for r in found
        ]
        value = {"sessions": rows, "total": len(rows)}
        emit(ctx, value, lambda: _rows(rows), empty="no deleted session")
        return
    with reached(ctx) as session:
        rows = [item.as_json() for item in session.trash()]
        damaged = session.damaged_copies()
    value = {
        "memories": rows,
        "damaged": [each.as_json() for each in damaged],
        "total": len(rows),
    }
    emit(
        ctx,
        value,
        lambda: "\n".join((*_rows(rows).splitlines(), *map(_damaged, damaged))),
        empty="the trash is empty",
    )


def _rows(rows: Sequence[Mapping[str, Any]]) -> str:
    return table(("ID", "DELETED", "RESTORABLE", "REASON"), [*map(_row, rows)], heads=False)


def _damaged(copy: Damaged) -> str:
    """Return the line of a copy whose record cannot be read, with all that is known."""
    known = [
        " ".join(copy.ids) or "memory unknown",
        *([f"deleted {exact(copy.deleted_at)}"] if copy.deleted_at else []),
        *([f"by {copy.deleted_by}"] if copy.deleted_by else []),
    ]
    return f"{copy.deletion}  damaged: {copy.why}  ({', '.join(known)}); smp purge {copy.deletion} --now destroys it"


def _row(row: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        paint("cyan", row["id"]),
        f"deleted {when(row['deleted_at'])} by {row['deleted_by']}",
        f"restorable until {due(row['deadline'])}",
        row["reason"] or "",
    )


@command(example="smp restore DEC-0042 --with-history")
def restore(
    ctx: typer.Context,
    ids: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="Memories, or the id of a deletion with all it took"),
    ],
    with_history: Annotated[
        bool,
        typer.Option("--with-history", help="Also bring back earlier versions, as new commits"),
    ] = False,
    reason: Reason = None,
    by: By = None,
) -> None:
    """Restore deleted memories under their ids"""
    with reached(ctx) as session:
        done = session.restore(ids, with_history=with_history, reason=reason, by=asker(ctx, by))
    emit(ctx, done.as_json(), lambda: in_counts(("restored", name) for name in done.ids))
    if done.unreadable:
        note(f"{done.unreadable} earlier versions could not be read and were left out")


@command(example="smp purge --expired")
def purge(
    ctx: typer.Context,
    ids: Ids = None,
    now: Annotated[
        bool, typer.Option("--now", help="Purge these memories before their deadline")
    ] = False,
    expired: Annotated[
        bool, typer.Option("--expired", help="Everything past its deadline, in all sessions")
    ] = False,
    older_than: Annotated[
        str | None,
        typer.Option(
            metavar="TIME|DURATION",
            help="Everything deleted before this time, in all sessions, e.g. 7d",
        ),
    ] = None,
    reason: Reason = None,
    by: By = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Make deleted memories unrecoverable

    Destroys their sealed copies and the keys to them. This is final. Exits with 9 if
    any trace of the named memories is left in the session, or if something in the store
    could not be purged; everything else is purged.
    """
    who = asker(ctx, by) if ids else actor(ctx, by)
    if ids:
        if not now or expired or older_than:
            raise InvalidError(
                "memories are purged before their deadline with --now",
                hint="without ids: --expired or --older-than",
            )
        with reached(ctx) as session:
            plan = session.purge(ids, dry_run=True)
            if dry_run or not yes:
                emit(
                    ctx,
                    plan.as_json(),
                    lambda: "\n".join(f"would purge {name}" for name in (*plan.ids, *plan.damaged)),
                )
                return confirm(yes=dry_run)
            done = session.purge(ids, reason=reason, by=who)
            emit(ctx, done.as_json(), lambda: _purged(done))
        return tell(done.proof)
    if now or expired == bool(older_than):
        raise InvalidError(
            "nothing to purge was named", hint="give ids with --now, or --expired, or --older-than"
        )
    store = store_of(ctx)
    if dry_run or (older_than and not yes):
        plan = store.purge_expired(older_than=older_than, dry_run=True)
        emit(
            ctx,
            plan.as_json(),
            lambda: (
                "\n".join(
                    (
                        *(f"would purge {name}" for name in (*plan.ids, *plan.sessions)),
                        *left_lines(plan.left),
                    )
                )
                or "nothing to purge"
            ),
        )
        return confirm(yes=dry_run)
    done = store.purge_expired(older_than=older_than, by=who)
    emit(ctx, done.as_json(), lambda: _purged(done))
    if done.left:
        raise typer.Exit(FOUND)
    return None


def _purged(done: Purged) -> str:
    found = proof_lines(done.proof.as_json()) if done.proof and not done.proof.clean else []
    kept = [
        f"the key stays with the store at {store}, of which this one is a copy"
        for store in done.kept_keys
    ]
    return (
        "\n".join(
            (
                *(f"purged {name}" for name in (*done.ids, *done.damaged, *done.sessions)),
                *found,
                *kept,
                *left_lines(done.left),
            )
        )
        or "nothing to purge"
    )
