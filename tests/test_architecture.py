"""The staircase: who may import whom, who owns which outside package, who may look around."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from smp_git.format import messages
from smp_git.read.replica import FILES
from tests.support import ROOT

PACKAGE = ROOT / "smp_git"

# Lowest first. A module, or a sub-package as a whole, imports only from the lines above
# its own here. A new one is given its place by adding it.
LAYERS = (
    {"model"},
    {"format"},
    {"git"},
    {"read"},
    {"write"},
    {"ask"},
    {"remove"},
    {"sync"},
    {"keep"},
    {"convert"},
    {"agents"},
    {"errors"},
    {"session"},
    {"store"},
    {"integrations"},
    {"web"},
    {"cli"},
    {"__main__"},
)
OWNERS = {
    "pygit2": "smp_git.git",
    "ruamel": "smp_git.format.yamlfile",
    "filelock": "smp_git.git.locks",
    "typer": "smp_git.cli",
    "cryptography": "smp_git.remove.seal",
    "regex": "smp_git.model.regexes",
    "mcp": "smp_git.integrations.mcp",
    # Each adapter owns its framework; all of these have anyio.
    "anyio": "smp_git.integrations",
    "pydantic": "smp_git.integrations",
    "uvicorn": "smp_git.integrations.loopback",
    "langgraph": "smp_git.integrations.langgraph",
    "langchain_core": "smp_git.integrations.langgraph",
    "ormsgpack": "smp_git.integrations.langgraph",
    "pydantic_ai": "smp_git.integrations.pydantic_ai",
    "anthropic": "smp_git.integrations.anthropic",
    "agents": "smp_git.integrations.openai_agents",
    "claude_agent_sdk": "smp_git.integrations.claude_agent",
    "jinja2": "smp_git.web.render",
    "starlette": "smp_git.web",
}
# What the environment, the home and the working folder are is asked only here.
LOOKS_AROUND = {
    "smp_git.store": "Store.open and Store.init, the doors",
    "smp_git.format.config": "a folder of keys may begin with ~",
}
# Imports inside functions, each for a reason given beside it: what few programs need.
LATE = {
    "smp_git.agents.agent",
    "smp_git.agents.sight",
    "smp_git.agents.values",
    "smp_git.agents.writing",
    "smp_git.ask.desk",
    "smp_git.ask.questions",
    "smp_git.ask.vectors",
    "smp_git.format.yamlfile",
    "smp_git.git.disk",
    "smp_git.git.libgit2",
    "smp_git.git.locks",
    "smp_git.git.repository",
    "smp_git.git.staging",
    "smp_git.git.standby",
    "smp_git.integrations.claude_code.hooks",
    "smp_git.integrations.loopback",
    "smp_git.integrations.mcp.serve",
    "smp_git.keep.growth",
    "smp_git.keep.opening",
    "smp_git.keep.quota",
    "smp_git.keep.stores",
    "smp_git.model.checks",
    "smp_git.model.errors",
    "smp_git.model.regexes",
    "smp_git.model.settings",
    "smp_git.remove.history.sweep",
    "smp_git.remove.seal",
    "smp_git.session",
    "smp_git.store",
    "smp_git.web.render",
    "smp_git.web.serve",
    "smp_git.write.handle",
    "smp_git.write.recovery",
}
_AROUND = re.compile(r"os\.environ|getenv|Path\.home\(|expanduser\(|Path\.cwd\(|os\.getcwd")


def _modules() -> dict[str, Path]:
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for path in sorted(PACKAGE.rglob("*.py"))
    }


MODULES = _modules()
TREES = {name: ast.parse(path.read_text()) for name, path in MODULES.items()}


def _imports(tree: ast.AST) -> Iterator[str]:
    """Yield what a module imports when it runs, as module names."""
    for node in _running(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in MODULES else node.module


def _running(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _running(node)


def _unit(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


GRAPH = {
    name: sorted({found for found in _imports(tree) if found in MODULES} - {name, "smp_git"})
    for name, tree in TREES.items()
}
LEVEL = {unit: number for number, layer in enumerate(LAYERS) for unit in layer}


def test_every_module_has_its_place_on_the_staircase() -> None:
    assert {_unit(name) for name in MODULES} - {""} <= set(LEVEL)


@pytest.mark.parametrize("module", sorted(set(MODULES) - {"smp_git"}))
def test_imports_go_only_downwards(module: str) -> None:
    upward = [
        found
        for found in GRAPH[module]
        if _unit(found) != _unit(module) and LEVEL[_unit(found)] >= LEVEL[_unit(module)]
    ]

    assert upward == []


def test_no_module_imports_itself_by_a_detour() -> None:
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " → ".join((*above, module))
        if module not in done:
            for found in GRAPH[module]:
                visit(found, (*above, module))
            done.add(module)

    for module in MODULES:
        visit(module, ())


def test_each_outside_package_has_one_owner() -> None:
    users = {
        (found.split(".")[0], name)
        for name, tree in TREES.items()
        for found in _imports(tree)
        if found.split(".")[0] not in sys.stdlib_module_names and not found.startswith("smp_git")
    }
    strangers = [
        f"{name} imports {package}"
        for package, name in sorted(users)
        if not f"{name}.".startswith(f"{OWNERS.get(package, '?')}.")
    ]

    assert strangers == []


def test_only_the_doors_look_around() -> None:
    found = {name for name, path in MODULES.items() if _AROUND.search(path.read_text())}

    assert {name for name in found if not name.startswith("smp_git.cli")} <= set(LOOKS_AROUND)


def test_imports_inside_functions_are_on_the_list() -> None:
    late = {
        name
        for name, tree in TREES.items()
        for node in ast.walk(tree)
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        for inner in ast.walk(node)
        if isinstance(inner, (ast.Import, ast.ImportFrom))
    }

    assert {name for name in late if _unit(name) not in ("cli", "__main__")} <= LATE


# One owner each: what a text says, or a call does, that stands in one module alone.


@cache
def _texts(module: str) -> list[str]:
    """Return the texts of a module, its docstrings left out."""
    plain = {
        id(node.value)
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    return [
        node.value if isinstance(node.value, str) else node.value.decode("latin-1")
        for node in ast.walk(TREES[module])
        if isinstance(node, ast.Constant)
        and isinstance(node.value, (str, bytes))
        and id(node) not in plain
    ]


def _say(pattern: str) -> set[str]:
    """Return the modules in which a text fits a pattern."""
    return {name for name in MODULES if any(re.search(pattern, text) for text in _texts(name))}


@cache
def _code(module: str) -> str:
    return ast.unparse(TREES[module])


def _do(pattern: str) -> set[str]:
    """Return the modules in which a line of code fits a pattern, each statement on one line."""
    return {name for name in MODULES if re.search(pattern, _code(name), re.MULTILINE)}


def test_the_metadata_of_a_session_has_one_owner() -> None:
    assert _say(r"metadata\.yaml") == {"smp_git.format.metadata"}
    assert _do(r"yamlfile\.read\([^\n]*(METADATA|metadata\.PATH)\)") == set()


# Files of `.git/smp` that git/ makes itself.
_OF_GIT = {
    "gc-lock": "smp_git.git.locks",
    "index-lock": "smp_git.git.staging",
    "index-tree": "smp_git.git.staging",
    "pack-keep": "smp_git.git.storage",
    "packed-lock": "smp_git.git.references",
}


@pytest.mark.parametrize("name", sorted(name for name in FILES if not name.isalnum()))
def test_a_local_file_of_a_replica_is_named_in_one_list(name: str) -> None:
    outside = _say(rf"^(\.git/)?(smp/)?{re.escape(name)}(?![a-z])") - {"smp_git.read.replica"}

    assert outside == ({_OF_GIT[name]} if name in _OF_GIT else set())


def test_the_subjects_of_commits_have_one_owner() -> None:
    long = {text for text in messages.SUBJECTS if " " in text and messages.BATCH not in text}
    found = {text: _say(f"^{text}$") for text in long | {messages.ACCESSES}}

    assert found == {text: {"smp_git.format.messages"} for text in found}
    assert _say(rf"(^| ){messages.BATCH}$") == {"smp_git.format.messages"}
    assert _do(r"\bsubject=f?['\"]") == set()


def test_one_module_makes_commits() -> None:
    calls = r"(?<!def )\bwrite_commit\(|\bObject\(COMMIT\b|\bproduct_signs\(\w|\.signs\("

    assert _do(calls) - {"smp_git.read.replica"} == {"smp_git.write.commit"}
    assert _say(r"^committer |\ncommitter ") == {"smp_git.git.objects"}


def test_the_records_of_deletions_have_one_owner() -> None:
    assert _say(r"tombstones\.yaml") == {"smp_git.format.records"}
    # A tree's by a snapshot, a merge's sides, and all references' at once.
    assert _do(r"(\bfind|\)\.get)\([^\n]*\b(records|graves|tombstones)\.PATH\)") == {
        "smp_git.read.snapshot",
        "smp_git.remove.history.plan",
        "smp_git.write.merge.trees",
    }


def test_one_module_knows_what_git_is_in_the_middle_of() -> None:
    states = r"^(MERGE_HEAD|rebase-apply|sequencer|CHERRY_PICK_HEAD|REVERT_HEAD|BISECT_LOG)$"

    # A deletion removes some of these files: that is another list.
    assert _say(states) == {"smp_git.git.repository", "smp_git.remove.history.sweep"}


def test_one_module_hides_the_logins_of_addresses() -> None:
    assert _say(r"//\)?(\|\^\))?\[\^/@") == {"smp_git.git.addresses"}


def test_git_objects_are_parsed_in_known_places() -> None:
    assert _do(r"^ *def (raw|read)_(commit|tree)\(") == {"smp_git.git.objects"}
    # Commits are taken apart and put together nowhere else, but for those of strangers,
    # which may be odd.
    assert _say(r"^(tree|parent) |\\nparent |\nparent ") == {
        "smp_git.git.objects",
        "smp_git.sync.inspect.inspection",
    }
    # Raw trees are searched by their bytes where each tree of a history is, or a stranger's.
    assert _say(r"\(\.\{20\}\)") == {
        "smp_git.git.objects",
        "smp_git.git.survey",
        "smp_git.sync.inspect.structure",
    }


@pytest.mark.parametrize("module", sorted(MODULES))
def test_module_says_in_one_line_what_it_knows(module: str) -> None:
    text = ast.get_docstring(TREES[module])

    assert text
    assert text.split("\n")[0][-1] in ".:…"
