"""The same training as a plain script, under Lightning and under the Trainer has the verdicts of the runner's own."""

import importlib.util
from pathlib import Path

import pytest
from attachments import PYTHON, attach, series_of

from runner.analysis.divergence import Divergence, divergence
from runner.record import Record

STEPS = 10
NEEDED = {"plain": "torch", "with_lightning": "pytorch_lightning", "with_trainer": "transformers"}


def twice(name: str, folder: Path) -> tuple[list[Record], Divergence]:
    if not importlib.util.find_spec(NEEDED[name]):
        pytest.skip(f"{NEEDED[name]} is not installed: pip install -e '.[peers]'")
    records = [attach([PYTHON, f"{name}.py"], folder, number=number, steps=STEPS) for number in range(2)]
    assert {record.outcome for record in records} == {"finished"}, records[0].reason
    return records, divergence(records, [series_of(folder, number) for number in range(2)])


def test_plain_and_under_lightning_the_training_is_the_same_to_the_bit(tmp_path: Path) -> None:
    """Who writes the loop does not show: weights, gradients and losses of both are equal, and repeat."""
    (plain, _), found = twice("plain", tmp_path / "plain")
    (other, _), under = twice("with_lightning", tmp_path / "lightning")
    assert (found.verdict, found.first_diverging_step, under.verdict) == ("bitwise", None, "bitwise")
    assert plain.digests is not None and other.digests is not None
    for name in ("initial", "losses", "final"):
        assert getattr(plain.digests, name) == getattr(other.digests, name), name
    assert plain.gradients == other.gradients and set(plain.gradients) == {"1", "2", "4", "8"}
    assert plain.doctor == other.doctor == []


@pytest.mark.slow
def test_under_the_trainer_it_repeats_too(tmp_path: Path) -> None:
    records, found = twice("with_trainer", tmp_path)
    assert (found.verdict, found.trials, found.interpreters) == ("bitwise", 2, 2)
    assert records[0].speed is not None and records[0].speed.steps == STEPS
    assert records[0].doctor == []


@pytest.mark.parametrize(
    "name",
    [
        "plain",
        pytest.param("with_lightning", marks=pytest.mark.slow),
        pytest.param("with_trainer", marks=pytest.mark.slow),
    ],
)
def test_planted_noise_is_seen_and_dated(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NOISE", "1")
    _, found = twice(name, tmp_path)
    assert (found.verdict, found.same_start, found.first_data_step) == ("differs", True, None)
    assert found.first_loss_step in (1, 2) and found.weights_differ_after in (1, 2)  # a byte may be drawn twice
