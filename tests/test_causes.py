"""What most likely parts two cells: the likeliest change first, by name."""

from pathlib import Path
from typing import Any

import pytest
from compared import LATE, moved, steady, told
from factory import Plant, make_cell
from test_command import FLAGS

from runner.analysis.causes import Change, causes
from runner.analysis.parting import Parting

OWN = {"name": "custom", "_target_": "mine.Net", "args": {}}
OWN_DATA = {"name": "custom", "_target_": "mine.data", "args": {}}
CHANGES = [
    ({"torch": "2.11.0", "driver": "570.1", "host": "node2"}, "another PyTorch: torch 2.14.1 in A, 2.11.0 in B"),
    ({"threads": 8, "torch": "2.11.0"}, "another number of threads: threads 16 in A, 8 in B"),
    ({"gpu_name": "A100", "gpu_uuid": "GPU-9", "cudnn": 90800}, "another GPU: gpu_name NVIDIA H200 in A, A100 in B"),
    (
        {"cpu_switches": "MKL_CBWR=COMPATIBLE", "blas": "other"},
        "other switches of the processor: cpu_switches null in A, MKL_CBWR=COMPATIBLE in B",
    ),
    ({"cudnn": 90800, "workspace": ":4096:8"}, "another cuDNN, CUDA or driver: cudnn 91900 in A, 90800 in B"),
    (
        {"conv_precision": "tf32", "workspace": ":4096:8"},
        "other precision switches: conv_precision null in A, tf32 in B",
    ),
    ({"workspace": ":4096:8", "host": "node2"}, "another workspace variable: workspace null in A, :4096:8 in B"),
    (
        {"code": "abcd1234", "threads": 8, "torch": "2"},
        "other code of the model or data set: code null in A, abcd1234 in B",
    ),
    (
        {"git_revision": "abc", "host": "node2"},
        "another revision of the code in the working folder: git_revision null in A",
    ),
    ({"device": "cpu", "gpu_name": None}, "another device: device cuda in A, cpu in B"),
]


@pytest.mark.parametrize(("environment", "cause"), CHANGES, ids=[cause.partition(":")[0] for _, cause in CHANGES])
def test_the_likely_cause_comes_first(tmp_path: Path, environment: dict[str, Any], cause: str) -> None:
    steady(tmp_path / "one")
    moved(tmp_path / "two", parts=LATE, **environment)
    code, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert (code, len(lines) <= 15) == (1, True)
    assert lines[1].startswith(f"likely cause: {cause}")
    (cell,) = (line for line in lines if line.startswith("- deterministic (T,F)"))
    differs = "losses from step 5, weights after step 8 (equal after step 4), evaluation"
    assert f": differs from step 5: {differs}; the same: initial weights, data; step time B/A" in cell
    assert ("also changed: " in lines[2]) == (len(environment) > 1 and "device" not in environment)


SETTINGS: list[tuple[dict[str, Any], dict[str, Any], dict[str, Any], str]] = [
    (
        {"seeds": {"base": 1, "vary": []}},
        {"data_step": 1, "loss_step": 1},
        {"torch": "2.11.0"},
        "another seed: seeds.base 0 in A",
    ),
    (
        {"train": {"learning_rate": 0.1}},
        {"weights_step": 1},
        {"torch": "2.11.0"},
        "other settings: train.learning_rate null",
    ),
    ({"precision": {"name": "bf16"}}, {"loss_step": 1}, {"torch": "2.11.0"}, "other precision: precision"),
    (
        {"determinism": FLAGS},
        {"loss_step": 1},
        {},
        "another mode or determinism: determinism.algorithms null in A, false in B",
    ),
]


@pytest.mark.parametrize(("settings", "parts", "environment", "cause"), SETTINGS, ids=[one[-1] for one in SETTINGS])
def test_a_changed_setting_is_the_cause_before_the_environment(
    tmp_path: Path, settings: dict[str, Any], parts: dict[str, Any], environment: dict[str, Any], cause: str
) -> None:
    steady(tmp_path / "one")
    cell = make_cell("deterministic", **settings)
    moved(tmp_path / "two", cell, parts=Plant(**parts), **environment)
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1].startswith(f"likely cause: {cause}")


