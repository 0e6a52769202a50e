"""An anonymized session says the same about nobody."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from smp_git import Metadata, Session, Store
from smp_git.errors import ConflictError, RefusedError
from smp_git.keep.mask import Switches
from smp_git.remove import sessions
from tests.recovery.support import everything
from tests.support import git, own, smp

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


def test_the_store_replaces_one_session_by_name_and_no_other(store: Store, named: Session) -> None:
    named.close()
    with store.create_session("other", user="John Smith") as other:
        other.add("turn", "John Smith was here")
    uid = metadata_of(store, "shop-of-john").uid

    done = store.anonymize_session("shop", by="mary")

    assert set(store.sessions()) == {"other", done.session}
    made = metadata_of(store, done.session)
    assert made.uid != uid and made.user == "User-1"
    told = everything(store.path / "active" / done.session).decode("utf-8", "replace").casefold()
    assert [name for name in NAMES if name.casefold() in told] == []
    with store.session("other") as other:
        assert other.get("turn-1").content == "John Smith was here"
    # The old one is in the trash, and who asked for it in the audit log.
    assert [each.session_id for each in store.deleted_sessions()] == ["shop-of-john"]
    assert {line.by for line in store.audit(action="delete_session")} == {"mary"}
    with store.undelete_session("shop-of-john") as back:
        assert back.get("turn-1").content == "John Smith asks for E-Commerce"


def test_the_store_copies_one_session_without_its_history_and_changes_nothing_here(
    store: Store, named: Session, tmp_path: Path
) -> None:
    named.delete(named.add("learning", "Mary Jones told us").id)
    head, kept = named.head, everything(store.path / "active")

    done = store.anonymize_session("shop-of-john", Switches(file_paths=False), copy=tmp_path / "to")

    assert (named.head, everything(store.path / "active")) == (head, kept)
    assert store.sessions() == ("shop-of-john",) and store.deleted_sessions() == ()
    there = Store.open(tmp_path / "to")
    assert there.sessions() == (done.session,)
    with there.session(done.session) as copy:
        assert copy.get("DEC-1").content == "Keep it in /home/john/shop/app.py"
        assert copy.check() == ()
        assert not copy.trash() and not any("delete" in each.subject for each in copy.log())
    told = everything(tmp_path / "to").decode("utf-8", "replace").casefold()
    assert "mary jones" not in told and "john smith" not in told


def metadata_of(store: Store, name: str) -> Metadata:
    with store.session(name) as session:
        return session.metadata


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


@pytest.mark.parametrize(
    ("user", "text", "left"),
    [
        ("Sinéad O'Connor", "Sinead OConnor, SINÉAD O’CONNOR, s.oconnor", "U, U, U"),
        ("Jan van der Berg", "Jan van der\nBerg; Berg said; the van; J. Berg", "U; U said; the van; U"),
        ("王小明", "王小明说好。小明也来。", "U-说好。U-也来。"),
        ("Jürgen Müller", "Juergen Mueller, JÜRGEN MULLER, Müllers Haus", "U, U, U-s Haus"),
        ("Işık Yılmaz", "IŞIK YILMAZ, isik yilmaz, Yilmaz", "U, U, U"),
        ("Ada Lovelace", "Ada\u00a0Lovelace, Love\u00adlace, Lovelace, Ada; LOVELACE Ada", "U, U, U; U"),
        ("Ada Lovelace", "A. Lovelace, alovelace, @lovelace; Ａｄａ; Adamant, a lovelace of lace", "U, U, @U; U; Adamant, a lovelace of lace"),
        ("ada", "ada2026, ADA_1 and Ada's; adamant, Canada", "U-2026, U_1 and U's; adamant, Canada"),
        ("Jean-Luc Picard", "jean_luc_picard, Jean Luc Picard, Picard, the picard", "U, U, U, the picard"),
        ("Иван Петров", "Иван Петров; ПЕТРОВ; иван петров", "U; U; U"),
        ("Anna Smith", "AnnaSmith, Smith, Anna; a smith made it", "U, U; a smith made it"),
        ("Zoe\u0308", "Zoë, ZOE and zoe", "U, U and U"),
    ],
)  # fmt: skip
def test_hostile_name_goes_and_ordinary_words_stay(
    store: Store, user: str, text: str, left: str
) -> None:
    with store.create_session("shop") as session:
        session.add("decision", text, agent="veritas", made_by=user)
        made = session.anonymize()

    with store.session(made.session) as copy:
        assert copy.memories()[0].content == left.replace("U", "User-1")


def test_project_goes_out_of_longer_words(store: Store) -> None:
    with store.create_session("shop", context={"project_name": "Nimbus"}) as session:
        session.add("decision", "NimbusApi, NIMBUSApi, MyNimbus, nimbus-api, Nimbus2", agent="v")
        made = session.anonymize()

    with store.session(made.session) as copy:
        assert "nimbus" not in copy.memories()[0].content.lower()


def test_id_that_a_program_gave_its_user_is_a_name(store: Store) -> None:
    with store.create_session("s", user="user-123", agents=["veritas"]) as session:
        session.add("decision", "user-123 asked for it", made_by="user-456")
        session.anonymize()

    (left,) = store.sessions()
    with store.session(left) as copy:
        (decision,) = copy.memories()
        assert copy.metadata.user == "User-1"
        assert (decision.content, decision.agent) == ("User-1 asked for it", "user-1")
        assert decision.fields["made_by"] == "User-2"


def test_placeholders_from_before_are_nobody_elses(store: Store) -> None:
    with store.create_session("shop", user="Ada Lovelace") as session:
        session.add(
            "decision", "User-1 and User-2 agreed with Ada", agent="veritas", made_by="User-2"
        )
        session.add("finding", "See /path/1.py and /home/ada/x.py", agent="veritas")
        made = session.anonymize()

    with store.session(made.session) as copy:
        assert copy.get("DEC-1").content == "User-1 and User-2 agreed with User-3"
        assert copy.get("DEC-1").fields["made_by"] == "User-2"
        assert copy.get("FIND-1").content == "See /path/1.py and /path/2.py"


def test_fields_that_are_called_after_somebody_stay_apart(store: Store) -> None:
    with store.create_session("shop", user="Ada Lovelace") as session:
        session.add("decision", "Wait", agent="v", **own(ada_lovelace="a"), **own(AdaLovelace="b"))
        made = session.anonymize(Switches(placeholders=False))

    with store.session(made.session) as copy:
        fields = copy.memories()[0].fields
        assert sorted(map(str, fields.values())) == ["a", "b"]
        assert not [name for name in fields if "ada" in name.lower()]


def test_session_of_what_holds_across_sessions_loses_its_names(store: Store) -> None:
    with store.global_session() as shared:
        shared.add("preference", "Ada likes it short", category="style", made_by="Ada Lovelace")
        made = shared.anonymize()

    assert (made.session, store.sessions()) == ("global", ())
    with store.global_session() as shared:
        assert shared.memories()[0].content == "User-1 likes it short"
        assert shared.check() == ()


def test_session_is_not_replaced_by_a_copy_that_lacks_something(
    store: Store, named: Session, tmp_path: Path
) -> None:
    with named.branch("idea") as idea:
        idea.add("decision", "Only on the branch")

    with pytest.raises(RefusedError, match="branch idea"):
        store.anonymize_session("shop-of-john")

    assert store.anonymize_session("shop-of-john", copy=tmp_path / "public").memories == 4
    named.merge("idea")
    with named.file("DEC-0001").open("a") as file:
        file.write("by_hand: yes\n")
    with pytest.raises(RefusedError, match="edited by hand"):
        store.anonymize_session("shop-of-john")
    named.commit()
    assert store.anonymize_session("shop-of-john").memories == 5


def test_write_made_while_names_are_taken_out_is_not_lost(
    store: Store, named: Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    delete = sessions.delete

    def late(*arguments: Any, **more: Any) -> Any:
        named.add("decision", "Written meanwhile")
        return delete(*arguments, **more)

    monkeypatch.setattr(sessions, "delete", late)
    with pytest.raises(ConflictError, match="was written to"):
        store.anonymize_session("shop-of-john")

    assert store.sessions() == ("shop-of-john",)
    assert "Written meanwhile" in [each.content for each in named.memories()]
    assert store.deleted_sessions() == ()


def test_store_without_names_keeps_links_archives_and_read_counts(
    store: Store, tmp_path: Path
) -> None:
    with store.create_session("ada-notes", user="Ada Lovelace") as session:
        found = session.add("finding", "Ada found it", agent="veritas")
        session.get(found.id)
    with store.create_session("shop", user="Ada Lovelace") as session:
        session.add("decision", "Do it", agent="v", links=[("resolves", f"ada-notes:{found.id}")])
    store.archive_session("ada-notes", "Ada left", by="Ada Lovelace")
    before = store.archived_sessions()[0].text("archived_at")

    made = store.anonymize(copy=tmp_path / "public")

    assert [each.session for each in store.archived_sessions()] == ["ada-notes"]
    public = Store.open(tmp_path / "public")
    (put_away,) = public.archived_sessions()
    assert put_away.text("archived_at") == before
    said = (public.path / "archived" / put_away.session / "summary.yaml").read_text()
    assert not re.search(r"\bada\b", said.lower())
    with public.session(made[0].session) as session:
        assert session.memories()[0].links == (("resolves", f"{put_away.session}:FIND-0001"),)
    public.unarchive_session(put_away.session)
    with public.session(put_away.session) as session:
        assert (session.get("FIND-1").content, session.get("FIND-1").access_count) == ("User-1 found it", 2)  # fmt: skip


# One memory alone


def _shop(store: Store) -> Session:
    session = store.create_session("shop", user="Ada Lovelace")
    session.add("finding", "Ada saw it in /home/ada/x.py", agent="veritas")
    session.add("decision", "Ada decided", agent="veritas", links=[("resolves", "FIND-0001")])
    session.edit("FIND-1", text="Ada saw it again", discovered_by="Grace Hopper")
    return session


def test_one_memory_loses_its_names_in_every_version(store: Store) -> None:
    with _shop(store) as session:
        done = session.anonymize_memories("FIND-1", reason="for the talk", by="Ada Lovelace")

        finding = session.get("FIND-1")
        assert (finding.content, finding.fields["discovered_by"]) == ("User-1 saw it again", "User-2")  # fmt: skip
        assert session.get("DEC-1").content == "Ada decided"
        assert session.get("DEC-1").links == (("resolves", "FIND-0001"),)
        assert done.ids == ("FIND-0001",)
        assert done.receipt is not None
        assert done.receipt.proof.clean
        told = git(session.path, "log", "-p", "--all", "--", finding.path)
        assert not re.findall("Ada|Hopper|home", told.replace("ada-lovelace", ""))
        assert session.check() == ()
        head = session.head
        assert session.anonymize_memories(["FIND-1"]).receipt is None
        assert session.head == head
    (line,) = store.audit("shop", action="anonymize")
    assert (line.by, line.ids, line.reason) == ("ada-lovelace", ("FIND-0001",), "for the talk")


def test_name_that_only_an_earlier_version_had_goes_too(store: Store) -> None:
    with _shop(store) as session:
        session.edit("FIND-1", text="Somebody saw it", discovered_by=None)

        assert session.anonymize_memories("FIND-1").ids == ("FIND-0001",)
        assert "Hopper" not in git(session.path, "log", "-p", "--all")


def test_dry_run_names_the_memories_and_changes_nothing(store: Store) -> None:
    with _shop(store) as session:
        head = session.head
        plan = session.anonymize_memories(["FIND-1", "DEC-1"], dry_run=True)

        assert (plan.ids, plan.receipt) == (("DEC-0001", "FIND-0001"), None)
        assert session.head == head


def test_no_replica_brings_the_name_back(store: Store, tmp_path: Path) -> None:
    other = Store.init(tmp_path / "other")
    with _shop(store) as session:
        session.add_remote("origin", tmp_path / "hub.git", create=True)
        session.sync()
        with other.clone(str(tmp_path / "hub.git")) as replica:
            replica.edit("FIND-1", evidence="Ada and Grace Hopper told me")
            session.anonymize_memories("FIND-1")
            session.sync()
            replica.sync()
            session.sync()
            replica.sync()
            assert session.head == replica.head
            for each in (session, replica):
                said = json.dumps(each.get("FIND-1").as_json())
                assert not re.findall("Ada|Grace|Hopper", said)


def test_memory_that_was_imported_keeps_its_placeholders(store: Store, tmp_path: Path) -> None:
    vault = tmp_path / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("---\nmade_by: Ada Lovelace\n---\nAda wrote this.\n")
    store.import_(vault)
    with store.session("notes-vault") as session:
        session.anonymize_memories("ART-1")
        (vault / "a.md").write_text("---\nmade_by: Ada Lovelace\n---\nAda wrote this and more.\n")
        store.import_(vault)
        assert session.get("ART-1").content == "User-1 wrote this.\n"


def test_state_with_a_name_in_its_id_is_refused(store: Store) -> None:
    with store.create_session("shop", user="Ada Lovelace") as session:
        session.set_state("ada-lovelace", {"task": "x"})
        with pytest.raises(RefusedError, match="has a name in its id"):
            session.anonymize_memories("state-ada-lovelace")


def test_command_anonymizes_one_memory_after_asking(store: Store) -> None:
    with _shop(store):
        pass
    root = ("--root", store.path, "-s", "shop")

    plan = smp(*root, "anonymize", "FIND-1", check=False)
    also = "  names are also in DEC-0001\n"
    assert (plan.stdout, plan.returncode) == (f"would anonymize FIND-0001\n{also}", 7)
    assert smp(*root, "anonymize", "FIND-1", "--yes").stdout == f"anonymized FIND-0001\n{also}"
    again = smp(*root, "anonymize", "FIND-1", "--yes")
    assert again.stdout == f"none of them holds a name\n{also}"
    assert smp(*root, "anonymize", "FIND-1", "--copy", "x", check=False).returncode == 4
