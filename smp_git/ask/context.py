"""Context for an agent: memories in words, as many as a budget of tokens holds."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from smp_git.model.errors import DamagedError, InvalidFileError, MemoryNotFoundError
from smp_git.model.memory import CONTESTED, Memory, Value

# Four characters to a token is what common tokenizers come to on English text.
_CHARACTERS_PER_TOKEN: Final = 4
TITLES: Final = {
    "answers": "What answers the question",
    "pinned": "Pinned",
    "findings": "Open findings",
    "decisions": "Decisions",
    "preferences": "Preferences",
    "profile": "User profile",
    "learnings": "Learnings",
    "state": "Own state",
    "conversation": "Conversation",
    "referenced": "Referenced",
}
_SECTIONS: Final = tuple(TITLES)
# The part of the budget that a section may take before every other one had its turn.
_SHARES: Final = {
    "answers": 0.4,
    "findings": 0.15,
    "decisions": 0.1,
    "preferences": 0.1,
    "profile": 0.05,
    "learnings": 0.05,
    "state": 0.1,
    "conversation": 0.1,
    "referenced": 0.05,
}


class LeftOut(NamedTuple):
    """A memory that found no room, or stands only by its title, and why.

    Without an id it stands for many; `session` is empty for those of the session asked.
    """

    id: str
    section: str
    reason: str
    session: str = ""


class Piece(NamedTuple):
    """One memory of a context: its section, its text, and how it stands there."""

    id: str
    section: str
    text: str
    shortened: bool
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Context:
    """A context and its receipt: what it holds, what it left out, and why.

    >>> context = session.context(prompt="How do administrators log in?", budget=500)
    >>> "Use OAuth 2.0" in str(context)
    True
    """

    agent: str | None
    topic: str | None
    budget_tokens: int
    used_tokens: int
    pieces: tuple[Piece, ...]
    left_out: tuple[LeftOut, ...]

    @property
    def text(self) -> str:
        """The context as Markdown, for a prompt; so is `str(context)`."""
        return _markdown(self.pieces)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        count = len(self.pieces)
        of = f"{self.used_tokens} of {self.budget_tokens} tokens"
        return f"Context({count} {'memory' if count == 1 else 'memories'}, {of})"

    def as_json(self) -> dict[str, object]:
        """Return the object that `--json` prints."""
        return {
            "agent": self.agent,
            "topic": self.topic,
            "budget_tokens": self.budget_tokens,
            "used_tokens": self.used_tokens,
            "memories": [piece._asdict() for piece in self.pieces],
            "left_out": [item._asdict() for item in self.left_out],
            "text": self.text,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """A memory that a context may hold; its file is read when there is room for it.

    What is `protected` waits for no share and, if it finds no room, ends the context.
    What `follows` another memory stands only beside it.
    """

    id: str
    section: str
    title: str
    size: int
    load: Callable[[], Memory]
    session: str = ""
    protected: bool = False
    follows: str = ""
    notes: tuple[str, ...] = ()
    excerpt: Callable[[], str] = str

    @property
    def _mark(self) -> str:
        return f" ({self.session})" if self.session else ""

    def in_full(self) -> str:
        """Return the whole of it; what answers a question with every field."""
        wholly = self.section == "answers"
        return _in_full(self.load(), mark=self._mark, notes=self.notes, wholly=wholly)

    def in_short(self, *, excerpt: bool = False) -> str:
        """Return its title, and on request the part of its text that answers."""
        text = self.excerpt() if excerpt else ""
        return _in_short(self.id, self.title, mark=self._mark, excerpt=text)


def compose(
    candidates: Sequence[Entrant],
    left: Iterable[LeftOut],
    *,
    agent: str | None,
    topic: str | None,
    budget_tokens: int,
) -> Context:
    """Return the context that fits the budget; the same candidates give the same context.

    Candidates come in order of importance. Each section may take its share of the budget;
    what is left then goes to those that had to wait, in the same order. What does not fit
    whole stands by its title, if that fits; the receipt names it either way.
    """
    page = _Page(budget_tokens)
    waiting = [each for each in candidates if not page.takes_share(each)]
    for each in waiting:
        page.takes_rest(each)
    order = {(each.session, each.id): place for place, each in enumerate(candidates)}
    pieces = tuple(sorted(page.pieces, key=lambda piece: _reading_place(piece, order)))
    return Context(
        agent=agent,
        topic=topic,
        budget_tokens=budget_tokens,
        used_tokens=tokens(_markdown(pieces)),
        pieces=pieces,
        left_out=(*page.left, *left),
    )


def tokens(text: str) -> int:
    """Return about how many tokens a text is."""
    return -(-len(text) // _CHARACTERS_PER_TOKEN)


def _reading_place(piece: Piece, order: dict[tuple[str, str], int]) -> tuple[int, int]:
    """Return where a piece stands: by section and importance, the conversation from old to new."""
    place = order[piece.session, piece.id]
    return _SECTIONS.index(piece.section), -place if piece.section == "conversation" else place


class _Page:
    """A context as it is written, and what is left of its budget."""

    def __init__(self, budget: int) -> None:
        self.pieces: list[Piece] = []
        self.left: list[LeftOut] = []
        self._rest = budget
        self._shares = {section: int(share * budget) for section, share in _SHARES.items()}
        self._there: set[tuple[str, str]] = set()
        self._opened: set[str] = set()

    def takes_share(self, each: Entrant) -> bool:
        """Take a memory in within the share of its section; return whether it is dealt with."""
        if each.protected:
            self.takes_rest(each)
            return True
        share = self._shares[each.section]
        if share <= 0 or not self._is_possible(each):
            return False
        text = self._read(each)
        if text is None:
            return True
        needed = self._needed(each.section, text)
        if needed > min(share, self._rest):
            # What matters less does not overtake it.
            self._shares[each.section] = 0
            return False
        self._shares[each.section] -= needed
        self._add(each, text, needed)
        return True

    def takes_rest(self, each: Entrant) -> None:
        """Take a memory in if it fits at all, whole or by its title."""
        if not self._is_possible(each):
            self._leave(each, f"only with {each.follows}, which replaced it")
            return
        short, size = each.in_short(), -(-each.size // _CHARACTERS_PER_TOKEN)
        if self._needed(each.section, short) <= self._rest:
            text = self._read(each)
            if text is None:
                return
            if self._add_if_fits(each, text):
                return
            size = tokens(text)
            if self._add_if_fits(each, each.in_short(excerpt=True), shortened=True) or (
                self._add_if_fits(each, short, shortened=True)
            ):
                self._leave(each, f"only its title: {size} tokens do not fit")
                return
        self._leave(each, f"no room: {size} tokens, {self._rest} left")
        if each.protected:
            self._rest = 0

    def _is_possible(self, each: Entrant) -> bool:
        return not each.follows or (each.session, each.follows) in self._there

    def _read(self, each: Entrant) -> str | None:
        """Return a memory whole, or None if its file cannot be read."""
        try:
            return each.in_full()
        except (DamagedError, InvalidFileError, MemoryNotFoundError) as error:
            self._leave(each, f"cannot be read: {error.message}")
            return None

    def _needed(self, section: str, text: str) -> int:
        heading = "" if section in self._opened else f"## {TITLES[section]}\n\n"
        return tokens(f"{heading}{text}\n\n")

    def _add_if_fits(self, each: Entrant, text: str, *, shortened: bool = False) -> bool:
        needed = self._needed(each.section, text)
        if needed > self._rest:
            return False
        self._add(each, text, needed, shortened=shortened)
        return True

    def _add(self, each: Entrant, text: str, needed: int, *, shortened: bool = False) -> None:
        self._rest -= needed
        self._opened.add(each.section)
        self._there.add((each.session, each.id))
        self.pieces.append(Piece(each.id, each.section, text, shortened, each.session))

    def _leave(self, each: Entrant, reason: str) -> None:
        self.left.append(LeftOut(each.id, each.section, reason, each.session))


def _markdown(pieces: Sequence[Piece]) -> str:
    out: list[str] = []
    section = None
    for piece in pieces:
        if piece.section != section:
            section = piece.section
            out.append(f"## {TITLES[section]}")
        out.append(piece.text)
    return "\n\n".join(out)


# What a reader needs beside the text of a memory, in this order.
_DETAILS: Final = (
    "severity", "status", "value", "context", "rationale", "alternatives", "location", "impact",
    "root_cause", "recommendation", "resolution", "applies_to", "confidence",
)  # fmt: skip
# Where a memory belongs and whose it is, which its text does not need.
_BOOKKEEPING: Final = frozenset(
    ("title", "turn_ref", "memory_refs", "conversation_id", "parent", "topic", "tokens", "pinned",
     "processing_time_ms", "importance", "source", "supersedes", "category", "key", "made_by",
     "agreed_by", "approved_by", "agents_involved", "discovered_by", "learned_from", "speaker",
     "role", "type", "name", "media_type", "reversible", CONTESTED)
)  # fmt: skip
# What goes without saying.
_USUAL: Final = {
    "decision": ("active",),
    "finding": ("open",),
    "preference": ("active", "explicit"),
    "learning": ("active",),
}


def _as_words(value: Value) -> str:
    """Return a value in words: keys without underscores, nested ones in parentheses."""
    if isinstance(value, Mapping):
        parts = [
            f"{_name_as_words(key)} {_nested(item)}"
            for key, item in value.items()
            if _is_told(item)
        ]
        return ", ".join(parts)
    if isinstance(value, list):
        joint = "; " if any(isinstance(item, (dict, list)) for item in value) else ", "
        return joint.join(_as_words(item) for item in value if _is_told(item))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "" if value is None else " ".join(str(value).split())


def _nested(value: Value) -> str:
    text = _as_words(value)
    return f"({text})" if isinstance(value, Mapping) else text


def _is_told(value: Value) -> bool:
    return value is not None and value not in ("", [], {})


def _name_as_words(name: str) -> str:
    """Return a field's name as it is spoken."""
    return " ".join(re.split(r"[_\s-]+", name)).strip() or name


