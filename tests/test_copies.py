"""Results outlive the process that asked: pickled, copied, hashed, made into plain mappings."""

from __future__ import annotations

import copy
import json
import pickle

import pytest

from smp_git import Memory, Session
from smp_git.errors import InvalidError
from tests.support import own


def _one(session: Session) -> Memory:
    finding = session.add(
        "finding", "No second factor", severity="high", tags=["security"], **own(custom={"a": [1]})
    )
    return session.add("decision", "Ask for one", links=[("resolves", finding.id)])


def test_memory_is_pickled_copied_and_hashed(session: Session) -> None:
    memory = _one(session)

    for again in (pickle.loads(pickle.dumps(memory)), copy.deepcopy(memory), copy.copy(memory)):
        assert again == memory
        assert again.as_json() == memory.as_json()
        with pytest.raises(TypeError):
            again.fields["new"] = 1  # type: ignore[index]
    assert len({memory, session.get(memory.id)}) == 1


def test_copy_shares_nothing_that_can_change(session: Session) -> None:
    _one(session)
    memory = session.get("FIND-1")
    again = copy.deepcopy(memory)
    again.fields["custom"]["a"].append(2)  # type: ignore[index, call-overload, union-attr]

    assert memory.fields["custom"] == {"a": [1]}


def test_memory_goes_through_json_and_back(session: Session) -> None:
    for memory in (_one(session), session.get("FIND-1")):
        said = json.loads(json.dumps(memory.as_json()))
        assert Memory.from_dict(said) == memory


@pytest.mark.parametrize(
    "wrong", [{}, {"kind": "dream"}, {"kind": "finding", "id": "FIND-0001", "created_at": "never"}]
)
def test_what_is_no_memory_is_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(InvalidError):
        Memory.from_dict(wrong)


def test_answer_is_read_by_another_process(session: Session) -> None:
    _one(session)
    answer = session.query("factor")
    again = pickle.loads(pickle.dumps(answer))
    before = [hit.as_json() for hit in answer]
    session.close()

    assert [hit.as_json() for hit in again] == before
    assert again.hits[0].marked(("<", ">")) == "No second <factor>"
