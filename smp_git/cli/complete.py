"""Completion: the scripts for shells, and what they ask for: what may stand next on a line."""

from __future__ import annotations

import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from smp_git.cli.catalogue import ENTRIES, GROUPS, ROOMS
from smp_git.cli.common import COMMON, take_note
from smp_git.cli.help import Param, common, describe
from smp_git.cli.place import session_of, store_of
from smp_git.cli.terminal import put, visible
from smp_git.model.errors import SmpError
from smp_git.model.fields import fields_of
from smp_git.model.ids import short_id
from smp_git.model.memory import CONFIDENCE_RANKS, KINDS, SEARCHED, SEVERITIES

SHELLS: Final = ("bash", "zsh", "fish")
_FOLDER: Final = Path(__file__).parent / "shells"
# Nobody reads more than so many.
_MOST: Final = 200
# What the parts of a place are put together with; what stands in brackets may be left out.
_PARTS: Final = re.compile(r"[^\w\[\]=:|>-]+")
_STATUSES: Final = ("open", "active", "resolved", "superseded", "rejected")
_RELATIONS: Final = ("resolves", "references", "supersedes", "led_to", "influenced", "duplicates")

Candidate = tuple[str, str]


class CommandLine(NamedTuple):
    """A command line up to the cursor: its command, what is there of its arguments, the last word."""

    command: str
    arguments: tuple[str, ...]
    current: str


def script(shell: str) -> str:
    """Return what completes commands in a shell."""
    return (_FOLDER / f"smp.{shell}").read_text().rstrip("\n")


def complete(arguments: Sequence[str]) -> None:
    """Print what may stand next, a line for each, its meaning behind a tab."""
    shell, *words = arguments
    if shell == "bash":
        words = _words(words[0] if words else "")
    found = candidates(words[:-1], words[-1] if words else "")
    cut = _bash_prefix(words[-1]) if shell == "bash" and words else 0
    lines = (visible(f"{value[cut:]}\t{text}".rstrip()) for value, text in found)
    with suppress(BrokenPipeError):
        put("".join(f"{line}\n" for line in lines), sys.stdout)


def _words(line: str) -> list[str]:
    """Return the words of a line of bash behind the program; the last one may be unfinished."""
    for text in (line, f'{line}"', f"{line}'"):
        try:
            words = shlex.split(text)
        except ValueError:
            continue
        # Behind a space a new word begins.
        words += [""] if line[-1:].isspace() and text is line else []
        return words[2:] if words[:2] == ["git", "smp"] else words[1:]
    return []


def _bash_prefix(word: str) -> int:
    """Return how much of a word bash holds for words of their own, and does not want again."""
    return max(word.rfind(":"), word.rfind("=")) + 1


def candidates(words: Sequence[str], current: str) -> list[Candidate]:
    """Return what may stand next; nothing where that cannot be told, or names files."""
    try:
        return list(_sorted_out(words, current))
    except (SmpError, OSError):
        # Whoever presses a key wants no error.
        return []


def _sorted_out(words: Sequence[str], current: str) -> Iterator[Candidate]:
    seen = 0
    for value, text in _candidates(words, current):
        if value.startswith(current) and seen < _MOST:
            seen += 1
            yield value, " ".join(text.split())


def _candidates(words: Sequence[str], current: str) -> Iterator[Candidate]:
    if not words and not current.startswith("-"):
        yield from ((each, entry.summary) for each, entry in ENTRIES.items())
        return
    shared = {name: each for each in common() for name in each.names}
    name, rest = _command(words, shared)
    if name is not None and name in ROOMS:
        yield from _of_command(name, rest, current, shared)
    elif name is None and words and words[-1] in shared and shared[words[-1]].place:
        yield from _of_place(shared[words[-1]].place, CommandLine("", (), current))
    elif name is None and current.startswith("-"):
        yield from _options(common(), words)
    elif name is None:
        yield from ((each, entry.summary) for each, entry in ENTRIES.items())


