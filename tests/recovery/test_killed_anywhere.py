"""Killed at any step: all or nothing, no secret left, one receipt, one line in the audit log."""

from __future__ import annotations

from pathlib import Path

import pytest

from smp_git import Session, Store
from smp_git.remove.interrupted import site_of
from tests.independent_scan import scan
from tests.recovery.support import everything
from tests.support import STEPS, git, python

pytestmark = pytest.mark.slow

SECRET = "plugh-0451-of-the-cave"
KEPT = "the shop stays open on Sundays"

# Dies at the step of that number; the last line says how many there are.
DIES = (
    STEPS
    + """
from smp_git.remove import audit, restore, trash
for home, name in (
    (audit, "keep_receipt"), (audit, "note"), (trash.Trash, "keep"), (trash.Trash, "confirm"),
    (trash.Trash, "drop"), (trash.Trash, "update"),
):
    around(home, name)
with Store.open(sys.argv[1]).session("shop") as session:
    ACT
print(len(seen))
"""
)
ACTS = {
    "delete": 'session.delete("DEC-0001", reason="why")',
    "delete for good": 'session.delete("DEC-0001", purge=True, reason="why")',
    "purge": 'session.purge("DEC-0002", reason="why")',
    "redact": f'session.redact("{SECRET}", reason="why")',
}
ACTIONS = {"delete": "delete", "delete for good": "purge", "purge": "purge", "redact": "redact"}


def filled(folder: Path) -> Store:
    store = Store.init(folder)
    with store.create_session("shop", user="ada") as session:
        session.add("decision", f"{SECRET} the first", rationale=KEPT)
        session.edit("DEC-0001", text=f"{SECRET} the second")
        session.add("decision", f"{SECRET} in the trash")
        session.add("finding", KEPT)
        session.delete("DEC-0002")
    git(folder / "active" / "shop", "tag", "v1")
    return store


def killed(tmp_path: Path, act: str, make=filled) -> list[tuple[int, Store]]:  # type: ignore[no-untyped-def]
    """Return a store for each step at which the act was killed, and not opened since."""
    code = DIES.replace("ACT", act)
    steps = int(python(code, make(tmp_path / "whole").path, 0).stdout.split()[-1])
    assert steps > 2
    stores = []
    for step in range(1, steps + 1):
        store = make(tmp_path / f"at-{step}")
        assert python(code, store.path, step, check=False).returncode == 73
        stores.append((step, store))
    return stores


def lines(session: Session, action: str, name: str) -> int:
    return sum(name in line.ids and line.reason == "why" for line in session.audit(action=action))


def sound(session: Session) -> None:
    assert session.check() == ()
    assert session.get("FIND-0001").content == KEPT
    assert not (session.path / ".git/smp/erasure.json").exists()
    assert git(session.path, "fsck", "--full", "--strict", "--no-dangling") == ""


def copies(session: Session) -> bytes:
    """Return the text of every version that a sealed copy still tells."""
    trash = site_of(session._handle).trash
    return b"".join(each.data for record in trash.records() for each in trash.versions(record))


def is_done(session: Session, act: str) -> bool:
    """Check that an act is done or was never begun, and say which."""
    there = {memory.id for memory in session.memories()}
    kept = {item.id for item in session.trash()}
    if act == "purge":
        assert "DEC-0001" in there
        return "DEC-0002" not in kept
    if act == "redact":
        assert "DEC-0001" in there
        assert session.get("DEC-0001").fields["rationale"] == KEPT
        done = SECRET not in session.get("DEC-0001").content
        assert (SECRET.encode() in copies(session)) is not done
        return done
    done = "DEC-0001" not in there
    assert ("DEC-0001" in kept) is (done and act == "delete")
    return done


@pytest.mark.parametrize("act", ACTS)
def test_killed_at_any_step_it_is_done_or_was_never_begun(tmp_path: Path, act: str) -> None:
    outcomes = []
    for step, store in killed(tmp_path, ACTS[act]):
        name = "DEC-0002" if act == "purge" else "DEC-0001"
        with store.session("shop") as session:
            sound(session)
            done = is_done(session, act)
            outcomes.append(done)
            assert lines(session, ACTIONS[act], name) == done, step
            if done and act != "purge":
                receipt = session.receipt(name)
                assert receipt["reason"] == "why", step
                assert "proof" in receipt
                assert scan(session.path, [SECRET.encode()]) == [], step
            if not done:
                assert SECRET in session.get("DEC-0001").content
        assert store.check() == ()
    assert outcomes == sorted(outcomes), "what was once done is never undone"
    assert True in outcomes


def trashed(folder: Path) -> Store:
    store = filled(folder)
    with store.session("shop") as session:
        session.delete("DEC-0001")
    return store


def test_killed_at_any_step_a_restoration_is_whole_and_told_once(tmp_path: Path) -> None:
    act = 'session.restore("DEC-0001", with_history=True, reason="why")'
    for step, store in killed(tmp_path, act, trashed):
        with store.session("shop") as session:
            sound(session)
            back = "DEC-0001" in {memory.id for memory in session.memories()}
            kept = "DEC-0001" in {item.id for item in session.trash()}
            assert kept is not back, step
            if not back:
                session.restore("DEC-0001", with_history=True, reason="why")
            assert session.get("DEC-0001").content == f"{SECRET} the second"
            assert len(session.history("DEC-0001")) == 2
            restored = [line for line in session.audit(action="restore") if "DEC-0001" in line.ids]
            assert len(restored) == 1, step


def branched(folder: Path) -> Store:
    store = filled(folder)
    with store.session("shop") as session, session.branch("aside") as aside:
        aside.add("decision", "Only here")
    return store


def test_killed_at_any_step_a_branch_is_dropped_or_there(tmp_path: Path) -> None:
    for step, store in killed(tmp_path, 'session.drop_branch("aside")', branched):
        with store.session("shop") as session:
            sound(session)
            held = [item for item in session.trash() if item.reason == "branch aside was dropped"]
            if "aside" not in {each.name for each in session.branches()}:
                assert held, step
                assert len(session.audit(action="drop_branch")) == 1, step
                session.restore(held[0].id)
                assert session.get(held[0].id).content == "Only here"
            else:
                assert session.audit(action="drop_branch") == (), step
                # Too many copies are better than none.
                assert len(held) <= 1, step
                session.drop_branch("aside")
                assert len(session.audit(action="drop_branch")) == 1, step


def test_the_next_deletion_of_an_open_session_tells_of_the_one_before(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    with store.session("shop") as before:
        code = DIES.replace("ACT", ACTS["delete"])
        assert python(code, store.path, 9, check=False).returncode == 73

        before.delete("FIND-0001")

        assert lines(before, "delete", "DEC-0001") == 1
        assert before.receipt("DEC-0001")["reason"] == "why"
        assert SECRET.encode() not in everything(store.path / "active")
