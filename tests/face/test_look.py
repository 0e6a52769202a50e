"""The look of the screen: colour, width, pager, times, and what changed in a text."""

from __future__ import annotations

import re
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

import pytest

from smp_git import Store
from smp_git.cli import screen
from smp_git.cli.graph import graph
from smp_git.cli.terminal import bare, paint
from smp_git.cli.values import as_words, changes, word_diff
from smp_git.model.memory import CommitId
from smp_git.read.history import FieldChange, Version
from tests.face.support import a_session, environment, on_terminal, screens

_NOW = datetime(2026, 1, 11, 14, 30, tzinfo=UTC)
on_a_terminal = pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    with Store.init(tmp_path / "store").create_session("shop", user="ada") as session:
        session.add_many([{"kind": "turn", "text": f"turn {n}"} for n in range(30)])
    return tmp_path


def _shown(root: Path, *command: str, rows: int = 50, **more: str) -> str:
    call = [sys.executable, "-P", "-m", "smp_git", "--root", str(root / "store"), *command]
    return on_terminal(call, columns=100, rows=rows, env=environment(root, **more))


@on_a_terminal
@pytest.mark.parametrize(
    ("name", "value", "is_coloured"),
    [("LANG", "C", True), ("NO_COLOR", "1", False), ("TERM", "dumb", False)],
)
def test_colour_is_for_terminals_that_want_it(
    root: Path, name: str, value: str, is_coloured: bool
) -> None:
    more: dict[str, Any] = {name: value}
    assert ("\x1b[" in _shown(root, "list", **more)) == is_coloured


@on_a_terminal
def test_what_is_longer_than_the_terminal_goes_to_the_pager(root: Path) -> None:
    pager = root / "pager"
    pager.write_text(f'#!/bin/sh\necho "LESS=$LESS" > {root}/said\ncat >> {root}/said\n')
    pager.chmod(0o700)

    assert "turn-0030" not in _shown(root, "list", rows=20, PAGER=str(pager))
    said = (root / "said").read_text()
    assert said.startswith("LESS=FRX+G\n") and "turn-0030" in said
    assert "turn-0030" in _shown(root, "list", rows=50, PAGER=str(pager))
    assert "turn-0030" in _shown(root, "list", rows=20, PAGER="no-such-program")
    assert "turn-0030" in _shown(root, "list", rows=20, SMP_PAGER="", PAGER=str(pager))


@on_a_terminal
def test_a_pager_that_is_left_early_is_no_error(root: Path) -> None:
    assert "Traceback" not in _shown(root, "list", rows=20, PAGER="true")


# What shows a file or a text whole, as `show` does, leaves it to the terminal to fold.
_FITTED: Final = (
    "list", "log", "log -p", "diff HEAD~2", "status", "query cache", "trash", "receipt", "size",
    "show DEC-1", "info", "stats", "config", "summary", "context", "help list",
)  # fmt: skip
# What says nothing of what was written.
_OTHERS: Final = ("status", "size", "receipt", "trash", "info", "stats", "config", "help list")


@on_a_terminal
@pytest.mark.parametrize(("columns", "no_colour"), [(60, ""), (60, "1"), (100, ""), (200, "")])
def test_no_line_is_wider_than_the_terminal(tmp_path: Path, columns: int, no_colour: str) -> None:
    long = "Keep the cache small 会话超时\n" * 20
    store = a_session(tmp_path / "store")
    with store.session("shop") as session:
        session.delete("PREF-0001", reason="no longer ours " * 20)
        session.edit("DEC-1", text=long, rationale="because of\nthe cache " * 20)
        session.add("finding", long.replace("\n", " "), agent="ada", tags=["cache." * 5 + "size"])
    store.close()
    env = environment(tmp_path, SMP_ROOT=str(store.path), SMP_SESSION="shop", NO_COLOR=no_colour)
    for command, text in screens(_FITTED, columns=columns, env=env).items():
        # A path is a word, which is not broken.
        plain = re.sub(r"\{\d*\}", "", text.replace(str(tmp_path), "/home/ada"))
        assert "cache" in plain or (command in _OTHERS and plain.strip())
        assert [line for line in plain.splitlines() if screen.width(line) > columns] == []
        # Nor is an id cut: what could be the beginning of one is one.
        assert not re.search(r"(?:DEC|FIND|LEARN|PREF|turn)-\d{0,3}(?!\d)", plain), plain


