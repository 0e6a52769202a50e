"""The rewrite: a pure function of history and records (rule 3 of the format)."""

from __future__ import annotations

import hashlib
import re
from binascii import hexlify, unhexlify
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from itertools import chain
from typing import Final, NamedTuple

from smp_git.format import readme
from smp_git.format.document import life_of
from smp_git.format.records import Tombstones
from smp_git.git.objects import BLOB, COMMIT, TREE, Raw, changed_commit, raw_commit
from smp_git.git.references import ACCESS
from smp_git.model.ids import NOTHING as NO_LIVES
from smp_git.model.ids import PAGE_SIZE, parse_path
from smp_git.model.memory import KINDS
from smp_git.remove.history import judge, reading
from smp_git.remove.history.judge import PageOrigin
from smp_git.remove.history.reading import (
    FOLDER,
    INDEX_NAME,
    TAG,
    Read,
    TreeEntry,
)
from smp_git.remove.history.renaming import File, Moves, Renames, index_with

NOTES: Final = "refs/notes/"
REPLACE: Final = "refs/replace/"
STASH: Final = "refs/stash"

_TAG_SIGNATURE: Final = re.compile(
    rb"^-----BEGIN (?:PGP|SSH|SIGNED)[^\n]*-----.*\Z", re.MULTILINE | re.DOTALL
)
_HEX = re.compile(rb"[0-9a-f]+")
_HEX_LENGTH: Final = 40
_STATES: Final = KINDS["state"].folder
_ID_SIZE: Final = 20
_README: Final = readme.PATH.encode()


class History(NamedTuple):
    """References by name, and the older entries of the stash."""

    refs: Mapping[str, bytes]
    stashed: tuple[bytes, ...] = ()


class Gone(NamedTuple):
    """A version of a memory's file that goes from a tree."""

    path: str
    id: bytes
    life: str | None


_UNSEEN: Final = Gone("", b"", None)

# What goes from a tree: versions of files, and index items with their page.
Loss = tuple[Gone | tuple[str, bytes], ...]
NOTHING: Final[Loss] = ()


class Edited(NamedTuple):
    """A tree after the rewrite (None: it goes), and what went from it."""

    id: bytes | None
    loss: Loss


class RewrittenCommit(NamedTuple):
    """A commit after the rewrite."""

    old: bytes
    new: bytes
    old_tree: bytes
    tree: bytes
    loss: Loss
    dropped: bool
    touches: bool


class MadeObject(NamedTuple):
    """A new object, and one that it resembles."""

    type: bytes
    data: bytes
    like: bytes | None


