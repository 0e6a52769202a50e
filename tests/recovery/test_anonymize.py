"""An anonymized session says the same about nobody."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.keep.anonymize import Switches
from tests.recovery.support import everything
from tests.support import git

NAMES = (
    "John Smith",
    "john-smith",
    "John-Smith",
    "E-Commerce",
    "e-commerce",
    "/home/john",
    "smith@acme.io",
)


@pytest.fixture
def named(store: Store) -> Session:
    session = store.create_session(
        "shop-of-john",
        user="John Smith",
        agents=["architect", "john-smith"],
        context={"project_name": "E-Commerce", "notes": ["for John Smith"]},
        tags=["e-commerce"],
    )
    session.add("turn", "John Smith asks for E-Commerce", speaker="John Smith", role="user")
    session.add(
        "decision", "Keep it in /home/john/shop/app.py", agent="architect", made_by="architect",
        agreed_by=["Mary Jones"], tags=["e-commerce.login"], links=[("led_to", "state-john-smith"), ("references", "john-smith-notes:state-john-smith")],
    )  # fmt: skip
    session.add(
        "finding",
        "See /home/john/shop/app.py, says Mary Jones",
        agent="John Smith",
        turn_ref="turn-0001",
    )
    session.set_state("John Smith", {"current_context": {"task": "e-commerce"}})
    return session


def test_no_name_is_left_anywhere(store: Store, named: Session) -> None:
    done = named.anonymize()
    store.purge_session("shop-of-john")

    left = everything(store.path / "active").decode("utf-8", "replace")
    for name in (*NAMES, "Mary Jones"):
        assert name.casefold() not in left.casefold(), name
    assert store.sessions() == (done.session,)


def test_placeholders_are_stable_and_the_structure_stays(store: Store, named: Session) -> None:
    done = named.anonymize()

    with store.session(done.session) as session:
        turn, decision, finding, state = session.memories()
        assert turn.content == "User-1 asks for Project-A"
        assert turn.fields["speaker"] == "User-1"
        assert decision.content == "Keep it in /path/1.py"
        assert decision.fields["agreed_by"] == ["User-2"]
        assert decision.tags == ("project-a.login",)
        assert decision.links == (
            ("led_to", "state-user-1"),
            ("references", "user-1-notes:state-user-1"),
        )
        assert finding.content == "See /path/1.py, says User-2"
        assert (finding.agent, finding.fields["turn_ref"]) == ("user-1", "turn-0001")
        assert state.id == "state-user-1"
        assert session.metadata.context == {"project_name": "Project-A", "notes": ["for User-1"]}
        assert set(git(session.path, "log", "--format=%an").split()) == {"user-1", "architect"}
        assert session.check() == ()


def test_the_copy_has_an_identity_of_its_own(store: Store, named: Session) -> None:
    uid = named.metadata.uid

    done = named.anonymize()

    with store.session(done.session) as session:
        assert session.metadata.uid != uid
    assert [record.session_id for record in store.deleted_sessions()] == ["shop-of-john"]
    assert done.receipt is not None


def test_a_copy_elsewhere_leaves_the_session_as_it_is(store: Store, named: Session, tmp_path: Path) -> None:  # fmt: skip
    head = named.head

    done = named.anonymize(copy=tmp_path / "public")

    assert named.head == head
    assert store.sessions() == ("shop-of-john",)
    assert Store.open(tmp_path / "public").sessions() == (done.session,)


@pytest.mark.parametrize(
    ("switches", "expected"),
    [
        (Switches(user_names=False), "John Smith asks for Project-A"),
        (Switches(project_names=False), "User-1 asks for E-Commerce"),
        (Switches(placeholders=False), "[REMOVED] asks for [REMOVED]"),
    ],
    ids=["users kept", "projects kept", "no placeholders"],
)
def test_each_switch_does_its_part(store: Store, named: Session, switches: Switches, expected: str) -> None:  # fmt: skip
    done = named.anonymize(switches)

    with store.session(done.session) as session:
        assert session.get("turn-0001").content == expected


def test_paths_and_structure_have_switches_too(store: Store, named: Session) -> None:
    done = named.anonymize(Switches(file_paths=False, structure=False, user_names=False))

    with store.session(done.session) as session:
        assert session.get("DEC-0001").content == "Keep it in /home/john/shop/app.py"
        assert session.get("DEC-0001").links == ()
        assert "turn_ref" not in session.get("FIND-0001").fields


def test_further_names_are_taken(store: Store, named: Session) -> None:
    named.add("learning", "Acme pays for it")

    done = named.anonymize(Switches(projects=("Acme",)))

    with store.session(done.session) as session:
        assert session.get("LEARN-0001").content == "Project-B pays for it"


def test_a_name_has_one_placeholder_in_all_sessions_of_a_store(
    store: Store, named: Session
) -> None:
    with store.create_session("other", user="Mary Jones") as other:
        other.add("turn", "Mary Jones asks John Smith")

    done = store.anonymize()

    texts = []
    for each in done:
        with store.session(each.session) as session:
            texts.append(session.get("turn-0001").content)
    assert sorted(texts) == ["User-1 asks User-2", "User-2 asks for Project-A"]
    assert len(store.deleted_sessions()) == 2


@pytest.mark.parametrize(
    ("user", "text"),
    [
        ("Irfan", "ırfan and İRFAN and IRFAN agreed"),
        ("İpek", "ipek, İPEK and Ipek agreed"),
        ("Jens Groß", "Groß, GROSS and JENS GROSS agreed"),
        ("Anna Smith", "Anna agreed, SMITH did not; anna smith and AnnaSmith"),
        ("José Peña", "Jose\u0301 and PEÑA agreed"),
    ],
)
def test_name_goes_in_every_spelling(store: Store, user: str, text: str) -> None:
    with store.create_session("shop", user=user) as session:
        session.add("decision", text, agent="veritas")
        made = session.anonymize()

    with store.session(made.session) as copy:
        left = copy.memories()[0].content
    for word in ("rfan", "pek", "gro", "anna", "smith", "jens", "jos", "pe"):
        assert not [each for each in re.findall(r"\w+", left) if each.casefold().startswith(word)]
        assert word == "pe" or word not in left.casefold() or word == "gro"


def test_people_are_found_wherever_memories_name_them(store: Store) -> None:
    with store.create_session("shop", context={"project_name": "Nimbus"}) as session:
        found = session.add("finding", "NimbusApi is slow", agents_involved=["Grace Hopper"])
        session.resolve(found.id, by="Ada Lovelace", action="Ada and Hopper fixed MyNimbus")
        made = session.anonymize()

    with store.session(made.session) as copy:
        said = json.dumps(copy.memories()[0].as_json())
    assert not re.findall("Nimbus|Ada|Lovelace|Grace|Hopper", said)


def test_ordinary_words_that_are_also_names_stay(store: Store) -> None:
    with store.create_session("shop", user="Will May") as session:
        session.add("decision", "We will ask, and may wait; Will May said so", agent="veritas")
        made = session.anonymize()

    with store.session(made.session) as copy:
        assert copy.memories()[0].content == "We will ask, and may wait; User-1 said so"


def test_settings_of_the_session_stay(store: Store) -> None:
    with store.create_session("shop", overrides={"redaction": "off"}) as session:
        session.add("decision", "Wait", agent="veritas")
        made = session.anonymize()

    with store.session(made.session) as copy:
        assert copy.metadata.overrides["redaction"] == "off"
