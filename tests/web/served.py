"""A page that is really served on loopback, and who visits it: a browser without a screen or scripts."""

from __future__ import annotations

import http.client
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from smp_git import Store
from smp_git.integrations import loopback
from smp_git.web import app
from smp_git.web.desk import OpenSessions
from smp_git.web.door import Door
from smp_git.web.visit import WebSite
from tests.web.hostile import Page

_INPUT = re.compile(r'<input type="hidden" name="(token|seen|commit)" value="([^"]*)">')


@dataclass(frozen=True)
class Served:
    """A server at work."""

    address: str
    door: Door
    site: WebSite

    @property
    def link(self) -> str:
        return self.door.link(self.address)


@contextmanager
def served(store: Store, **more: object) -> Iterator[Served]:
    """Serve a store, in this process."""
    door = Door()
    site = WebSite(store, OpenSessions(store), door, store.clock, **more)  # type: ignore[arg-type]
    with loopback.listening(0) as listener:
        place = loopback.address(listener)
        server = loopback.server(loopback.guarded(app.make(site), place, door.admit))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield Served(place, door, site)
        finally:
            server.should_exit = True
            thread.join(30)
            assert not thread.is_alive()


@dataclass
class Answer:
    """What a server answered."""

    status: int
    text: str
    headers: Mapping[str, str]

    @property
    def page(self) -> Page:
        return Page(self.text)

    @property
    def told(self) -> str:
        """The text that a person reads, on one line."""
        return " ".join(" ".join(self.page.text).split())

    @property
    def hidden(self) -> dict[str, str]:
        """What the forms of the page carry."""
        return dict(_INPUT.findall(self.text))


@dataclass
class Visitor:
    """A browser of a person who has opened the link; `cookie` is what it was given."""

    server: Served
    cookie: str = ""

    def enter(self) -> Answer:
        """Open the link."""
        parts = urlsplit(self.server.link)
        answer = self.ask("GET", f"{parts.path}?{parts.query}", inside=False)
        self.cookie = answer.headers.get("set-cookie", "").partition(";")[0]
        return answer

    def get(self, path: str, **query: str) -> Answer:
        """Look at a page."""
        return self.ask("GET", f"{path}?{urlencode(query)}" if query else path)

    def post(self, path: str, form: Mapping[str, str], *, follow: bool = True) -> Answer:
        """Send a form, and go where that leads."""
        answer = self.ask("POST", path, urlencode(form))
        if follow and answer.status == 303:
            where = answer.headers["location"].removeprefix(self.server.door.root)
            return self.get(where)
        return answer

    def send(self, path: str, action: str, /, **form: str) -> Answer:
        """Send the form of a memory's page, as it is now."""
        return self.post(f"{path}/{action}", {**self.get(path).hidden, **form})

    def ask(
        self,
        method: str,
        path: str,
        body: str | bytes | None = None,
        *,
        inside: bool = True,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """Send a request with these headers besides the usual ones."""
        given = {"Cookie": self.cookie, **(headers or {})}
        if body is not None:
            given.setdefault("Content-Type", "application/x-www-form-urlencoded")
            given.setdefault("Origin", f"http://{self.server.address}")
        connection = http.client.HTTPConnection(self.server.address, timeout=60)
        try:
            root = self.server.door.root if inside else ""
            connection.request(method, f"{root}{path}", body, {k: v for k, v in given.items() if v})
            answer = connection.getresponse()
            text = answer.read().decode()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, text, found)
        finally:
            connection.close()