class Rewriter:
    """Rewrites histories, remembering every object it has seen.

    `made` holds new objects, `replaced` those that are no part of the rewritten
    history at the place they had.
    """

    def __init__(
        self,
        read: Read,
        tombstones: Tombstones,
        renames: Renames | None = None,
        moves: Moves | None = None,
    ) -> None:
        self._source = read
        self._tombstones = tombstones
        # Few rewrites name lives or ids anew; then nothing is asked of these.
        self._renames = renames or None
        self._moves = moves or None
        self._names_anew = bool(renames or moves)
        self._wanted = _united(pages_of(tombstones), moves.wanted if moves else {})
        self.made: dict[bytes, MadeObject] = {}
        self.steps: dict[bytes, RewrittenCommit] = {}
        self.replaced: set[bytes] = set()
        self.tags: dict[bytes, tuple[bytes, bool]] = {}
        self._trees: dict[tuple[str, bytes], Edited] = {}
        self._like: dict[str, bytes] = {}
        self._stash: set[bytes] = set()
        self._kept: set[bytes] = set()
        self._origins: dict[bytes, bytes] = {}
        # What was found of entries and lines, which return from commit to commit: processor
        # time of the plan to delete 100 of 20,000 memories (2.3 s) without each of them.
        self._folders: dict[str, tuple[dict[bytes, bytes], dict[bytes, Loss]]] = {}  # 11.8 s
        self._lines: dict[bytes, bool] = {}  # 3.0 s
        self._gone_entries: dict[str, dict[bytes, Gone | None]] = {}  # 2.8 s

    # History

    def rewritten(self, history: History) -> History:
        """Return a history rewritten; may be called again as it grows."""
        self._note_stashes(history)
        plain = {ref: tip for ref, tip in history.refs.items() if not ref.startswith(NOTES)}
        refs: dict[str, bytes] = {}
        for ref, tip in sorted(plain.items()):
            refs[ref] = self._tip(ref, tip)
        old_stash = tuple(self._commit(tip, "").new for tip in history.stashed)
        for ref, tip in sorted(history.refs.items()):
            if ref.startswith(NOTES):
                refs[ref] = self._tip(ref, tip)
        return History(self._replacements(refs), old_stash)

    def references(self, named: Mapping[str, str]) -> dict[str, str]:
        """Return references rewritten, each with the id of what it names."""
        history = History({ref: unhexlify(tip) for ref, tip in named.items()})
        return {ref: tip.hex() for ref, tip in self.rewritten(history).refs.items()}

    def trust(self, names: Iterable[str]) -> None:
        """Take commits for rewritten already: nothing that they reach goes."""
        for name in map(unhexlify, names):
            kind, data = self.read(name)
            if kind == COMMIT:
                tree = raw_commit(data).tree
                self.steps[name] = RewrittenCommit(
                    name, name, tree, tree, NOTHING, dropped=False, touches=False
                )

    def _tip(self, ref: str, tip: bytes) -> bytes:
        kind, _ = self.read(tip)
        if kind == COMMIT:
            return self._commit(tip, _role(ref)).new
        return self._tag(tip)[0] if kind == TAG else tip

    def _replacements(self, refs: dict[str, bytes]) -> dict[str, bytes]:
        out: dict[str, bytes] = {}
        for ref, tip in refs.items():
            name = ref.removeprefix(REPLACE)
            key = unhexlify(name) if name != ref and _HEX.fullmatch(name.encode()) else b""
            step = self.steps.get(key)
            if step is None or step.new == key:
                out[ref] = tip
            elif not step.dropped:
                out[REPLACE + step.new.hex()] = tip
        return out

    def _note_stashes(self, history: History) -> None:
        newest = (history.refs[STASH],) if STASH in history.refs else ()
        for tip in (*history.stashed, *newest):
            self._note_stash(tip)

    def _note_stash(self, tip: bytes) -> None:
        kind, data = self.read(tip)
        if kind != COMMIT:
            return
        parents = raw_commit(data).parents
        self._stash.add(tip)
        self._kept.update((tip, *parents[1:]))
        for each in parents[1:]:
            self._origins[each] = parents[0]

    # Commits

    def _commit(self, tip: bytes, role: str) -> RewrittenCommit:
        """Return a commit rewritten, its ancestors first."""
        stack = [tip]
        raws: dict[bytes, Raw] = {}
        steps = self.steps
        while stack:
            name = stack[-1]
            if name in steps:
                stack.pop()
                continue
            raw = raws.get(name)
            if raw is None:
                raw = raws[name] = raw_commit(self.read(name)[1])
            # A stash's message speaks of the commit that it was made from.
            origin = self._origins.get(name)
            before = raw.parents if origin is None else (*raw.parents, origin)
            waiting = [each for each in before if each not in steps]
            if waiting:
                stack += waiting
                continue
            stack.pop()
            steps[name] = self._step(name, raws.pop(name), role)
        return steps[tip]

    def _step(self, name: bytes, raw: Raw, role: str) -> RewrittenCommit:
        tree, loss = self._root(raw.tree, role)
        before = [self.steps[each] for each in raw.parents]
        touches = (
            any(each.loss is not loss and each.loss != loss for each in before)
            if before
            else bool(loss)
        )
        parents = tuple([each.new for each in before])
        message = self._message(name, raw, tree, touches=touches)
        if (tree, parents, message) == (raw.tree, raw.parents, raw.message):
            return RewrittenCommit(name, name, raw.tree, tree, loss, dropped=False, touches=touches)
        self.replaced.add(name)
        if len(parents) > 1 and name not in self._stash:
            parents = tuple(dict.fromkeys(parents))
        if name not in self._kept and len(parents) == 1 and self._is_empty(raw, tree, before):
            return RewrittenCommit(
                name, parents[0], raw.tree, tree, loss, dropped=True, touches=touches
            )
        new = self._make(COMMIT, changed_commit(raw._replace(message=message), tree, parents), None)
        return RewrittenCommit(name, new, raw.tree, tree, loss, dropped=False, touches=touches)

    def _is_empty(self, raw: Raw, tree: bytes, before: list[RewrittenCommit]) -> bool:
        if any(each.tree != tree for each in before):
            return False
        return len(before) > 1 or raw.tree != before[0].old_tree

    def _message(self, name: bytes, raw: Raw, tree: bytes, *, touches: bool) -> bytes:
        message = self._moves.message(name, raw.message) if self._moves else raw.message
        if touches or any(map(self._is_named, judge.mentions(message))):
            message = judge.without(message, partial(self._is_gone, tree), touches=touches)
        if not judge.is_derived(message):
            return message
        origin = self._origins.get(name) or (raw.parents[0] if raw.parents else None)
        step = self.steps.get(origin) if origin else None
        if step is None or step.new == origin:
            return message
        subject = judge.subject(raw_commit(self.read(step.new)[1]).message)
        return judge.renamed(message, PageOrigin(hexlify(step.new), subject))

    def _is_named(self, memory_id: bytes) -> bool:
        return self._tombstones.lives_of_text(memory_id) is not NO_LIVES

    def _is_gone(self, root: bytes, memory_id: bytes) -> bool:
        """Whether an id has a record and its file is not in a rewritten tree."""
        known = self._tombstones.lives_of_text(memory_id)
        if known is NO_LIVES or known.is_gone:
            return known is not NO_LIVES
        return not self._holds(root, judge.path_of(memory_id))

    def _holds(self, root: bytes, path: str) -> bool:
        for part in path.encode().split(b"/"):
            child = next((e for e in reading.entries(self.read(root)[1]) if e.name == part), None)
            if child is None:
                return False
            root = child.id
        return True

    # Trees

    def _root(self, tree: bytes, role: str) -> tuple[bytes, Loss]:
        found = self._once(role, tree, self._edit_root)
        return found.id or self._make(TREE, b"", None), found.loss

    def _once(self, role: str, tree: bytes, edit: Callable[[str, bytes], Edited]) -> Edited:
        """Return a tree in a role edited, or as it was edited before."""
        found = self._trees.get((role, tree))
        if found is None:
            found = self._trees[role, tree] = edit(role, tree)
        return found

    def _edit_root(self, role: str, tree: bytes) -> Edited:
        if role == NOTES:
            return Edited(self._notes(tree), NOTHING)
        if role == ACCESS:
            return Edited(self._access(tree), NOTHING)
        return self._edit_folder("", tree)

    def _edit_folder(self, folder: str, tree: bytes) -> Edited:
        """Return a folder with those below it edited; only entries never seen are looked at."""
        become, lost = self._folders.setdefault(folder, ({}, {}))
        old = reading.raw_entries(self.read(tree)[1])
        for piece in [each for each in old if each not in become]:
            become[piece], loss = self._below(folder, piece)
            if loss:
                lost[piece] = loss
        kept = [*filter(None, map(become.__getitem__, old))]
        gone = _join([lost[piece] for piece in filter(lost.__contains__, old)])
        return Edited(self._tree(folder, tree, old, kept), gone)

    def _below(self, folder: str, piece: bytes) -> tuple[bytes, Loss]:
        """Return an entry of a folder as it becomes, nothing if it goes, and what goes below it."""
        entry = reading.read_entry(piece)
        if not folder and entry.name == _README:
            return self._readme(piece), NOTHING
        wanted = self._wanted.get(folder.encode() or entry.name)
        if entry.mode != FOLDER or wanted is None or (folder and entry.name not in wanted):
            return piece, NOTHING
        name = entry.name.decode()
        # Some kinds have no pages.
        edit = self._edit_page if folder or b"" in wanted else self._edit_folder
        edited = self._once(f"{folder}/{name}" if folder else name, entry.id, edit)
        return piece[:-_ID_SIZE] + edited.id if edited.id else b"", edited.loss

    def _readme(self, piece: bytes) -> bytes:
        """Return the entry of a README without lines of dead lives; it is no memory's loss."""
        name = piece[-_ID_SIZE:]
        kind, old = self.read(name)
        left = readme.without(old, self._is_dead) if kind == BLOB else old
        if left == old:
            return piece
        self.replaced.add(name)
        return piece[:-_ID_SIZE] + self._make(BLOB, left, readme.PATH)

    def _is_dead(self, memory_id: bytes, life: str) -> bool:
        return self._tombstones.lives_of_text(memory_id).is_dead(life)

    def _edit_page(self, page: str, tree: bytes) -> Edited:
        seen = self._gone_entries.setdefault(page, {})
        old = reading.raw_entries(self.read(tree)[1])
        kept: list[bytes] = []
        loss: list[Gone | tuple[str, bytes]] = []
        moved: dict[bytes, File] = {}
        index = -1
        for piece in old:
            gone = seen.get(piece, _UNSEEN)
            if gone is _UNSEEN:
                entry = reading.read_entry(piece)
                if entry.name == INDEX_NAME and entry.mode != FOLDER:
                    index, gone = len(kept), None
                else:
                    gone = seen[piece] = self._gone(page, entry)
            if gone is None:
                kept.append(self._anew(page, piece, moved) if self._names_anew else piece)
            else:
                loss.append(gone)
                self.replaced.add(gone.id)
        if index >= 0:
            self._edit_index(page, kept, index, loss, moved)
        if moved:
            kept.sort(key=_place_in_tree)
        return Edited(self._tree(page, tree, old, kept), tuple(loss))

    def _anew(self, page: str, piece: bytes, moved: dict[bytes, File]) -> bytes:
        """Return an entry of a page with the file that names its life or other ids anew."""
        old = piece[-_ID_SIZE:]
        file = self._moves.file(page, piece) if self._moves else None
        if file:
            moved[old] = file
            self.replaced.add(old)
            mode, name = reading.read_entry(piece).mode, file.path.rpartition("/")[2].encode()
            return b"%s %s\0%s" % (mode, name, self._make(BLOB, file.data, None))
        data = self._renames.files.get(old) if self._renames else None
        if data is None:
            return piece
        self.replaced.add(old)
        return piece[:-_ID_SIZE] + self._make(BLOB, data, None)

    def _gone(self, page: str, entry: TreeEntry) -> Gone | None:
        """Return what an entry of a page loses: itself, or nothing."""
        stem = entry.name.rpartition(b".")[0]
        known = self._tombstones.lives_of_text(b"state-" + stem if page == _STATES else stem)
        if known is NO_LIVES:
            return None
        path = f"{page}/{entry.name.decode('utf-8', 'surrogateescape')}"
        if parse_path(path) is None:
            return None
        is_file = entry.mode.startswith(b"100")
        renamed = self._renames.files.get(entry.id) if self._renames else None
        file = renamed or (self.read(entry.id)[1] if is_file else b"")
        life = life_of(file, path) if is_file else None
        return Gone(path, entry.id, life) if known.is_dead(life) else None

    def _edit_index(
        self,
        page: str,
        kept: list[bytes],
        place: int,
        loss: list[Gone | tuple[str, bytes]],
        moved: Mapping[bytes, File],
    ) -> None:
        """Bring the index among the entries that are kept up to date."""
        name = kept[place][-_ID_SIZE:]
        old = self.read(name)[1]
        data = self._renames.index(old) if self._renames else old
        data = index_with(data, moved) if moved else data
        found = self._lines_without(data)
        left, gone = found if found is not None else self._items_without(data)
        if not gone and left == old and (left or not loss):
            return
        loss += sorted((page, text) for text in gone)
        self.replaced.add(name)
        if left:
            kept[place] = kept[place][:-_ID_SIZE] + self._make(BLOB, left, f"{page}/")
        else:
            del kept[place]

    def _lines_without(self, index: bytes) -> tuple[bytes, list[bytes]] | None:
        """Return what is left of an index and what goes, None if a line is not one item."""
        lines = judge.plain_lines(index)
        if lines is None:
            return None
        seen = self._lines
        for line in lines:
            if line not in seen:
                if not line.startswith(b"-"):
                    return None
                item = judge.item(line + b"\n")
                seen[line] = self._is_dead(item.id, item.life)
        gone = [line for line in lines if seen[line]]
        if not gone:
            return index, gone
        kept = [line for line in lines if not seen[line]]
        return b"\n".join((*kept, b"")) if kept else b"", [line + b"\n" for line in gone]

    def _items_without(self, index: bytes) -> tuple[bytes, list[bytes]]:
        head, items = judge.items(index)
        dead = [self._is_dead(item.id, item.life) for item in items]
        left = [item.text for item, is_dead in zip(items, dead, strict=True) if not is_dead]
        gone = [item.text for item, is_dead in zip(items, dead, strict=True) if is_dead]
        return b"".join((head, *left)) if left else b"", gone

    def _tree(self, role: str, tree: bytes, old: list[bytes], kept: list[bytes]) -> bytes | None:
        """Return the id of the tree of what is kept, None if that is nothing."""
        if kept == old:
            return tree
        self.replaced.add(tree)
        return self._make(TREE, b"".join(kept), role) if kept else None

    def _access(self, tree: bytes) -> bytes | None:
        """Return the tree of access counts without those of gone memories."""
        old = reading.raw_entries(self.read(tree)[1])
        kept: list[bytes] = []
        for piece in old:
            kind, data = self.read(piece[-_ID_SIZE:])
            left = judge.without_counts(data, self._is_named) if kind == BLOB else data
            if left == data:
                kept.append(piece)
                continue
            self.replaced.add(piece[-_ID_SIZE:])
            kept.append(piece[:-_ID_SIZE] + self._make(BLOB, left, None))
        return self._tree(ACCESS, tree, old, kept)

    # Tags and notes

    def _tag(self, name: bytes) -> tuple[bytes, bool]:
        """Return an annotated tag rewritten, and whether it was of a commit that touches."""
        if name not in self.tags:
            self.tags[name] = self._edit_tag(name)
        return self.tags[name]

    def _edit_tag(self, name: bytes) -> tuple[bytes, bool]:
        data = self.read(name)[1]
        head, _, message = data.partition(b"\n\n")
        target = unhexlify(data[7:47])
        kind = self.read(target)[0]
        new, touches = target, False
        if kind == TAG:
            new, touches = self._tag(target)
        elif kind == COMMIT:
            step = self._commit(target, "")
            new, touches = step.new, step.dropped or step.touches
        label = re.search(rb"^tag ([^\n]*)$", head, re.MULTILINE)
        # The signature goes first, so that it is no text of a message that changes later.
        plain = _TAG_SIGNATURE.sub(b"", message)
        told = self._moves.message(target, plain) if self._moves else plain
        text = judge.without(
            told,
            partial(self._is_gone, self._tree_of(new)),
            touches=touches,
            generic=label[1] if label else judge.GENERIC,
        )
        if (new, text) == (target, plain):
            return name, touches
        self.replaced.add(name)
        return self._make(
            TAG, b"object " + hexlify(new) + head[47:] + b"\n\n" + text, None
        ), touches

    def _tree_of(self, name: bytes) -> bytes:
        kind, data = self.read(name)
        if kind == TAG:
            return self._tree_of(unhexlify(data[7:47]))
        return unhexlify(data[5:45]) if kind == COMMIT else self._make(TREE, b"", None)

    def _notes(self, tree: bytes) -> bytes | None:
        """Return a tree of notes with its names brought up to date."""
        kept: dict[bytes, TreeEntry] = {}
        changed = False
        for path, entry in self._flat(tree, b""):
            target = self._noted(path)
            changed |= target != path
            if target is None:
                self.replaced.add(entry.id)
                continue
            if target not in kept or entry.id < kept[target].id:
                kept[target] = entry
        if not changed:
            return tree
        self._replace_folders(tree)
        return self._nested(kept)

    def _noted(self, path: bytes) -> bytes | None:
        """Return the path of a note after the rewrite, or None if it goes."""
        name = path.replace(b"/", b"")
        if len(name) != _HEX_LENGTH or not _HEX.fullmatch(name):
            return path
        key = unhexlify(name)
        step = self.steps.get(key)
        new, gone = (
            (step.new, step.dropped or step.touches) if step else self.tags.get(key, (key, False))
        )
        if new == key:
            return path
        return None if gone else _like(path, hexlify(new))

    def _flat(self, tree: bytes, prefix: bytes) -> Iterator[tuple[bytes, TreeEntry]]:
        for entry in reading.entries(self.read(tree)[1]):
            if entry.mode == FOLDER:
                yield from self._flat(entry.id, prefix + entry.name + b"/")
            else:
                yield prefix + entry.name, entry

    def _replace_folders(self, tree: bytes) -> None:
        self.replaced.add(tree)
        for entry in reading.entries(self.read(tree)[1]):
            if entry.mode == FOLDER:
                self._replace_folders(entry.id)

    def _nested(self, files: Mapping[bytes, TreeEntry]) -> bytes | None:
        below: dict[bytes, dict[bytes, TreeEntry]] = {}
        here: list[TreeEntry] = []
        for path, entry in files.items():
            name, slash, rest = path.partition(b"/")
            if slash:
                below.setdefault(name, {})[rest] = entry
            else:
                here.append(entry._replace(name=name))
        for name, inner in below.items():
            folder = self._nested(inner)
            if folder is not None:
                here.append(TreeEntry(FOLDER, name, folder))
        here.sort(key=lambda entry: entry.name + (b"/" if entry.mode == FOLDER else b""))
        return self._make(TREE, reading.joined(here), NOTES) if here else None

    # Objects

    def read(self, name: bytes) -> tuple[bytes, bytes]:
        """Return the type and bytes of an object, new ones included."""
        found = self.made.get(name)
        return (found.type, found.data) if found is not None else self._source(name)

    def _make(self, kind: bytes, data: bytes, role: str | None) -> bytes:
        name = hashlib.sha1(b"%s %d\0%s" % (kind, len(data), data), usedforsecurity=False).digest()
        if name not in self.made:
            like = self._like.get(role) if role is not None else None
            self.made[name] = MadeObject(kind, data, like)
        if role is not None:
            self._like[role] = name
        return name


