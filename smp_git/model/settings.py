"""The settings of a store as a value: their names, defaults, and what each may be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from smp_git.model.errors import InvalidError, shown
from smp_git.model.memory import Value
from smp_git.model.secrets.rules import SETTINGS as REDACTION
from smp_git.model.secrets.rules import Rules

CONFIG: Final = "config.yaml"
NAMES: Final = (
    "format",
    "durability",
    "lock_timeout_seconds",
    "retention_days",
    "key_dir",
    "decay",
    "relevance",
    "semantic",
    "remote",
    "ssh_key",
    "sync_timeout_seconds",
    "sync_limit_bytes",
    *REDACTION,
)
_LONGEST_TIMEOUT: Final = 3600
_LONGEST_RETENTION: Final = 36_500
_LARGEST_SYNC: Final = 1 << 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a store."""

    durable: bool = True
    lock_timeout_seconds: float = 5.0
    retention: timedelta = timedelta(days=30)
    key_dir: Path | None = None
    redaction: Rules = field(default_factory=Rules)
    decay: Mapping[str, Value] = field(default_factory=dict)
    relevance: Mapping[str, Value] = field(default_factory=dict)
    semantic: str = "auto"
    remote: str | None = None
    ssh_key: Path | None = None
    sync_timeout_seconds: float = 60.0
    sync_limit_bytes: int = 536_870_912
    file: str = CONFIG


def checked(found: Mapping[str, Value], file: str) -> Settings:
    """Return the settings that `found` gives, without those that name a place on this machine.

    Raises InvalidError for a name that is no setting, and a value that one cannot have.
    """
    for name in found:
        if name not in NAMES:
            raise InvalidError(
                f"{file}: no setting {shown(name)}", hint=f"settings are {', '.join(NAMES)}"
            )
    durability = found.get("durability", "durable")
    if durability not in ("durable", "relaxed"):
        raise InvalidError(
            f"{file}: durability must be durable or relaxed, not {shown(durability)}"
        )
    decay, relevance = (_part(found, name, file) for name in ("decay", "relevance"))
    if decay or relevance:
        from smp_git.model.relevance import scales  # noqa: PLC0415 - most stores set neither

        scales(decay, relevance, file)
    return Settings(
        durable=durability == "durable",
        lock_timeout_seconds=_number(found, "lock_timeout_seconds", 5.0, _LONGEST_TIMEOUT, file),
        retention=timedelta(days=_number(found, "retention_days", 30, _LONGEST_RETENTION, file)),
        redaction=Rules().overridden(found, file),
        decay=decay,
        relevance=relevance,
        semantic=_semantic(found, file),
        sync_timeout_seconds=_number(found, "sync_timeout_seconds", 60.0, _LONGEST_TIMEOUT, file),
        sync_limit_bytes=int(_number(found, "sync_limit_bytes", 536_870_912, _LARGEST_SYNC, file)),
        file=file,
    )


def _semantic(found: Mapping[str, Value], file: str) -> str:
    value = found.get("semantic", "auto")
    # Unquoted, on and off are booleans in older YAML.
    value = {True: "on", False: "off"}[value] if isinstance(value, bool) else value
    if value not in ("auto", "on", "off"):
        raise InvalidError(f"{file}: semantic must be auto, on or off, not {shown(value)}")
    return str(value)


def _part(found: Mapping[str, Value], name: str, file: str) -> dict[str, Value]:
    value = found.get(name, {})
    if not isinstance(value, dict):
        raise InvalidError(f"{file}: {name} must be a mapping, not {shown(value)}")
    return dict(value)


def _number(found: Mapping[str, Value], name: str, default: float, most: float, file: str) -> float:
    value = found.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
        raise InvalidError(
            f"{file}: {name} must be a number above 0, up to {most:g}, not {shown(value)}"
        )
    return float(value)
