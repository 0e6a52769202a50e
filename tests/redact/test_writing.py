"""Secrets are taken out before anything is written, whatever door they come through."""

from __future__ import annotations

import zlib
from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.model.errors import InvalidError, RefusedError

# In two parts, so that no file of this repository holds a whole token.
TOKEN = "ghp_" + "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3zA5"
PASSWORD = "hunter2" + "Correct9!"


def stored(folder: Path) -> bytes:
    """Return every byte below a folder, loose objects inflated."""
    out = []
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            out.append(data)
            if path.parent.parent.name == "objects" and len(path.parent.name) == 2:
                out.append(zlib.decompress(data))
    return b"\n".join(out)


def test_an_added_memory_reports_what_was_redacted(session: Session) -> None:
    memory = session.add("decision", f"Deploy with {TOKEN}", rationale=f"password={PASSWORD}")

    assert memory.content == "Deploy with [REDACTED:github-token]"
    assert memory.title == "Deploy with [REDACTED:github-token]"
    assert memory.fields["rationale"] == "password=[REDACTED:password]"
    assert memory.redacted == (("github-token", 1), ("password", 1))
    assert memory.as_json()["redacted"] == {"github-token": 1, "password": 1}


def test_the_report_is_not_stored(session: Session) -> None:
    memory = session.add("decision", f"Deploy with {TOKEN}")

    assert session.get(memory.id).redacted == ()
    assert "redacted" not in session.get(memory.id).as_json()


def test_no_door_lets_a_secret_into_the_store(store: Store, session: Session) -> None:
    session.add("turn", f"my key is {TOKEN}", speaker="user")
    session.add("finding", "A leak", evidence=[f"seen {TOKEN}"], location={"token": TOKEN})
    session.edit("FIND-0001", text=f"A leak of {TOKEN}")
    session.resolve("FIND-0001", action=f"revoked {TOKEN}")
    session.set_state("veritas", {"working_memory": {"password": PASSWORD, "seen": [TOKEN]}})
    session.add("preference", "Use tabs", category="style", key="indent")
    session.supersede("PREF-0001", f"Use {TOKEN}")
    with session.transaction(reason=f"because of {TOKEN}") as t:
        t.add("learning", f"never log {TOKEN}")
        t.edit("PREF-0002", context=f"see {TOKEN}")
        t.set_state("other", {"session_learnings": [TOKEN]})
    store.create_session("other", context={"url": f"https://x/?t={TOKEN}"}).close()

    everything = stored(store.path)
    assert TOKEN.encode() not in everything
    assert PASSWORD.encode() not in everything


def test_a_transaction_reports_the_sum(session: Session) -> None:
    with session.transaction() as t:
        t.add("learning", f"one {TOKEN}")
        t.add("learning", f"and another, {TOKEN}")

    assert t.change is not None
    assert t.change.redacted == (("github-token", 2),)


def test_a_commit_id_and_a_uuid_stay(session: Session) -> None:
    text = "fixed in 3b18e512dba79e4c8300dd08aeb37f8e728b8dad, 9f1c2d3e-1111-4abc-8def-0123456789ab"

    memory = session.add("turn", text)

    assert memory.content == text
    assert memory.redacted == ()


def test_a_session_can_switch_redaction_off(store: Store) -> None:
    with store.create_session("raw", overrides={"redaction": "off"}) as session:
        assert session.add("turn", f"key {TOKEN}").content == f"key {TOKEN}"
    with store.session("raw") as again:
        assert again.add("turn", f"other key {TOKEN}").redacted == ()


def test_redaction_is_switched_off_and_on_for_one_session(store: Store, session: Session) -> None:
    session.override({"redaction": "off"})
    assert session.add("turn", TOKEN).content == TOKEN
    with store.session("shop") as again:
        assert again.metadata.overrides == {"redaction": "off"}
        again.override({"redaction": None})
        assert again.add("turn", TOKEN).content == "[REDACTED:github-token]"
        assert again.metadata.overrides == {}
        assert again.metadata.id == "shop"


def test_the_store_names_patterns_and_what_is_allowed(store: Store) -> None:
    config = store.path / "config.yaml"
    config.write_text(
        "format: 1\nredaction_patterns:\n  ticket: ACME-\\d{6}\nredaction_allow: [bob@acme.io]\n"
    )

    with Store.open(store.path, clock=store.clock).create_session("named") as session:
        memory = session.add("turn", "ACME-123456 of bob@acme.io and ann@acme.io")

    assert memory.content == "[REDACTED:ticket] of bob@acme.io and [REDACTED:email]"


