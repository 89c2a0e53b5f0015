"""Take the pictures of docs/report/ from a study's page, in Debian's Chromium.

    python scripts/page_screenshots.py STUDY docs/report

answer.png is the top of the page on a wide screen, plots.png its plots, phone.png the page on a telephone at night.
"""

import argparse
import io
import shutil
from pathlib import Path
from typing import Literal

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
WIDE, PHONE, HIGH = 1200, 380, 900
COLOURS = 256  # text and plots need no more, and a page of documentation must stay light


def opened(browser: Browser, page: Path, width: int, scheme: Literal["light", "dark"]) -> Page:
    """The page in a window of this width."""
    context = browser.new_context(viewport={"width": width, "height": HIGH}, color_scheme=scheme)
    tab = context.new_page()
    tab.goto(page.resolve().as_uri())
    return tab


def write(picture: bytes, path: Path) -> None:
    """Write a PNG with few colours."""
    Image.open(io.BytesIO(picture)).convert("RGB").quantize(
        COLOURS, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE
    ).save(path, "PNG", optimize=True)


def main() -> None:
    """Take all three."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path)
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    chromium = shutil.which("chromium")
    if chromium is None:
        parser.error("needs Chromium (apt-get install chromium)")
    options.folder.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        wide = opened(browser, options.study / "report.html", WIDE, "light")
        write(wide.screenshot(), options.folder / "answer.png")
        write(wide.locator("#plots").screenshot(), options.folder / "plots.png")
        phone = opened(browser, options.study / "report.html", PHONE, "dark")
        phone.locator("#plots").scroll_into_view_if_needed()
        phone.evaluate("document.getElementById('plots').scrollIntoView()")
        write(phone.screenshot(), options.folder / "phone.png")
        browser.close()


if __name__ == "__main__":
    main()
