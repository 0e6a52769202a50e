"""Rewritten history put in the place of the old: objects, references, new ids."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import Final

from smp_git.format import document, messages, readme, records
from smp_git.format.document import life_of
from smp_git.format.messages import Touch
from smp_git.format.records import Tombstones, ids_of
from smp_git.git import disk, references, staging, storage
from smp_git.git.objects import BLOB, ObjectId, object_id, raw_commit
from smp_git.git.references import HEAD, StashEntry
from smp_git.git.repository import MAIN, MovedError
from smp_git.git.storage import Packed, Written
from smp_git.model.errors import ConflictError, InvalidFileError, RefusedError
from smp_git.model.ids import INDEX, parse_id, parse_path
from smp_git.model.memory import VALUE, CommitId, MemoryId
from smp_git.read.compactions import compacted
from smp_git.read.snapshot import PageCache, Snapshot
from smp_git.remove.history import journal, sweep
from smp_git.remove.history.journal import Incoming, Journal, Replacement
from smp_git.remove.history.judge import subject
from smp_git.remove.history.plan import RewritePlan
from smp_git.remove.history.rewrite import MadeObject
from smp_git.remove.history.search import DeadVersion
from smp_git.write import commit
from smp_git.write.commit import TreeChange, assemble, check_out
from smp_git.write.writer import Writer

# Versions with the same such line say the same time.
_CREATED: Final = re.compile(rb"^created_at: .*$", re.MULTILINE)

_NOTHING: Final = Incoming()

# How often a person's own Git command may come between.
_MOST_MOVES: Final = 20


class Publisher:
    """Publishes one plan; the caller holds the lock."""

    def __init__(
        self,
        writer: Writer,
        plan: RewritePlan,
        entry: Journal,
        brings: Journal | Replacement,
        versions: Sequence[DeadVersion] = (),
        incoming: Incoming = _NOTHING,
    ) -> None:
        self._writer = writer
        self._plan = plan
        self._brings = brings
        self._versions = versions
        self._entry = entry
        self._git = plan.repository.git
        # What was fetched need not be written, being there.
        self._incoming = incoming
        self._stored: set[bytes] = set()
        self._brought: dict[str, Mapping[str, str]] = {}
        self._new: dict[str, bytes] = {}

    @property
    def head(self) -> CommitId:
        """The commit that names the deleted."""
        return CommitId(self._new[self._writer.reader.ref].hex())

    def prepare(self) -> None:
        """Make all new objects durable."""
        ref = self._writer.reader.ref
        self._new = dict(self._plan.result.refs)
        self._store(self._plan.rewriter.made)
        brought = self._brings.files(self._plan)
        self._brought = {}
        for name in sorted({ref, *brought}):
            if name in self._new:
                self._new[name] = self._on_top(name, self._new[name], brought.get(name, {}))
        journal.reached("objects written")

    def _store(self, made: Mapping[bytes, MadeObject]) -> None:
        fresh = [
            Packed(n, m.type, m.data, m.like)
            for n, m in made.items()
            if n not in self._stored and n not in self._incoming.objects
        ]
        if fresh:
            storage.write_pack(self._git / "objects", fresh)
        self._stored.update(made)
        # They are read from the disk now; in memory they were 80 MB of 20,000 commits.
        self._plan.rewriter.made.clear()

    def entry(self, step: str) -> Journal:
        """Return the journal with the references before and after."""
        old = {name: tip.hex() for name, tip in self._plan.history.refs.items()}
        new = {name: tip.hex() for name, tip in self._new.items()}
        return replace(self._entry, step=step, old=old, new=new, brought=self._brought)

    def tips(self) -> tuple[bytes, ...]:
        """Return the commits and tags that reach all that lives."""
        return (*self._new.values(), *self._plan.result.stashed, *self._incoming.tips)

    # The commit that names the deleted

    def _on_top(self, ref: str, tip: bytes, brought: Mapping[str, bytes]) -> bytes:
        """Return a tip with the records and files on top; the tip itself if it needs none."""
        if self._entry.arrived and not brought:
            return tip
        base = self._at(tip)
        said = self._said(base, brought)
        is_for_history = self._entry.redacts or brought.keys() <= set(self._entry.removed)
        if is_for_history and said == base.said:
            # It was moved before an interruption.
            return tip
        files: dict[str, bytes | None] = {
            path: data for path, data in brought.items() if not self._is_there(base, path, data)
        }
        if not files and (said == base.said or self._entry.arrived):
            return tip
        files[records.PATH] = records.write(said)
        self._brought[ref] = {path: object_id(BLOB, data) for path, data in brought.items()}
        return self._taken_out(ref, self._committed(base, files), files)

    def _is_there(self, base: Snapshot, path: str, data: bytes) -> bool:
        """Whether a branch has a file; after an interruption, one that was edited since counts."""
        blob = base.repository.find(base.tree, path)
        there = base.repository.blob(blob) if blob else None
        is_resumed = bool(self._entry.brought) and parse_path(path) is not None
        if there is None or not is_resumed:
            return there == data
        return life_of(there, path) == life_of(data, path)

    def _taken_out(self, ref: str, tip: bytes, files: Mapping[str, bytes | None]) -> bytes:
        """Return a tip without the files that were brought for the history only.

        They go as they went before, so that a compaction can be reversed still. No message
        names them, since a rewrite would take the line out, and so make another commit of it.
        """
        gone = [path for path in files if path in self._entry.removed]
        for head, paths in sorted(self._by_subject(ref, gone).items()):
            text = messages.write((), self._entry.by, subject=head)
            tip = self._committed(self._at(tip), dict.fromkeys(paths), text)
        return tip

    def _by_subject(self, ref: str, gone: Iterable[str]) -> dict[str, list[str]]:
        """Return files that are on no branch, by the subject of the commits that took them out."""
        old = self._plan.history.refs.get(ref)
        steps = {each.id: each.step for each in compacted(self._at(old))} if gone and old else {}
        found: dict[str, list[str]] = {}
        for path in gone:
            place = parse_path(path)
            step = steps.get(place.text) if place is not None else None
            is_value = place is not None and place.kind.name == VALUE
            rest = messages.BATCH if is_value else messages.LASTING_BATCHES["redact"]
            found.setdefault(messages.COMPACTED[step] if step else rest, []).append(path)
        return found

    def _at(self, tip: bytes) -> Snapshot:
        pages = PageCache(self._plan.repository, self._writer.reader.local)
        return Snapshot(pages, CommitId(tip.hex()))

    def _said(self, base: Snapshot, brought: Mapping[str, bytes]) -> Tombstones:
        """Return the records that the commit on top holds."""
        if self._entry.arrived and not self._entry.upgrades:
            return commit.carried_records(base.said, brought, self._entry.tombstones)
        return base.said | self._entry.tombstones

    def _committed(
        self, base: Snapshot, files: dict[str, bytes | None], message: str | None = None
    ) -> bytes:
        if self._entry.arrived:
            objects = commit.carrying(base, files).objects
        else:
            path, data = self._writer.registration(self._entry.at)
            if base.repository.find(base.tree, path) is None:
                files[path] = data
            made = assemble(base, files)
            identity, entry = self._writer.identity(), self._entry
            text = message or self._message()
            top = commit.signed(made.tree, (base.id,), identity, entry.by, entry.at, text)
            objects = [*made.objects, top]
        with self._plan.repository.store(objects) as written:
            written.flush()
        return bytes.fromhex(objects[-1].id)

    def _message(self) -> str:
        entry = self._entry
        verb = "redact" if entry.redacts else "purge" if entry.purge else "delete"
        places = [parse_id(each) for each in ids_of(entry.tombstones)]
        touches = [Touch(verb, place.kind.name, place.text) for place in places]
        text = messages.write(touches, entry.by, subject=messages.LASTING_BATCHES[verb])
        return messages.with_began(text, self._began({place.text for place in places}))

    def _began(self, names: Collection[MemoryId]) -> Iterator[tuple[MemoryId, datetime]]:
        """Yield when the memories that go had been added, as each of their versions says."""
        seen: set[tuple[MemoryId, bytes]] = set()
        for each in self._versions:
            line = _CREATED.search(each.data)
            said = each.id, line[0] if line else each.data
            if each.id in names and not parse_id(each.id).name and said not in seen:
                with suppress(InvalidFileError):
                    yield each.id, document.decode(each.data, each.path).created_at
                    seen.add(said)

    # References

    def publish(self) -> None:
        """Move every reference; what a person's Git command moved meanwhile is rewritten too."""
        for _ in range(_MOST_MOVES):
            try:
                self._move_all()
            except MovedError:
                self._plan.update()
                self.prepare()
            else:
                return
        raise ConflictError(
            f"session {self._git.parent.name} is being moved by another Git process",
            hint="the deletion is finished when the session is opened next",
        )

    def _move_all(self) -> None:
        old = self._plan.history.refs
        # The stash's log first: its reference alone would forget the older entries.
        self._move_stash()
        for name in sorted(old.keys() | self._new.keys(), key=lambda name: (name == MAIN, name)):
            if old.get(name) != self._new.get(name):
                self._move(name, old.get(name), self._new.get(name))
                journal.reached("reference moved")
        changed = {name: tip.hex() for name, tip in self._new.items()}
        references.write_packed(self._git, {name: changed.get(name) for name in old} | changed)
        if references.read(self._git) != changed:
            # A person's command made one that nobody knew of, and would be left without objects.
            raise MovedError(MAIN)

    def _move(self, name: str, old: bytes | None, new: bytes | None) -> None:
        if new is None:
            references.drop(self._git, name)
        elif name == HEAD:
            scratch = self._git / "smp" / "head.tmp"
            disk.replace_durably(self._git / HEAD, f"{new.hex()}\n".encode(), scratch)
        else:
            expected = CommitId(old.hex()) if old else None
            with Written(self._git / "objects") as written:
                repository = self._plan.repository
                if repository.head(name) != CommitId(new.hex()):
                    repository.publish(name, expected, CommitId(new.hex()), written)

    def _move_stash(self) -> None:
        entries = references.read_stash(self._git)
        moved = dict(zip(self._plan.history.stashed, self._plan.result.stashed, strict=True))
        now = [self._stashed(entry, moved) for entry in entries]
        if now != entries:
            references.write_stash(self._git, now)
            journal.reached("stash moved")

    def _stashed(self, entry: StashEntry, moved: dict[bytes, bytes]) -> StashEntry:
        old = bytes.fromhex(entry.id)
        new = moved.get(old, old)
        if new == old:
            return entry
        data = self._plan.rewriter.read(new)[1]
        text = subject(raw_commit(data).message).decode("utf-8", "surrogateescape")
        return entry._replace(id=new.hex(), message=text)

    # The checked-out files

    def tree_shown(self) -> ObjectId | None:
        """Return the tree that the folder shows after the rewrite, None if it has none."""
        shown = self._plan.repository.checked_out()
        tip = self._new.get(shown) or self._new.get(HEAD)
        if tip is None:
            return None
        return self._plan.repository.commit(CommitId(tip.hex())).tree

    def check_out(self, known: Tombstones) -> None:
        """Bring the checked-out files of the deleted, and of their pages, up to date."""
        repository = self._plan.repository
        tree = self.tree_shown()
        for path in sweep.copies(repository.path, known):
            path.unlink(missing_ok=True)
        if tree is None:
            return
        files = {**self._own_files(tree), **self._readme(tree)}
        for page in sweep.pages_there(repository, tree, known):
            blob = repository.find(tree, f"{page}/{INDEX}")
            files[f"{page}/{INDEX}"] = repository.blob(blob) if blob else None
            for place in sweep.gone_there(repository, tree, page, known):
                files |= self._file(place.text, tree, known)
        scratch = self._git / "smp" / "checkout.tmp"
        sweep.check_out(repository.path, files, scratch)
        self._writer.reader.local.clear_pending()

    def _readme(self, tree: ObjectId) -> dict[str, bytes | None]:
        """Return what becomes of the README in the folder, if the program made it."""
        file = self._plan.repository.path / readme.PATH
        if not file.is_file() or file.is_symlink() or not readme.is_made(file.read_bytes()):
            return {}
        blob = self._plan.repository.find(tree, readme.PATH)
        return {readme.PATH: self._plan.repository.blob(blob) if blob else None}

    def _file(self, memory_id: str, tree: ObjectId, known: Tombstones) -> dict[str, bytes | None]:
        """Return what becomes of a checked-out file: nothing, unless it is of a life that goes on."""
        path = parse_id(memory_id).path
        file = self._plan.repository.path / path
        is_there = file.is_file() and not file.is_symlink()
        if is_there and not known.is_dead(memory_id, life_of(file.read_bytes(), path)):
            return {}
        blob = self._plan.repository.find(tree, path)
        return {path: self._plan.repository.blob(blob) if blob else None}

    def _own_files(self, tree: ObjectId) -> dict[str, bytes | None]:
        """Return what the deletion's own commit wrote."""
        repository = self._plan.repository
        shown = self._brought.get(repository.checked_out(), {})
        paths = (records.PATH, self._writer.registration(self._entry.at)[0], *shown)
        found = {path: repository.find(tree, path) for path in paths}
        return {path: repository.blob(blob) for path, blob in found.items() if blob}


