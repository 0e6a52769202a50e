"""A text put everywhere is nowhere after its memory was deleted; everything else is as it was."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.ids import value_id
from smp_git.remove.history.erase import erase
from smp_git.remove.history.journal import Receipt, RewriteOrder
from smp_git.remove.history.search import DeadVersion
from tests.conftest import Clock
from tests.independent_scan import scan
from tests.support import git, own, untyped

SENTINEL = "xyzzy-plugh-the-secret-of-the-cave-0451"
ALL_KINDS = ("turn", "decision", "finding", "preference", "learning", "artifact")


def deleted(session: Session, clock: Clock, *ids: str, purge: bool = False) -> Receipt:
    return erase(
        session._handle.writer,
        ids,
        RewriteOrder(purge=purge, reason="a test", by="tester", now=clock()),
    )


@pytest.fixture
def marked(session: Session) -> Iterator[Session]:
    """A session with the sentinel in every kind and every field, edited five times."""
    for kind in ALL_KINDS:
        session.add(
            untyped(kind), f"plain text of a {kind}, which stays where it is", agent="other"
        )
    for kind in ALL_KINDS:
        session.add(
            untyped(kind),
            f"{SENTINEL} in {kind}\nand {SENTINEL} below",
            agent="agent",
            tags=["x-tag"],
        )
    session.set_state("agent", {"working_memory": {"note": SENTINEL, "list": [SENTINEL]}})
    values = session.values("agent")
    values.put("of another program", {"plain": "text"})
    values.put(KEY, {"note": [SENTINEL, {SENTINEL: 1}]})
    values.put(KEY, f"{SENTINEL} as a text")
    values.remove(KEY)
    values.put(KEY, {"again": SENTINEL})
    for number in range(5):
        for name in ("DEC-0002", "FIND-0002", "PREF-0002", "LEARN-0002", "ART-0002"):
            session.edit(
                name, agent="agent", text=f"{SENTINEL} edit {number}", **own(remark=SENTINEL)
            )
    session.link("DEC-0001", "relates", "DEC-0002", agent="agent")
    session.set_state("agent", {"again": SENTINEL})
    session.close()
    folder = session.path
    git(folder, "tag", "-a", "v1", "-m", f"about {SENTINEL}", "HEAD~3")
    git(folder, "branch", "experiment", "HEAD~6")
    git(folder, "notes", "add", "-m", f"a note: {SENTINEL}", "HEAD~4")
    target = folder / "decisions/000/DEC-0002.yaml"
    for number in range(2):
        target.write_text(target.read_text() + f"extra: {SENTINEL} stash {number}\n")
        git(folder, "stash", "-q")
    (folder / "decisions/000/DEC-0002.yaml~").write_text(SENTINEL)
    (folder / "decisions/000/.DEC-0002.yaml.swp").write_text(SENTINEL)
    with Session(folder, session._opened.clock) as opened:
        opened.add("decision", "one more after everything", agent="other")
        yield opened


KEY = ("users", SENTINEL)
MARKED = [
    value_id(KEY).text,
    "turn-0002",
    "DEC-0002",
    "FIND-0002",
    "PREF-0002",
    "LEARN-0002",
    "ART-0002",
    "state-agent",
]


def others(folder: Path) -> dict[str, tuple[str, str]]:
    """Every version of every other memory: its bytes' id by the commit that has it."""
    out: dict[str, tuple[str, str]] = {}
    for line in git(folder, "rev-list", "main").split():
        subject = git(folder, "show", "-s", "--format=%an %at %s", line).strip()
        tree = git(folder, "ls-tree", "-r", line)
        kept = [row for row in tree.splitlines() if row.split("\t")[1].count("/") == 2]
        kept = [
            row for row in kept if "index.yaml" not in row and not any(m in row for m in MARKED)
        ]
        out[subject] = subject, "\n".join(kept)
    return out


@pytest.mark.parametrize("packed", [False, True], ids=["loose", "packed"])
def test_sentinel_is_nowhere_after_delete(marked: Session, clock: Clock, packed: bool) -> None:
    folder = marked.path
    if packed:
        git(folder, "repack", "-adq", "--write-bitmap-index")
        git(folder, "commit-graph", "write", "--reachable")
        git(folder, "multi-pack-index", "write")
    assert scan(folder, [SENTINEL.encode()])
    before = others(folder)

    receipt = deleted(marked, clock, *MARKED)

    assert scan(folder, [SENTINEL.encode()]) == []
    assert receipt.proof.clean, receipt.proof.hits
    assert git(folder, "fsck", "--full", "--strict", "--no-dangling") == ""
    after = others(folder)
    assert {subject for subject in after if "delete" in subject} == {
        s for s in after if s not in before
    }
    assert all(before[subject] == after[subject] for subject in after if subject in before)
    assert git(folder, "status", "--porcelain") == ""
    assert len(git(folder, "stash", "list").splitlines()) == 2
    assert [m.id for m in marked.memories("decision")] == ["DEC-0001", "DEC-0003"]
    assert marked.check() == ()


def test_log_reads_as_if_it_had_never_been(session: Session, clock: Clock) -> None:
    session.add("decision", "stays", agent="a")
    session.add("decision", "goes away entirely", agent="a")
    session.edit("DEC-0002", agent="a", text="goes away as well")
    session.add("decision", "stays too", agent="a")

    deleted(session, clock, "DEC-0002")

    assert [version.subject for version in session.log()] == [
        "delete decision DEC-0002",
        "decision DEC-0003: stays too",
        "decision DEC-0001: stays",
        "create session",
    ]


def test_seal_gets_every_version_before_anything_changes(session: Session, clock: Clock) -> None:
    session.add("decision", "first text", agent="a")
    session.edit("DEC-0001", agent="a", text="second text")
    head = session.head
    got: list[DeadVersion] = []

    def refuse(versions: object) -> None:
        got.extend(versions)  # type: ignore[arg-type]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        erase(
            session._handle.writer,
            ["DEC-0001"],
            RewriteOrder(reason=None, by="a", seal=refuse, now=clock()),
        )

    assert session.head == head
    assert [b"first" in each.data for each in got] == [True, False]
    assert not (session.path / ".git/smp/erasure.json").exists()


def test_scanner_shares_nothing_with_the_program(marked: Session, tmp_path: Path) -> None:
    source = (Path(__file__).parent.parent / "independent_scan.py").read_text()
    alone = tmp_path / "scan.py"
    shutil.copy(Path(__file__).parent.parent / "independent_scan.py", alone)
    done = subprocess.run(["python3", "-I", alone, marked.path, SENTINEL], capture_output=True)

    assert "import smp" not in source and "from smp" not in source
    assert done.returncode == 1


def test_deleting_many_is_one_rewrite(store: Store, clock: Clock) -> None:
    with store.create_session("many") as session:
        with session.transaction(agent="a") as tx:
            for number in range(150):
                tx.add("turn", f"turn number {number} says something")
        receipt = deleted(session, clock, *(f"turn-{n:04d}" for n in range(20, 141)))

        assert receipt.proof.clean
        assert session.log()[0].subject == "delete batch: 121 turns"
        assert len(session.memories("turn")) == 29
        assert (session.path / "tombstones.yaml").read_text().count("\n") == 1
