"""A memory as the bytes of its file, and back; the life that the file says it belongs to."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from types import MappingProxyType
from typing import Final, TypeVar

from smp_git.format import dialect, jsontext, yamlfile
from smp_git.model import ids
from smp_git.model.errors import InvalidError, InvalidFileError, shown
from smp_git.model.ids import FIRST, Id, id_of_value, parse_id, parse_path, parse_target
from smp_git.model.memory import (
    COMMON_FIELDS,
    CONTESTED,
    MAX_CONTENT_BYTES,
    MAX_FILE_BYTES,
    MAX_VALUE_BYTES,
    MAX_VALUE_FILE_BYTES,
    VALUE,
    Kind,
    Link,
    Memory,
    MemoryId,
    Value,
    agent_name,
    check_fields,
    check_relation,
    check_tags,
    check_text,
    is_same,
    says_same,
    title_of,
)
from smp_git.model.times import format_time, parse_time

KEY: Final = "life"
OLD_KEY: Final = "generation"

# The first lines as the program writes them.
_HEAD: Final = re.compile(
    rb"id: [\x21-\x7e]+\nkind: [a-z]+\n"
    rb"(?:life: ([a-z][a-z0-9-]{0,31})\n|generation: ([1-9][0-9]{0,6})\n)?created_at: "
)
# A line that begins a key of its own, or nothing that could be one. Any other, or one
# that names a life, takes the reader of YAML.
_ODD: Final = re.compile(
    rb"^(?![A-Za-z_][A-Za-z0-9_.-]*:|[ \n#-]|\Z)|^(?:life|generation):", re.MULTILINE
)


def life_of(file: bytes, path: str) -> str | None:
    """Return the life that the file of a memory at `path` says, None if that cannot be told.

    The same file says the same wherever it is asked: reading, merging, rewriting.
    """
    front = _front(file) if path.endswith(".md") else file
    if front is None:
        return None
    found = _HEAD.match(front)
    if found is not None and not _ODD.search(front, found.end()):
        return _named(found)
    try:
        return life_in(yamlfile.read(front.decode(), path))
    except (InvalidFileError, InvalidError, UnicodeDecodeError):
        return None


def _front(file: bytes) -> bytes | None:
    end = yamlfile.front_end(file)
    return file[4 : end + 1] if end is not None else None


def _named(found: re.Match[bytes]) -> str | None:
    if found[1] is not None:
        name = found[1].decode()
        return name if ids.is_life(name) else None
    return ids.of_generation(int(found[2])) if found[2] is not None else FIRST


def life_in(mapping: Mapping[str, Value]) -> str:
    """Return the life that the keys of a memory's file say; raise InvalidError."""
    if KEY in mapping:
        name = mapping[KEY]
        if OLD_KEY in mapping or not ids.is_life(name):
            raise InvalidError(f"{KEY} is the name that smp gave this life, not {shown(name)}")
        return str(name)
    number = mapping.get(OLD_KEY, 1)
    if not isinstance(number, int) or isinstance(number, bool) or number < 1:
        raise InvalidError(f"{OLD_KEY} must be a whole number from 1, not {shown(number)}")
    return ids.of_generation(number)


_T = TypeVar("_T")

_FENCE: Final = "---\n"
# The field of a value that is JSON; one that is text is in the main text, and null in neither.
_JSON: Final = "value"
# Beyond the size of other files: each line would take memory.
_MOST_LINES: Final = 10_000
_BEFORE: Final = ("turn_ref", "title")
_AFTER: Final = tuple(name for name in COMMON_FIELDS if name not in _BEFORE)
# What `format_time` writes, which Python reads far faster than what people write.
_STORED_TIME = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{6})?Z")
# Only absolute times are in files, so what "now" is does not matter.
_NO_NOW: Final = datetime.fromisoformat("1970-01-01T00:00:00+00:00")


def encode(memory: Memory) -> bytes:
    """Return the bytes of the memory's file; the same memory gives the same bytes."""
    kind = parse_id(memory.id).kind
    text = dialect.write(mapping_of(memory))
    if kind.suffix == "md":
        return f"{_FENCE}{text}{_FENCE}{memory.content}\n".encode()
    return text.encode()


