"""All Hypothesis strategies: what memories may hold, above all what is awkward."""

from __future__ import annotations

import string
from datetime import UTC, datetime, timedelta
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from smp_git.format.document import check_links, title
from smp_git.model.ids import Id, value_id
from smp_git.model.memory import (
    COMMON_FIELDS,
    CONFIDENCE_RANKS,
    KINDS,
    SEVERITIES,
    VALUE,
    Kind,
    Memory,
    Value,
    check_fields,
)

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)

# Pieces of text that some reader of YAML, Markdown or Git treats in a way of its own.
_AWKWARD = (
    "", " ", "  ", "\t", "\n", "\n\n", "\r\n", "\r", "---\n", "\n---\n", "...", "- ", "? ", ": ", " #",
    "#", "# a", ":", "a: b", "- a", "|", ">", "|-", "&a", "*a", "!!str", "<<", "=", "%YAML 1.1",
    "{", "}", "[", "]", ",", "'", '"', "\\", "\\n", "`", "@", "~", "😀", "é", "e\u0301", "日本語",
    "\u0085", "\u2028", "\u2029", "\ufeff", "\ufffe", "\ufffd", "\x07", "\x0b", "\x1b", "\x7f", "\x9f",
    "\u200b", "\u202e", "\xa0", "\U0001f468\u200d\U0001f469", "DEC-0001: x", "Agent: eve", "Memory: DEC-0009",
    "x" * 79, "x" * 81, "trailing ", "two  spaces", "null", "end\n",
)  # fmt: skip
_RESOLVED = (
    "y", "Y", "yes", "No", "on", "OFF", "true", "False", "TRUE", "null", "Null", "~", ".inf", "-.INF",
    ".nan", "nan", "inf", "0x1f", "0o17", "017", "1_000", "1e3", "1.0", "-1", "+1", ".5", "5.", "12:30:45",
    "2026-01-11", "2026-01-11T14:30:00Z", "<<", "=", "!", "&", "*", "0", "00", "9" * 25, "-", "--",
)  # fmt: skip

agents = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,20}", fullmatch=True).map(lambda name: f"a{name}z")
words = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,12}", fullmatch=True)
tags = st.lists(st.lists(words, min_size=1, max_size=3).map(".".join), max_size=3, unique=True)
tag_parts = st.builds(
    "{}{}".format, st.sampled_from("abz"), st.text(string.digits + "xy", min_size=3, max_size=3)
)
times = st.datetimes(
    EPOCH.replace(year=1, day=2, tzinfo=None),
    EPOCH.replace(year=9999, tzinfo=None),
    timezones=st.just(UTC),
)

characters = st.characters(exclude_characters="\0", exclude_categories=["Cs"])
texts = st.one_of(
    st.sampled_from(_RESOLVED),
    st.text(characters, max_size=30),
    st.lists(st.sampled_from(_AWKWARD) | st.text(characters, max_size=8), max_size=8).map("".join),
    st.text(string.ascii_letters + " ._'-", max_size=100),
    st.text(string.digits, max_size=25),
)
contents = texts.filter(lambda text: bool(text.strip()))

keys = st.one_of(
    st.sampled_from(_RESOLVED),
    st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,20}", fullmatch=True),
    st.text(st.characters(min_codepoint=32, exclude_categories=["Cs"]), min_size=1, max_size=20),
)
field_names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_.-]{0,20}", fullmatch=True) | st.sampled_from(
    ("true", "no", "null", "y", "__class__", "x.y", "_", "N")
)
scalars: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63) + 1, 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
)
values: st.SearchStrategy[Any] = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=4) | st.dictionaries(keys, below, max_size=4),
    max_leaves=8,
)
mappings: st.SearchStrategy[dict[str, Value]] = st.dictionaries(keys, values, max_size=6)

