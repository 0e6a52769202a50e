"""The metadata of a session brought together, key by key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from smp_git.format import dialect, yamlfile
from smp_git.format.metadata import PATH, strict_mapping
from smp_git.model.errors import InvalidFileError
from smp_git.model.memory import COMMENTS, Value, is_same
from smp_git.write.merge.memories import Conflict

# Mappings whose keys are decided one by one.
_DEEPER: Final = ("context", "overrides")
_ORDER: Final = ("user", "agents", "context", "tags", "preferences", "overrides")

_Key = tuple[str, ...]


class JoinedMetadata(NamedTuple):
    """The file with what both sides said, and what lost."""

    file: bytes
    lost: tuple[Conflict, ...]


def joined(base: bytes | None, newer: bytes, older: bytes) -> JoinedMetadata | None:
    """Return the metadata with what each side changed; None if a side cannot be read.

    Of two values of one key the newer side's stands.
    """
    try:
        before, ours, theirs = (_read(data) for data in (base or b"", newer, older))
    except InvalidFileError:
        return None
    was, mine, others = _flat(before), _flat(ours), _flat(theirs)
    made: dict[_Key, Value] = {}
    lost: list[Conflict] = []
    for key in dict.fromkeys((*mine, *others)):
        kept, other = mine.get(key), others.get(key)
        if is_same(kept, was.get(key)):
            kept = other
        elif not is_same(kept, other) and not is_same(other, was.get(key)):
            lost.append(Conflict(PATH, ".".join(key), kept, (other,)))
        if kept is not None:
            made[key] = kept
    file = _written(newer, ours, older, theirs, _nested(made))
    commented = _commented(file, base or b"", (newer, older))
    if commented is None:
        lost.append(Conflict(PATH, COMMENTS, None, ()))
    return JoinedMetadata(commented or file, tuple(lost))


def _commented(file: bytes, base: bytes, sides: tuple[bytes, bytes]) -> bytes | None:
    """Return the file with the comments of both sides, None if that cannot be done."""
    made = yamlfile.with_comments(file.decode(), base.decode(), [side.decode() for side in sides])
    return (
        made.encode() if made is not None and is_same(_read(made.encode()), _read(file)) else None
    )


def _read(data: bytes) -> dict[str, Value]:
    return strict_mapping(data) if data else {}


def _flat(found: Mapping[str, Value]) -> dict[_Key, Value]:
    out: dict[_Key, Value] = {}
    for name, value in found.items():
        if name in _DEEPER and isinstance(value, dict):
            out.update({(name, inner): item for inner, item in value.items()})
        else:
            out[name,] = value
    return out


def _nested(flat: Mapping[_Key, Value]) -> dict[str, Value]:
    out: dict[str, Value] = {}
    for key, value in flat.items():
        if len(key) == 1:
            out[key[0]] = value
            continue
        inner = out.setdefault(key[0], {})
        if isinstance(inner, dict):
            inner[key[1]] = value
    return out


def _written(
    newer: bytes,
    ours: dict[str, Value],
    older: bytes,
    theirs: dict[str, Value],
    made: dict[str, Value],
) -> bytes:
    """Return the bytes of the merged metadata, a side's own where that says the same."""
    for data, said in ((newer, ours), (older, theirs)):
        if is_same(said, made):
            return data
    changes: dict[str, Value | None] = {name: None for name in ours if name not in made}
    changes |= {
        name: value
        for name, value in made.items()
        if name not in ours or not is_same(ours[name], value)
    }
    order = (*(name for name in ours if name not in _ORDER), *_ORDER)
    edited = yamlfile.edit(newer.decode(), changes, (*order, *(n for n in made if n not in order)))
    whole = edited is not None and is_same(_read(edited.encode()), made)
    return edited.encode() if edited is not None and whole else dialect.write(made).encode()