def reassign(writer: Writer, plan: RewritePlan, entry: Journal) -> None:
    """Put the history in which memories have another id in the place of the old one.

    The caller holds the lock. What was there before goes: a record of the old id may name it.
    A crash after the first reference moved and before that leaves it to the next deletion.
    """
    publisher = Publisher(writer, plan, entry, entry)
    publisher.prepare()
    is_published = entry.step == journal.REMOVING
    if not is_published:
        _replace(writer, plan, entry, publisher)
    _remove_old(plan, publisher, everything=is_published)
    writer.reader.local.raise_epoch()
    writer.reader.reopen()


def _replace(writer: Writer, plan: RewritePlan, entry: Journal, publisher: Publisher) -> None:
    reader, smp = writer.reader, writer.reader.local.folder
    reader.local.mark_pending({change.path: change.old for change in _changes(plan, entry)})
    journal.write(smp, publisher.entry(journal.PUBLISHING))
    publisher.publish()
    reader.local.raise_epoch()
    _check_out(writer, plan, entry)
    # It names commits that are another's now; a look through all makes it again.
    reader.local.forget_vetted()
    reader.local.clear_pending()
    # From here on the history from before cannot be read any more.
    journal.write(smp, entry.stepped(journal.REMOVING))


def _remove_old(plan: RewritePlan, publisher: Publisher, *, everything: bool) -> None:
    """Remove what the move replaced, or everything that nothing reaches.

    Which objects a removal that was interrupted had before it, nobody knows any more.
    """
    repository, tree = plan.repository, publisher.tree_shown()
    if tree is not None and not staging.refresh(repository, tree):
        return
    with staging.held(repository.git) as is_mine:
        if is_mine:
            dead = sweep.dead(
                repository, plan.rewriter, publisher.tips(), Tombstones(), lambda _: False
            )
            gone = dead if everything else dead & plan.rewriter.replaced
            sweep.drop_logs_of(repository.git, gone)
            sweep.remove_objects(repository, gone)


