"""Remotes that mean harm: repositories of objects that no Git would make."""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from smp_git.git import addresses, references
from smp_git.git.objects import RawObjects, deflate, framed, object_id
from smp_git.sync.inspect.structure import Bounds as _Bounds
from smp_git.sync.inspect.structure import Structure, TreeRow

FILE, FOLDER, LINK, GITLINK = b"100644", b"40000", b"120000", b"160000"
PERSON = b"eve <eve@example.com> 1768142000 +0000"
MEMORY = """\
id: {id}
kind: finding
created_at: "2026-01-11T14:40:00Z"
agent: eve
finding: {text}
"""


@dataclass
class Forge:
    """A bare repository that begins as a copy of a session, and takes whatever it is told."""

    place: Path
    session: Path
    head: str = ""
    root: dict[bytes, TreeRow] = field(default_factory=dict)

    def __post_init__(self) -> None:
        addresses.create_bare(self.place)
        source = RawObjects(self.session / ".git")
        self.head = references.read(self.session / ".git")["refs/heads/main"]
        self._copy(source, bytes.fromhex(self.head))
        self.branch(self.head)
        tree = source.read(bytes.fromhex(self.head))[1][5:45].decode()
        self.root = {row[1]: TreeRow(*row) for row in self.rows(tree)}

    def _copy(self, source: RawObjects, name: bytes) -> None:
        kind, data = source.read(name)
        self.put(kind, data)
        if kind == b"commit":
            for line in data.partition(b"\n\n")[0].split(b"\n"):
                if line[:5] in (b"tree ", b"paren"):
                    self._copy(source, bytes.fromhex(line.split(b" ")[1].decode()))
        elif kind == b"tree":
            for row in Structure(source, _Bounds()).rows(name, ""):
                self._copy(source, row[2])

    def rows(self, tree: str) -> list[tuple[bytes, bytes, bytes]]:
        return Structure(RawObjects(self.place), _Bounds()).rows(bytes.fromhex(tree), "")

    def put(self, kind: bytes, data: bytes) -> str:
        """Store an object, whatever is in it."""
        name = object_id(kind, data)
        self._place(name, deflate(framed(kind, data)))
        return name

    def _place(self, name: str, data: bytes) -> None:
        path = self.place / "objects" / name[:2] / name[2:]
        path.parent.mkdir(exist_ok=True)
        if not path.exists():
            path.write_bytes(data)

    def zeros(self, size: int) -> str:
        """Store a file of so many zeros without ever holding it."""
        head = b"blob %d\0" % size
        digest, packer = hashlib.sha1(head), zlib.compressobj(1)
        parts = [packer.compress(head)]
        for _ in range(size >> 20):
            digest.update(bytes(1 << 20))
            parts.append(packer.compress(bytes(1 << 20)))
        self._place(digest.hexdigest(), b"".join([*parts, packer.flush()]))
        return digest.hexdigest()

    def blob(self, text: str | bytes) -> str:
        return self.put(b"blob", text if isinstance(text, bytes) else text.encode())

    def tree(self, rows: list[tuple[bytes, bytes, str]], *, ordered: bool = True) -> str:
        if ordered:
            rows = sorted(rows, key=lambda row: row[1] + (b"/" if row[0] == FOLDER else b""))
        return self.put(
            b"tree", b"".join(b"%s %s\0%s" % (m, n, bytes.fromhex(i)) for m, n, i in rows)
        )

    def top(
        self, *rows: tuple[bytes, bytes, str], without: bytes = b"", ordered: bool = True
    ) -> str:
        """Return the session's own top folder with more in it, or other."""
        new = {row[1] for row in rows}
        kept = [
            (r.mode, r.name, r.id.hex())
            for r in self.root.values()
            if r.name not in {without, *new}
        ]
        return self.tree([*kept, *rows], ordered=ordered)

    def commit(
        self,
        tree: str,
        *parents: str,
        author: bytes = PERSON,
        message: bytes = b"x\n",
        more: bytes = b"",
    ) -> str:
        lines = [b"tree " + tree.encode()]
        lines += [b"parent " + each.encode() for each in (parents or (self.head,))]
        return self.put(
            b"commit",
            b"\n".join([*lines, b"author " + author, b"committer " + PERSON])
            + b"\n"
            + more
            + b"\n"
            + message,
        )

    def branch(self, tip: str, ref: str = "refs/heads/main") -> None:
        path = self.place / ref
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{tip}\n")

    def pushed(
        self, *rows: tuple[bytes, bytes, str], without: bytes = b"", ordered: bool = True
    ) -> None:
        """Move main to a commit whose top folder has more in it, or other."""
        self.branch(self.commit(self.top(*rows, without=without, ordered=ordered)))

    def page(self, text: str | bytes, name: str = "FIND-0009", index: str | bytes = b"") -> None:
        """Move main to a commit with one memory, and an index, in the page of findings."""
        rows = [
            (FILE, f"{name}.yaml".encode(), self.blob(text)),
            (FILE, b"index.yaml", self.blob(index)),
        ]
        self.pushed((FOLDER, b"findings", self.tree([(FOLDER, b"000", self.tree(rows))])))

    def file(self, name: bytes, text: str | bytes) -> None:
        self.pushed((FILE, name, self.blob(text)))

    def nested(self, depth: int) -> str:
        found = self.tree([(FILE, b"f", self.blob(b""))])
        for _ in range(depth):
            found = self.tree([(FOLDER, b"d", found)])
        return found

    def folder(self, *names: bytes) -> str:
        return self.tree([(FILE, name, self.blob(b"")) for name in names])


