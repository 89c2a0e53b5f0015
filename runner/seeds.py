"""One seed for each source of randomness, so that each can vary alone."""

import hashlib

STREAMS = ("init", "order", "augment", "dropout")


def stream_seeds(base: int, vary: list[str], number: int) -> dict[str, int]:
    """The seed of each stream for one trial: a varying stream depends on the trial's number, the others do not.

    Returns non-negative integers below 2**63, which every generator of PyTorch takes.
    """
    return {name: _seed(base, name, number if name in vary else 0) for name in STREAMS}


def _seed(base: int, stream: str, number: int) -> int:
    digest = hashlib.sha256(f"{base}/{stream}/{number}".encode()).digest()
    return int.from_bytes(digest[:8], "big") >> 1
