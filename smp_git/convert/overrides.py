"""Settings of other programs, as far as a session can have them: size, decay, compaction, retention."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from smp_git.convert.entries import KINDS_THERE

_MEGABYTE: Final = 1024 * 1024
# What the format's description gives a session that says nothing else.
_HALF_LIFE_HOURS: Final = 168
_LEAST_FACTOR: Final = 0.1
_PREFERENCES: Final = ("language", "verbosity", "custom")


def of_001(config: Mapping[str, object]) -> dict[str, object]:
    """Return what `config.json` of a folder of sessions (001) sets for each of them.

    Redaction is never switched off by what is imported.
    """
    said = _part(config, "memory_config")
    decay, compaction = _part(said, "decay"), _part(said, "compaction")
    rates = {
        kind: {"rate": rate * 24}
        for kind, rate in _by_kind(_part(decay, "rates"))
        if isinstance(rate, (int, float))
    }
    days = dict(_by_kind(_part(_part(said, "privacy"), "retention_days")))
    out = {
        **_size(_part(said, "storage")),
        "decay": {"preset": "boosted", **_floor(decay, "minimum_factor"), **rates}
        if rates
        else None,
        "auto_compact": compaction.get("enabled"),
        "compaction_preset": "relevance"
        if compaction.get("strategy") == "relevance_based"
        else None,
        "retention": days or None,
    }
    return _given(out)


def of_004(config: Mapping[str, object], metadata: Mapping[str, object]) -> dict[str, object]:
    """Return what `config.json` sets for each session, and `metadata.json` for its own (004)."""
    storage = _part(config, "storage")
    shared, own = _part(config, "decay"), _part(metadata, "decay_config")
    compaction = _part(metadata, "compaction_config")
    threshold = compaction.get("threshold", storage.get("compaction_threshold"))
    out = {
        **_size(storage),
        "auto_compact": compaction.get("auto_compact", storage.get("auto_compact")),
        **_thresholds(threshold),
        "decay": {**_decay_004(shared), **_decay_004(own)} or None,
        **{name: _part(metadata, "preferences").get(name) for name in _PREFERENCES},
    }
    return _given(out)


def to_004(said: Mapping[str, object]) -> dict[str, object]:
    """Return what a session sets as its `metadata.json` says it (004)."""
    decay = _part(said, "decay")
    config = {
        "enabled": decay.get("enabled", True),
        "half_life_hours": decay.get("half_life_hours", _HALF_LIFE_HOURS),
        "min_decay_factor": decay.get("floor", _LEAST_FACTOR),
    }
    return {
        **({"decay_config": config} if decay else {}),
        "preferences": {
            "language": said.get("language"),
            "verbosity": said.get("verbosity", "medium"),
            "custom": _part(said, "custom"),
        },
    }


def _decay_004(said: Mapping[str, object]) -> dict[str, object]:
    if not said:
        return {}
    kinds = {
        kind: _given({"half_life_hours": each.get("half_life_hours")})
        if each.get("decay_enabled", True)
        else {"rate": 0}
        for kind, each in _by_kind(_part(said, "type_specific"))
        if isinstance(each, Mapping)
    }
    shared = {"enabled": said.get("enabled"), "half_life_hours": said.get("half_life_hours")}
    return {"preset": "half-life", **_given(shared), **_floor(said, "min_decay_factor"), **kinds}


def _floor(said: Mapping[str, object], name: str) -> dict[str, object]:
    return _given({"floor": said.get(name)})


def _size(storage: Mapping[str, object]) -> dict[str, object]:
    size = storage.get("max_session_size_mb")
    known = isinstance(size, (int, float)) and not isinstance(size, bool) and 0 < size < _MEGABYTE
    return (
        {"quota_bytes": int(size * _MEGABYTE)} if known and isinstance(size, (int, float)) else {}
    )


def _thresholds(share: object) -> dict[str, object]:
    if not isinstance(share, (int, float)) or isinstance(share, bool) or not 0 < share <= 1:
        return {}
    percent = round(share * 100)
    return {"quota_warn_percent": percent, "quota_critical_percent": max(percent, 95)}


def _by_kind(said: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield what is said of each kind, under our name of it."""
    for name, value in said.items():
        kind = KINDS_THERE.get(name) or KINDS_THERE.get(name.removesuffix("s"))
        if kind is not None:
            yield kind, value


def _part(said: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = said.get(name)
    return found if isinstance(found, Mapping) else {}


def _given(said: Mapping[str, object]) -> dict[str, object]:
    return {name: value for name, value in said.items() if value is not None}