def _in_full(
    memory: Memory, *, mark: str = "", notes: Iterable[str] = (), wholly: bool = False
) -> str:
    """Return a memory with what belongs to it, as Markdown; `wholly` with every field."""
    if memory.kind == "turn":
        speaker = memory.fields.get("speaker") or memory.agent
        return f"**{speaker}** ({memory.id}{mark}): {memory.content.strip()}"
    if memory.kind == "state":
        return "\n".join([f"- **{memory.id}**{mark}", *_branches(memory.fields, "  ")])
    details = [
        f"{_name_as_words(name)}: {text}"
        for name in _told_fields(memory, wholly=wholly)
        if (text := _as_words(memory.fields[name]))
    ]
    details += [f"{link.relation} {link.target}" for link in memory.links]
    lines = [f"- **{memory.id}**{mark} {_indented(memory.content.strip() or memory.title)}"]
    return "\n".join([*lines, *(f"  - {_indented(line)}" for line in (*details, *notes))])


def _told_fields(memory: Memory, *, wholly: bool) -> list[str]:
    fields = memory.fields
    names = [name for name in _DETAILS if name in fields]
    if wholly:
        names += [name for name in fields if name not in _DETAILS and name not in _BOOKKEEPING]
    usual = _USUAL.get(memory.kind, ())
    return [name for name in names if not _goes_without(name, fields, usual)]


