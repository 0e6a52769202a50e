"""Every command with its input or output closed, full or left, with far too much input, and read-only.

A process that has loaded the program forks one for each call, which begins and ends as a new
interpreter would: that takes a fraction of the time of as many interpreters.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import typer

from smp_git import Store
from smp_git.cli.app import build
from smp_git.cli.catalogue import READING
from tests.support import ROOT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full"),
]

_COMMANDS: Final[dict[str, Any]] = typer.main.get_command(build()).commands  # type: ignore[attr-defined]
# These serve until they are stopped, or are called by programs: their own tests run them.
_ELSEWHERE: Final = frozenset({"web", "mcp", "watch", "demo", "claude", "hook"})
# What each command is given to do its work; the others need nothing.
_WORKING: Final[Mapping[str, str]] = {
    "add": "decision later", "aggregate": "count:kind", "archive": "shop",
    "bisect": "--expect-none list", "blame": "DEC-1", "branch": "other",
    "bring-back": "DEC-1", "clone": "WORK/store/active/shop copy", "completion": "bash",
    "config": "set trash_days=9", "delete": "FIND-0001", "delete-session": "shop",
    "edit": "DEC-1 changed", "explain": "DEC-1", "fields": "finding", "import": "WORK/notes",
    "hooks": "install", "init": "WORK/another", "link": "DEC-1 references:FIND-1", "merge": "idea",
    "migrate": "WORK", "new": "fresh", "path": "DEC-1", "pin": "DEC-1", "override": "redaction=off", "purge": "LEARN-0001 --now",
    "purge-session": "old", "query": "Redis", "recall": "Redis DEC-1", "redact": "Redis",
    "related": "DEC-1", "remote": "add origin WORK/bare --create", "report": "-o WORK/page.html",
    "resolve": "FIND-1", "resolve-conflict": "DEC-1 x", "restore": "LEARN-0001",
    "rollback": "HEAD~1", "show": "DEC-1", "similar": "DEC-1", "state": "ada --field current_context={}",
    "supersede": "DEC-1 instead", "switch": "idea", "tag": "v1", "undelete-session": "old",
    "unarchive": "past", "unpin": "DEC-1", "use": "shop",
}  # fmt: skip

_DRIVER: Final = """
import gc, json, os, shutil, subprocess, sys
from pathlib import Path
import pygit2, ruamel.yaml, sqlite3
from smp_git.cli.app import build
from smp_git.cli.main import run
from smp_git.session import Session
import smp_git.ask.questions, smp_git.remove.delete, smp_git.git.index_file, filelock, zoneinfo
build()
try:
    # What loads as a command is read is loaded here.
    run(["--root", "/nowhere", "list", "--limit", "3"])
except SystemExit:
    pass
gc.freeze()

class Call(BaseException):
    pass

def opened(number, mode):
    # As the interpreter finds it.
    try:
        os.fstat(number)
    except OSError:
        return None
    return open(number, mode, closefd=False)

def put(number, how, path):
    if how == "closed":
        os.close(number)
        return
    if how == "left":
        reader, place = os.pipe()
        os.close(reader)
    else:
        place = os.open(path, os.O_RDWR | os.O_CREAT | (os.O_TRUNC if number else 0))
    os.dup2(place, number)
    os.close(place)

def call(work, case):
    process = os.fork()
    if process:
        return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    os.chdir(work / "here")
    put(2, "", work / "stderr")
    put(0, case["stdin"], work.parent / "big" if case["stdin"] == "big" else os.devnull)
    put(1, case["stdout"], "/dev/full" if case["stdout"] == "full" else work / "stdout")
    sys.stdin, sys.stdout, sys.stderr = opened(0, "r"), opened(1, "w"), opened(2, "w")
    raise Call([each.replace("WORK", str(work)) for each in case["arguments"]])

def every(place, cases):
    for case in cases:
        # What only reads leaves a copy as good as it was.
        work = place / f"{'read' if case['reads'] else 'work'}{os.getpid()}"
        if not work.exists():
            shutil.copytree(place / "template", work, symlinks=True)
            (work / "here").mkdir()
            if sys.argv[2:]:
                store = work / "store"
                subprocess.run(["mount", "--bind", store, store], check=True)
                subprocess.run(["mount", "-o", "remount,ro,bind", store], check=True)
        status = call(work, case)
        out = work / "stdout"
        yield {
            "status": status,
            "stdout": out.read_bytes().decode() if out.exists() else "",
            "stderr": (work / "stderr").read_bytes().decode("utf-8", "replace"),
        }
        if not case["reads"]:
            shutil.rmtree(work)

place, cases = Path(sys.argv[1]), json.load(sys.stdin)
try:
    print(json.dumps(list(every(place, cases))))
    arguments = None
except Call as made:
    (arguments,) = made.args
if arguments is not None:
    run(arguments)
