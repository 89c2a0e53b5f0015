"""Captures of operations that are done here, in the test's own process."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from traced import probed, trial_of

from runner.captured import Captured
from runner.worker import capture


def captured(
    folder: Path, work: Callable[[], Any], indices: Iterable[int] = (0,), limit_bytes: int = capture.LIMIT_BYTES
) -> Captured:
    """What a capture leaves of these operations of some work."""
    with patch.object(capture, "LIMIT_BYTES", limit_bytes):
        probed(work, trial_of(capture=indices), folder)
    return Captured.read(folder)