def _of_command(
    name: str, rest: Sequence[str], current: str, shared: Mapping[str, Param]
) -> Iterator[Candidate]:
    """Yield what may stand behind a command."""
    found = describe(name)
    known = {**shared, **{each: option for option in found.options for each in option.names}}
    arguments = _positional(rest, known)
    line = CommandLine(name, tuple(arguments), current)
    option, equals, _ = current.partition("=")
    if rest and rest[-1] in known and known[rest[-1]].place:
        yield from _of_place(known[rest[-1]].place, line)
    elif equals and option in known:
        inner = CommandLine(name, line.arguments, current[len(option) + 1 :])
        yield from (
            (f"{option}={value}", text) for value, text in _of_place(known[option].place, inner)
        )
    elif current.startswith("-"):
        yield from _options((*found.options, *common()), rest)
    elif found.arguments:
        at = min(len(arguments), len(found.arguments) - 1)
        if at == len(arguments) or found.arguments[at].repeats:
            yield from _of_place(found.arguments[at].place, line)


def _command(words: Sequence[str], shared: Mapping[str, Param]) -> tuple[str | None, Sequence[str]]:
    """Return the command of a line and what follows it, and take note of what is before it."""
    name: str | None = None
    rest: list[str] = []
    each = iter(words)
    for word in each:
        option, equals, value = word.partition("=")
        if option in shared and shared[option].place:
            given = value if equals else next(each, "")
            take_note({_name_of(shared[option]): given})
            rest += [option] if not equals and given == "" else []
        elif name is None and not word.startswith("-"):
            name = word
        elif name is not None:
            rest.append(word)
    return name, rest


def _name_of(option: Param) -> str:
    """Return the parameter that a common option is."""
    words = {"-s": "session", "-C": "folder"}.get(option.names[0]) or option.names[-1].strip("-")
    return next(name for name in COMMON if name.endswith(f"_{words}"))


def _positional(words: Sequence[str], known: Mapping[str, Param]) -> list[str]:
    """Return the arguments among words, without options and their values."""
    found, each = [], iter(words)
    for word in each:
        if word in known:
            if known[word].place:
                next(each, None)
        elif not word.startswith("-"):
            found.append(word)
    return found


def _options(options: Sequence[Param], given: Sequence[str]) -> Iterator[Candidate]:
    for option in options:
        if option.repeats or not set(option.names) & set(given):
            yield from ((name, option.text) for name in option.names if name.startswith("--"))


def _of_place(place: str, line: CommandLine) -> Iterator[Candidate]:
    """Yield what can be put in the place of an argument, or of the value of an option."""
    plain = place.replace("[-]", "").replace("...", "")
    if plain.startswith("REL:"):
        yield from _link(line)
    elif plain.startswith("NAME=VALUE"):
        yield from _field(line)
    else:
        for part in re.split(r"[\s|]+", plain.strip("[]")):
            word = part.strip("[]")
            if word in _SOURCES:
                yield from _SOURCES[word](line)
            elif word.islower() and word.isascii():
                yield word, ""


def _link(line: CommandLine) -> Iterator[Candidate]:
    relation, colon, _ = line.current.partition(":")
    if not colon:
        yield from ((f"{each}:", "") for each in _RELATIONS)
    else:
        yield from ((f"{relation}:{name}", text) for name, text in _ids(line))


def _field(line: CommandLine) -> Iterator[Candidate]:
    name, equals, _ = line.current.partition("=")
    if equals:
        values = {
            "severity": SEVERITIES,
            "confidence": tuple(CONFIDENCE_RANKS),
            "status": _STATUSES,
        }
        yield from ((f"{name}={each}", "") for each in values.get(name, ()))
        return
    for kind in _kinds_meant(line):
        yield from (
            (f"{field}=", text.replace("`", "")) for field, (_, text) in fields_of(kind).items()
        )