Case = Callable[[Forge], None]
CASES: dict[str, Case] = {}


def case(name: str) -> Callable[[Case], Case]:
    def kept(made: Case) -> Case:
        CASES[name] = made
        return made

    return kept


def _named(title: str, name: bytes, mode: bytes = FILE) -> None:
    def made(forge: Forge) -> None:
        target = forge.folder(b"config") if mode == FOLDER else forge.blob(b"harm")
        forge.pushed((mode, name, target))

    CASES[title] = made


for _title, _name, _mode in (
    ("dot-dot", b"..", FOLDER), ("dot", b".", FOLDER), ("dot-git", b".git", FOLDER), ("dot-GIT", b".GIT", FOLDER),
    ("git-tilde-1", b"git~1", FOLDER), ("hfs-git", ".g\u200cit".encode(), FOLDER), ("git-space", b".git ", FOLDER),
    ("git-stream", b".git::$INDEX_ALLOCATION", FOLDER), ("backslash", b"..\\x", FILE),
    ("absolute", b"/etc/x", FILE), ("slash", b"a/b", FILE), ("newline", b"a\nb", FILE), ("return", b"a\rb", FILE), ("not-utf-8", b"caf\xe9.md", FILE),
    ("5000-letters", b"x" * 5000, FILE), ("escape", b"\x1b[2Jx", FILE), ("device", b"CON", FILE), ("device.md", b"nul.md", FILE),
    ("trailing-dot", b"notes.", FILE), ("gitmodules", b".gitmodules", FILE), ("envrc", b".envrc", FILE),
    ("upper-case-of-ours", b"Metadata.yaml", FILE), ("upper-case-folder-of-ours", b"FINDINGS", FOLDER),
    ("mode-666", b"x.md", b"100666"), ("mode-664", b"x.md", b"100664"), ("padded-mode", b"x", b"040000"),
    ("link", b"findings", LINK), ("link-aside", b"notes", LINK), ("submodule", b"lib", GITLINK),
    ("not-nfc", "cafe\u0301.md".encode(), FILE), ("option", b"-rf", FILE),
):  # fmt: skip
    _named(_title, _name, _mode)