"""


# What reads its input, beside the work above.
_READERS: Final = (
    "add decision -", "add --batch -", "edit DEC-1 -", "supersede DEC-1 -", "redact -",
    "context --for -", "query --spec -",
)  # fmt: skip
# Ways in which what else writes only says something.
_SAYING: Final = ("branch", "config", "hooks", "maintain --dry-run", "remote", "state ada", "tag")
# What has nothing to do here, or does it elsewhere.
_APART: Final = ("compact", "init WORK/another")
# Mounts that nobody else sees, and that end with the process.
_ALONE: Final = (
    "unshare",
    "--mount",
    *(() if not hasattr(os, "geteuid") or os.geteuid() == 0 else ("--map-root-user",)),
)
# A plan that is not confirmed is no work either.
_REFUSED: Final = 7


class Ended(NamedTuple):
    """How a call ended."""

    status: int
    stdout: str
    stderr: str

    @property
    def is_told(self) -> bool:
        """Whether it ended as a command may: with one error if with any, and no traceback."""
        errors = [line for line in self.stderr.splitlines() if line.startswith("smp: ")]
        is_broken = "Traceback" in self.stderr or "Exception ignored" in self.stderr
        return not is_broken and self.status in (0, *range(2, 14)) and len(errors) <= 1


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with what each call gets a copy of, and an input that is too long."""
    place = tmp_path_factory.mktemp("closed")
    (place / "big").write_bytes(b"x" * 10_000_000)
    template = place / "template"
    (template / "notes").mkdir(parents=True)
    (template / "notes" / "one.md").write_text("# One\n\nA note.\n")
    store = Store.init(template / "store")
    for name in ("old", "past"):
        store.create_session(name).close()
    store.delete_session("old")
    store.archive_session("past")
    with store.create_session("shop", user="ada") as session:
        session.add("decision", "Use Redis", agent="ada", tags=["cache"])
        session.add("finding", "It is slow", agent="ada")
        session.delete(session.add("learning", "Look first", agent="ada").id)
        session.branch("idea")
    return place


def _ended(
    place: Path,
    calls: Iterable[str],
    *,
    stdin: str = "null",
    stdout: str = "file",
    read_only: bool = False,
) -> dict[str, Ended]:
    every = [*calls]
    cases = [
        {
            "arguments": ["--root", "WORK/store", *each.split()],
            "reads": read_only or each.split()[0] in READING,
            "stdin": stdin,
            "stdout": stdout,
        }
        for each in every
    ]
    alone = _ALONE if read_only else ()
    done = subprocess.run(
        [*alone, sys.executable, "-P", "-c", _DRIVER, str(place), *(["ro"] if read_only else [])],
        input=json.dumps(cases),
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT,
    )
    ends = [Ended(**each) for each in json.loads(done.stdout)]
    return dict(zip(every, ends, strict=True))


def _working() -> list[str]:
    names = sorted(_COMMANDS.keys() - _ELSEWHERE)
    return [*(f"{name} {_WORKING.get(name, '')}".strip() for name in names), *_SAYING]


@pytest.fixture(scope="module")
def usual(place: Path) -> dict[str, Ended]:
    """How each command ends where nothing is wrong."""
    return _ended(place, _working())


@pytest.mark.parametrize(("stdin", "stdout"), [("closed", "closed"), ("big", "full")])
def test_an_output_that_cannot_be_written_is_told_and_what_is_done_is_done(
    place: Path, usual: Mapping[str, Ended], stdin: str, stdout: str
) -> None:
    for call, end in _ended(place, usual, stdin=stdin, stdout=stdout).items():
        before = usual[call]
        name = call.split()[0]
        is_reading = name in READING or call in _SAYING or before.status == _REFUSED
        assert end.is_told, (call, end)
        if before.stdout:
            assert end.stderr.count("smp: cannot write the output") == 1, (call, end)
            assert end.status == (11 if is_reading else 0), (call, end)
        else:
            assert end.status == before.status, (call, end)


def test_a_reader_that_has_gone_is_no_error(place: Path, usual: Mapping[str, Ended]) -> None:
    calls = [call for call, before in usual.items() if before.stdout]
    for call, end in _ended(place, calls, stdout="left").items():
        assert end.is_told, (call, end)
        assert (end.status, "smp: " in end.stderr) == (0, False), (call, end)


@pytest.mark.parametrize("stdin", ["closed", "big"])
def test_an_input_that_is_closed_or_far_too_long_is_told(place: Path, stdin: str) -> None:
    # A prompt is read as far as it is of use; nothing is a batch of none, and asks for all.
    fine = ["context --for -", *(("add --batch -", "query --spec -") if stdin == "closed" else ())]
    for call, end in _ended(place, _READERS, stdin=stdin).items():
        assert end.is_told, (call, end)
        assert end.status == (0 if call in fine else 4), (call, end)


def _may_mount(folder: Path) -> bool:
    if shutil.which("unshare") is None:
        return False
    call = [*_ALONE, "mount", "--bind", str(folder), str(folder)]
    return subprocess.run(call, capture_output=True, check=False).returncode == 0


def test_a_read_only_store_is_read_and_every_write_is_refused_in_a_sentence(
    place: Path, usual: Mapping[str, Ended]
) -> None:
    if not _may_mount(place):
        pytest.skip("nothing may be mounted here")
    for call, end in _ended(place, usual, read_only=True).items():
        before, writes = usual[call], call.split()[0] not in READING and call not in _SAYING
        assert end.is_told, (call, end)
        if not writes or call in _APART:
            assert end.status == before.status, (call, end)
        elif before.status == 0 or end.status == 11:
            (said,) = (line for line in end.stderr.splitlines() if line.startswith("smp: "))
            assert end.status == 11 and "the disk is read-only" in said, (call, end)
        else:
            assert end.status == before.status, (call, end)
