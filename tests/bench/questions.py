"""Questions and prompts of agents: how many are answered as a reader would expect.

The sessions, questions and prompts are in tests/data/questions. `--held` asks the half that was
held back until the engine was finished, `--tour` what was written by another hand, later.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import yaml

from smp_git import Memory, Session, Store
from smp_git.cli import demo
from tests.bench import table
from tests.support import ROOT, untyped

DATA = ROOT / "tests/data/questions"
BUDGET = 800
DEMO, TOLD, TOUR = "demo", "ferrylink", "tour"
_FILES = {TOLD: "session", TOUR: "tour"}
PLACES = ("first", "three", "all")
_KINDS = ("turn", "decision", "finding", "preference", "learning", "artifact")
_STEP = timedelta(minutes=7)


class Place(NamedTuple):
    """A session to ask, the ids of its memories by key, and the time at which it is asked."""

    session: Session
    ids: Mapping[str, str]
    now: datetime

    def id_of(self, key: str) -> str:
        """Return the id for a key of the data; a memory of the demo is named by its id."""
        return self.ids[key]


# The files of each set: its questions and its prompts.
SETS = {
    "open": ("open", "contexts-open"),
    "held": ("held", "contexts-held"),
    "tour": ("tour-questions", "contexts-tour"),
}


def run(folder: Path, *, short: bool = False, asked_set: str = "open") -> Iterator[str]:
    """Ask the questions and the prompts; yield what failed, and the shares."""
    questions, prompts = SETS[asked_set]
    with ExitStack() as stack:
        places = build(folder, stack)
        asked = [(each, missed(places[each["session"]], each)) for each in read(questions)]
        briefed = [(each, lacking(places[each["session"]], each)) for each in read(prompts)]
    yield f"\nquestions, {asked_set}\n"
    yield from (f"- {each['ask']}: {wrong}" for each, wrong in asked if wrong)
    yield f"\ncontexts of {BUDGET} tokens, {asked_set}\n"
    yield from (f"- {each['prompt']}: {wrong}" for each, wrong in briefed if wrong)
    yield ""
    yield table.rows(
        ("", "right", "of", "share"),
        [
            _share("questions", [wrong for _, wrong in asked]),
            _share("contexts", [wrong for _, wrong in briefed]),
        ],
    )


def _share(name: str, wrong: list[str]) -> list[str]:
    right = wrong.count("")
    return [name, str(right), str(len(wrong)), f"{right / len(wrong):.2f}"]


def read(name: str) -> Any:
    """Return the content of one file of the data."""
    return yaml.safe_load((DATA / f"{name}.yaml").read_text("utf-8"))


# Asking


def missed(place: Place, question: Mapping[str, Any]) -> str:
    """Ask one question; return what is wrong with the answer, or nothing."""
    hits = [str(hit.id) for hit in place.session.query(question["ask"], now=place.now)]
    where = next(name for name in PLACES if name in question)
    wanted = [place.id_of(key) for key in question[where]]
    among = [name in hits[: 1 if where == "first" else 3] for name in wanted]
    if all(among) if where == "all" else any(among):
        return ""
    ranks = ", ".join(
        f"{key} {_rank(hits, name)}" for key, name in zip(question[where], wanted, strict=True)
    )
    return f"wanted {where}: {ranks}; found {', '.join(_keys(place, hits[:3])) or 'nothing'}"


def _rank(hits: list[str], name: str) -> str:
    return f"at {hits.index(name) + 1}" if name in hits else "not found"


def _keys(place: Place, names: list[str]) -> list[str]:
    known = {name: key for key, name in place.ids.items()}
    return [known.get(name, name) for name in names]


def lacking(place: Place, prompt: Mapping[str, Any]) -> str:
    """Ask for one context; return what is wrong with it, or nothing."""
    context = place.session.context(prompt.get("agent"), now=place.now, **_asking(prompt["prompt"]))
    texts = {piece.id: _plain(piece.text) for piece in context.pieces if not piece.session}
    wrong = [
        f"{key} is not there"
        for key, words in prompt["must"].items()
        if _plain(words) not in texts.get(place.id_of(key), "")
    ]
    wrong += [f"{key} is there" for key in prompt.get("not", ()) if place.id_of(key) in texts]
    wrong += [
        f"{old} is there without {new}"
        for old, new in prompt.get("replaced", {}).items()
        if place.id_of(old) in texts and place.id_of(new) not in texts
    ]
    if context.used_tokens > BUDGET:
        wrong.append(f"{context.used_tokens} tokens")
    return ", ".join(wrong)


def _asking(prompt: str) -> dict[str, Any]:
    """Return the arguments of `Session.context` under the names that it has today."""
    known = inspect.signature(Session.context).parameters
    asking: dict[str, Any] = {"budget" if "budget" in known else "max_tokens": BUDGET}
    return asking | ({"prompt": prompt} if "prompt" in known else {})


def _plain(text: str) -> str:
    return " ".join(text.casefold().split())


# Building


def build(folder: Path, stack: ExitStack) -> dict[str, Place]:
    """Return the demo's session and the told ones, open until the stack is left."""
    with patch.dict(os.environ, {"XDG_DATA_HOME": str(folder / "keys")}):
        shown = demo.run(folder / "demo")
    store = Store.open(shown.store)
    session = stack.enter_context(store.session(shown.session))
    ids = {str(memory.id): str(memory.id) for memory in session.memories()}
    told = {name: _told(folder / name, name, stack) for name in _FILES}
    return {DEMO: Place(session, ids, store.clock()), **told}


