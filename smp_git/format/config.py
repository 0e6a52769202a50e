"""The settings of a store: what `config.yaml` may say, checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

from smp_git.format import yamlfile
from smp_git.model.errors import FormatError, InvalidError, StorageError, shown
from smp_git.model.memory import Value
from smp_git.model.secrets.rules import SETTINGS as REDACTION
from smp_git.model.secrets.rules import Rules

FORMAT: Final = 1
CONFIG: Final = "config.yaml"
_LONGEST_TIMEOUT: Final = 3600
_LONGEST_RETENTION: Final = 36_500
_LARGEST_SYNC: Final = 1 << 40
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
    semantic: bool = False
    remote: str | None = None
    ssh_key: Path | None = None
    sync_timeout_seconds: float = 60.0
    sync_limit_bytes: int = 536_870_912
    file: str = CONFIG


def load(store: Path) -> Settings:
    """Return the settings of the store at `store`; raise InvalidError or FormatError."""
    file = store / CONFIG
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}") from error
    found = yamlfile.read(text, str(file))
    number = found.get("format", FORMAT)
    if not isinstance(number, int) or number > FORMAT:
        raise FormatError(
            f"the store at {store} has format {shown(number)}; this program knows {FORMAT}",
            hint="install a newer smp-git",
        )
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

        scales(decay, relevance, str(file))
    days = _number(found, "retention_days", 30, _LONGEST_RETENTION, file)
    return Settings(
        durable=durability == "durable",
        lock_timeout_seconds=_number(found, "lock_timeout_seconds", 5.0, _LONGEST_TIMEOUT, file),
        retention=timedelta(days=days),
        key_dir=_key_dir(found.get("key_dir"), store, file),
        redaction=Rules().overridden(found, str(file)),
        decay=decay,
        relevance=relevance,
        semantic=_switch(found, "semantic", file),
        remote=_remote(found.get("remote"), file),
        ssh_key=_ssh_key(found.get("ssh_key"), file),
        sync_timeout_seconds=_number(found, "sync_timeout_seconds", 60.0, _LONGEST_TIMEOUT, file),
        sync_limit_bytes=int(_number(found, "sync_limit_bytes", 536_870_912, _LARGEST_SYNC, file)),
        file=str(file),
    )


def _switch(found: Mapping[str, Value], name: str, file: Path) -> bool:
    value = found.get(name, "off")
    if value not in ("on", "off", True, False):
        raise InvalidError(f"{file}: {name} must be on or off, not {shown(value)}")
    return value in ("on", True)


def _part(found: Mapping[str, Value], name: str, file: Path) -> dict[str, Value]:
    value = found.get(name, {})
    if not isinstance(value, dict):
        raise InvalidError(f"{file}: {name} must be a mapping, not {shown(value)}")
    return dict(value)


def _number(
    found: Mapping[str, Value], name: str, default: float, most: float, file: Path
) -> float:
    value = found.get(name, default)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value <= most:
        raise InvalidError(
            f"{file}: {name} must be a number above 0, up to {most:g}, not {shown(value)}"
        )
    return float(value)


def _key_dir(value: Value, store: Path, file: Path) -> Path | None:
    if value is None:
        return None
    if not isinstance(value, str) or not Path(value).expanduser().is_absolute():
        raise InvalidError(f"{file}: key_dir must be the full path of a folder, not {shown(value)}")
    place = Path(value).expanduser()
    if place.resolve().is_relative_to(store.resolve()):
        raise InvalidError(
            f"{file}: key_dir is inside the store that its keys protect",
            hint="a folder elsewhere, which is not copied together with the store",
        )
    return place


def _remote(value: Value, file: Path) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or "{session}" not in value:
        raise InvalidError(
            f"{file}: remote must be an address with {{session}} in it, not {shown(value)}",
            hint="e.g. git@host:memory/{session}.git",
        )
    if not value.startswith("~"):
        return value
    return str(_expanded(value, "remote", file))


def _ssh_key(value: Value, file: Path) -> Path | None:
    if value is None:
        return None
    place = _expanded(value, "ssh_key", file) if isinstance(value, str) else None
    if place is None or not place.is_absolute():
        raise InvalidError(
            f"{file}: ssh_key must be the full path of a key file, not {shown(value)}"
        )
    return place


def _expanded(text: str, name: str, file: Path) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise InvalidError(f"{file}: the {name} {shown(text)} begins with no known home") from None
