"""The measurement of what probes cost: its ratios, and that it says when something was not as good as is needed."""

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factory import make_cell, make_record

from runner.record import Record

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts"


@pytest.fixture(scope="module")
def bench() -> Iterator[Any]:
    sys.path.insert(0, str(SCRIPTS))
    yield importlib.import_module("bench_probe")
    sys.path.remove(str(SCRIPTS))


def record(step_ms: float, peak_bytes: int | None) -> Record:
    made = make_record(make_cell("default"), 0)
    assert made.speed is not None
    return replace(made, speed=replace(made.speed, step_ms=step_ms), memory={"peak_allocated_bytes": peak_bytes})


def test_ratios_are_those_of_trials_of_the_same_round(bench: Any) -> None:
    rounds = [
        {"plain": record(10.0, 100), "ops": record(40.0, 110)},
        {"plain": record(20.0, 100), "ops": record(180.0, 130)},
    ]
    found = bench.beside(rounds, "ops")
    assert found["step_ratios"] == pytest.approx([4.0, 9.0])
    assert (found["step_ratio"], found["memory_ratio"]) == pytest.approx((6.0, 1.2))
    assert found["ci95"][0] < 6 < found["ci95"][1]


def test_without_a_count_of_memory_there_is_no_ratio_and_one_round_has_no_interval(bench: Any) -> None:
    found = bench.beside([{"plain": record(10.0, None), "modules": record(12.0, None)}], "modules")
    assert found == {"step_ratio": pytest.approx(1.2), "step_ratios": [pytest.approx(1.2)], "memory_ratio": None}


def steps(modules: float, ops: float, memory: float | None) -> dict[str, Any]:
    ratios = {"modules": modules, "ops": ops, "ops_repeat": 99.0}
    probes = {name: {"step_ratio": ratio, "memory_ratio": memory} for name, ratio in ratios.items()}
    return {"plain_step_ms": [1.0], "probes": probes, "distinct_weights": 3}


@pytest.mark.parametrize(
    ("measured", "bad"),
    [
        (steps(1.4, 19.0, 1.2), set()),
        (steps(1.6, 19.0, 1.2), {"modules_step"}),
        (steps(1.4, 21.0, 1.2), {"ops_step"}),
        (steps(1.4, 19.0, 1.4), {"memory"}),
        (steps(1.4, 19.0, None), {"memory"}),
    ],
)
def test_what_is_not_good_enough_on_a_gpu_is_said(bench: Any, measured: dict[str, Any], bad: set[str]) -> None:
    found = {"device": "cuda:0", "steps": measured}
    verdicts = bench.verdicts(found)
    assert {name for name, good in verdicts.items() if not good} == bad
    assert ("NOT GOOD" in bench.lines(found | {"good": verdicts})) == bool(bad)


def test_on_a_cpu_all_trials_must_end_with_the_same_weights(bench: Any) -> None:
    assert bench.verdicts({"device": "cpu", "steps": steps(9.0, 99.0, None)}) == {"same_weights": False}


def test_two_long_traces_are_compared_and_the_planted_difference_is_found(bench: Any, tmp_path: Path) -> None:
    found = bench.bench_compare(300, tmp_path)
    assert found["operations"] == 300
    assert bench.verdicts({"device": "cpu", "compare": found}) == {"compare": True}
    assert "compare_s" in bench.lines({"compare": found, "good": {}})


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_every_probe_is_a_cell_of_its_own(bench: Any, device: str) -> None:
    words = bench.merged([*bench.WORDS[device], f"train.steps={bench.STEPS}"], [])
    cells = {name: bench.four_cells([*words, *more], device)[0] for name, more in bench.PROBES.items()}
    assert len({cell.id for cell in cells.values()}) == 4
    assert {cell.config["probe"]["steps"] for name, cell in cells.items() if name != "plain"} == {bench.STEPS}
    assert [cells[name].config["probe"]["repeat"] for name in ("ops", "ops_repeat")] == [False, True]
