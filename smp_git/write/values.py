"""Values on a stage: checked, searched for secrets, put under keys and removed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Literal, cast

from smp_git.git.objects import BLOB, object_id
from smp_git.model.errors import ConflictError, InvalidError, shown
from smp_git.model.ids import value_id
from smp_git.model.memory import MAX_CONTENT_BYTES, Value, check_json, check_key, check_text
from smp_git.model.secrets.rules import Rules
from smp_git.read.values import Key, SeenValues, StoredValue, place_of, stored
from smp_git.write.stage import Stage

Secrets = Literal["refuse", "redact", "keep"]
POLICIES: Final = ("refuse", "redact", "keep")
AnyKey = str | Iterable[str]
# A longer text is JSON, which is one line then.
_LONGEST_TEXT: Final = MAX_CONTENT_BYTES


@dataclass(frozen=True, slots=True)
class PreparedValue:
    """A value that was checked and searched for secrets, as a file says it."""

    text: str
    fields: Mapping[str, Value]

    @property
    def value(self) -> Value:
        """What is to be stored."""
        return self.text or self.fields.get("value")

    @property
    def redacted(self) -> Mapping[str, int]:
        """The secrets that were taken out, by pattern."""
        found = self.fields.get("redacted")
        return cast("dict[str, int]", found) if isinstance(found, dict) else {}

    @classmethod
    def together(cls, values: Sequence[PreparedValue]) -> PreparedValue:
        """Return several values as one list."""
        counts: Counter[str] = Counter()
        for each in values:
            counts.update(each.redacted)
        return _prepared([each.value for each in values], dict(counts))


@dataclass(frozen=True, slots=True)
class Policy:
    """What becomes of secrets in values, and the members of mappings that are not searched."""

    secrets: Secrets = "refuse"
    opaque: frozenset[str] = frozenset()


def prepared(value: object, rules: Rules, policy: Policy) -> PreparedValue:
    """Return a value that is ready to be written; raise InvalidError if it may not be."""
    if isinstance(value, PreparedValue):
        return value
    checked = check_json(value, "a value")
    if policy.secrets == "keep":
        return _prepared(checked, {})
    said = rules.cleaned(None, {"value": _without(checked, policy.opaque)})
    clean = check_json(said.fields["value"], "a value")
    if said.redacted and policy.secrets == "refuse":
        bare = _without(checked, policy.opaque)
        kinds = ", ".join(name for name, _ in said.redacted)
        raise InvalidError(
            f"a value holds a secret ({kinds}) at {_difference(bare, clean)}; nothing was written",
            hint='secrets="redact" stores it without, secrets="keep" as it is, in the history too',
        )
    return _prepared(_with(clean, checked, policy.opaque), dict(said.redacted))


def _without(value: Value, opaque: frozenset[str]) -> Value:
    """Return a value without what is under some names, which is null there."""
    if not opaque:
        return value
    if isinstance(value, list):
        return [_without(each, opaque) for each in value]
    if isinstance(value, dict):
        return {
            name: None if name in opaque else _without(each, opaque) for name, each in value.items()
        }
    return value


def _with(clean: Value, given: Value, opaque: frozenset[str]) -> Value:
    """Return a clean value with what was given under some names; its members are in the same order."""
    if not opaque:
        return clean
    if isinstance(clean, list) and isinstance(given, list):
        return [_with(*each, opaque) for each in zip(clean, given, strict=True)]
    if isinstance(clean, dict) and isinstance(given, dict):
        return {
            name: each if old in opaque else _with(kept, each, opaque)
            for (name, kept), (old, each) in zip(clean.items(), given.items(), strict=True)
        }
    return clean


def writable(key: AnyKey, rules: Rules, policy: Policy) -> Key:
    """Return a key as it is; raise InvalidError if it may not be written."""
    wanted = key_of(key)
    return wanted if policy.secrets == "keep" else check_key(rules.names(wanted, "a key"))


def key_of(key: AnyKey) -> Key:
    """Return a key as a tuple of texts; raise InvalidError."""
    return check_key(key if isinstance(key, (str, tuple, list)) else _parts(key))


def _parts(key: object) -> object:
    return tuple(key) if isinstance(key, Iterable) else key


class Writing:
    """What a write sees and stages, under the lock: values as they are, and as the write leaves them.

    >>> with session.transaction() as tx:
    ...     written = tx.values().put("theme", "dark")
    >>> session.values().get("theme").value
    'dark'
    """

    def __init__(
        self, stage: Stage, rules: Rules, policy: Policy, replica: Callable[[], str]
    ) -> None:
        self._stage = stage
        self._seen = SeenValues(stage.base)
        self._rules = rules
        self._policy = policy
        self._replica = replica
        # What is put, and None for what is removed, by key.
        self._staged: dict[Key, StoredValue | None] = {}

    def get(self, key: AnyKey) -> StoredValue | None:
        """Return what is kept under a key, as this write would leave it."""
        wanted = key_of(key)
        if wanted in self._staged:
            return self._staged[wanted]
        return self._seen.get(wanted)

    def keys(self, prefix: AnyKey = ()) -> list[Key]:
        """Return the keys that begin so, as this write would leave them, sorted."""
        wanted = key_of(prefix) if prefix else ()
        there = set(self._seen.keys(wanted))
        mine = {key: kept for key, kept in self._staged.items() if key[: len(wanted)] == wanted}
        gone = {key for key, kept in mine.items() if kept is None}
        return sorted((there | mine.keys()) - gone)

    def put(
        self,
        key: AnyKey,
        value: object,
        *,
        expected: object = ...,
        beside: Mapping[str, object] = MappingProxyType({}),
    ) -> StoredValue:
        """Keep a value under a key; with `expected`, only if that revision is there.

        `beside` is what else is to be known of it, as fields of the memory; None removes one.
        """
        wanted = writable(key, self._rules, self._policy)
        ready = prepared(value, self._rules, self._policy)
        place = place_of(self._stage.base, wanted)
        before = self.get(wanted)
        revision = before.revision if before is not None else None
        if expected is not ... and expected != revision:
            raise ConflictError(
                f"the value of {_shown(wanted)} changed meanwhile; nothing was written",
                hint="read the new one and try again",
            )
        fields = {**beside, "key": wanted, "again": place.again or None, **ready.fields}
        memory = self._stage.set_value(place.id, ready.text, fields)
        data = self._stage.files.get(memory.path)
        revision = (
            object_id(BLOB, data) if data is not None else str(self._stage.base.blob(memory.id))
        )
        done = self._staged[wanted] = stored(memory, revision)
        return done

    def append(self, prefix: AnyKey, value: object) -> StoredValue:
        """Keep a value behind the others that were appended here; no other replica takes its key."""
        wanted = key_of(prefix)
        last = [
            key[-1].partition("-")[0] for key in self.keys(wanted) if len(key) == len(wanted) + 1
        ]
        number = max((int(each) for each in last if each.isdecimal()), default=0) + 1
        return self.put((*wanted, f"{number:012d}-{self._replica()}"), value)

    def remove(self, key: AnyKey) -> bool:
        """Remove what is kept under a key; return whether anything was."""
        wanted = key_of(key)
        is_there = self.get(wanted) is not None
        for again in range(place_of(self._stage.base, wanted).again + 1):
            self._stage.remove(value_id(wanted, again).text)
        self._staged[wanted] = None
        return is_there


def _shown(key: Key) -> str:
    return shown("/".join(key))


def _prepared(value: Value, redacted: Mapping[str, Value]) -> PreparedValue:
    """Return a value as a file says it: text that can be a text there, and all else as JSON."""
    fields: dict[str, Value] = {"redacted": dict(redacted)} if redacted else {}
    if isinstance(value, str) and value and len(value) <= _LONGEST_TEXT:
        with suppress(InvalidError):
            return PreparedValue(check_text(value, "a value"), fields)
    return PreparedValue("", {**fields, "value": value})


def _difference(left: Value, right: Value, place: str = "") -> str:
    """Return where two values differ first, as a path of keys and numbers."""
    if isinstance(left, dict) and isinstance(right, dict) and left.keys() == right.keys():
        pairs = [(f".{key}", left[key], right[key]) for key in left]
    elif isinstance(left, list) and isinstance(right, list):
        pairs = [(f"[{n}]", *two) for n, two in enumerate(zip(left, right, strict=True))]
    else:
        return place.removeprefix(".") or "its top"
    where, one, other = next(each for each in pairs if each[1] != each[2])
    return _difference(one, other, place + where)
