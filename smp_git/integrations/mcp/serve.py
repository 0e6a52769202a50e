"""Start of the server, over standard input and output or over HTTP on this machine."""

from __future__ import annotations

import secrets
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from smp_git.integrations import loopback
from smp_git.integrations.mcp.desk import Offer
from smp_git.model.errors import InvalidError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
    from mcp.server.transport_security import (  # noqa: PLC0415 - an extra
        TransportSecuritySettings,
    )

    from smp_git.integrations.mcp.server import make  # noqa: PLC0415 - an extra

    secret = token or secrets.token_urlsafe(32)
    if len(secret) < _LEAST_TOKEN:
        raise InvalidError(f"a token needs {_LEAST_TOKEN} characters or more")
    server, sessions = make(offer, is_connected=False)
    try:
        with loopback.listening(port) as listener:
            place = loopback.address(listener)
            app = server.streamable_http_app(
                stateless_http=True,
                json_response=True,
                # Where a request goes and where it comes from is checked before.
                transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            )
            tell(f"http://{place}/mcp", secret)
            loopback.run(loopback.guarded(app, place, _needing(secret)), listener)
    finally:
        sessions.close()


def _needing(secret: str) -> loopback.Admit:
    """Return what admits only who shows the token."""

    def admit(headers: Mapping[bytes, bytes], _: str) -> loopback.Refusal | None:
        if loopback.is_secret(headers.get(b"authorization", b""), f"Bearer {secret}"):
            return None
        return loopback.Refusal(401, "a token is needed", ((b"www-authenticate", b"Bearer"),))

    return admit
