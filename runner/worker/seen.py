"""What is known of a trial while it goes on: it ends up in the record whatever happens next."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class Seen:
    """Switches, environment and the state of the device as read in the child, its data in words, its finished steps."""

    flags: dict[str, dict[str, Any]] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    covariates: dict[str, dict[str, Any]] = field(default_factory=dict)
    data: str = ""
    steps: int = 0