def mapping_of(memory: Memory) -> dict[str, Value]:
    """Return what is in the YAML part of the memory's file, in its order."""
    kind = parse_id(memory.id).kind
    fields = as_written(kind, memory.fields)
    own = [name for name in kind.fields if name in fields]
    known = (*kind.fields, *COMMON_FIELDS, CONTESTED)
    unknown = [name for name in fields if name not in known]
    out: dict[str, Value] = {"id": memory.id, "kind": memory.kind}
    if memory.life:
        out[KEY] = memory.life
    out["created_at"] = format_time(memory.created_at)
    if memory.updated_at:
        out["updated_at"] = format_time(memory.updated_at)
    out["agent"] = memory.agent
    out.update((name, fields[name]) for name in _BEFORE if name in fields)
    if memory.content and kind.suffix != "md":
        out[kind.main] = memory.content
    out.update((name, fields[name]) for name in (*own, *unknown))
    out.update((name, fields[name]) for name in _AFTER if name in fields)
    if memory.tags:
        out["tags"] = list(memory.tags)
    if memory.links:
        out["links"] = [{link.relation: link.target} for link in memory.links]
    if CONTESTED in fields:
        out[CONTESTED] = fields[CONTESTED]
    return out


def as_written(kind: Kind, fields: Mapping[str, Value]) -> Mapping[str, Value]:
    """Return fields as a file has them: JSON is a text there, which keeps every value as it is."""
    if kind.name != VALUE or _JSON not in fields:
        return fields
    return {**fields, _JSON: jsontext.write(fields[_JSON])}


def fields_of(memory: Memory) -> dict[str, Value]:
    """Return everything a memory says, by field, its main text under the kind's own name."""
    mapping = mapping_of(memory)
    kind = parse_id(memory.id).kind
    if kind.suffix == "md":
        mapping[kind.main] = memory.content
    if kind.name == VALUE and _JSON in mapping:
        mapping[_JSON] = memory.fields[_JSON]
    return mapping


def edited(old_file: bytes, old: Memory, new: Memory) -> bytes:
    """Return the file of `new`, keeping what a person did to the file of `old`."""
    canonical = encode(new)
    if encode(old) == old_file:
        return canonical
    mapping = mapping_of(new)
    kept = spliced(
        old_file, old.path, _changes(mapping_of(old), mapping), tuple(mapping), new.content
    )
    return kept if kept is not None and _says(kept, new) else canonical


def spliced(
    file: bytes,
    path: str,
    changes: Mapping[str, Value | None],
    order: Sequence[str],
    content: str | None = None,
) -> bytes | None:
    """Return a memory's file with keys set (None: removed) and all else as it is.

    `content` replaces what is below front matter. Returns None when that cannot be
    done without changing anything else.
    """
    text = file.decode()
    front, body = split(text, path) if path.endswith(".md") else (text, None)
    changed = yamlfile.edit(front, changes, order)
    if changed is None or body is None:
        return changed.encode() if changed is not None else None
    below = f"{content if content is not None else body}\n"
    return f"{_FENCE}{changed}{_FENCE}{below}".encode()


def with_comments(
    file: bytes, path: str, base: bytes | None, sides: Sequence[bytes]
) -> bytes | None:
    """Return the file of a merge with the comments that a person wrote on both sides.

    Returns None when that cannot be done without changing anything else.
    """
    texts = [each.decode() for each in (file, base or b"", *sides)]
    if not path.endswith(".md"):
        made = yamlfile.with_comments(texts[0], texts[1], texts[2:])
        return made.encode() if made is not None else None
    body = split(texts[0], path)[1]
    front, before, *others = (split(text, path)[0] if text else "" for text in texts)
    made = yamlfile.with_comments(front, before, others)
    return f"{_FENCE}{made}{_FENCE}{body}\n".encode() if made is not None else None


