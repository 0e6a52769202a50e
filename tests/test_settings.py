"""Settings: one table; whatever sets one is checked by it, and what is set is applied."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.checks import STORE
from smp_git.model.errors import InvalidError
from smp_git.model.settings import Settings, table
from tests.support import before_next_write, git, smp
from tests.sync.support import Machine

# What names a program, a key or a folder, which another machine has no say in.
OF_THIS_MACHINE = ("key_dir", "ssh_key", "remote")


def test_each_default_is_what_its_own_check_accepts() -> None:
    settings = Settings()

    for row in table().values():
        assert row.check.take(row.default) == row.default or row.default is None
        assert getattr(settings, row.name) == row.default


def test_settings_of_a_store_are_set_listed_and_removed(store: Store) -> None:
    file = store.path / "config.yaml"
    file.write_text("format: 1\n# a note\ndurability: relaxed\n")

    store.configure({"trash_days": 7, "lock_timeout_seconds": 9})
    found = {each.name: each for each in store.configuration()}

    assert (found["trash_days"].value, found["trash_days"].source) == (7.0, "config.yaml")
    assert found["sync_timeout_seconds"].source == "default"
    assert store.settings.trash_time.days == 7
    assert "# a note\ndurability: relaxed\n" in file.read_text()
    store.configure({"trash_days": None})
    assert "trash_days" not in file.read_text()
    assert set(found) == {row.name for row in table().values() if row.where != "session"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"trash_dys": 1}, "no setting 'trash_dys'"), ({"trash_days": 0}, "trash_days must be a number"),
        ({"retention_days": 90}, "no setting 'retention_days'"), ({"language": "de"}, "language is a preference"),
        ({"format": 2}, "format 2"), ({"decay": {"preset": "no"}}, "no decay preset"),
        ({"key_dir": "here"}, "full path"), ({"remote": "x"}, "{session}"), ({"redaction": "maybe"}, "on or off"),
    ],
)  # fmt: skip
def test_a_wrong_setting_is_refused_and_nothing_is_written(
    store: Store, given: dict[str, object], said: str
) -> None:
    before = (store.path / "config.yaml").read_bytes()

    with pytest.raises(Exception, match=r"config\.yaml|knows 1") as caught:
        store.configure(given)

    assert said in str(caught.value)
    assert (store.path / "config.yaml").read_bytes() == before


def test_a_name_that_is_nearly_right_gets_a_suggestion(session: Session) -> None:
    with pytest.raises(InvalidError) as caught:
        session.configure({"redactoin": "off"})

    assert (caught.value.hint or "").startswith("perhaps redaction")
    with pytest.raises(InvalidError) as caught:
        session.configure({"retention_days": 3})
    assert "trash_days" in (caught.value.hint or "")


def test_overrides_of_a_session_are_applied_to_its_decay(session: Session) -> None:
    session.add("learning", "Deploy on Mondays")
    later = session.written_at.replace(year=2027)
    faded = session.explain("LEARN-1", now=later)[0]

    session.configure({"decay": {"enabled": False}})
    kept = session.explain("LEARN-1", now=later)[0]
    session.configure({"decay": {"learning": {"half_life_hours": 1, "floor": 0.0}}})
    gone = session.explain("LEARN-1", now=later)[0]

    assert gone < faded < kept
    session.configure({"decay": None})
    assert session.explain("LEARN-1", now=later)[0] == faded


def test_preferences_of_a_session_are_kept_apart_from_overrides(session: Session) -> None:
    session.configure({"language": "de", "verbosity": "low", "custom": {"tone": "dry"}})
    session.configure({"redaction": "off", "language": None})

    assert session.metadata.preferences == {"verbosity": "low", "custom": {"tone": "dry"}}
    assert session.metadata.overrides == {"redaction": "off"}
    found = {each.name: each for each in session.configuration()}
    assert (found["verbosity"].value, found["verbosity"].source) == ("low", "session")
    assert (found["redaction"].value, found["redaction"].source) == (False, "session")


@pytest.mark.parametrize("name", [row.name for row in table().values() if row.where == STORE])
def test_no_session_sets_what_is_of_the_store(session: Session, name: str) -> None:
    with pytest.raises(InvalidError, match=r"only from config\.yaml"):
        session.configure({name: "/tmp/x"})


def test_what_a_remote_sets_reaches_no_program_and_no_place(tmp_path: Path) -> None:
    ada, bob = Machine(tmp_path, "ada"), Machine(tmp_path, "bob")
    session = ada.begin(tmp_path / "hub.git")
    theirs = bob.clone(tmp_path / "hub.git")
    before = theirs._handle.settings
    _push_overrides(tmp_path, {name: str(tmp_path / "evil") for name in OF_THIS_MACHINE})

    theirs.sync()

    assert set(theirs.metadata.overrides) == set(OF_THIS_MACHINE)
    assert theirs._handle.settings == before
    assert all(any(name in each for each in theirs.info().problems) for name in OF_THIS_MACHINE)
    assert {each.source for each in theirs.configuration() if each.name != "key_dir"} <= {
        "default", "config.yaml",
    }  # fmt: skip
    theirs.add("decision", "Go on")
    theirs.sync()
    assert not (tmp_path / "evil").exists()
    for each in (session, theirs):
        each.close()


def test_a_session_with_rules_that_cannot_be_read_is_read_and_not_written(tmp_path: Path) -> None:
    ada, bob = Machine(tmp_path, "ada"), Machine(tmp_path, "bob")
    ada.begin(tmp_path / "hub.git").close()
    _push_overrides(tmp_path, {"redaction_patterns": ["("], "unheard_of": 3})
    theirs = bob.clone(tmp_path / "hub.git")

    assert theirs.get("DEC-1").content == "Use PostgreSQL"
    assert theirs.query("PostgreSQL").total == 1
    with pytest.raises(InvalidError, match="nothing is written"):
        theirs.add("decision", "Go on")
    theirs.configure({"redaction_patterns": None})
    theirs.add("decision", "Go on")
    assert [each for each in theirs.info().problems if "unheard_of" in each]
    theirs.close()


def _push_overrides(folder: Path, overrides: dict[str, object]) -> None:
    """Push what no program of ours would write."""
    plain = folder / "plain"
    git(folder, "clone", "-q", "hub.git", "plain")
    text = (plain / "metadata.yaml").read_text()
    (plain / "metadata.yaml").write_text(f"{text}overrides: {json.dumps(overrides)}\n")
    git(plain, "commit", "-qam", "settings")
    git(plain, "push", "-q", "origin", "HEAD:main")


def test_overrides_of_two_replicas_are_merged_one_by_one(tmp_path: Path) -> None:
    ada, bob = Machine(tmp_path, "ada"), Machine(tmp_path, "bob")
    session = ada.begin(tmp_path / "hub.git")
    theirs = bob.clone(tmp_path / "hub.git")
    session.configure({"redaction": "off", "language": "de"})
    theirs.configure({"decay": {"preset": "minimal"}, "verbosity": "low"})

    session.sync()
    theirs.sync()

    assert theirs.metadata.settings == {
        "redaction": "off", "decay": {"preset": "minimal"}, "language": "de", "verbosity": "low",
    }  # fmt: skip
    for each in (session, theirs):
        each.close()


def test_settings_that_two_set_at_once_are_both_kept(store: Store, session: Session) -> None:
    with store.session("shop") as other:
        before_next_write(session, lambda: other.configure({"redaction": "off"}))

        session.configure({"quota_bytes": 9_000_000})

    assert session.metadata.settings == {"redaction": "off", "quota_bytes": 9_000_000}


def test_the_command_shows_and_sets_settings(tmp_path: Path) -> None:
    smp("new", "shop", cwd=tmp_path)

    assert (
        smp("config", "set", "trash_days=7", cwd=tmp_path).stdout
        == "trash_days  7.0  (config.yaml)\n"
    )
    assert smp("config", "get", "trash_days", cwd=tmp_path).stdout == "7.0\n"
    assert (
        "redaction  off  (session)"
        in smp("-s", "shop", "config", "set", "redaction=off", cwd=tmp_path).stdout
    )
    assert "on" in smp("config", "get", "redaction", cwd=tmp_path).stdout
    assert smp("-s", "shop", "config", "get", "redaction", cwd=tmp_path).stdout == "off\n"
    assert smp("override", "redaction=null", cwd=tmp_path).returncode == 0
    wrong = smp("config", "set", "trash_day=7", cwd=tmp_path, check=False)
    assert (wrong.returncode, "perhaps trash_days" in wrong.stderr) == (4, True)
    listed = json.loads(smp("config", "--json", cwd=tmp_path).stdout)["settings"]
    assert {each["name"] for each in listed} == {
        row.name for row in table().values() if row.where != "session"
    }
