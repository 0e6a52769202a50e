"""Access rules: which memories a line like `findings.by_severity:critical` means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

from smp_git.ask.sources import DONE
from smp_git.format.lines import Entry
from smp_git.model.errors import InvalidError, shown
from smp_git.model.ids import parse_id
from smp_git.model.memory import KINDS, SEVERITIES, agent_name

# The words of the workflow files, and those of the program.
_NOUNS: Final[Mapping[str, str]] = {
    "conversation": "turn", "conversation_history": "turn", "turns": "turn",
    "decisions": "decision", "findings": "finding", "preferences": "preference",
    "user_preferences": "preference", "learnings": "learning", "agent_states": "state",
    "agent_state": "state", "states": "state", "artifacts": "artifact", "values": "value",
    **{name: name for name in KINDS},
}  # fmt: skip
_SHARED: Final = "shared_"
_OWN_STATE: Final = "working_memory"
# What a word behind the noun names, for kinds that have something of the sort.
_NAMED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    "preference": ("key", "category", "topic"),
    "learning": ("topic", "category"),
}
_FIELDS: Final = (
    "severity", "category", "status", "topic", "tag", "agent", "key", "type", "speaker",
    "role", "impact",
)  # fmt: skip
_RULE = re.compile(r"([a-z_]+)(?:\.(.+))?")
_BY = re.compile(r"by_([a-z]+):(.+)")
_LAST = re.compile(r"last_(\d{1,6})(?:_turns?)?")
_WHERE: Final = "docs/reference/requirements.md lists what a rule may say"

# A memory with this tag is for the agent that wrote it alone.
PRIVATE: Final = "private"


@dataclass(frozen=True, slots=True)
class AccessRule:
    """One line of what may be read or written, as it was given and as it is tested.

    With `last`, only so many of the newest memories of the kind are meant.
    """

    text: str
    kinds: frozenset[str]
    test: Callable[[Entry], bool]
    last: int | None = None

    def means(self, entry: Entry) -> bool:
        """Whether a memory is one of those meant; how new it is counts elsewhere."""
        return kind_of(entry) in self.kinds and self.test(entry)

    @property
    def is_whole(self) -> bool:
        """Whether it means every memory of its kinds, whatever they say."""
        return self.test is _always and self.last is None


def kind_of(entry: Entry) -> str:
    """Return the kind of a memory in the index."""
    return parse_id(entry.id).kind.name


def parse_rule(text: object, agent: str) -> AccessRule:
    """Return the rule that a line says, `{self}` being the agent; raise InvalidError."""
    if not isinstance(text, str) or not (match := _RULE.fullmatch(text.strip())):
        raise InvalidError(f"{shown(text)} is not an access rule", hint=_WHERE)
    noun, rest = match[1], (match[2] or "").replace("{self}", agent)
    if noun == _OWN_STATE:
        noun = "agent_states"
    if noun == "all" and not rest:
        return AccessRule(text, frozenset(KINDS), _always)
    is_shared = noun.startswith(_SHARED)
    kind = _NOUNS.get(noun.removeprefix(_SHARED))
    if kind is None:
        known = ", ".join(name for name in _NOUNS if name.endswith("s"))
        raise InvalidError(
            f"{shown(text)}: there is no {noun} to read or write",
            hint=f"a rule begins with conversation, {known} or all",
        )
    if match_last := _LAST.fullmatch(rest):
        return AccessRule(text, frozenset((kind,)), _always, int(match_last[1]))
    test = _selector(text, kind, rest) if rest else _always
    return AccessRule(
        text, frozenset((kind,)), partial(_both, _is_shared, test) if is_shared else test
    )


def _selector(text: str, kind: str, rest: str) -> Callable[[Entry], bool]:
    """Return the test that the part behind the noun stands for."""
    if match := _BY.fullmatch(rest):
        return _by(text, match[1], [part.strip() for part in match[2].split(",")])
    if rest in ("unresolved", "resolved") and kind in ("finding", "decision"):
        return partial(_is_resolved, kind, rest == "resolved")
    if kind == "state":
        return partial(_has, "id", frozenset((f"state-{agent_name(rest)}",)))
    if kind in _NAMED_BY and _folded(rest):
        return partial(_is_called, _NAMED_BY[kind], _folded(rest))
    raise InvalidError(f"{shown(text)}: {shown(rest)} selects nothing of its kind", hint=_WHERE)


def _by(text: str, field: str, values: list[str]) -> Callable[[Entry], bool]:
    if field not in _FIELDS:
        raise InvalidError(
            f"{shown(text)}: nothing is selected by {field}", hint=f"by_{', by_'.join(_FIELDS)}"
        )
    if field == "severity" and not set(values) <= set(SEVERITIES):
        raise InvalidError(
            f"{shown(text)} names no severity", hint=f"severities are {', '.join(SEVERITIES)}"
        )
    if field == "tag":
        return partial(_is_below, frozenset(values))
    if field == "topic":
        return partial(_is_about, frozenset(map(_folded, values)))
    if field == "agent":
        values = [agent_name(value) for value in values]
    return partial(_has, field, frozenset(values))


# The tests are values that can be compared, so that rules can.


def _always(_: Entry) -> bool:
    return True


def _both(one: Callable[[Entry], bool], two: Callable[[Entry], bool], entry: Entry) -> bool:
    return one(entry) and two(entry)


def _has(field: str, values: frozenset[str], entry: Entry) -> bool:
    return getattr(entry, field) in values


def _is_below(tags: frozenset[str], entry: Entry) -> bool:
    return any(tag == each or tag.startswith(f"{each}.") for tag in entry.tags for each in tags)


def _is_about(topics: frozenset[str], entry: Entry) -> bool:
    said = {_folded(value) for value in (entry.topic, entry.category, entry.key) if value}
    said |= {_folded(part) for tag in entry.tags for part in tag.split(".")}
    return not topics.isdisjoint(said)


def _is_called(fields: tuple[str, ...], name: str, entry: Entry) -> bool:
    return any(_folded(getattr(entry, field) or "") == name for field in fields)


def _is_resolved(kind: str, wanted: bool, entry: Entry) -> bool:  # noqa: FBT001 - bound by partial
    return (entry.status in DONE[kind]) is wanted


def _is_shared(entry: Entry) -> bool:
    return not is_private(entry)


def is_private(entry: Entry) -> bool:
    """Whether a memory is for the agent that wrote it alone: a state, or one tagged so."""
    return kind_of(entry) == "state" or any(
        tag == PRIVATE or tag.startswith(f"{PRIVATE}.") for tag in entry.tags
    )


def _folded(text: str) -> str:
    return re.sub(r"[\W_]+", "-", text.casefold()).strip("-")