def test_a_store_with_redaction_off_redacts_nothing(store: Store) -> None:
    (store.path / "config.yaml").write_text("format: 1\nredaction: off\n")

    with Store.open(store.path, clock=store.clock).create_session("raw") as session:
        assert session.add("turn", TOKEN).content == TOKEN


@pytest.mark.parametrize(
    "line",
    [
        "redaction: maybe",
        "redaction_patterns: {x: '(a+'}",
        "redaction_patterns: {x: 'a*'}",
        "redaction_patterns: 5",
        "redaction_allow: bob",
        "redaction_replacement: GONE",
        "redaction_replacement: []",
        "redaction_replacement: '[]'",
        "redaction_replacement: '[a b'",
        'redaction_replacement: "[a\\nb]"',
        'redaction_replacement: "[a\\u200bb]"',
        "redaction_replacement: '[{kind} {kind}]'",
        "redaction_replacement: '[correct4horse9]'",
        "redaction_replacement: '<bob@acme.io>'",
        f"redaction_replacement: '[{'a ' * 40}]'",
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(store: Store, line: str) -> None:
    config = store.path / "config.yaml"
    config.write_text(f"format: 1\n{line}\n")

    with pytest.raises(InvalidError, match="redaction"):
        Store.open(store.path)


def test_the_replacement_is_a_setting(store: Store) -> None:
    (store.path / "config.yaml").write_text(
        "format: 1\nredaction_replacement: '<secret: {kind}>'\n"
    )

    with Store.open(store.path, clock=store.clock).create_session("named") as session:
        memory = session.add("decision", f"Deploy with {TOKEN}", rationale=f"password={PASSWORD}")
        again = session.edit(memory.id, text=memory.content + "!", **memory.fields)  # type: ignore[arg-type]
        session.redact("Deploy", by="ada")

        assert memory.content == "Deploy with <secret: github-token>"
        assert again.fields["rationale"] == "password=<secret: password>"
        assert again.redacted == ()
        assert session.get(memory.id).content == "<secret: text> with <secret: github-token>!"


def test_a_replacement_that_is_set_later_leaves_what_stands(session: Session) -> None:
    session.override({"redaction_replacement": "[GONE: {kind}]"})
    memory = session.add("decision", "Deploy", rationale=f"password={PASSWORD}")
    session.override({"redaction_replacement": None})

    again = session.edit(memory.id, text="Deploy all", **memory.fields)  # type: ignore[arg-type]

    assert again.fields["rationale"] == "password=[GONE: password]"


def test_an_edit_by_hand_that_holds_a_secret_is_refused_with_its_line(session: Session) -> None:
    session.add("decision", "Deploy by hand")
    file = session.file("DEC-0001")
    file.write_text(file.read_text() + f"rationale: see {TOKEN}\n")

    with pytest.raises(RefusedError) as caught:
        session.commit()

    assert caught.value.message == "decisions/000/DEC-0001.yaml:6: a secret (github-token)"
    assert TOKEN not in caught.value.message
    assert TOKEN in file.read_text()
    file.write_text(file.read_text().replace(TOKEN, "the safe"))
    session.commit()


def test_undo_and_rollback_do_not_redact_what_stands(store: Store) -> None:
    with store.create_session("raw", overrides={"redaction": "off"}) as session:
        session.add("decision", f"key {TOKEN}")
        session.edit("DEC-0001", text="another")
        session.undo()

        assert session.get("DEC-0001").content == f"key {TOKEN}"


def test_one_kind_of_secret_is_switched_off_and_on(store: Store) -> None:
    text = f"ada@nimbus.io has {TOKEN}"
    with store.create_session("desk", overrides={"redaction": {"email": "off"}}) as session:
        assert session.add("turn", text).content == "ada@nimbus.io has [REDACTED:github-token]"
        assert session.add("turn", "of ada", speaker="ada@nimbus.io").redacted == ()
    (store.path / "config.yaml").write_text("redaction: {email: off, github-token: off}\n")
    with Store.open(store.path).create_session("other") as session:
        assert session.add("turn", text).content == text
        session.configure({"redaction": {"email": "on"}})
        assert session.add("turn", text).content == f"[REDACTED:email] has {TOKEN}"
        session.configure({"redaction": "on"})
        assert session.add("turn", text).content == "[REDACTED:email] has [REDACTED:github-token]"
        with pytest.raises(InvalidError, match="no kind of secret 'mail'") as refused:
            session.configure({"redaction": {"mail": "off"}})
        assert refused.value.hint == "perhaps email"
