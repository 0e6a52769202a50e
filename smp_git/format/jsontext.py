"""JSON as it is in the file of a value: one text for one value, and back to exactly that."""

from __future__ import annotations

import json
import re
from typing import Final

from smp_git.format.dialect import escape
from smp_git.model.errors import InvalidError
from smp_git.model.memory import MAX_CONTENT_BYTES, MAX_VALUE_BYTES, Value, check_json

# A text beyond this is one line: indentation would be half of it.
_MOST_INDENTED: Final = MAX_CONTENT_BYTES
# What takes more than this in memory for each byte of text is nobody's data.
_MOST_ITEMS: Final = 1_000_000
_HALVES: Final = re.compile("[\ud800-\udfff]")


def write(value: Value) -> str:
    """Return a checked value as JSON that every YAML reader keeps; raise InvalidError if too large."""
    text = _dumped(value, 1)
    if len(text) > _MOST_INDENTED:
        text = _dumped(value, None)
    size = len(text.encode())
    if size > MAX_VALUE_BYTES or text.count(",") > _MOST_ITEMS:
        raise InvalidError(
            f"a value has {size:,} bytes and {text.count(',') + 1:,} items; "
            f"the limits are {MAX_VALUE_BYTES:,} and {_MOST_ITEMS:,}",
            hint="keep parts of it under keys of their own, or a reference to a file",
        )
    return text


def _dumped(value: Value, indent: int | None) -> str:
    separators = (",", ":") if indent is None else None
    text = json.dumps(value, ensure_ascii=False, indent=indent, separators=separators)
    return escape(_HALVES.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def read(text: str, what: str) -> Value:
    """Return the value that a text is; raise InvalidError if it is no JSON, or more than a value."""
    if len(text) > MAX_VALUE_BYTES or text.count(",") > _MOST_ITEMS:
        raise InvalidError(f"{what} is larger than a value may be")
    try:
        found = json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError) as error:
        raise InvalidError(f"{what} is not JSON: {error}") from None
    return check_json(found, what)


def _refused(constant: str) -> Value:
    raise ValueError(f"{constant} is no number of JSON")
