"""The raw series of one trial: what happened in each step, kept unaggregated in series.npz."""

import io
import zlib
from dataclasses import dataclass, fields
from pathlib import Path
from zipfile import BadZipFile

import numpy as np

from runner.errors import StudyError
from runner.jsonfile import write_bytes


@dataclass(frozen=True, eq=False)
class Series:
    """Arrays of one trial; n is the number of steps taken.

    step_ms, enqueue_ms, wait_ms: float64 (n,): the step on the device's clock, the host's time to hand it over, the
        time spent waiting for its data.
    shape: int64 (n,): which input shape the step had, counted from 0 in order of first appearance.
    loss: (n,) in the loss's own type: the bits are what is compared.
    data: int64 (n, 2): the digest of the step's inputs and targets.
    predictions: (at most 65536,): predicted classes or values at evenly spread places of the test set.
    sketch: float32 (4096,): a signed sum of the final weights; the distance of two sketches estimates the Euclidean
        distance of the weights, with a relative standard error of 1.1 % where differences spread over the tensors.
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
        """Write series.npz, compressed."""
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **{field.name: getattr(self, field.name) for field in fields(self)})
        write_bytes(path, buffer.getvalue())

    @classmethod
    def read(cls, path: Path) -> "Series":
        """Read what `write` wrote. Raises StudyError naming the path for a damaged file."""
        try:
            with np.load(path, allow_pickle=False) as arrays:
                return cls(**{field.name: arrays[field.name] for field in fields(cls)})
        except (OSError, EOFError, ValueError, KeyError, BadZipFile, zlib.error) as error:
            raise StudyError(f"{path}: not a series of this version ({error}); set it aside") from error