def _check_out(writer: Writer, plan: RewritePlan, entry: Journal) -> None:
    """Bring the checked-out files up to date, but for those that a person has changed."""
    local, found = writer.reader.local, _changes(plan, entry)
    left = check_out(writer.reader.path, found, plan.repository.blob, local.scratch("checkout"))
    bases = {change.path: change.old for change in found if change.path in left}
    local.note_left_alone(bases, [change.path for change in found if change.path not in left])


def _changes(plan: RewritePlan, entry: Journal) -> list[TreeChange]:
    """Return how the files of the branch that is checked out change.

    Where an interrupted move is finished, the journal says what was checked out before it.
    """
    history = {name: tip.hex() for name, tip in plan.history.refs.items()}
    result = {name: tip.hex() for name, tip in plan.result.refs.items()}
    old, new = _tree_shown(plan, {**history, **entry.old}), _tree_shown(plan, result)
    return [TreeChange(*each) for each in plan.repository.changes(old, new)]


def _tree_shown(plan: RewritePlan, refs: Mapping[str, str]) -> ObjectId | None:
    tip = refs.get(plan.repository.checked_out()) or refs.get(HEAD)
    return plan.repository.commit(CommitId(tip)).tree if tip else None


def check_unedited(plan: RewritePlan, entry: Journal) -> None:
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
