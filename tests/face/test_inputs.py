"""What commands take in: pipes, files, the editor, times by the clock on the wall, short ids."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

from smp_git import Session, Store
from smp_git.cli.inputs import in_utc
from smp_git.cli.program import program
from smp_git.model.errors import InvalidError, MemoryNotFoundError
from tests.face.support import environment, on_terminal
from tests.support import smp

app = program()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with Store.init(tmp_path / "store").create_session("shop", user="ada") as session:
        session.add("decision", "Use Redis", agent="ada", tags=["cache"], impact="low")
        session.add("finding", "It is slow", agent="ada")
    return tmp_path / "store"


def run(root: Path, *arguments: str, stdin: bytes | None = None, **env: str) -> Result:
    given = ["--root", str(root), *arguments]
    return CliRunner().invoke(app, given, input=stdin, env=env)


# Texts


def test_a_pipe_is_read_without_being_asked(root: Path) -> None:
    assert smp("--root", root, "add", "turn", stdin="from a pipe\n").stdout == "turn-0001\n"
    assert smp("--root", root, "edit", "DEC-1", stdin="Use Valkey").stdout == "DEC-0001\n"
    assert smp("--root", root, "edit", "DEC-1", "-f", "impact=high", stdin="x").returncode == 0

    with Store.open(root).session("shop") as session:
        assert session.get("turn-1").content == "from a pipe\n"
        assert session.get("DEC-1").content == "Use Valkey"


def test_an_empty_pipe_is_no_text(root: Path) -> None:
    done = smp("--root", root, "add", "decision", stdin="", check=False)

    assert done.returncode == 4
    assert done.stderr.startswith("smp: ")


@pytest.mark.parametrize("command", [("add", "turn", "-"), ("edit", "DEC-1", "-"), ("redact", "-")])
def test_input_is_read_to_its_limit(root: Path, command: tuple[str, ...]) -> None:
    call = [sys.executable, "-P", "-m", "smp_git", "--root", str(root), *command]
    with subprocess.Popen(
        call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin and process.stderr
        sent = 0
        try:
            while sent < 64 << 20:
                sent += process.stdin.write(b"x" * 65536)
        except BrokenPipeError:
            pass
        said = process.stderr.read().decode()

    assert sent < 8 << 20
    assert process.wait() == 4
    assert "has more than 1,048,576 bytes" in said


def test_an_endless_batch_is_refused_when_it_has_no_room(root: Path) -> None:
    with Store.open(root).session("shop") as session:
        session.configure({"quota_bytes": 1 << 20})
    line = b'{"kind": "turn", "text": "again and again"}\n'
    done = run(root, "add", "--batch", "-", stdin=line * 20_000)

    assert done.exit_code == 13
    assert "has no room" in done.stderr


def test_a_line_of_a_batch_that_does_not_end_is_refused(root: Path) -> None:
    done = run(root, "add", "--batch", "-", stdin=b"x" * (9 << 20))

    assert done.exit_code == 4
    assert "line 1 has more than" in done.stderr


# The editor


def _edited(root: Path, script: str, *command: str) -> str:
    program = root.parent / "editor"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o700)
    call = [sys.executable, "-P", "-m", "smp_git", "--root", str(root), *command]
    env = environment(root.parent, VISUAL=str(program), NO_COLOR="1")
    return on_terminal(call, columns=100, env=env)


on_a_terminal = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")


@on_a_terminal
def test_a_text_is_written_in_the_editor(root: Path) -> None:
    said = _edited(root, "printf 'Use SQLite\\n# not a comment\\n' | cat - $1 > $1.x; mv $1.x $1", "add", "decision")  # fmt: skip

    assert said == "DEC-0002\n"
    with Store.open(root).session("shop") as session:
        assert session.get("DEC-2").content == "Use SQLite\n# not a comment"


@on_a_terminal
def test_nothing_is_added_from_an_empty_editor(root: Path) -> None:
    assert _edited(root, "true", "add", "decision").startswith("smp: no text was written\n")
    assert "ended with status 3" in _edited(root, "exit 3", "add", "decision")


@on_a_terminal
def test_a_memory_is_edited_as_a_file(root: Path) -> None:
    with Store.open(root).session("shop") as session:
        session.link("DEC-1", "resolves:FIND-1")
    change = "sed -i 's/Use Redis/Use Valkey/; s/impact: low/impact: high/; s/- cache/- store/' $1"

    assert _edited(root, change, "edit", "DEC-1") == "DEC-0001\n"
    with Store.open(root).session("shop") as session:
        found = session.get("DEC-1")
        assert (found.content, found.tags) == ("Use Valkey", ("store",))
        assert found.fields["impact"] == "high"
        assert len(found.links) == 1
    assert _edited(root, "true", "edit", "DEC-1") == "note: nothing changed\n"


@on_a_terminal
def test_memory_that_changed_while_it_was_in_the_editor_stays(root: Path) -> None:
    """What the editor shows may be what somebody has redacted since."""
    other = shlex.join([sys.executable, "-m", "smp_git", "--root", str(root), "redact", "Redis", "--yes"])  # fmt: skip

    said = _edited(root, f"{other} >&2; sed -i 's/Use/Never use/' $1", "edit", "DEC-1")

    assert "DEC-0001 changed while it was in the editor; nothing was written\n" in said
    place = Path(said.split("note: what was written is kept in ")[1].split("\n")[0])
    assert "Never use Redis" in place.read_text()
    place.unlink()
    with Store.open(root).session("shop") as session:
        assert session.get("DEC-1").content == "Use [REDACTED]"
        assert session.verify().clean


@on_a_terminal
def test_what_was_written_is_kept_if_it_cannot_be_taken(root: Path) -> None:
    said = _edited(root, "echo 'impact: [' >> $1", "edit", "DEC-1")

    place = Path(said.split("note: what was written is kept in ")[1].split("\n")[0])
    assert "impact: [" in place.read_text()
    assert "\nhint: " in said
    place.unlink()
    assert "the time, the agent and the life" in _edited(root, "sed -i s/ada/bob/ $1", "edit", "DEC-1")  # fmt: skip


@on_a_terminal
def test_a_turn_is_refused_before_the_editor_opens(root: Path) -> None:
    smp("--root", root, "add", "turn", "hello")

    said = _edited(root, "touch $0.opened", "edit", "turn-1")
    assert "a turn is not edited" in said
    assert not (root.parent / "editor.opened").exists()


# Times


def test_a_time_without_a_zone_is_by_the_clock_on_the_wall(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    try:
        assert in_utc("2026-01-11") == "2026-01-10T15:00:00Z"
        assert in_utc("2026-01-11", is_end=True) == "2026-01-11T14:59:59.999999Z"
        assert in_utc("2026-01-11 14:30") == "2026-01-11T05:30:00Z"
        assert in_utc("today").endswith("T15:00:00Z")
        for each in ("2026-01-11T14:30:00Z", "2 days ago", "HEAD~1", "launch", "2026-99-99", None):
            assert in_utc(each) == each
        assert in_utc(["HEAD", "2026-01-11"]) == ["HEAD", "2026-01-10T15:00:00Z"]
    finally:
        monkeypatch.undo()
        time.tzset()


# Names


def test_the_name_of_an_agent_is_told_as_it_is_written(root: Path) -> None:
    done = run(root, "add", "turn", "x", "--agent", "Ada Lovelace")

    assert done.stderr == "note: agent 'Ada Lovelace' is written ada-lovelace\n"
    assert run(root, "add", "turn", "y", "--agent", "ada").stderr == ""
    assert run(root, "add", "turn", "x", "--agent", "").exit_code == 4
    assert run(root, "add", "turn", "x", SMP_AGENT="").exit_code == 0


def test_who_writes_is_who_git_or_the_system_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("LOGNAME", "linus")
    names = {"by-git": "a person", "by-settings": "Grace Hopper", "by-login": "山田太郎"}
    Store.init(tmp_path / "store")

    for session, name in names.items():
        if session == "by-settings":
            monkeypatch.delenv("GIT_AUTHOR_NAME")
        (tmp_path / ".gitconfig").write_text(f"[user]\n\tname = {name}\n")
        assert run(tmp_path / "store", "new", session).exit_code == 0
        run(tmp_path / "store", "add", "turn", "hello", "-s", session)
    (tmp_path / ".gitconfig").unlink()
    run(tmp_path / "store", "new", "named", "--user", "ada")
    run(tmp_path / "store", "archive", "named")

    store = Store.open(tmp_path / "store")
    writers = {}
    for session in names:
        with store.session(session) as opened:
            writers[session] = {each.agent for each in opened.log()}
    assert writers == {
        "by-git": {"a-person"},
        "by-settings": {"grace-hopper"},
        "by-login": {"linus"},
    }
    assert [line.by for line in store.audit()] == ["linus"]


def test_tags_and_links_are_added_and_removed_one_by_one(root: Path) -> None:
    done = run(root, "edit", "dec1", "--add-tag", "b", "--remove-tag", "cache", "--link", "resolves:find1")  # fmt: skip

    assert done.exit_code == 0, done.stderr
    with Store.open(root).session("shop") as session:
        found = session.get("DEC-1")
        assert found.tags == ("b",)
        assert found.links == (("resolves", "FIND-0001"),)
    assert run(root, "edit", "DEC-1", "--remove-tag", "z").exit_code == 4
    assert run(root, "link", "DEC-1", "resolves:FIND-1", "--remove").exit_code == 0
    assert "its links: none" in run(root, "link", "DEC-1", "resolves:FIND-1", "--remove").stderr
    assert "--add-tag" in run(root, "edit", "DEC-1").stderr


# The library says it in the same ways


@pytest.mark.parametrize(
    "link",
    [
        "resolves:FIND-1",
        ("resolves", "find1"),
        ["resolves", "FIND-0001"],
        {"resolves": "FIND-1"},
        {"relation": "resolves", "target": "FIND-1"},
    ],
)
def test_a_link_is_given_in_any_of_its_forms(session: Session, link: Any) -> None:
    session.add("finding", "It is slow")
    expected = (("resolves", "FIND-0001"),)

    assert session.add("decision", "a", links=[link]).links == expected
    assert session.edit("DEC-1", text="b", links=[link]).links == expected
    assert session.link("FIND-1", "led_to:DEC-1").links == (("led_to", "DEC-0001"),)
    assert session.unlink("DEC-1", link).links == ()
    assert session.link("DEC-1", link).links == expected
    with session.transaction() as tx:
        other = tx.add("decision", "c", links=[link])
        assert tx.add("decision", "d", links=["references:dec-2"]).links == (
            ("references", other.id),
        )


@pytest.mark.parametrize("link", ["FIND-1", ("resolves",), 5, ("resolves", 5), "resolves:x y"])
def test_what_is_no_link_is_refused(session: Session, link: Any) -> None:
    with pytest.raises(InvalidError):
        session.add("decision", "a", links=[link])


def test_one_word_stands_for_a_list_of_one(session: Session) -> None:
    session.add("finding", "It is slow", agent="ada", tags=["a"])
    session.add("decision", "Use Redis", agent="ada")

    forms: list[Any] = [{"kind": "finding"}, {"kinds": "finding"}, {"tag": "a"}, {"tags": "a"}]
    for parts in forms:
        assert [hit.id for hit in session.query(**parts)] == ["FIND-0001"]
    assert len(session.query(agent="ada")) == 2


def test_a_memory_that_is_not_there_may_have_a_default(session: Session) -> None:
    assert session.get("DEC-9", default=None) is None
    assert session.get("DEC-9", at="2020-01-01", default="none") == "none"
    with pytest.raises(MemoryNotFoundError):
        session.get("DEC-9")
    with pytest.raises(InvalidError):
        session.get("no id", default=None)
