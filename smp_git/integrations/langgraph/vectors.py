"""Vectors of what LangGraph's index asks to embed: made once for each text, kept beside the session."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
from array import array
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from operator import mul
from pathlib import Path
from typing import Any, Literal

from langgraph.store.base import IndexConfig, ensure_embeddings, get_text_at_path, tokenize_path

from smp_git.model.errors import InvalidError
from smp_git.read.replica import EMBEDDINGS, Local

Vector = Sequence[float]


class Vectors:
    """The vectors of texts by their digests: a cache that a deletion removes, and a search makes again."""

    def __init__(self, index: IndexConfig, session: Path) -> None:
        self._embeddings = ensure_embeddings(index.get("embed"))
        # LangGraph's store in SQLite calls them otherwise.
        self._paths = list(index.get("fields") or index.get("text_fields") or ["$"])
        self._dims = index.get("dims")
        self._file = Local(session / ".git").folder / EMBEDDINGS
        self._known: dict[str, Vector] = {}
        self._read_to = 0

    def texts(
        self, value: Mapping[str, Any], index: Literal[False] | list[str] | None
    ) -> tuple[str, ...]:
        """Return the texts by which an item is found: of its own paths, else of the configured ones."""
        if index is False:
            return ()
        paths = self._paths if index is None else index
        found = (
            text
            for path in paths
            for text in get_text_at_path(value, path if path == "$" else tokenize_path(path))
        )
        return tuple(dict.fromkeys(text for text in found if text))

    def embed(self, texts: Iterable[str], questions: Iterable[str]) -> dict[str, Vector]:
        """Make the vectors that are missing; return those of questions."""
        if missing := self._missing(texts):
            self._keep(missing, self._embeddings.embed_documents(missing))
        return {each: self._embeddings.embed_query(each) for each in questions}

    async def aembed(self, texts: Iterable[str], questions: Iterable[str]) -> dict[str, Vector]:
        """Make the vectors that are missing without blocking the loop; return those of questions."""
        if missing := self._missing(texts):
            self._keep(missing, await self._embeddings.aembed_documents(missing))
        return {each: await self._embeddings.aembed_query(each) for each in questions}

    def score(self, question: Vector, texts: Iterable[str]) -> float | None:
        """Return how near the nearest text is to a question, None if there is none."""
        found = (self._known.get(_digest(text)) for text in texts)
        return max((_cosine(question, each) for each in found if each is not None), default=None)

    def _missing(self, texts: Iterable[str]) -> list[str]:
        self._follow()
        return [text for text in dict.fromkeys(texts) if _digest(text) not in self._known]

    def _keep(self, texts: Sequence[str], vectors: Sequence[Vector]) -> None:
        if len(vectors) != len(texts) or any(
            self._dims not in (None, len(each)) for each in vectors
        ):
            raise InvalidError(
                f"the embedding function gave {len(vectors)} vectors for {len(texts)} texts, "
                f"of {sorted(set(map(len, vectors)))} dimensions instead of {self._dims}",
                hint="dims in the index must be those of the embedding model",
            )
        rows = {_digest(text): array("f", each) for text, each in zip(texts, vectors, strict=True)}
        self._known.update(rows)
        lines = "".join(
            json.dumps({"text": name, "vector": base64.b64encode(each.tobytes()).decode()}) + "\n"
            for name, each in rows.items()
        )
        with suppress(OSError):
            fd = os.open(self._file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(fd, lines.encode())
            finally:
                os.close(fd)

    def _follow(self) -> None:
        """Read what others made since; after a deletion the file begins anew."""
        with suppress(OSError), self._file.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(self._read_to if self._read_to <= size else 0)
            for line in file:
                with suppress(ValueError, KeyError, TypeError):
                    row = json.loads(line)
                    vector = array("f", base64.b64decode(row["vector"]))
                    if self._dims in (None, len(vector)):
                        self._known[row["text"]] = vector
            self._read_to = file.tell()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _cosine(left: Vector, right: Vector) -> float:
    size = math.sqrt(sum(map(mul, left, left)) * sum(map(mul, right, right)))
    return sum(map(mul, left, right)) / size if size and len(left) == len(right) else 0.0
