"""The settings of a store, `config.yaml`: read, with the places on this machine that they name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Final

from smp_git.format import yamlfile
from smp_git.model.errors import FormatError, InvalidError, StorageError, shown
from smp_git.model.memory import Value
from smp_git.model.names import CONFIG
from smp_git.model.settings import Settings

FORMAT: Final = 1


def load(store: Path) -> Settings:
    """Return the settings of the store at `store`; raise InvalidError or FormatError."""
    file = store / CONFIG
    try:
        text = file.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise StorageError(f"cannot read {file}: {error.strerror}") from error
    return of_text(text, store)


def of_text(text: str, store: Path) -> Settings:
    """Return the settings that a text would be; raise InvalidError or FormatError."""
    file = store / CONFIG
    found = yamlfile.read(text, str(file))
    number = found.get("format", FORMAT)
    if not isinstance(number, int) or number > FORMAT:
        raise FormatError(
            f"the store at {store} has format {shown(number)}; this program knows {FORMAT}",
            hint="install a newer smp-git",
        )
    return replace(
        Settings().of_store(found, str(file)),
        key_dir=_key_dir(found.get("key_dir"), store, file),
        remote=_remote(found.get("remote"), file),
        ssh_key=_ssh_key(found.get("ssh_key"), file),
    )


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
