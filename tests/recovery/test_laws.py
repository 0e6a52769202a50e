"""Laws of what is kept: a copy is what went in, a record says what it was told."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from smp_git.model.errors import DamagedError
from smp_git.model.memory import MemoryId
from smp_git.remove import audit
from smp_git.remove.audit import Item, Record
from smp_git.remove.history.search import DeadVersion
from smp_git.remove.seal import Bound, opened, packed, sealed, unpacked

IDS = st.sampled_from(["DEC-0001", "turn-0042", "FIND-0007-k3fq", "state-veritas"]).map(MemoryId)
TIMES = st.datetimes(min_value=datetime(1970, 1, 2), timezones=st.just(UTC))  # noqa: DTZ001 - Hypothesis adds the zone
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60)
# The first, a named one, one of format 1, one that cannot be told.
LIVES = st.sampled_from(["", "brightly", "j0123456789ab", "g2", "g3-01234567", None])
KEPT = st.builds(
    DeadVersion,
    id=IDS,
    life=LIVES,
    at=TIMES,
    agent=st.sampled_from(["ada", "veritas"]),
    commit=st.text("0123456789abcdef", min_size=40, max_size=40),
    current=st.booleans(),
    data=st.binary(max_size=300),
)
RECORDS = st.builds(
    Record,
    deletion=st.just("20260111T143000Z-a1b2c3"),
    session_id=st.sampled_from(["shop", "on", "2026"]),
    session_uid=st.text("0123456789abcdef", min_size=32, max_size=32),
    deleted_at=TIMES,
    deleted_by=st.sampled_from(["ada", "no", "0x10"]),
    reason=st.none() | TEXTS.filter(bool),
    items=st.lists(
        st.builds(
            Item,
            id=IDS,
            type=st.just("decision"),
            timestamp=TIMES,
            life=LIVES,
            versions=st.integers(1, 9),
            reason=st.none() | TEXTS.filter(bool),
            restored_at=st.none() | TIMES,
        ),
        max_size=3,
    ).map(tuple),
    recovery_deadline=TIMES,
    backup=st.just("backup.tar.gz.sealed"),
    key=st.none() | st.just("20260111T143000Z-a1b2c3"),
    action=st.sampled_from(["delete", "redact", "delete_session"]),
)
BOUND = Bound("deletion", "uid", datetime(2026, 2, 10, 12, tzinfo=UTC))
KEYS = st.binary(min_size=32, max_size=32)


@given(st.lists(KEPT, max_size=4))
def test_a_copy_is_what_went_in(versions: list[DeadVersion]) -> None:
    assert unpacked(packed(versions)) == versions


@given(RECORDS)
def test_a_record_reads_as_it_was_written(record: Record) -> None:
    assert audit.read_record(audit.write_record(record), "record.yaml") == record


@given(st.binary(max_size=500), KEYS)
def test_a_sealed_copy_opens_with_its_key(data: bytes, key: bytes) -> None:
    assert opened(sealed(data, key, BOUND), key, BOUND) == data


@given(st.binary(max_size=200), KEYS, KEYS, st.data())
def test_a_sealed_copy_opens_in_no_other_way(data: bytes, key: bytes, other: bytes, draw: Any) -> None:  # fmt: skip
    copy = sealed(data, key, BOUND)
    place = draw.draw(st.integers(0, len(copy) - 1))
    changed = copy[:place] + bytes([copy[place] ^ 1]) + copy[place + 1 :]

    for case in (
        (copy, other if other != key else bytes(32 * [key[0] ^ 1]), BOUND),
        (copy, key, BOUND._replace(deletion="another")),
        (copy, key, BOUND._replace(uid="other")),
        (copy, key, BOUND._replace(deadline=BOUND.deadline + timedelta(microseconds=1))),
        (changed, key, BOUND),
        (copy[:-1], key, BOUND),
    ):
        with pytest.raises(DamagedError):
            opened(*case)


@given(st.binary(max_size=300))
def test_what_is_no_copy_and_no_record_is_called_damaged(data: bytes) -> None:
    with pytest.raises(DamagedError):
        unpacked(data)
    with pytest.raises(DamagedError):
        opened(data, bytes(32), BOUND)
