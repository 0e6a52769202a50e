"""Page indexes: followed when right, mended when wrong, never believed against the tree."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.format import lines
from smp_git.read import pages
from tests.support import git


def rewritten(session: Session, text: str) -> None:
    """Commit another index of the first page of decisions with plain Git."""
    session.check()
    (session.path / "decisions/000/index.yaml").write_text(text)
    git(session.path, "add", "-A")
    git(session.path, "commit", "-q", "--no-verify", "-m", "a lie")


@pytest.fixture
def two(session: Session) -> Session:
    """A session of two decisions."""
    session.add("decision", "Use Redis", agent="a")
    session.add("decision", "Use TLS", agent="b")
    return session


LIES = {
    "empty": "",
    "no lines": "what is this\n",
    "not UTF-8": "- \udcff\n",
    "no JSON": "- {\n- }\n",
    "deep": "- " + "[" * 100_000 + "\n",
    "two in one line": '- {"id":"DEC-0001","blob":"x"},{"id":"DEC-0002","blob":"y"}\n- [1\n- 2]\n',
    "wrong types": '- {"id":"DEC-0001","blob":1,"at":[],"title":5,"tags":"x"}\n- {"id":5}\n- 5\n- null\n',
    "an id that is none": '- {"id":"../../x","blob":"","at":"","agent":"","title":"","size":0}\n',
    "another page's": '- {"id":"DEC-0100","blob":"","at":"","agent":"","title":"","size":0}\n',
    "number of many digits": '- {"id":"DEC-0001","size":' + "9" * 5000 + "}\n",
}


@pytest.mark.parametrize("name", LIES)
def test_lying_index_is_not_believed(store: Store, two: Session, name: str) -> None:
    right = (two.path / "decisions/000/index.yaml").read_text()
    two.check()
    (two.path / "decisions/000/index.yaml").write_bytes(LIES[name].encode(errors="surrogateescape"))
    git(two.path, "add", "-A")
    git(two.path, "commit", "-q", "--no-verify", "-m", "a lie")

    assert [memory.title for memory in two.memories()] == ["Use Redis", "Use TLS"]
    assert two.info().problems
    assert [problem.code for problem in two.check()] == ["stale_index"]
    rewritten(two, right)


def test_line_of_wrong_types_is_made_anew(two: Session) -> None:
    path = two.path / "decisions/000/index.yaml"
    right = path.read_text()
    rewritten(two, right.replace('"title":"Use Redis"', '"title":5').replace('"agent":"b"', '"agent":null'))  # fmt: skip

    assert two.add("decision", "Use Redis", agent="a").duplicate_of == "DEC-0001"
    assert {agent.agent for agent in two.info().participants} == {"a", "b"}
    assert path.read_text().startswith(right)


def test_write_mends_the_lines_of_its_page(two: Session) -> None:
    rewritten(two, "")
    two.add("decision", "Use Git", agent="a")

    assert two.check() == ()


def test_missing_index_is_made_by_the_next_write(two: Session) -> None:
    two.check()
    git(two.path, "rm", "-q", "decisions/000/index.yaml")
    git(two.path, "commit", "-q", "--no-verify", "-m", "no index")
    two.edit("DEC-0001", impact="high")

    assert two.check() == ()


def test_file_without_a_reader_is_left_out_and_named(two: Session) -> None:
    two.check()
    file = two.path / "decisions/000/DEC-0001.yaml"
    right = file.read_text()
    file.write_text("nonsense: [\n")
    git(two.path, "commit", "-q", "--no-verify", "-am", "damage")

    assert [memory.id for memory in two.memories()] == ["DEC-0002"]
    assert any("DEC-0001.yaml" in problem for problem in two.info().problems)
    assert two.add("decision", "Use Git", agent="a").id == "DEC-0003"
    file.write_text(right)
    two.commit()


@pytest.mark.parametrize("path", ["decisions/notes/x.txt", "decisions/x.txt", "decisions/000/x.txt", "decisions/0100/DEC-0100.yaml", "agent-states/x/y.yaml"])  # fmt: skip
def test_stray_file_is_named_and_harms_nothing(two: Session, path: str) -> None:
    two.check()
    target = two.path / path
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text("mine")
    git(two.path, "add", "-A")
    git(two.path, "commit", "-q", "--no-verify", "-m", "stray")

    assert [(p.code, p.path) for p in two.check()] == [("stray_file", path)]
    assert two.add("decision", "Use Git", agent="a").id == "DEC-0003"
    assert len(two.memories()) == 3
    two.check()
    git(two.path, "rm", "-q", path)
    git(two.path, "commit", "-q", "--no-verify", "-m", "tidy")


def test_folder_under_the_name_of_a_memory_harms_nothing(two: Session) -> None:
    two.check()
    target = two.path / "decisions/000/DEC-0003.yaml/x"
    target.parent.mkdir()
    target.write_text("mine")
    git(two.path, "add", "-A")
    git(two.path, "commit", "-q", "--no-verify", "-m", "a folder")

    assert len(two.memories()) == 2
    assert [problem.code for problem in two.check()] == ["stray_file"]
    git(two.path, "rm", "-q", "-r", "decisions/000/DEC-0003.yaml")
    git(two.path, "commit", "-q", "--no-verify", "-m", "tidy")


def test_index_is_the_one_its_files_ask_for(two: Session, tmp_path: Path) -> None:
    snapshot = two._handle.reader.snapshot()
    for path, tree in snapshot.page_ids().items():
        text = (two.path / path / "index.yaml").read_text()
        assert pages.rebuilt(snapshot.repository, path, tree) == text
        assert all(lines.read_lines(lines.split_page(text)))


def test_last_memory_of_a_page_takes_the_index_along(session: Session) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.undo()

    assert not (session.path / "decisions").exists()
