"""The rules of the house: what the sources must look like, whatever they do."""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from pathlib import Path

import pytest

from tests.shape import PACKAGE, imported, modules

# In this order, and nothing else beside them.
FOLDERS = (
    "model",
    "format",
    "git",
    "read",
    "write",
    "ask",
    "remove",
    "sync",
    "keep",
    "convert",
    "agents",
    "integrations",
    "web",
    "cli",
)
DOORS = {"session", "store", "errors", "__main__", "__init__"}
_FEW_LINES = 40
# The environment's own entry point.
_SMALL = {"smp_git.__main__"}

MODULES = modules()


def _sources() -> dict[Path, str]:
    return {path: path.read_text("utf-8") for path in sorted(PACKAGE.rglob("*.py"))}


def _classes() -> list[tuple[str, ast.ClassDef]]:
    return [
        (name, node)
        for name, tree in MODULES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]


def test_top_is_the_folders_and_the_doors() -> None:
    there = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or _is_folder(path)}

    assert there == {*FOLDERS, *DOORS}


def _is_folder(path: Path) -> bool:
    return (path / "__init__.py").exists()


def test_a_class_name_is_of_one_class() -> None:
    homes = defaultdict(set)
    for module, node in _classes():
        homes[node.name].add(module)

    assert {name: found for name, found in homes.items() if len(found) > 1} == {}


def test_no_class_is_the_base_of_just_one_other() -> None:
    """Errors are a tree of kinds, which a caller may catch at any height; the keys of a
    mapping that has those of another and more are no behaviour, and are written once."""
    below = defaultdict(set)
    known = {
        node.name
        for _, node in _classes()
        if not any(ast.unparse(base) == "TypedDict" for base in node.bases)
    }
    for _, node in _classes():
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in known and not base.id.endswith("Error"):
                below[base.id].add(node.name)

    assert {name: found for name, found in below.items() if len(found) == 1} == {}


def test_nothing_is_left_to_a_subclass() -> None:
    raised = [
        path.name
        for path, text in _sources().items()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Raise) and "NotImplementedError" in ast.unparse(node)
    ]

    assert raised == []


def test_formatter_sets_everything_but_tables() -> None:
    free = [
        f"{path.name}:{number}"
        for path, text in _sources().items()
        for number, line in enumerate(text.splitlines(), 1)
        if "fmt: skip" in line and line.split("#")[0].strip() not in (")", "}", "]")
    ]

    assert free == []


def test_a_small_module_has_several_readers() -> None:
    readers = defaultdict(set)
    for name, tree in MODULES.items():
        for found in imported(tree, MODULES) - {name}:
            readers[found].add(name)
    small = {
        name
        for name, tree in MODULES.items()
        if 1 < _lines(name) < _FEW_LINES and not _is_package(name) and len(readers[name]) == 1
    }

    assert small - _SMALL == set()


_ENTRIES = re.compile(r"^Entered by: (.+?)\.$", re.MULTILINE | re.DOTALL)
# Entered by any of their rooms as yet.
_OPEN = {"remove"}


@pytest.mark.parametrize("folder", [each for each in FOLDERS if each not in _OPEN])
def test_folder_is_entered_by_the_rooms_that_it_names(folder: str) -> None:
    inside = f"smp_git.{folder}."
    entered = {
        found.removeprefix(inside)
        for name, tree in MODULES.items()
        if not name.startswith(inside)
        for found in imported(tree, MODULES)
        if found.startswith(inside)
    }
    said = _ENTRIES.search(ast.get_docstring(MODULES[f"smp_git.{folder}"]) or "")

    assert said
    assert set(re.split(r",\s+", said[1])) == entered


def _place(name: str) -> Path:
    return PACKAGE.joinpath(*name.split(".")[1:])


def _is_package(name: str) -> bool:
    return _place(name).is_dir()


def _lines(name: str) -> int:
    path = _place(name)
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return len(file.read_text("utf-8").splitlines())
