"""Commands about history: log, diff, blame."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Final

import typer

from smp_git.cli.app import command
from smp_git.cli.common import emit
from smp_git.cli.filters import Agents, Kinds, Since, Until
from smp_git.cli.graph import graph
from smp_git.cli.inputs import in_utc
from smp_git.cli.options import Id
from smp_git.cli.place import is_memory, session_of, tell_beginning
from smp_git.cli.screen import fitted, table, when
from smp_git.cli.terminal import paint
from smp_git.cli.values import as_words, changes
from smp_git.model.errors import InvalidError
from smp_git.model.given import as_kinds
from smp_git.model.memory import CommitId
from smp_git.read.history import MemoryDiff, Version
from smp_git.session import Session

_CHANGES: Final = {"added": "green", "removed": "red", "changed": "yellow"}
# So many revisions are compared.
_TWO: Final = 2


@command(example="smp log DEC-42 --patch")
def log(
    ctx: typer.Context,
    memory: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Only commits that changed this memory")
    ] = None,
    agent: Agents = [],  # noqa: B006 - typer copies it
    kind: Kinds = [],  # noqa: B006
    since: Since = None,
    until: Until = None,
    patch: Annotated[
        bool, typer.Option("-p", "--patch", help="Show what each commit changed, field by field")
    ] = False,
    with_graph: Annotated[
        bool, typer.Option("--graph", help="Draw branches and merges beside the commits")
    ] = False,
    limit: Annotated[
        int | None,
        typer.Option("-n", "--limit", metavar="N", min=1, help="Maximum number of results"),
    ] = None,
) -> None:
    """Show commits, newest first"""
    with session_of(ctx) as session:
        found = session.log(
            memory, limit=limit, since=since, until=until, agents=agent, kinds=as_kinds(kind)
        )
        diffs = _patches(session, found, memory) if patch else {}
        drawn = graph(found, session.log()) if with_graph else None
    value: dict[str, object] = {
        "versions": [{**each.as_json(), **_patch(diffs, each)} for each in found],
        "total": len(found),
    }
    emit(ctx, value, lambda: _log(found, diffs, drawn), empty="no commits", paged=True)


def _patches(
    session: Session, found: Sequence[Version], memory: str | None
) -> dict[CommitId, list[MemoryDiff]]:
    """Return what each of the commits changed."""
    diffs: dict[CommitId, list[MemoryDiff]] = {each.commit: [] for each in found}
    for change in session.changes(memory) if found else ():
        if change.version.commit in diffs:
            diffs[change.version.commit].append(change.diff)
        if change.version.at < found[-1].at:
            break
    return diffs


def _patch(diffs: Mapping[CommitId, Sequence[MemoryDiff]], version: Version) -> dict[str, object]:
    """Return what a commit changed, where that was asked for."""
    return {"memories": [each.as_json() for each in diffs[version.commit]]} if diffs else {}


def _log(
    found: Sequence[Version],
    diffs: Mapping[CommitId, Sequence[MemoryDiff]],
    drawn: dict[str, list[str]] | None,
) -> str:
    rows = table(
        ("COMMIT", "WHEN", "AGENT", "SUBJECT"),
        [
            (paint("yellow", each.commit[:9]), when(each.at), each.agent, _subject(each))
            for each in found
        ],
        spare=("WHEN", "AGENT"),
        heads=False,
        edge=max((len(line) + 1 for each in (drawn or {}).values() for line in each), default=0),
    ).splitlines()
    lines = []
    for row, version in zip(rows, found, strict=True):
        before, *after = drawn[version.commit] if drawn else [""]
        lines.append(f"{before} {row}" if before else row)
        lines += [
            f"{'    ' if not drawn else ''}{line}"
            for each in diffs.get(version.commit, ())
            for line in difference(each, whole=True, edge=4)
        ]
        lines += after
    return "\n".join(lines)


def _subject(version: Version) -> str:
    more = f" (and {version.untold} more)" if version.untold else ""
    return f"{version.subject}{more}"


@command(example="smp diff 'last week' DEC-42")
def diff(
    ctx: typer.Context,
    given: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[OLD] [NEW] [ID]...",
            help="Revisions or times to compare, HEAD~1 and HEAD if omitted; and memories, all if omitted",
        ),
    ] = None,
) -> None:
    """Show how memories changed, field by field

    With a memory alone, what its latest change did. A time before the session began is
    its beginning. Fields that came have a +, that went a -, and that differ a ~; of texts,
    the words that went are [-so-], and those that came {+so+}.
    """
    with session_of(ctx) as session:
        revisions, ids = _told_apart(session, given or [])
        for each in revisions:
            tell_beginning(session, each)
        found = _compared(session, revisions, ids)
    value: dict[str, object] = {"memories": [item.as_json() for item in found], "total": len(found)}
    emit(
        ctx,
        value,
        lambda: "\n".join(line for each in found for line in difference(each, whole=bool(ids))),
        empty="no difference",
        paged=True,
    )


def _told_apart(session: Session, given: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return which arguments are revisions, and which are memories."""
    revisions: list[str] = []
    ids: list[str] = []
    for each in given:
        (ids if is_memory(session, each) else revisions).append(each)
    ends = [in_utc(end or "HEAD") for each in revisions for end in each.split("..")]
    if len(ends) > _TWO:
        raise InvalidError(
            f"{len(ends)} revisions are given, and two are compared", hint="smp diff OLD NEW ID..."
        )
    return ends, ids


def _compared(
    session: Session, revisions: Sequence[str], ids: Sequence[str]
) -> tuple[MemoryDiff, ...]:
    """Return what is asked for; of memories alone, what their latest changes did."""
    if revisions:
        return session.diff(*revisions, ids=ids or None)
    latest = [session.log(name, limit=1)[0] for name in ids] or session.log(limit=1)
    first = min(latest, key=lambda each: each.at)
    # The first commit of a session has nothing before it that it could be compared with.
    return session.diff(f"{first.commit}^", ids=ids or None) if first.parents else ()


def difference(item: MemoryDiff, *, whole: bool = False, edge: int = 0) -> Iterator[str]:
    """Yield the lines that say how one memory differs; of one that came too, if it is `whole`."""
    what = f"{paint(_CHANGES[item.change], item.change)} {item.kind} {paint('cyan', item.id)}"
    yield fitted(f"{what}: {item.title}", edge)
    if item.change == "changed" or whole:
        yield from changes(item.fields)


@command(example="smp blame DEC-42")
def blame(ctx: typer.Context, memory: Id) -> None:
    """Show who set each field, and when"""
    with session_of(ctx) as session:
        found = session.blame(memory)
    value: dict[str, object] = {"fields": [item.as_json() for item in found], "total": len(found)}
    rows = [
        (
            paint("yellow", item.commit[:9]),
            when(item.at),
            item.agent,
            f"{paint('cyan', item.field)}: {as_words(item.value)}",
        )
        for item in found
    ]
    head = ("COMMIT", "WHEN", "AGENT", "FIELD")
    emit(ctx, value, lambda: table(head, rows, spare=("WHEN",), heads=False), paged=True)
