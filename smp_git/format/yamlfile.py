"""YAML as people write it: read with care, edited without losing their comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from smp_git.format import dialect
from smp_git.model.errors import InvalidFileError, shown
from smp_git.model.memory import MAX_DEPTH, MAX_FILE_BYTES, Value

if TYPE_CHECKING:
    from collections.abc import Iterator

# The resolvers of YAML 1.2's core schema; PyYAML's own are those of YAML 1.1.
_CORE: Final = (
    ("tag:yaml.org,2002:bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("tag:yaml.org,2002:null", r"~|null|Null|NULL|", "~nN\0"),
    ("tag:yaml.org,2002:int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "tag:yaml.org,2002:float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?",
        "-+0123456789.",
    ),
)

# A general reader takes microseconds for each; nobody writes so many by hand.
_MOST_EVENTS: Final = 100_000


_FENCE: Final = "---\n"


def front_end(text: str | bytes) -> int | None:
    """Return where the front matter of a file ends, None if it has none; it begins at 4."""
    fence: Any = _FENCE if isinstance(text, str) else _FENCE.encode()
    if not text.startswith(fence):
        return None
    if text.startswith(fence, len(fence)):
        return len(fence) - 1
    line_end: Any = "\n" if isinstance(text, str) else b"\n"
    end = text.find(line_end + fence, len(fence) - 1)
    return end if end >= 0 else None


def read(text: str, what: str, first_line: int = 1) -> dict[str, Value]:
    """Return the mapping that `text` holds; `what` and `first_line` place it in errors.

    Refuses more than one document, directives, anchors, aliases, tags, merge keys,
    repeated keys and deep nesting before anything is built; raises InvalidFileError with the line.
    """
    try:
        return dialect.read(text)
    except dialect.NotDialectError:
        return _read_any(text, what, first_line)


def _read_any(text: str, what: str, first_line: int) -> dict[str, Value]:
    if len(text) > MAX_FILE_BYTES:
        raise InvalidFileError(f"{what}: the YAML is larger than {MAX_FILE_BYTES:,} bytes")
    yaml, loader = _loader()
    try:
        _check_events(yaml.parse(text, Loader=loader), what, first_line)
        value = yaml.load(text, Loader=loader)
    except (yaml.YAMLError, ValueError) as error:
        raise _placed(error, text, what, first_line) from None
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidFileError(f"{what}:{first_line}: not a mapping of keys to values")
    return cast("dict[str, Value]", value)


def _placed(error: Exception, text: str, what: str, first_line: int) -> InvalidFileError:
    mark = getattr(error, "problem_mark", None)
    position = getattr(error, "position", 0)
    above = mark.line if mark is not None else text.encode()[:position].count(b"\n")
    line = f":{above + first_line}"
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return InvalidFileError(
        f"{what}{line}: {problem}", hint="mend the file by hand, then run smp commit"
    )


def _check_events(events: Iterator[Any], what: str, first_line: int) -> None:
    depth = documents = 0
    for number, event in enumerate(events):
        kind = type(event).__name__
        if number > _MOST_EVENTS:
            raise InvalidFileError(f"{what}: the YAML holds more than {_MOST_EVENTS:,} values")
        line = event.start_mark.line + first_line
        documents += kind == "DocumentStartEvent"
        depth += kind.endswith("StartEvent") - kind.endswith("EndEvent")
        if documents > 1:
            raise InvalidFileError(f"{what}:{line}: a second YAML document")
        # The stream and the document count as two levels.
        if depth > MAX_DEPTH + 2:
            raise InvalidFileError(f"{what}:{line}: nested deeper than {MAX_DEPTH} levels")
        if kind == "AliasEvent" or getattr(event, "anchor", None):
            raise InvalidFileError(f"{what}:{line}: anchors and aliases are not allowed")
        if getattr(event, "version", None) or (kind == "DocumentStartEvent" and event.tags):
            raise InvalidFileError(f"{what}:{line}: directives are not allowed")
        if getattr(event, "tag", None) or (kind == "ScalarEvent" and _is_merge(event)):
            raise InvalidFileError(f"{what}:{line}: tags and merge keys are not allowed")


def _is_merge(event: Any) -> bool:  # noqa: ANN401 - PyYAML's own
    return bool(event.value == "<<" and event.implicit[0])


@cache
def _loader() -> tuple[Any, Any]:
    """Return PyYAML and a safe loader with the resolvers of YAML 1.2."""
    import yaml  # noqa: PLC0415 - only files not in the dialect need it

    base = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    def mapping(loader: Any, node: Any) -> dict[str, Value]:  # noqa: ANN401 - PyYAML's own
        out: dict[str, Value] = {}
        for key_node, value_node in node.value:
            # A number or a word that stands as a key is meant as text.
            key = key_node.value
            if not isinstance(key, str):
                raise yaml.constructor.ConstructorError(
                    None, None, "a key is text, no list and no mapping", key_node.start_mark
                )
            if key in out:
                raise yaml.constructor.ConstructorError(
                    None, None, f"the key {shown(key)} stands twice", key_node.start_mark
                )
            out[key] = loader.construct_object(value_node, deep=True)
        return out

    loader: Any = type("CoreLoader", (base,), {"yaml_implicit_resolvers": {}})
    for tag, pattern, first in _CORE:
        regex = re.compile(f"(?:{pattern})\\Z")
        loader.add_implicit_resolver(tag, regex, [c if c != "\0" else "" for c in first])
    loader.add_constructor("tag:yaml.org,2002:map", mapping)
    loader.add_constructor("tag:yaml.org,2002:int", _construct_integer)
    loader.add_constructor("tag:yaml.org,2002:float", lambda _loader, node: float(node.value))
    return yaml, loader


def _construct_integer(_loader: object, node: Any) -> int:  # noqa: ANN401 - PyYAML's own
    text: str = node.value
    if len(text) > 20:  # noqa: PLR2004 - more digits than 64 bits have
        raise ValueError(f"a number of {len(text)} digits")
    return int(text, 0) if text[:2] in ("0o", "0x") else int(text)


def written(value: Mapping[str, Value]) -> str:
    """Return a mapping as the YAML that a file would hold."""
    return dialect.write(value).removesuffix("\n")


def edit(text: str, changes: Mapping[str, Value | None], order: Sequence[str]) -> str | None:
    """Return `text` with top-level keys set (None: removed) and all else as it stands.

    A key that is not there yet goes behind its nearest neighbour in `order`. Returns
    None when that cannot be done without changing anything else.
    """
    root = _root(text)
    if root is None:
        return None
    spans = {key.value: _Span(key.start_mark.line, _end(value), value) for key, value in root.value}
    lines = _split_lines(text)
    wanted = [key for key in order if key in changes] + [
        key for key in changes if key in spans and key not in order
    ]
    places = {key: _place(key, spans, order) for key in wanted}
    wanted.sort(key=places.__getitem__)
    # From the last line on, so that the places of those before it hold.
    for key in reversed(wanted):
        value = changes[key]
        _splice(
            lines, places[key], spans.get(key), "" if value is None else dialect.write({key: value})
        )
    return "".join(lines)


# What YAML takes for the end of a line, which is less than Python does.
_BREAKS: Final = ("\n", "\r", "\x85", "\u2028", "\u2029")
_LINE: Final = re.compile("[^\n\r\x85\u2028\u2029]*(?:\r\n|[\n\r\x85\u2028\u2029]|\\Z)")


class _Span(NamedTuple):
    """The lines of a key and its value, and the value's node."""

    first: int
    end: int
    node: Any