@case("link-in-the-place-of-a-memory")
def _(forge: Forge) -> None:
    page = forge.tree([(LINK, b"FIND-0001.yaml", forge.blob(b"/etc/passwd"))])
    forge.pushed((FOLDER, b"findings", forge.tree([(FOLDER, b"000", page)])))


@case("case-collision")
def _(forge: Forge) -> None:
    forge.pushed((FILE, b"Notes.md", forge.blob(b"1")), (FILE, b"notes.md", forge.blob(b"2")))


@case("width-collision")
def _(forge: Forge) -> None:
    forge.pushed((FILE, "ﬁ.md".encode(), forge.blob(b"1")), (FILE, b"fi.md", forge.blob(b"2")))


@case("twice")
def _(forge: Forge) -> None:
    forge.pushed((FILE, b"x.md", forge.blob(b"1")), (FILE, b"x.md", forge.blob(b"2")))


@case("unsorted")
def _(forge: Forge) -> None:
    forge.pushed((FILE, b"0.md", forge.blob(b"1")), ordered=False)


@case("3000-deep")
def _(forge: Forge) -> None:
    forge.pushed((FOLDER, b"notes", forge.nested(3000)))


@case("embedded-repository")
def _(forge: Forge) -> None:
    inner = forge.folder(b"HEAD")
    config = forge.blob('[core]\n\tfsmonitor = "touch /tmp/pwned"\n')
    rows = [
        (FILE, b"HEAD", forge.blob(b"ref: refs/heads/main\n")),
        (FILE, b"config", config),
        (FOLDER, b"objects", inner),
        (FOLDER, b"refs", inner),
    ]
    forge.pushed((FOLDER, b"notes", forge.tree(rows)))


@case("missing-file")
def _(forge: Forge) -> None:
    forge.pushed((FILE, b"x.md", "12" * 20))


@case("null-id")
def _(forge: Forge) -> None:
    forge.pushed((FILE, b"x.md", "0" * 40))


@case("folder-as-a-file")
def _(forge: Forge) -> None:
    forge.pushed((FILE, b"x.md", forge.folder(b"y")))


@case("metadata-is-a-folder")
def _(forge: Forge) -> None:
    forge.pushed((FOLDER, b"metadata.yaml", forge.folder(b"y")), without=b"metadata.yaml")


@case("no-metadata")
def _(forge: Forge) -> None:
    forge.pushed(without=b"metadata.yaml")


@case("100000-files")
def _(forge: Forge) -> None:
    one = forge.blob(b"")
    forge.pushed((FOLDER, b"notes", forge.tree([(FILE, b"%06d" % n, one) for n in range(100_000)])))


@case("100000-states")
def _(forge: Forge) -> None:
    one = forge.blob(b"")
    rows = [(FILE, b"a%06d.yaml" % n, one) for n in range(100_000)]
    forge.pushed((FOLDER, b"agent-states", forge.tree(rows)))


@case("40-megabytes")
def _(forge: Forge) -> None:
    forge.pushed((FILE, b"x.md", forge.zeros(40 << 20)))


@case("large-commit-message")
def _(forge: Forge) -> None:
    forge.branch(forge.commit(forge.top(), message=b"x" * (2 << 20)))


def _bomb(title: str, text: str) -> None:
    CASES[title] = lambda forge: forge.page(text)


