"""The way in which memories take another id: plan, publish, check out; nothing is deleted."""

from __future__ import annotations

from collections.abc import Mapping

from smp_git.git.objects import BLOB, ObjectId, object_id
from smp_git.git.references import HEAD
from smp_git.model.errors import RefusedError
from smp_git.model.ids import parse_id
from smp_git.model.memory import CommitId
from smp_git.remove.history import journal
from smp_git.remove.history.journal import Journal
from smp_git.remove.history.plan import Plan
from smp_git.remove.history.publish import Publisher
from smp_git.write.tree import Change, check_out
from smp_git.write.writer import Writer


def publish(writer: Writer, plan: Plan, entry: Journal) -> None:
    """Put the history in which memories have another id in the place of the old one.

    The caller holds the lock. What was there before is reached by nothing now; it goes
    with the next deletion, or with Git's own collection of garbage.
    """
    reader, smp = writer.reader, writer.reader.local.folder
    # What has not yet been forced out stands there once more.
    writer.settle(remove=True)
    publisher = Publisher(writer, plan, entry)
    publisher.prepare()
    reader.local.mark_pending({change.path: change.old for change in changes(plan, entry)})
    journal.write(smp, publisher.entry(journal.PUBLISHING))
    publisher.publish()
    reader.local.raise_epoch()
    _check_out(writer, plan, entry)
    # It names commits that are another's now; a look through all makes it again.
    (smp / "vetted.json").unlink(missing_ok=True)
    reader.local.clear_pending()
    reader.reopen()


def _check_out(writer: Writer, plan: Plan, entry: Journal) -> None:
    """Bring the checked-out files up to date, but for those that a person has changed."""
    local, found = writer.reader.local, changes(plan, entry)
    left = check_out(writer.reader.path, found, plan.repository.blob, local.scratch("checkout"))
    bases = {change.path: change.old for change in found if change.path in left}
    local.note_left_alone(bases, [change.path for change in found if change.path not in left])


def changes(plan: Plan, entry: Journal) -> list[Change]:
    """Return how the files of the branch that is checked out change.

    Where an interrupted move is finished, the journal says what was checked out before it.
    """
    history = {name: tip.hex() for name, tip in plan.history.refs.items()}
    result = {name: tip.hex() for name, tip in plan.result.refs.items()}
    old, new = _tree_shown(plan, {**history, **entry.old}), _tree_shown(plan, result)
    return [Change(*each) for each in plan.repository.changes(old, new)]


def _tree_shown(plan: Plan, refs: Mapping[str, str]) -> ObjectId | None:
    tip = refs.get(plan.repository.checked_out()) or refs.get(HEAD)
    return plan.repository.commit(CommitId(tip)).tree if tip else None


def check_unedited(plan: Plan, entry: Journal) -> None:
    """Raise RefusedError if a memory that takes another id has edits that nobody committed."""
    tree = _tree_shown(plan, {name: tip.hex() for name, tip in plan.history.refs.items()})
    for move in entry.moves:
        path = parse_id(move.old).path
        file = plan.repository.path / path
        if tree is None or not file.is_file() or file.is_symlink():
            continue
        if plan.repository.find(tree, path) != object_id(BLOB, file.read_bytes()):
            raise RefusedError(
                f"{move.old} takes another id, for another memory has it elsewhere, and {path} has edits that are not committed",
                hint="smp commit takes them in; then sync again",
            )
