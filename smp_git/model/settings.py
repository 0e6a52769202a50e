"""Settings: one table of names, defaults, values and meanings; checked, and overridden by a session.

A field of `Settings` is a row of the table. What reads the table follows from it: the checks,
`smp config`, and docs/reference/settings.md.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

from smp_git.model.checks import (
    BOTH,
    SESSION,
    STORE,
    Check,
    Setting,
    as_it_is,
    decay_numbers,
    mapping,
    number,
    relevance_weights,
    retention_days,
    switch,
    switch_or_kinds,
    text,
    whole,
    word,
)
from smp_git.model.errors import InvalidError, nearest, shown
from smp_git.model.lifecycle import Thresholds
from smp_git.model.memory import Value
from smp_git.model.names import CONFIG
from smp_git.model.secrets import REPLACEMENT
from smp_git.model.secrets import SETTINGS as REDACTION

if TYPE_CHECKING:
    from smp_git.model.secrets.rules import Rules

_ROW: Final = "row"
_T = TypeVar("_T")


def _row(default: _T, check: Check, where: str, meaning: str) -> _T:
    """Return a field of `Settings`, which is a row of the table."""
    shared = {_ROW: Setting("", cast("Value", default), check, where, meaning)}
    if isinstance(default, (dict, list)):
        return cast("_T", field(default_factory=default.copy, metadata=shared))
    return field(default=default, metadata=shared)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What holds for a store, or for a session in it.

    >>> store.settings.trash_days
    30
    """

    format: int = _row(
        1,
        whole(1, 1),
        STORE,
        "the format of the store; a program refuses a number it does not know",
    )
    durability: str = _row(
        "durable",
        word("durable", "relaxed"),
        STORE,
        "`durable`: a write is flushed to disk before it is acknowledged; `relaxed`: the operating system flushes it later",
    )
    lock_timeout_seconds: float = _row(
        5.0, number(3600), STORE, "how long a write waits for the session's lock, in all"
    )
    trash_days: float = _row(
        30,
        number(36_500),
        STORE,
        "how long a deletion can be undone; afterwards, the sealed copy is destroyed",
    )
    idle_after_hours: float = _row(
        24, number(1_000_000), BOTH, "after how long without use a session is `idle`"
    )
    decaying_after_days: float = _row(
        7,
        number(36_500),
        BOTH,
        "after how long without use a session is `decaying` and counts for less among others",
    )
    archive_after_days: float = _row(
        30,
        number(36_500),
        BOTH,
        "after how long without use `smp maintain` archives a session",
    )
    log: str = _row(
        "info",
        word("off", "error", "warn", "info", "debug"),
        STORE,
        "what is noted in `log.jsonl`, without content: `error`: damage, and what the disk refuses; `warn`: what was blocked, too; `info`: what changed the life of a session, too, and how long writes and queries took; `debug`: every call",
    )
    log_bytes: int = _row(
        1_000_000,
        whole(10_000, 1 << 30),
        STORE,
        "how large `log.jsonl` grows before it becomes `log.jsonl.1`, in the place of the one before",
    )
    retention: Mapping[str, Value] = _row(
        {"turn": 90, "decision": 365, "finding": 180, "preference": 730},
        mapping("days by kind, and strict: on or off", retention_days),
        BOTH,
        "after how many days memories of a kind are past their time, `null` for never; what a [preservation rule](../how-to/maintain.md#retention) keeps stays, unless `strict` is on",
    )
    auto_purge: bool = _row(
        False,  # noqa: FBT003 - a default
        switch(),
        BOTH,
        "whether `smp maintain` deletes what is past its retention; otherwise it only says how much that is",
    )
    auto_restore: bool = _row(
        False,  # noqa: FBT003 - a default
        switch(),
        STORE,
        "whether an archived session is restored by itself when it is opened; otherwise, that is an error that names the command",
    )
    key_dir: Path | None = _row(
        None,
        text("the full path of a folder outside the store"),
        STORE,
        "where the keys of deleted memories are; by default, in the user's data folder",
    )
    decay: Mapping[str, Value] = _row(
        {},
        mapping("a mapping", decay_numbers),
        BOTH,
        "how the priority of memories falls with time; see [below](#decay)",
    )
    relevance: Mapping[str, Value] = _row(
        {},
        mapping("a mapping", relevance_weights),
        BOTH,
        "what counts in ranking; see [below](#relevance)",
    )
    semantic: str = _row(
        "auto",
        word("auto", "on", "off"),
        STORE,
        "`auto`: similarity of meaning counts if the extra `smp-git[semantic]` is installed; `on`: a question without it is an error; `off`: words alone count; see [Search by meaning](../how-to/search-by-meaning.md)",
    )
    remote: str | None = _row(
        None,
        text("an address that contains {session}"),
        STORE,
        "the `origin` of every session that has none of its own, e.g. `git@host:memory/{session}.git`; a relative path is relative to the store",
    )
    ssh_key: Path | None = _row(
        None,
        text("the full path of a key file"),
        STORE,
        "the key for ssh; by default, ssh uses its agent and the user's configuration",
    )
    sync_timeout_seconds: float = _row(
        60.0, number(3600), STORE, "how long to wait for a remote that does not answer"
    )
    sync_limit_bytes: int = _row(
        536_870_912, whole(1, 1 << 40), STORE, "how much a remote may send at once"
    )
    quota_bytes: int = _row(
        10_485_760,
        whole(10_000, 1 << 40),
        BOTH,
        "how many bytes the tracked files of a session may have; a write that would exceed it is refused",
    )
    quota_warn_percent: int = _row(
        80, whole(1, 100), BOTH, "from here on a session warns, and is compacted by a tenth"
    )
    quota_critical_percent: int = _row(
        95, whole(1, 100), BOTH, "from here on a session is compacted by a fifth"
    )
    auto_compact: bool = _row(
        True,  # noqa: FBT003 - a default
        switch(),
        BOTH,
        "whether a session that reaches those percentages is compacted by itself",
    )
    compaction_preset: str = _row(
        "default",
        word("default", "relevance", "threshold"),
        BOTH,
        "what is compacted: `default`: what decayed, then old conversation, resolved findings and old working memory; `relevance`: the least relevant fifth; `threshold`: all of a relevance below 0.05",
    )
    summarizer: str | None = _row(
        None,
        text("a command"),
        STORE,
        "a program of yours that reads old conversation on its standard input and prints a summary; by default, a summary is made of sentences of the conversation",
    )
    summarizer_timeout_seconds: float = _row(
        60.0, number(3600), STORE, "how long that program may take"
    )
    readme: bool = _row(
        True,  # noqa: FBT003 - a default
        switch(),
        BOTH,
        "whether `smp maintain` keeps a [README.md](../how-to/maintain.md#a-readme-for-a-forge) of counts and ids, for whoever looks at the session on a forge",
    )
    redaction: Value = _row(
        True,  # noqa: FBT003 - a default
        switch_or_kinds(),
        BOTH,
        "whether secrets are removed before anything is written; of [single kinds](../explanation/redaction.md#what-is-searched) too, e.g. `{email: off}`",
    )
    redaction_patterns: Value = _row(
        {},
        as_it_is("names and regular expressions, or a list of expressions"),
        BOTH,
        "additional secrets; each has [one second](../explanation/redaction.md#your-own-patterns) for a text",
    )
    redaction_allow: Value = _row([], as_it_is("a list of texts"), BOTH, "what is not a secret")
    redaction_replacement: str = _row(
        REPLACEMENT,
        as_it_is("one line of 3 to 64 characters in brackets"),
        BOTH,
        "what stands in the place of a secret, in `[…]`, `(…)`, `<…>`, `{…}` or `«…»`; `{kind}` is the kind of secret, e.g. `github-token`",
    )
    language: str | None = _row(
        None,
        text("a text, e.g. en"),
        SESSION,
        "the language in which the user wants to be answered",
    )
    verbosity: str = _row(
        "medium", word("low", "medium", "high"), SESSION, "how much the user wants to be told"
    )
    custom: Mapping[str, Value] = _row(
        {},
        mapping("a mapping"),
        SESSION,
        "any other preferences of the session, which the program keeps and does not read",
    )
    # Which secrets are kept out, where a layer says something of it.
    own_rules: Rules | None = None
    # Where the settings of the store are.
    file: str = CONFIG

    @property
    def durable(self) -> bool:
        """Whether a write is flushed to disk before it is acknowledged."""
        return self.durability == "durable"

    @property
    def rules(self) -> Rules:
        """Which secrets are kept out, as all layers say."""
        return self.own_rules or _usual_rules()

    @property
    def trash_time(self) -> timedelta:
        """How long a deletion can be undone."""
        return timedelta(days=self.trash_days)

    @property
    def thresholds(self) -> Thresholds:
        """After how long without use a session is in a state."""
        return Thresholds(
            timedelta(hours=self.idle_after_hours),
            timedelta(days=self.decaying_after_days),
            timedelta(days=self.archive_after_days),
        )

    def checked(self, found: Mapping[str, Value], where: str, places: Collection[str]) -> Settings:
        """Return these settings with those that `found` gives; raise InvalidError."""
        values: dict[str, Any] = {}
        for name, value in found.items():
            row = row_of(name, where)
            if row.where not in places:
                raise _misplaced(row, where)
            below = getattr(self, name)
            both = isinstance(value, dict) and isinstance(below, dict)
            values[name] = _taken(
                row, {**below, **cast("dict[str, Value]", value)} if both else value, where
            )
        if any(name in found for name in REDACTION):
            values["own_rules"] = self.rules.overridden(found, where)
        return replace(self, **values) if values else self

    def of_store(self, found: Mapping[str, Value], file: str) -> Settings:
        """Return the settings of a store; what names a place on this machine is as written."""
        return replace(self.checked(found, file, (STORE, BOTH)), file=file)

    def of_session(self, found: Mapping[str, Value], where: str) -> Settings:
        """Return the settings of a session, given its overrides and preferences; raise InvalidError."""
        return self.checked(found, where, (SESSION, BOTH))

    def as_far_as_possible(self, found: Mapping[str, Value], where: str) -> InSession:
        """Return the settings of a session that somebody else may have written."""
        settings, problems, unsafe = self, list[str](), None
        for name, value in found.items():
            try:
                settings = settings.of_session({name: value}, where)
            except InvalidError as error:
                problems.append(error.message)
                unsafe = error if name in REDACTION else unsafe
        return InSession(settings, tuple(problems), unsafe)


