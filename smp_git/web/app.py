"""The application: addresses, forms that are sent, and what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route

from smp_git.integrations.loopback import is_secret
from smp_git.model.errors import (
    AccessError,
    ConflictError,
    DamagedError,
    InvalidError,
    LockedError,
    NotFoundError,
    RefusedError,
    SmpError,
    StorageError,
)
from smp_git.web import pages, render, writes
from smp_git.web.door import ENTER, HEADERS
from smp_git.web.links import PageLinks
from smp_git.web.visit import ProblemView, Visit, WebSite

Handler = Callable[[Visit], Response]

# A text of the greatest size, each character written with three, and some fields.
_MOST_BODY: Final = 4 * 1024 * 1024
_MOST_INPUTS: Final = 500
_SLOWEST_SECONDS: Final = 15.0
_TYPES: Final = {
    "css": "text/css",
    "js": "text/javascript",
    "svg": "image/svg+xml",
}
# The first that fits counts.
_STATUSES: Final[tuple[tuple[type[SmpError], int], ...]] = (
    (NotFoundError, 404),
    (ConflictError, 409),
    (AccessError, 403),
    (LockedError, 503),
    (RefusedError, 409),
    (InvalidError, 400),
    (DamagedError, 500),
    (StorageError, 507),
)

_ADDED: Final = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]

_GETS: Final[Mapping[str, Handler]] = {
    "/": pages.all_sessions,
    "/search": pages.search_all,
    "/s/{session}/": pages.one_session,
    "/s/{session}/timeline": pages.show_timeline,
    "/s/{session}/search": pages.search,
    "/s/{session}/context": pages.show_context,
    "/s/{session}/log": pages.show_log,
    "/s/{session}/compare": pages.show_comparison,
    "/s/{session}/branches": pages.show_branches,
    "/s/{session}/trash": pages.show_trash,
    "/s/{session}/receipts/{deletion}": pages.show_receipt,
    "/s/{session}/size": pages.show_size,
    "/s/{session}/news": pages.news,
    "/s/{session}/c/{commit}": pages.show_commit,
    "/s/{session}/m/{memory}": pages.show_memory,
    "/s/{session}/m/{memory}/edit": pages.edit_memory,
    "/s/{session}/m/{memory}/forget": pages.confirm_forgetting,
}
_POSTS: Final[Mapping[str, Handler]] = {
    "/s/{session}/restore": writes.restore,
    "/s/{session}/m/{memory}/{action}": writes.change,
    "/s/{session}/m/{memory}/forget": writes.forget,
    "/s/{session}/m/{memory}/edit": writes.edit,
}


def make(site: WebSite) -> Any:  # noqa: ANN401 - ASGI
    """Return the application of a site."""

    @asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:  # noqa: ANN401 - starlette's own
        yield
        await run_in_threadpool(site.sessions.close)

    # What is said first is tried first.
    posts = sorted(_POSTS.items(), key=lambda item: "{action}" in item[0])
    routes = [
        Route(ENTER, _entering(site)),
        Route("/static/{name}", _static),
        *(Route(path, _answering(site, work)) for path, work in _GETS.items()),
        *(Route(path, _answering(site, work), methods=["POST"]) for path, work in posts),
    ]
    made = Starlette(
        routes=[Mount(site.door.root, routes=routes)],
        exception_handlers={HTTPException: _no_page, Exception: _bug},
        lifespan=lifespan,
    )
    return _WithHeaders(made)


class _WithHeaders:
    """Adds to each answer what a browser may do with it."""

    def __init__(self, app: Any) -> None:  # noqa: ANN401 - ASGI
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        """Answer one request."""

        async def sending(message: Any) -> None:  # noqa: ANN401 - ASGI
            if message["type"] == "http.response.start":
                said = dict(message.get("headers", ()))
                added = [each for each in _ADDED if each[0] not in said]
                message = {**message, "headers": [*message.get("headers", ()), *added]}
            await send(message)

        await self._app(scope, receive, sending)


def _entering(site: WebSite) -> Callable[[Request], Response]:
    """Return what lets a browser in that shows the code."""
    links = PageLinks(root=site.door.root)
    start = links.session(site.start) if site.start else links.home()

    def enter(request: Request) -> Response:
        known = site.door.is_known(dict(request.scope["headers"]))
        if not known and not site.door.enter(request.query_params.get("code", "")):
            return PlainTextResponse(
                "This link was used already, or is of an earlier run.\n"
                "If it was not you who used it, stop smp web with Ctrl-C; start it again for"
                " another link.\n",
                status_code=403,
            )
        # A browser that comes from elsewhere sends the cookie only from the next page on.
        answer = HTMLResponse(render.page("enter.html", start=start))
        answer.headers["Referrer-Policy"] = "no-referrer"
        if not known:
            answer.headers["Set-Cookie"] = site.door.cookie
        return answer

    return enter


def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in render.assets():
        raise HTTPException(404)
    return Response(render.asset(name), media_type=_TYPES[name.rpartition(".")[2]])


def _no_page(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    words = {404: "there is no such page", 405: "this page is not written to"}
    return PlainTextResponse(f"{words.get(status, 'this cannot be answered')}\n", status)


def _bug(_: Request, __: Exception) -> Response:
    return PlainTextResponse("This should not have happened; the terminal says what did.\n", 500)


def _answering(site: WebSite, work: Handler) -> Callable[[Request], Any]:
    """Return an endpoint: the form is read without a thread, the work is done in one."""

    async def endpoint(request: Request) -> Response:
        form: Mapping[str, str] = {}
        if request.method == "POST":
            read = await _form(request)
            if isinstance(read, Response):
                return read
            form = read
            if not is_secret(form.get("token", ""), site.door.token):
                return PlainTextResponse("the form's token is missing; reload the page\n", 403)
        visit = Visit(
            site=site,
            path=request.path_params,
            query=dict(request.query_params),
            form=form,
            now=site.clock(),
        )
        return await run_in_threadpool(_worked, work, visit)

    return endpoint


async def _form(request: Request) -> dict[str, str] | Response:
    """Return what a form says, or the refusal of one that is too large or comes too slowly."""
    body = bytearray()
    try:
        async with asyncio.timeout(_SLOWEST_SECONDS):
            async for piece in request.stream():
                body += piece
                if len(body) > _MOST_BODY:
                    return PlainTextResponse("that is too much at once\n", 413)
        pairs = parse_qsl(
            body.decode(), keep_blank_values=True, max_num_fields=_MOST_INPUTS, errors="strict"
        )
    except (TimeoutError, ClientDisconnect):
        return PlainTextResponse("the form took too long\n", 408)
    except ValueError:
        return PlainTextResponse("this is not a form\n", 400)
    return dict(pairs)


def _worked(work: Handler, visit: Visit) -> Response:
    try:
        return work(visit)
    except SmpError as error:
        return _problem(visit, error)


def _problem(visit: Visit, error: SmpError) -> Response:
    """Return the page that says what went wrong, and the way out."""
    status = next((number for kind, number in _STATUSES if isinstance(error, kind)), 500)
    if visit.query.get("part"):
        return visit.part("problem.html", error, visit, status=status)
    ways = [(visit.links.home(), "All sessions")]
    if "session" in visit.path:
        ways.append((visit.links.now(), "The session"))
    if "memory" in visit.path and status == 409:  # noqa: PLR2004 - a conflict
        ways.append((visit.links.memory(visit.path["memory"]), "The memory as it is now"))
    view = ProblemView(
        title={404: "Not found", 409: "Not done"}.get(status, "That did not work"),
        message=error.message,
        hint=error.hint,
        changed=writes.changed_in(error),
        ways=tuple(ways),
    )
    return visit.show("message.html", view, status=status)
