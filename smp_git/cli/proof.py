"""Commands that show what a deletion did: receipts, proofs, the audit log."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit, setting
from smp_git.cli.place import reached, store_of
from smp_git.cli.screen import due, exact, table, when, wrapped
from smp_git.cli.terminal import MOST, counted
from smp_git.model.errors import SessionNotFoundError

if TYPE_CHECKING:
    from smp_git.remove.audit import Audited
    from smp_git.remove.history.prove import Proof

# The status that says that something of the deleted is left.
FOUND: Final = 9


def receipt_text(found: Mapping[str, Any]) -> str:
    """Return a receipt, as it is kept, for people."""
    counts, proof = found["counts"], found["proof"]
    verb = "redacted" if found.get("redacted") else "deleted"
    removed = [
        counted(counts["versions"], "version"),
        f"{counted(counts['commits_rewritten'], 'commit')} rewritten",
        f"{counted(counts['objects_removed'], 'object')} removed",
    ]
    lines = [
        ", ".join(removed),
        *proof_lines(proof),
        _fate(found),
        *(f"also found in {name}" for name in proof["also_in"]),
        *left_lines(found.get("left", ())),
        *(f"out of reach: {place}" for place in found["out_of_reach"]),
    ]
    return "\n".join((wrapped(f"{verb} {_names(found['ids'])}", 0, 2), *map(_below, lines)))


def _below(line: str) -> str:
    """Return a line of a receipt as it stands below what it is about."""
    return wrapped(line, 2, 4)


def _names(ids: Sequence[str]) -> str:
    """Return ids, or of many their number and the first."""
    if len(ids) <= MOST:
        return ", ".join(ids)
    return f"{counted(len(ids), 'memory')}: {', '.join(ids[:3])} and {len(ids) - 3:,} more"


def _fate(found: Mapping[str, Any]) -> str:
    """Say until when what went can be brought back."""
    if found["deadline"]:
        together = f", all with smp restore {found['deletion']}" if found["ids"][1:] else ""
        return f"restorable until {due(found['deadline'])}{together}"
    if found.get("redacted"):
        return "the versions before it cannot be restored"
    return "cannot be restored"


def proof_lines(proof: Mapping[str, Any]) -> list[str]:
    """Return what a proof says: what was not searched, where nothing was, what was found."""
    what = "ids and texts" if proof["text_searched"] else "ids only"
    seen = "nothing found" if proof["clean"] else f"found at {', '.join(proof['hits'])}"
    searched = f"{counted(proof['objects'], 'object')} and {counted(proof['files'], 'file')}"
    return [
        *(f"not searched: {each}" for each in proof.get("not_searched", ())),
        *(f"not looked into: {each}" for each in proof.get("not_looked_into", ())),
        f"searched {searched} for {what}: {seen}",
    ]


def tell(proof: Proof | None) -> None:
    """Say by the exit status that something is left."""
    if proof is not None and not proof.clean:
        raise typer.Exit(FOUND)


def _kept_receipt(found: Mapping[str, Any]) -> str:
    """Return the receipt of an earlier deletion, of memories or of the session."""
    reason = f": {found['reason']}" if found["reason"] else ""
    said = _below(f"{found['deletion']}, at {exact(found['at'])} by {found['by']}{reason}")
    if "session" in found:
        return f"deleted session {found['session']}\n{said}"
    return f"{receipt_text(found)}\n{said}"


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
    lines = [
        *proof_lines(proof.as_json())[:-1],
        *(f"also found in {name}" for name in proof.also_in),
    ]
    emit(ctx, proof.as_json(), "\n".join([*lines, proof_lines(proof.as_json())[-1]]))
    tell(proof)


@command(example="smp audit --action redact --since 7d")
def audit(
    ctx: typer.Context,
    action: Annotated[
        str | None,
        typer.Option(
            metavar="ACTION", help="Only this action, e.g. delete, restore, purge, redact"
        ),
    ] = None,
    memory: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="For this memory or deletion")
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="At or after this time")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="TIME", help="At or before this time")
    ] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="By this agent or user")] = None,
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
    emit(
        ctx,
        value,
        lambda: table(
            ("WHEN", "BY", "ACTION", "SESSION", "WHAT"), [*map(_audited, lines)], heads=False
        ),
        empty="nothing in the audit log",
    )


def _audited(line: Audited) -> tuple[str, ...]:
    ids = " ".join(line.ids)
    each = [f"{name}: {text}" for name, text in line.reasons.items()]
    said = "; ".join((*([line.reason] if line.reason else []), *each))
    return when(line.at), line.by, line.action, line.session, "  ".join(filter(None, (ids, said)))


def left_lines(places: Iterable[str]) -> list[str]:
    """Return what is left where, line by line."""
    return [f"left: {place}" for place in places]
