"""The receipts of deletions, kept without content beside what was deleted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from smp_git.git import disk
from smp_git.git.disk import reporting
from smp_git.model.errors import DamagedError, NotFoundError

FILE: Final = "receipt.json"


def keep(place: Path, receipt: Mapping[str, object]) -> None:
    """Keep the receipt of the deletion whose folder is `place`."""
    with reporting(f"the receipt of {place.name}"):
        disk.make_folders(place)
        data = json.dumps(receipt, ensure_ascii=False).encode() + b"\n"
        disk.replace_file(place / FILE, data, place / f"{FILE}.tmp")


def is_kept(place: Path) -> bool:
    """Whether the receipt of the deletion whose folder is `place` is kept."""
    return (place / FILE).exists()


def read(folder: Path, name: str | None = None) -> dict[str, object]:
    """Return the receipt of a deletion or of a memory, the latest if several; raise NotFoundError."""
    for place in sorted(folder.glob(f"[!.]*/{FILE}"), reverse=True):
        receipt = _parsed(place)
        ids = receipt.get("ids")
        named = name in (None, receipt.get("deletion")) or (isinstance(ids, list) and name in ids)
        if named:
            return receipt
    raise NotFoundError(
        f"no receipt of {name}" if name else "no receipt", hint="smp trash lists the deletions"
    )


def read_at(place: Path) -> dict[str, object]:
    """Return the receipt in the folder of a deletion; raise DamagedError."""
    return _parsed(place / FILE)


def _parsed(path: Path) -> dict[str, object]:
    try:
        found = json.loads(path.read_bytes())
    except (OSError, ValueError):
        raise DamagedError(f"the receipt at {path} cannot be read") from None
    return found if isinstance(found, dict) else {}
