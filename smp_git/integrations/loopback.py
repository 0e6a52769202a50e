"""Servers on this machine: on loopback alone, for requests to their own address, with a secret."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from smp_git.model.errors import InvalidError

HOST: Final = "127.0.0.1"
# Under this name people reach it too.
_ALIAS: Final = "localhost"


class Refusal(NamedTuple):
    """An answer to a request that is not let in."""

    status: int
    text: str
    headers: tuple[tuple[bytes, bytes], ...] = ()


# Headers by lower-case name, and the path.
Admit = Callable[[Mapping[bytes, bytes], str], "Refusal | None"]


@contextmanager
def listening(port: int) -> Iterator[socket.socket]:
    """Yield a socket on a port of this machine alone; 0 takes a free one."""
    try:
        made = socket.create_server((HOST, port))
    except OverflowError:
        raise InvalidError(f"there is no port {port}", hint="ports go up to 65535") from None
    except OSError as error:
        why = os.strerror(error.errno or 0)
        raise InvalidError(f"cannot listen on port {port}: {why}") from None
    # Connections take it over; asyncio sets it only on sockets that name their protocol. Without
    # it each answer waits 40 ms for the client to acknowledge the first half.
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    with made:
        yield made


def address(listener: socket.socket) -> str:
    """Return host and port of a socket."""
    return f"{HOST}:{listener.getsockname()[1]}"


def server(app: Any) -> Any:  # noqa: ANN401 - ASGI
    """Return what serves an application; requests are not logged."""
    import uvicorn  # noqa: PLC0415 - of extras

    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="on",
        server_header=False,
        # Nobody stands between; what such headers say would be believed.
        proxy_headers=False,
    )
    return uvicorn.Server(config)


def run(app: Any, listener: socket.socket) -> None:  # noqa: ANN401 - ASGI
    """Serve an application until the process is told to stop."""
    server(app).run(sockets=[listener])


def is_secret(given: str | bytes, secret: str) -> bool:
    """Whether what was given is the secret; how long this takes tells nothing."""
    shown = given if isinstance(given, bytes) else given.encode("utf-8", "replace")
    return secrets.compare_digest(shown, secret.encode())


def guarded(app: Any, place: str, admit: Admit) -> Any:  # noqa: ANN401 - ASGI
    """Return an application that answers only requests to its own address that `admit` lets in.

    A name of somebody else's that leads here is no address of ours, and a page of
    somebody else's may not ask.
    """
    hosts = (place.encode(), place.replace(HOST, _ALIAS).encode())
    origins = tuple(b"http://" + host for host in hosts)

    async def asgi(scope: Any, receive: Any, send: Any) -> None:  # noqa: ANN401 - ASGI
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        headers = dict(scope.get("headers") or ())
        if headers.get(b"host") not in hosts:
            refusal = Refusal(421, "this is not the address of this server")
        elif headers.get(b"origin", origins[0]) not in origins:
            refusal = Refusal(403, "pages from elsewhere may not ask this server")
        else:
            found = admit(headers, scope.get("path", ""))
            if found is None and scope["type"] == "http":
                await app(scope, receive, send)
                return
            refusal = found or Refusal(403, "only requests over HTTP are answered")
        await _refuse(refusal, send)

    return asgi


async def _refuse(refusal: Refusal, send: Any) -> None:  # noqa: ANN401 - ASGI
    body = f"{refusal.text}\n".encode()
    head = [
        (b"content-type", b"text/plain; charset=utf-8"),
        (b"content-length", str(len(body)).encode()),
        (b"cache-control", b"no-store"),
        (b"x-content-type-options", b"nosniff"),
        *refusal.headers,
    ]
    await send({"type": "http.response.start", "status": refusal.status, "headers": head})
    await send({"type": "http.response.body", "body": body})