def _end(node: Any) -> int:  # noqa: ANN401 - PyYAML's own
    """Return the line behind the last one of a node, comments behind it left out."""
    if isinstance(node.value, list) and node.value and not node.flow_style:
        last = node.value[-1]
        return _end(last[1] if isinstance(last, tuple) else last)
    # A block ends where the next line begins, whatever else on its last line.
    return int(node.end_mark.line + (node.end_mark.column > 0))


def _place(key: str, spans: Mapping[str, _Span], order: Sequence[str]) -> int:
    if key in spans:
        return spans[key].first
    before = [spans[name].end for name in order[: order.index(key)] if name in spans]
    return before[-1] if before else min(span.first for span in spans.values())


def _splice(lines: list[str], place: int, span: _Span | None, new: str) -> None:
    if span is None:
        lines[place:place] = [new]
        return
    node = span.node
    line = node.start_mark.line
    if (
        new.count("\n") == 1
        and span.end == span.first + 1
        and line == span.first
        and node.start_mark.column
    ):
        # A comment on the same line stays.
        rest = lines[line][node.end_mark.column :]
        new = new.removesuffix("\n") + rest
    end = span.end
    while end > span.first + 1 and not lines[end - 1].strip():
        end -= 1
    lines[span.first : end] = [new]


# Comments


