"""Values of fields as a person reads them, and what changed in them, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from smp_git.cli.screen import exact, width
from smp_git.cli.terminal import paint
from smp_git.read.history import FieldChange

# Each character of a script without word breaks is a word.
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|\s+|[^\w\s]")
_TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z")
# More words than this are not compared one by one: that takes time by their product.
_MOST_WORDS: Final = 2_000
# Of what stays the same, so much is shown on either side of a change.
_CONTEXT: Final = 60
_NONE: Final = "none"
# Every write sets these, so that they say nothing about a change.
_STAMPS: Final = ("created_at", "updated_at", "agent")


def as_words(value: object) -> str:
    """Return a value in words, on one line: no JSON, nothing of Python."""
    if value is None or value in ("", [], {}):
        return _NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {as_words(each)}" for name, each in value.items())
    if isinstance(value, (list, tuple)):
        return ", ".join(map(as_words, value))
    text = str(value)
    if _TIME.fullmatch(text):
        return exact(datetime.fromisoformat(text))
    return " ".join(text.split())


def changes(found: Sequence[FieldChange]) -> Iterator[str]:
    """Yield the lines that say what changed in a memory: `+` came, `-` went, `~` differs."""
    for each in found:
        if each.field not in _STAMPS:
            yield from _change(each.field, each.before, each.after)


def _change(name: str, before: object, after: object) -> Iterator[str]:
    if isinstance(before, (dict, type(None))) and isinstance(after, (dict, type(None))):
        left: dict[str, object] = before or {}
        right: dict[str, object] = after or {}
        for key in dict.fromkeys((*left, *right)):
            if left.get(key) != right.get(key):
                yield from _change(f"{name}.{key}", left.get(key), right.get(key))
    elif isinstance(before, (list, type(None))) and isinstance(after, (list, type(None))):
        yield from _list_change(name, before or [], after or [])
    elif before is None:
        yield _line("green", "+", name, as_words(after))
    elif after is None:
        yield _line("red", "-", name, as_words(before))
    elif isinstance(before, str) and isinstance(after, str) and _is_prose(before, after):
        yield _shaped(f"{paint('yellow', '~')} {name}: {word_diff(before, after)}")
    else:
        old, new = paint("red", as_words(before)), paint("green", as_words(after))
        yield _shaped(f"{paint('yellow', '~')} {name}: {old} -> {new}")


def _list_change(name: str, before: Sequence[object], after: Sequence[object]) -> Iterator[str]:
    gone, new = (
        [each for each in before if each not in after],
        [each for each in after if each not in before],
    )
    for each in gone:
        yield _line("red", "-", name, as_words(each))
    for each in new:
        yield _line("green", "+", name, as_words(each))
    if not gone and not new:
        yield _shaped(f"{paint('yellow', '~')} {name}: in another order")


def _line(style: str, sign: str, name: str, text: str) -> str:
    return _shaped(f"{paint(style, sign)} {name}: {text}")


def _shaped(text: str) -> str:
    return f"  {text}"


def _is_prose(before: str, after: str) -> bool:
    """Whether two texts are worth comparing word by word."""
    return " " in before.strip() and " " in after.strip()


def measures(found: Mapping[str, object]) -> list[str]:
    """Return what was counted and measured, a line for each group."""
    lines = []
    for name, value in found.items():
        if not isinstance(value, Mapping):
            lines.append(f"{name}  {amount(value)}")
            continue
        wide = max((width(str(group)) for group in value), default=0)
        lines.append(name)
        lines += [
            f"  {group}{' ' * (wide - width(str(group)))}  {amount(each)}"
            for group, each in value.items()
        ]
    return lines


def amount(value: object) -> str:
    """Return a number as a person reads it."""
    if isinstance(value, float):
        return f"{value:,.3f}".rstrip("0").rstrip(".")
    return f"{value:,}" if isinstance(value, int) else as_words(value)


def word_diff(before: str, after: str) -> str:
    """Return the later text with what went and what came marked in it, on one line."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    parts = []
    for gone, came, same in _pieces(old, new):
        parts += [_marked("gone", gone), _marked("new", came), _shortened(same)]
    return " ".join("".join(parts).split()) if any(parts) else _folded(after)


def _pieces(old: list[str], new: list[str]) -> Iterator[tuple[str, str, str]]:
    """Yield what went, what came in its place, and what stays behind it."""
    start = next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b),
        min(len(old), len(new)),
    )
    rest = min(len(old), len(new)) - start
    end = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    yield "", "", "".join(old[:start])
    gone, came = old[start : len(old) - end], new[start : len(new) - end]
    yield from _matched(gone, came)
    yield "", "", "".join(old[len(old) - end :])


def _matched(old: list[str], new: list[str]) -> Iterator[tuple[str, str, str]]:
    if max(len(old), len(new)) > _MOST_WORDS or not old or not new:
        yield "".join(old), "".join(new), ""
        return
    from difflib import SequenceMatcher  # noqa: PLC0415 - only where texts differ

    gone = came = ""
    for tag, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        same = "".join(old[a:b]) if tag == "equal" else ""
        if tag != "equal" or not same.strip():
            # A space between two changes belongs to both.
            gone, came = gone + "".join(old[a:b]), came + "".join(new[c:d])
            continue
        yield gone, came, same
        gone = came = ""
    yield gone, came, ""


def _marked(style: str, text: str) -> str:
    """Return a painted text; the space around it stays outside."""
    before, after = " " if text[:1].isspace() else "", " " if text[-1:].isspace() else ""
    return f"{before}{paint(style, _folded(text))}{after}"


def _folded(text: str) -> str:
    return " ".join(text.split())


def _shortened(text: str) -> str:
    if len(text) <= 2 * _CONTEXT + 20:
        return text
    return f"{text[:_CONTEXT].rsplit(' ', 1)[0]} … {text[-_CONTEXT:].split(' ', 1)[-1]}"
