"""What several search tests need."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from smp_git.ask.text.batches import Document
from smp_git.ask.text.cache import Followed, SearchCache, search
from smp_git.ask.text.ranking import Reason, TextHit

Pages = Mapping[str, tuple[Document, ...]]


def a_document(number: int = 1, text: str = "", **fields: str) -> Document:
    usual = Document(
        id=f"turn-{number:04}",
        kind="turn",
        at=f"2023-05-04T10:{number % 60:02}:00Z",
        text=text,
    )
    return replace(usual, **fields)  # type: ignore[arg-type]  # every field but tags is text


def follow(cache: SearchCache, pages: Pages) -> list[str]:
    """Follow pages whose content id is their content; return the keys that were loaded."""
    loaded: list[str] = []

    def load(key: str) -> Iterable[Document]:
        loaded.append(key)
        return pages[key]

    cache.follow(Followed({key: repr(page) for key, page in pages.items()}, load))
    return loaded


def a_cache(*texts: str, path: Path | None = None) -> SearchCache:
    """Return a cache over one page of turns that say `texts`."""
    cache = SearchCache(path)
    turns = [a_document(number, text) for number, text in enumerate(texts)]
    follow(cache, {"conversation/000": tuple(turns)})
    return cache


def hits(
    cache: SearchCache,
    question: str,
    *,
    limit: int = 100,
    allowed: Collection[str] | None = None,
    now: datetime | None = None,
) -> list[TextHit]:
    """Return the answers of one cache."""
    members = None if allowed is None else cache.members(allowed)
    return [hit for _, hit in search([cache], question, now=now).hits(limit, [members])]


def found(cache: SearchCache, question: str, **options: object) -> list[int]:
    """Return the numbers of the documents that answer, the best first."""
    answers = hits(cache, question, **options)  # type: ignore[arg-type]  # forwarded
    return [int(hit.id.rpartition("-")[2]) for hit in answers]


def first_reason(cache: SearchCache, question: str) -> Reason:
    """Return why the best answer is one."""
    answers = search([cache], question)
    ((number, hit),) = answers.hits(1, [None])
    return answers.reason(number, hit.id)
