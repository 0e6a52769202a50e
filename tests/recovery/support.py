"""The bytes of folders, as plain as they can be made."""

from __future__ import annotations

from pathlib import Path

from tests import independent_scan


def everything(folder: Path) -> bytes:
    """Return every byte below a folder: names, files, objects loose and packed."""
    names = (str(path.relative_to(folder)).encode() for path in folder.rglob("*"))
    return b"\n".join((*names, *(data for _, data in independent_scan.everything(folder))))
