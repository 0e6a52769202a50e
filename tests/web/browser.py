"""A real browser without a screen: Chromium, driven by Selenium, in light or dark, wide or narrow."""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pytest

CHROMIUM: Final = shutil.which("chromium")
DRIVER: Final = shutil.which("chromedriver")
WIDE: Final = (1280, 900)
NARROW: Final = (390, 844)
_FLAGS: Final = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync",
)  # fmt: skip
_TALLEST: Final = 6_000


def require_browser() -> None:
    """Skip where there is no browser to drive."""
    pytest.importorskip("selenium", reason="selenium is not installed")
    if CHROMIUM is None or DRIVER is None:
        pytest.skip("chromium and chromedriver are not installed")


def axe() -> str:
    """Return the source of axe-core, or skip; AXE_CORE says where it is."""
    place = Path(os.environ.get("AXE_CORE", "nowhere"))
    if not place.is_file():
        pytest.skip("axe-core is not there: AXE_CORE names its axe.min.js")
    return place.read_text("utf-8")


@contextmanager
def browser(folder: Path, *, size: tuple[int, int] = WIDE, dark: bool = False, script: bool = True) -> Iterator[Any]:  # fmt: skip
    """Yield a browser with an empty profile."""
    from selenium import webdriver
    from selenium.webdriver.chrome.options import Options
    from selenium.webdriver.chrome.service import Service

    options = Options()
    options.binary_location = str(CHROMIUM)
    for flag in (*_FLAGS, f"--user-data-dir={folder}", f"--window-size={size[0]},{size[1]}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))
    try:
        narrow = size[0] < 600
        tell(driver, "Emulation.setDeviceMetricsOverride", width=size[0], height=size[1],
             deviceScaleFactor=1, mobile=narrow)  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tell(driver, "Emulation.setEmulatedMedia", features=[scheme])
        tell(driver, "Emulation.setScriptExecutionDisabled", value=not script)
        driver.implicitly_wait(10)
        yield driver
    finally:
        driver.quit()


def tell(driver: Any, command: str, **arguments: object) -> Any:
    """Send a command to the browser itself."""
    return driver.execute_cdp_cmd(command, arguments)


def picture(driver: Any, place: Path, *, whole: bool = True) -> None:
    """Write what the browser shows, down to the end of the page."""
    size = tell(driver, "Page.getLayoutMetrics")["cssContentSize"]
    view = driver.get_window_size()
    height = min(size["height"], _TALLEST) if whole else min(size["height"], view["height"])
    clip = {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1}
    made = tell(driver, "Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
    place.write_bytes(base64.b64decode(made["data"]))


def serious(driver: Any, source: str) -> list[str]:
    """Return what axe-core finds serious or worse on the page."""
    driver.execute_script(source)
    found = driver.execute_async_script(
        "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then(done)"
    )
    return [
        f"{each['impact']} {each['id']}: {each['nodes'][0]['html'][:200]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


def complaints(driver: Any) -> list[str]:
    """Return what the browser itself complained of: errors of scripts, refusals of the policy."""
    return [
        each["message"]
        for each in driver.get_log("browser")
        if each["level"] in ("SEVERE", "WARNING") and "favicon.ico" not in each["message"]
    ]
