"""Logits: kept where they are asked for, bit by bit, and no more than fits."""

from pathlib import Path

import numpy as np
import pytest
import torch
from composed import planted_cell, settings
from factory import Plant, make_cell, make_study
from one_trial import one_trial
from test_evaluate import Scores, scored

from runner.analysis.summary import summarise
from runner.errors import ConfigError, StudyError
from runner.layout import logits_file
from runner.logits import Logits
from runner.worker import evaluate as evaluating
from runner.worker.contract import Task
from runner.worker.evaluate import Evaluated, evaluate

CPU = torch.device("cpu")


def made(seed: int = 0) -> Logits:
    rng = np.random.default_rng(seed)
    return Logits(rng.normal(size=(40, 3)).astype(np.float32), np.arange(40) % 3)


def kept(*batches: tuple[torch.Tensor, torch.Tensor], view: str = "image", classes: int = 3) -> Evaluated:
    return evaluate(Scores(), Task(view, classes), batches, CPU, None, keep_logits=True)


def test_what_was_written_is_read_and_equal_logits_are_equal_bytes(tmp_path: Path) -> None:
    for name in ("one", "other"):
        made().write(tmp_path / name)
    read = Logits.read(tmp_path / "one")
    assert read.values.tobytes() == made().values.tobytes() and (read.targets == made().targets).all()
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_damage_is_named(tmp_path: Path) -> None:
    path = tmp_path / "logits.npz"
    made().write(path)
    content = path.read_bytes()
    for damaged in (b"", content[:100], content[:80] + bytes([content[80] ^ 1]) + content[81:]):
        path.write_bytes(damaged)
        with pytest.raises(StudyError, match=str(path)):
            Logits.read(path)


@pytest.mark.parametrize(
    ("values", "targets", "said"),
    [
        (np.zeros((4, 3)), np.zeros(4, dtype=np.int64), "2-dimensional float64"),
        (np.zeros((4, 3), dtype=np.float32), np.zeros(5, dtype=np.int64), "4 rows of values and 5 targets"),
    ],
)
def test_arrays_that_do_not_go_together_are_named(
    values: np.ndarray, targets: np.ndarray, said: str, tmp_path: Path
) -> None:
    Logits(values, targets).write(tmp_path / "logits.npz")
    with pytest.raises(StudyError, match=said):
        Logits.read(tmp_path / "logits.npz")


def test_an_evaluation_keeps_them_only_if_it_is_asked() -> None:
    batch = scored([0, 1, 2, 2], [0, 1, 2, 0])
    assert evaluate(Scores(), Task("image", 3), [batch], CPU, None).logits is None
    found = kept(batch, scored([1], [2])).logits
    assert found is not None
    assert found.values.dtype == np.float32 and found.values.argmax(axis=1).tolist() == [0, 1, 2, 2, 1]
    assert found.targets.tolist() == [0, 1, 2, 0, 2]


@pytest.mark.parametrize(("view", "shape", "axis"), [("next", (2, 4, 3), -1), ("mask", (2, 3, 4, 5), 1)])
def test_pixels_and_symbols_are_items_in_the_order_of_the_targets(view: str, shape: tuple[int, ...], axis: int) -> None:
    outputs = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    targets = outputs.argmax(axis)
    found = kept((outputs, targets), view=view).logits
    assert found is not None and found.targets.tolist() == targets.flatten().tolist()
    assert found.values.argmax(axis=1).tolist() == found.targets.tolist()


def test_no_more_than_fits_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    batch = scored([0, 1, 2, 2], [0, 1, 2, 0])
    monkeypatch.setattr(evaluating, "MOST_BYTES", 4 * 3 * 8)  # of eight items
    assert kept(batch, batch).logits is not None
    assert kept(batch, batch, batch).logits is None


def test_values_have_none() -> None:
    with pytest.raises(ConfigError, match=r"train\.keep_logits=True: the view forecast has no classes"):
        settings("model=lstm", "dataset=series", "dataset.path=x.csv", "train.keep_logits=true")


def test_a_trial_leaves_them_in_its_folder_and_no_other_file_changes(tmp_path: Path) -> None:
    record, folder = one_trial(planted_cell("Plain", "train.keep_logits=true"), tmp_path / "kept")
    plain, other = one_trial(planted_cell("Plain"), tmp_path / "plain")
    assert record.outcome == plain.outcome == "finished"
    found = Logits.read(logits_file(folder))
    accuracy = float((found.values.argmax(axis=1) == found.targets).mean())
    assert accuracy == pytest.approx(record.metrics["accuracy"])
    assert record.digests == plain.digests
    assert not logits_file(other).exists()


def test_a_summary_compares_them_and_a_damaged_one_costs_its_trial_alone(tmp_path: Path) -> None:
    cell = make_cell("default", train={"keep_logits": True})
    study = make_study(tmp_path / "study", [(cell, Plant()), (make_cell("benchmark"), Plant())], rounds=4)
    for number in range(4):
        made(number).write(logits_file(study.trial_folder(cell.id, number)))
    found, other = summarise(study)["cells"]
    assert found["ensemble"]["trials"] == 4 and -1 < found["ensemble"]["pearson"] < 1
    assert other["ensemble"] is None
    logits_file(study.trial_folder(cell.id, 1)).write_bytes(b"damaged")
    summary = summarise(study)
    assert summary["cells"][0]["ensemble"]["trials"] == 3
    assert len(summary["damaged"]) == 1 and "logits.npz" in summary["damaged"][0]
    logits_file(study.trial_folder(cell.id, 2)).unlink()
    assert "4 MiB" in summarise(study)["cells"][0]["ensemble"]["why"]
