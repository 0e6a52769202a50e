"""The settings of decay and relevance: a preset each, and what differs from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from smp_git.model.decay import PRESETS, Preset
from smp_git.model.errors import InvalidError, shown
from smp_git.model.memory import Value
from smp_git.model.relevance import Weights


class Scales(NamedTuple):
    """How priorities fall, and how relevance is weighed; `product` multiplies instead."""

    preset: Preset
    weights: Weights
    product: bool


def scales(decay: Mapping[str, Value], relevance: Mapping[str, Value], file: str) -> Scales:
    """Return what the settings `decay` and `relevance` of a file say; raise InvalidError."""
    rates, weights = dict(decay), dict(relevance)
    preset, formula = rates.pop("preset", "default"), weights.pop("preset", "weighted")
    if preset not in PRESETS:
        raise InvalidError(f"{file}: no decay preset {shown(preset)}", hint=f"presets are {', '.join(PRESETS)}")  # fmt: skip
    if formula not in ("weighted", "product"):
        raise InvalidError(f"{file}: no relevance preset {shown(formula)}", hint="weighted or product")  # fmt: skip
    try:
        return Scales(
            PRESETS[str(preset)].override(rates), Weights().override(weights), formula == "product"
        )
    except ValueError as error:
        raise InvalidError(f"{file}: {error}") from None
