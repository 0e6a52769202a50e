"""The report: a session in one file, which opens anywhere and is read without a script."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO, Final, NamedTuple

from smp_git.convert.files import whole
from smp_git.keep.forecast import Forecast
from smp_git.keep.mask import Switches, switches_of
from smp_git.model.errors import AlreadyExistsError, InvalidError, SmpError
from smp_git.model.memory import KINDS, Memory, MemoryId
from smp_git.model.results import Result
from smp_git.session import Session
from smp_git.store import Store
from smp_git.web import render
from smp_git.web.charts import curve, graph
from smp_git.web.links import ReportLinks
from smp_git.web.look import Look, look
from smp_git.web.views import branches, overview, trash
from smp_git.web.views.memory import MemoryStep, MemoryView, blamed_in, rows, step
from smp_git.web.wording import day

# Of each curve: a report has as many curves as memories.
_POINTS: Final = 20
_BATCH: Final = 300

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report(Result):
    """A report that was written: its file, how large it is, what it holds."""

    path: Path
    bytes: int
    memories: int
    session: str
    anonymous: bool


def write(
    session: Session,
    place: Path,
    clock: Callable[[], datetime],
    *,
    anonymous: bool | Switches = False,
    force: bool = False,
    progress: Progress = lambda _: None,
) -> Report:
    """Write the report of a session to a file; receipts of deletions name it as a copy.

    An anonymous one is of a copy without the names of people and projects, without paths
    and without history, which is made for it and removed.
    """
    render.check_installed("a report")
    if place.exists() and not force:
        raise AlreadyExistsError(f"{place} exists", hint="name another file, or give --force")
    if not place.parent.is_dir():
        raise InvalidError(f"there is no folder {place.parent}", hint="make it first")
    # Before there is anything to name: a deletion meanwhile has to know.
    session.note_copy(place)
    switches = switches_of(anonymous=anonymous)
    if switches is None:
        return _written(session, place, clock(), progress, anonymous=False)
    with TemporaryDirectory(prefix="smp-report-") as folder:
        made = session.anonymize(switches, copy=folder)
        with Store.open(folder, clock=clock).session(made.session) as copy:
            return _written(copy, place, clock(), progress, anonymous=True)


def _written(
    session: Session, place: Path, now: datetime, progress: Progress, *, anonymous: bool
) -> Report:
    seen = look(session, now)
    number = 0

    def counted(views: Iterable[MemoryView]) -> Iterator[MemoryView]:
        nonlocal number
        for view in views:
            number += 1
            progress(number)
            yield view

    with whole(place) as scratch, _writing(scratch) as file:
        scratch.chmod(0o600)
        file.writelines(_pieces(seen, counted, anonymous=anonymous))
    return Report(
        path=place,
        bytes=place.stat().st_size,
        memories=number,
        session=session.id,
        anonymous=anonymous,
    )


def _writing(place: Path) -> IO[str]:
    # Names of files, in what is told of damage, may hold what is no text.
    return place.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")


class _ReportPage(NamedTuple):
    """What the templates of the page ask for, as it is in a report."""

    now: datetime
    session: str
    kinds: tuple[str, ...] = tuple(KINDS)
    writes: bool = False
    asked: str = ""
    seen: str = ""


class ReportDay(NamedTuple):
    """One day of a report, with what is known of its memories."""

    name: str
    views: Iterator[MemoryView]


def _pieces(
    seen: Look,
    counted: Callable[[Iterable[MemoryView]], Iterator[MemoryView]],
    *,
    anonymous: bool,
) -> Iterator[str]:
    memories = sorted(
        seen.session.memories(at=seen.at), key=lambda each: (each.created_at, each.id)
    )
    style, script = render.asset("page.css"), render.asset("report.js")
    return render.pieces(
        "report.html",
        page=_ReportPage(seen.now, seen.session.id),
        to=ReportLinks(known=frozenset(each.id for each in memories)),
        anonymous=anonymous,
        version=seen.version,
        style=style,
        script=script,
        policy=_policy(style, script),
        overview=overview.overview(seen),
        branches=branches.branches(seen),
        trash=trash.trash(seen),
        receipts=tuple(trash.receipts(seen, seen.session.audit())),
        size=overview.sizes(seen),
        days=_days(seen, memories, counted),
    )


def _policy(style: str, script: str) -> str:
    """Return what the file may do: nothing but what is in it."""
    return (
        f"default-src 'none'; style-src {render.digest(style)}; script-src {render.digest(script)};"
        " base-uri 'none'; form-action 'none'"
    )


def _days(
    seen: Look,
    memories: Sequence[Memory],
    counted: Callable[[Iterable[MemoryView]], Iterator[MemoryView]],
) -> Iterator[ReportDay]:
    views = counted(_views(seen, memories, _steps(seen)))
    for name, found in groupby(views, lambda view: day(view.memory.created_at)):
        yield ReportDay(name, found)


def _views(
    seen: Look, memories: Sequence[Memory], steps: Mapping[MemoryId, Sequence[MemoryStep]]
) -> Iterator[MemoryView]:
    """Yield memories with all that is known of them, some hundred at a time."""
    for start in range(0, len(memories), _BATCH):
        batch = memories[start : start + _BATCH]
        told = _forecasts(seen, batch)
        for each in batch:
            yield _view(seen, each, steps.get(each.id, ()), told.get(each.id))


def _forecasts(seen: Look, memories: Sequence[Memory]) -> Mapping[MemoryId, Forecast]:
    """Return the forecasts of memories, unless one of them has gone meanwhile."""
    with suppress(SmpError):
        ids = [each.id for each in memories]
        found = seen.session.forecasts(ids, now=seen.now, points=_POINTS)
        return {each.id: each for each in found}
    return {}


def _steps(seen: Look) -> Mapping[MemoryId, Sequence[MemoryStep]]:
    """Return the versions of every memory, found in one pass over the history."""
    found: dict[MemoryId, list[MemoryStep]] = {}
    for each in seen.session.changes(at=seen.at):
        # What was first written is what the memory says, or what its later versions tell.
        told = step(each) if each.diff.change != "added" else MemoryStep(each.version, "added", ())
        found.setdefault(each.diff.id, []).append(told)
    return found


def _view(
    seen: Look, memory: Memory, steps: Sequence[MemoryStep], forecast: Forecast | None
) -> MemoryView:
    blamed = blamed_in(memory, steps)
    related = seen.session.related(memory.id, depth=1, at=seen.at, now=seen.now)
    return MemoryView(
        memory=memory,
        content=blamed.get(KINDS[memory.kind].main),
        rows=tuple(rows(memory, blamed)),
        steps=tuple(steps),
        forecast=forecast,
        curve=curve(forecast) if forecast else None,
        related=related,
        graph=graph(memory.id, memory.kind, memory.title, related),
        contested=(),
        problems=(),
    )
