"""`python -m runner.certify`: what gets a certificate, what it says, and what is refused, by name."""

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from compared import HERE, STEADY, called, moved, steady
from factory import Plant, four_modes, make_cell, make_study

from runner import certify
from runner.analysis.certify import certificate_of
from runner.analysis.side import side_of
from runner.analysis.statement import certified_words, fixed_bound, held_words
from runner.cell import Cell
from runner.certificate import Certificate
from runner.errors import StudyError
from runner.layout import record_file, series_file
from runner.study import Study

CELL = make_cell("deterministic")


def test_a_certificate_has_the_bits_of_the_study(tmp_path: Path) -> None:
    study = steady(tmp_path / "study")
    code, lines, _ = called(certify.main, study.folder, "--out", tmp_path / "c.json")
    assert code == 0 and lines[-1].startswith(f"wrote {tmp_path / 'c.json'}; `python -m runner.check")
    (cell,) = Certificate.read(tmp_path / "c.json").cells
    (record, *_), (bits,) = study.records(), cell.bits
    series = study.series(record)
    assert record.digests and series
    assert (cell.config, cell.processes, cell.interpreters, cell.steps) == (CELL.config, 3, 1, 16)
    assert (bits.initial, bits.metrics, bits.predictions) == (
        record.digests.initial,
        record.digests.metrics,
        record.digests.predictions,
    )
    assert bits.weights == record.digests.steps | {"16": record.digests.final}
    assert bits.losses[0] == "40133333" == series.loss[:1].astype(">f4").tobytes().hex()  # 2.3 as a float32
    assert bits.data[1] == f"{2:016x}{3:016x}" and len(bits.data) == 16
    assert cell.environment == HERE | {"hash_seed": None} | dict.fromkeys(cell.environment.keys() - HERE.keys())
    assert cell.metrics == {"accuracy": 0.9, "loss": 0.3} and len(cell.step_ms) == 3


def test_the_next_command_is_one_that_works(tmp_path: Path) -> None:
    script = Cell(CELL.config | {"phase": "attach"})
    called(certify.main, steady(tmp_path / "ours").folder, "--out", tmp_path / "c.json")
    _, lines, _ = called(certify.main, steady(tmp_path / "script", script).folder, "--out", tmp_path / "c.json")
    assert lines[-1].startswith(f"replaced {tmp_path / 'c.json'}; attach again, and `python -m runner.compare")


