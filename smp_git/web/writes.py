"""What is written from the page: forms that were sent, and the page that follows."""

from __future__ import annotations

from contextlib import suppress

from starlette.responses import Response

from smp_git.model.errors import NotFoundError, RefusedError, SmpError
from smp_git.web import actions
from smp_git.web.actions import NAMES, Write
from smp_git.web.editing import FormField, form_of, sent_form
from smp_git.web.look import look
from smp_git.web.pages import EditView
from smp_git.web.seen import StaleError, version_of
from smp_git.web.views.memory import FieldDelta
from smp_git.web.visit import Visit


def _write(visit: Visit) -> Write:
    """Return the write that a form asks for; raise RefusedError where nothing is written."""
    if visit.site.read_only:
        raise RefusedError("this page is read-only", hint="start smp web without --read-only")
    return Write(visit.session, visit.path.get("memory", ""), visit.form, visit.site.agent)


def change(visit: Visit) -> Response:
    """Pin, tag, resolve or settle a memory, and show it."""
    name = visit.path["action"]
    if name not in NAMES:
        raise NotFoundError(f"nothing is called {name}")
    commit = actions.do(name, _write(visit))
    return visit.go(visit.links.memory(visit.path["memory"]), commit)


def edit(visit: Visit) -> Response:
    """Edit a memory and show it; if that fails, the form comes back as it was sent."""
    write = _write(visit)
    try:
        commit = actions.do("edit", write)
    except SmpError as error:
        return _again(visit, error)
    return visit.go(visit.links.memory(visit.path["memory"]), commit)


def _again(visit: Visit, error: SmpError) -> Response:
    """Return the form with what somebody typed, and what went wrong."""
    seen = look(visit.session, visit.now)
    memory = seen.session.get(visit.path["memory"], at=seen.at)
    fields = sent_form(form_of(memory), visit.form, _before(visit))
    moved = isinstance(error, StaleError)
    view = EditView(memory, fields, changed_in(error), None if moved else error, is_moved=moved)
    # Who has been told what changed may save over it.
    shown = version_of(memory) if moved else visit.form.get("seen", "")
    status = 409 if moved else 400
    return visit.show("edit.html", view, seen=seen, version_of=shown, status=status)


def _before(visit: Visit) -> tuple[FormField, ...]:
    """Return the inputs as they were shown; nothing if that commit is gone."""
    with suppress(SmpError):
        return form_of(visit.session.get(visit.path["memory"], at=visit.form.get("commit", "")))
    return ()


def forget(visit: Visit) -> Response:
    """Forget a memory, and show the receipt."""
    receipt = actions.forget(_write(visit))
    return visit.go(visit.links.receipt(receipt.deletion), receipt.commit)


def restore(visit: Visit) -> Response:
    """Restore a memory, and show it."""
    write = _write(visit)
    commit = actions.restore(write.session, visit.form, visit.site.agent)
    return visit.go(visit.links.memory(visit.form["id"]), commit)


def changed_in(error: SmpError) -> tuple[FieldDelta, ...]:
    """Return what an error says changed meanwhile."""
    return error.changed if isinstance(error, StaleError) else ()
