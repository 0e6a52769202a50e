"""What was said, taken out and removed in a random history, and what must follow from it.

The oracle is the user's sentence and reads with Git alone: what was redacted or deleted is
nowhere; a memory that nobody removed is alive, and holds what somebody wrote. It knows a
memory by a word that only it has, never by its id: two memories may be given one id.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import yaml

from tests import independent_scan
from tests.support import git

FIELDS: Final = ("rationale", "impact", "side_note", "by_hand")
MASK: Final = "[REDACTED]"
_SOUL: Final = re.compile(r"\bsoul\d+q\b")
_WORD: Final = re.compile(rb"\bw\d+x[a-z]{5}\b")
_FILE: Final = re.compile(r"decisions/\d+/([A-Z]+-[0-9]+(?:-[a-z0-9]+)?)\.yaml")


@dataclass
class Told:
    """What is known of one memory: its words, what was written in each field, what was done."""

    words: set[str] = field(default_factory=set)
    values: dict[str, set[str]] = field(default_factory=dict)
    is_deleted: bool = False
    is_purged: bool = False
    is_restored: bool = False
    # Taken away by an ordinary commit, or perhaps by one that was cut short.
    is_removed: bool = False
    # Its deletion may be forgotten: a folder was put back to a state before it.
    is_unsure: bool = False
    # A redaction reached it.
    is_redacted: bool = False


class Ledger:
    """All that was said and done in one history."""

    def __init__(self) -> None:
        self.told: dict[str, Told] = {}
        self.redacted: set[str] = set()
        # Words that stood on a main branch, and those that somebody took away there, knowing them.
        self.stood: set[str] = set()
        self.excused: set[str] = set()
        self._words: dict[str, str] = {}

    def born(self, soul: str, content: str, fields: Mapping[str, str]) -> None:
        """Note a new memory."""
        self.told[soul] = Told()
        self.wrote(soul, "decision", content)
        for name, text in fields.items():
            self.wrote(soul, name, text)

    def wrote(self, soul: str, name: str, text: str) -> None:
        """Note what somebody wrote in a field."""
        told = self.told[soul]
        told.values.setdefault(name, set()).add(text)
        found = {each for each in text.split() if _WORD.fullmatch(each.encode())}
        told.words |= found
        self._words |= dict.fromkeys(found, soul)

    def reach(self, word: str) -> None:
        """Note that a redaction reached a memory, whatever was left elsewhere."""
        self.told[self._words[word]].is_redacted = True

    def redact(self, word: str) -> None:
        """Note that a word was taken out, and is nowhere."""
        self.redacted.add(word)
        self.reach(word)

    def forget(self, souls: Iterable[str], words: Iterable[str]) -> None:
        """Note that deletions and redactions may be forgotten with the folder that knew of them."""
        for soul in souls:
            self.told[soul].is_unsure = True
        for word in words:
            self.redacted.discard(word)
            self.told[self._words[word]].is_unsure = True

    def stands(self, before: Iterable[bytes], after: Iterable[bytes], kept: Iterable[bytes], *, excuse: bool) -> None:  # fmt: skip
        """Note what stood before and after somebody did something, and what must be `kept`."""
        old, new, acknowledged = (set().union(*map(words, files)) for files in (before, after, kept))  # fmt: skip
        self.stood |= acknowledged
        if excuse:
            self.excused |= old - new

    # What must hold

    def gone(self) -> set[str]:
        """Return the words that may be nowhere."""
        found = set(self.redacted)
        for told in self.told.values():
            ended = told.is_deleted and not told.is_restored
            if (ended or told.is_purged) and not told.is_unsure:
                found |= told.words
        return found

    def problems(self, files: Mapping[str, bytes], notes: Iterable[str]) -> list[str]:
        """Return what is wrong with the memories that stand at the end."""
        found: list[str] = []
        said = " ".join(notes)
        here: dict[str, list[str]] = {}
        for name, data in files.items():
            found += self._of_file(name, data)
            here.setdefault(soul_of(data) or f"nobody's {name}", []).append(name)
        for soul, names in here.items():
            if soul not in self.told:
                found.append(f"{names}: no memory that anybody wrote: {files[names[0]]!r}")
            elif len(names) > 1:
                found.append(f"{soul} is there more than once: {names}")
        for soul, told in self.told.items():
            found += self._of_memory(soul, told, there=soul in here, said=said)
        return found + self._lost(files)

    def _of_memory(self, soul: str, told: Told, *, there: bool, said: str) -> list[str]:
        if told.is_unsure:
            return []
        if there and told.is_purged:
            return [f"{soul} was purged and is alive"]
        if there and told.is_deleted and not told.is_restored:
            return [f"{soul} was deleted, never restored, and is alive"]
        if not there and not (told.is_deleted or told.is_removed or told.is_purged):
            return [f"{soul} is gone, and nobody removed it"]
        return []

    def _of_file(self, name: str, data: bytes) -> list[str]:
        """Return what no person wrote into the fields of a memory."""
        told = self.told.get(soul_of(data) or "")
        if told is None:
            return []
        memory = yaml.safe_load(data)
        assert isinstance(memory, dict)
        found = []
        for each, written in told.values.items():
            value = memory.get(each)
            if value is not None and not any(_is_said(str(value), text) for text in written):
                found.append(f"{name}: {each} is {value!r}, which nobody wrote")
        if not self.redacted and MASK.encode() in data:
            found.append(f"{name} is masked, and nobody redacted anything")
        return found

    def _lost(self, files: Mapping[str, bytes]) -> list[str]:
        """Return the words that nobody took away, of memories of which nobody removed anything."""
        there = set().union(*map(words, files.values()))
        found = []
        for word in sorted(self.stood - self.excused - there):
            told = self.told[self._words[word]]
            if not any((told.is_deleted, told.is_purged, told.is_restored, told.is_removed, told.is_redacted, told.is_unsure)):  # fmt: skip
                found.append(f"{word} of {self._words[word]} is lost")
        return found


def _is_said(value: str, text: str) -> bool:
    """Whether a value is a text, with words taken out; neighbours may go together."""
    said = iter(text.split())
    left = [word for word in value.split() if word != MASK]
    return value == text or (MASK in value and all(word in said for word in left))


def words(data: bytes) -> set[str]:
    """Return the words of memories in some bytes."""
    return {each.decode() for each in _WORD.findall(data)}


def soul_of(data: bytes) -> str | None:
    """Return the word by which a memory is known."""
    match = _SOUL.search(data.decode("utf-8", "replace"))
    return match[0] if match else None


def files_of(folder: Path, branch: str = "main") -> dict[str, bytes]:
    """Return the memories of a branch as Git has them, by id."""
    rows = [row.split(None, 3) for row in git(folder, "ls-tree", "-r", branch).splitlines()]
    found = {match[1]: row[2] for row in rows if (match := _FILE.fullmatch(row[3]))}
    told = independent_scan.git(["-C", str(folder), "cat-file", "--batch"], "".join(f"{each}\n" for each in found.values()).encode())  # fmt: skip
    out, at = {}, 0
    for name in found:
        end = told.index(b"\n", at)
        size = int(told[at:end].split()[2])
        out[name] = told[end + 1 : end + 1 + size]
        at = end + 2 + size
    return out


def in_history(folder: Path, name: str) -> set[str]:
    """Return the words of a memory in every version that a replica has of it."""
    path = f"decisions/000/{name}.yaml"
    shown = subprocess.run(["git", "log", "--all", "-p", "--format=", "--", path], cwd=folder, capture_output=True, check=True).stdout  # fmt: skip
    return words(shown)
