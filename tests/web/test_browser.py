"""The page and the report in a real browser: each task, by hand and by keyboard, for everybody."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from smp_git import Session, Store
from smp_git.web import report
from tests.conftest import Clock
from tests.web.browser import (
    NARROW,
    WIDE,
    axe,
    browser,
    complaints,
    require_browser,
    serious,
    tell,
)
from tests.web.hostile import RAN, TEXTS, hostile_session
from tests.web.served import Served

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

PAGES = ("", "s/shop/", "s/shop/timeline", "s/shop/search?q=oauth", "s/shop/m/DEC-0001",
         "s/shop/m/FIND-0001", "s/shop/m/DEC-0001/edit", "s/shop/m/DEC-0001/forget",
         "s/shop/context?prompt=oauth&budget=100", "s/shop/log", "s/shop/compare?old=HEAD~3",
         "s/shop/branches", "s/shop/trash", "s/shop/size", "s/shop/?at=HEAD~3", "s/none/")  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def _installed() -> None:
    require_browser()


@pytest.fixture
def driver(server: Served, shop: Session, tmp_path: Path) -> Iterator[Any]:
    """A browser that has opened the link."""
    with browser(tmp_path / "profile") as found:
        found.get(server.link)
        yield found


def address(server: Served, path: str = "") -> str:
    return f"http://{server.address}{server.door.root}/{path}"


def go(driver: Any, server: Served, path: str = "") -> None:
    driver.get(address(server, path))


def find(driver: Any, selector: str) -> Any:
    return driver.find_element("css selector", selector)


def every(driver: Any, selector: str) -> list[Any]:
    found: list[Any] = driver.find_elements("css selector", selector)
    return found


def until(holds: Any) -> Any:
    """Return what is true at last."""
    for _ in range(150):
        try:
            if found := holds():
                return found
        except Exception:  # noqa: BLE001 - the page is on its way
            pass
        time.sleep(0.1)
    return holds()


def text(driver: Any) -> str:
    return " ".join(find(driver, "body").text.split())


def test_link_opens_the_page_and_leaves_no_code_behind(driver: Any, server: Served) -> None:
    until(lambda: driver.current_url == address(server))

    assert "Sessions" in text(driver)
    assert driver.execute_script("return document.referrer") == ""
    assert driver.execute_script("return document.cookie") == ""
    assert complaints(driver) == []


def test_another_server_on_this_machine_gets_no_cookie(
    driver: Any, server: Served, store: Store, tmp_path: Path
) -> None:
    import http.server
    import threading

    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Cookie", ""))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    # A browser may open a second connection in advance, and say nothing on it.
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        driver.get(f"http://127.0.0.1:{other.server_port}/")
        driver.get(f"http://127.0.0.1:{other.server_port}/s/shop/")
        other.shutdown()

    assert seen
    assert [each for each in seen if "smp=" in each] == []


def test_results_come_while_somebody_types(driver: Any, server: Served) -> None:
    go(driver, server, "s/shop/search")
    find(driver, "#q").send_keys("oau")
    until(lambda: every(driver, "#results .hit"))

    assert "Use OAuth" in find(driver, "#results").text
    assert "q=oau" in driver.current_url
    # From any other page too, and what was there comes back.
    go(driver, server, "s/shop/timeline")
    find(driver, "body").send_keys("/")
    driver.switch_to.active_element.send_keys("timeo")
    until(lambda: every(driver, "#results .hit"))
    assert not find(driver, "#main").is_displayed()
    from selenium.webdriver.common.keys import Keys

    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(lambda: find(driver, "#main").is_displayed())
    assert complaints(driver) == []


def test_everything_is_reached_by_keyboard(driver: Any, server: Served) -> None:
    from selenium.webdriver.common.keys import Keys

    go(driver, server, "s/shop/")
    find(driver, "body").send_keys("2")
    until(lambda: "timeline" in driver.current_url)
    find(driver, "body").send_keys("j")
    until(lambda: every(driver, ".here"))
    driver.switch_to.active_element.send_keys(Keys.ENTER)
    until(lambda: "/m/" in driver.current_url)
    go(driver, server, "s/shop/m/DEC-0001")
    find(driver, "body").send_keys("?")
    assert "Keys" in until(lambda: find(driver, "dialog[open]")).text
    driver.switch_to.active_element.send_keys(Keys.ESCAPE)
    until(lambda: not driver.execute_script("return document.querySelector('dialog[open]')"))
    find(driver, "body").send_keys("e")
    until(lambda: driver.current_url.endswith("/edit"))
    # Nothing that can be used is out of the keyboard's reach.
    usable = "a[href], button, input:not([type=hidden]), select, textarea, summary"
    for path in ("s/shop/", "s/shop/m/DEC-0001", "s/shop/trash"):
        go(driver, server, path)
        unreachable = driver.execute_script(
            "return [...document.querySelectorAll(arguments[0])].filter(e => e.tabIndex < 0).length",
            usable,
        )
        assert unreachable == 0


def test_memory_is_edited_pinned_tagged_and_resolved(
    driver: Any, server: Served, shop: Session
) -> None:
    go(driver, server, "s/shop/m/DEC-0001")
    find(driver, "form[action$='/pin'] button").click()
    until(lambda: "Done: pin decision DEC-0001" in text(driver))
    every(driver, "details.menu summary")[0].click()
    field = find(driver, "#tags")
    field.clear()
    field.send_keys("security login")
    field.submit()
    until(lambda: shop.get("DEC-1", at="HEAD").tags == ("security", "login"))
    find(driver, "[data-edit]").click()
    area = until(lambda: find(driver, "[name=text]"))
    area.clear()
    area.send_keys("Use OAuth 2.1")
    find(driver, "button.primary").click()
    until(lambda: "Use OAuth 2.1" in text(driver))
    every(driver, "details.menu summary")[1].click()
    find(driver, "#action").send_keys("done")
    find(driver, "form[action$='/resolve'] button").click()
    until(lambda: "Done: resolve decision DEC-0001" in text(driver))

    memory = shop.get("DEC-1", at="HEAD")
    assert (memory.pinned, memory.content, memory.status) == (True, "Use OAuth 2.1", "resolved")
    assert complaints(driver) == []


def test_memory_is_forgotten_and_restored(driver: Any, server: Served, shop: Session) -> None:
    go(driver, server, "s/shop/m/DEC-0001")
    find(driver, "a.danger").click()
    until(lambda: find(driver, "#reason")).send_keys("no longer ours")
    find(driver, "button.danger").click()
    until(lambda: "nothing of it is left" in text(driver))
    find(driver, ".side a[href$='trash']").click()
    until(lambda: "30 days left" in text(driver))
    row = next(each for each in every(driver, "tr[data-row]") if "DEC-0001" in each.text)
    row.find_element("css selector", "button").click()
    until(lambda: "/m/DEC-0001" in driver.current_url)

    assert shop.get("DEC-1", at="HEAD").content == "Use OAuth"


def test_two_tabs_do_not_overwrite_each_other(driver: Any, server: Served, shop: Session) -> None:
    go(driver, server, "s/shop/m/DEC-0001/edit")
    first = driver.current_window_handle
    driver.switch_to.new_window("tab")
    go(driver, server, "s/shop/m/DEC-0001/edit")
    find(driver, "[name='field.rationale']").send_keys(" and well known")
    find(driver, "button.primary").click()
    until(lambda: "and well known" in text(driver))
    driver.switch_to.window(first)
    find(driver, "[name=text]").send_keys(" 2.1")
    find(driver, "button.primary").click()
    until(lambda: "Somebody changed it meanwhile" in text(driver))

    assert shop.get("DEC-1", at="HEAD").content == "Use OAuth"
    assert find(driver, "[name=text]").get_attribute("value") == "Use OAuth 2.1"
    find(driver, "button.primary").click()
    until(lambda: shop.get("DEC-1", at="HEAD").content == "Use OAuth 2.1")
    assert shop.get("DEC-1", at="HEAD").fields["rationale"] == "A proven standard and well known"


def test_page_tells_what_others_write(driver: Any, server: Served, shop: Session) -> None:
    go(driver, server, "s/shop/")
    shop.add("decision", f'<img src=x onerror="{RAN}">', agent="veritas")
    found = until(lambda: find(driver, ".news"))

    assert "veritas wrote:" in found.text
    assert driver.title != "RAN"


def test_hostile_texts_do_not_run(
    driver: Any, server: Served, store: Store, tmp_path: Path, clock: Clock
) -> None:
    with hostile_session(store) as session:
        names = [each.id for each in session.memories()]
        edited = [name for name in names if not name.startswith("turn")]
        report.write(session, tmp_path / "hostile.html", clock)
    paths = ["", "search?q=script", "s/hostile/", "s/hostile/timeline", "s/hostile/search?q=script",
             "s/hostile/branches", "s/hostile/compare?old=HEAD~20", "s/hostile/trash", "s/hostile/log",
             "s/hostile/context?prompt=script", *(f"s/hostile/m/{name}" for name in names[:25]),
             *(f"s/hostile/m/{name}/edit" for name in edited[:25:6])]  # fmt: skip
    places = [address(server, path) for path in paths]
    for place in (*places, f"file://{tmp_path / 'hostile.html'}"):
        driver.get(place)
        driver.execute_script(
            "document.querySelectorAll('details').forEach(d => { d.open = true })"
        )
        assert driver.title != "RAN"
        assert complaints(driver) == []
    # What is typed comes back through the script that shows results.
    go(driver, server, "s/hostile/search")
    for each in TEXTS[:4]:
        field = find(driver, "#q")
        field.clear()
        field.send_keys(each)
        time.sleep(0.4)
        assert driver.title != "RAN"
    assert complaints(driver) == []


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_axe_finds_nothing_serious_and_nothing_is_cut(
    server: Served, shop: Session, tmp_path: Path, clock: Clock, size: tuple[int, int], dark: bool
) -> None:
    source = axe()
    shop.edit("DEC-1", impact="low")
    report.write(shop, tmp_path / "shop.html", clock)
    with browser(tmp_path / "profile", size=size, dark=dark) as driver:
        driver.get(server.link)
        places = [address(server, path) for path in PAGES]
        for place in (*places, f"file://{tmp_path / 'shop.html'}"):
            driver.get(place)
            driver.execute_script(
                "document.querySelectorAll('details:not(.menu)').forEach(d => { d.open = true })"
            )
            assert (place, serious(driver, source)) == (place, [])
            wide = driver.execute_script("return document.documentElement.scrollWidth")
            assert (place, wide <= size[0]) == (place, True)


def test_report_is_read_without_a_script(shop: Session, tmp_path: Path, clock: Clock) -> None:
    report.write(shop, tmp_path / "shop.html", clock)
    with browser(tmp_path / "profile", script=False) as driver:
        driver.get(f"file://{tmp_path / 'shop.html'}")
        summary = find(driver, "#DEC-0001 summary")
        summary.click()
        shown = " ".join(find(driver, "#DEC-0001").text.split())

        assert "A proven standard" in shown
        assert find(driver, "#DEC-0001 svg.curve").is_displayed()
        assert not find(driver, ".search").is_displayed()
        find(driver, ".side a[href='#trash']").click()
        assert find(driver, "#trash").is_displayed()


def test_report_is_searched_and_asks_for_nothing(
    shop: Session, tmp_path: Path, clock: Clock
) -> None:
    report.write(shop, tmp_path / "shop.html", clock)
    with browser(tmp_path / "profile") as driver:
        tell(driver, "Network.enable")
        driver.get(f"file://{tmp_path / 'shop.html'}#FIND-0001")
        assert find(driver, "#FIND-0001 details").get_attribute("open") is not None
        find(driver, "body").send_keys("/")
        driver.switch_to.active_element.send_keys("proven")
        until(lambda: "1 of" in find(driver, "#shown").text)

        assert not find(driver, "#FIND-0001").is_displayed()
        assert find(driver, "#DEC-0001").is_displayed()
        asked = driver.execute_script(
            "return performance.getEntriesByType('resource').map(each => each.name)"
        )
        assert asked == []
        assert complaints(driver) == []