def test_what_is_too_wide_goes_on_below_and_a_pipe_gets_it_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = f"title\n- {paint('red', 'one two three')} four\n  at /a/path/that/is/long now\n\nend"
    assert screen.folded(text) == text

    monkeypatch.setattr(screen, "columns", lambda: 14)
    assert bare(screen.folded(text)).split("\n") == [
        "title",
        "- one two",
        "    three four",
        "  at /a/path/that/is/long",
        "    now",
        "",
        "end",
    ]
    assert (
        screen.pairs([("size", "1 byte of 10"), ("a", "b")]) == "size  1 byte\n      of 10\na     b"
    )


@pytest.mark.parametrize(
    ("ago", "said"),
    [
        (timedelta(seconds=1), "1 second ago"),
        (timedelta(minutes=89), "89 minutes ago"),
        (timedelta(hours=35), "35 hours ago"),
        (timedelta(days=13), "13 days ago"),
        (timedelta(weeks=9), "9 weeks ago"),
        (timedelta(days=100), "3 months ago"),
        (timedelta(days=800), "2 years ago"),
        (-timedelta(days=3), "in 3 days"),
    ],
)
def test_a_time_is_said_as_git_says_it(ago: timedelta, said: str) -> None:
    assert screen.ago(_NOW - ago, _NOW) == said


def test_wide_and_combining_characters_are_measured_as_terminals_show_them() -> None:
    assert screen.width("会话") == 4
    assert screen.width("é") == 1
    assert screen.width(paint("red", "ab")) == 2


def test_a_painted_text_is_cut_to_its_room_and_its_paint_ends() -> None:
    cut = screen.clipped(f"a {paint('red', '会话超时')} b", 7)

    assert bare(cut) == "a 会话…"
    assert cut.endswith(paint("red", "x")[-1])


def test_words_that_changed_are_marked_and_the_rest_stays() -> None:
    assert bare(word_diff("Use MySQL here", "Use Redis here")) == "Use MySQLRedis here"
    assert word_diff("a b c", "a b c") == "a b c"
    assert (
        bare(word_diff("keep this old text", "keep that new text")) == "keep this oldthat new text"
    )


def test_a_long_text_shows_what_is_around_a_change() -> None:
    before = " ".join(["same"] * 400)
    shown = bare(word_diff(f"{before} old {before}", f"{before} new {before}"))

    assert "oldnew" in shown
    assert len(shown) < 400


def test_two_long_texts_that_share_nothing_are_compared_at_once() -> None:
    one, other = ("".join(f"{letter}{n} " for n in range(100_000)) for letter in "ab")

    assert len(word_diff(one, other)) > 1_000_000


def test_values_are_words() -> None:
    value = {"task": "verify", "open": ["FIND-0001", "FIND-0002"], "done": False, "more": {}}

    assert as_words(value) == "task verify, open FIND-0001, FIND-0002, done no, more none"


def test_a_change_says_what_came_went_and_differs() -> None:
    found = [
        FieldChange("updated_at", None, "2026-01-11T14:30:00Z"),
        FieldChange("impact", "low", "high"),
        FieldChange("tags", ["a", "b"], ["b", "c"]),
        FieldChange("resolution", None, {"status": "resolved"}),
        FieldChange("rationale", "because", None),
    ]

    assert [bare(line).strip() for line in changes(found)] == [
        "~ impact: low -> high",
        "- tags: a",
        "+ tags: c",
        "+ resolution.status: resolved",
        "- rationale: because",
    ]


def test_a_merge_is_drawn_with_two_lanes() -> None:
    #   e
    #   |\
    #   c d
    #   |/
    #   a
    every = [_version("e", "c", "d"), _version("d", "a"), _version("c", "a"), _version("a")]
    drawn = graph(every, every)

    assert [line for each in every for line in drawn[each.commit]] == [
        "*",
        "|\\",
        "| *",
        "* |",
        "|/",
        "*",
    ]


def test_a_commit_that_is_left_out_is_passed_over_in_the_graph() -> None:
    every = [_version("c", "b"), _version("b", "a"), _version("a")]
    drawn = graph([every[0], every[2]], every)

    assert drawn == {"c": ["*"], "a": ["*"]}


def _version(name: str, *parents: str) -> Version:
    return Version(
        commit=CommitId(name),
        at=_NOW,
        agent="ada",
        subject=name,
        touches=(),
        parents=tuple(map(CommitId, parents)),
    )
