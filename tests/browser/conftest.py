"""A real browser for what people look at: Debian's Chromium through Playwright. Without one these tests skip."""

import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from browser.looking import Seen

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

# A machine without a screen and without the world outside: Chromium's own look-ups would only wait.
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser() -> Iterator["Browser"]:
    """Chromium without a window; a module's own, for Playwright's loop would stand in the way of later tests."""
    api = pytest.importorskip("playwright.sync_api", reason="needs pip install -e '.[test]'")
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("needs Chromium (apt-get install chromium)")
    with api.sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=path, args=FLAGS, timeout=600_000)
        yield running
        running.close()


@pytest.fixture
def seen() -> Seen:
    """What `page` did so far."""
    return Seen()


@pytest.fixture
def page(browser: "Browser", seen: Seen) -> Iterator["Page"]:
    """An empty page without a history; `seen` records what it does. Waiting has 10 minutes, for machines are busy."""
    context = browser.new_context(bypass_csp=True)  # axe-core is put into the page
    context.set_default_timeout(600_000)
    opened = context.new_page()
    opened.on("console", lambda said: seen.errors.append(said.text) if said.type == "error" else None)
    opened.on("pageerror", lambda error: seen.errors.append(str(error)))
    opened.on("requestfailed", lambda request: seen.errors.append(f"failed: {request.url[:200]}"))
    opened.on("request", lambda request: seen.requests.append(request.url[:200]))
    yield opened
    context.close()
