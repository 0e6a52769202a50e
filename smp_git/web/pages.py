"""The pages: for each address, what is asked of the doors, and which template shows it."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Final, NamedTuple

from starlette.responses import JSONResponse, Response

from smp_git.model.errors import InvalidError, NotFoundError, SessionArchivedError, SmpError
from smp_git.model.memory import Memory, MemoryId
from smp_git.read.history import Version
from smp_git.web.editing import FormField, form_of
from smp_git.web.look import Look, look
from smp_git.web.seen import version_of
from smp_git.web.views import (
    branches,
    compare,
    context,
    found,
    memory,
    overview,
    sessions,
    timeline,
    trash,
)
from smp_git.web.views.memory import FieldDelta
from smp_git.web.views.timeline import Narrowing
from smp_git.web.visit import Visit

_LOG: Final = 100


def all_sessions(visit: Visit) -> Response:
    """Return the list of sessions."""
    site = visit.site
    view = sessions.sessions(site.store, site.sessions.every())
    return visit.show("sessions.html", view)


def search_all(visit: Visit) -> Response:
    """Return what answers in any session."""
    text = visit.asked("q")
    view = found.search_all(visit.site.store, text, is_typing=_is_typing(visit))
    return _results(visit, view, None, text)


def one_session(visit: Visit) -> Response:
    """Return the first page of a session; of an archived one what its summary keeps."""
    try:
        session = visit.session
    except SessionArchivedError:
        return _archived(visit)
    seen = visit.look()
    view = overview.overview(seen, is_warm=visit.site.sessions.is_warm(session))
    return visit.show("overview.html", view, name="overview", seen=seen)


def _archived(visit: Visit) -> Response:
    name = visit.path["session"]
    for each in visit.site.store.archived_sessions():
        if each.session == name:
            return visit.show("archived.html", each)
    raise NotFoundError(f"no session {name}")


def show_timeline(visit: Visit) -> Response:
    """Return a page of the timeline."""
    seen = visit.look()
    view = timeline.timeline(seen, _narrowing(visit), visit.number("page"))
    return visit.show("timeline.html", view, name="timeline", seen=seen)


def _narrowing(visit: Visit) -> Narrowing:
    return Narrowing(*(visit.asked(name) for name in Narrowing._fields))


def search(visit: Visit) -> Response:
    """Return what answers in a session; while somebody types, the results alone."""
    seen, text = visit.look(), visit.asked("q")
    view = found.search(seen, text, _narrowing(visit), is_typing=_is_typing(visit))
    return _results(visit, view, seen, text)


def _is_typing(visit: Visit) -> bool:
    return visit.query.get("part") == "1"


def _results(visit: Visit, view: found.FoundHits, seen: Look | None, text: str) -> Response:
    if _is_typing(visit):
        return visit.part("results.html", view, visit)
    return visit.show("search.html", view, name="search", seen=seen, text=text)


def show_memory(visit: Visit) -> Response:
    """Return one memory; one that was deleted says what can be done."""
    seen, name = visit.look(), visit.path["memory"]
    try:
        view = memory.memory(seen, name)
    except NotFoundError:
        if _is_in_trash(seen, name):
            raise NotFoundError(
                f"{name} was deleted", hint="the trash of the session restores it"
            ) from None
        raise
    return visit.show("memory.html", view, seen=seen, version_of=version_of(view.memory))


def _is_in_trash(seen: Look, name: str) -> bool:
    with suppress(SmpError):
        return any(each.id == name for each in seen.session.trash())
    return False


class EditView(NamedTuple):
    """The form to edit a memory, with what went wrong at the last try."""

    memory: Memory
    fields: tuple[FormField, ...]
    changed: tuple[FieldDelta, ...] = ()
    problem: SmpError | None = None
    is_moved: bool = False


def edit_memory(visit: Visit) -> Response:
    """Return the form to edit a memory; what was said is not edited."""
    seen, one = _one(visit)
    if one.kind == "turn":
        raise InvalidError(f"{one.id} is a turn, and a turn is not edited", hint="forget it")
    view = EditView(one, form_of(one))
    return visit.show("edit.html", view, seen=seen, version_of=version_of(one))


def _one(visit: Visit) -> tuple[Look, Memory]:
    """Return the memory that is asked for, as it is now."""
    seen = look(visit.session, visit.now)
    return seen, seen.session.get(visit.path["memory"], at=seen.at)


class ForgetView(NamedTuple):
    """A memory that is to be forgotten, and what that would do."""

    memory: Memory
    deadline: datetime | None
    others: tuple[MemoryId, ...]
    linked: tuple[MemoryId, ...]
    has_keys: bool


def confirm_forgetting(visit: Visit) -> Response:
    """Return what forgetting a memory would do, and the form that does it."""
    seen, one = _one(visit)
    session, has_keys = seen.session, visit.site.store.key_folder is not None
    plan = session.delete(one.id, dry_run=True)
    linked = session.related(one.id, depth=1, at=seen.at, now=seen.now)
    view = ForgetView(
        memory=one,
        deadline=plan.deadline if has_keys else None,
        others=tuple(each for each in plan.ids if each != one.id),
        linked=tuple(dict.fromkeys(each.id for each in linked if each.direction == "from")),
        has_keys=has_keys,
    )
    return visit.show("forget.html", view, seen=seen, version_of=version_of(one))


def show_commit(visit: Visit) -> Response:
    """Return what one commit changed."""
    seen = look(visit.session, visit.now)
    view = compare.one_commit(seen, visit.path["commit"])
    return visit.show("commit.html", view, name="log", seen=seen)


class LogView(NamedTuple):
    """A page of the log."""

    versions: tuple[Version, ...]
    page: int
    has_more: bool


def show_log(visit: Visit) -> Response:
    """Return a page of the log."""
    seen, page = look(visit.session, visit.now), visit.number("page")
    versions = seen.session.log(limit=_LOG * page + 1)
    shown = tuple(islice(versions, _LOG * (page - 1), _LOG * page))
    view = LogView(shown, page, has_more=len(versions) > _LOG * page)
    return visit.show("log.html", view, name="log", seen=seen)


def show_comparison(visit: Visit) -> Response:
    """Return what differs between two moments."""
    seen = look(visit.session, visit.now)
    old, new = visit.asked("old") or "HEAD~1", visit.asked("new") or "HEAD"
    view = compare.compare(seen, old, new)
    return visit.show("compare.html", view, name="compare", seen=seen, old=old, new=new)


def show_branches(visit: Visit) -> Response:
    """Return the branches, and what merging them would do."""
    seen = look(visit.session, visit.now)
    return visit.show("branches.html", branches.branches(seen), name="branches", seen=seen)


def show_trash(visit: Visit) -> Response:
    """Return what was deleted."""
    seen = look(visit.session, visit.now)
    return visit.show("trash.html", trash.trash(seen), name="trash", seen=seen)


def show_receipt(visit: Visit) -> Response:
    """Return the receipt of a deletion."""
    seen = look(visit.session, visit.now)
    view = trash.receipt(seen, visit.path["deletion"])
    return visit.show("receipt.html", view, name="trash", seen=seen)


def show_size(visit: Visit) -> Response:
    """Return the size of a session."""
    seen = look(visit.session, visit.now)
    return visit.show("size.html", overview.sizes(seen), name="size", seen=seen)


def show_context(visit: Visit) -> Response:
    """Return what an agent would be told for a prompt."""
    seen = visit.look()
    given = (visit.asked(name) for name in ("prompt", "agent", "budget"))
    return visit.show("context.html", context.briefing(seen, *given), name="context", seen=seen)


def news(visit: Visit) -> Response:
    """Return whether a session has moved since a commit, for pages that are open."""
    session = visit.session
    head = session.head
    if head == visit.asked("since"):
        return JSONResponse({"moved": False})
    version = session.version(head)
    return JSONResponse({"moved": True, "agent": version.agent, "subject": version.subject})
