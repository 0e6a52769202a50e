"""Random histories in memory: merges, tags, notes, a stash, memories of many lives."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from hypothesis import strategies as st

from smp_git.format.records import Tombstones
from smp_git.git.objects import raw_commit
from smp_git.model.ids import FIRST, Edge, Lives, generation
from smp_git.model.memory import MemoryId
from smp_git.remove.history import reading
from smp_git.remove.history.reading import Read, TreeEntry
from smp_git.remove.history.rewrite import History, MadeObject, Rewriter
from tests import some_lives

IDS = ("DEC-0001", "DEC-0002", "DEC-0101", "turn-0001", "state-veritas")
PATHS = {
    "DEC-0001": "decisions/000/DEC-0001.yaml",
    "DEC-0002": "decisions/000/DEC-0002.yaml",
    "DEC-0101": "decisions/001/DEC-0101.yaml",
    "turn-0001": "conversation/000/turn-0001.md",
    "state-veritas": "agent-states/veritas.yaml",
}
KINDS = {"DEC": "decision", "turn": "turn", "state": "state"}

# A memory at one commit: its life (None: it cannot be told) and its text.
State = dict[str, tuple[str | None, str]]
# How the lives of each memory came about.
Stories = Mapping[str, Mapping[str, Edge]]


@dataclass
class Objects:
    """An object store in memory."""

    kept: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)
    # What the life of each version is, and whose each line of an index is, of which life.
    lives: dict[bytes, str | None] = field(default_factory=dict)
    lines: dict[str, tuple[str, str]] = field(default_factory=dict)

    def read(self, name: bytes) -> tuple[bytes, bytes]:
        return self.kept[name]

    def add(self, kind: bytes, data: bytes) -> bytes:
        name = hashlib.sha1(b"%s %d\0%s" % (kind, len(data), data)).digest()
        self.kept[name] = kind, data
        return name

    def tree(self, files: Mapping[str, bytes]) -> bytes:
        below: dict[str, dict[str, bytes]] = {}
        here: list[TreeEntry] = []
        for path, blob in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = blob
            else:
                here.append(TreeEntry(b"100644", name.encode(), blob))
        here += [
            TreeEntry(b"40000", name.encode(), self.tree(inner)) for name, inner in below.items()
        ]
        here.sort(key=lambda e: e.name + (b"/" if e.mode == b"40000" else b""))
        return self.add(b"tree", reading.joined(here))

    def files(self, tree: bytes, prefix: str = "") -> dict[str, bytes]:
        out: dict[str, bytes] = {}
        for entry in reading.entries(self.read(tree)[1]):
            if entry.mode == b"40000":
                out |= self.files(entry.id, f"{prefix}{entry.name.decode()}/")
            else:
                out[prefix + entry.name.decode()] = entry.id
        return out


def memory_file(name: str, life: str | None, text: str) -> bytes:
    """A memory's file; how its life is spelt hangs on the text."""
    said = "life: [\n" if life is None else spelt(life, text)
    usual = f'kind: {kind(name)}\n{said}created_at: "2026-01-11T14:30:00Z"\n'
    head = f"id: {name}\n{said if text == 'green' else usual}"
    if name.startswith("turn"):
        return f"---\n{head}---\n{text}\nlife: seashore\ngeneration: 9\n".encode()
    return f"{head}decision: {text}\nnote: |\n  life: seashore\n".encode()


def spelt(life: str, text: str) -> str:
    if life == FIRST:
        return ""
    number = generation(life) if "-" not in life else 0
    key, value = ("generation", str(number)) if number else ("life", life)
    return f"'{key}' : {value}  # life: seashore\n" if text == "blue" else f"{key}: {value}\n"


def session_tree(objects: Objects, state: State, extra: str) -> bytes:
    files = {"metadata.yaml": objects.add(b"blob", b"id: s\n")}
    if extra:
        files["notes.txt"] = objects.add(b"blob", extra.encode())
    lines: dict[str, list[str]] = {}
    for name in sorted(state):
        life, text = state[name]
        blob = files[PATHS[name]] = objects.add(b"blob", memory_file(name, life, text))
        objects.lives[blob] = life
        if life is None:
            # What cannot be read has no line.
            continue
        line = {"id": name, "blob": blob.hex(), **_life_key(life), "title": text}
        page = PATHS[name].rpartition("/")[0]
        written = f"- {json.dumps(line, separators=(',', ':'))}\n"
        objects.lines[written] = name, life
        lines.setdefault(page, []).append(written)
    for page, found in lines.items():
        files[f"{page}/index.yaml"] = objects.add(b"blob", "".join(found).encode())
    return objects.tree(files)


