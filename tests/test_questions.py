"""The questions of agents in tests/data: they parse, and name memories that exist."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from smp_git.model.memory import SEARCHED
from tests.bench import questions
from tests.bench.questions import PLACES, Place, build, read


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Place]]:
    with ExitStack() as stack:
        yield build(tmp_path_factory.mktemp("questions"), stack)


@pytest.mark.parametrize("name", [questions.TOLD, questions.TOUR])
def test_told_session_has_every_kind_and_is_sound(name: str, places: dict[str, Place]) -> None:
    session = places[name].session
    memories = session.memories()

    assert 90 <= len(memories) <= 250
    assert {memory.kind for memory in memories} == set(SEARCHED)
    assert session.check() == ()


def test_memories_have_the_day_on_which_they_are_told(places: dict[str, Place]) -> None:
    place = places[questions.TOLD]
    outage = place.session.get(place.id_of("outage"))
    resolved = place.session.get(place.id_of("f-webhook"))
    replaced = place.session.get(place.id_of("k8s"))

    assert outage.created_at.date().isoformat() == "2026-06-03"
    assert outage.status == "in_progress"
    assert resolved.status == "resolved"
    assert replaced.status == "superseded"


def test_demo_leaves_one_finding_open(places: dict[str, Place]) -> None:
    findings = places[questions.DEMO].session.memories("finding")

    assert [memory.id for memory in findings if memory.status == "open"] == ["FIND-0002"]


@pytest.mark.parametrize("name", questions.SETS)
def test_each_question_names_memories_that_exist(name: str, places: dict[str, Place]) -> None:
    asked = read(questions.SETS[name][0])

    assert len(asked) == 20
    for question in asked:
        (where,) = set(PLACES) & question.keys()
        assert question.keys() == {"ask", "session", where}
        for key in question[where]:
            assert places[question["session"]].id_of(key)
        assert where != "all" or len(question[where]) <= 3


@pytest.mark.parametrize("name", questions.SETS)
def test_each_context_names_memories_with_the_words(name: str, places: dict[str, Place]) -> None:
    prompts = read(questions.SETS[name][1])

    assert len(prompts) == 10
    for prompt in prompts:
        place = places[prompt["session"]]
        for key, words in prompt["must"].items():
            memory = place.session.get(place.id_of(key))
            assert words in (memory.content or str(dict(memory.fields))), key
        for key in [*prompt.get("not", ()), *sum(prompt.get("replaced", {}).items(), ())]:
            assert place.id_of(key)


def test_sets_share_no_question() -> None:
    asked = [each["ask"] for name, _ in questions.SETS.values() for each in read(name)]
    prompts = [each["prompt"] for _, name in questions.SETS.values() for each in read(name)]

    assert len(set(asked)) == len(asked)
    assert len(set(prompts)) == len(prompts)
