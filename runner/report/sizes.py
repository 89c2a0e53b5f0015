"""What changing input sizes cost, in words: with benchmark each new size is tuned, and no median step shows it."""

from typing import Any

from runner.report.family import families, on_cuda
from runner.report.number import number

WORTH_A_LINE = 0.05  # of the time of all steps
LEAST_S = 0.05  # a size: what costs less does not differ from noise, unless there are many sizes


def sizes_words(summary: dict[str, Any]) -> list[str]:
    """A line for each family in which new input sizes cost more than 5 % of the time of all steps of a cell."""
    cuda = on_cuda(summary)
    timed = [
        [cell for cell in family if cell["speed"]["steps_s"] and cell["speed"]["new_shape_ms"] is not None]
        for family in families(summary)
        if cuda.get(family[0]["environment"])
    ]
    return [_line(cells) for cells in timed if any(map(_costly, cells))]


def _costly(cell: dict[str, Any]) -> bool:
    speed = cell["speed"]
    cost_s = speed["new_shape_ms"] * (speed["shapes"] - 1) / 1000
    return bool(cost_s > WORTH_A_LINE * speed["steps_s"])


def _line(cells: list[dict[str, Any]]) -> str:
    """With 48 input sizes, all 96 steps took 95.9 s with benchmark (F,T), 5.90 s with default (F,F): ..."""
    speed = cells[0]["speed"]
    by_time = sorted(cells, key=lambda cell: -cell["speed"]["steps_s"])
    totals = [f"{number(cell['speed']['steps_s'])} s with {cell['label']}" for cell in by_time]
    by_size = sorted(cells, key=lambda cell: -cell["speed"]["new_shape_ms"])
    ends = by_size[:1] if len(by_size) == 1 else [by_size[0], by_size[-1]]
    costs = [f"{_cost_words(cell)} with {cell['label']}" for cell in ends]
    return (
        f"with {speed['shapes']} input sizes, all {speed['steps']} steps took {', '.join(totals)}: "
        f"each new size costs {', '.join(costs)}"
    )


def _cost_words(cell: dict[str, Any]) -> str:
    cost_s = cell["speed"]["new_shape_ms"] / 1000
    return f"{number(cost_s)} s" if cost_s >= LEAST_S or _costly(cell) else "nothing measurable"
