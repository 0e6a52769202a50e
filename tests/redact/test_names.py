"""Names that hold a secret are refused at every door, and nothing of them is stored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.model.errors import InvalidError
from smp_git.write.transaction import Transaction
from tests.redact.test_writing import TOKEN, stored

# Lower case, so that it has the form of every name.
KEY = "sk_live_" + "a1b2c3d4e5f6g7h8"
FIELD: dict[str, Any] = {TOKEN: "1"}

STORE_DOORS: dict[str, Callable[[Store], object]] = {
    "id": lambda store: store.create_session(TOKEN),
    "user": lambda store: store.create_session("a", user=f"ada {TOKEN}"),
    "agents": lambda store: store.create_session("a", agents=["ada", TOKEN]),
    "tags": lambda store: store.create_session("a", tags=["a", KEY]),
    "clone": lambda store: store.clone("/nowhere", TOKEN),
    "delete": lambda store: store.delete_session("shop", by=TOKEN),
    "undelete": lambda store: store.undelete_session("gone", by=TOKEN),
    "purge": lambda store: store.purge_session("gone", by=TOKEN),
}
SESSION_DOORS: dict[str, Callable[[Session], object]] = {
    "add": lambda session: session.add("decision", "x", agent=TOKEN),
    "tag of a memory": lambda session: session.add("decision", "x", tags=[KEY]),
    "relation": lambda session: session.add("decision", "x", links=[(KEY, "FIND-0001")]),
    "field": lambda session: session.add("decision", "x", **FIELD),
    "edit": lambda session: session.edit("FIND-0001", text="y", agent=TOKEN),
    "edited field": lambda session: session.edit("FIND-0001", **FIELD),
    "edited tag": lambda session: session.edit("FIND-0001", tags=[KEY]),
    "edited link": lambda session: session.edit("FIND-0001", links=[(KEY, "DEC-0001")]),
    "link": lambda session: session.link("FIND-0001", KEY, "DEC-0001"),
    "state": lambda session: session.set_state(TOKEN, {"a": "b"}),
    "transaction": lambda session: session.transaction(KEY),
    "branch": lambda session: session.branch(KEY),
    "tag": lambda session: session.tag(KEY),
    "undo": lambda session: session.undo(agent=TOKEN),
    "merge": lambda session: session.merge("main", agent=TOKEN),
    "override": lambda session: session.override({"custom": {"note": "x"}}, agent=TOKEN),
    "delete": lambda session: session.delete("FIND-0001", by=TOKEN),
    "redact": lambda session: session.redact("leak", by=TOKEN),
    "purge": lambda session: session.purge(older_than="1d", by=TOKEN),
    "remote": lambda session: session.add_remote(KEY, "/nowhere.git"),
    "address": lambda session: session.add_remote("o", f"https://{TOKEN}@github.com/a/b"),
}


@pytest.mark.parametrize("door", STORE_DOORS)
def test_a_store_refuses_a_name_with_a_secret(store: Store, session: Session, door: str) -> None:
    store.create_session("gone").close()
    store.delete_session("gone")

    with pytest.raises(InvalidError, match="holds a secret") as caught:
        STORE_DOORS[door](store)

    assert_nowhere(store.path, caught.value)


@pytest.mark.parametrize("door", SESSION_DOORS)
def test_a_session_refuses_a_name_with_a_secret(store: Store, session: Session, door: str) -> None:
    session.add("finding", "a leak")

    with pytest.raises(InvalidError, match="holds a secret") as caught:
        SESSION_DOORS[door](session)

    assert_nowhere(store.path, caught.value)


STAGED: dict[str, Callable[[Transaction], object]] = {
    "add": lambda t: t.add("decision", "x", agent=TOKEN),
    "state": lambda t: t.set_state(TOKEN, {"a": "b"}),
    "link": lambda t: t.link("FIND-0001", KEY, "DEC-0001"),
    "edit": lambda t: t.edit("FIND-0001", tags=[KEY]),
}


@pytest.mark.parametrize("door", STAGED)
def test_a_transaction_refuses_a_name_with_a_secret(
    store: Store, session: Session, door: str
) -> None:
    session.add("finding", "a leak")

    with session.transaction() as t:
        t.add("learning", "kept")
        with pytest.raises(InvalidError, match="holds a secret") as caught:
            STAGED[door](t)

    assert_nowhere(store.path, caught.value)
    assert session.get("LEARN-0001").content == "kept"


def test_texts_beside_a_name_are_redacted(store: Store, session: Session) -> None:
    session.add("finding", "Nightingale sings")
    session.resolve("FIND-0001", by=f"ada {TOKEN}", action=TOKEN)
    session.redact("Nightingale", f"a bird {TOKEN}", reason=TOKEN)
    session.override({"custom": {"note": TOKEN}})
    store.create_session(
        "other", context={TOKEN: 1}, overrides={"custom": {"note": [TOKEN]}}
    ).close()
    store.delete_session("other", TOKEN)

    assert session.get("FIND-0001").content == "a bird [REDACTED:github-token] sings"
    assert TOKEN.encode() not in stored(store.path)


def test_a_name_that_is_allowed_stays(store: Store) -> None:
    overrides = {"redaction_allow": ["ada@acme.io"]}

    with store.create_session("a", user="ada@acme.io", overrides=overrides) as session:
        assert session.metadata.user == "ada@acme.io"


def test_a_field_whose_name_is_a_secret_can_be_removed(store: Store) -> None:
    with store.create_session("raw", overrides={"redaction": "off"}) as session:
        session.add("decision", "x", **FIELD)
        session.override({"redaction": None})

        gone: dict[str, Any] = {TOKEN: None}
        session.edit("DEC-0001", **gone)

        assert TOKEN not in session.get("DEC-0001").fields


def assert_nowhere(folder: Path, error: InvalidError) -> None:
    everything = stored(folder).lower() + b"\n".join(
        str(path).lower().encode() for path in folder.rglob("*")
    )
    for secret in (TOKEN, KEY):
        assert secret.lower().encode() not in everything
        assert secret not in f"{error.message} {error.hint}"
