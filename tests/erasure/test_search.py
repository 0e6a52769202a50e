"""What a proof searches for: runs of short lines, addresses, codes, lists, names; and what it says it does not."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from smp_git import Session
from smp_git.format.records import Tombstones
from smp_git.model.memory import MemoryId
from smp_git.remove.history.places import PlaceNames
from smp_git.remove.history.search import (
    DeadVersion,
    PhraseFinder,
    Search,
    needles,
    phrases_of,
    words,
)
from tests.conftest import Clock
from tests.erasure.test_sentinel import deleted
from tests.independent_scan import scan_words
from tests.support import git, own

ADDRESS = "Ada Lovelace\n12 Baker Street\nLondon"
CODE = "code 4711-0815"
LIST = "milk\neggs\nrye bread\nbutter"
TEXTS = {
    "address": ADDRESS,
    "code": CODE,
    "list": LIST,
    "one line of an address": "12 Baker Street",
}


def _note(folder: Path, text: str) -> None:
    git(folder, "notes", "add", "-m", text, "HEAD~1")


def _tag(folder: Path, text: str) -> None:
    git(folder, "tag", "-a", "v1", "-m", text, "HEAD~1")


def _set_in(folder: Path, text: str) -> None:
    (folder / "mine.md").write_text("".join(f"> - {line},\n" for line in text.splitlines()))


def _quoted(folder: Path, text: str) -> None:
    (folder / "mine.json").write_text(json.dumps({"a": {"note": f"he said: {text}."}}))


def _empty_commit(folder: Path, text: str) -> None:
    git(folder, "commit", "-q", "--no-verify", "--allow-empty", "-m", f"about\n\n{text}")


COPIES: dict[str, tuple[Callable[[Path, str], None], str]] = {
    "note": (_note, "a note"),
    "tag": (_tag, "the message of a tag"),
    "list in a file": (_set_in, "the file mine.md"),
    "JSON": (_quoted, "the file mine.json"),
    "message of a commit": (_empty_commit, "a commit message"),
}  # fmt: skip


@pytest.mark.parametrize("copy", COPIES)
@pytest.mark.parametrize("text", TEXTS)
def test_copy_of_short_lines_is_found(session: Session, clock: Clock, copy: str, text: str) -> None:
    session.add("decision", "what stays where it stands", agent="a")
    session.add("artifact", ADDRESS if "address" in text else TEXTS[text], agent="a")
    session.close()
    make, place = COPIES[copy]
    make(session.path, TEXTS[text])
    assert scan_words(session.path, TEXTS[text])
    with Session(session.path, clock) as opened:
        receipt = deleted(opened, clock, "ART-0001")

    assert receipt.proof.hits == (place,)
    for name in ("mine.md", "mine.json"):
        (session.path / name).unlink(missing_ok=True)


def test_list_in_a_field_is_found(session: Session, clock: Clock) -> None:
    session.add(
        "decision", "go shopping before noon today", agent="a", **own(basket=LIST.splitlines())
    )
    session.close()
    _set_in(session.path, LIST)
    with Session(session.path, clock) as opened:
        assert deleted(opened, clock, "DEC-0001").proof.hits == ("the file mine.md",)
    (session.path / "mine.md").unlink()


def test_what_is_too_short_is_said(session: Session, clock: Clock) -> None:
    session.add("decision", "Use Redis", agent="a")
    session.add("artifact", "a line that is long enough to be told\n\nhm\n\nanother line that is long enough", agent="a")  # fmt: skip

    short = deleted(session, clock, "DEC-0001").proof
    mixed = deleted(session, clock, "ART-0001").proof

    assert short.clean and mixed.clean
    assert not short.text_searched and mixed.text_searched
    assert (
        short.not_searched
        == mixed.not_searched
        == ("a text that is too short to distinguish from chance",)
    )


def test_what_others_have_too_is_no_copy(session: Session, clock: Clock) -> None:
    """Times, ids, tags and agents of a memory stand in others, and say nothing."""
    session.add(
        "finding",
        "it is slow on a cold start",
        agent="architect",
        tags=["team.database-2026", "release-2026-q1"],
    )
    session.add("decision", "2026-01-11", agent="architect", tags=["team.database-2026", "release-2026-q1"], links=[("resolves", "FIND-0001")], **own(due="2026-01-11T14:30:02Z"))  # fmt: skip

    proof = deleted(session, clock, "DEC-0001").proof

    assert proof.clean
    assert proof.also_in == ()


def test_time_of_a_contested_value_is_no_text_of_the_deleted() -> None:
    file = b"""id: DEC-0001