_LEVELS = "\n".join(f"l{n}: &l{n} [{', '.join([f'*l{n - 1}'] * 9)}]" for n in range(1, 12))
_MERGES = "\n".join(f"m{n}: &m{n} {{<<: [{', '.join([f'*m{n - 1}'] * 9)}]}}" for n in range(1, 9))
_bomb("alias-bomb", f"l0: &l0 [a, a, a]\n{_LEVELS}\n")
_bomb("merge-bomb", f"m0: &m0 {{a: 1}}\n{_MERGES}\n")
_bomb("1000-lists", MEMORY.format(id="FIND-0009", text="x") + f"x: {'[' * 1000}{']' * 1000}\n")
_bomb("100000-brackets", "[" * 100_000)
_bomb("python-object", "x: !!python/object/apply:os.system ['touch /tmp/pwned']\n")
_bomb("directive", "%YAML 1.1\n---\n" + MEMORY.format(id="FIND-0009", text="x"))
_bomb("two-documents", MEMORY.format(id="FIND-0009", text="x") + "---\nx: 1\n")
_bomb("100000-digits", MEMORY.format(id="FIND-0009", text="x") + f"x: {'1' * 100_000}\n")
_bomb("2000000-values", MEMORY.format(id="FIND-0009", text="x") + f"x: [{'1,' * 2_000_000}1]\n")
_bomb("other-id", MEMORY.format(id="FIND-0008", text="x"))
_bomb("bad-time", MEMORY.format(id="FIND-0009", text="x").replace("2026-01-11", "2026-13-45"))
_bomb("no-mapping", "- 1\n- 2\n")
_bomb("not-yaml", "a: [1,\n")
_bomb("byte-order-mark", "\ufeff" + MEMORY.format(id="FIND-0009", text="x"))
CASES["memory-not-utf-8"] = lambda forge: forge.page(
    MEMORY.format(id="FIND-0009", text="x").encode() + b"x: \xff\n"
)
CASES["memory-with-nul"] = lambda forge: forge.page(
    MEMORY.format(id="FIND-0009", text="x") + 'x: "a\0b"\n'
)
CASES["wrong-page"] = lambda forge: forge.page(MEMORY.format(id="FIND-0109", text="x"), "FIND-0109")
CASES["wrong-folder"] = lambda forge: forge.page(MEMORY.format(id="DEC-0009", text="x"), "DEC-0009")
CASES["stray-in-a-page"] = lambda forge: forge.page("x", "run")
CASES["short-number"] = lambda forge: forge.page(MEMORY.format(id="FIND-9", text="x"), "FIND-9")


@case("folder-in-a-page")
def _(forge: Forge) -> None:
    page = forge.tree([(FOLDER, b"000", forge.folder(b"x"))])
    forge.pushed((FOLDER, b"findings", forge.tree([(FOLDER, b"000", page)])))


@case("stray-beside-pages")
def _(forge: Forge) -> None:
    forge.pushed((FOLDER, b"findings", forge.folder(b"run.sh")))


@case("page-of-no-number")
def _(forge: Forge) -> None:
    forge.pushed((FOLDER, b"findings", forge.tree([(FOLDER, b"0", forge.folder(b"x"))])))


@case("filter-attribute")
def _(forge: Forge) -> None:
    forge.file(b".gitattributes", "* filter=evil\n")


@case("attributes-below")
def _(forge: Forge) -> None:
    page = forge.tree([(FILE, b".gitattributes", forge.blob(b"* text eol=crlf\n"))])
    forge.pushed((FOLDER, b"findings", forge.tree([(FOLDER, b"000", page)])))


def _metadata(title: str, old: str, new: str) -> None:
    def made(forge: Forge) -> None:
        text = RawObjects(forge.place).read(forge.root[b"metadata.yaml"].id)[1].decode()
        assert old in text
        forge.file(b"metadata.yaml", text.replace(old, new, 1))

    CASES[title] = made


_metadata("newer-format", "format: 2", "format: 4")
_metadata("newer-rule", "rule: 2", "rule: 4")
_metadata("rule-of-true", "rule: 2", "rule: true")
_metadata("no-uid", "uid: ", "uids: ")
_metadata("session-outside", "id: shop", "id: ../shop")
_metadata("metadata-alias-bomb", "tags: []", f"l0: &l0 [a]\n{_LEVELS}")


