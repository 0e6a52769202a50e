"""Writes from the page: each names the version that was shown, and is one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from smp_git.model.errors import (
    ConflictError,
)
from smp_git.model.memory import CommitId, Memory
from smp_git.remove.history.journal import Receipt
from smp_git.session import Session
from smp_git.web import seen as versions
from smp_git.web.editing import edited
from smp_git.write.transaction import Transaction


class Write(NamedTuple):
    """A write that somebody asked for: of which memory, as it was shown, and what the form says."""

    session: Session
    memory: str
    form: Mapping[str, str]
    agent: str | None

    @property
    def seen(self) -> str:
        """The version that was shown."""
        return self.form.get("seen", "")

    @property
    def commit(self) -> str:
        """The commit at which it was shown."""
        return self.form.get("commit", "")


def do(name: str, write: Write) -> CommitId | None:
    """Do what is asked for in one commit, and return it; None if there was nothing to do.

    Raises StaleError, with nothing written, if the memory is no longer as it was shown.
    """
    action = _ACTIONS[name]
    with write.session.transaction(write.agent) as tx:
        memory = tx.get(write.memory)
        versions.check(write.session, memory, write.seen, write.commit)
        action(tx, memory, write.form)
        if not tx.modifications:
            tx.rollback()
    return tx.change.commit if tx.change is not None else None


def _edit(tx: Transaction, memory: Memory, form: Mapping[str, str]) -> None:
    change = edited(memory, form)
    if not change:
        return
    if memory.kind == "state":
        fields = {k: v for k, v in {**memory.fields, **change.fields}.items() if v is not None}
        tx.set_state(memory.id.removeprefix("state-"), fields)
    else:
        tx.edit(memory.id, text=change.text, **change.fields)  # type: ignore[arg-type]


def _tags(tx: Transaction, memory: Memory, form: Mapping[str, str]) -> None:
    tags = tuple(form.get("tags", "").replace(",", " ").split())
    if tags != memory.tags:
        tx.edit(memory.id, tags=tags)


def _resolve(tx: Transaction, memory: Memory, form: Mapping[str, str]) -> None:
    tx.resolve(memory.id, action=form.get("action", "").strip() or None, by=tx.agent)


def _settle(tx: Transaction, memory: Memory, form: Mapping[str, str]) -> None:
    take = form.get("replica") if form.get("take") == "other" else None
    tx.resolve_conflict(memory.id, form.get("field"), take=take)


def _pin(tx: Transaction, memory: Memory, _: Mapping[str, str]) -> None:
    tx.pin(memory.id)


def _unpin(tx: Transaction, memory: Memory, _: Mapping[str, str]) -> None:
    tx.unpin(memory.id)


_ACTIONS: Final[Mapping[str, Callable[[Transaction, Memory, Mapping[str, str]], None]]] = {
    "edit": _edit,
    "tags": _tags,
    "resolve": _resolve,
    "settle": _settle,
    "pin": _pin,
    "unpin": _unpin,
}
NAMES: Final = frozenset(_ACTIONS)


def forget(write: Write) -> Receipt:
    """Delete a memory from the history, unless it changed since it was shown."""
    session = write.session
    memory = session.get(write.memory, at=session.head)
    versions.check(session, memory, write.seen, write.commit)
    return session.delete(
        memory.id,
        reason=write.form.get("reason", "").strip() or None,
        by=write.agent,
        purge=write.form.get("purge") == "1",
        seen=[memory],
    )


def restore(session: Session, form: Mapping[str, str], agent: str | None) -> CommitId | None:
    """Restore a memory from the deletion that was shown."""
    name, deletion = form.get("id", ""), form.get("deletion", "")
    if not any(each.id == name and each.deletion == deletion for each in session.trash()):
        raise ConflictError(
            f"{name} is no longer in the trash as it was shown; nothing was written",
            hint="it was restored, purged or deleted again meanwhile",
        )
    return session.restore(name, by=agent).commit
