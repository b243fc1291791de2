"""A real Chromium, for what only a browser can tell; where there is none, its tests are skipped."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, ConsoleMessage, Page, Request, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
PHONE = {"width": 390, "height": 844}
DESK = {"width": 1280, "height": 900}


def chromium() -> str | None:
    """The browser that CHROMIUM names, or one on the PATH. None is downloaded: Debian's package chromium does."""
    return os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, NAMES)), None)


@contextmanager
def running_browser(executable: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        # Its sandbox needs privileges that containers do not give; the pages are our own.
        browser = playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        yield browser
        browser.close()


class Complaints:
    """What the browser says against a page: on its console, of scripts that broke, of files that did not come."""

    def __init__(self, page: Page) -> None:
        self.heard: list[str] = []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.heard.append(str(error)))
        page.on("requestfailed", self._failed)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.heard.append(message.text)

    def _failed(self, request: Request) -> None:
        # A page that is left takes its open requests with it.
        if request.failure != "net::ERR_ABORTED":
            self.heard.append(f"{request.url}: {request.failure}")


def width_beyond(page: Page) -> int:
    """By how many pixels the page is wider than its window."""
    beyond: int = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return beyond
