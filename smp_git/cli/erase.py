"""Commands that delete, bring back, purge and prove."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from smp_git.cli.app import asker, command, emit, reached, setting, store_of, text_from
from smp_git.cli.terminal import counted, note, to_minute
from smp_git.model.errors import InvalidError, RefusedError, SessionNotFoundError
from smp_git.model.memory import MemoryId
from smp_git.model.times import format_time
from smp_git.session import Session

if TYPE_CHECKING:
    from smp_git.remove.audit import Audited
    from smp_git.remove.history.prove import Proof
    from smp_git.remove.purge import Purged
    from smp_git.remove.redact import Redaction
    from smp_git.remove.trash import Damaged

# The status that says that something of the deleted is left.
_FOUND: Final = 9
Ids = Annotated[
    list[str] | None,
    typer.Argument(metavar="[ID]...", help="Memories by their full ids, e.g. DEC-0042"),
]
SomeIds = Annotated[
    list[str], typer.Argument(metavar="ID...", help="Memories by their full ids, e.g. DEC-0042")
]
SessionId = Annotated[str, typer.Argument(metavar="ID", help="Full id of the session")]
Reason = Annotated[str | None, typer.Option(help="Why; kept in the record and the audit log")]
By = Annotated[str | None, typer.Option(help="Who requested it [env: SMP_AGENT]")]
Yes = Annotated[bool, typer.Option("--yes", help="Confirm what cannot be undone")]
DryRun = Annotated[
    bool, typer.Option("--dry-run", help="Show what would be done, and change nothing")
]


def _confirm(*, yes: bool) -> None:
    if not yes:
        raise RefusedError("this cannot be undone", hint="nothing was changed; --yes goes ahead")


@command(example='smp delete DEC-0042 --reason "holds a name"')
def delete(
    ctx: typer.Context,
    ids: Ids = None,
    tag: Annotated[
        list[str], typer.Option("-t", "--tag", help="With this tag, or one below it")
    ] = [],  # noqa: B006 - typer copies it
    since: Annotated[str | None, typer.Option(metavar="TIME", help="At or after this time")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="At or before this time")
    ] = None,
    agent: Annotated[list[str], typer.Option("-a", "--agent", help="Written by this agent")] = [],  # noqa: B006
    kind: Annotated[list[str], typer.Option("-k", "--kind", help="Of this kind")] = [],  # noqa: B006
    text: Annotated[
        str | None, typer.Option(help="Containing this text; - reads it from standard input")
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
    all the criteria given. Exits with 9 if any trace is left.
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
            kinds=kind,
            text=wanted,
            purge=purge,
            dry_run=True,
        )
        if dry_run or (purge and not yes):
            emit(ctx, plan.as_json(), lambda: _titled(session, plan.ids))
            return _confirm(yes=dry_run)
        receipt = session.delete(
            plan.ids, reason=reason, reasons=reasons, by=asker(ctx, by), purge=purge
        )
    emit(ctx, receipt.as_json(), lambda: _receipt(receipt.as_json()))
    return _tell(receipt.proof)


def _reason_for(text: str) -> tuple[str, str]:
    name, equals, reason = text.partition("=")
    if not equals or not reason.strip():
        raise InvalidError(
            f"{name} has no reason given", hint='e.g. --reason-for DEC-0042="holds a name"'
        )
    return name.strip(), reason.strip()


def _titled(session: Session, ids: tuple[MemoryId, ...]) -> str:
    titles = {memory.id: memory.title for memory in session.memories() if memory.id in ids}
    return "\n".join(
        f"would delete {name}: {titles.get(name, '(only in the history)')}" for name in ids
    )


def _receipt(found: Mapping[str, Any]) -> str:
    """Return a receipt, as it is kept, for people."""
    counts, proof = found["counts"], found["proof"]
    verb = "redacted" if found.get("redacted") else "deleted"
    removed = [
        counted(counts["versions"], "version"),
        f"{counted(counts['commits_rewritten'], 'commit')} rewritten",
        f"{counted(counts['objects_removed'], 'object')} removed",
    ]
    lines = [
        f"{verb} {', '.join(found['ids'])}",
        f"  {', '.join(removed)}",
        *(f"  {line}" for line in _proof(proof)),
        f"  {_fate(found)}",
        *(f"  also found in {name}" for name in proof["also_in"]),
        *(f"  left: {place}" for place in found.get("left", ())),
        *(f"  out of reach: {place}" for place in found["out_of_reach"]),
    ]
    return "\n".join(lines)


def _fate(found: Mapping[str, Any]) -> str:
    """Say until when what went can be brought back."""
    if found["deadline"]:
        return f"restorable until {found['deadline']}"
    if found.get("redacted"):
        return "the versions before it cannot be restored"
    return "cannot be restored"


def _proof(proof: Mapping[str, Any]) -> list[str]:
    """Return what a proof says: what was not searched, where nothing was, what was found."""
    what = "ids and texts" if proof["text_searched"] else "ids only"
    seen = "nothing found" if proof["clean"] else f"found at {', '.join(proof['hits'])}"
    searched = f"{counted(proof['objects'], 'object')} and {counted(proof['files'], 'file')}"
    return [
        *(f"not searched: {each}" for each in proof.get("not_searched", ())),
        *(f"not looked into: {each}" for each in proof.get("not_looked_into", ())),
        f"searched {searched} for {what}: {seen}",
    ]


def _tell(proof: Proof | None) -> None:
    """Say by the exit status that something is left."""
    if proof is not None and not proof.clean:
        raise typer.Exit(_FOUND)


def _kept_receipt(found: Mapping[str, Any]) -> str:
    """Return the receipt of an earlier deletion, of memories or of the session."""
    reason = f": {found['reason']}" if found["reason"] else ""
    said = f"  {found['deletion']}, at {found['at']} by {found['by']}{reason}"
    if "session" in found:
        return f"deleted session {found['session']}\n{said}"
    return f"{_receipt(found)}\n{said}"


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
        emit(ctx, value, lambda: "\n".join(map(_row, rows)) or "empty")
        return
    with reached(ctx) as session:
        rows = [item.as_json() for item in session.trash()]
        damaged = session.damaged_copies()
    value = {
        "memories": rows,
        "damaged": [each.as_json() for each in damaged],
        "total": len(rows),
    }
    emit(ctx, value, lambda: "\n".join((*map(_row, rows), *map(_damaged, damaged))) or "empty")


def _damaged(copy: Damaged) -> str:
    """Return the line of a copy whose record cannot be read, with all that is known."""
    known = [
        " ".join(copy.ids) or "memory unknown",
        *([f"deleted {to_minute(format_time(copy.deleted_at))}"] if copy.deleted_at else []),
        *([f"by {copy.deleted_by}"] if copy.deleted_by else []),
    ]
    return f"{copy.deletion}  damaged: {copy.why}  ({', '.join(known)}); smp purge {copy.deletion} --now destroys it"


def _row(row: Mapping[str, Any]) -> str:
    reason = f"  {row['reason']}" if row["reason"] else ""
    return f"{row['id']}  deleted {to_minute(row['deleted_at'])} by {row['deleted_by']}  restorable until {to_minute(row['deadline'])}{reason}"


@command(example="smp restore DEC-0042 --with-history")
def restore(
    ctx: typer.Context,
    ids: SomeIds,
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
    emit(ctx, done.as_json(), lambda: "\n".join(f"restored {name}" for name in done.ids))
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
    who = asker(ctx, by)
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
                return _confirm(yes=dry_run)
            done = session.purge(ids, reason=reason, by=who)
            emit(ctx, done.as_json(), lambda: _purged(done))
        return _tell(done.proof)
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
                        *_left(plan.left),
                    )
                )
                or "nothing to purge"
            ),
        )
        return _confirm(yes=dry_run)
    done = store.purge_expired(older_than=older_than, by=who)
    emit(ctx, done.as_json(), lambda: _purged(done))
    if done.left:
        raise typer.Exit(_FOUND)
    return None


def _left(places: Iterable[str]) -> list[str]:
    return [f"left: {place}" for place in places]


def _purged(done: Purged) -> str:
    found = _proof(done.proof.as_json()) if done.proof and not done.proof.clean else []
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
                *_left(done.left),
            )
        )
        or "nothing to purge"
    )


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
            help="Text to put in its place; by default the one from the settings, or [REDACTED]"
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
            return _confirm(yes=dry_run)
        done = session.redact(wanted, replacement, reason=reason, by=asker(ctx, by))
    emit(ctx, done.as_json(), lambda: _redaction(done, "redacted"))
    if done.left:
        raise typer.Exit(_FOUND)
    return _tell(done.receipt.proof if done.receipt else None)


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
        lines += _proof(done.receipt.proof.as_json())
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
    user: Annotated[list[str], typer.Option(help="Another user name to replace")] = [],  # noqa: B006
    project: Annotated[list[str], typer.Option(help="Another project name to replace")] = [],  # noqa: B006
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


@command(example="smp receipt DEC-0042")
def receipt(
    ctx: typer.Context,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="A memory, or a deletion; the latest by default"),
    ] = None,
) -> None:
    """Show what a deletion removed and proved"""
    with reached(ctx) as session:
        found = dict(session.receipt(name))
    emit(ctx, found, lambda: _kept_receipt(found))


@command(example="smp verify --deleted")
def verify(
    ctx: typer.Context,
    deleted: Annotated[
        bool, typer.Option("--deleted", help="Check everything ever deleted from this session")
    ] = True,
) -> None:
    """Prove again that deleted content is gone

    Searches every object and file of the session. Texts are searched for as long as a
    recoverable copy holds them; the output says what was not searched. Exits with 9 if
    anything is found.
    """
    with reached(ctx) as session:
        proof = session.verify()
    lines = [*_proof(proof.as_json())[:-1], *(f"also found in {name}" for name in proof.also_in)]
    emit(ctx, proof.as_json(), "\n".join([*lines, _proof(proof.as_json())[-1]]))
    _tell(proof)


@command(example="smp audit --action redact --since 7d")
def audit(
    ctx: typer.Context,
    action: Annotated[
        str | None, typer.Option(help="Only this action, e.g. delete, restore, purge, redact")
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="For this memory or deletion")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="At or after this time")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="At or before this time")
    ] = None,
    by: Annotated[str | None, typer.Option(help="By this agent or user")] = None,
) -> None:
    """Show who deleted, restored, redacted or purged what

    Also shows when and why. An entry must match all the options given. Without -s,
    covers every session in the store.
    """
    store, named = store_of(ctx), setting(ctx, "session")
    if named is not None:
        # One that is gone has its lines still.
        with suppress(SessionNotFoundError):
            named = store.find_session(named)
    lines = store.audit(named, action=action, id=memory, by=by, since=since, until=until)
    value: dict[str, object] = {"lines": [line.as_json() for line in lines], "total": len(lines)}
    emit(ctx, value, lambda: "\n".join(map(_audited, lines)) or "empty")


def _audited(line: Audited) -> str:
    head = f"{to_minute(line.at)}  {line.by}  {line.action}  {line.session}  {' '.join(line.ids)}"
    each = [f"{name}: {text}" for name, text in line.reasons.items()]
    return "  ".join((head.rstrip(), *([line.reason] if line.reason else []), *each))


@command("delete-session", example="smp delete-session shop --reason finished")
def delete_session(
    ctx: typer.Context, session: SessionId, reason: Reason = None, by: By = None
) -> None:
    """Delete a whole session

    Moves it unchanged to the store's trash. It can be restored until its deadline.
    """
    done = store_of(ctx).delete_session(session, reason, by=asker(ctx, by))
    emit(
        ctx,
        done.as_json(),
        f"deleted {done.session}\n  can be brought back until {format_time(done.deadline)}",
    )
    for remote in done.remotes:
        note(f"a copy may be left at the remote {remote}")


@command("undelete-session", example="smp undelete-session shop")
def undelete_session(
    ctx: typer.Context, session: SessionId, reason: Reason = None, by: By = None
) -> None:
    """Restore a deleted session"""
    store = store_of(ctx)
    with store.undelete_session(session, by=asker(ctx, by), reason=reason) as back:
        emit(ctx, {"id": back.id, "path": str(back.path)}, back.id)


@command("purge-session", example="smp purge-session shop --yes")
def purge_session(
    ctx: typer.Context, session: SessionId, reason: Reason = None, by: By = None, yes: Yes = False
) -> None:
    """Destroy a deleted session

    Everything deleted from it earlier is destroyed too. This is final. Exits with 9 if
    a copy is left whose record cannot be read and which may belong to another deleted
    session of that name.
    """
    store = store_of(ctx)
    if not yes:
        emit(
            ctx, {"dry_run": True, "session": session, "left": []}, f"would purge session {session}"
        )
        return _confirm(yes=False)
    left = store.purge_session(session, reason=reason, by=asker(ctx, by))
    value = {"dry_run": False, "session": session, "left": [each.as_json() for each in left]}
    lines = _left(f"{each.deletion}, whose record cannot be read: {each.why}" for each in left)
    emit(ctx, value, "\n".join((f"purged {session}", *lines)))
    if left:
        raise typer.Exit(_FOUND)
    return None