def _life_key(life: str) -> dict[str, object]:
    if generation(life) > 1 and "-" not in life:
        return {"gen": generation(life)}
    return {"life": life} if life else {}


def commit(objects: Objects, tree: bytes, parents: list[bytes], message: str, at: int, *, signed: bool = False) -> bytes:  # fmt: skip
    lines = [f"tree {tree.hex()}", *(f"parent {each.hex()}" for each in parents)]
    lines += [f"author a <a@smp> {at} +0000", f"committer c <c@smp> {at} +0000"]
    if signed:
        lines += ["gpgsig -----BEGIN PGP SIGNATURE-----", " abc", " -----END PGP SIGNATURE-----"]
    return objects.add(b"commit", ("\n".join(lines) + f"\n\n{message}").encode())


def kind(name: str) -> str:
    return KINDS[name.partition("-")[0]]


_texts = st.sampled_from(["red", "green", "blue"])
_lines = st.one_of(
    st.builds(
        lambda verb, name, title: f"{verb}{kind(name)} {name}{title}",
        st.sampled_from(["", "edit ", "undo ", "delete ", "restore ", "redact ", "join "]),
        st.sampled_from(IDS),
        st.sampled_from(["", ": red"]),
    ),
    st.sampled_from(["", "", "free words", "settings", "batch", "redact batch", "undo batch: 2 findings", "Agent: a", "Reason: red", "Turn: turn-0001"]),
    st.sampled_from([f"Memory: {name}" for name in IDS]),
)  # fmt: skip
messages = st.lists(_lines, min_size=1, max_size=7).map(lambda lines: "\n".join(lines) + "\n")


@st.composite
def histories(draw: st.DrawFn, stories: Stories, *, unread: bool) -> tuple[Objects, History]:
    """A session's history with several branches, tags, notes and stash entries.

    Its memories are of the lives that `stories` tell of, some of none that could be told.
    """
    lives = {name: st.sampled_from((FIRST, *stories[name], *([None] if unread else []))) for name in IDS}  # fmt: skip
    objects = Objects()
    made: list[bytes] = []
    states: dict[bytes, tuple[State, str]] = {}
    count = draw(st.integers(1, 9))
    for _ in range(count):
        parents = draw(st.lists(st.sampled_from(made), max_size=3, unique=True)) if made else []
        if not parents and made and draw(st.integers(0, 3)):
            parents = [made[-1]]
        state, extra = ({}, "") if not parents else states[draw(st.sampled_from(parents))]
        state = dict(state)
        for name in draw(st.lists(st.sampled_from(IDS), max_size=2, unique=True)):
            if name in state and draw(st.booleans()):
                del state[name]
            else:
                state[name] = draw(lives[name]), draw(_texts)
        extra = draw(st.sampled_from([extra, extra, "x", "y"]))
        tree = session_tree(objects, state, extra)
        at = draw(st.integers(1, 3))
        new = commit(objects, tree, parents, draw(messages), at, signed=draw(st.booleans()))
        made.append(new)
        states[new] = state, extra
    refs: dict[str, bytes] = {"refs/heads/main": made[-1]}
    for number, tip in enumerate(draw(st.lists(st.sampled_from(made), max_size=2))):
        refs[f"refs/heads/b{number}"] = tip
    tagged = _tags(draw, objects, made, refs)
    _notes(draw, objects, made + tagged, refs)
    stashed = _stash(draw, objects, made, states, refs, lives)
    return objects, History(refs, tuple(stashed))


def _tags(draw: st.DrawFn, objects: Objects, made: list[bytes], refs: dict[str, bytes]) -> list[bytes]:  # fmt: skip
    tagged = []
    for number, tip in enumerate(draw(st.lists(st.sampled_from(made), max_size=2))):
        body = f"object {tip.hex()}\ntype commit\ntag v{number}\ntagger a <a@smp> 1 +0000\n\n{draw(messages)}"  # fmt: skip
        if draw(st.booleans()):
            body += "-----BEGIN PGP SIGNATURE-----\nabc\n-----END PGP SIGNATURE-----\n"
        tagged.append(objects.add(b"tag", body.encode()))
        refs[f"refs/tags/v{number}"] = tagged[-1]
    return tagged


