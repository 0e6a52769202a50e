"""Who gets in: one person with the link, from the page's own address, and nobody else."""

from __future__ import annotations

import re
import socket
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from smp_git import Session, Store
from tests.support import ROOT
from tests.web.served import Served, Visitor, served


def test_link_lets_in_once(server: Served) -> None:
    link = urlsplit(server.link)
    first, second = Visitor(server), Visitor(server)

    entered = first.enter()
    assert (entered.status, entered.headers["referrer-policy"]) == (200, "no-referrer")
    again = second.ask("GET", f"{link.path}?{link.query}", inside=False)
    assert (again.status, "set-cookie" in again.headers) == (403, False)
    assert "used already" in again.text
    assert first.get("/").status == 200
    assert second.get("/").status == 403
    # Who is in may open the link once more, e.g. with the button that goes back.
    assert first.ask("GET", f"{link.path}?{link.query}", inside=False).status == 200


def test_cookie_is_for_the_secret_path_alone(server: Served) -> None:
    cookie = Visitor(server).enter().headers["set-cookie"]

    assert f"Path={server.door.root}/;" in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert len(server.door.root) > 16


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1"}, 421),
        ({"Host": "127.0.0.1.evil.example:80"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Origin": "https://ADDRESS"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
        ({"Sec-Fetch-Site": "same-site"}, 403),
        ({"Cookie": ""}, 403),
        ({"Cookie": "smp=wrong"}, 403),
        ({"Cookie": "smp"}, 403),
        ({"Cookie": "smp=\x01\xff; =;;;"}, 403),
    ],
    ids=str,
)
def test_strangers_are_refused(
    visitor: Visitor, session: Session, headers: dict[str, str], status: int
) -> None:
    given = {
        name: value.replace("ADDRESS", visitor.server.address) for name, value in headers.items()
    }
    for method, path, body in (("GET", "/", None), ("POST", "/s/shop/restore", "id=x")):
        if "Cookie" in given:
            visitor.cookie = given["Cookie"]
        sent = {name: value for name, value in given.items() if name != "Cookie"}
        answer = visitor.ask(method, path, body, headers=sent)

        assert answer.status == status
        assert visitor.server.door.token not in answer.text


def test_a_cookie_that_another_server_sets_locks_nobody_out(visitor: Visitor) -> None:
    for cookie in (
        f"smp=evil; {visitor.cookie}",
        f"{visitor.cookie}; smp=evil",
        f"a=b;{visitor.cookie}",
    ):
        visitor.cookie, kept = cookie, visitor.cookie
        assert visitor.get("/").status == 200
        visitor.cookie = kept


def test_localhost_is_the_same_place(visitor: Visitor) -> None:
    port = visitor.server.address.partition(":")[2]

    assert visitor.ask("GET", "/", headers={"Host": f"localhost:{port}"}).status == 200


@pytest.mark.parametrize("path", ["/", "/wrong/", "//", "/%2e%2e/", "/static/page.css", "/enter"])
def test_what_is_not_below_the_secret_path_is_not_there(visitor: Visitor, path: str) -> None:
    assert visitor.ask("GET", path, inside=False).status == 404


def test_forms_need_their_token(visitor: Visitor, shop: Session) -> None:
    before, page = shop.head, visitor.get("/s/shop/m/DEC-0001")
    for token in ("", "wrong", page.hidden["token"][:-1]):
        answer = visitor.post("/s/shop/m/DEC-0001/pin", {**page.hidden, "token": token})
        assert answer.status == 403
    for action in ("pin", "tags", "resolve", "settle"):
        assert visitor.get(f"/s/shop/m/DEC-0001/{action}").status == 405

    assert shop.head == before


def test_every_answer_says_what_a_browser_may_do(visitor: Visitor, shop: Session) -> None:
    for path in (
        "/",
        "/s/shop/",
        "/s/shop/m/DEC-0001",
        "/static/page.css",
        "/s/shop/nowhere",
        "/s/none/",
    ):
        headers = visitor.get(path).headers
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; script-src 'self'"
        )
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert "server" not in headers


def test_page_asks_nothing_from_elsewhere(visitor: Visitor, shop: Session) -> None:
    root = visitor.server.door.root
    for path in (
        "/",
        "/s/shop/",
        "/s/shop/timeline",
        "/s/shop/m/DEC-0001",
        "/s/shop/search?q=oauth",
    ):
        page = visitor.get(path).page
        assert [href for href in page.hrefs if not href.startswith((f"{root}/", "#"))] == []
        assert [source for source in page.scripts if not source.startswith(f"{root}/static/")] == []


def test_a_read_only_page_writes_nothing(store: Store, shop: Session) -> None:
    before = shop.head
    with served(store, read_only=True) as server:
        visitor = Visitor(server)
        visitor.enter()
        page = visitor.get("/s/shop/m/DEC-0001")
        answer = visitor.post("/s/shop/m/DEC-0001/pin", {"token": server.door.token})

    assert '<form method="post"' not in page.text
    assert answer.status == 409
    assert "read-only" in answer.told
    assert shop.head == before


def test_slow_and_silent_clients_keep_nobody_waiting(visitor: Visitor) -> None:
    host, port = visitor.server.address.split(":")
    silent = [socket.create_connection((host, int(port))) for _ in range(100)]
    try:
        for number, each in enumerate(silent):
            head = (
                f"POST {visitor.server.door.root}/s/x/restore HTTP/1.1\r\nHost: {host}:{port}\r\n"
            )
            each.sendall((head + f"Cookie: {visitor.cookie}\r\n")[: 20 + number].encode())
        answer = visitor.get("/")
    finally:
        for each in silent:
            each.close()

    assert answer.status == 200


def test_command_prints_the_link_and_logs_nothing(store: Store, shop: Session) -> None:
    command = [sys.executable, "-P", "-m", "smp_git", "--root", str(store.path), "web"]
    with subprocess.Popen(
        command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        assert process.stderr
        link = urlsplit(process.stdout.readline().strip())
        root = link.path.removesuffix("/enter")
        server = Served(link.netloc, _Known(root, link.query), None)  # type: ignore[arg-type]
        visitor = Visitor(server)
        assert visitor.enter().status == 200
        assert visitor.get("/s/shop/").status == 200
        token = visitor.get("/s/shop/m/DEC-0001").hidden["token"]
        process.terminate()
        said = process.stdout.read() + process.stderr.read()

    assert "Traceback" not in said
    secrets = [root, link.query, visitor.cookie.partition("=")[2], token]
    assert [each for each in secrets if each in said] == []
    assert re.search("works once", said)


class _Known:
    """The way in to a server of another process."""

    def __init__(self, root: str, query: str) -> None:
        self.root = root
        self._query = query

    def link(self, address: str) -> str:
        return f"http://{address}{self.root}/enter?{self._query}"
