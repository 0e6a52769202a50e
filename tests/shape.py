"""`python -m tests.shape`: how large the house is, and what the five paths go through.

Each path is counted twice. Touched is all that one call runs, down to the checks of a value:
it is traced with `sys.setprofile` on a real session in a temporary folder, and code that runs
only while a module is imported is left out. Read is what somebody opens who follows the path:
the functions that docs/explanation/architecture.md lists. `--list add` names what is touched.
`--before COMMIT` prints the figures of an older tree beside today's, formatted alike.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import FrameType

import smp_git
from smp_git import Session, Store

PACKAGE = Path(smp_git.__file__).parent
ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/explanation/architecture.md"
_STEP = re.compile(r"^\d+\. `([\w.]+)`", re.MULTILINE)
_HEAD = re.compile(r"^### [^\n]*: `smp (\w+)`$", re.MULTILINE)
# A comprehension or a lambda is part of the function in which it is written.
_PARTS = (
    "<listcomp>",
    "<setcomp>",
    "<dictcomp>",
    "<genexpr>",
    "<lambda>",
    "<module>",
    "__create_fn__",
)


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
        # A class body is no function; it runs while its module is imported.
        is_function = code.co_flags & inspect.CO_OPTIMIZED and code.co_name not in _PARTS
        if event == "call" and name.startswith("smp_git") and is_function:
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


# What 4075b7f, where the house was begun, had nothing of; the search was written anew.
_NEW = (
    "agents", "convert", "integrations", "web", "ask/archives", "ask/sources", "ask/vectors",
    "cli/agents", "cli/complete", "cli/convert", "cli/graph", "cli/guide", "cli/help", "cli/keep",
    "cli/screen", "cli/settings", "cli/web", "format/imports", "format/jsontext", "git/packing",
    "git/standby", "git/survey", "keep/archive", "keep/compact", "keep/compacted",
    "keep/configure", "keep/every", "keep/forecast", "keep/glance", "keep/growth", "keep/log",
    "keep/maintenance", "keep/mask", "keep/preserved", "keep/quota", "keep/recall",
    "keep/recommit", "keep/refounding", "keep/reopening", "keep/repairs", "keep/retention",
    "keep/salvage", "keep/schedules", "keep/stats", "keep/summaries", "keep/verified",
    "model/checks", "model/fields", "model/lifecycle", "model/wording", "read/archives",
    "read/changes", "read/derived", "read/imported", "read/sizes", "read/values",
    "remove/archive", "remove/derived", "remove/forgotten", "remove/history/without",
    "write/values",
)  # fmt: skip
SEARCH = ("ask/text", "search")
_OLDER = """
import json
from tests import shape
touched = {name: [len(found), sum(map(len, found.values()))] for name, found in shape.paths()}
print(json.dumps([shape.sizes(), touched, shape.lines_in(*shape.SEARCH)]))
"""


def lines_in(*places: str) -> int:
    """Return how many lines some folders and modules have, by their places in the package."""
    found = [PACKAGE / place for place in places]
    files = [file for place in found for file in (*place.rglob("*.py"), place.with_suffix(".py"))]
    return sum(len(file.read_text("utf-8").splitlines()) for file in files if file.exists())


def compare(commit: str) -> None:
    """Print the figures of an older tree, as today's formatter sets it, beside today's."""
    with tempfile.TemporaryDirectory() as name:
        older = _archived(commit, Path(name))
        done = subprocess.run(
            [sys.executable, "-c", _OLDER],
            env={"PYTHONPATH": f"{older}:{ROOT}", "PATH": os.environ["PATH"]},
            cwd=older,
            check=True,
            capture_output=True,
        )
    before, touched, search = json.loads(done.stdout)
    new, now = lines_in(*_NEW), sizes()
    print(f"{'':40} {commit[:9]:>9} {'today':>9}")
    for what, size in now.items():
        print(f"{what:40} {before[what]:>9,} {size:>9,}")
    print(f"{'  of them the search':40} {search:>9,} {lines_in(*SEARCH):>9,}")
    print(f"{'  of them in rooms of new features':40} {'':>9} {new:>9,}")
    rest = before["lines"] - search, now["lines"] - lines_in(*SEARCH) - new
    print(f"{'  the rest':40} {rest[0]:>9,} {rest[1]:>9,}")
    print("\nmodules and functions touched")
    for what, found in paths():
        functions = sum(map(len, found.values()))
        print(
            f"{what:40} {touched[what][0]:>4} {touched[what][1]:>4} {len(found):>4} {functions:>4}"
        )


def _archived(commit: str, place: Path) -> Path:
    """Put the package as it was at a commit into a folder, formatted as today's."""
    made = subprocess.run(
        ["git", "archive", commit, "smp_git", "hooks"], cwd=ROOT, check=True, capture_output=True
    )
    subprocess.run(["tar", "x", "-C", place], input=made.stdout, check=True)
    for file in (place / "smp_git").rglob("*.py"):
        file.write_text(re.sub(r"\s*# fmt: (?:skip|off|on)\b.*", "", file.read_text("utf-8")))
    shutil.copy(ROOT / "pyproject.toml", place)
    ruff = [sys.executable, "-m", "ruff", "format", "-q", "smp_git"]
    subprocess.run(ruff, cwd=place, check=True)
    return place


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.shape")
    parser.add_argument("--list", metavar="PATH", help="name what a path touches")
    parser.add_argument("--before", metavar="COMMIT", help="compare with an older tree")
    asked = parser.parse_args()
    if asked.before:
        compare(asked.before)
        return
    if asked.list:
        for module, functions in dict(paths())[asked.list].items():
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
