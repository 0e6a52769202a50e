"""Writes the tables of docs/reference/settings.md from the settings: `python -m tests.settings_reference`."""

from __future__ import annotations

from collections.abc import Collection

from smp_git.model.checks import BOTH, SESSION, STORE
from smp_git.model.settings import table
from tests.support import ROOT

PAGE = ROOT / "docs/reference/settings.md"
_BEGIN = "<!-- begin {} -->\n"
_END = "<!-- end {} -->"
_TABLES = {"store": (STORE, BOTH), "session": (SESSION,)}


def text() -> str:
    """Return the page with its tables as the settings are now."""
    page = PAGE.read_text("utf-8")
    for name, places in _TABLES.items():
        before, _, rest = page.partition(_BEGIN.format(name))
        _, end, after = rest.partition(_END.format(name))
        page = f"{before}{_BEGIN.format(name)}\n{_table(places)}\n\n{end}{after}"
    return page


def _table(places: Collection[str]) -> str:
    shared = BOTH in places
    rows = [
        f"| setting | default | values |{' per session |' if shared else ''} meaning |",
        f"|---|---|---|---|{'---|' if shared else ''}",
    ]
    for row in table().values():
        if row.where in places:
            default = "none" if row.default_text == "none" else f"`{row.default_text}`"
            also = (" no |" if row.where == STORE else " yes |") if shared else ""
            rows.append(f"| `{row.name}` | {default} | {row.check.says} |{also} {row.meaning} |")
    return "\n".join(rows)


if __name__ == "__main__":
    PAGE.write_text(text(), "utf-8")