# What a program keeps under a key: anything that JSON can say.
json_values: st.SearchStrategy[Any] = st.recursive(
    scalars | st.integers() | st.text(max_size=20) | st.text(st.characters(categories=["Cs", "Cc"]), max_size=4).map(
        lambda text: text.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")),
    lambda below: st.lists(below, max_size=4) | st.dictionaries(st.text(max_size=8), below, max_size=4),
    max_leaves=10,
)  # fmt: skip
value_keys = st.lists(st.text(characters, max_size=12), min_size=1, max_size=4).map(tuple)

kinds = st.sampled_from(tuple(KINDS.values()))

_KNOWN: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(("status", "role", "type"), words),
    "severity": st.sampled_from(SEVERITIES),
    "confidence": st.sampled_from(tuple(CONFIDENCE_RANKS)) | st.floats(0, 1),
    "importance": st.floats(0, 1),
    **dict.fromkeys(("pinned", "reversible"), st.booleans()),
    "tokens": st.integers(0, 10**9),
    "turn_ref": st.integers(1, 99_999),
    "resolution": st.fixed_dictionaries({"status": words}, optional={"action_taken": texts}),
    **dict.fromkeys(
        ("agreed_by", "approved_by", "agents_involved", "memory_refs", "learned_from",
         "session_learnings"), st.lists(texts, max_size=3),
    ),
    **dict.fromkeys(
        ("title", "source", "rationale", "impact", "speaker", "category", "key", "topic",
         "conversation_id", "parent", "root_cause", "recommendation", "made_by", "discovered_by",
         "name", "media_type"), texts,
    ),
}  # fmt: skip
_STRUCTURAL = (
    "id",
    "kind",
    "life",
    "generation",
    "created_at",
    "updated_at",
    "agent",
    "tags",
    "links",
)


@st.composite
def fields(draw: st.DrawFn, kind: Kind) -> dict[str, Any]:
    """Fields as a caller gives them: of the kind, common ones, and unknown ones."""
    known = draw(st.lists(st.sampled_from((*kind.fields, *COMMON_FIELDS)), max_size=4, unique=True))
    out = {name: draw(_KNOWN.get(name, values)) for name in known}
    for name in draw(st.lists(field_names, max_size=3, unique=True)):
        if name not in (*_STRUCTURAL, *kind.fields, *COMMON_FIELDS, kind.main):
            out[name] = draw(values)
    # What a value is kept under, and as, goes together.
    return {
        name: each for name, each in out.items() if kind.name != VALUE or name not in kind.fields
    }


@st.composite
def places(draw: st.DrawFn, kind: Kind | None = None) -> Id:
    """Ids of every kind, with and without a tag."""
    kind = kind or draw(kinds)
    if kind.name == "state":
        return Id(kind, 0, "", draw(agents))
    if kind.name == VALUE:
        return value_id(draw(value_keys), draw(st.integers(0, 3)))
    return Id(kind, draw(st.integers(1, 250_000)), draw(st.just("") | tag_parts))


links = st.lists(
    st.tuples(
        st.from_regex(r"[a-z][a-z0-9_]{0,12}", fullmatch=True) | st.sampled_from(("no", "y")),
        places().map(lambda place: place.text),
    ),
    max_size=3,
    unique=True,
)


@st.composite
def memories(draw: st.DrawFn, kind: Kind | None = None) -> Memory:
    """Valid memories of every kind."""
    kind = kind or draw(kinds)
    place = draw(places(kind))
    checked = check_fields(kind, draw(fields(kind)))
    content = draw(
        st.just("") | contents if kind.name in ("state", "artifact", VALUE) else contents
    )
    if kind.name == VALUE:
        key, again = draw(value_keys), draw(st.integers(0, 3))
        place = value_id(key, again)
        said = {"key": key, "again": again or None, "value": None if content else draw(json_values)}
        checked |= check_fields(kind, said)
    return Memory(
        id=place.text,
        kind=kind.name,
        created_at=draw(times),
        updated_at=draw(st.none() | times),
        agent=place.name if kind.name == "state" else draw(agents),
        content=content,
        title=title(place, content, checked),
        tags=tuple(draw(tags)),
        links=check_links(draw(links)),
        fields=MappingProxyType(checked),
        life=draw(st.sampled_from(("", "", "brightly", "j0123456789ab", "g2", "g17-01234567"))),
        path=place.path,
    )
