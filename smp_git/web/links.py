"""Addresses: where a link leads on the page, and in a report."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote, urlencode

from smp_git.model.ids import is_elsewhere

_ROOT_PAGE: Final = "overview"


@dataclass(frozen=True, slots=True, kw_only=True)
class PageLinks:
    """Addresses of the page of one session, below a secret root; `at` stays with what is followed."""

    root: str
    name: str = ""
    at: str = ""

    def home(self) -> str:
        """Return the list of sessions."""
        return f"{self.root}/"

    def static(self, name: str) -> str:
        """Return a style sheet, script or picture."""
        return f"{self.root}/static/{quote(name)}"

    def session(self, name: str) -> str:
        """Return the first page of a session."""
        return f"{self.root}/s/{quote(name, safe='')}/"

    def search(self) -> str:
        """Return where a search is answered."""
        return f"{self.session(self.name)}search" if self.name else f"{self.root}/search"

    def page(self, name: str, **query: object) -> str:
        """Return a page of the session."""
        if self.at and name not in ("compare", "branches", "trash", "size", "log"):
            query = {"at": self.at, **query}
        where = self.session(self.name) + ("" if name == _ROOT_PAGE else name)
        return f"{where}?{urlencode(query)}" if query else where

    def now(self) -> str:
        """Return the session as it is."""
        return self.session(self.name)

    def news(self) -> str:
        """Return where a page asks whether the session has moved."""
        return f"{self.session(self.name)}news"

    def memory(self, name: str) -> str:
        """Return a memory, perhaps of another session."""
        session, _, memory = name.rpartition(":")
        where = f"{self.session(session or self.name)}m/{quote(memory, safe='')}"
        return f"{where}?{urlencode({'at': self.at})}" if self.at and not session else where

    def action(self, memory: str, name: str) -> str:
        """Return where something is done to a memory."""
        return f"{self.session(self.name)}m/{quote(memory, safe='')}/{name}"

    def commit(self, name: str) -> str:
        """Return a commit."""
        return f"{self.session(self.name)}c/{quote(name, safe='')}"

    def receipt(self, deletion: str) -> str:
        """Return the receipt of a deletion."""
        return f"{self.session(self.name)}receipts/{quote(deletion, safe='')}"

    def restored(self) -> str:
        """Return where deleted memories are restored."""
        return f"{self.session(self.name)}restore"

    def tagged(self, tag: str) -> str:
        """Return the memories with a tag."""
        return self.page("timeline", tag=tag)

    def of_kind(self, kind: str) -> str:
        """Return the memories of a kind."""
        return self.page("timeline", kind=kind)

    def of_agent(self, agent: str) -> str:
        """Return the memories that an agent wrote."""
        return self.page("timeline", agent=agent)

    def compared(self, commit: str) -> str:
        """Return what changed since a commit."""
        return self.page("compare", old=commit, new="HEAD")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportLinks:
    """Addresses inside a report: memories that are in it, and nothing else."""

    known: Collection[str]

    def memory(self, name: str) -> str | None:
        """Return a memory that is in the report."""
        return f"#{name}" if name in self.known and not is_elsewhere(name) else None

    def nowhere(self, *_: object, **__: object) -> None:
        """Return that there is no such page."""
        return

    commit = page = receipt = restored = tagged = of_kind = of_agent = compared = nowhere
