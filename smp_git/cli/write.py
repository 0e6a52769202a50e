"""Commands that write memories."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Final, cast

import typer

from smp_git.cli import editor
from smp_git.cli.app import command
from smp_git.cli.common import asker, emit
from smp_git.cli.inputs import fields_from, is_piped, lines_of, text_from, text_of_file
from smp_git.cli.options import Agent, Id
from smp_git.cli.place import session_of, tell_beginning
from smp_git.cli.progress import PROGRESS, counting
from smp_git.cli.terminal import note
from smp_git.cli.undo import note_left
from smp_git.format import yamlfile
from smp_git.model.errors import ConflictError, InvalidError, MemoryNotFoundError, nearest
from smp_git.model.fields import fields_of
from smp_git.model.given import NewKind
from smp_git.model.ids import is_elsewhere
from smp_git.model.memory import KINDS, Memory, kind_named
from smp_git.model.secrets.rules import Report
from smp_git.session import Session

Tags = Annotated[
    list[str], typer.Option("-t", "--tag", metavar="TAG", help="A tag, e.g. security.login")
]
Links = Annotated[
    list[str],
    typer.Option(
        "-l", "--link", metavar="REL:[SESSION:]ID", help="A link, e.g. resolves:FIND-0001"
    ),
]
Fields = Annotated[
    list[str],
    typer.Option(
        "-f", "--field", metavar="NAME=VALUE", help="A field; a value that is valid JSON is parsed"
    ),
]
File = Annotated[
    Path | None, typer.Option("--file", metavar="FILE", help="Take the text from this file")
]


def note_redacted(redacted: Report) -> None:
    """Tell a person which secrets a write took out."""
    for name, count in redacted:
        note(f"{count} {name} redacted" if count > 1 else f"a {name} was redacted")


def _wrote(ctx: typer.Context, session: Session, memory: Memory) -> None:
    """Print what was written: its id, or the memory as JSON."""
    emit(ctx, memory.as_json(), memory.id)
    note_redacted(memory.redacted)
    if memory.duplicate_of and memory.duplicate_of != memory.id:
        note(f"{memory.id} says the same as {memory.duplicate_of}")
    note_left(session, session.left_alone)
    for link in memory.links:
        if not is_elsewhere(link.target) and link.target not in session:
            note(f"{link.target} is not in this session")


@command(
    example='smp add decision "Use PostgreSQL" --agent architect --tag database --field rationale=ACID'
)
def add(
    ctx: typer.Context,
    kind: Annotated[
        str | None,
        typer.Argument(
            metavar="[KIND]", help="turn, decision, finding, preference, learning or artifact"
        ),
    ] = None,
    text: Annotated[
        str | None, typer.Argument(metavar="TEXT|-", help="The memory; - reads standard input")
    ] = None,
    agent: Agent = None,
    tag: Tags = [],  # noqa: B006 - typer copies it
    link: Links = [],  # noqa: B006
    field: Fields = [],  # noqa: B006
    file: File = None,
    when: Annotated[
        str | None, typer.Option("--when", metavar="TIME", help="When it happened, if not now")
    ] = None,
    skip_duplicates: Annotated[
        bool,
        typer.Option(
            "--skip-duplicates", help="Write nothing if a recent memory says the same thing"
        ),
    ] = False,
    batch: Annotated[
        Path | None,
        typer.Option(
            "--batch", metavar="FILE|-", help="Add a memory for each line of JSON, in one commit"
        ),
    ] = None,
) -> None:
    """Add a memory and print its id"""
    if batch is not None:
        _add_batch(ctx, batch, agent, [kind, text, *tag, *link, *field, file, when])
        return
    if kind is None:
        raise InvalidError("no kind", hint="smp add KIND TEXT, or --batch FILE")
    name = kind_named(kind).name
    with _text(text, file, f"A {name} of yours.") as content, session_of(ctx) as session:
        memory = session.add(
            cast("NewKind", name),
            content,
            agent=asker(ctx, agent),
            tags=tag,
            links=link,
            at=when,
            skip_duplicates=skip_duplicates,
            **_checked(fields_from(field)),
        )
        _wrote(ctx, session, memory)
        _note_unknown(memory, field)


@contextmanager
def _text(text: str | None, file: Path | None, about: str) -> Iterator[str]:
    """Yield the text of a memory: as given, or as a person writes it in the editor."""
    if editor.is_wanted(text, file):
        with editor.written(about) as content:
            yield content
    else:
        yield text_from(text, file)


def _add_batch(ctx: typer.Context, batch: Path, agent: str | None, others: list[object]) -> None:
    if any(others):
        raise InvalidError(
            "--batch takes no other memory", hint="each line says its own kind, text and fields"
        )
    with session_of(ctx) as session, _lines_of(batch) as lines:
        done = session.add_many(
            _objects(lines), agent=asker(ctx, agent), progress=counting("memories written:")
        )
        ids = [touch.id for touch in done.touches]
        emit(ctx, done.as_json(), "\n".join(ids))
        note_redacted(done.redacted)


@contextmanager
def _lines_of(batch: Path) -> Iterator[Iterable[bytes]]:
    if str(batch) == "-":
        with PROGRESS.hidden() if sys.stdin.isatty() else nullcontext():
            yield lines_of(sys.stdin.buffer)
        return
    try:
        with batch.open("rb") as file:
            yield lines_of(file)
    except OSError as error:
        raise InvalidError(f"cannot read {batch}: {error.strerror}") from None


def _objects(lines: Iterable[bytes]) -> Iterator[dict[str, object]]:
    for number, line in enumerate(lines):
        if line.strip():
            try:
                found = json.loads(line.decode("utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise InvalidError(f"line {number + 1} is not JSON: {error}") from None
            if not isinstance(found, dict):
                raise InvalidError(f"line {number + 1} is not a JSON object")
            yield found


def _note_unknown(memory: Memory, given: Iterable[str]) -> None:
    """Tell which fields are perhaps slips: their names are near to those of known ones."""
    known = fields_of(memory.kind)
    for name in (each.partition("=")[0].strip() for each in given):
        if name in known or name not in memory.fields:
            continue
        if meant := nearest(name, known) or nearest(name, _ALL_FIELDS - {name}):
            note(f"{name} is a field of your own, kept as it is; perhaps {meant} was meant")


_ALL_FIELDS: Final = frozenset(name for kind in KINDS for name in fields_of(kind))
_STRUCTURAL = ("agent", "tags", "links", "at", "skip_duplicates", "text", "kind", "id")


def _checked(fields: dict[str, object]) -> dict[str, Any]:
    for name in fields:
        if name in _STRUCTURAL:
            raise InvalidError(
                f"{name!r} is not a field", hint=f"use the option --{name.rstrip('s')}"
            )
    return fields


@command(example="smp edit DEC-42 --field status=rejected --add-tag storage")
def edit(
    ctx: typer.Context,
    memory: Id,
    text: Annotated[
        str | None, typer.Argument(metavar="[TEXT|-]", help="The new text, if it changes")
    ] = None,
    agent: Agent = None,
    add_tag: Annotated[
        list[str], typer.Option("--add-tag", metavar="TAG", help="A tag that it gets")
    ] = [],  # noqa: B006
    remove_tag: Annotated[
        list[str], typer.Option("--remove-tag", metavar="TAG", help="A tag that it loses")
    ] = [],  # noqa: B006
    link: Links = [],  # noqa: B006
    field: Annotated[
        list[str],
        typer.Option("-f", "--field", metavar="NAME=VALUE", help="Set a field; null removes it"),
    ] = [],  # noqa: B006
    file: File = None,
) -> None:
    """Change a memory and print its id

    On a terminal, without anything to change, opens its file in the editor. Turns cannot
    be edited: what was said was said. smp link --remove removes a link.
    """
    is_said = any((add_tag, remove_tag, link, field))
    if not is_said and editor.is_wanted(text, file):
        _edit_in_editor(ctx, memory, agent)
        return
    is_text = text is not None or file is not None or (not is_said and is_piped())
    content = text_from(text, file) if is_text else None
    if content is None and not is_said:
        raise InvalidError(
            "nothing to change", hint="a text, --field, --add-tag, --remove-tag or --link"
        )
    with session_of(ctx) as session:
        made = session.edit(
            memory,
            agent=asker(ctx, agent),
            text=content,
            add_tags=add_tag,
            remove_tags=remove_tag,
            add_links=link,
            **_checked(fields_from(field)),
        )
        _wrote(ctx, session, made)
        _note_unknown(made, field)


def _edit_in_editor(ctx: typer.Context, memory: str, agent: str | None) -> None:
    with session_of(ctx) as session:
        old = session.get(memory)
    with editor.changed(old) as changes, session_of(ctx) as session:
        if changes is None:
            emit(ctx, old.as_json(), "", empty="nothing changed")
            return
        with session.transaction(asker(ctx, agent)) as tx:
            if tx.get(old.id) != old:
                raise ConflictError(
                    f"{old.id} changed while it was in the editor; nothing was written",
                    hint="edit it again, as it is now",
                )
            made = tx.edit(old.id, **changes)
        if tx.change is not None and tx.change.commit is not None:
            made = replace(made, commit=tx.change.commit)
        _wrote(ctx, session, made)


@command(example='smp resolve FIND-1 --action "MFA added"')
def resolve(
    ctx: typer.Context,
    memory: Id,
    agent: Agent = None,
    action: Annotated[str | None, typer.Option(metavar="TEXT", help="What was done")] = None,
    by: Annotated[str | None, typer.Option(metavar="NAME", help="Who or what resolved it")] = None,
    verification: Annotated[
        str | None, typer.Option(metavar="TEXT", help="How that is known")
    ] = None,
    next_steps: Annotated[
        str | None, typer.Option(metavar="TEXT", help="What is to be done next")
    ] = None,
) -> None:
    """Mark a finding or a decision as resolved"""
    with session_of(ctx) as session:
        made = session.resolve(
            memory,
            agent=asker(ctx, agent),
            action=action,
            by=by,
            verification=verification,
            next_steps=next_steps,
        )
        _wrote(ctx, session, made)


@command(example='smp supersede DEC-1 "Use PostgreSQL 18"')
def supersede(
    ctx: typer.Context,
    memory: Id,
    text: Annotated[str | None, typer.Argument(metavar="TEXT|-", help="The new memory")] = None,
    agent: Agent = None,
    tag: Tags = [],  # noqa: B006
    field: Fields = [],  # noqa: B006
    file: File = None,
) -> None:
    """Add a memory that replaces another, and print its id"""
    about = f"It replaces {memory}."
    with _text(text, file, about) as content, session_of(ctx) as session:
        made = session.supersede(
            memory, content, agent=asker(ctx, agent), tags=tag, **_checked(fields_from(field))
        )
        _wrote(ctx, session, made)


@command(example="smp pin DEC-42")
def pin(ctx: typer.Context, memory: Id, agent: Agent = None) -> None:
    """Protect a memory from decay and compaction"""
    with session_of(ctx) as session:
        _wrote(ctx, session, session.pin(memory, agent=asker(ctx, agent)))


@command(example="smp unpin DEC-42")
def unpin(ctx: typer.Context, memory: Id, agent: Agent = None) -> None:
    """Let a memory decay again"""
    with session_of(ctx) as session:
        _wrote(ctx, session, session.unpin(memory, agent=asker(ctx, agent)))


@command(example="smp link DEC-2 resolves:FIND-1")
def link(
    ctx: typer.Context,
    memory: Id,
    target: Annotated[
        str,
        typer.Argument(
            metavar="REL:[SESSION:]ID",
            help="E.g. resolves:FIND-0001 or references:global:PREF-0001",
        ),
    ],
    to: Annotated[
        str | None,
        typer.Argument(metavar="[ID]", help="The other memory, if the word before is only REL"),
    ] = None,
    agent: Agent = None,
    remove: Annotated[bool, typer.Option("--remove", help="Remove the link instead")] = False,
) -> None:
    """Link a memory to another"""
    target = f"{target}:{to}" if to else target
    _, colon, other = target.partition(":")
    with session_of(ctx) as session:
        if colon and not remove:
            name = session.full_id(other)
            if not is_elsewhere(name) and name not in session:
                raise MemoryNotFoundError(f"no memory {other}", hint="smp list shows what is there")
        change = session.unlink if remove else session.link
        _wrote(ctx, session, change(memory, target, agent=asker(ctx, agent)))


@command(example='smp state veritas --field current_context="{\\"task\\": \\"verify\\"}"')
def state(
    ctx: typer.Context,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent")],
    field: Annotated[
        list[str],
        typer.Option("-f", "--field", metavar="NAME=VALUE", help="Set a field; null removes it"),
    ] = [],  # noqa: B006
    file: Annotated[
        Path | None,
        typer.Option(
            "--file",
            metavar="FILE|-",
            help="Replace the state by this YAML or JSON file; - for standard input",
        ),
    ] = None,
    at: Annotated[
        str | None, typer.Option("--at", metavar="REV|TIME", help="As of this revision or time")
    ] = None,
) -> None:
    """Show or change the state of an agent"""
    with session_of(ctx) as session:
        if file is not None:
            session.set_state(agent, yamlfile.read(text_of_file(file), str(file)))
        elif field:
            session.set_state(agent, {**session.state(agent), **fields_from(field)})
        tell_beginning(session, at)
        fields = dict(session.state(agent, at=at))
    value: dict[str, object] = {"agent": agent, "state": fields}
    emit(ctx, value, lambda: yamlfile.written(fields), changes=bool(field or file))