def test_equal_records_give_equal_bytes(tmp_path: Path) -> None:
    study = steady(tmp_path / "study")
    for name in ("one", "two"):
        certificate_of(study).write(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


# 1 - 0.05^(1/(n-1)) for n = 10, 5, 2 and 1 - 0.05^(1/n) for n = 10, 3, 1, worked by hand: exp(ln(0.05)/9) = 0.7169.
@pytest.mark.parametrize(("n", "within", "fixed"), [(10, "28 %", "26 %"), (5, "53 %", "45 %"), (2, "95 %", "78 %")])
def test_the_statement_has_the_chance_of_a_further_one(tmp_path: Path, n: int, within: str, fixed: str) -> None:
    study = make_study(tmp_path / "study", [(CELL, STEADY)], n, interpreter=lambda number: f"interpreter-{number}")
    (cell,) = side_of(study).cells
    assert certified_words(cell) == (
        f"deterministic (T,F): {n} of {n} fresh processes bitwise equal, each a new start of Python; "
        f"chance that a further one differs below {within} at 95 %, on this machine in this state"
    )
    assert held_words(cell) == (
        f"deterministic (T,F): holds, {n} of {n} fresh processes gave the certificate's bits, each a new start of "
        f"Python; chance that a further one differs below {fixed} at 95 %, on this machine in this state"
    )


def test_the_bounds_are_exact() -> None:
    assert fixed_bound(1) == pytest.approx(0.95) and fixed_bound(3) == pytest.approx(0.6316, abs=5e-5)
    assert fixed_bound(10) == pytest.approx(0.2589, abs=5e-5)


@pytest.mark.parametrize(
    ("interpreter", "said", "held"),
    [
        (lambda number: "one", "a new start of Python was not tried: isolation=spawn does", "does, below 95 % at 95 %"),
        (lambda number: number % 2, "does, below 95 % at 95 % (isolation=spawn", "does, below 78 % at 95 %"),
    ],
)
def test_processes_of_one_interpreter_say_little_of_a_new_start(
    tmp_path: Path, interpreter: Callable[[int], str], said: str, held: str
) -> None:
    study = make_study(tmp_path / "study", [(CELL, STEADY)], 10, interpreter=lambda number: str(interpreter(number)))
    (cell,) = side_of(study).cells
    first = "chance that a further process differs below 28 % at 95 %, on this machine in this state; "
    assert first in certified_words(cell) and said in certified_words(cell)
    assert "below 26 % at 95 %" in held_words(cell) and held in held_words(cell)


def refused(study: Study, *words: str) -> str:
    code, lines, errors = called(certify.main, study.folder, "--out", study.folder.parent / "c.json", *words)
    assert (code, lines, errors.count("\n")) == (2, [], 1)
    assert not (study.folder.parent / "c.json").exists()
    return errors


def test_cells_that_do_not_repeat_are_named_with_the_command_that_says_why(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study")
    message = refused(study)
    assert "default (F,F): weights differ, 5 different of 5; benchmark (F,T): weights differ" in message
    assert "deterministic" not in message.partition(";")[0]
    assert f"`python -m runner.why {study.folder}` says why" in message and "--cell leaves cells out" in message


def test_cells_are_chosen_by_id_or_label(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study")
    by_id = study.cells()[3].id
    chosen = certificate_of(study, [by_id, "deterministic (T,F)"]).cells
    assert [cell.label for cell in chosen] == ["deterministic (T,F)", "deterministic_benchmark (T,T)"]
    message = refused(study, "--cell", "nothing")
    assert "--cell nothing: no cell has this id or a label that begins so" in message and by_id in message


def test_seeds_that_vary_by_design_are_named(tmp_path: Path) -> None:
    cell = make_cell("deterministic", seeds={"base": 0, "vary": ["init", "order"]})
    study = steady(tmp_path / "study", cell, plant=Plant(loss_step=1, weights_step=1))
    assert "weights differ, 3 different of 3 (by design the seeds differ: init, order)" in refused(study)


def test_a_study_that_is_still_at_work_or_partial_is_refused(tmp_path: Path) -> None:
    study = steady(tmp_path / "study")
    shutil.rmtree(study.trial_folder(CELL.id, 1))
    assert "deterministic (T,F): 2 of 3 trials are there: it is still at work, or was broken off" in refused(study)


def test_failed_and_diverged_trials_are_refused(tmp_path: Path) -> None:
    failed = steady(tmp_path / "failed", plant=replace(STEADY, outcomes={1: "timed_out"}))
    assert "1 of its 3 trials failed" in refused(failed)
    diverged = steady(tmp_path / "diverged", plant=replace(STEADY, outcomes={0: "diverged", 1: "diverged"}))
    assert "2 of its 3 trials diverged" in refused(diverged)


def test_a_damaged_record_is_refused(tmp_path: Path) -> None:
    study = steady(tmp_path / "study")
    path = record_file(study.trial_folder(CELL.id, 1))
    path.write_text("{")
    assert f"it is damaged: {path}" in refused(study)


def test_one_trial_and_a_missing_series_are_refused(tmp_path: Path) -> None:
    assert "there is one trial, at least two are needed" in refused(steady(tmp_path / "one", rounds=1))
    study = steady(tmp_path / "study")
    series_file(study.trial_folder(CELL.id, 1)).unlink()
    assert "not every trial has its series" in refused(study)


def test_a_series_that_does_not_fit_its_record_is_refused(tmp_path: Path) -> None:
    study = steady(tmp_path / "study")
    other = moved(tmp_path / "other", parts=Plant(loss_step=3))
    shutil.copy(series_file(other.trial_folder(CELL.id, 0)), series_file(study.trial_folder(CELL.id, 1)))
    assert "its records and series do not fit together" in refused(study)


def test_several_environments_are_refused(tmp_path: Path) -> None:
    where = [HERE, HERE, HERE | {"torch": "2.11.0"}, HERE | {"torch": "2.11.0"}]
    study = make_study(tmp_path / "study", [(CELL, STEADY)], 4, environment=lambda cell, number: where[number])
    assert "its trials come from 2 environments (torch)" in refused(study)


def test_an_older_certificate_is_replaced_and_no_other_file(tmp_path: Path) -> None:
    study = steady(tmp_path / "study")
    out = tmp_path / "c.json"
    assert [called(certify.main, study.folder, "--out", out)[0] for _ in range(2)] == [0, 0]
    out.write_text("mine")
    code, _, errors = called(certify.main, study.folder, "--out", out)
    assert code == 2 and f"--out {out}: another file is there" in errors and out.read_text() == "mine"


@pytest.mark.parametrize(
    ("out", "said"),
    [
        ("", "--out .: is a folder; name a file in a folder that is there"),
        ("none/c.json", "--out none/c.json: there is no folder none; name a file in a folder that is there"),
        ("x" * 300, "File name too long"),
    ],
)
def test_a_certificate_that_cannot_be_written_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, out: str, said: str
) -> None:
    study = steady(tmp_path / "study")
    monkeypatch.chdir(tmp_path)
    code, lines, errors = called(certify.main, study.folder, "--out", out)
    assert (code, lines, errors.count("\n")) == (2, [], 1)
    assert said in errors and "Errno" not in errors and [path.name for path in tmp_path.iterdir()] == ["study"]


def test_what_is_no_study_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="no study here"):
        certificate_of(Study.open(tmp_path))
    assert called(certify.main, tmp_path / "none")[0] == 2
