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
