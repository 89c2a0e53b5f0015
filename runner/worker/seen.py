"""What is known of a trial while it goes on: it ends up in the record whatever happens next."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from runner.worker.probe import Probe


@dataclass
class Seen:
    """Switches, environment and the state of the device as read in the child, its data in words, its finished steps.

    `not_deterministic` names the operations of which PyTorch says so; `probe` is what looks into the steps, as soon as
    there is one.
    """

    flags: dict[str, dict[str, Any]] = field(default_factory=dict)
    environment: dict[str, Any] = field(default_factory=dict)
    covariates: dict[str, dict[str, Any]] = field(default_factory=dict)
    data: str = ""
    steps: int = 0
    not_deterministic: list[str] = field(default_factory=list)
    probe: "Probe | None" = None
