"""The bytes of folders, as plain as they can be made."""

from __future__ import annotations

import subprocess
import zlib
from pathlib import Path


def everything(folder: Path) -> bytes:
    """Return every byte below a folder: files, loose objects inflated, packs unpacked."""
    out = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        data = path.read_bytes()
        out += [str(path.relative_to(folder)).encode(), data]
        if path.parent.parent.name == "objects" and len(path.parent.name) == 2:
            out.append(zlib.decompress(data))
    for repository in folder.rglob(".git"):
        done = subprocess.run(
            ["git", "cat-file", "--batch", "--batch-all-objects"],
            cwd=repository.parent,
            check=True,
            capture_output=True,
        )
        out.append(done.stdout)
    return b"\n".join(out)