def _goes_without(name: str, fields: Mapping[str, Value], usual: tuple[str, ...]) -> bool:
    if name == "status":
        return fields[name] in usual or "resolution" in fields
    return name == "confidence" and fields[name] in usual


def _in_short(memory_id: str, title: str, *, mark: str = "", excerpt: str = "") -> str:
    """Return a memory as one line: its id, its title, and a part of its text."""
    more = f": {excerpt}" if excerpt and not title.startswith(excerpt.rstrip("…")) else ""
    return f"- **{memory_id}**{mark} {title.lstrip('# ')}{more}"


def _branches(fields: Mapping[str, Value], indent: str) -> list[str]:
    """Return nested values as a list of lists, for what is too long for a line."""
    out: list[str] = []
    for name, value in fields.items():
        if name in ("memory_refs", CONTESTED) or not _is_told(value):
            continue
        if isinstance(value, Mapping):
            out += [f"{indent}- {_name_as_words(name)}:", *_branches(value, f"{indent}  ")]
        elif isinstance(value, list):
            items = [f"{indent}  - {_as_words(item)}" for item in value if _is_told(item)]
            out += [f"{indent}- {_name_as_words(name)}:", *items]
        else:
            out.append(f"{indent}- {_name_as_words(name)}: {_as_words(value)}")
    return out


def _indented(text: str) -> str:
    return text.replace("\n", "\n  ")
