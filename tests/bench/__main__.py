"""`python -m tests.bench PART|all [--short] [--held] [--folder DIR]`; `-h` names the parts."""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from tests.bench import (
    ask,
    batch,
    commands,
    compact,
    context,
    create,
    erase,
    fleet,
    forget,
    frameworks,
    imports,
    intake,
    lock,
    machine,
    maintain,
    mcp,
    merge,
    older,
    pack,
    questions,
    retrieval,
    start,
    sync,
    tuning,
    web,
    write,
)

PARTS: Mapping[str, Callable[..., Iterator[str]]] = {
    "write": write.run,
    "batch": batch.run,
    "intake": intake.run,
    "commands": commands.run,
    "compact": compact.run,
    "import": imports.run,
    "create": create.run,
    "ask": ask.run,
    "context": context.run,
    "mcp": mcp.run,
    "merge": merge.run,
    "older": older.run,
    "pack": pack.run,
    "sync": sync.run,
    "fleet": fleet.run,
    "erase": erase.run,
    "forget": forget.run,
    "lock": lock.run,
    "maintain": maintain.run,
    "start": start.run,
    "questions": questions.run,
    "retrieval": retrieval.run,
    "tuning": tuning.run,
    "web": web.run,
    "frameworks": frameworks.run,
}


def main(arguments: Sequence[str]) -> None:
    """Run the parts that were asked for and print their tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("part", choices=[*PARTS, "all"])
    parser.add_argument("--short", action="store_true", help="a few seconds instead of minutes")
    parser.add_argument("--held", action="store_const", const="held", dest="asked_set", help="the held-back half of the questions")  # fmt: skip
    parser.add_argument("--tour", action="store_const", const="tour", dest="asked_set", help="the questions by another hand")  # fmt: skip
    parser.add_argument("--folder", type=Path, help="where to work; by default a temporary folder")
    asked = parser.parse_args(arguments)
    if asked.asked_set and asked.part != "questions":
        parser.error("--held and --tour go with questions")
    more = {"asked_set": asked.asked_set} if asked.asked_set else {}
    # Removed only at the end: a file system passes over inodes that were just freed,
    # which would slow down whatever is measured next.
    folder = Path(tempfile.mkdtemp(prefix="smp-bench-", dir=asked.folder)).resolve()
    try:
        print(f"command: python -m tests.bench {' '.join(arguments)}")
        print(machine.line(folder.parent))
        for name in PARTS if asked.part == "all" else [asked.part]:
            (folder / name).mkdir()
            for text in PARTS[name](folder / name, short=asked.short, **more):
                print(text, flush=True)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