kind: decision
created_at: "2026-01-11T14:30:03Z"
agent: a
decision: Keep it
contested:
- field: rationale
  value: It is cheaper than the other one
  at: "2026-01-11T14:30:05Z"
  replica: qlks
"""
    name = MemoryId("DEC-0001")
    version = DeadVersion(name, "", datetime.now(UTC), "a", "", file)
    wanted = needles(Tombstones(), [version])
    registered = b'tag: qlks\nregistered_at: "2026-01-11T14:30:05Z"\n'
    assert not any(text in registered for text in wanted.texts)
    assert b"It is cheaper than the other one" in wanted.texts


def test_copy_in_a_living_memory_is_named_and_is_no_hit(session: Session, clock: Clock) -> None:
    session.add("artifact", ADDRESS, agent="a")
    session.add("turn", f"she lives at {' '.join(ADDRESS.splitlines())}, you know", agent="a")

    proof = deleted(session, clock, "ART-0001").proof

    assert proof.clean
    assert proof.also_in == ("turn-0001",)


# Names


TITLE = "Dismiss Harriet Vane on the 14th of May"


@pytest.mark.parametrize("purge", [False, True], ids=["delete", "purge"])
def test_receipt_holds_no_word_of_a_title_through_the_name_of_a_file(session: Session, clock: Clock, purge: bool) -> None:  # fmt: skip
    session.add("decision", TITLE, agent="a")
    session.close()
    git(session.path, "format-patch", "-q", "-1")
    (session.path / "notes").mkdir()
    (session.path / "notes/about harriet.txt").write_text(TITLE)
    (session.path / "plain.txt").write_text(TITLE)
    git(session.path, "tag", "-a", "harriet-vane", "-m", "x")
    git(session.path, "remote", "add", "origin", str(session.path))
    git(session.path, "branch", "dismiss-harriet-vane-on-the-14th-of-may")
    with Session(session.path, clock) as opened:
        receipt = deleted(opened, clock, "DEC-0001", purge=purge)

    said = json.dumps(receipt.as_json()).lower()
    assert not any(word in said for word in ("dismiss", "harriet", "vane"))
    assert {"the file ….patch", "the file notes/….txt", "the file plain.txt"} < set(
        receipt.proof.hits
    )
    assert "the name of the file .git/refs/heads/…" in receipt.proof.hits
    for path in (
        *session.path.glob("*.patch"),
        *session.path.glob("notes/*"),
        session.path / "plain.txt",
    ):
        path.unlink()
    (session.path / "notes").rmdir()


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("harriet.txt", "….txt"),
        ("4711.txt", "….txt"),
        ("ada bob.tar.gz", "….tar.gz"),
        ("ada and others.txt", "ada and others.txt"),
        ("harriet", "…"),
        ("x.harriet", "…"),
        ("0001-anything.patch", "….patch"),
        ("2026-01-11.txt", "2026-01-11.txt"),
        ("notes/harriet/list.txt", "notes/…/list.txt"),
        ("decisions/000/DEC-0001.yaml", "decisions/000/DEC-0001.yaml"),
        (os.fsdecode(b"n\xff.txt"), "n\\xff.txt"),
    ],
)
def test_names_are_told_without_a_word_of_the_deleted(name: str, shown: str) -> None:
    data = (
        b"---\nid: turn-0001\ncreated_at: 2026-01-11T14:30:00Z\n---\nAda, Bob and Harriet: 4711\n"
    )
    version = DeadVersion(MemoryId("turn-0001"), "", datetime.now(UTC), "a", "", data)  # fmt: skip

    assert PlaceNames([version]).file(name) == shown


# Any copy of any text, against the independent scan

_texts = st.lists(st.sampled_from(["milk", "12 Baker Street", "café “Größe” 7", "pin 4711-0815", "a much longer line about the vault", "ok", ""]), min_size=1, max_size=6)  # fmt: skip
FORMS: dict[str, Callable[[str], str]] = {
    "as it is": str,
    "set in": lambda text: "".join(f"      {line}\r\n" for line in text.splitlines()),
    "quoted": lambda text: "".join(f"> * {line};\n" for line in text.splitlines()),
    "JSON": lambda text: json.dumps({"x": text}, ensure_ascii=False),
    "JSON in ASCII": lambda text: json.dumps({"x": text}),
    "one line": lambda text: f"he said “{' '.join(text.split())}”.",
    "shouted": lambda text: text.replace("ß", "").upper() if "ß" not in text else text,
    "folded": lambda text: "\n".join(textwrap.wrap(text, 20)),
}


@pytest.mark.parametrize("form", FORMS)
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(lines=_texts)
def test_what_the_independent_scan_finds_the_proof_finds_or_says_it_is_too_short(tmp_path_factory: pytest.TempPathFactory, form: str, lines: list[str]) -> None:  # fmt: skip
    text = "\n".join(lines).strip()
    if not text:
        return
    folder = tmp_path_factory.mktemp("copy")
    (folder / "mine.txt").write_text(FORMS[form](text))
    head = f"---\nid: ART-0001\ncreated_at: 2026-01-11T14:30:00Z\nupdated_at: 2026-01-11T14:30:00Z\nagent: a\n---\n{text}\n"  # fmt: skip
    version = DeadVersion(MemoryId("ART-0001"), "", datetime.now(UTC), "a", "", head.encode())  # fmt: skip
    wanted = needles(Tombstones(), [version])

    is_found = Search(wanted.texts, wanted.phrases).is_in((folder / "mine.txt").read_bytes())

    if form != "JSON in ASCII":
        assert scan_words(folder, text)
    assert is_found or (wanted.short and not wanted.phrases)


# Phrases

_word = st.sampled_from(
    [b"a", b"milk", b"12", b"baker", b"street", b"x" * 30, b"\xc3\xa9t\xc3\xa9"]
)
_lines = st.lists(st.lists(_word, min_size=1, max_size=5).map(b" ".join), min_size=1, max_size=12)


@given(lines=_lines, gap=st.sampled_from([b"\n", b"\n  ", b"\\n", b",\n> - ", b" | "]))
def test_every_phrase_of_a_text_is_found_in_it_however_it_is_set(
    lines: list[bytes], gap: bytes
) -> None:
    made = phrases_of(lines)
    copy = b"before, " + gap.join(line.upper() for line in lines) + b". after"

    assert PhraseFinder(made.phrases).found(copy) == made.phrases


@given(lines=_lines)
def test_every_line_is_looked_for_or_said_to_be_too_short(lines: list[bytes]) -> None:
    made = phrases_of(lines)
    told = {word for phrase in (*made.phrases, *made.short) for word in phrase}

    assert told == {word for line in lines for word in words(line)}


@given(before=st.binary(max_size=40), after=st.binary(max_size=40))
def test_part_of_a_word_is_no_word(before: bytes, after: bytes) -> None:
    finder = PhraseFinder([(b"code", b"4711")])

    assert finder.is_in(before + b" code 4711 " + after)
    assert not finder.is_in(b"barcode 4711") and not finder.is_in(b"code 47110")


def test_phrases_are_found_across_the_parts_in_which_a_text_is_taken() -> None:
    for at in range((1 << 20) - 20, (1 << 20) + 20):
        assert PhraseFinder([(b"code", b"4711")]).is_in(b" " * at + b"code 4711" + b" " * 9)
