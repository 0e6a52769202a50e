"""Tables of times with ratios, and bounds that hold or do not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tests.bench.samples import Samples

COLUMNS = ("", "p50 ms", "mean", "p95", "min", "ratio p50", "ratio min")


def rows(head: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table whose columns also line up for the eye."""
    widths = [max(len(row[column]) for row in (head, *body)) for column in range(len(head))]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    return "\n".join(_row(row, widths) for row in (head, rule, *body))


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    first = cells[0].ljust(widths[0])
    rest = [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
    return f"| {' | '.join([first, *rest])} |"


def times(samples: Mapping[str, Samples], one: str) -> str:
    """Return a table of times, with ratios to the one called `one`."""
    base = samples[one]
    body = [
        [
            name,
            *(f"{value * 1e3:.2f}" for value in (each.p50, each.mean, each.p95, each.low)),
            f"{each.p50 / base.p50:.2f}",
            f"{each.low / base.low:.2f}",
        ]
        for name, each in samples.items()
    ]
    return rows(COLUMNS, body)


def bound(law: str, what: str, value: float, limit: float, *, least: bool = False) -> str:
    """Return a line that says whether a figure keeps within its bound."""
    holds = value >= limit if least else value <= limit
    sign = "≥" if least else "≤"
    return f"{law}: {what}: {value:.2f} (bound {sign} {limit:g}) {'holds' if holds else 'DOES NOT HOLD'}"