def _notes(draw: st.DrawFn, objects: Objects, things: list[bytes], refs: dict[str, bytes]) -> None:
    tip: list[bytes] = []
    for at in range(draw(st.integers(0, 2))):
        files = {}
        for thing in draw(st.lists(st.sampled_from(things), max_size=3, unique=True)):
            name = thing.hex()
            path = f"{name[:2]}/{name[2:]}" if draw(st.booleans()) else name
            files[path] = objects.add(b"blob", draw(_texts).encode())
        tip = [commit(objects, objects.tree(files), tip, "Notes added\n", at)]
    if tip:
        refs["refs/notes/commits"] = tip[0]


def _stash(draw: st.DrawFn, objects: Objects, made: list[bytes], states: dict[bytes, tuple[State, str]], refs: dict[str, bytes], lives: Mapping[str, st.SearchStrategy[str | None]]) -> list[bytes]:  # fmt: skip
    stashed = []
    for _ in range(draw(st.integers(0, 2))):
        base = draw(st.sampled_from(made))
        state, extra = states[base]
        first = raw_commit(objects.read(base)[1]).message.split(b"\n")[0].decode()
        about = f"main: {base.hex()[:7]} {first}"
        name = draw(st.sampled_from(IDS))
        edited = {**state, name: (draw(lives[name]), draw(_texts))}
        staged = draw(st.sampled_from([state, edited]))
        index = commit(objects, session_tree(objects, staged, extra), [base], f"index on {about}\n", 5)  # fmt: skip
        parents = [base, index]
        if draw(st.booleans()):
            blob = objects.add(b"blob", memory_file("DEC-0101", FIRST, "blue"))
            objects.lives[blob] = FIRST
            files = {PATHS["DEC-0101"]: blob}
            parents.append(commit(objects, objects.tree(files), [], f"untracked files on {about}\n", 5))  # fmt: skip
        tree = session_tree(objects, edited, extra)
        own = draw(st.sampled_from([f"WIP on {about}\n", "On main: free words\n"]))
        stashed.append(commit(objects, tree, parents, own, 6))
    if stashed:
        refs["refs/stash"] = stashed[-1]
    return stashed


def rewrite(read: Read, history: History, gone: Tombstones) -> tuple[History, Mapping[bytes, MadeObject]]:  # fmt: skip
    """Return history without what the tombstones name, and the new objects it needs."""
    rewriter = Rewriter(read, gone)
    return rewriter.rewritten(history), rewriter.made


def rewritten(objects: Objects, history: History, gone: Tombstones) -> tuple[Objects, History]:
    """Rewrite; the objects left behind are not to be had any more."""
    new, made = rewrite(objects.read, history, gone)
    everything = Objects({**objects.kept, **{n: (m.type, m.data) for n, m in made.items()}})
    return Objects(reachable(everything, new), objects.lives, objects.lines), new


def reachable(objects: Objects, history: History) -> dict[bytes, tuple[bytes, bytes]]:
    found: dict[bytes, tuple[bytes, bytes]] = {}
    stack = [*history.refs.values(), *history.stashed]
    while stack:
        name = stack.pop()
        if name in found:
            continue
        kind, data = found[name] = objects.read(name)
        if kind == b"commit":
            raw = raw_commit(data)
            stack += [raw.tree, *raw.parents]
        elif kind == b"tree":
            stack += reading.children(data)
        elif kind == b"tag":
            stack.append(bytes.fromhex(data[7:47].decode()))
    return found


@st.composite
def graves(draw: st.DrawFn, stories: Stories, *, elsewhere: bool) -> Tombstones:
    """What one replica knows: how the lives of the history came about, and how some ended.

    With `elsewhere` it also knows of lives that stand only on another replica.
    """
    found: dict[MemoryId, Lives] = {}
    for name in draw(st.lists(st.sampled_from(IDS), max_size=4, unique=True)):
        story = stories[name]
        others = draw(some_lives.stories(("oceanica", "waterway"), (FIRST, *story))) if elsewhere else {}  # fmt: skip
        flags = draw(some_lives.flagged((FIRST, *story, *others)))
        found[MemoryId(name)] = Lives(flags, {**story, **others}, draw(some_lives.counts))
    return Tombstones.of(found)


class Case(NamedTuple):
    """A history, and what two replicas know of its memories."""

    objects: Objects
    history: History
    left: Tombstones
    right: Tombstones


@st.composite
def _cases(draw: st.DrawFn, *, unread: bool) -> Case:
    stories = {name: draw(some_lives.stories()) for name in IDS}
    objects, history = draw(histories(stories, unread=unread))
    known = graves(stories, elsewhere=not unread)
    return Case(objects, history, draw(known), draw(known))


# What cannot be read stands as long as any life may: there both know of the same lives.
cases = st.one_of(_cases(unread=False), _cases(unread=True))
