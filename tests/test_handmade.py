"""What a person did by hand: committed as it is, or refused with file and line."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import InvalidFileError, RefusedError
from tests.support import git

HEAD = "id: DEC-0001\nkind: decision\ncreated_at: 2026-01-11T14:40:00Z\nagent: a\ndecision: Use Redis\n"  # fmt: skip


@pytest.fixture
def file(session: Session) -> Path:
    """The file of a decision, committed."""
    return session.file(session.add("decision", "Use Redis", agent="a").id)


def restore(session: Session) -> None:
    """Bring the checked-out files of a person back to what is committed."""
    snapshot = session._handle.reader.snapshot()
    for path, blob in snapshot.repository.files(snapshot.tree):
        (session.path / path).write_bytes(snapshot.repository.blob(blob))


BAD = {
    "alias bomb": ("a: &a [x]\nb: &b [*a, *a]\nc: [*b, *b]\n", 6, "anchors"),
    "merge key": ("base: {a: 1}\nx:\n  <<: {b: 2}\n", 8, "merge keys"),
    "merge key bomb": ("a: &a {k: 1}\nb: {<<: [*a, *a, *a]}\n", 6, "anchors"),
    "tag": ("x: !!python/object:os.system {}\n", 6, "tags"),
    "short tag": ("x: !y z\n", 6, "tags"),
    "second document": ("---\na: 1\n", 6, "second YAML document"),
    "deep brackets": ("x: " + "[" * 100_000 + "\n", 6, "nested deeper"),
    "deep closed brackets": ("x: " + "[" * 100_000 + "]" * 100_000 + "\n", 6, "nested deeper"),
    "deep braces": ("x: " + "{a: " * 100_000 + "\n", 6, "nested deeper"),
    "deep dashes": ("x:\n" + "- " * 50_000 + "a\n", 7, "nested deeper"),
    "key twice": ("agent: b\n", 6, "twice"),
    "key twice, one quoted": ('"agent": b\n', 6, "twice"),
    "list as a key": ("? [a, b]\n: c\n", 6, "a key must be text"),
    "mapping as a key": ("{a: b}: c\n", 6, "a key must be text"),
    "long number": ("x: " + "9" * 5000 + "\n", 6, "digits"),
    "hexadecimal bomb": ("x: 0x" + "f" * 5000 + "\n", 6, "digits"),
    "infinite number": ("x: 1e999\n", 6, "finite"),
    "unclosed quote": ('x: "abc\n', 7, ""),
    "tab": ("x:\n\ty: 1\n", 7, ""),
    "control character": ("x: \x07\n", 6, "control characters"),
    "escaped half of a character": ('x: "\\ud800"\n', 6, "escape"),
    "escaped NUL": ('x: "\\0"\n', 6, "NUL"),
    "bad tag of a memory": ("tags: [Not A Tag]\n", 6, "not a valid tag"),
    "bad link": ("links: [{resolves: nonsense}]\n", 6, "not a valid id"),
    "bad severity of time": ("updated_at: soon\n", 6, "not a time"),
    "bad generation": ("generation: 0\n", 6, "generation"),
    "bad life": ("life: k3fq\n", 6, "life"),
    "life without a name": ("life:\n", 6, "life"),
    "life of both formats": ("life: brightly\ngeneration: 2\n", 6, "life"),
    "bad confidence": ("confidence: sure\n", 6, "confidence"),
    "bad field": ("a b: 1\n", 6, "field"),
    "structural name of another kind": ("1: x\n", 6, "field"),
}


@pytest.mark.parametrize("name", BAD)
def test_what_does_not_parse_is_refused_with_its_line(
    session: Session, file: Path, name: str
) -> None:
    more, line, problem = BAD[name]
    file.write_text(HEAD + more)
    head = session.head
    with pytest.raises(InvalidFileError) as caught:
        session.commit()

    assert caught.value.message.startswith("decisions/000/DEC-0001.yaml:")
    assert caught.value.message.split(":")[1] == str(line)
    assert problem in caught.value.message
    assert len(caught.value.message) < 300
    assert session.head == head
    restore(session)


def test_directive_is_refused(session: Session, file: Path) -> None:
    file.write_text("%YAML 1.1\n---\n" + HEAD + "open: no\n")
    with pytest.raises(InvalidFileError, match="directives"):
        session.commit()
    restore(session)


@pytest.mark.parametrize("data", [b"\xff\xfe", b"\xef\xbb\xbf" + HEAD.encode(), b"", b"[a]\n", b"text\n", b"\0" * 100, b"a: \xed\xa0\x80\n"])  # fmt: skip
def test_bytes_that_are_no_memory_are_refused(session: Session, file: Path, data: bytes) -> None:
    file.write_bytes(data)
    with pytest.raises(InvalidFileError, match="DEC-0001"):
        session.commit()
    restore(session)


def test_file_that_is_too_large_is_refused(session: Session, file: Path) -> None:
    file.write_text(HEAD + "x: " + "y" * 5_000_000 + "\n")
    with pytest.raises(InvalidFileError, match="larger than"):
        session.commit()
    restore(session)


@pytest.mark.parametrize(
    "more",
    ["x: <<\n", "- ", "x: '<<'\n", "x: \"<<\"  # quoted\n", "y: {a: [1, 2]}\n", "# end", "\r\n", "z: >\n  folded\n  text\n",
     "n: .inf\n", "d: 2026-01-11\n", "'on': off\n"]
)  # fmt: skip
def test_yaml_of_a_persons_own_style_is_read_or_refused(
    session: Session, file: Path, more: str
) -> None:
    file.write_text(HEAD + more)
    try:
        session.commit()
    except InvalidFileError:
        restore(session)


def test_quoted_word_that_looks_like_a_merge_key_is_text(session: Session, file: Path) -> None:
    file.write_text(HEAD + 'x: "<<"   # quoted\n')
    session.commit()

    assert session.get("DEC-0001").fields == {"x": "<<"}


def test_short_file_of_a_person_is_enough(session: Session) -> None:
    path = session.path / "findings/000/FIND-0007.yaml"
    path.parent.mkdir(parents=True)
    path.write_text("created_at: 2026-01-11\nfinding: No TLS\n")
    session.commit(agent="ada")

    assert session.get("FIND-7").agent == "user"
    assert session.add("finding", "No MFA", agent="a").id == "FIND-0008"


def test_removed_file_is_a_removed_memory(session: Session, file: Path) -> None:
    file.unlink()
    change = session.commit()

    assert [(touch.verb, touch.id) for touch in change.touches] == [("remove", "DEC-0001")]
    assert session.memories() == ()
    assert not file.parent.exists() or not any(file.parent.iterdir())


def test_renamed_file_is_refused(session: Session, file: Path) -> None:
    file.rename(file.with_name("DEC-0005.yaml"))
    with pytest.raises(InvalidFileError, match="the id is not DEC-0005"):
        session.commit()
    file.with_name("DEC-0005.yaml").rename(file)


@pytest.mark.parametrize(
    ("place", "hint"),
    [
        ("decisions/000/DEC-0100.yaml", "DEC-0100 belongs at decisions/001/DEC-0100.yaml"),
        ("decisions/000/FIND-0001.yaml", "FIND-0001 belongs at findings/000/FIND-0001.yaml"),
        ("decisions/000/DEC-0002.yml", "belongs at"),
        ("decisions/000/dec-0002.yaml", "move it"),
        ("decisions/000/DEC-02.yaml", "move it"),
        ("decisions/DEC-0002.yaml", "belongs at"),
        ("decisions/000/DEC-0002.yaml/DEC-0003.yaml", "belongs at"),
        ("decisions/0/DEC-0002.yaml", "belongs at"),
        ("agent-states/Ada.yaml", "move it"),
        ("agent-states/con.yaml", ""),
        ("decisions/000/notes.txt", "move it"),
    ],
)
def test_file_at_the_wrong_place_is_refused_with_the_right_one(
    session: Session, file: Path, place: str, hint: str
) -> None:
    assert file.exists()
    path = session.path / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(HEAD)
    with pytest.raises(InvalidFileError, match=place.rpartition("/")[2]) as caught:
        session.commit()

    assert hint in str(caught.value.hint)
    path.unlink()


def test_file_with_a_name_that_is_no_text_is_refused(session: Session, file: Path) -> None:
    odd = os.fsencode(file.parent) + b"/\xff.yaml"
    path = Path(os.fsdecode(odd))
    path.touch()
    with pytest.raises(InvalidFileError, match="no memory belongs") as caught:
        session.commit()
    caught.value.message.encode()
    path.unlink()


def _link(path: Path) -> None:
    path.symlink_to("/etc/hostname")


def _pipe(path: Path) -> None:
    os.mkfifo(path)


@pytest.mark.parametrize("make", [_link, _pipe])
def test_what_is_no_file_is_refused(session: Session, file: Path, make: Callable[[Path], None]) -> None:  # fmt: skip
    path = file.with_name("DEC-0002.yaml")
    make(path)
    with pytest.raises(InvalidFileError, match="DEC-0002"):
        session.commit()
    path.unlink()


def test_link_in_place_of_a_page_is_not_written_through(session: Session, file: Path, tmp_path: Path) -> None:  # fmt: skip
    elsewhere = tmp_path / "elsewhere"
    file.parent.rename(elsewhere)
    file.parent.symlink_to(elsewhere)
    try:
        session.add("decision", "Use Valkey", agent="a")
    except RefusedError:
        assert len(session.memories()) in (1, 2)

    assert not (elsewhere / "DEC-0002.yaml").exists()
    file.parent.unlink()
    elsewhere.rename(file.parent)
    session.add("decision", "Use Memcached", agent="a")
    assert git(session.path, "fsck", "--strict", "--no-dangling") == ""
    restore(session)


def test_index_changed_by_hand_is_written_again(session: Session, file: Path) -> None:
    index = file.with_name("index.yaml")
    right = index.read_text()
    index.write_text("- lies\n")
    session.commit()

    assert index.read_text() == right


def test_index_removed_by_hand_is_written_again(session: Session, file: Path) -> None:
    index = file.with_name("index.yaml")
    index.unlink()
    session.add("decision", "Use Valkey", agent="a")

    assert index.read_text().count("\n") == 2


def test_strangers_beside_the_memories_are_left_alone(session: Session, file: Path) -> None:
    (session.path / "notes.txt").write_text("mine")
    (session.path / "mine").mkdir()
    file.write_text(HEAD + "note: x\n")
    session.commit()

    assert (session.path / "notes.txt").read_text() == "mine"
    assert session.check() == ()
    assert git(session.path, "status", "--porcelain") == "?? notes.txt\n"


def test_nothing_done_by_hand_is_nothing_committed(session: Session, file: Path) -> None:
    head = session.head

    assert session.commit().touches == ()
    assert session.head == head


def test_one_bad_file_keeps_all_others_from_the_commit(session: Session, file: Path) -> None:
    file.write_text(HEAD + "note: fine\n")
    bad = file.with_name("DEC-0002.yaml")
    bad.write_text("nonsense")
    with pytest.raises(InvalidFileError, match="DEC-0002"):
        session.commit()

    assert session.get("DEC-0001").fields == {}
    bad.unlink()
    session.commit()
    assert session.get("DEC-0001").fields == {"note": "fine"}


def test_windows_line_ends_are_read(session: Session, file: Path) -> None:
    file.write_bytes(HEAD.replace("\n", "\r\n").encode() + b"impact: high # why\r\n")
    session.commit()
    session.edit("DEC-0001", impact="low")

    assert b"impact: low # why\r\n" in file.read_bytes()
    assert b"decision: Use Redis\r\n" in file.read_bytes()


def test_turn_with_windows_line_ends_is_refused_with_the_reason(session: Session) -> None:
    file = session.file(session.add("turn", "Hello", agent="user").id)
    file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    with pytest.raises(InvalidFileError, match="front matter") as caught:
        session.commit()

    assert "LF" in str(caught.value.hint)
    restore(session)


def test_store_check_names_what_is_not_committed(store: Store, session: Session, file: Path) -> None:  # fmt: skip
    right = file.read_text()
    file.write_text(HEAD + "x: y\n")

    assert store.check() == ("shop: decisions/000/DEC-0001.yaml differs from what is committed",)
    file.write_text(right)
