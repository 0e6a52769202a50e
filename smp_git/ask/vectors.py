"""Vectors of a session's memories: made by `smp index`, by maintenance and between questions."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final

from smp_git.ask.finder import Finder, shown_entries, text_of_meaning
from smp_git.ask.text.meanings import Encoder, EncoderUnfitError, Meanings, find_encoder
from smp_git.format.lines import Entry
from smp_git.model.errors import InvalidError, SmpError
from smp_git.model.results import Result
from smp_git.model.settings import Settings
from smp_git.read.replica import SEARCH, VECTORS
from smp_git.read.snapshot import Snapshot
from smp_git.write.handle import Handle

# Vectors are kept so many at a time: who is interrupted has lost no more.
_TOGETHER: Final = 64
_MOST_WORKERS: Final = 4
# After this long without a question or a write the next one is not expected at once.
_QUIET_SECONDS: Final = 1.0
# What is made in one go between questions; a question ends it sooner.
_SLICE_SECONDS: Final = 0.5
# Nobody waits longer than this for what can be made again.
_PATIENCE_SECONDS: Final = 0.2

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed(Result):
    """The result of an indexing: the memories, the vectors it made, those that are still missing.

    >>> session.index().memories
    3
    """

    memories: int
    made: int
    missing: int
    semantic: bool


def meanings_of(handle: Handle) -> Meanings | None:
    """Return the vectors of a session, or None if meaning does not count."""
    encoder = _encoder(handle.settings)
    return None if encoder is None else Meanings(encoder, handle.reader.local.folder / VECTORS)


def _encoder(settings: Settings) -> Encoder | None:
    if settings.semantic == "off":
        return None
    encoder = find_encoder()
    if encoder is None and settings.semantic == "on":
        raise InvalidError(
            f"{settings.file}: semantic is on, but smp-git[semantic] is not installed",
            hint="pip install 'smp-git[semantic]', or set semantic: auto",
        )
    return encoder


def index(
    handle: Handle, *, seconds: float | None = None, progress: Progress | None = None
) -> Indexed:
    """Bring the text search up to date and make the vectors that are missing.

    `seconds` bounds the time for that; what is left is made the next time.
    """
    meanings = meanings_of(handle)
    return handle.read(None, lambda snapshot: _index(handle, meanings, snapshot, seconds, progress))


def _index(
    handle: Handle,
    meanings: Meanings | None,
    snapshot: Snapshot,
    seconds: float | None,
    progress: Progress | None,
) -> Indexed:
    told = None if progress is None else partial(progress, "pages")
    Finder(handle.reader.local.folder / SEARCH).follow(snapshot, told)
    if meanings is None:
        memories = sum(1 for _ in shown_entries(snapshot))
        return Indexed(memories=memories, made=0, missing=0, semantic=False)
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 - a question makes no vectors

    until = None if seconds is None else time.monotonic() + seconds
    lacking, memories, made = *_lacking(meanings, snapshot), 0
    try:
        with ThreadPoolExecutor(min(_MOST_WORKERS, os.cpu_count() or 1)) as pool:
            for start in range(0, len(lacking), _TOGETHER):
                some = lacking[start : start + _TOGETHER]
                if until is not None and time.monotonic() >= until:
                    break
                texts = _texts(snapshot, some)
                vectors = pool.map(meanings.encoder.vector, texts.values())
                _keep(handle, meanings, dict(zip(texts, vectors, strict=True)))
                made += len(some)
                if progress is not None:
                    progress("vectors", made, len(lacking))
    except EncoderUnfitError as error:
        raise InvalidError(
            str(error), hint="pip install --force-reinstall 'smp-git[semantic]'"
        ) from None
    return Indexed(memories=memories, made=made, missing=len(lacking) - made, semantic=True)


def _lacking(meanings: Meanings, snapshot: Snapshot) -> tuple[list[Entry], int]:
    """Return the memories without a vector, and how many memories there are."""
    meanings.refresh()
    entries = {entry.blob: entry for entry in shown_entries(snapshot)}
    return [entries[blob] for blob in meanings.lacking(entries)], len(entries)


def _texts(snapshot: Snapshot, entries: Iterable[Entry]) -> dict[str, str]:
    """Return what the vectors of some memories are made of, by blob."""
    found = ((entry.blob, text_of_meaning(snapshot, entry)) for entry in entries)
    return {blob: text for blob, text in found if text is not None}


def _keep(
    handle: Handle,
    meanings: Meanings,
    vectors: Mapping[str, bytes],
    patience_seconds: float | None = None,
) -> None:
    """Write vectors to the file; what was deleted while they were made is left out."""
    with handle.writer.holding("keeping vectors", patience_seconds) as now:
        live = {entry.blob for entry in shown_entries(now)}
        kept = {blob: vector for blob, vector in vectors.items() if blob in live}
        meanings.add(kept)


class VectorKeeper:
    """Makes the vectors that are missing while nobody asks or writes, a few at a time."""

    def __init__(self, handle: Handle, meanings: Meanings) -> None:
        self._handle = handle
        self._meanings = meanings
        self._asked_at = time.monotonic()
        self._seen = self._done = ""
        self.stopped = threading.Event()
        self._thread = threading.Thread(
            target=_run, args=(weakref.ref(self), self.stopped), name="smp-vectors", daemon=True
        )
        self._thread.start()
        _keepers.add(self)

    def note_question(self) -> None:
        """Remember that somebody asks, who waits for nothing else."""
        self._asked_at = time.monotonic()

    def step(self) -> None:
        """Make some of the vectors that are missing, unless somebody asks or writes."""
        snapshot = self._handle.reader.snapshot()
        before, self._seen = self._seen, snapshot.id
        if snapshot.id != before or snapshot.id == self._done or self._is_busy():
            return
        lacking, _ = _lacking(self._meanings, snapshot)
        made = dict(self._made(_texts(snapshot, lacking[:_TOGETHER])))
        if made:
            _keep(self._handle, self._meanings, made, _PATIENCE_SECONDS)
        if not lacking:
            self._done = snapshot.id

    def _made(self, texts: Mapping[str, str]) -> Iterator[tuple[str, bytes]]:
        until = time.monotonic() + _SLICE_SECONDS
        for blob, text in texts.items():
            if self.stopped.is_set() or self._is_busy() or time.monotonic() > until:
                return
            yield blob, self._meanings.encoder.vector(text)

    def _is_busy(self) -> bool:
        return time.monotonic() - self._asked_at < _QUIET_SECONDS

    def stop(self) -> None:
        """Make no more; nothing goes on in the background after it."""
        self.stopped.set()
        # A forked child has no such thread.
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join()


_keepers: weakref.WeakSet[VectorKeeper] = weakref.WeakSet()


def _run(reference: weakref.ref[VectorKeeper], stopped: threading.Event) -> None:
    while not stopped.wait(_QUIET_SECONDS):
        keeper = reference()
        if keeper is None:
            return
        try:
            # What cannot be made or kept now is tried again.
            with suppress(SmpError, OSError):
                keeper.step()
        except EncoderUnfitError:
            return
        del keeper


@atexit.register
def _stop_all() -> None:
    for keeper in list(_keepers):
        keeper.stop()
