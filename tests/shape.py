"""`python -m tests.shape`: how large the house is, and what the five paths go through.

Each path is counted twice. Touched is all that one call runs, down to the checks of a value:
it is traced with `sys.setprofile` on a real session in a temporary folder, and code that runs
only while a module is imported is left out. Read is what somebody opens who follows the path:
the functions that docs/explanation/architecture.md lists. `--list add` names what is touched.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

import smp_git
from smp_git import Session, Store

PACKAGE = Path(smp_git.__file__).parent
PAGE = Path(__file__).parents[1] / "docs/explanation/architecture.md"
_STEP = re.compile(r"^\d+\. `([\w.]+)`", re.MULTILINE)
_HEAD = re.compile(r"^### [^\n]*: `smp (\w+)`$", re.MULTILINE)
# A comprehension or a lambda is part of the function in which it is written.
_PARTS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>", "<module>")


def modules() -> Mapping[str, ast.Module]:
    """Return the modules of the package, parsed, by dotted name."""
    return {
        _dotted(path): ast.parse(path.read_text("utf-8")) for path in sorted(PACKAGE.rglob("*.py"))
    }


def _dotted(path: Path) -> str:
    parts = ("smp_git", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts).removesuffix(".__init__")


def imported(tree: ast.Module, known: Mapping[str, ast.Module]) -> set[str]:
    """Return the modules of the package that one of them imports, at the top or later."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                found.add(whole if whole in known else node.module)
    return found & set(known)


def sizes() -> Mapping[str, float]:
    """Return the figures of the whole package."""
    known = modules()
    rooms = {name: tree for name, tree in known.items() if tree.body[1:]}
    lines = sum(len(path.read_text("utf-8").splitlines()) for path in PACKAGE.rglob("*.py"))
    bodies = sorted(
        _length(node)
        for tree in known.values()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return {
        "modules": len(rooms),
        "imports of ours per module": round(
            sum(len(imported(tree, known) - {name}) for name, tree in rooms.items()) / len(rooms), 1
        ),
        "units at the top (folders and modules)": len(
            {name.split(".")[1] for name in rooms if "." in name}
        ),
        "lines": lines,
        "functions": len(bodies),
        "body, median": bodies[len(bodies) // 2],
        "body, 90th percentile": bodies[len(bodies) * 9 // 10],
        "fmt: skip": sum(
            path.read_text("utf-8").count("fmt: skip") for path in PACKAGE.rglob("*.py")
        ),
    }


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    said = ast.get_docstring(node, clean=False) is not None
    body = node.body[1:] if said else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def steps() -> Mapping[str, list[str]]:
    """Return the functions that the page on the architecture lists, path by path."""
    parts = _HEAD.split(PAGE.read_text("utf-8"))[1:]
    return {name: _STEP.findall(text) for name, text in zip(parts[::2], parts[1::2], strict=True)}


def module_of(function: str) -> str:
    """Return the module of a function that the page names, without the package's name."""
    parts = function.split(".")
    return next(
        ".".join(parts[:end])
        for end in range(len(parts), 0, -1)
        if PACKAGE.joinpath(*parts[:end]).with_suffix(".py").exists()
    )


def traced(call: Callable[[], object]) -> Mapping[str, list[str]]:
    """Return the functions of ours that a call goes through, by module."""
    found: dict[tuple[str, str], None] = {}

    def note(frame: FrameType, event: str, _: object) -> None:
        name = frame.f_globals.get("__name__", "")
        code = frame.f_code
        if event == "call" and name.startswith("smp_git") and code.co_name not in _PARTS:
            found.setdefault((name, code.co_qualname))

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    modules = dict.fromkeys(module for module, _ in found)
    return {module: [name for each, name in found if each == module] for module in modules}


def paths() -> Iterator[tuple[str, Mapping[str, list[str]]]]:
    """Yield each of the five paths with the modules and functions that it goes through."""
    with tempfile.TemporaryDirectory() as name:
        store = Store.init(Path(name) / "store")
        (store.path / "config.yaml").write_text(f"format: 1\nkey_dir: {name}/keys\n")
        store = Store.open(store.path)
        with store.create_session("here", user="ada") as session:
            calls = _calls(session, Path(name))
            for what, call in calls.items():
                yield what, traced(call)


def _calls(session: Session, folder: Path) -> Mapping[str, Callable[[], object]]:
    for number in range(3):
        session.add("decision", f"Use OAuth {number}", agent="architect", tags=["security"])
    session.add_remote("origin", folder / "hub.git", create=True)
    session.query("oauth")
    session.sync()
    return {
        "add": lambda: session.add("finding", "No MFA", agent="veritas", severity="critical"),
        "query": lambda: session.query("oauth", tags=["security"]),
        "delete": lambda: session.delete("DEC-0002"),
        "restore": lambda: session.restore("DEC-0002"),
        "sync": session.sync,
    }


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.shape")
    parser.add_argument("--list", metavar="PATH", help="name what a path touches")
    listed = parser.parse_args().list
    if listed:
        for module, functions in dict(paths())[listed].items():
            print(f"{module}: {', '.join(functions)}")
        return
    for what, size in sizes().items():
        print(f"{what:40} {size:>8,}")
    read = steps()
    print(
        f"\n{'path':10} {'modules touched':>16} {'functions':>10} {'modules read':>13} {'functions':>10}"
    )
    for what, touched in paths():
        number = sum(map(len, touched.values()))
        opened = {module_of(step) for step in read[what]}
        print(f"{what:10} {len(touched):>16} {number:>10} {len(opened):>13} {len(read[what]):>10}")


if __name__ == "__main__":
    main()