def _changes(old: Mapping[str, Value], new: Mapping[str, Value]) -> dict[str, Value | None]:
    gone: dict[str, Value | None] = {key: None for key in old if key not in new}
    return gone | {
        key: value for key, value in new.items() if key not in old or not is_same(old[key], value)
    }


def _says(file: bytes, memory: Memory) -> bool:
    try:
        found = decode(file, parse_id(memory.id).path)
    except InvalidFileError:
        return False
    return says_same(found, memory)


def decode(file: bytes, path: str) -> Memory:
    """Return the memory whose file at `path` has these bytes; raise InvalidFileError."""
    place = parse_path(path)
    if place is None:
        raise InvalidFileError(f"{path}: no memory belongs at this path")
    try:
        text = file.decode()
    except UnicodeDecodeError as error:
        line = file.count(b"\n", 0, error.start) + 1
        raise InvalidFileError(f"{path}:{line}: not UTF-8", hint="save it as UTF-8") from None
    if text.startswith("\ufeff"):
        raise InvalidFileError(f"{path}:1: a byte order mark", hint="save it as plain UTF-8")
    if len(file) > MAX_FILE_BYTES and file.count(b"\n") > _MOST_LINES:
        raise InvalidFileError(f"{path}: more than {_MOST_LINES:,} lines in a file of this size")
    if place.kind.suffix == "md":
        front, body = split(text, path)
        first_line = 2
    else:
        front, body = text, None
        first_line = 1
    mapping = yamlfile.read(front, path, first_line)
    try:
        return _memory(place, mapping, body, len(file))
    except (InvalidError, ValueError) as error:
        if isinstance(error, InvalidFileError):
            raise
        raise InvalidFileError(
            f"{path}:{_line_of(front, str(error)) + first_line - 1}: {error}",
            hint=getattr(error, "hint", None),
        ) from None


def split(text: str, path: str) -> tuple[str, str]:
    """Return the front matter of a file and what is below it; raise InvalidFileError."""
    if not text.startswith(_FENCE):
        raise InvalidFileError(
            f"{path}:1: no front matter; the first line must be ---",
            hint="lines of YAML end in LF" if text.startswith("---\r") else None,
        )
    end = yamlfile.front_end(text)
    if end is None:
        raise InvalidFileError(f"{path}:1: the front matter does not end; no second ---")
    return text[4 : end + 1], text[end + 1 + len(_FENCE) :].removesuffix("\n")


def _line_of(front: str, problem: str) -> int:
    """Return the line of the key that the problem mentions first, else 1."""
    found = []
    for number, line in enumerate(front.splitlines(), 1):
        key = line.partition(":")[0].strip("\"' -")
        match = re.search(rf"\b{re.escape(key)}\b", problem) if key else None
        if match:
            found.append((match.start(), number))
    return min(found, default=(0, 1))[1]


def _memory(place: Id, mapping: dict[str, Value], body: str | None, size: int) -> Memory:
    kind, text = place.kind, place.text
    for name, expected in (("id", text), ("kind", kind.name)):
        if mapping.pop(name, expected) != expected:
            raise InvalidError(f"the {name} is not {expected}, which belongs at this path")
    life = life_in(mapping)
    for name in (KEY, OLD_KEY):
        mapping.pop(name, None)
    created_at = _time(mapping, "created_at")
    if created_at is None:
        raise InvalidError("created_at is missing")
    updated_at = _time(mapping, "updated_at")
    agent = agent_name(mapping.pop("agent", "user"))
    content = body if body is not None else mapping.pop(kind.main, "")
    tags = _checked("tags", check_tags, mapping.pop("tags", ()))
    links = _checked("links", check_links, mapping.pop("links", ()))
    if kind.name == VALUE:
        mapping = _of_value(place, mapping, content)
    fields = check_fields(kind, mapping)
    content = check_content(kind, content)
    return Memory(
        id=text,
        kind=kind.name,
        created_at=created_at,
        updated_at=updated_at,
        agent=agent,
        content=content,
        title=title(place, content, fields),
        tags=tags,
        links=links,
        fields=MappingProxyType(fields),
        life=life,
        path=place.path,
        size_bytes=size,
    )