@case("another-session-on-a-branch")
def _(forge: Forge) -> None:
    text = RawObjects(forge.place).read(forge.root[b"metadata.yaml"].id)[1].decode()
    at = text.index("uid: ") + 6
    other = forge.blob(text[:at] + ("b" if text[at] == "a" else "a") + text[at + 1 :])
    forge.branch(forge.commit(forge.top((FILE, b"metadata.yaml", other))), "refs/heads/other")


def _graves(title: str, text: str) -> None:
    CASES[title] = lambda forge: forge.file(b"tombstones.yaml", text)


_graves("tombstone-of-another-rule", '- {"id":"DEC-0001","generation":1,"purged":false,"rule":2}\n')
_graves("record-of-nothing-known", '- {"id":"DEC-0001"}\n')
_graves("record-with-content", '- {"id":"DEC-0001","first":["deleted"],"text":"secret"}\n')
_graves("record-of-an-odd-life", '- {"id":"DEC-0001","lives":{"../../x":{"flags":["deleted"]}}}\n')
_graves("record-of-an-odd-cause", '- {"id":"DEC-0001","lives":{"brightly":{"by":"magic","from":["first"]}}}\n')  # fmt: skip
_MANY = ",".join(f'"g{number}":{{"flags":["deleted"]}}' for number in range(2, 10_010))
_graves("record-of-too-many-lives", f'- {{"id":"DEC-0001","lives":{{{_MANY}}}}}\n')
_graves("tombstone-of-nothing", "- everything\n")
_graves("tombstone-nested", '- {"id":' + "[" * 100_000 + "}\n")
_graves(
    "tombstones-without-end",
    "".join(
        f'- {{"id":"turn-{n}000001..turn-{n + 1}000000","generation":1,"purged":true,"rule":1}}\n'
        for n in range(1000, 1010)
    ),
)
_graves(
    "tombstones-of-4-megabytes",
    '- {"id":"DEC-0001","generation":1,"purged":false,"rule":1}\n' * 70_000,
)


@case("replica-of-another-name")
def _(forge: Forge) -> None:
    forge.pushed(
        (FOLDER, b"replicas", forge.tree([(FILE, b"abcd.yaml", forge.blob("tag: zzzz\n"))]))
    )


@case("replica-outside")
def _(forge: Forge) -> None:
    forge.pushed((FOLDER, b"replicas", forge.folder(b"x.yaml")))


def _signed(title: str, author: bytes) -> None:
    CASES[title] = lambda forge: forge.branch(forge.commit(forge.top(), author=author))


_signed("year-3170000", b"eve <eve@x> 99999999999999 +0000")
_signed("no-time", b"eve <eve@x>")
_signed("no-mail", b"eve 1768142000 +0000")
_signed("two-mails", b"eve <a@b> <c@d> 1768142000 +0000")
_signed("negative-time", b"eve <eve@x> -1 +0000")
_signed("escape-in-author", b"\x1b[31meve <eve@x> 1768142000 +0000")
_signed("author-not-utf-8", b"\xe9ve <eve@x> 1768142000 +0000")


def _said(title: str, message: bytes, more: bytes = b"") -> None:
    CASES[title] = lambda forge: forge.branch(forge.commit(forge.top(), message=message, more=more))


_said("message-not-utf-8", b"caf\xe9\n")
_said("message-with-nul", b"a\0b\n")
_said("other-encoding", b"x\n", b"encoding utf-16\n")


@case("100-parents")
def _(forge: Forge) -> None:
    parents = [forge.commit(forge.top(), message=b"%d\n" % n) for n in range(100)]
    forge.branch(forge.commit(forge.top(), *parents))


@case("missing-parent")
def _(forge: Forge) -> None:
    forge.branch(forge.commit(forge.top(), "12" * 20))


@case("parent-is-a-folder")
def _(forge: Forge) -> None:
    forge.branch(forge.commit(forge.top(), forge.top()))


