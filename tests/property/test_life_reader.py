"""One reader tells the life of a file: the same as reading all of it, or nothing."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smp_git.format import document
from smp_git.format.document import life_of
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import parse_id
from smp_git.model.memory import Memory
from tests import strategies

DEC = parse_id("DEC-0001").path
TURN = parse_id("turn-0001").path

# What people and other programs write where a life stands.
LINES = {
    "nothing": ("", ""),
    "the usual": ("life: brightly\n", "brightly"),
    "in quotes": ('life: "brightly"\n', "brightly"),
    "in other quotes": ("life: 'brightly'\n", "brightly"),
    "a space before the colon": ("life : brightly\n", "brightly"),
    "many spaces": ("life:     brightly\n", "brightly"),
    "spaces after": ("life: brightly   \n", "brightly"),
    "a comment after": ("life: brightly # the second\n", "brightly"),
    "a comment before": ("# life: quietest\nlife: brightly\n", "brightly"),
    "only a comment": ("# life: brightly\n", ""),
    "the key in quotes": ('"life": brightly\n', "brightly"),
    "the key in other quotes": ("'life': brightly\n", "brightly"),
    "the key escaped": ('"l\\u0069fe": brightly\n', "brightly"),
    "a value escaped": ('life: "bright\\x6cy"\n', "brightly"),
    "on the next line": ("life:\n  brightly\n", "brightly"),
    "as a folded block": ("life: >-\n  brightly\n", "brightly"),
    "as a block": ("life: |-\n  brightly\n", "brightly"),
    "with a question mark": ("? life\n: brightly\n", "brightly"),
    "of format 1": ("generation: 2\n", "g2"),
    "of format 1, the first": ("generation: 1\n", ""),
    "of format 1, in hex": ("generation: 0x11\n", "g17"),
    "of format 1, in octal": ("generation: 0o2\n", "g2"),
    "of format 1, with a sign": ("generation: +2\n", "g2"),
    "of format 1, with a zero": ("generation: 02\n", "g2"),
    "of format 1, a space before the colon": ("generation : 3\n", "g3"),
    "of format 1, in quotes": ('"generation": 3\n', "g3"),
    "joined": ("life: j0123456789ab\n", "j0123456789ab"),
    "numbered": ("life: g2-01234567\n", "g2-01234567"),
    "in a block scalar": ("note: |\n  life: brightly\n  generation: 9\n", ""),
    "in a folded scalar": ("note: >\n  life: brightly\n", ""),
    "in a text of several lines": ('note: "one\n  life: brightly"\n', ""),
    "in a plain text of several lines": ("note: one\n  two life\n", ""),
    "in a mapping": ("note:\n  life: brightly\n", ""),
    "in a mapping of one line": ("note: {life: brightly}\n", ""),
    "in a list": ("note:\n- life: brightly\n", ""),
    "in a list of mappings": ("note:\n  - life: brightly\n    generation: 2\n", ""),
    "another key": ("life_: brightly\nlifes: brightly\nx-life: brightly\nLife: brightly\n", ""),
    "another key with a dot": ("life.of: brightly\n", ""),
}  # fmt: skip
REFUSED = {
    "a number": "life: 2\n",
    "nothing there": "life:\n",
    "null": "life: null\n",
    "empty": 'life: ""\n',
    "too short": "life: bright\n",
    "capitals": "life: Brightly\n",
    "a list": "life: [brightly]\n",
    "a path": "life: ../../etc\n",
    "the first": "life: first\n",
    "twice": "life: brightly\nlife: quietest\n",
    "twice, one in quotes": 'life: brightly\n"life": quietest\n',
    "both formats": "life: brightly\ngeneration: 2\n",
    "no generation": "generation: 0\n",
    "a generation below": "generation: -1\n",
    "a generation that is a text": 'generation: "2"\n',
    "a generation that is a flag": "generation: true\n",
    "half a generation": "generation: 1.5\n",
    "an anchor": "life: &a brightly\n",
    "a tag": "life: !!str brightly\n",
    "a tab": "life:\tbrightly\n\tx: 1\n",
    "half a quote": 'life: "brightly\n',
    "a directive": "%YAML 1.1\nlife: brightly\n",
}
HEAD = "id: DEC-0001\nkind: decision\n"
TAIL = 'created_at: "2026-01-11T14:30:00Z"\nagent: ada\ndecision: Use OAuth\n'
SHAPES = {
    "at its place": HEAD + "{}" + TAIL,
    "first": "{}" + HEAD + TAIL,
    "last": HEAD + TAIL + "{}",
    "after a block": HEAD + TAIL + "rationale: |\n  life: quietest\n  generation: 5\n\n  life: quietest\n{}",
    "after a comment": HEAD + "# about life: quietest\n{}" + TAIL,
    "without a kind": "id: DEC-0001\n{}" + TAIL,
    "without an id": "{}" + TAIL,
    "before a comment": HEAD + TAIL + "{}# life: quietest\n",
    "with blank lines": "\n" + HEAD + "\n{}\n" + TAIL,
    "with an odd key after": HEAD + "{}" + TAIL + '"odd key ☺": 1\n? [a, b]\n: 2\n',
}  # fmt: skip


def both(file: bytes, path: str) -> tuple[str | None, str | None]:
    """What the reader of lives says, and what reading all of the file says."""
    try:
        read: str | None = document.decode(file, path).life
    except InvalidFileError:
        read = None
    return life_of(file, path), read


def as_turn(text: str) -> str:
    """The same keys as front matter, above a text that speaks of lives."""
    front = text.replace("DEC-0001", "turn-0001").replace("kind: decision", "kind: turn").replace("decision: Use OAuth\n", "")  # fmt: skip
    return f"---\n{front}---\nlife: seashore\ngeneration: 7\n---\nlife: seashore\n"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", LINES)
def test_however_a_life_is_spelt_it_is_told(name: str, shape: str) -> None:
    line, expected = LINES[name]
    text = SHAPES[shape].replace("{}", line)

    for file, path in ((text, DEC), (as_turn(text), TURN)):
        told, read = both(file.encode(), path)
        assert read is None or (told, read) == (expected, expected)
        assert told in (None, expected)


@pytest.mark.parametrize("name", LINES)
def test_the_spellings_are_of_files_that_can_be_read(name: str) -> None:
    line, expected = LINES[name]

    assert both((HEAD + line + TAIL).encode(), DEC) == (expected, expected)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", REFUSED)
def test_where_reading_cannot_tell_a_life_nothing_is_said(name: str, shape: str) -> None:
    text = SHAPES[shape].replace("{}", REFUSED[name])

    for file, path in ((text, DEC), (as_turn(text), TURN)):
        told, read = both(file.encode(), path)
        # In some shapes it is no key of the memory.
        assert (told, read) in ((None, None), ("", ""))


@pytest.mark.parametrize("line", ["", "life: brightly\n", "generation: 2\n", "note: |\n  life: brightly\n"])  # fmt: skip
@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.replace("\n", "\r"),
        lambda text: "\ufeff" + text,
        lambda text: text.replace("life", "\u2028life"),
        lambda text: text.replace("\n", "\x85"),
        lambda text: text + "\0",
        lambda text: text.removesuffix("\n"),
        lambda text: text.replace(": ", ":  "),
        lambda text: "  " + text.replace("\n", "\n  "),
        lambda text: text + "broken: [\n",
        lambda text: text + "...\n",
        lambda text: text + "---\nlife: quietest\n",
        lambda text: "{id: DEC-0001, created_at: 2026-01-11, decision: x, life: quietest}\n",
        lambda text: '{"id":"DEC-0001","created_at":"2026-01-11","decision":"x","life":"quietest"}',
        lambda text: "",
        lambda text: "- life: quietest\n",
        lambda text: "<<: {life: quietest}\n" + text,
    ],
    ids=["CRLF", "CR", "BOM", "line separator", "next line", "NUL", "no last line end", "two spaces", "all indented", "broken", "an end", "two documents", "flow", "JSON", "empty", "list", "merge key"],
)  # fmt: skip
def test_what_other_programs_make_of_a_file(change: object, line: str) -> None:
    text = change(HEAD + line + TAIL)  # type: ignore[operator]

    for file, path in ((text, DEC), (as_turn(text), TURN), (text, TURN)):
        told, read = both(file.encode(), path)
        assert told == read or (read is None and told in ("", "brightly", "g2", "quietest"))
        assert read is None or told == read


@pytest.mark.parametrize("file", [b"\xff", b"id: DEC-0001\nlife: \xff\n", b"---\n", b"---\nlife: brightly\n", b"\0"])  # fmt: skip
def test_what_is_no_file_of_a_memory_has_no_life_that_could_be_told(file: bytes) -> None:
    assert life_of(file, TURN) is None
    # A mark of YAML above a mapping, or above nothing.
    assert life_of(file, DEC) is None or file.startswith(b"---\n")


def test_a_second_document_takes_the_first_ones_life_away() -> None:
    text = (HEAD + TAIL + "---\nlife: brightly\n").encode()

    assert both(text, DEC) == (None, None)


@settings(max_examples=200)
@given(strategies.memories())
def test_the_life_of_what_the_program_writes_is_told(memory: Memory) -> None:
    assert life_of(document.encode(memory), memory.path) == memory.life


_BITS = (
    "\n", " ", "  ", "- ", ":", ": ", "|", "|-\n", ">\n", '"', "'", "#", " # why", "---\n", "...\n", "\t", "\0", "\r", "\r\n", "\x85",
    "\u2028", "\ufeff", "a: b\n", "  a: b\n", "- a\n", "life: quietest\n", "  life: quietest\n", "life : quietest\n",
    '"life": quietest\n', "'life' : quietest\n", "? life\n: quietest\n", "life:\n", "life:\n  quietest\n", "life: 5\n",
    "generation: 2\n", "generation: 1\n", "generation: x\n", "note: |\n  life: quietest\n", "note: >-\n  life: quietest\n",
    "{life: quietest}\n", "[\n", "{", "}", "&a ", "*a", "<<: {life: quietest}\n", "é: 1\n", "x y: 1\n", "5: 1\n", "life",
    "note: 'a\n", "note: \"a\nlife: quietest\nb\"\n", "%TAG\n", "id: x\n", "created_at: 2026-01-01\n", "9", "e\u0301",
)  # fmt: skip


@settings(max_examples=500)
@given(strategies.memories(), st.sampled_from(("", "brightly", "g2", "j0123456789ab")), st.data())
def test_whatever_was_done_to_a_file_that_can_be_read_its_life_is_told(memory: Memory, life: str, data: st.DataObject) -> None:  # fmt: skip
    text = document.encode(replace(memory, life=life)).decode()
    for _ in range(data.draw(st.integers(1, 3))):
        starts = [0, *(at + 1 for at, letter in enumerate(text) if letter == "\n")]
        at = data.draw(st.sampled_from(starts) | st.integers(0, len(text)))
        gone = data.draw(st.sampled_from((0, 0, 1, 3)))
        text = text[:at] + data.draw(st.sampled_from(_BITS)) + text[at + gone :]

    told, read = both(text.encode(), memory.path)

    assert read is None or told == read


@given(st.binary(max_size=200), st.sampled_from((DEC, TURN)))
def test_whatever_bytes_stand_there_the_reader_answers(data: bytes, path: str) -> None:
    told, read = both(data, path)

    assert read is None or told == read