def _of_value(place: Id, mapping: dict[str, Value], content: Value) -> dict[str, Value]:
    """Return the fields of a value, its JSON read; raise InvalidError unless they are of its id."""
    fields = check_fields(place.kind, {name: mapping.get(name) for name in ("key", "again")})
    if id_of_value(fields) != place:
        raise InvalidError(f"the key is not the one that {place.text} stands for")
    said = mapping.get(_JSON)
    if said is not None and content:
        raise InvalidError(f"{_JSON} and {place.kind.main} are two values")
    return {**mapping, _JSON: jsontext.read(said, _JSON)} if isinstance(said, str) else mapping


def _checked(name: str, check: Callable[[object], _T], value: object) -> _T:
    try:
        return check(value)
    except InvalidError as error:
        raise InvalidError(f"{name}: {error.message}", hint=error.hint) from None


def check_content(kind: Kind, content: object) -> str:
    """Return the main text of a memory of `kind` if it is valid; raise InvalidError."""
    most = MAX_VALUE_BYTES if kind.name == VALUE else MAX_CONTENT_BYTES
    text = check_text(content, kind.main, most)
    if not text.strip() and kind.name not in ("state", "artifact", VALUE):
        raise InvalidError(f"a {kind.name} needs text", hint=f"its main text is {kind.main}")
    return text


def title(place: Id, content: str, fields: Mapping[str, Value]) -> str:
    """Return the title of a memory, which never lacks one: a value has its key."""
    if place.kind.name == VALUE and isinstance(key := fields.get("key"), list):
        return title_of("/".join(map(str, key)), {}) or place.text
    return title_of(content, fields) or (
        f"state of {place.name}" if place.kind.name == "state" else place.text
    )


def _time(mapping: dict[str, Value], name: str) -> datetime | None:
    value = mapping.pop(name, None)
    if value is None:
        return None
    if isinstance(value, str) and _STORED_TIME.fullmatch(value):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    if not isinstance(value, str) or not re.match(r"\d{4}-\d\d-\d\d", value):
        raise InvalidError(
            f"{name} is not a time: {shown(value)}", hint="e.g. 2026-01-11T14:30:00Z"
        )
    try:
        return parse_time(value, _NO_NOW)
    except ValueError as error:
        raise InvalidError(f"{name}: {error}") from None


def check_links(links: object) -> tuple[Link, ...]:
    """Return links given as pairs or one-key mappings, without repeats; raise InvalidError."""
    if isinstance(links, (str, Mapping)) or not hasattr(links, "__iter__"):
        raise InvalidError(f"links must be a list of (relation, id), not {shown(links)}")
    return tuple(dict.fromkeys(_link(item) for item in links))


def _link(item: object) -> Link:
    if isinstance(item, Mapping) and len(item) == 1:
        item = next(iter(item.items()))
    if not isinstance(item, (tuple, list)) or len(item) != 2:  # noqa: PLR2004 - a pair
        raise InvalidError(
            f"{shown(item)} is not a link", hint='a link is ("resolves", "FIND-0001")'
        )
    relation, target = item
    if not isinstance(target, str):
        raise InvalidError(f"a link goes to an id, not to {shown(target)}")
    return Link(check_relation(relation), parse_target(target))


def largest(place: Id | None) -> int:
    """Return how many bytes the file of a memory may have, or one that is of none."""
    is_value = place is not None and place.kind.name == VALUE
    return MAX_VALUE_FILE_BYTES if is_value else MAX_FILE_BYTES


def fitting(file: bytes, memory_id: MemoryId) -> bytes:
    """Return the file of a memory if it keeps within the limits; raise InvalidError."""
    size, most = len(file), largest(parse_id(memory_id))
    if size > most:
        raise InvalidError(
            f"the file of {memory_id} would have {size:,} bytes; the limit is {most:,}",
            hint="store less in its fields, or a reference to a file",
        )
    return file
