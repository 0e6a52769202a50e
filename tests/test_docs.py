"""The documentation holds: its examples run, its links resolve, its lists are complete."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import smp_git
from smp_git.ask import vectors
from smp_git.model import errors, memory
from smp_git.model.fields import fields_of
from smp_git.model.memory import COMMON_FIELDS, KINDS
from tests import api_reference, cli_reference, man_pages, pages, settings_reference
from tests.integrations.program import api
from tests.support import ROOT

DOCS = ROOT / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
README = ROOT / "README.md"


def _runnable(page: Path, block: pages.Block) -> bool:
    # What sets a machine up is shown in the README, and is not for a test to run.
    first = block.text.startswith("$ smp") or page != README
    return block.language == "python" or (block.language == "console" and first)


def _with_examples() -> list[Path]:
    found = [page for page in (README, *PAGES) if page.exists()]
    return [
        page for page in found if any(_runnable(page, b) for b in pages.blocks(page.read_text()))
    ]


# What the examples of a page need that is an extra.
_NEEDS = {
    "use-with-langgraph": "langgraph.graph",
    "use-with-pydantic-ai": "pydantic_ai",
    "use-with-openai-agents": "agents",
    "use-the-memory-tool": "anthropic",
    "use-with-claude-agent-sdk": "claude_agent_sdk",
}


@pytest.fixture
def model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A model that answers on this machine, for the examples that ask one."""
    with api() as server:
        for name, value in {
            "ANTHROPIC_BASE_URL": server.address,
            "ANTHROPIC_API_KEY": "none",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CONFIG_DIR": str(tmp_path / "claude"),
        }.items():
            monkeypatch.setenv(name, value)
        yield


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")
@pytest.mark.parametrize("page", _with_examples(), ids=lambda page: page.stem)
def test_examples_do_what_the_page_shows(
    page: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pages show what smp says without the extra `semantic`, installed here or not.
    monkeypatch.setattr(vectors, "find_encoder", lambda: None)
    if page.stem in _NEEDS:
        pytest.importorskip(_NEEDS[page.stem], reason="an extra is not installed")
        request.getfixturevalue("model")
    folder = tmp_path / "desk"
    folder.mkdir()
    desk = pages.Desk(folder)
    for block in pages.blocks(page.read_text()):
        if _runnable(page, block):
            desk.run(block)


@pytest.mark.parametrize(
    ("mark", "command"),
    [
        (
            "smp demo",
            "python3 -m venv .venv && .venv/bin/pip install -q . && .venv/bin/smp demo",
        ),
        (
            "pytest",
            "python3 -m venv .venv-test && .venv-test/bin/pip install -q -e '.[test]'"
            " && .venv-test/bin/pytest -q -n 2",
        ),
    ],
    ids=["demo", "tests"],
)
def test_first_line_of_the_readme_that_names_it_is_the_command(mark: str, command: str) -> None:
    # Whoever checks the package runs the first line that names it, as a shell command.
    lines = README.read_text().splitlines()
    assert next(line for line in lines if mark in line) == command


# Lists


def _tables(page: str) -> dict[str, list[list[str]]]:
    """Return the rows of the tables of a reference page by heading, without marks."""
    found: dict[str, list[list[str]]] = {}
    heading = ""
    for line in (DOCS / "reference" / page).read_text().splitlines():
        if line.startswith("#"):
            heading = line.lstrip("# ")
        elif line.startswith("| ") and "---" not in line:
            cells = re.split(r"(?<!\\)\|", line.removeprefix("|").removesuffix("|"))
            plain = [re.sub(r"^`([^`]*)`$", r"\1", cell.strip()) for cell in cells]
            found.setdefault(heading, []).append(plain)
    return {name: rows[1:] for name, rows in found.items()}


def _error_classes(
    root: type[errors.SmpError] = errors.SmpError,
) -> Iterator[type[errors.SmpError]]:
    for one in root.__subclasses__():
        if one.__module__ == errors.__name__:
            yield one
            yield from _error_classes(one)


def test_every_error_is_listed_with_its_status() -> None:
    listed = {tuple(row[:5]) for row in _tables("exit-statuses.md")["Exit statuses"]}
    actual = {
        (
            one.code,
            str(one.exit_status),
            "yes" if one.recoverable else "no",
            ", ".join(f"`{code}`" if one.seed_codes[1:] else code for code in one.seed_codes),
            one.__name__,
        )
        for one in _error_classes()
    }
    assert listed == actual


def test_each_command_of_the_twenty_tasks_is_run_by_the_page() -> None:
    page = (DOCS / "reference/twenty-tasks.md").read_text()
    ways = re.findall(r"^\| [^|`]+ \| (`smp[^|]*) \|", page, flags=re.MULTILINE)
    ran = [step.command for block in pages.blocks(page) for step in pages.steps(block)]
    assert len(ways) == 20
    assert {each for way in ways for each in re.findall("`([^`]+)`", way)} <= set(ran)


@pytest.mark.parametrize("kind", KINDS)
def test_every_field_of_a_kind_is_listed_with_type_and_meaning(kind: str) -> None:
    listed = {row[0]: (row[1], row[2]) for row in _tables("fields.md")[kind]}
    known = fields_of(kind)
    assert listed == {name: known[name] for name in KINDS[kind].fields}


def test_the_fields_of_all_kinds_are_listed() -> None:
    listed = {row[0]: (row[1], row[2]) for row in _tables("fields.md")["Fields of all kinds"]}
    known = fields_of("turn")
    assert listed == {name: known[name] for name in COMMON_FIELDS}


def test_the_words_of_confidence_and_severity_are_listed() -> None:
    types = {row[0]: re.findall("`([a-z]+)`", row[1]) for row in _tables("fields.md")["Types"]}
    assert types["confidence"] == list(memory.CONFIDENCE_RANKS)
    assert types["severity"] == list(memory.SEVERITIES)


@pytest.mark.parametrize("name", cli_reference.commands())
def test_every_command_has_help_and_an_example(name: str) -> None:
    command = cli_reference.commands()[name]
    assert command.help
    assert command.epilog
    assert f"smp {name}" in command.epilog
    assert all(param.help for param in command.params if param.name != "help")


def test_every_public_name_is_in_the_api_reference() -> None:
    page = api_reference.text()
    plain = set(smp_git.__all__) - {"SmpError"}
    assert [name for name in plain if f"## {name}\n" not in page] == []


@pytest.mark.parametrize(
    ("made", "page", "name"),
    [
        (cli_reference.text, cli_reference.PAGE, "cli_reference"),
        (api_reference.text, api_reference.PAGE, "api_reference"),
        (settings_reference.text, settings_reference.PAGE, "settings_reference"),
    ],
    ids=["cli", "python-api", "settings"],
)
def test_generated_page_is_current(made: Callable[[], str], page: Path, name: str) -> None:
    assert page.read_text() == made(), f"python -m tests.{name}"


def test_manual_pages_are_current() -> None:
    kept = {page.name: page.read_text() for page in (DOCS / "man").iterdir()}
    assert kept == man_pages.pages(), "python -m tests.man_pages"


# JSON


@pytest.fixture
def desk(tmp_path: Path) -> pages.Desk:
    """A folder with a session of two memories and a change."""
    folder = tmp_path / "desk"
    folder.mkdir()
    desk = pages.Desk(folder)
    for line in (
        "smp new shop --user ada",
        "smp add finding 'No MFA' --field severity=high --tag security",
        "smp add decision 'Use MySQL' --link resolves:FIND-0001 --field impact=low",
        "smp edit DEC-1 --field impact=high",
        "smp remote add origin hub.git --create",
    ):
        desk.command(line)
    return desk


# The command, the way to the object in what it prints, and the heading of the page.
_OBJECTS: list[tuple[str, tuple[str | int, ...], str]] = [
    ("smp show DEC-1", (), "Memory, Uses"),
    ("smp list", (), "Memories"),
    ("smp list", ("memories", 0), "Memory, Uses"),
    ("smp log", (), "Versions"),
    ("smp log", ("versions", 0), "Version"),
    ("smp status", (), "Status"),
    ("smp diff", (), "Differences"),
    ("smp diff", ("memories", 0), "Difference"),
    ("smp diff", ("memories", 0, "fields", 0), "Field change"),
    ("smp blame DEC-1", (), "Blame"),
    ("smp blame DEC-1", ("fields", 0), "Blamed field"),
    ("smp bisect --expect-none 'query MySQL'", (), "Culprit"),
    ("smp undo", (), "Change"),
    ("smp rollback HEAD~1", (), "Change"),
    ("smp commit", (), "Change"),
    ("smp branch", (), "Branches"),
    ("smp branch idea", (), "Branch"),
    ("smp --branch idea edit DEC-1 -f impact=low", (), "Memory"),
    ("smp edit DEC-1 -f impact=certain", (), "Memory"),
    ("smp merge idea", (), "Merge"),
    ("smp conflicts", (), "Conflicts"),
    ("smp conflicts", ("conflicts", 0), "Contested value"),
    ("smp resolve-conflict DEC-1", (), "Memory"),
    ("smp branch idea --drop", (), "Dropped branch"),
    ("smp tag", (), "Tags"),
    ("smp state veritas", (), "State"),
    ("smp info", (), "Session"),
    ("smp sessions", (), "Sessions"),
    ("smp size", (), "Size"),
    ("smp compact", (), "Compaction"),
    ("smp config", ("settings", 0), "Settings"),
    ("smp maintain --all-sessions", (), "Maintenance"),
    ("smp stats", (), "Statistics"),
    ("smp check", (), "Check"),
    ("smp query MySQL", (), "Answer"),
    ("smp similar DEC-1", (), "Answer"),
    ("smp related DEC-1", (), "Relatives"),
    ("smp related DEC-1", ("memories", 0), "Relative"),
    ("smp topics", (), "Topics"),
    ("smp topics", ("topics", 0), "Topic"),
    ("smp timeline", (), "Timeline"),
    ("smp timeline", ("buckets", 0), "Bucket"),
    ("smp timeline --events", ("events", 0), "Event"),
    ("smp agents", (), "Agents"),
    ("smp agents", ("agents", 0), "Agent"),
    ("smp summary", (), "Summary"),
    ("smp context", (), "Context"),
    ("smp report", (), "Report"),
    ("smp new other", (), "New session"),
    ("smp show DEC-9", ("error",), "Error"),
    ("smp -s shop delete DEC-0001 --dry-run", (), "Plan"),
    ("smp -s shop delete FIND-0001", (), "Receipt"),
    ("smp -s shop receipt", (), "Receipt"),
    ("smp -s shop receipt", ("proof",), "Proof"),
    ("smp -s shop trash", (), "Trash"),
    ("smp -s shop restore FIND-0001", (), "Restoration"),
    ("smp -s shop redact MySQL --dry-run", (), "Redaction"),
    ("smp -s shop verify --deleted", (), "Proof"),
    ("smp purge --expired", (), "Purge"),
    ("smp audit", (), "Audit"),
    ("smp -s shop sync", (), "Sync"),
    ("smp -s shop remote", ("remotes", 0), "Remote"),
    ("smp delete-session other", (), "Session receipt"),
    ("smp -s shop anonymize --yes", (), "Anonymization"),
]


def test_json_has_the_keys_that_are_listed(desk: pages.Desk) -> None:
    for command, way, heading in _OBJECTS:
        value = json.loads(desk.command(f"{command} --json"))
        for step in way:
            value = value[step]
        rows = [row for each in heading.split(", ") for row in _tables("json.md")[each]]
        listed = {row[0] for row in rows if "absent if there is none" not in row[2]}
        assert (heading, set(value)) == (heading, listed)


@pytest.mark.parametrize("name", cli_reference.commands())
def test_json_page_names_every_command(name: str) -> None:
    page = (DOCS / "reference/json.md").read_text()
    assert re.search(rf"`(smp )?{name}`", page)


def test_json_of_a_hit_is_a_memory_and_the_keys_that_are_listed(desk: pages.Desk) -> None:
    hit = json.loads(desk.command("smp query MySQL --json"))["memories"][0]
    tables = _tables("json.md")
    listed = [
        row
        for row in tables["Memory"] + tables["Uses"] + tables["Hit"]
        if "absent if" not in row[2]
    ]
    assert set(hit) == {row[0] for row in listed}


def test_json_of_a_problem_has_the_keys_that_are_listed() -> None:
    problem = smp_git.Problem(code="stale_index", path="", message="")
    assert set(problem.as_json()) == {row[0] for row in _tables("json.md")["Problem"]}


def test_json_blocks_parse() -> None:
    for page in PAGES:
        for block in pages.blocks(page.read_text()):
            if block.language == "json":
                json.loads(block.text)


# Pages


def _links(page: Path) -> list[str]:
    text = re.sub(r"```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    return re.findall(r"\]\(([^)\s]+)\)", text)


def _anchors(page: Path) -> set[str]:
    heads = re.findall(r"^#+ (.+)$", page.read_text(), flags=re.MULTILINE)
    return {re.sub(r"[^a-z0-9 _-]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_links_resolve(page: Path) -> None:
    for link in _links(page):
        path, _, anchor = link.partition("#")
        if path.startswith(("http:", "https:")):
            continue
        target = (page.parent / path).resolve() if path else page
        assert target.is_file(), link
        assert not anchor or anchor in _anchors(target), link


def test_every_page_is_reached_from_the_index() -> None:
    linked = {(DOCS / link.partition("#")[0]).resolve() for link in _links(DOCS / "index.md")}
    assert [page for page in PAGES if page not in linked and page.name != "index.md"] == []


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.stem)
def test_page_keeps_the_voice(page: Path) -> None:
    prose = re.sub(r"```.*?^```|`[^`\n]*`", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    unwanted = r"\b(TODO|FIXME|we|our|simply|just|easily|obviously|will be)\b"
    found = [line for line in prose.splitlines() if re.search(unwanted, line, re.IGNORECASE)]
    assert found == []