def _join(losses: list[Loss]) -> Loss:
    return losses[0] if len(losses) == 1 else tuple(chain.from_iterable(losses))


def _role(ref: str) -> str:
    """Return what the trees of a reference hold, nothing for the files of a session."""
    return NOTES if ref.startswith(NOTES) else ACCESS if ref.startswith(ACCESS) else ""


def _place_in_tree(piece: bytes) -> bytes:
    """Return by what Git sorts the entries of a tree."""
    mode, name, _ = reading.read_entry(piece)
    return name + b"/" if mode == FOLDER else name


def _united(
    one: Mapping[bytes, frozenset[bytes]], other: Mapping[bytes, frozenset[bytes]]
) -> dict[bytes, frozenset[bytes]]:
    nothing = frozenset[bytes]()
    return {name: one.get(name, nothing) | other.get(name, nothing) for name in {**one, **other}}


def _like(path: bytes, key: bytes) -> bytes:
    """Return a note's path for another object, cut into folders as `path` is."""
    out, at = [], 0
    for part in path.split(b"/"):
        out.append(key[at : at + len(part)])
        at += len(part)
    return b"/".join(out)


def pages_of(tombstones: Tombstones) -> dict[bytes, frozenset[bytes]]:
    """Return the pages that tombstones concern, by folder; an empty name is the folder itself."""
    found: dict[bytes, set[bytes]] = {}
    for each in tombstones.items:
        pages_of = found.setdefault(each.first.kind.folder.encode(), set())
        if each.first.kind.folder == _STATES:
            pages_of.add(b"")
            continue
        for number in range(each.first.number // PAGE_SIZE, each.last.number // PAGE_SIZE + 1):
            pages_of.add(f"{number:03d}".encode())
    return {folder: frozenset(names) for folder, names in found.items()}
