"""Start of the server, over standard input and output or over HTTP on this machine."""

from __future__ import annotations

import secrets
import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from smp_git.integrations.mcp.desk import Offer
from smp_git.model.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable

_HOST: Final = "127.0.0.1"
_LEAST_TOKEN: Final = 16


def check_installed() -> None:
    """Raise InvalidError if the extra is not installed."""
    if find_spec("mcp") is None:
        raise InvalidError(
            "the MCP server needs the extra mcp, which is not installed",
            hint="pip install 'smp-git[mcp]'",
        )


def serve_stdio(offer: Offer) -> None:
    """Serve the program that started this one until it closes its end."""
    check_installed()
    from smp_git.integrations.mcp.server import make  # noqa: PLC0415 - an extra

    server, sessions = make(offer)
    try:
        server.run()
    finally:
        sessions.close()


def serve_http(
    offer: Offer, port: int, token: str | None, tell: Callable[[str, str], None]
) -> None:
    """Serve programs of this machine that know the token; `tell` gets the address and it."""
    check_installed()
    import uvicorn  # noqa: PLC0415 - an extra

    from smp_git.integrations.mcp.server import make  # noqa: PLC0415 - an extra

    secret = token or secrets.token_urlsafe(32)
    if len(secret) < _LEAST_TOKEN:
        raise InvalidError(f"a token needs {_LEAST_TOKEN} characters or more")
    server, sessions = make(offer, is_connected=False)
    try:
        with socket.create_server((_HOST, port)) as listening:
            address = f"{_HOST}:{listening.getsockname()[1]}"
            app = _guarded(
                server.streamable_http_app(
                    stateless_http=True, json_response=True, transport_security=_strict(address)
                ),
                secret,
            )
            config = uvicorn.Config(app, log_level="error", access_log=False, lifespan="on")
            tell(f"http://{address}/mcp", secret)
            uvicorn.Server(config).run(sockets=[listening])
    except OSError as error:
        raise InvalidError(f"cannot listen on port {port}: {error.strerror}") from None
    finally:
        sessions.close()


def _strict(address: str) -> Any:
    """Return what a request must say of where it goes and where it comes from."""
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415 - an extra

    names = [address, address.replace(_HOST, "localhost")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True,
        allowed_hosts=names,
        allowed_origins=[f"http://{name}" for name in names],
    )


def _guarded(app: Any, secret: str) -> Any:
    """Return an application that answers only who shows the token."""
    expected = f"Bearer {secret}".encode()

    async def guarded(scope: Any, receive: Any, send: Any) -> None:
        given = dict(scope.get("headers") or ()).get(b"authorization", b"")
        if scope["type"] == "http" and not secrets.compare_digest(given, expected):
            head = [(b"content-type", b"text/plain"), (b"www-authenticate", b"Bearer")]
            await send({"type": "http.response.start", "status": 401, "headers": head})
            await send({"type": "http.response.body", "body": b"a token is needed\n"})
            return
        await app(scope, receive, send)

    return guarded