def _told(folder: Path, name: str, stack: ExitStack) -> Place:
    data = read(_FILES[name])
    clock = _Clock()
    Store.init(folder)
    (folder / "config.yaml").write_text("format: 1\nquota_bytes: 1000000000\ndurability: relaxed\n")
    store = Store.open(folder, clock=clock)
    first = next(iter(data["days"]))
    clock.now = _morning(first)
    session = stack.enter_context(
        store.create_session(
            name,
            user=data["user"],
            agents=data["agents"],
            context=data["context"],
            tags=data["tags"],
        )
    )
    telling = _Telling(session, data["people"])
    for day, entries in data["days"].items():
        clock.now = _morning(day)
        for entry in entries:
            clock.now += _STEP
            telling.tell(dict(entry))
    clock.now = data["now"].replace(tzinfo=UTC)
    return Place(session, telling.ids, clock.now)


def _morning(day: str) -> datetime:
    return datetime.fromisoformat(f"{day}T09:00+00:00")


class _Clock:
    """The time of the telling."""

    now: datetime

    def __call__(self) -> datetime:
        return self.now


class _Telling:
    """Writes the entries of the data and remembers which memory each key became."""

    def __init__(self, session: Session, people: Mapping[str, str]) -> None:
        self._session = session
        self._people = people
        self.ids: dict[str, str] = {}

    def tell(self, entry: dict[str, Any]) -> None:
        """Write one entry."""
        key = entry.pop("key", None)
        entry["links"] = [(name, self.ids[target]) for name, target in entry.pop("links", ())]
        if "key_field" in entry:
            entry["key"] = entry.pop("key_field")
        memory = self._changed(entry) or self._added(entry)
        if key is not None:
            self.ids[key] = memory.id

    def _changed(self, entry: dict[str, Any]) -> Memory | None:
        links = entry["links"]
        if "resolve" in entry:
            who = entry["as"]
            name = self.ids[entry["resolve"]]
            return self._session.resolve(name, agent=who, action=entry["action"], by=who)
        if "edit" in entry:
            del entry["links"]
            return self._session.edit(self.ids[entry.pop("edit")], agent=entry.pop("as"), **entry)
        if "supersede" in entry:
            name, text, who = (entry.pop(part) for part in ("supersede", "text", "by"))
            rest = {**entry, "links": links}
            return self._session.supersede(self.ids[name], text, agent=who, **rest)
        return None

    def _added(self, entry: dict[str, Any]) -> Memory:
        who = entry.pop("by")
        if "state" in entry:
            return self._session.set_state(who, entry["state"])
        kind = next(name for name in _KINDS if name in entry)
        if kind == "turn":
            person = who in self._people
            entry |= {
                "speaker": self._people.get(who, who),
                "role": "user" if person else "assistant",
            }
        return self._session.add(untyped(kind), entry.pop(kind), agent=who, **entry)
