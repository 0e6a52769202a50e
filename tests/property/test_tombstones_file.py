"""The records of what was deleted, redacted and restored: as bytes, and back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.format import records
from smp_git.format.records import Tombstone, Tombstones, ids_of, read, tombstone, write
from smp_git.model import ids
from smp_git.model.errors import InvalidFileError
from smp_git.model.ids import (
    DELETED,
    FIRST,
    JOIN,
    NOTHING,
    PURGED,
    REDACT,
    RESTORE,
    Edge,
    Lives,
    parse_id,
)
from tests.some_lives import POOL, anything, flags

PLAIN = Lives({FIRST: (DELETED,)})
IDS = ("DEC-0001", "DEC-0002", "DEC-0003", "DEC-0004", "DEC-0002-k3fq", "turn-0001", "turn-0002", "state-veritas")  # fmt: skip

some = anything.filter(lambda known: known != NOTHING)
sets = st.dictionaries(st.sampled_from(IDS), some, max_size=5).map(Tombstones.of)  # type: ignore[arg-type]


@st.composite
def ranges(draw: st.DrawFn) -> Tombstone:
    """A run of first lives that ended in one way."""
    first = parse_id(draw(st.sampled_from(("DEC-0001", "DEC-0003", "turn-0001", "DEC-0002-k3fq"))))
    last = first._replace(number=first.number + draw(st.integers(0, 4)))
    ended = draw(flags.filter(bool))
    return Tombstone(first, last, Lives({FIRST: ended}, {}, draw(st.sampled_from((0, 0, 2)))))


runs = st.lists(ranges(), max_size=4).map(Tombstones)
mixed = st.builds(lambda one, two: one | two, sets, runs)


@given(mixed)
def test_what_is_written_reads_back(known: Tombstones) -> None:
    data = write(known)

    assert read(data) == known
    assert write(read(data)) == data
    assert hash(read(data)) == hash(known)


@given(mixed, mixed, mixed)
def test_the_union_of_records_is_the_union_of_lives(one: Tombstones, two: Tombstones, three: Tombstones) -> None:  # fmt: skip
    both = one | two

    assert both == two | one
    assert (both | three) == (one | (two | three))
    assert both | one == both == both | Tombstones()
    assert both.covers(one)
    assert write(both) == write(two | one)
    for name in {*ids_of(one), *ids_of(two)}:
        assert both.lives(name) == one.lives(name) | two.lives(name)
    assert set(ids_of(both)) == {*ids_of(one), *ids_of(two)}


@given(mixed)
def test_a_set_says_of_an_id_what_its_lives_say(known: Tombstones) -> None:
    for name in IDS:
        here = known.lives(name)
        assert known.names(name) == (here != NOTHING)
        assert known.names_text(name.encode()) == known.names(name)
        assert known.is_purged(name) == here.is_purged
        assert known.is_gone(name) == (known.names(name) and here.is_gone)
        for life in (*POOL, None):
            assert known.is_dead(name, life) == here.is_dead(life)
    assert known.highest("DEC", "") == max((parse_id(each).number for each in ids_of(known) if each.startswith("DEC") and "k3fq" not in each), default=0)  # fmt: skip


@given(mixed)
def test_each_record_is_one_line_and_the_lines_are_sorted(known: Tombstones) -> None:
    lines = write(known).decode().splitlines()

    assert len(lines) == len(known.items)
    places = [parse_id(json.loads(line[2:])["id"].partition("..")[0]).sort_key for line in lines]
    assert places == sorted(places)


def test_the_bytes_are_these() -> None:
    known = Lives(
        {FIRST: (DELETED, "redacted"), "brightly": (DELETED,)},
        {
            "brightly": Edge(RESTORE, (FIRST,)),
            "quietest": Edge(REDACT, (FIRST, "brightly"), {"rationale": "2026-01-11T14:30:00.000000Z/k3fq"}),
        },
        2,
    )  # fmt: skip

    assert write(Tombstones.of({parse_id("DEC-0001").text: known})) == (
        b'- {"id":"DEC-0001","first":["deleted","redacted"],"generation":2,"lives":{'
        b'"brightly":{"by":"restore","from":["first"],"flags":["deleted"]},'
        b'"quietest":{"by":"redact","from":["first","brightly"],'
        b'"horizon":{"rationale":"2026-01-11T14:30:00.000000Z/k3fq"}}}}\n'
    )


# Ranges


def test_neighbours_that_ended_alike_share_a_line() -> None:
    known = Tombstones(tombstone(f"turn-{number:04d}", PLAIN) for number in range(1, 1001))

    assert write(known) == b'- {"id":"turn-0001..turn-1000","first":["deleted"]}\n'
    assert known.is_gone("turn-0500")
    assert not known.names("turn-1001")
    assert not known.names("turn-0500-k3fq")


def test_a_life_of_its_own_leaves_the_range() -> None:
    row = Tombstones(tombstone(f"turn-{number:04d}", PLAIN) for number in range(1, 6))
    back = PLAIN.begun("brightly", Edge(RESTORE, (FIRST,)))

    known = row | Tombstones([tombstone("turn-0003", back)])

    assert [each.text for each in known.items] == ["turn-0001..turn-0002", "turn-0003", "turn-0004..turn-0005"]  # fmt: skip
    assert not known.is_gone("turn-0003")
    assert read(write(known)) == known


def test_memories_that_came_back_alike_have_a_line_each() -> None:
    back = PLAIN.begun("brightly", Edge(RESTORE, (FIRST,)))

    known = Tombstones(tombstone(f"turn-{number:04d}", back) for number in range(1, 4))

    assert [each.text for each in known.items] == ["turn-0001", "turn-0002", "turn-0003"]


def test_ranges_that_overlap_are_united() -> None:
    one = read(b'- {"id":"turn-0001..turn-0010","first":["deleted"]}\n')
    two = read(b'- {"id":"turn-0005..turn-0020","first":["purged"]}\n')

    assert write(one | two).decode().splitlines() == [
        '- {"id":"turn-0001..turn-0004","first":["deleted"]}',
        '- {"id":"turn-0005..turn-0010","first":["deleted","purged"]}',
        '- {"id":"turn-0011..turn-0020","first":["purged"]}',
    ]


# Format 1


@pytest.mark.parametrize(
    ("generation", "purged", "expected"),
    [
        (1, False, Lives({FIRST: (DELETED,)})),
        (1, True, Lives({FIRST: (DELETED, PURGED)})),
        (3, False, Lives({FIRST: (DELETED,)}, {}, 3)),
        (3, True, Lives({FIRST: (DELETED, PURGED)}, {}, 3)),
    ],
)
def test_a_tombstone_of_format_1_is_read_as_lives(generation: int, purged: bool, expected: Lives) -> None:  # fmt: skip
    line = {"id": "DEC-0001", "generation": generation, "purged": purged, "rule": 1}

    known = read(f"- {json.dumps(line, separators=(',', ':'))}\n".encode())

    assert known.lives("DEC-0001") == expected
    assert known.is_gone("DEC-0001")
    for number in range(1, 6):
        dead = purged or number <= generation
        assert known.is_dead("DEC-0001", ids.of_generation(number)) == dead
        assert known.is_dead("DEC-0001", ids.of_generation(number, b"any")) == dead
    assert read(write(known)) == known


def test_ranges_of_format_1_are_read() -> None:
    known = read(b'- {"id":"turn-0001..turn-0100","generation":1,"purged":false,"rule":1}\n')

    assert known == Tombstones(tombstone(f"turn-{number:04d}", PLAIN) for number in range(1, 101))


def test_lines_of_both_formats_stand_side_by_side() -> None:
    old = b'- {"id":"DEC-0001","generation":1,"purged":false,"rule":1}\n'
    new = b'- {"id":"DEC-0001","first":["redacted"]}\n'

    assert read(b"# a person's\n\n" + old + new).lives("DEC-0001") == Lives({FIRST: (DELETED, "redacted")})  # fmt: skip


# Lines that no program wrote

_LIFE = '{"id":"DEC-0001","lives":{%s}}'
HOSTILE = {
    "nothing known": '{"id":"DEC-0001"}',
    "no flags": '{"id":"DEC-0001","first":[]}',
    "an unknown flag": '{"id":"DEC-0001","first":["gone"]}',
    "flags that are a text": '{"id":"DEC-0001","first":"deleted"}',
    "a flag that is a list": '{"id":"DEC-0001","first":[["deleted"]]}',
    "another key": '{"id":"DEC-0001","first":["deleted"],"more":1}',
    "no id": '{"first":["deleted"]}',
    "an id that is none": '{"id":"nonsense","first":["deleted"]}',
    "an id that is a path": '{"id":"../DEC-0001","first":["deleted"]}',
    "a range backwards": '{"id":"DEC-0009..DEC-0001","first":["deleted"]}',
    "a range of two kinds": '{"id":"DEC-0001..FIND-0009","first":["deleted"]}',
    "a range of two tags": '{"id":"DEC-0001..DEC-0009-k3fq","first":["deleted"]}',
    "a range without end": '{"id":"turn-0001..turn-9999999","first":["deleted"]}',
    "a range of named lives": '{"id":"DEC-0001..DEC-0002","lives":{"brightly":{"by":"restore","from":["first"]}}}',
    "lives that are a list": '{"id":"DEC-0001","lives":["brightly"]}',
    "a life without a name": _LIFE % '"":{"flags":["deleted"]}',
    "a life called first": _LIFE % '"first":{"flags":["deleted"]}',
    "a life with a hostile name": _LIFE % '"../../etc":{"flags":["deleted"]}',
    "a life that is a text": _LIFE % '"brightly":"deleted"',
    "a life that says more": _LIFE % '"brightly":{"flags":["deleted"],"text":"secret"}',
    "an unknown cause": _LIFE % '"brightly":{"by":"magic","from":["first"]}',
    "a cause that is a list": _LIFE % '"brightly":{"by":["redact"],"from":["first"]}',
    "a cause without origin": _LIFE % '"brightly":{"by":"restore"}',
    "an origin that is a text": _LIFE % '"brightly":{"by":"restore","from":"first"}',
    "an origin that is no life": _LIFE % '"brightly":{"by":"restore","from":["nonsense life"]}',
    "an origin that is a number": _LIFE % '"brightly":{"by":"restore","from":[1]}',
    "a horizon that is a list": _LIFE % '"brightly":{"by":"redact","from":["first"],"horizon":[]}',
    "a horizon of numbers": _LIFE % '"brightly":{"by":"redact","from":["first"],"horizon":{"a":1}}',
    "a generation 0": '{"id":"DEC-0001","generation":0}',
    "a generation that is no number": '{"id":"DEC-0001","generation":true}',
    "a generation beyond all": '{"id":"DEC-0001","generation":10000000}',
    "format 1 of another rule": '{"id":"DEC-0001","generation":1,"purged":false,"rule":2}',
    "format 1 and 2 in one": '{"id":"DEC-0001","generation":1,"purged":false,"rule":1,"first":["deleted"]}',
    "format 1 without generation": '{"id":"DEC-0001","purged":false,"rule":1}',
    "format 1 that purges a little": '{"id":"DEC-0001","generation":1,"purged":1,"rule":1}',
    "a list": '["DEC-0001"]',
    "a depth without end": '{"id":' + "[" * 100_000 + "}",
    "everything": "everything",
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_line_that_is_no_record_is_refused_with_its_number(name: str) -> None:
    good = write(Tombstones([tombstone("DEC-0009", PLAIN)]))

    with pytest.raises(InvalidFileError, match=r"tombstones\.yaml:2: not a record of a deletion"):
        read(good + f"- {HOSTILE[name]}\n".encode())


@pytest.mark.parametrize("data", [b"\xff\xfe\n", b"DEC-0001\n", b'-{"id":"DEC-0001","first":["deleted"]}\n', b'- {"id":"DEC-0001","first":["deleted"]} # why\n'])  # fmt: skip
def test_what_is_not_a_list_of_records_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidFileError):
        read(data)


def test_more_lives_than_anybody_has_are_refused() -> None:
    named = ",".join(f'"g{number}":{{"flags":["deleted"]}}' for number in range(2, 10_010))

    with pytest.raises(InvalidFileError):
        read(f"- {_LIFE % named}\n".encode())


def test_very_many_lines_about_one_id_are_refused_at_once() -> None:
    line = b'- {"id":"DEC-0001","first":["deleted"]}\n'

    assert read(line * 64) == read(line)
    with pytest.raises(InvalidFileError, match="name one id"):
        read(line * 65)


@given(st.binary(max_size=80) | st.text(max_size=80).map(str.encode))
def test_whatever_stands_there_is_read_or_refused(data: bytes) -> None:
    try:
        known = read(data)
    except InvalidFileError:
        return
    assert read(write(known)) == known


@given(mixed.filter(bool), st.data())
def test_a_line_that_was_damaged_is_refused_or_is_another_record(known: Tombstones, data: st.DataObject) -> None:  # fmt: skip
    raw = bytearray(write(known))
    at = data.draw(st.integers(0, len(raw) - 1))
    raw[at : at + 1] = data.draw(st.sampled_from((b"", b"x", b'"', b"{", b"]", b",", b"\n", b"1")))

    try:
        found = read(bytes(raw))
    except InvalidFileError:
        return
    assert read(write(found)) == found
    assert records.RULE == 2


@given(st.lists(st.sampled_from(POOL), min_size=1, max_size=3, unique=True))
def test_a_join_names_what_it_joins(parents: list[str]) -> None:
    name = ids.joined_life("DEC-0001", parents)
    known = Tombstones([tombstone("DEC-0001", Lives({}, {name: Edge(JOIN, parents)}))])

    assert read(write(known)).lives("DEC-0001").edges[name].parents == tuple(sorted(parents))
