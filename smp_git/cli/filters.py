"""Options that choose memories, and the parts of a query that they ask for."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any

import typer

from smp_git.cli.inputs import text_of_file, value_from
from smp_git.format import yamlfile
from smp_git.model.errors import InvalidQueryError

Words = Annotated[
    str | None, typer.Argument(metavar="[TEXT]", help='Words, "phrases" and wild* cards')
]
Kinds = Annotated[list[str], typer.Option("-k", "--kind", metavar="KIND", help="Only this kind")]
TagsAll = Annotated[
    list[str],
    typer.Option("-t", "--tag", metavar="TAG", help="Only with this tag or a tag below it"),
]
TagsAny = Annotated[
    list[str], typer.Option("--any-tag", metavar="TAG", help="With one of these tags")
]
TagsNot = Annotated[
    list[str], typer.Option("--not-tag", metavar="TAG", help="Without this tag and those below it")
]
Agents = Annotated[
    list[str], typer.Option("-a", "--agent", metavar="AGENT", help="Only by this agent")
]
Since = Annotated[
    str | None, typer.Option("--since", metavar="TIME", help="Created at or after this time")
]
Until = Annotated[
    str | None, typer.Option("--until", metavar="TIME", help="Created at or before this time")
]
Where = Annotated[
    list[str],
    typer.Option(
        "-w",
        "--where",
        metavar="CONDITION",
        help="E.g. severity=critical, confidence>0.5, status~^op or 'impact exists'",
    ),
]
MinPriority = Annotated[
    float | None,
    typer.Option(
        "--min-priority",
        metavar="SHARE",
        help="Hide memories whose priority has decayed below this",
    ),
]
MinImportance = Annotated[
    float | None,
    typer.Option("--min-importance", metavar="SHARE", help="Only with at least this importance"),
]
NoSuperseded = Annotated[
    bool, typer.Option("--no-superseded", help="Leave out memories that were superseded")
]
Limit = Annotated[
    int, typer.Option("-n", "--limit", metavar="N", min=0, help="Maximum number of results")
]

# Another condition behind the first.
_SECOND = re.compile(
    r"(?:\s(?:and|or)\s|\s*(?:&&|\|\|)\s*)\s*[\w.]+\s*(?:=|!=|<|>|~)", re.IGNORECASE
)

# The longest first, so that != is not read as =.
_SIGNS = {
    "!=": "not_equals",
    "==": "equals",
    ">=": "",
    "<=": "",
    "~": "matches",
    ">": "greater_than",
    "<": "less_than",
    "=": "equals",
}


def conditions_of(given: list[str]) -> list[tuple[str, str, object]]:
    """Return the conditions of `--where`; raise InvalidQueryError."""
    return [_condition(text) for text in given]


def _condition(text: str) -> tuple[str, str, object]:
    words = text.split(None, 2)
    if (
        len(words) == 3  # noqa: PLR2004 - name, operator, value
        and words[0].replace(".", "_").replace("-", "_").isidentifier()
        and words[1].isidentifier()
    ):
        return words[0], words[1], value_from(words[2])
    if len(words) == 2 and words[1] in ("exists", "absent"):  # noqa: PLR2004
        return words[0], "exists", words[1] == "exists"
    found = [(text.find(sign), -len(sign), sign) for sign in _SIGNS if text.find(sign) > 0]
    if not found:
        raise InvalidQueryError(
            f"{text!r} is not a condition",
            hint="e.g. severity=critical, confidence>0.5, or 'tags contains security'",
        )
    _, _, sign = min(found)
    if not _SIGNS[sign]:
        raise InvalidQueryError(
            f"no operator {sign} in {text!r}", hint="e.g. 'confidence between [0.5, 1]'"
        )
    field, _, value = text.partition(sign)
    return field.strip(), _SIGNS[sign], value.strip() if sign == "~" else _wanted(value, text)


def _wanted(given: str, text: str) -> object:
    """Return the value of a condition; raise InvalidQueryError for what is no single value."""
    value = given.strip()
    if not value or value[0] in "=<>~!":
        raise InvalidQueryError(
            f"{text!r} is not a condition", hint="a condition is FIELD=VALUE, with =, !=, >, < or ~"
        )
    if _SECOND.search(value) and not value.startswith('"'):
        raise InvalidQueryError(
            f"{text!r} is more than one condition", hint="give --where once for each"
        )
    if value.count('"') % 2 and value[0] == '"':
        raise InvalidQueryError(f"a quotation mark in {text!r} is not closed", hint="close it")
    return value_from(value)


def specification(file: Path | None) -> dict[str, Any] | None:
    """Return what `--spec` names, or None."""
    return None if file is None else yamlfile.read(text_of_file(file), str(file))


def parts_of(given: dict[str, Any]) -> dict[str, Any]:
    """Return the parts of a query that the options of `smp query` ask for."""
    named = {
        "kinds": "kind",
        "tags": "tag",
        "any_tags": "any_tag",
        "not_tags": "not_tag",
        "agents": "agent",
        "since": "since",
        "until": "until",
        "min_priority": "min_priority",
        "min_importance": "min_importance",
        "min_relevance": "min_relevance",
        "include_decayed": "include_decayed",
        "sort": "sort",
        "aggregations": "measure",
    }
    parts = {part: given[option] for part, option in named.items() if _is_given(given.get(option))}
    if given.get("where"):
        parts["where"] = conditions_of(given["where"])
    flags = {
        "include_superseded": (not given.get("no_superseded"), True),
        "include_related": (given.get("related", False), False),
        "include_archived": (given.get("archived", False), False),
        "explain": (given.get("explain", False), False),
        "limit": (given.get("limit", 20), 20),
        "offset": (given.get("offset", 0), 0),
    }
    return parts | {name: value for name, (value, default) in flags.items() if value != default}


def filters_of(ctx: typer.Context) -> dict[str, Any]:
    """Return the filters that the options ask for."""
    return {name: part for name, part in parts_of(ctx.params).items() if name != "limit"}


def _is_given(value: object) -> bool:
    # Some versions of typer say nothing by an empty list, others by an empty tuple.
    return value is not None and value is not False and value != [] and value != ()
