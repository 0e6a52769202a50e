"""Writes pictures of a terminal, the page and a report: `python -m tests.pictures FOLDER`.

Each page in light and dark, wide and narrow, of a session that is told here. They are
made when the docs are built, and not kept in the repository.
"""

from __future__ import annotations

import html
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path
from typing import Any

from smp_git import Session, Store
from smp_git.web import report
from tests.face.support import environment, on_terminal
from tests.web.browser import NARROW, WIDE, browser, picture
from tests.web.served import served

PAGES = {
    "sessions": "", "overview": "s/shop/", "timeline": "s/shop/timeline",
    "search": "s/shop/search?q=session+timeout", "decision": "s/shop/m/DEC-0002",
    "finding": "s/shop/m/FIND-0001", "edit": "s/shop/m/DEC-0002/edit",
    "forget": "s/shop/m/DEC-0002/forget", "log": "s/shop/log", "branches": "s/shop/branches",
    "context": "s/shop/context?prompt=How+long+may+a+session+live%3F&agent=veritas&budget=350",
    "compare": "s/shop/compare?old=1+week+ago&new=HEAD", "trash": "s/shop/trash",
    "size": "s/shop/size", "past": "s/shop/?at=2+weeks+ago",
}  # fmt: skip


# What is typed for the pictures of a terminal, each picture with a name.
TYPED = {
    "start": ("smp", "smp status"),
    "ask": ("smp list -k finding", 'smp query "how long may a session live" --limit 3'),
    "history": ("smp log -n 8 --graph", "smp diff DEC-2", "smp blame DEC-2"),
    "forget": ("smp trash", "smp restore LEARN-2", "smp show LEARN-2"),
    "wrong": ("smp shwo DEC-2", "smp show DEC-99", "smp add finding --severity high"),
}
_COLOURS = {
    "1": "font-weight: bold", "2": "opacity: .65", "3": "font-style: italic",
    "4": "text-decoration: underline", "31": "color: #f47067", "32": "color: #8ddb8c",
    "33": "color: #daaa3f", "34": "color: #6cb6ff", "35": "color: #dcbdfb", "36": "color: #76e3ea",
}  # fmt: skip
_CODE = re.compile(r"\x1b\[([0-9;]*)m")
_SCREEN = """<!doctype html><meta charset="utf-8"><title>smp</title>
<style>body { margin: 0; background: #1c2128 }
pre { margin: 0; padding: 1.2rem; color: #cdd9e5; font: 14px/1.4 monospace; white-space: pre-wrap }
b { color: #8ddb8c }</style><pre>"""


class Calendar:
    """A clock that goes on by itself, and that a story moves on."""

    def __init__(self, start: datetime) -> None:
        self.now = start

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=20)
        return self.now


