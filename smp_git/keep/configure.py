"""Configuration of a store and of its sessions: every setting with its value and source, and set."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from smp_git.format import config, dialect, yamlfile
from smp_git.git import disk
from smp_git.model.checks import BOTH, SESSION, STORE, as_text
from smp_git.model.errors import InvalidError
from smp_git.model.memory import Value, check_value
from smp_git.model.names import CONFIG
from smp_git.model.results import Result
from smp_git.model.settings import Settings, row_of, table
from smp_git.remove.sessions import holding
from smp_git.write.handle import Handle, Home

_DEFAULT: Final = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Configured(Result):
    """A setting: its value, and where that is set.

    >>> changed = session.configure({"redaction": "off"})
    >>> {each.name: each.value for each in session.configuration()}["redaction"]
    False
    """

    name: str
    value: Value
    source: str
    default: Value
    values: str
    where: str
    meaning: str

    def __str__(self) -> str:
        return as_text(self.value)


def of_store(home: Home) -> tuple[Configured, ...]:
    """Return the settings of a store."""
    return tuple(_listed(home.settings, (STORE, BOTH), {CONFIG: _said(home)}))


def of_session(handle: Handle) -> tuple[Configured, ...]:
    """Return the settings that hold in a session."""
    sources = {CONFIG: _said(handle.home) if handle.home else {}}
    in_session = {
        name: value for name, value in handle.metadata.settings.items() if _is_taken(handle, name)
    }
    places = (STORE, BOTH, SESSION)
    return tuple(_listed(handle.settings, places, {**sources, "session": in_session}))


def configure(home: Home, given: Mapping[str, object]) -> Home:
    """Set settings of a store in its `config.yaml`; None removes one. Returns the store with them."""
    changes: dict[str, Value] = {}
    for name, value in given.items():
        row_of(name, CONFIG)
        changes[name] = None if value is None else check_value(value, name)
    file = home.path / CONFIG
    with holding(home, "changing the settings"), disk.reporting(str(file)):
        text = file.read_text("utf-8")
        edited = yamlfile.edit(text, changes, tuple(table()))
        if edited is None:
            both = {**yamlfile.read(text, str(file)), **changes}
            edited = dialect.write({k: v for k, v in both.items() if v is not None})
        settings = config.of_text(edited, home.path)
        disk.replace_durably(file, edited.encode(), home.path / f".{CONFIG}.tmp")
    return replace(home, settings=settings)


def _said(home: Home) -> Mapping[str, Value]:
    return yamlfile.read((home.path / CONFIG).read_text("utf-8"), CONFIG)


def _is_taken(handle: Handle, name: str) -> bool:
    """Whether what a session says of a setting holds: others may have written it."""
    try:
        handle.defaults.of_session({name: handle.metadata.settings[name]}, "")
    except InvalidError:
        return False
    return True


def _listed(
    settings: Settings, places: Collection[str], sources: Mapping[str, Mapping[str, Value]]
) -> Iterator[Configured]:
    for name, row in table().items():
        if row.where not in places:
            continue
        source = next(
            (place for place in reversed(list(sources)) if name in sources[place]), _DEFAULT
        )
        value = getattr(settings, name)
        yield Configured(
            name=name,
            value=value if value is None or isinstance(value, _PLAIN) else str(value),
            source=source,
            default=row.default,
            values=row.check.says,
            where=row.where,
            meaning=row.meaning,
        )


_PLAIN: Final = (bool, int, float, str, list, dict)
