"""Random histories in memory: merges, tags, notes, a stash, memories of two generations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from hypothesis import strategies as st

from smp_git.erasure import pages
from smp_git.erasure.pages import Entry
from smp_git.erasure.rewrite import History, raw_commit, rewrite
from smp_git.format.tombstones import Tombstones, tombstone

IDS = ("DEC-0001", "DEC-0002", "DEC-0101", "turn-0001", "state-veritas")
PATHS = {
    "DEC-0001": "decisions/000/DEC-0001.yaml",
    "DEC-0002": "decisions/000/DEC-0002.yaml",
    "DEC-0101": "decisions/001/DEC-0101.yaml",
    "turn-0001": "conversation/000/turn-0001.md",
    "state-veritas": "agent-states/veritas.yaml",
}
KINDS = {"DEC": "decision", "turn": "turn", "state": "state"}

# A memory at one commit: its generation and its text.
State = dict[str, tuple[int, str]]


@dataclass
class Objects:
    """An object store in memory."""

    kept: dict[bytes, tuple[bytes, bytes]] = field(default_factory=dict)

    def read(self, name: bytes) -> tuple[bytes, bytes]:
        return self.kept[name]

    def add(self, kind: bytes, data: bytes) -> bytes:
        name = hashlib.sha1(b"%s %d\0%s" % (kind, len(data), data)).digest()
        self.kept[name] = kind, data
        return name

    def tree(self, files: Mapping[str, bytes]) -> bytes:
        below: dict[str, dict[str, bytes]] = {}
        here: list[Entry] = []
        for path, blob in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                below.setdefault(name, {})[rest] = blob
            else:
                here.append(Entry(b"100644", name.encode(), blob))
        here += [Entry(b"40000", name.encode(), self.tree(inner)) for name, inner in below.items()]
        here.sort(key=lambda e: e.name + (b"/" if e.mode == b"40000" else b""))
        return self.add(b"tree", pages.joined(here))

    def files(self, tree: bytes, prefix: str = "") -> dict[str, bytes]:
        out: dict[str, bytes] = {}
        for entry in pages.entries(self.read(tree)[1]):
            if entry.mode == b"40000":
                out |= self.files(entry.id, f"{prefix}{entry.name.decode()}/")
            else:
                out[prefix + entry.name.decode()] = entry.id
        return out


def memory_file(name: str, generation: int, text: str) -> bytes:
    head = f"id: {name}\n" + (f"generation: {generation}\n" if generation > 1 else "")
    if name.startswith("turn"):
        return f"---\n{head}---\n{text}\ngeneration: 9\n".encode()
    return f"{head}decision: {text}\n".encode()


def session_tree(objects: Objects, state: State, extra: str) -> bytes:
    files = {"metadata.yaml": objects.add(b"blob", b"id: s\n")}
    if extra:
        files["notes.txt"] = objects.add(b"blob", extra.encode())
    lines: dict[str, list[str]] = {}
    for name in sorted(state):
        generation, text = state[name]
        blob = files[PATHS[name]] = objects.add(b"blob", memory_file(name, generation, text))
        line = {"id": name, "blob": blob.hex()} | ({"gen": generation} if generation > 1 else {}) | {"title": text}  # fmt: skip
        page = PATHS[name].rpartition("/")[0]
        lines.setdefault(page, []).append(f"- {json.dumps(line, separators=(',', ':'))}\n")
    for page, found in lines.items():
        files[f"{page}/index.yaml"] = objects.add(b"blob", "".join(found).encode())
    return objects.tree(files)


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
        st.sampled_from(["", "edit ", "undo ", "delete "]),
        st.sampled_from(IDS),
        st.sampled_from(["", ": red"]),
    ),
    st.sampled_from(["", "", "free words", "settings", "batch", "Agent: a", "Reason: red", "Turn: turn-0001"]),
    st.sampled_from([f"Memory: {name}" for name in IDS]),
)  # fmt: skip
messages = st.lists(_lines, min_size=1, max_size=7).map(lambda lines: "\n".join(lines) + "\n")


@st.composite
def histories(draw: st.DrawFn) -> tuple[Objects, History]:
    """A session's history with several branches, tags, notes and stash entries."""
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
                state[name] = draw(st.integers(1, 2)), draw(_texts)
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
    stashed = _stash(draw, objects, made, states, refs)
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


def _stash(draw: st.DrawFn, objects: Objects, made: list[bytes], states: dict[bytes, tuple[State, str]], refs: dict[str, bytes]) -> list[bytes]:  # fmt: skip
    stashed = []
    for _ in range(draw(st.integers(0, 2))):
        base = draw(st.sampled_from(made))
        state, extra = states[base]
        first = raw_commit(objects.read(base)[1]).message.split(b"\n")[0].decode()
        about = f"main: {base.hex()[:7]} {first}"
        edited = {**state, draw(st.sampled_from(IDS)): (1, draw(_texts))}
        staged = draw(st.sampled_from([state, edited]))
        index = commit(objects, session_tree(objects, staged, extra), [base], f"index on {about}\n", 5)  # fmt: skip
        parents = [base, index]
        if draw(st.booleans()):
            files = {PATHS["DEC-0101"]: objects.add(b"blob", memory_file("DEC-0101", 1, "blue"))}
            parents.append(commit(objects, objects.tree(files), [], f"untracked files on {about}\n", 5))  # fmt: skip
        tree = session_tree(objects, edited, extra)
        own = draw(st.sampled_from([f"WIP on {about}\n", "On main: free words\n"]))
        stashed.append(commit(objects, tree, parents, own, 6))
    if stashed:
        refs["refs/stash"] = stashed[-1]
    return stashed


def rewritten(objects: Objects, history: History, gone: Tombstones) -> tuple[Objects, History]:
    """Rewrite; the objects left behind are not to be had any more."""
    new, made = rewrite(objects.read, history, gone)
    everything = Objects({**objects.kept, **{n: (m.type, m.data) for n, m in made.items()}})
    return Objects(reachable(everything, new)), new


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
            stack += pages.children(data)
        elif kind == b"tag":
            stack.append(bytes.fromhex(data[7:47].decode()))
    return found


graves = st.lists(
    st.builds(
        lambda name, generation, purged: tombstone(name, generation, purged=purged),
        st.sampled_from(IDS),
        st.integers(1, 2),
        st.booleans(),
    ),
    max_size=3,
).map(Tombstones)
