"""What is known of a trial while it goes on: it ends up in the record whatever happens next."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Seen:
    """Switches and environment as read in the child, what data it loaded in words, and how many steps it finished."""

    flags: dict[str, dict[str, Any]] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    data: str = ""
    steps: int = 0
