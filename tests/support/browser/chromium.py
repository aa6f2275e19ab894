"""Debian's Chromium, offline: what a reader of a report sees, and what breaks under them."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import playwright.sync_api as playwright
from axe_playwright_python.sync_playwright import Axe

PATIENCE_MILLISECONDS = 120_000
"""A page may be large, and the machine busy."""
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",  # Which root, in a container, cannot have.
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@dataclass(frozen=True)
class Page:
    """An open page, and all that went wrong on it so far."""

    inner: playwright.Page
    console_errors: list[str] = field(default_factory=list)
    page_errors: list[str] = field(default_factory=list)
    failed_requests: list[str] = field(default_factory=list)

    @property
    def problems(self) -> list[str]:
        """Every error of the console, of a script and of a request."""
        return self.console_errors + self.page_errors + self.failed_requests

    @property
    def serious(self) -> list[tuple[str, list[str]]]:
        """What axe calls a serious or critical fault of accessibility, and where it is."""
        # To read style sheets of its own accord it would have to fetch them, which a file cannot.
        options = {"resultTypes": ["violations"], "preload": False}
        found = Axe().run(self.inner, options=options).response
        assert found["testEngine"]["name"] == "axe-core" and found["passes"]
        return [
            (each["id"], [node["html"] for node in each["nodes"]])
            for each in found["violations"]
            if each["impact"] in ("serious", "critical")
        ]

    def screenshot(self, file: Path, *, full: bool = True) -> Path:
        """Draw the page, all of it or only what the window shows, into a PNG."""
        self.inner.screenshot(path=file, full_page=full)
        return file


@dataclass(frozen=True)
class Browser:
    """A running Chromium."""

    inner: playwright.Browser

    @contextmanager
    def open(self, file: Path, width: int, height: int) -> Iterator[Page]:
        """Open a file in a new window that has no network and no past."""
        context = self.inner.new_context(
            viewport={"width": width, "height": height}, offline=True, reduced_motion="reduce"
        )
        try:
            context.route(lambda url: not url.startswith(("file:", "data:", "blob:")), _refuse)
            context.set_default_timeout(PATIENCE_MILLISECONDS)
            page = Page(context.new_page())
            page.inner.on("console", lambda said: _note_console(page, said))
            page.inner.on("pageerror", lambda error: page.page_errors.append(str(error)))
            page.inner.on(
                "requestfailed",
                lambda request: page.failed_requests.append(f"{request.url}: {request.failure}"),
            )
            page.inner.goto(file.resolve().as_uri(), wait_until="load")
            yield page
        finally:
            context.close()


@contextmanager
def chromium() -> Iterator[Browser]:
    """Start Chromium, with a profile of its own that goes when it does."""
    path = next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:
        raise RuntimeError("no Chromium: apt-get install chromium")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, headless=True, args=FLAGS)
        try:
            yield Browser(browser)
        finally:
            browser.close()


def _refuse(route: playwright.Route) -> None:
    route.abort()


def _note_console(page: Page, said: playwright.ConsoleMessage) -> None:
    if said.type == "error":
        page.console_errors.append(said.text)