class _Comment(NamedTuple):
    """A comment, the top-level key above or beside which it stands, and its line."""

    text: str
    key: str
    line: int
    is_alone: bool


def with_comments(text: str, base: str, sides: Sequence[str]) -> str | None:
    """Return `text`, a merge of two sides, with the comments of both.

    What one side took away since `base` goes. A comment whose place is gone gets a line of
    its own, above its key or at the end. Returns None when that cannot be done.
    """
    if not any("#" in each for each in (*sides, base)):
        return text
    found = [_comments(each) for each in (base, *sides, text)]
    before, left, right, here = (each if each is not None else [] for each in found)
    counts = [Counter(each.text for each in side) for side in (before, left, right)]
    names = dict.fromkeys(each.text for each in (*left, *right, *before))
    wanted = {name: _three_way(*(count[name] for count in counts)) for name in names}
    have = Counter(each.text for each in here)
    if all(have[name] == number for name, number in wanted.items()):
        return text
    if None in found[1:]:
        return None
    gone = Counter({name: have[name] - number for name, number in wanted.items()})
    lines = _split_lines(text)
    for each in reversed(here):
        if gone[each.text] > 0 and each.is_alone:
            gone[each.text] -= 1
            del lines[each.line]
    missing = Counter({name: number - have[name] for name, number in wanted.items()})
    return _with_lines(
        "".join(lines), [each for each in (*left, *right) if _taken(missing, each.text)]
    )


def _three_way(base: int, left: int, right: int) -> int:
    if base in (left, right):
        return right if left == base else left
    return max(left, right)


def _taken(missing: Counter[str], name: str) -> bool:
    missing[name] -= 1
    return missing[name] >= 0


def _with_lines(text: str, missing: Sequence[_Comment]) -> str | None:
    """Return `text` with comments on lines of their own, above the keys they speak of."""
    root = _root(text)
    if root is None:
        return None
    places = {key.value: key.start_mark.line for key, _ in root.value}
    lines = _split_lines(text)
    for place, new in sorted(
        ((places.get(each.key, len(lines)), each.text) for each in missing), key=lambda row: -row[0]
    ):
        lines.insert(place, f"{new}\n")
    return "".join(lines)


def _split_lines(text: str) -> list[str]:
    return [line if line[-1:] in _BREAKS else line + "\n" for line in _LINE.findall(text)[:-1]]


def _root(text: str) -> Any | None:  # noqa: ANN401 - PyYAML's own
    """Return the node of a mapping whose keys all begin a line, None for anything else."""
    yaml, loader = _loader()
    try:
        root = yaml.compose(text, Loader=loader)
    except yaml.YAMLError:
        return None
    keys = [key for key, _ in root.value] if isinstance(root, yaml.MappingNode) else []
    return root if keys and not any(key.start_mark.column for key in keys) else None


def _comments(text: str) -> list[_Comment] | None:
    """Return the comments of a file in order, None if they cannot be told from the rest."""
    if not text:
        return []
    root = _root(text)
    if root is None:
        return None
    spans = [(key.start_mark.line, _end(value), key.value) for key, value in root.value]
    covered = _scalars(root)
    found = []
    for number, line in enumerate(_LINE.findall(text)):
        at = _comment_at(line, covered.get(number, []))
        if at is not None:
            key = next((name for _, end, name in spans if number < end), "")
            found.append(_Comment(line[at:].rstrip(), key, number, not line[:at].strip()))
    return found


def _scalars(root: Any) -> dict[int, list[tuple[int, int]]]:  # noqa: ANN401 - PyYAML's own
    """Return the columns that scalars take, by line."""
    out: dict[int, list[tuple[int, int]]] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if isinstance(node.value, list):
            waiting += [
                each
                for item in node.value
                for each in (item if isinstance(item, tuple) else (item,))
            ]
            continue
        first, last = node.start_mark, node.end_mark
        for line in range(first.line, last.line + 1):
            start = first.column if line == first.line else 0
            end = last.column if line == last.line else _WIDEST
            out.setdefault(line, []).append((start, end))
    return out


_WIDEST: Final = 1 << 31


def _comment_at(line: str, covered: Sequence[tuple[int, int]]) -> int | None:
    """Return the column at which a comment begins on a line, None if there is none."""
    for match in _HASH.finditer(line):
        if not any(start <= match.start() < end for start, end in covered):
            return match.start()
    return None


_HASH: Final = re.compile(r"(?<![^ \t])#")
