"""Results as the objects that `--json` prints."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import datetime
from pathlib import Path

from smp_git.model.times import format_time


@dataclass(frozen=True, slots=True)
class Result:
    """A value that a caller gets; `--json` prints its fields, in their order."""

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {each.name: plain(getattr(self, each.name)) for each in fields(self)}


def plain(value: object) -> object:
    """Return a value in the types that JSON has."""
    told = getattr(value, "as_json", None)
    if told is not None:
        return told()
    if isinstance(value, datetime):
        return format_time(value)
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, (tuple, list)):
        return [plain(each) for each in value]
    if isinstance(value, Mapping):
        return {name: plain(each) for name, each in value.items()}
    return str(value) if isinstance(value, Path) else value