def test_code_on_one_side_alone_comes_with_another_model(tmp_path: Path) -> None:
    steady(tmp_path / "one")
    moved(tmp_path / "two", make_cell("deterministic", model=OWN), parts=Plant(loss_step=1), code="abcd1234")
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1].startswith("likely cause: another model: model.") and "code" not in lines[1] + lines[2]


@pytest.mark.parametrize(
    ("differ_after", "first"), [(1, "another number of threads"), (None, "another number of steps")]
)
def test_a_number_of_steps_comes_last_where_trainings_part_before_one_ends(
    differ_after: int | None, first: str
) -> None:
    changes = [Change("train.steps", 44, 20), Change("threads", 1, 2), Change("host", "a", "b")]
    parted = Parting(
        20, False, data_step=21, loss_step=21, equal_after=None, differ_after=differ_after, evaluation=True
    )
    found = [cause.name for cause in causes(changes, parted)]
    assert found[0] == first and set(found[:2]) == {"another number of threads", "another number of steps"}


def test_other_data_show_by_their_digest(tmp_path: Path) -> None:
    steady(tmp_path / "one")
    moved(tmp_path / "two", parts=Plant(data_step=3, loss_step=3, weights_step=4), torch="2.11.0", threads=8)
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1] == "likely cause: other data: the inputs or targets of step 3 differ"
    assert lines[2].startswith("also changed: another number of threads: threads 16 in A, 8 in B; another PyTorch")
    assert "differs from step 3: data from step 3, losses from step 3" in lines[3]


def test_a_moved_data_folder_with_the_same_data_is_no_cause(tmp_path: Path) -> None:
    there, here = ({"name": "mnist", "root": root} for root in ("/one", "/two"))
    steady(tmp_path / "one", make_cell("deterministic", dataset=there))
    moved(tmp_path / "two", make_cell("deterministic", dataset=here), parts=LATE, torch="2.11.0")
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1].startswith("likely cause: another PyTorch") and "dataset.root /one in A, /two in B" in lines[2]


@pytest.mark.parametrize(("dataset", "first"), [({"name": "digits"}, "other data"), (OWN_DATA, "other code")])
def test_code_of_a_model_alone_makes_no_other_data(tmp_path: Path, dataset: dict[str, Any], first: str) -> None:
    cell = make_cell("deterministic", model=OWN, dataset=dataset)
    steady(tmp_path / "one", cell, code="before")
    moved(tmp_path / "two", cell, parts=Plant(data_step=1, loss_step=1), code="after")
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1].startswith(f"likely cause: {first}")


@pytest.mark.parametrize(
    ("environment", "first"),
    [
        ({"code": "after", "torch": "2.11.0"}, "other code of the model or data set: code null in A, after in B"),
        ({"torch": "2.11.0", "threads": 8}, "another PyTorch: torch"),
        ({"threads": 8}, "other initial weights: they differ before the first step, though seed, model and PyTorch"),
    ],
)
def test_other_initial_weights_are_traced_to_what_makes_them(
    tmp_path: Path, environment: dict[str, Any], first: str
) -> None:
    steady(tmp_path / "one")
    moved(tmp_path / "two", parts=Plant(loss_step=1, weights_step=1), initial="other", **environment)
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1].startswith(f"likely cause: {first}")
    assert any("differs from the start: initial weights, losses from step 1" in line for line in lines)


def test_where_nothing_changed_the_command_that_looks_deeper_is_given(tmp_path: Path) -> None:
    steady(tmp_path / "one")
    moved(tmp_path / "two", parts=LATE)
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1] == "nothing that is recorded changed"
    assert "python -m runner probe=ops probe.steps=5 probe.repeat=true train.steps=5" in lines[2]
