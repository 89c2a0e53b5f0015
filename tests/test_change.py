"""Changes: what the later of two cells does to the bits and what it costs a step."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factory import CPU, GPU, Plant, make_cell, make_study

from runner.analysis.change import FILLED, changes
from runner.analysis.evidence import Evidence
from runner.analysis.sample import samples_of
from runner.cell import Cell

FLAGS = {"algorithms": False, "warn_only": False, "fill_memory": True, "workspace": None}
FULL = FLAGS | {"algorithms": True, "workspace": ":4096:8"}
NOISY, REPEATS = Plant(loss_step=3, weights_step=3), Plant()


def changed(folder: Path, *plants: tuple[Cell, Plant], rounds: int = 5, **where: Any) -> list[dict[str, Any]]:
    """The changes of a study of these cells; CUBLAS_WORKSPACE_CONFIG is what the cell asks for."""

    def environment(cell: Cell, number: int) -> dict[str, Any]:
        return GPU | {"workspace": cell.config.get("determinism", FLAGS)["workspace"]} | where

    evidence = Evidence.of(make_study(folder / "study", plants, rounds, environment))
    return changes(samples_of(evidence), evidence)


def arm(determinism: dict[str, Any], mode: str = "deterministic", **settings: Any) -> Cell:
    return make_cell(mode, determinism=determinism, **settings)


def test_an_advice_that_worked_says_both_verdicts_and_the_paired_cost(tmp_path: Path) -> None:
    (found,) = changed(tmp_path, (arm(FLAGS), NOISY), (arm(FULL), replace(REPEATS, ratio=1.2)))
    assert found["verdicts"] == ["differs", "bitwise"]
    assert (found["before"], found["after"]) == (arm(FLAGS).id, arm(FULL).id)
    assert found["settings"] == ["determinism.algorithms=true", "determinism.workspace=:4096:8"]
    ratio = found["ratio"]
    assert ratio["paired"] and ratio["pairs"] == 5  # though the variable tells their environments apart
    assert ratio["ci95"][0] < 1.2 < ratio["ci95"][1]
    bits, cost = found["words"].split("; a step takes ")
    assert bits.endswith(f": weights differ, 5 different of 5 before; bitwise, 5 of 5 after ({FILLED})")
    assert cost.startswith("20 % more time: 1.2")
    assert bits.startswith("from deterministic (T,F), determinism.algorithms=false")


def test_an_advice_that_changed_no_bit_says_so(tmp_path: Path) -> None:
    (found,) = changed(tmp_path, (arm(FLAGS), NOISY), (arm(FULL), NOISY))
    assert "weights differ, 5 different of 5 before and after; it costs nothing beyond 2 %: a step" in found["words"]


def test_the_order_of_the_study_says_what_is_before(tmp_path: Path) -> None:
    (found,) = changed(tmp_path, (arm(FULL), REPEATS), (arm(FLAGS), NOISY))
    assert (found["after"], found["verdicts"]) == (arm(FLAGS).id, ["bitwise", "differs"])


def test_each_mode_has_its_own_change_of_determinism(tmp_path: Path) -> None:
    plants = [(arm(one, mode), NOISY) for mode in ("default", "deterministic") for one in (FLAGS, FULL)]
    found = changed(tmp_path, *plants)
    assert [(one["before"], one["after"]) for one in found] == [
        (arm(FLAGS, mode).id, arm(FULL, mode).id) for mode in ("default", "deterministic")
    ]


def test_several_changes_are_beside_the_first_at_a_simultaneous_level(tmp_path: Path) -> None:
    arms = [FLAGS, FULL, FULL | {"workspace": ":16:8"}]
    found = changed(tmp_path, *((arm(one), REPEATS) for one in arms))
    assert [one["before"] for one in found] == [arm(FLAGS).id] * 2
    (single,) = changed(tmp_path / "single", *((arm(one), REPEATS) for one in arms[:2]))
    assert 1 - found[0]["ratio"]["level"] == pytest.approx((1 - single["ratio"]["level"]) / 2)


@pytest.mark.parametrize(
    ("before", "after", "key"),
    [
        (make_cell("default"), make_cell("deterministic"), "cudnn.deterministic=true"),
        (make_cell(model={"name": "unet"}), make_cell(model={"name": "unet", "upsampling": "transposed"}), "model."),
        (make_cell(threads=2), make_cell(threads=1), "threads=1"),
        (make_cell(train={"compile": "off"}), make_cell(train={"compile": "default"}), "train.compile=default"),
        (make_cell(isolation="spawn"), make_cell(isolation="forkserver"), "isolation=forkserver"),
        (make_cell(dataset={"name": "x", "workers": 2}), make_cell(dataset={"name": "x", "workers": 0}), "dataset.w"),
    ],
)
def test_two_cells_are_a_change_of_whatever_tells_them_apart(
    before: Cell, after: Cell, key: str, tmp_path: Path
) -> None:
    (found,) = changed(tmp_path, (before, NOISY), (after, REPEATS))
    assert found["settings"][0].startswith(key)
    assert found["verdicts"] == ["differs", "bitwise"]


def test_other_seeds_and_the_four_modes_are_no_change(tmp_path: Path) -> None:
    varied = make_cell(seeds={"base": 0, "vary": ["init"]})
    assert changed(tmp_path / "seeds", (make_cell(), REPEATS), (varied, NOISY)) == []
    assert changed(tmp_path / "modes", *((make_cell(mode), REPEATS) for mode in ("default", "benchmark"))) != []
    three = ("default", "benchmark", "deterministic")
    assert changed(tmp_path / "three", *((make_cell(mode), REPEATS) for mode in three)) == []
    assert changed(tmp_path / "one", (make_cell(), REPEATS)) == []


@pytest.mark.parametrize(
    "other",
    [
        {"model": {"name": "lstm", "depth": 18}},
        {"model": {"name": "resnet", "depth": 34, "width": 8}},
        {"model": {"name": "resnet", "depth": 18, "_target_": "net.Other"}},
        {"dataset": {"name": "mnist"}},
        {"phase": "infer"},
    ],
)
def test_two_models_or_data_sets_are_no_change(other: dict[str, Any], tmp_path: Path) -> None:
    assert changed(tmp_path, (make_cell(), NOISY), (make_cell(**other), REPEATS)) == []


def test_filled_memory_is_said_to_repair_nothing(tmp_path: Path) -> None:
    (found,) = changed(tmp_path / "a", (arm(FLAGS), NOISY), (arm(FULL), REPEATS))
    assert f"bitwise, 5 of 5 after ({FILLED}); " in found["words"]
    (found,) = changed(tmp_path / "b", (arm(FLAGS), NOISY), (arm(FULL), NOISY))
    assert FILLED not in found["words"]
    (found,) = changed(tmp_path / "c", (arm(FLAGS), NOISY), (arm(FULL | {"fill_memory": False}), REPEATS))
    assert FILLED not in found["words"]


def test_on_a_cpu_a_change_of_determinism_has_a_cost_and_one_of_flags_has_none(tmp_path: Path) -> None:
    (found,) = changed(tmp_path / "a", (arm(FLAGS), NOISY), (arm(FULL), replace(REPEATS, ratio=0.9)), **CPU)
    assert found["ratio"]["verdict"] == "faster"
    assert "a step takes 9.9 % less time: 0.901 [" in found["words"]
    (found,) = changed(tmp_path / "b", (make_cell(), REPEATS), (make_cell("deterministic"), REPEATS), **CPU)
    assert found["words"].endswith("; the flags cannot act here without CUDA")


def test_a_probe_leaves_the_cost_open(tmp_path: Path) -> None:
    probe = {"name": "ops", "steps": 2, "repeat": False}
    (found,) = changed(tmp_path, (arm(FLAGS, probe=probe), NOISY), (arm(FULL, probe=probe), REPEATS))
    assert found["verdicts"] == ["differs", "bitwise"]
    assert found["words"].endswith("its cost is not known: a probe changes timing")


def test_nothing_is_said_across_machines(tmp_path: Path) -> None:
    cells = [arm(FLAGS), arm(FULL)]
    where = {cells[0].id: GPU, cells[1].id: GPU | {"driver": "590"}}
    evidence = Evidence.of(make_study(tmp_path, [(one, REPEATS) for one in cells], 5, lambda cell, _: where[cell.id]))
    assert changes(samples_of(evidence), evidence) == []


def test_an_arm_that_was_refused_is_told(tmp_path: Path) -> None:
    failed = Plant(outcomes=dict.fromkeys(range(5), "diverged"))
    (found,) = changed(tmp_path, (arm(FLAGS), NOISY), (arm(FULL), failed))
    assert found["verdicts"] == ["differs", None]
    assert "no finished trial after; its cost is not known: " in found["words"]
