"""What tests in a browser look at: what a page did, whether it fits, and whether everybody can read it."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Page

INSIDE = ("data:", "blob:", "about:", "file:")
GRAVE = ("serious", "critical")


@dataclass(frozen=True)
class Seen:
    """What a page did: errors on its console or in its scripts, and the addresses of all its requests."""

    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    @property
    def outside(self) -> list[str]:
        """The requests that left the page's own file."""
        return [address for address in self.requests if not address.startswith(INSIDE)]


def wider_than_the_window(page: "Page") -> int:
    """By how many pixels the page can be scrolled sideways: 0 is right."""
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def grave_faults(page: "Page") -> list[str]:
    """What axe-core finds serious or critical: rule, help and the first element that has it."""
    from axe_playwright_python.sync_playwright import Axe

    found: list[dict[str, Any]] = Axe().run(page).response["violations"]
    return [f"{one['id']}: {one['help']}: {one['nodes'][0]['html']}" for one in found if one["impact"] in GRAVE]
