"""The raw series of one trial: what happened in each step, kept unaggregated in series.npz."""

from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from runner.arrays import packed, read_arrays
from runner.jsonfile import write_bytes

_PER_STEP = ("step_ms", "enqueue_ms", "wait_ms", "shape", "loss", "data")
_TABLES = ("data", "evaluations")


@dataclass(frozen=True, eq=False)
class Series:
    """Arrays of one trial; n is the number of steps taken.

    step_ms, enqueue_ms, wait_ms: float64 (n,): the step on the device's clock, the host's time to hand it over, the
        time spent waiting for its data.
    shape: int64 (n,): which input shape the step had, counted from 0 in order of first appearance.
    loss: (n,) in the loss's own type: the bits are what is compared; NaN with phase=calls, which has none.
    data: int64 (n, 2): the digest of the step's inputs and targets.
    predictions: (at most 65536,): predicted classes or values at evenly spread places of the test set; empty without
        one (phase=calls and phase=attach), as are the evaluations.
    sketch: float32 (4096,): a signed sum of the final weights; the distance of two sketches estimates the Euclidean
        distance of the weights, with a relative standard error of 1.1 % where differences spread over the tensors. A
        single 0 with phase=calls, which leaves the weights as they are.
    evaluated: int64 (e,): the steps after which the test set was evaluated; evaluations: float64 (e, m), one column
        for each name in evaluation_names: str (m,).
    """

    step_ms: np.ndarray
    enqueue_ms: np.ndarray
    wait_ms: np.ndarray
    shape: np.ndarray
    loss: np.ndarray
    data: np.ndarray
    predictions: np.ndarray
    sketch: np.ndarray
    evaluated: np.ndarray
    evaluations: np.ndarray
    evaluation_names: np.ndarray

    def write(self, path: Path) -> None:
        """Write series.npz."""
        write_bytes(path, packed({field.name: getattr(self, field.name) for field in fields(self)}))

    @classmethod
    def read(cls, path: Path) -> "Series":
        """Read what `write` wrote. Raises StudyError naming the path and what is wrong for a damaged file."""
        return read_arrays(path, "a series", _made)

    @classmethod
    def read_part(cls, path: Path, *names: str) -> list[np.ndarray]:
        """Some of the arrays by name, without unpacking the others. Raises StudyError as `read` does."""
        return read_arrays(path, "a series", lambda arrays: [arrays[name] for name in names], *names)


_NAMES = {field.name for field in fields(Series)}


def _made(arrays: dict[str, np.ndarray]) -> Series:
    if arrays.keys() != _NAMES:
        raise ValueError(f"it has the arrays {', '.join(sorted(arrays))}; {', '.join(sorted(_NAMES))} are due")
    for name, array in arrays.items():
        if array.ndim != 1 + (name in _TABLES) or (array.dtype.kind not in "fiu" and name != "evaluation_names"):
            raise ValueError(f"{name} has {array.ndim} dimensions of {array.dtype}")
    lengths = {name: len(arrays[name]) for name in _PER_STEP}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"the steps differ in number: {lengths}")
    due = len(arrays["evaluated"]), len(arrays["evaluation_names"])
    if arrays["evaluations"].shape != due:
        raise ValueError(f"evaluations has the shape {arrays['evaluations'].shape}, {due} is due")
    return Series(**arrays)
