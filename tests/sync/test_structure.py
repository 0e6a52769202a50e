"""Folders compared with the version before: found is what a look at the whole finds."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from smp_git.model.errors import UntrustedError
from smp_git.sync.inspect.structure import Folder

Rows = list[tuple[bytes, bytes, bytes]]

_names = st.sampled_from([b"a", b"a.b", b"a0", b"b", b"index.yaml", b"aa", b"\xc3\xa4", b"z" * 150])
_ids = st.sampled_from([bytes(20), b"/" * 20, b"\n" * 20, b"100644 a\0" + b"b" * 11, b"x" * 20])
_modes = st.sampled_from([b"100644", b"40000", b"100755"])
_rows = st.lists(st.tuples(_modes, _names, _ids), max_size=9)


def _place(row: tuple[bytes, bytes, bytes]) -> bytes:
    return row[1] + b"/" if row[0] == b"40000" else row[1]


def _written(rows: Rows) -> bytes:
    return b"".join(mode + b" " + name + b"\0" + child for mode, name, child in rows)


@st.composite
def _versions(draw: st.DrawFn) -> list[bytes]:
    """Return trees, most of them sound, some with a piece cut out or put in."""
    found = []
    for rows in draw(st.lists(_rows, min_size=1, max_size=8)):
        kept = rows
        if draw(st.integers(0, 9)):
            kept = sorted({name: (mode, name, child) for mode, name, child in rows}.values(), key=_place)  # fmt: skip
        data = _written(kept)
        if not draw(st.integers(0, 9)):
            at = draw(st.integers(0, len(data)))
            data = data[:at] + draw(st.binary(max_size=3)) + data[at + draw(st.integers(0, 30)) :]
        found.append(data)
    return found


def _looked_at(data: bytes) -> Rows | None:
    """Return the rows of a tree that is in order, None for any other."""
    rows: Rows = []
    while data:
        head, end, rest = data.partition(b"\0")
        mode, space, name = head.partition(b" ")
        if not end or not space or not name or b"/" in name or len(rest) < 20:
            return None
        if not 5 <= len(mode) <= 6 or set(mode) - set(b"01234567"):
            return None
        rows.append((mode, name, rest[:20]))
        data = rest[20:]
    places = list(map(_place, rows))
    sound = places == sorted(places) and len({row[1] for row in rows}) == len(rows)
    return rows if sound else None


@settings(max_examples=600)
@example(versions=[b"00644 a\0" + bytes(20), b"100644 a\0" + bytes(20)])
@given(versions=_versions())
def test_differences_are_what_whole_folders_say(versions: list[bytes]) -> None:
    folder = Folder("decisions/000")
    before: Rows = []
    for data in versions:
        rows = _looked_at(data)
        if rows is None:
            with pytest.raises(UntrustedError):
                folder.turned_into(data)
            return
        fresh = folder.turned_into(data)
        assert set(rows) - set(before) <= set(fresh) <= set(rows)
        assert folder.names == {name for _, name, _ in rows}
        assert len(fresh) <= len(rows)
        before = rows
