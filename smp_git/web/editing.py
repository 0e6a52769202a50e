"""The form of a memory: its fields as texts to edit, and what somebody made of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from textwrap import dedent
from typing import Final, NamedTuple

from smp_git.format import yamlfile
from smp_git.model.errors import InvalidError
from smp_git.model.memory import (
    CONFIDENCE_RANKS,
    CONTESTED,
    KINDS,
    SEVERITIES,
    Memory,
    Value,
    check_given,
)

# The names of inputs: a field may have any name.
_FIELD: Final = "field."
_NEW: Final = ("new.name", "new.value")
_LONG: Final = 80
# What has a form of its own, or is no field.
_NOT_HERE: Final = frozenset(
    ("pinned", CONTESTED, "resolution", "supersedes", "text", "tags", "links", "memory_id", "agent")
)


_CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "severity": SEVERITIES,
    "confidence": tuple(CONFIDENCE_RANKS),
    "impact": ("low", "medium", "high", "critical"),
}


class FormField(NamedTuple):
    """One input: its name in the form, the field, its text, and whether it is YAML."""

    key: str
    name: str
    text: str
    is_yaml: bool = False
    is_empty: bool = False

    @property
    def is_long(self) -> bool:
        """Whether it takes more than a line."""
        return len(self.text) > _LONG or "\n" in self.text or self.is_yaml

    @property
    def choices(self) -> tuple[str, ...]:
        """The usual values, if there are any."""
        return _CHOICES.get(self.name, ())

    @property
    def rows(self) -> int:
        """How many lines it is shown with."""
        lines = self.text.count("\n") + len(self.text) // _LONG + 1
        return min(24, max(2, lines + 1))

    @property
    def hint(self) -> str:
        """What somebody who edits it has to know."""
        return "as YAML" if self.is_yaml else ""


def form_of(memory: Memory) -> tuple[FormField, ...]:
    """Return the inputs for a memory: its text, its fields, and those that its kind knows."""
    return tuple(_inputs(memory))


def _inputs(memory: Memory) -> Iterator[FormField]:
    kind = KINDS[memory.kind]
    if memory.kind != "state":
        yield FormField("text", kind.main, memory.content)
    known = ("title", *kind.fields, "confidence", "importance", "source")
    for name in dict.fromkeys((*memory.fields, *known)):
        if name not in _NOT_HERE:
            value = memory.fields.get(name)
            is_yaml = value is not None and not isinstance(value, str)
            text = value if isinstance(value, str) else as_yaml(value)
            yield FormField(f"{_FIELD}{name}", name, text, is_yaml, is_empty=value is None)


def sent_form(
    fields: Iterable[FormField], form: Mapping[str, str], before: Iterable[FormField] = ()
) -> tuple[FormField, ...]:
    """Return inputs with what somebody typed; what was left as it was before is as it is now."""
    shown = {each.key: _plain(each.text) for each in before}
    return tuple(
        each._replace(text=_plain(form[each.key]), is_empty=False)
        if each.key in form
        and _plain(form[each.key]) not in (_plain(each.text), shown.get(each.key))
        else each
        for each in fields
    )


def as_yaml(value: Value) -> str:
    """Return a value as the YAML that stands for it in a form."""
    if value is None:
        return ""
    # Only a mapping is written; its one key is taken away again.
    text = yamlfile.written({"v": value}).partition(":")[2]
    return dedent(text.strip("\n")) if "\n" in text.strip("\n") else text.strip()


class SentChange(NamedTuple):
    """What somebody changed: the text if it is another, and the fields; None removes one."""

    text: str | None
    fields: Mapping[str, Value]

    def __bool__(self) -> bool:
        return self.text is not None or bool(self.fields)


def edited(memory: Memory, form: Mapping[str, str]) -> SentChange:
    """Return what a form that was sent changes; raise InvalidError.

    Only what differs from what was shown is changed: a browser writes ends of lines in its
    own way.
    """
    text: str | None = None
    fields: dict[str, Value] = {}
    for each in form_of(memory):
        sent = form.get(each.key)
        if sent is None or _plain(sent) == _plain(each.text):
            continue
        if each.key == "text":
            text = _plain(sent)
        else:
            fields[each.name] = _value(memory, each, _plain(sent))
    name, value = (form.get(key, "").strip() for key in _NEW)
    if name:
        if name in _NOT_HERE:
            raise InvalidError(f"{name} is not set here")
        if name in memory.fields or name in fields:
            raise InvalidError(f"there is a field {name} already", hint="change it above")
        fields[name] = _value(memory, FormField("", name, ""), _plain(value))
    return SentChange(text, fields)


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _value(memory: Memory, field: FormField, text: str) -> Value:
    """Return the value that a text stands for: itself, unless the field takes something else."""
    if not text.strip():
        return None
    if field.is_yaml:
        return _read(text, field.name)
    try:
        check_given(KINDS[memory.kind], {field.name: text})
    except InvalidError as error:
        try:
            value = _read(text, field.name)
            check_given(KINDS[memory.kind], {field.name: value})
        except InvalidError:
            raise error from None
        return value
    return text


def _read(text: str, name: str) -> Value:
    """Return the value of a YAML text."""
    block = "\n".join(f"  {line}" for line in text.strip("\n").split("\n"))
    return yamlfile.read(f"v:\n{block}\n", f"the field {name}")["v"]
