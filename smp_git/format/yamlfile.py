"""YAML as people write it: read with care, edited without losing their comments."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from smp_git.format import dialect
from smp_git.model.errors import InvalidFileError, shown
from smp_git.model.memory import MAX_DEPTH, MAX_FILE_BYTES, Value

# What a plain scalar stands for in the core schema of YAML 1.2; all else is text.
_BOOLEAN: Final = re.compile(r"true|True|TRUE|false|False|FALSE")
_NULL: Final = re.compile(r"~|null|Null|NULL|")
_INTEGER: Final = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FRACTION: Final = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
# More digits than 64 bits have.
_MOST_DIGITS: Final = 20

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


def read(
    text: str, what: str, first_line: int = 1, *, largest: int = MAX_FILE_BYTES
) -> dict[str, Value]:
    """Return the mapping that `text` holds; `what` and `first_line` place it in errors.

    Refuses more than one document, directives, anchors, aliases, tags, merge keys,
    repeated keys and deep nesting before anything is built; raises InvalidFileError with the line.
    """
    try:
        return dialect.read(text)
    except dialect.NotDialectError:
        return _read_any(text, what, first_line, largest)


def _read_any(
    text: str, what: str, first_line: int, largest: int = MAX_FILE_BYTES
) -> dict[str, Value]:
    place = _Place(what, first_line, largest)
    if len(text) > largest:
        raise InvalidFileError(f"{what}: the YAML is larger than {largest:,} bytes")
    root = _parse(text, place)
    value = None if root is None else _value(root, place)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidFileError(f"{what}:{first_line}: not a mapping of keys to values")
    return value


class _Place(NamedTuple):
    """The name of a file, the line that a text in it begins with, for errors, and its limit."""

    what: str
    first_line: int
    largest: int = MAX_FILE_BYTES

    @property
    def most_events(self) -> int:
        """How many values a document of the largest size may hold."""
        return _MOST_EVENTS * self.largest // MAX_FILE_BYTES

    def refusal(self, line: int, why: str, hint: str | None = None) -> InvalidFileError:
        """Return the error for a line, counted from 0."""
        return InvalidFileError(f"{self.what}:{line + self.first_line}: {why}", hint=hint)

    def broken(self, line: int, why: str) -> InvalidFileError:
        """Return the error for what a person has to put right."""
        return self.refusal(line, why, "fix the file by hand, then run smp commit")


class _Node:
    """A scalar, a sequence or a mapping, and where it is."""

    __slots__ = ("end_mark", "is_flow", "is_mapping", "is_plain", "items", "start_mark", "text")

    def __init__(self, event: Any) -> None:  # noqa: ANN401 - ruamel.yaml's own
        self.start_mark, self.end_mark = event.start_mark, event.end_mark
        # None for what is no scalar.
        self.text: str | None = getattr(event, "value", None)
        self.is_plain = self.text is not None and bool(event.implicit[0])
        self.is_mapping = type(event).__name__ == "MappingStartEvent"
        self.is_flow = bool(getattr(event, "flow_style", False))
        # A mapping's keys and values by turns.
        self.items: list[_Node] = []

    def pairs(self) -> list[tuple[_Node, _Node]]:
        """Return the keys and values of a mapping."""
        return list(zip(self.items[::2], self.items[1::2], strict=True))


def _parse(text: str, place: _Place) -> _Node | None:
    """Return the node of the only document, None if it is empty.

    Each event of the parser is judged before anything is made of it, so that nothing
    refused takes time or space.
    """
    top: list[_Node] = []
    open_nodes: list[_Node] = []
    documents = 0
    for number, event in enumerate(_events(text, place)):
        if number > place.most_events:
            raise InvalidFileError(
                f"{place.what}: the YAML holds more than {place.most_events:,} values"
            )
        kind = type(event).__name__
        if kind == "DocumentStartEvent":
            documents += 1
            _check_document(event, documents, place)
        elif kind in ("MappingEndEvent", "SequenceEndEvent"):
            open_nodes.pop().end_mark = event.end_mark
        elif hasattr(event, "anchor"):
            _check_node(event, place)
            node = _Node(event)
            (open_nodes[-1].items if open_nodes else top).append(node)
            if node.text is None:
                open_nodes.append(node)
                if len(open_nodes) > MAX_DEPTH:
                    raise place.refusal(
                        event.start_mark.line, f"nested deeper than {MAX_DEPTH} levels"
                    )
    return top[0] if top else None


def _events(text: str, place: _Place) -> Iterator[Any]:
    from ruamel.yaml import YAML  # noqa: PLC0415 - only files not in the dialect need it
    from ruamel.yaml.error import YAMLError  # noqa: PLC0415

    try:
        yield from YAML(typ="safe").parse(text)
    except (YAMLError, ValueError) as error:
        raise _placed(error, text, place) from None


def _placed(error: Exception, text: str, place: _Place) -> InvalidFileError:
    mark = getattr(error, "problem_mark", None)
    position = getattr(error, "position", 0)
    line = (
        mark.line
        if mark is not None
        else text.encode("utf-8", "surrogatepass")[:position].count(b"\n")
    )
    return place.broken(line, getattr(error, "problem", None) or str(error).splitlines()[0])


def _check_document(event: Any, number: int, place: _Place) -> None:  # noqa: ANN401 - ruamel.yaml's own
    if number > 1:
        raise place.refusal(event.start_mark.line, "a second YAML document")
    if event.version or event.tags:
        raise place.refusal(event.start_mark.line, "directives are not allowed")


def _check_node(event: Any, place: _Place) -> None:  # noqa: ANN401 - ruamel.yaml's own
    line = event.start_mark.line
    if event.anchor:
        raise place.refusal(line, "anchors and aliases are not allowed")
    if event.tag or (getattr(event, "value", None) == "<<" and event.implicit[0]):
        raise place.refusal(line, "tags and merge keys are not allowed")


def _value(node: _Node, place: _Place) -> Value:
    if node.text is not None:
        return _scalar(node.text, node, place) if node.is_plain else node.text
    if not node.is_mapping:
        return [_value(item, place) for item in node.items]
    out: dict[str, Value] = {}
    for key, value in node.pairs():
        # A number or a word that is a key is meant as text.
        if key.text is None:
            raise place.broken(key.start_mark.line, "a key must be text, not a list or a mapping")
        if key.text in out:
            raise place.broken(key.start_mark.line, f"the key {shown(key.text)} appears twice")
        out[key.text] = _value(value, place)
    return out


def _scalar(text: str, node: _Node, place: _Place) -> Value:
    if _BOOLEAN.fullmatch(text):
        return text.lower() == "true"
    if _NULL.fullmatch(text):
        return None
    if _INTEGER.fullmatch(text):
        if len(text) > _MOST_DIGITS:
            raise place.broken(node.start_mark.line, f"a number of {len(text)} digits")
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    return float(text) if _FRACTION.fullmatch(text) else text


def written(value: Mapping[str, Value]) -> str:
    """Return a mapping as the YAML that a file would hold."""
    return dialect.write(value).removesuffix("\n")


def edit(text: str, changes: Mapping[str, Value | None], order: Sequence[str]) -> str | None:
    """Return `text` with top-level keys set (None: removed) and all else as it is.

    A key that is not there yet goes behind its nearest neighbour in `order`. Returns
    None when that cannot be done without changing anything else.
    """
    root = _root(text)
    if root is None:
        return None
    spans = {
        str(key.text): _Span(key.start_mark.line, _end(value), value) for key, value in root.pairs()
    }
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
    node: _Node


def _end(node: _Node) -> int:
    """Return the line behind the last one of a node, comments behind it left out."""
    if node.items and not node.is_flow:
        return _end(node.items[-1])
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
    """A comment, the top-level key above or beside which it is, and its line."""

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
    places = {key.text: key.start_mark.line for key, _ in root.pairs()}
    lines = _split_lines(text)
    for place, new in sorted(
        ((places.get(each.key, len(lines)), each.text) for each in missing), key=lambda row: -row[0]
    ):
        lines.insert(place, f"{new}\n")
    return "".join(lines)


def _split_lines(text: str) -> list[str]:
    return [line if line[-1:] in _BREAKS else line + "\n" for line in _LINE.findall(text)[:-1]]


def _root(text: str) -> _Node | None:
    """Return the node of a mapping whose keys all begin a line, None for anything else."""
    try:
        root = _parse(text, _Place("", 1))
    except InvalidFileError:
        return None
    keys = [key for key, _ in root.pairs()] if root is not None and root.is_mapping else []
    return root if keys and not any(key.start_mark.column for key in keys) else None


def _comments(text: str) -> list[_Comment] | None:
    """Return the comments of a file in order, None if they cannot be told from the rest."""
    if not text:
        return []
    root = _root(text)
    if root is None:
        return None
    spans = [(_end(value), str(key.text)) for key, value in root.pairs()]
    covered = _scalars(root)
    found = []
    for number, line in enumerate(_LINE.findall(text)):
        at = _comment_at(line, covered.get(number, []))
        if at is not None:
            key = next((name for end, name in spans if number < end), "")
            found.append(_Comment(line[at:].rstrip(), key, number, not line[:at].strip()))
    return found


def _scalars(root: _Node) -> dict[int, list[tuple[int, int]]]:
    """Return the columns that scalars take, by line."""
    out: dict[int, list[tuple[int, int]]] = {}
    waiting = [root]
    while waiting:
        node = waiting.pop()
        if node.text is None:
            waiting += node.items
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
