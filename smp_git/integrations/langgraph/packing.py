"""What LangGraph serializes, as JSON that people can read and search, and back to the same bytes."""

from __future__ import annotations

import base64
import math
from typing import Any, Final, NamedTuple

import ormsgpack

from smp_git.model.errors import InvalidError
from smp_git.model.memory import Value, check_json

_PACKED: Final = "msgpack"
_OPTION: Final = ormsgpack.OPT_NON_STR_KEYS
# What JSON has not is a mapping with one of these.
_BYTES: Final = "$bytes"
_RAW: Final = "$raw"
_EXTENSION: Final = "$extension"
_FRACTION: Final = "$fraction"
_MAPPING: Final = "$mapping"


class _Extension(NamedTuple):
    """A value of a type that MessagePack has not, as it is packed."""

    tag: int
    data: bytes


def readable(kind: str, data: bytes) -> Value:
    """Return serialized data as JSON; what would come back otherwise is kept as its bytes."""
    if kind == _PACKED:
        try:
            shown = _shown(_unpacked(data))
            if serialized([kind, shown]) == (kind, data):
                return [kind, check_json(shown, "a value")]
        except (ValueError, TypeError, RecursionError, InvalidError):
            pass
    return [kind, {_BYTES: base64.b64encode(data).decode()}]


def serialized(kept: Any) -> tuple[str, bytes]:
    """Return what `readable` was given."""
    kind, shown = kept
    if kind == _PACKED and not (isinstance(shown, dict) and shown.keys() == {_BYTES}):
        return kind, ormsgpack.packb(_restored(shown), option=_OPTION)
    return kind, base64.b64decode(shown[_BYTES])


def _unpacked(data: bytes) -> Any:
    return ormsgpack.unpackb(data, ext_hook=_Extension, option=_OPTION)


def _shown(value: Any) -> Any:
    match value:
        case _Extension():
            return {_EXTENSION: [value.tag, _inside(value.data)]}
        case bytes():
            return {_BYTES: base64.b64encode(value).decode()}
        case float() if not math.isfinite(value):
            return {_FRACTION: repr(value)}
        case list() | tuple():
            return [_shown(each) for each in value]
        case dict() if all(isinstance(key, str) and not key.startswith("$") for key in value):
            return {key: _shown(each) for key, each in value.items()}
        case dict():
            return {_MAPPING: [[_shown(key), _shown(each)] for key, each in value.items()]}
        case _:
            return value


def _inside(data: bytes) -> Any:
    """Return what is in an extension: packed itself as a rule."""
    try:
        inner = _unpacked(data)
        shown = _shown(inner)
        if ormsgpack.packb(_restored(shown), option=_OPTION) == data:
            return shown
    except (ValueError, TypeError):
        pass
    return {_RAW: base64.b64encode(data).decode()}


def _restored(shown: Any) -> Any:
    if isinstance(shown, list):
        return [_restored(each) for each in shown]
    if not isinstance(shown, dict):
        return shown
    if shown.keys() == {_BYTES}:
        return base64.b64decode(shown[_BYTES])
    if shown.keys() == {_FRACTION}:
        return float(shown[_FRACTION])
    if shown.keys() == {_MAPPING}:
        return {_restored(key): _restored(each) for key, each in shown[_MAPPING]}
    if shown.keys() == {_EXTENSION}:
        tag, inner = shown[_EXTENSION]
        if isinstance(inner, dict) and inner.keys() == {_RAW}:
            return ormsgpack.Ext(tag, base64.b64decode(inner[_RAW]))
        return ormsgpack.Ext(tag, ormsgpack.packb(_restored(inner), option=_OPTION))
    return {key: _restored(each) for key, each in shown.items()}
