"""The metadata of a session, `metadata.yaml`: what the session says of itself."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Final

from smp_git.format import dialect, yamlfile
from smp_git.format.records import FORMAT, RULE, WITH_README, WITH_VALUES
from smp_git.model.errors import FormatError, InvalidFileError, shown
from smp_git.model.memory import Value
from smp_git.model.times import parse_time

PATH: Final = "metadata.yaml"
# The highest numbers that this program reads and writes.
KNOWN: Final = {"format": WITH_VALUES, "rule": WITH_README}
_DATE: Final = re.compile(r"\d{4}-\d\d-\d\d")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Metadata:
    """A session's `metadata.yaml`, checked.

    >>> (session.metadata.id, session.metadata.user)
    ('shop', 'ada')
    """

    id: str
    uid: str
    created_at: datetime
    user: str | None
    agents: tuple[str, ...]
    context: Mapping[str, Value]
    tags: tuple[str, ...]
    overrides: Mapping[str, Value]
    preferences: Mapping[str, Value] = field(default_factory=dict)
    format: int = FORMAT
    rule: int = RULE

    @property
    def settings(self) -> Mapping[str, Value]:
        """What the session sets: its overrides and its preferences."""
        return {**self.overrides, **self.preferences}

    @property
    def project(self) -> str:
        """The project that the session is about, or nothing."""
        return str(self.context.get("project_name", ""))


def mapping(data: bytes) -> dict[str, Value]:
    """Return what the file says, key by key; raise InvalidFileError."""
    return yamlfile.read(data.decode("utf-8", "replace"), PATH)


def strict_mapping(data: bytes) -> dict[str, Value]:
    """Return what the file says if it is UTF-8 throughout; raise InvalidFileError."""
    try:
        return yamlfile.read(data.decode(), PATH)
    except UnicodeDecodeError:
        raise InvalidFileError(f"{PATH}: not UTF-8") from None


def read(data: bytes, session: str) -> Metadata:
    """Return what a session says of itself; raise FormatError if it is too new."""
    found = mapping(data)
    for name, known in KNOWN.items():
        number = found.get(name)
        if not isinstance(number, int) or number > known:
            raise FormatError(
                f"session {session} has {name} {shown(number)}; this program knows {known}",
                hint="install a newer smp-git",
            )
    user, context = found.get("user"), found.get("context")
    return Metadata(
        id=str(found.get("id")),
        uid=str(found.get("uid")),
        created_at=_created_at(found.get("created_at")),
        user=user if isinstance(user, str) else None,
        tags=_texts(found.get("tags")),
        agents=_texts(found.get("agents")),
        context=MappingProxyType(context if isinstance(context, dict) else {}),
        overrides=MappingProxyType(_part(found, "overrides")),
        preferences=MappingProxyType(_part(found, "preferences")),
        format=int(str(found["format"])),
        rule=int(str(found["rule"])),
    )


def settings(found: Mapping[str, Value]) -> dict[str, Value]:
    """Return what a session sets: its overrides and its preferences."""
    return {**_part(found, "overrides"), **_part(found, "preferences")}


def _part(found: Mapping[str, Value], name: str) -> dict[str, Value]:
    said = found.get(name)
    return said if isinstance(said, dict) else {}


def is_old(data: bytes) -> bool:
    """Whether the file is that of a session of format 1."""
    try:
        found = mapping(data)
    except InvalidFileError:
        return False
    return found.get("format") == 1 or found.get("rule") == 1


def raised(data: bytes) -> bytes | None:
    """Return the file with the present format, None if there is nothing to raise."""
    if not is_old(data):
        return None
    text = data.decode("utf-8", "replace")
    edited = yamlfile.edit(text, {"format": FORMAT, "rule": RULE}, ("format", "rule"))
    return edited.encode() if edited is not None else None


def with_values(data: bytes) -> bytes:
    """Return the file of a session that has values, all else as it is."""
    return _with_number(data, "format", WITH_VALUES)


def with_readme(data: bytes) -> bytes:
    """Return the file of a session that has a README, all else as it is."""
    return _with_number(data, "rule", WITH_README)


def _with_number(data: bytes, name: str, number: int) -> bytes:
    edited = yamlfile.edit(data.decode(), {name: number}, (name,))
    if edited is not None:
        return edited.encode()
    return dialect.write({**mapping(data), name: number}).encode()


_SETTINGS: Final = ("preferences", "overrides")


def with_settings(data: bytes, parts: Mapping[str, Value]) -> bytes:
    """Return the file with other preferences and overrides, all else as it is."""
    old, told = data.decode(), {name: parts.get(name) or None for name in _SETTINGS}
    edited = yamlfile.edit(old, told, ("tags", *_SETTINGS))
    if edited is not None:
        return edited.encode()
    rest = {name: value for name, value in mapping(data).items() if name not in _SETTINGS}
    return dialect.write({**rest, **{k: v for k, v in told.items() if v}}).encode()


def _texts(value: Value) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _created_at(text: Value) -> datetime:
    try:
        if isinstance(text, str) and _DATE.match(text):
            return parse_time(text, datetime.max.replace(tzinfo=UTC))
    except ValueError:
        pass
    raise InvalidFileError(f"{PATH}: created_at is not a time: {shown(text)}")
