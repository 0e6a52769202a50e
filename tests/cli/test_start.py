"""A call loads what it needs, and no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import typer.main

from smp_git import Store
from smp_git.cli.app import homes
from smp_git.cli.catalogue import ENTRIES, ROOMS
from smp_git.cli.help import command_in
from smp_git.cli.program import program
from tests.support import python


def test_rooms_are_where_the_commands_live() -> None:
    program()

    assert {name: f"smp_git.cli.{room}" for name, room in ROOMS.items()} == homes()


def test_help_lists_what_the_commands_say_of_themselves() -> None:
    group: Any = typer.main.get_command(program())
    said = {
        name: each.help.split("\n")[0] for name, each in group.commands.items() if not each.hidden
    }

    assert {name: entry.summary for name, entry in ENTRIES.items()} == said


def test_importing_the_package_loads_nothing_heavy() -> None:
    loaded = python("import sys, smp_git; print(*sys.modules)").stdout.split()

    assert not {
        "pygit2",
        "_ruamel_yaml",
        "ruamel.yaml",
        "typer",
        "filelock",
        "sqlite3",
        "smp_git.session",
    } & set(loaded)


def test_a_write_loads_no_search() -> None:
    loaded = python("import sys, smp_git.cli.write; print(*sys.modules)").stdout.split()

    heavy = {
        "_ruamel_yaml",
        "ruamel.yaml",
        "filelock",
        "sqlite3",
        "regex",
        "cryptography",
        "smp_git.ask.desk",
        "smp_git.ask.text",
        "asyncio",
        "rich",
    }
    assert not heavy & set(loaded)


def test_options_before_the_command_load_no_more(tmp_path: Path) -> None:
    code = (
        "import sys; from smp_git.cli.main import run\n"
        "try: run(sys.argv[1:])\n"
        "except SystemExit: pass\n"
        "print(*sys.modules)"
    )
    Store.init(tmp_path / "store").create_session("shop").close()
    asked = ("--root", tmp_path / "store", "-s", "shop", "--json", "list")
    loaded = python(code, *asked).stdout.split("\n")

    assert loaded[0].startswith('{"memories": []')
    assert "smp_git.cli.listing" in loaded[1].split()
    # What people seldom ask for is loaded when they do.
    assert not {"smp_git.cli.erase", "smp_git.keep.check"} & set(loaded[1].split())


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (["add", "-s", "shop"], "add"),
        (["-s", "shop", "add"], "add"),
        (["--root=x", "--json", "-C", "add", "show"], "show"),
        (["--help"], None),
        (["-s"], None),
        ([], None),
    ],
)
def test_command_is_found_behind_the_common_options(arguments: list[str], name: str | None) -> None:
    assert command_in(arguments) == name


def test_an_interrupt_while_modules_load_is_no_traceback() -> None:
    code = (
        "import sys\n"
        "class Interrupted:\n"
        "    def find_spec(self, name, *rest):\n"
        "        if name == 'typer': raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Interrupted())\n"
        "from smp_git.__main__ import main\n"
        "main()"
    )
    done = python(code, "list", check=False)

    assert done.returncode == 130
    assert done.stderr == "smp: interrupted\n"


@pytest.mark.parametrize("hook", ["pre-commit", "post-commit"])
def test_a_hook_of_git_loads_no_typer(tmp_path: Path, hook: str) -> None:
    code = (
        "import os, sys; from smp_git.cli.main import run\n"
        "os.chdir(sys.argv[1])\n"
        "try: run(['hook', sys.argv[2]])\n"
        "except SystemExit as end: assert not end.code\n"
        "print(*sys.modules)"
    )
    with Store.init(tmp_path / "store").create_session("shop") as session:
        path = session.path
    loaded = python(code, path, hook).stdout.split()

    assert "smp_git.cli.git_hooks" in loaded
    assert not {"typer", "ruamel.yaml", "rich", "smp_git.cli.app"} & set(loaded)


def test_a_hook_that_does_not_exist_says_so_with_and_without_typer() -> None:
    calls = (["hook", "pre-lunch"], ["--json", "hook", "pre-lunch"])
    direct, through_typer = (
        python(
            "import sys; from smp_git.cli.main import run; run(sys.argv[1:])", *call, check=False
        )
        for call in calls
    )

    assert direct.returncode == through_typer.returncode == 4
    assert direct.stderr.startswith("smp: no hook 'pre-lunch'\nhint: the hooks are: merge, ")
    assert json.loads(through_typer.stderr)["error"]["message"] == "no hook 'pre-lunch'"


def test_reading_and_writing_what_the_program_wrote_loads_no_yaml_package(tmp_path: Path) -> None:
    code = (
        "import sys; from smp_git import Store\n"
        "with Store.open(sys.argv[1]).session('shop') as session:\n"
        "    session.add('finding', 'No MFA', agent='a')\n"
        "    assert session.query('MFA').total == 1\n"
        "print(*sys.modules)"
    )
    Store.init(tmp_path / "store").create_session("shop").close()
    loaded = python(code, tmp_path / "store").stdout.split()

    assert "filelock" in loaded
    assert not {"ruamel.yaml", "yaml", "typer"} & set(loaded)
