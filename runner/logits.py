"""The logits of one trial's last evaluation, kept in logits.npz where they are asked for (train.keep_logits)."""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from runner.arrays import packed, read_arrays
from runner.jsonfile import write_bytes

# Of the values. A test set of 10,000 items and 10 classes takes 400 KB a trial; what takes more than this is not kept.
MOST_BYTES = 4 * 2**20


@dataclass(frozen=True, eq=False)
class Logits:
    """What a model gives for each of n test items (or pixels, or characters), in the order of the test set.

    values: float32 (n, c), one column a class; targets: int64 (n,), the true classes.
    """

    values: np.ndarray
    targets: np.ndarray

    def write(self, path: Path) -> None:
        """Write logits.npz."""
        write_bytes(path, packed({field.name: getattr(self, field.name) for field in fields(self)}))

    @classmethod
    def read(cls, path: Path) -> "Logits":
        """Read what `write` wrote. Raises StudyError naming the path and what is wrong for a damaged file."""
        return read_arrays(path, "logits", _made)


def _made(arrays: dict[str, np.ndarray]) -> Logits:
    names = [field.name for field in fields(Logits)]
    if sorted(arrays) != sorted(names):
        raise ValueError(f"it has the arrays {', '.join(sorted(arrays))}; {', '.join(names)} are due")
    values, targets = arrays["values"], arrays["targets"]
    if (values.ndim, targets.ndim) != (2, 1) or [values.dtype, targets.dtype] != [np.float32, np.int64]:
        raise ValueError(f"values are {values.ndim}-dimensional {values.dtype}, targets {targets.ndim}-dimensional")
    if len(values) != len(targets):
        raise ValueError(f"there are {len(values)} rows of values and {len(targets)} targets")
    return Logits(values, targets)
