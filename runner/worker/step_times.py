"""The times of all steps of a trial, and the figures of its speed that they give."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from runner.record import Speed
from runner.series import Series

# A median over fewer steps says more about start-up than about training.
LEAST_STEADY_STEPS = 8
# One step in a hundred is slower than the 99th percentile: with fewer it would be the slowest step and no more.
LEAST_P99_STEPS = 100


@dataclass(frozen=True, eq=False)
class StepTimes:
    """Per step, float64 (n,) in milliseconds; `shape` int64 (n,) counts input shapes in order of appearance.

    `lag_ms`, float64 (n,), is for how long the device still worked when the host had handed a step over, where it works
    apart from the host. `rest_energy_j` is what it used from the end of the first step to the end of the last.
    """

    step_ms: np.ndarray
    enqueue_ms: np.ndarray
    wait_ms: np.ndarray
    shape: np.ndarray
    lag_ms: np.ndarray | None = None
    first_step_read_bytes: int | None = None
    rest_energy_j: float | None = None
    compile_s: float | None = None
    synchronizing: int | None = None

    def series(self, loss: np.ndarray, data: np.ndarray, sketch: np.ndarray, **evaluated: np.ndarray) -> Series:
        """The series of these steps, with further fields of it; where nothing was evaluated, those are empty."""
        nothing: dict[str, np.ndarray] = {
            "predictions": np.empty(0, dtype=np.int32),
            "evaluated": np.empty(0, dtype=np.int64),
            "evaluations": np.empty((0, 0)),
            "evaluation_names": np.empty(0, dtype=np.str_),
        }
        times = self.step_ms, self.enqueue_ms, self.wait_ms, self.shape
        return Series(*times, loss=loss, data=data, sketch=sketch, **nothing | evaluated)

    def first_of_shape(self) -> np.ndarray:
        """Bool (n,): whether a step was the first of its input shape, the one that pays for start-up and tuning."""
        first = np.zeros(len(self.shape), dtype=bool)
        first[np.unique(self.shape, return_index=True)[1]] = True
        return first

    def energy_j_per_sample(self, batch_size: int) -> float | None:
        """Joules for each sample of the steps after the first."""
        return None if self.rest_energy_j is None else self.rest_energy_j / (batch_size * (len(self.step_ms) - 1))

    def _lag_ms(self, steady: np.ndarray) -> float | None:
        """Of an idle device: 0, and not the microseconds by which two clocks that met may differ."""
        return None if self.lag_ms is None else max(0.0, float(np.median(self.lag_ms[steady])))

    def speed(self, batch_size: int, **measured: Any) -> Speed:
        """The figures of one trial; `measured` are fields of Speed that are measured elsewhere, which count first."""
        first = self.first_of_shape()
        steady = ~first
        enough = int(steady.sum()) >= LEAST_STEADY_STEPS
        step_ms = float(np.median(self.step_ms[steady])) if enough else None
        figures = {
            "steps": len(self.step_ms),
            "first_step_ms": float(self.step_ms[0]),
            "step_ms": step_ms,
            "enqueue_ms": float(np.median(self.enqueue_ms[steady])) if enough else None,
            "wait_ms": float(np.median(self.wait_ms[steady])) if enough else None,
            "new_shapes_ms": [float(value) for value in self.step_ms[first][1:]],
            "samples_per_s": batch_size * 1000 / step_ms if step_ms else None,
            "lag_ms": self._lag_ms(steady) if enough else None,
            "p99_ms": float(np.percentile(self.step_ms[steady], 99)) if steady.sum() >= LEAST_P99_STEPS else None,
            "steps_s": float(self.step_ms.sum() / 1000),
            "compile_s": self.compile_s,
            "first_step_read_bytes": self.first_step_read_bytes,
            "synchronizing": self.synchronizing,
            "energy_j_per_sample": self.energy_j_per_sample(batch_size),
        }
        return Speed(**figures | measured)
