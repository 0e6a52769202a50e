"""The templates: one environment that escapes everything, with its filters."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from smp_git.model.errors import InvalidError
from smp_git.web.charts import height
from smp_git.web.wording import FILTERS

if TYPE_CHECKING:
    from jinja2 import Environment

_HERE: Final = Path(__file__).parent
_TEMPLATES: Final = _HERE / "templates"
_STATIC: Final = _HERE / "static"
_EXCERPT: Final = 260
_LABEL: Final = 14


def check_installed(what: str, *more: str) -> None:
    """Raise InvalidError if the extra is not installed, as far as this needs it."""
    if any(find_spec(name) is None for name in ("jinja2", *more)):
        raise InvalidError(
            f"{what} needs the extra web, which is not installed", hint="pip install 'smp-git[web]'"
        )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 - an extra

    made = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    made.filters.update(FILTERS)
    made.filters["excerpt"] = excerpt
    made.filters["short_id"] = short_id
    made.filters["plain"] = plain
    made.filters["body"] = body
    made.globals["height"] = height
    made.globals["m"] = made.get_template("macros.html").module
    return made


def prepare() -> None:
    """Compile the templates, so that nobody waits for it at the first page."""
    made = _environment()
    for name in made.list_templates():
        made.get_template(name)


def page(template: str, **values: object) -> str:
    """Return a page; every value in it is escaped."""
    return _environment().get_template(template).render(**values)


def pieces(template: str, **values: object) -> Iterator[str]:
    """Yield a page piece by piece, so that a long one is never whole in memory."""
    stream = _environment().get_template(template).stream(**values)
    stream.enable_buffering(200)
    return iter(stream)


def asset(name: str) -> str:
    """Return a file that is shipped with the package."""
    return (_STATIC / name).read_text("utf-8")


@cache
def assets() -> frozenset[str]:
    """Return the names of the files that pages ask for."""
    return frozenset(each.name for each in _STATIC.iterdir())


def digest(text: str) -> str:
    """Return what a content security policy calls a script or a style that is in the page."""
    return f"'sha256-{b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def excerpt(content: str, title: str) -> str:
    """Return the beginning of a text on one line, without the title that stands above it."""
    text = " ".join(content.split())
    rest = text.removeprefix(title.rstrip("…")).lstrip(" .:,;-–—") if title else text
    rest = rest or text
    return rest if len(rest) <= _EXCERPT else f"{rest[: _EXCERPT - 1].rsplit(' ', 1)[0]}…"


def plain(title: str, name: str) -> str:
    """Return a title without the signs of a heading; the id of what has none."""
    return title.lstrip("# ") or name


def body(content: str, title: str) -> str:
    """Return a text without the title that stands above it."""
    text = content.strip()
    return text.removeprefix(title).lstrip() if title and not title.endswith("…") else text


def short_id(name: str) -> str:
    """Return an id that fits below a dot of a graph."""
    return name if len(name) <= _LABEL else f"{name[: _LABEL - 1]}…"