def main(folder: Path) -> None:
    """Write the pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        place = Path(scratch)
        clock = Calendar(datetime(2026, 10, 26, 9, 0, tzinfo=UTC))
        store = told(place, clock)
        with store.session("shop") as session:
            report.write(session, place / "shop.html", clock)
        with served(store) as server:
            root = f"http://{server.address}{server.door.root}/"
            link, cookies = server.link, list[dict[str, object]]()
            for size, dark in product((WIDE, NARROW), (False, True)):
                name = f"{size[0]}{'-dark' if dark else ''}"
                with browser(place / name, size=size, dark=dark) as driver:
                    driver.get(link if (size, dark) == (WIDE, False) else f"{root}static/icon.svg")
                    if (size, dark) == (WIDE, False):
                        cookies = driver.get_cookies()
                    for cookie in cookies:
                        driver.add_cookie(cookie)
                    for page, path in PAGES.items():
                        driver.get(f"{root}{path}")
                        picture(driver, folder / f"{page}-{name}.png")
                    driver.get(f"file://{place / 'shop.html'}")
                    # What is further down is drawn only when somebody gets there.
                    driver.execute_script(
                        "for (const each of document.querySelectorAll('article'))"
                        " each.style.contentVisibility = 'visible'"
                    )
                    picture(driver, folder / f"report-{name}.png")
        with browser(place / "terminal") as driver:
            terminal(driver, store.path, place, folder)


def terminal(driver: Any, root: Path, home: Path, folder: Path) -> None:
    """Write pictures of a terminal in which commands are typed."""
    env = environment(home, SMP_ROOT=str(root), SMP_SESSION="shop")
    for name, lines in TYPED.items():
        screen = home / f"{name}.html"
        shown = (f"<b>$</b> {html.escape(line)}\n{_typed(line, env)}\n" for line in lines)
        screen.write_text(_SCREEN + "".join(shown) + "</pre>", "utf-8")
        driver.get(f"file://{screen}")
        picture(driver, folder / f"terminal-{name}.png")


def _typed(line: str, env: dict[str, str]) -> str:
    """Return what a command leaves on a terminal, as HTML with its colours."""
    command = [sys.executable, "-P", "-m", "smp_git", *shlex.split(line)[1:]]
    text, opened = html.escape(on_terminal(command, columns=100, env=env)), 0
    out = []
    for number, part in enumerate(_CODE.split(text)):
        if not number % 2:
            out.append(part)
            continue
        styles = [_COLOURS[code] for code in part.split(";") if code in _COLOURS]
        if styles:
            opened += 1
            out.append(f'<span style="{"; ".join(styles)}">')
        else:
            out.append("</span>" * opened)
            opened = 0
    return "".join(out) + "</span>" * opened


def told(place: Path, clock: Calendar) -> Store:
    """Return a store with a session in which work was done, and one that was just begun."""
    (place / "store").mkdir()
    store = Store.init(place / "store", clock=clock)
    store.configure({"key_dir": str(place / "keys")})
    store = Store.open(place / "store", clock=clock)
    with store.create_session("shop", user="ada", agents=["veritas", "architect"]) as session:
        for _ in tell(session, clock):
            clock.now += timedelta(hours=5, minutes=17)
    with store.create_session("newsletter", user="ada") as other:
        other.add("decision", "Send it on Thursdays", agent="architect")
    return store


def tell(session: Session, clock: Calendar) -> Iterator[None]:
    """Work in a session for three weeks; each step is some hours after the one before."""
    yield from _first_week(session, clock)
    yield from _later(session, clock)


def _first_week(session: Session, clock: Calendar) -> Iterator[None]:
    say = session.add
    say("turn", "Let's review the login of the shop before the launch.", speaker="Ada", agent="ada")
    say(
        "turn",
        "I verify it against the requirements, the architect judges what is feasible.",
        speaker="Veritas",
        agent="veritas",
    )
    yield
    say(
        "finding",
        "No second factor for administrators\nAnybody with a leaked password is in: the admin pages ask for nothing else.",
        severity="critical",
        agent="veritas",
        tags=["security.authentication"],
        turn_ref="turn-0002",
        location={"file": "auth/login.py", "line": 112},
        recommendation="Ask administrators for a second factor",
    )
    say(
        "finding",
        "Session timeout not defined",
        severity="high",
        agent="veritas",
        tags=["security.session"],
        turn_ref="turn-0002",
        evidence="Section 3.2 says nothing of it",
    )
    yield
    say(
        "preference",
        "A second factor for administrators, optional for customers",
        agent="ada",
        category="policy",
        key="mfa",
        confidence="explicit",
    )
    say(
        "decision",
        "Use OAuth 2.0 with JWT tokens",
        agent="architect",
        tags=["security.authentication", "architecture"],
        rationale="Industry standard",
        impact="high",
        alternatives=["SAML", "sessions in the database"],
        links=[("resolves", "FIND-0001")],
    )
    clock.now += timedelta(days=2)
    yield
    session.edit(
        "DEC-1", agent="architect", rationale="Industry standard, and ready for single sign-on"
    )
    say(
        "decision",
        "Sessions end after 15 minutes",
        agent="architect",
        tags=["security.session"],
        rationale="The auditors ask for it",
        links=[("resolves", "FIND-0002"), ("led_to", "DEC-0001")],
    )
    say(
        "learning",
        "The auditors want each timeout in the protocol of the test",
        agent="veritas",
        tags=["audit"],
    )
    clock.now += timedelta(days=3)
    yield


def _later(session: Session, clock: Calendar) -> Iterator[None]:
    say = session.add
    session.resolve(
        "FIND-1", agent="veritas", action="A second factor is in the requirements", by="ada"
    )
    session.edit(
        "DEC-2",
        agent="ada",
        text="Sessions end after 20 minutes without a click",
        rationale="The auditors ask for a timeout; customers lost their baskets after 15 minutes",
    )
    say(
        "turn",
        "Customers lose their baskets after a quarter of an hour. Can it be longer?",
        speaker="Ada",
        agent="ada",
    )
    say(
        "turn",
        "20 minutes without a click is within the rules.",
        speaker="Veritas",
        agent="veritas",
    )
    clock.now += timedelta(days=4)
    yield
    with session.transaction(agent="veritas", reason="load test") as tx:
        slow = tx.add(
            "finding",
            "Checkout takes 4 seconds with 200 customers",
            severity="high",
            tags=["performance"],
        )
        tx.add("finding", "Log lines show whole addresses", severity="medium", tags=["privacy"])
        tx.set_state(
            "veritas",
            {"working_memory": {"open_concerns": [slow.id]}, "current_context": "load test"},
        )
    say(
        "artifact",
        "# Load test\n\n200 customers, 4.1 s at the 95th percentile.",
        name="load-test.md",
        agent="veritas",
        tags=["performance"],
    )
    clock.now += timedelta(days=3)
    yield
    with session.branch("try/redis") as aside:
        aside.add(
            "decision",
            "Keep baskets in Redis",
            agent="architect",
            tags=["performance"],
            impact="medium",
        )
        aside.edit("FIND-0003", severity="critical", agent="architect")
    session.edit("FIND-0003", severity="medium", agent="veritas")
    session.pin("DEC-2", agent="ada")
    clock.now += timedelta(days=2)
    yield
    private = say("learning", "Ada is on sick leave until the third of May", agent="veritas")
    session.delete(private.id, reason="private", by="ada")
    session.tag("before-launch")
    say("turn", "We launch on Monday.", speaker="Ada", agent="ada")
    yield


if __name__ == "__main__":
    main(Path(sys.argv[1]))