@case("branch-is-a-file")
def _(forge: Forge) -> None:
    forge.branch(forge.blob(b"x"), "refs/heads/other")


def _tagged(title: str, data: Callable[[Forge], bytes]) -> None:
    CASES[title] = lambda forge: forge.branch(forge.put(b"tag", data(forge)), "refs/tags/v1")


_tagged(
    "tag-of-a-folder",
    lambda forge: (
        b"object %s\ntype tree\ntag v1\ntagger %s\n\nx\n" % (forge.top().encode(), PERSON)
    ),
)
_tagged("tag-of-nonsense", lambda forge: b"nonsense")
_tagged(
    "tag-with-nul",
    lambda forge: (
        b"object %s\ntype commit\ntag v1\ntagger %s\n\na\0b\n" % (forge.head.encode(), PERSON)
    ),
)


@case("tags-of-tags")
def _(forge: Forge) -> None:
    tip, kind = forge.head, b"commit"
    for _n in range(10):
        tip = forge.put(
            b"tag", b"object %s\ntype %s\ntag v1\ntagger %s\n\nx\n" % (tip.encode(), kind, PERSON)
        )
        kind = b"tag"
    forge.branch(tip, "refs/tags/v1")


def _counted(title: str, data: bytes, name: bytes = b"access.json", ref: str = "abcd") -> None:
    def made(forge: Forge) -> None:
        tree = forge.tree([(FILE, name, forge.blob(data))])
        text = b"tree %s\nauthor %s\ncommitter %s\n\naccesses\n" % (tree.encode(), PERSON, PERSON)
        forge.branch(forge.put(b"commit", text), f"refs/smp/access/{ref}")

    CASES[title] = made


_counted("counts-of-another-form", b"[1, 2]")
_counted("counts-nested", b"[" * 100_000)
_counted("counts-of-no-number", b'{"DEC-0001": ["x", "y"]}')
_counted("counts-with-a-program", b"{}", name=b"run.sh")
_counted("counts-of-no-replica", b"{}", ref="../../heads-x".replace("../", "x"))


@case("counts-with-history")
def _(forge: Forge) -> None:
    forge.branch(
        forge.commit(forge.tree([(FILE, b"access.json", forge.blob(b"{}"))])),
        "refs/smp/access/abcd",
    )


@case("branch-called-HEAD")
def _(forge: Forge) -> None:
    forge.branch(forge.head, "refs/heads/HEAD")


@case("branch-called-like-a-commit")
def _(forge: Forge) -> None:
    forge.branch(forge.head, f"refs/heads/{'a' * 40}")


# What does no harm in a commit of the past, where somebody has taken it out again.
PAST: frozenset[str] = frozenset(
    ("1000-lists", "100000-brackets", "100000-digits", "2000000-values", "40-megabytes", "alias-bomb",
     "bad-time", "byte-order-mark", "case-collision", "device", "device.md", "directive", "envrc",
     "folder-in-a-page", "memory-not-utf-8", "memory-with-nul", "merge-bomb", "metadata-alias-bomb",
     "metadata-is-a-folder", "newer-format", "newer-rule", "no-mapping", "no-metadata", "no-uid",
     "not-nfc", "not-yaml", "option", "other-id", "page-of-no-number", "python-object",
     "record-of-an-odd-cause", "record-of-an-odd-life", "record-of-nothing-known", "record-of-too-many-lives",
     "record-with-content",
     "replica-of-another-name", "replica-outside", "rule-of-true", "session-outside", "short-number",
     "stray-beside-pages", "stray-in-a-page", "tombstone-nested", "tombstone-of-another-rule",
     "tombstone-of-nothing", "tombstones-of-4-megabytes", "tombstones-without-end", "trailing-dot",
     "two-documents", "upper-case-folder-of-ours", "upper-case-of-ours", "width-collision",
     "wrong-folder", "wrong-page")
)  # fmt: skip
