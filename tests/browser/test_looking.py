"""The means of these tests themselves: each fault that they look for is found where it is planted."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from browser.looking import Seen, grave_faults, wider_than_the_window

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

FAULTY = """<!doctype html><title>faults</title>
<script>console.error("planted error"); throw new Error("planted exception")</script>
<img src="http://127.0.0.1:9/planted.png" width="10" height="10">
<div style="width: 3000px; color: #ccc; background: #fff">hard to read</div>"""


def test_planted_faults_are_found(tmp_path: Path, page: "Page", seen: Seen) -> None:
    (tmp_path / "faults.html").write_text(FAULTY)
    page.goto((tmp_path / "faults.html").as_uri())
    assert {"planted error", "planted exception"} <= set(seen.errors)
    assert seen.outside == ["http://127.0.0.1:9/planted.png"]
    assert wider_than_the_window(page) > 1000
    assert {"html-has-lang", "image-alt", "color-contrast"} <= {fault.split(":")[0] for fault in grave_faults(page)}


def test_a_page_without_faults_has_none(tmp_path: Path, page: "Page", seen: Seen) -> None:
    (tmp_path / "page.html").write_text('<!doctype html><html lang="en"><title>t</title><main><h1>t</h1></main></html>')
    page.goto((tmp_path / "page.html").as_uri())
    assert (seen.errors, seen.outside, wider_than_the_window(page), grave_faults(page)) == ([], [], 0, [])
