"""The way in to the page: a link that works once, then a cookie that is good for one address."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Mapping
from typing import Final

from smp_git.integrations.loopback import Refusal, is_secret

COOKIE: Final = b"smp"
ENTER: Final = "/enter"
# Where a browser says that a request comes from: our own page, or a person.
_OWN: Final = (b"same-origin", b"none")
# What a page may do: load what comes from here, and nothing that is written into it.
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self';"
    " form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Not "no-referrer": a browser then calls the origin of our own forms "null".
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Door:
    """The secrets of one run of the server.

    Browsers send cookies to every port of a machine, so that another server on it would
    get ours. Therefore the cookie is good only below `root`, a path that nobody else knows;
    and who knows the path, from a history of a browser, still has no cookie.
    """

    def __init__(self) -> None:
        self.root = f"/{secrets.token_urlsafe(12)}"
        self.token = secrets.token_urlsafe(32)
        self._secret = secrets.token_urlsafe(32)
        self._code: str | None = secrets.token_urlsafe(32)
        self._entering = threading.Lock()

    def link(self, address: str) -> str:
        """Return the link that lets a browser in, once."""
        return f"http://{address}{self.root}{ENTER}?code={self._code}"

    def enter(self, code: str) -> bool:
        """Return whether a code lets somebody in; it does so once."""
        with self._entering:
            if self._code is None or not is_secret(code, self._code):
                return False
            self._code = None
            return True

    @property
    def cookie(self) -> str:
        """The header that lets a browser in from now on."""
        return f"{COOKIE.decode()}={self._secret}; Path={self.root}/; HttpOnly; SameSite=Strict"

    def admit(self, headers: Mapping[bytes, bytes], path: str) -> Refusal | None:
        """Return why a request is not let in, None if it is."""
        if not path.startswith(f"{self.root}/"):
            return Refusal(404, "there is nothing here: open the link that smp web printed")
        if path == f"{self.root}{ENTER}":
            return None
        if headers.get(b"sec-fetch-site", b"none") not in _OWN:
            return Refusal(403, "pages from elsewhere may not ask this server")
        if not self.is_known(headers):
            return Refusal(
                403,
                "this page is for who started it: open the link that smp web printed;"
                " if it was used already, start smp web again",
            )
        return None

    def is_known(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether a request has the cookie, perhaps among others of its name.

        Another server on this machine may set one for all ports, so as to lock us out.
        """
        found = headers.get(b"cookie", b"").split(b";")
        given = [
            value.strip()
            for name, _, value in (each.partition(b"=") for each in found)
            if name.strip() == COOKIE
        ]
        return any(is_secret(value, self._secret) for value in given)
