"""Checksums of lines of `memory.jsonl` (004), as its description computes them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping

_WHOLE = 2**53


def checksum(entry: Mapping[str, object]) -> str:
    """Return the checksum of an entry: of its JSON with the keys that it has outside, sorted.

    The description's `JSON.stringify(entry, Object.keys(entry).sort())` drops every inner
    key that is not an outer one too.
    """
    return _digest(_numbers(_only(entry, frozenset(entry))))


def checksums(entry: Mapping[str, object]) -> set[str]:
    """Return the checksums that are taken for an entry's, as it was read.

    That of its whole content is, too, and those with numbers as other languages write them.
    """
    listed = _only(entry, frozenset(entry))
    return {_digest(each) for said in (listed, entry) for each in (said, _numbers(said))}


def _digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return f"sha256:{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"


def _numbers(value: object) -> object:
    """Return a value whose numbers are written as JavaScript writes them: 1.0 is 1."""
    if isinstance(value, float) and value.is_integer() and abs(value) < _WHOLE:
        return int(value)
    if isinstance(value, Mapping):
        return {name: _numbers(item) for name, item in value.items()}
    if isinstance(value, list):
        return [_numbers(item) for item in value]
    return value


def _only(value: object, keys: frozenset[str]) -> object:
    if isinstance(value, Mapping):
        return {name: _only(item, keys) for name, item in value.items() if name in keys}
    if isinstance(value, list):
        return [_only(item, keys) for item in value]
    return value