def _kinds_meant(line: CommandLine) -> Sequence[str]:
    """Return the kind that a line is about, else all of them."""
    first = line.arguments[0] if line.arguments else ""
    place = short_id(first)
    return [first] if first in KINDS else [place.kind.name] if place else list(SEARCHED)


def _ids(line: CommandLine) -> Iterator[Candidate]:
    with session_of(_NO_CONTEXT) as session:
        if line.command == "restore":
            yield from ((each.id, f"deleted by {each.deleted_by}") for each in session.trash())
            return
        hits = session.query(limit=None, sort=["-created_at"])
        yield from ((hit.id, hit.title) for hit in hits)


def _counted(measure: str) -> Callable[[CommandLine], Iterator[Candidate]]:
    def found(_: CommandLine) -> Iterator[Candidate]:
        with session_of(_NO_CONTEXT) as session:
            counts = session.aggregate(measure)[measure]
        if isinstance(counts, Mapping):
            yield from ((str(name), f"{count} memories") for name, count in counts.items())

    return found


def _sessions(line: CommandLine) -> Iterator[Candidate]:
    store = store_of(_NO_CONTEXT)
    if line.command in ("undelete-session", "purge-session"):
        yield from ((each.session_id, "deleted") for each in store.deleted_sessions())
    elif line.command == "unarchive":
        yield from ((each.session, "archived") for each in store.archived_sessions())
    else:
        yield from ((name, "") for name in store.sessions())


def _branches(_: CommandLine) -> Iterator[Candidate]:
    with session_of(_NO_CONTEXT) as session:
        yield from ((each.name, "") for each in session.branches())


def _revisions(line: CommandLine) -> Iterator[Candidate]:
    yield from (("HEAD", "the newest commit"), ("HEAD~1", "the one before it"))
    with session_of(_NO_CONTEXT) as session:
        yield from ((each.name, "tag") for each in session.tags())
        yield from ((each.commit[:9], each.subject) for each in session.log(limit=20))
    yield from _branches(line)


def _remotes(_: CommandLine) -> Iterator[Candidate]:
    with session_of(_NO_CONTEXT) as session:
        yield from ((name, each.address.text) for name, each in session.remotes.items())


def _settings(line: CommandLine) -> Iterator[Candidate]:
    end = "=" if line.arguments[:1] == ("set",) or line.command == "override" else ""
    found = store_of(_NO_CONTEXT).configuration()
    yield from ((f"{each.name}{end}", each.meaning.replace("`", "")) for each in found)


def _formats(line: CommandLine) -> Iterator[Candidate]:
    from smp_git.convert import export, formats  # noqa: PLC0415 - few import

    known = export.FORMATS if line.command == "export" else (*formats.FORMATS, formats.BUNDLE)
    yield from ((name, "") for name in known)


def _given(*values: str) -> Callable[[CommandLine], Iterator[Candidate]]:
    return lambda _: ((value, "") for value in values)


# What needs no context of typer is given none.
_NO_CONTEXT: Final[Any] = None
_SOURCES: Final[Mapping[str, Callable[[CommandLine], Iterator[Candidate]]]] = {
    "ID": _ids,
    "SESSION": _sessions,
    "KIND": _given(*SEARCHED),
    "TAG": _counted("count:tag"),
    "AGENT": _counted("count:agent"),
    "BRANCH": _branches,
    "REV": _revisions,
    "OLD": _revisions,
    "NEW": _revisions,
    "REMOTE": _remotes,
    "SETTING": _settings,
    "STATUS": _given(*_STATUSES),
    "SEVERITY": _given(*SEVERITIES),
    "FORMAT": _formats,
    "COMMAND": _given(*ENTRIES),
    "GROUP": _given(*(group.lower() for group in GROUPS)),
    "ACTION": _given("delete", "restore", "purge", "redact", "delete_session", "undelete_session"),
}
