"""The plan: what the answer is for. No trial depends on it."""

from dataclasses import dataclass, field


@dataclass(frozen=True, kw_only=True)
class Plan:
    """So many trainings (`runs`) of so many steps, and which difference in speed is none.

    `price_per_hour` of the machine, in any currency; None leaves money out. `margin` is a share of the step time. The
    metadata are the bounds of what may be asked for.
    """

    steps: int = field(metadata={"least": 1, "below": 10**12})
    runs: int = field(metadata={"least": 1, "below": 10**9})
    price_per_hour: float | None = field(metadata={"least": 0.0, "below": 1e9})
    margin: float = field(metadata={"least": 0.0001, "below": 1.0})


# What conf/ says too; here for studies that were begun before there was a plan.
USUAL = Plan(steps=10_000, runs=1, price_per_hour=None, margin=0.02)
