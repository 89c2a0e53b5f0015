"""The verdicts on models and data with a planted fault, found by real processes."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import finals, study

from runner.study import Study

CUSTOM = ["dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image", "dataset.classes=10"]
SHORT = ["train.steps=12", "train.batch_size=8"]


def verdict(done: Study) -> dict[str, Any]:
    """The reproducibility part of the only cell's summary."""
    (cell,) = json.loads(done.summary_json.read_text())["cells"]
    return dict(cell["reproducibility"])


@pytest.fixture
def planted(tmp_path: Path) -> Callable[..., Study]:
    """A study of one cell over a planted model."""

    def run(target: str, *arguments: str, data: list[str] = CUSTOM, trials: int = 3) -> Study:
        model = ["model=custom", f"model._target_=planted.{target}"]
        return study(*model, *data, *SHORT, f"trials={trials}", *arguments, folder=tmp_path)

    return run


def test_nothing_planted_is_bitwise(planted: Callable[..., Study]) -> None:
    found = verdict(planted("Plain"))
    assert found["verdict"] == "bitwise"
    assert found["unique_weights"] == 1
    assert found["bound_95"] == pytest.approx(1 - 0.05**0.5)


def test_noise_is_found_with_its_first_step(planted: Callable[..., Study]) -> None:
    done = planted("NoisyFrom", "+model.args.step=6")
    found = verdict(done)
    assert found["verdict"] == "differs"
    assert found["first_diverging_step"] == 6
    assert found["unique_weights"] == len(finals(done.records())) == 3


def test_a_noisy_loss_with_equal_weights_is_told_apart(planted: Callable[..., Study]) -> None:
    done = planted("NoisyLoss")
    assert verdict(done)["verdict"] == "loss-only"
    assert len(finals(done.records())) == 1
    assert "weights bitwise equal, the logged training loss differs" in done.report_markdown.read_text()


def test_a_changed_batch_is_a_difference_of_data(planted: Callable[..., Study]) -> None:
    data = ["dataset=custom", "dataset._target_=planted.changed_at", "dataset.view=image", "dataset.classes=10"]
    done = planted("Plain", data=[*data, "+dataset.args.step=7"])
    (cell,) = json.loads(done.summary_json.read_text())["cells"]
    assert cell["reproducibility"]["verdict"] == "differs"
    assert "data differ first at step 7" in done.report_markdown.read_text()


def test_spawn_sees_what_a_forkserver_hides(planted: Callable[..., Study]) -> None:
    done = planted("SetOrder", "isolation=forkserver,spawn", trials=4)
    cells = json.loads(done.summary_json.read_text())["cells"]
    verdicts = {cell["config"]["isolation"]: cell["reproducibility"]["verdict"] for cell in cells}
    assert verdicts == {"forkserver": "bitwise", "spawn": "differs"}
    interpreters = {kind: set() for kind in verdicts}
    for record in done.records():
        interpreters[record.process["isolation"]].add(record.process["interpreter"])
    assert {kind: len(found) for kind, found in interpreters.items()} == {"forkserver": 1, "spawn": 4}


def test_a_model_that_flips_a_flag_is_reported(planted: Callable[..., Study]) -> None:
    done = planted("FlipsFlag")
    record = done.records()[0]
    assert record.flags["requested"]["benchmark"] is False
    assert record.flags["before"]["benchmark"] is False
    assert record.flags["after"]["benchmark"] is True
    (cell,) = json.loads(done.summary_json.read_text())["cells"]
    assert any("benchmark" in sentence for sentence in cell["flag_mismatch"])
    assert "benchmark" in done.report_markdown.read_text()


def test_stream_seeds_vary_what_they_name(tmp_path: Path) -> None:
    model = ["model=custom", "model._target_=planted.Plain"]
    done = study(*model, *CUSTOM, *SHORT, "trials=3", "seeds=fixed,init,order", folder=tmp_path)
    by_seeds: dict[tuple[str, ...], list[Any]] = {}
    for record in done.records():
        cell = next(cell for cell in done.cells() if cell.id == record.cell)
        by_seeds.setdefault(tuple(cell.config["seeds"]["vary"]), []).append(record.digests)
    count = {
        vary: tuple(len({getattr(one, part) for one in digests}) for part in ("initial", "data", "final"))
        for vary, digests in by_seeds.items()
    }
    assert count == {(): (1, 1, 1), ("init",): (3, 1, 3), ("order",): (1, 3, 3)}