@cache
def _usual_rules() -> Rules:
    from smp_git.model.secrets.rules import Rules  # noqa: PLC0415 - reading needs none

    return Rules()


class InSession(NamedTuple):
    """The settings that hold in a session, and what is wrong with those it says.

    `unsafe` is what is wrong with its rules for secrets: nothing is written by guess.
    """

    settings: Settings
    problems: tuple[str, ...]
    unsafe: InvalidError | None


@cache
def table() -> Mapping[str, Setting]:
    """Return every setting by its name."""
    return {
        each.name: each.metadata[_ROW]._replace(name=each.name)
        for each in fields(Settings)
        if _ROW in each.metadata
    }


def split(found: Mapping[str, Value]) -> dict[str, dict[str, Value]]:
    """Return what a session sets as `metadata.yaml` keeps it: preferences, and overrides."""
    own = {name for name, row in table().items() if row.where == SESSION}
    return {
        "preferences": {name: value for name, value in found.items() if name in own},
        "overrides": {name: value for name, value in found.items() if name not in own},
    }


# What settings are called elsewhere, or were called once.
_ELSEWHERE: Final = {
    "retention_days": "trash_days, how long a deletion can be undone, or retention, how long memories are kept",
    "max_session_size_mb": "quota_bytes",
    "lock_timeout_ms": "lock_timeout_seconds",
    "auto_redaction": "redaction",
    "compaction_threshold": "quota_warn_percent",
}


def row_of(name: str, where: str) -> Setting:
    """Return the setting of a name; raise InvalidError, with what was perhaps meant."""
    found = table().get(name)
    if found is not None:
        return found
    meant = _ELSEWHERE.get(name) or nearest(str(name), table())
    raise InvalidError(
        f"{where}: no setting {shown(name)}",
        hint=f"perhaps {meant}" if meant else "smp config list names every setting",
    )


def _taken(row: Setting, value: object, where: str) -> object:
    try:
        return row.check.take(value)
    except InvalidError as error:
        raise InvalidError(
            f"{where}: {row.name}: {error.message.removeprefix(': ')}", hint=error.hint
        ) from None
    except ValueError:
        raise InvalidError(
            f"{where}: {row.name} must be {row.check.says}, not {shown(value)}"
        ) from None


def _misplaced(row: Setting, where: str) -> InvalidError:
    if row.where == SESSION:
        return InvalidError(
            f"{where}: {row.name} is a preference of a single session",
            hint=f"smp config -s ID set {row.name}=VALUE",
        )
    return InvalidError(
        f"{where}: {row.name} is read only from config.yaml, for the whole store",
        hint=f"smp config set {row.name}=VALUE",
    )
