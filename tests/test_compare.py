"""`python -m runner.compare`: what is the same, from which step it differs, and the likely cause first."""

import json
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compared import HERE, LATE, STEADY, moved, steady, told
from factory import Plant, digest, four_modes, make_cell
from made_traces import Machine, training

from runner import why
from runner.analysis.certify import certificate_of
from runner.analysis.comparison import compare_sides
from runner.analysis.side import side_at
from runner.cell import Cell
from runner.kernel_use import KernelCall, KernelUse
from runner.layout import kernels_file, record_file, series_file, trace_file
from runner.study import Study

MODES = ("default", "benchmark", "deterministic", "deterministic_benchmark")


def test_a_copied_study_is_all_equal(tmp_path: Path) -> None:
    four_modes(tmp_path / "one")
    shutil.copytree(tmp_path / "one", tmp_path / "two")
    code, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert (code, len(lines)) == (0, 3)
    assert lines[0] == f"A is {tmp_path / 'one'}; B is {tmp_path / 'two'}: 4 of 4 cells are bitwise the same"
    assert lines[1] == "settings and environment are the same"
    assert (
        "default (F,F) (does not repeat, the same 5 different trainings on both sides); step time B/A 1.000" in lines[2]
    )


def test_only_the_evaluation_differs(tmp_path: Path) -> None:
    steady(tmp_path / "one")
    moved(tmp_path / "two", parts=Plant(evaluation=True), torch="2.11.0")
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    said = "differs in the evaluation: evaluation; the same: initial weights, data, losses, weights"
    assert any(said in line for line in lines)


def test_a_cell_that_repeats_nowhere_needs_no_cause(tmp_path: Path) -> None:
    steady(tmp_path / "one", make_cell(), plant=Plant(loss_step=3, weights_step=4))
    steady(tmp_path / "two", make_cell(), plant=Plant(loss_step=3, weights_step=4), rounds=5, torch="2.11.0")
    code, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert code == 1 and not any("likely cause" in line for line in lines)
    assert lines[1].startswith("these do not repeat by themselves")
    assert "default (F,F): 3 different of 3 in A, 5 different of 5 in B" in lines[2]


def test_a_cell_that_repeats_on_one_side_alone_has_a_cause(tmp_path: Path) -> None:
    steady(tmp_path / "one", make_cell())
    steady(tmp_path / "two", make_cell(), plant=Plant(loss_step=3, weights_step=4), torch="2.11.0")
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1].startswith("likely cause: another PyTorch")
    assert lines[2] == "besides, it does not repeat in B itself, 3 different of 3"


def test_what_changed_without_effect_is_said(tmp_path: Path) -> None:
    steady(tmp_path / "one")
    steady(tmp_path / "two", torch="2.11.0")
    code, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert code == 0 and "1 of 1 cell is bitwise the same" in lines[0]
    assert lines[1] == "changed without effect on these bits: another PyTorch: torch 2.14.1 in A, 2.11.0 in B"


def test_the_ratio_is_that_of_unpaired_trials(tmp_path: Path) -> None:
    for name, ratio in (("one", 1.0), ("two", 1.25)):
        steady(tmp_path / name, plant=replace(STEADY, ratio=ratio))
    (pair,) = compare_sides(side_at(tmp_path / "one"), side_at(tmp_path / "two")).pairs
    assert pair.ratio and pair.ratio.value == pytest.approx(1.25, rel=2e-3) and not pair.ratio.paired
    assert pair.ratio.ci95 and pair.ratio.ci95[0] < 1.25 < pair.ratio.ci95[1] and pair.ratio.level == 0.95


def test_a_long_answer_is_cut_and_all_shows_it(tmp_path: Path) -> None:
    for name, torch in (("one", "2.14.1"), ("two", "2.11.0")):
        cells = [make_cell(mode, threads=threads) for mode in MODES for threads in range(1, 4)]
        (steady if name == "one" else moved)(
            tmp_path / name, *cells, torch=torch, **({} if name == "one" else {"parts": LATE})
        )
    for record in (study := Study.open(tmp_path / "two")).records():
        place = record_file(study.trial_folder(record.cell, record.number))
        environment = record.environment | {"driver": record.cell}  # each cell has changes of its own
        replace(record, environment=environment).write(place)
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    _, whole, _ = told(tmp_path / "one", tmp_path / "two", "--all")
    assert len(lines) == 15 and lines[-1] == f"and {len(whole) - 14} more lines: --all"
    assert lines[:14] == whole[:14] and sum("differs from step 5" in line for line in whole) == 12


def test_cells_of_one_side_alone_are_named(tmp_path: Path) -> None:
    steady(tmp_path / "one", make_cell(), make_cell("benchmark"))
    steady(tmp_path / "two", make_cell("benchmark"), make_cell("deterministic"))
    code, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert code == 1 and "1 of 1 cell is bitwise the same" in lines[0]
    assert {"only in A: default (F,F)", "only in B: deterministic (T,F)"} <= set(lines)


def test_cells_that_fit_several_are_not_guessed(tmp_path: Path) -> None:
    steady(tmp_path / "one", make_cell(threads=4), make_cell("benchmark", threads=4))
    steady(tmp_path / "two", make_cell(threads=1), make_cell(threads=2), make_cell("benchmark", threads=4))
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert "not compared, several cells fit as well, in A: default (F,F)" in lines
    assert "not compared, several cells fit as well, in B: default (F,F), threads=1 | default (F,F), threads=2" in lines


def test_a_certificate_stands_for_its_study(tmp_path: Path) -> None:
    certificate_of(steady(tmp_path / "one")).write(tmp_path / "certificate.json")
    moved(tmp_path / "two", parts=LATE, torch="2.11.0")
    assert told(tmp_path / "certificate.json", tmp_path / "one")[0] == 0
    code, lines, _ = told(tmp_path / "certificate.json", tmp_path / "two")
    assert code == 1 and lines[1].startswith("likely cause: another PyTorch: torch 2.14.1 in A, 2.11.0 in B")


def test_a_study_that_is_still_at_work_is_compared_as_far_as_it_is(tmp_path: Path) -> None:
    steady(tmp_path / "one")
    study = steady(tmp_path / "two")
    shutil.rmtree(study.trial_folder(study.cells()[0].id, 2))
    code, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert code == 0
    assert "note on B: deterministic (T,F): trials that were asked for and are not there (yet): 1" in lines


def test_a_damaged_record_is_named_and_the_rest_compared(tmp_path: Path) -> None:
    steady(tmp_path / "one")
    study = steady(tmp_path / "two")
    path = record_file(study.trial_folder(study.cells()[0].id, 2))
    path.write_text("{")
    code, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert code == 1 and any(str(path) in line for line in lines)


def test_a_trial_that_nobody_may_look_into_is_named_and_is_no_success(tmp_path: Path) -> None:
    """A file where its folder should be stands for a folder without permission, which does not hold root up."""
    steady(tmp_path / "one")
    study = steady(tmp_path / "two")
    folder = study.trial_folder(study.cells()[0].id, 2)
    shutil.rmtree(folder)
    folder.write_text("no folder")
    code, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert code == 1 and "1 of 1 cell is bitwise the same" in lines[0]
    assert any(f"note on B: {record_file(folder)}: cannot be read (Not a directory); " in line for line in lines)


def test_studies_without_a_cell_in_common_end_with_2_and_the_reason(tmp_path: Path) -> None:
    steady(tmp_path / "one", make_cell(), make_cell("benchmark"))
    steady(tmp_path / "two", make_cell("deterministic"), make_cell("deterministic_benchmark"))
    code, lines, errors = told(tmp_path / "one", tmp_path / "two")
    assert (code, lines, errors.count("\n")) == (2, [], 1)
    assert errors.startswith("nothing to compare: A is ") and "only in A: default (F,F) | benchmark (F,T)" in errors


def test_cells_without_a_trial_to_compare_end_with_2_where_there_is_no_other(tmp_path: Path) -> None:
    steady(tmp_path / "one")
    failed = replace(STEADY, outcomes=dict.fromkeys(range(3), "failed"))
    steady(tmp_path / "two", plant=failed)
    code, lines, errors = told(tmp_path / "one", tmp_path / "two")
    assert (code, lines, errors.count("\n")) == (2, [], 1)
    assert "note on B: deterministic (T,F): no trial of it can be compared" in errors


def test_a_cell_that_no_side_can_compare_is_no_success(tmp_path: Path) -> None:
    for name in ("one", "two"):
        study = steady(tmp_path / name, make_cell(), make_cell("deterministic"))
        for record in study.records():
            if record.cell == make_cell().id:
                series_file(study.trial_folder(record.cell, record.number)).unlink()
    code, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert code == 1 and "1 of 1 cell is bitwise the same" in lines[0]
    assert "note on A: default (F,F): no trial of it can be compared" in lines


def test_a_training_that_diverges_is_compared_all_the_same(tmp_path: Path) -> None:
    steady(tmp_path / "one")
    study = moved(tmp_path / "two", parts=LATE, torch="2.11.0")
    for record in study.records():
        place = record_file(study.trial_folder(record.cell, record.number))
        replace(record, outcome="diverged", reason="the loss is nan at step 5").write(place)
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1].startswith("likely cause: another PyTorch")


def traced(study: Study, first: int, **planted: Any) -> None:
    """Leave traces of trials that are unlike those with another `first`, where something unsteady is planted."""
    for record in study.records():
        trace = training(Machine(first + record.number, **planted)).trace(cell=record.cell, level="ops")
        replace(trace, number=record.number).write(trace_file(study.trial_folder(record.cell, record.number)))


def test_traces_of_both_sides_name_the_operation(tmp_path: Path) -> None:
    cell = make_cell("deterministic", probe={"name": "ops", "steps": 2, "repeat": False})
    unsteady = ["convolution_backward in conv at 1"]
    traced(steady(tmp_path / "one", cell), 0, unsteady=unsteady)
    other = moved(tmp_path / "two", cell, parts=Plant(loss_step=2, weights_step=1))
    traced(other, 3, unsteady=unsteady)
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1] == "nothing that is recorded changed"
    assert lines[2].startswith(
        "first operation with other bits: aten.convolution_backward of conv (backward, step 1, net.py"
    )


def kernels(study: Study, kernel: str) -> None:
    for record in study.records():
        call = KernelCall("aten::convolution", "conv", "forward", ("4x4",), (kernel,))
        use = KernelUse(record.cell, record.number, 1, "cuda", (call,), True)
        use.write(kernels_file(study.trial_folder(record.cell, record.number)))


def test_other_kernels_are_named(tmp_path: Path) -> None:
    cell = make_cell("deterministic", probe={"name": "kernels", "steps": 1, "repeat": False})
    kernels(steady(tmp_path / "one", cell), "implicit_gemm")
    kernels(moved(tmp_path / "two", cell, parts=LATE, cudnn=90800), "winograd")
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert "other kernels: implicit_gemm becomes winograd, for aten::convolution of conv (forward; 4x4)" in lines


def test_a_longer_training_is_the_same_as_far_as_both_go(tmp_path: Path) -> None:
    one = side_at(steady(tmp_path / "one").folder)
    (cell,) = one.cells
    bits = cell.bits[0]
    weights = {step: bits.weights[step] for step in ("1", "2", "4", "8")} | {"10": "ff"}
    short = replace(bits, data=bits.data[:10], losses=bits.losses[:10], weights=weights)
    (pair,) = compare_sides(replace(one, cells=[replace(cell, bits=[short])]), one).pairs
    assert (pair.parted.steps, pair.parted.loss_step, pair.parted.differ_after) == (10, 11, None)


@pytest.mark.parametrize("what", ["nothing", "folder", "text"])
def test_what_is_no_side_is_refused_in_one_line(tmp_path: Path, what: str) -> None:
    steady(tmp_path / "one")
    if what == "folder":
        (tmp_path / "two").mkdir()
    if what == "text":
        (tmp_path / "two").write_text("no certificate")
    code, lines, errors = told(tmp_path / "one", tmp_path / "two")
    assert (code, lines, errors.count("\n")) == (2, [], 1)
    assert errors.startswith(str(tmp_path / "two"))


def test_two_seeds_of_one_study_are_compared_trial_by_trial(tmp_path: Path) -> None:
    cell = make_cell("deterministic", seeds={"base": 0, "vary": ["init"]})
    differing = Plant(loss_step=1, weights_step=1)
    steady(tmp_path / "one", cell, plant=differing)
    steady(tmp_path / "two", cell, plant=differing, rounds=2)
    code, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert code == 0 and "1 of 1 cell is bitwise the same" in lines[0]


def test_the_answer_is_the_same_for_equal_records(tmp_path: Path) -> None:
    first, second = (certificate_of(steady(tmp_path / name)) for name in ("one", "two"))
    assert json.dumps(first.cells[0].bits[0].losses) == json.dumps(second.cells[0].bits[0].losses)
    assert HERE["threads"] == first.cells[0].environment["threads"]
    assert Cell(first.cells[0].config).id == make_cell("deterministic").id


@pytest.mark.parametrize(("other", "code"), [("one", 0), ("two", 1)])
def test_a_reader_that_is_gone_changes_no_answer(tmp_path: Path, other: str, code: int) -> None:
    steady(tmp_path / "one")
    moved(tmp_path / "two", parts=LATE)
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "runner.compare", str(tmp_path / "one"), str(tmp_path / other)]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, timeout=600)
    os.close(writer)
    assert (ended.returncode, ended.stderr) == (code, "")


@pytest.mark.parametrize("place", ["/dev/full", None])
def test_an_answer_that_cannot_be_printed_stays_the_same(tmp_path: Path, place: str | None) -> None:
    steady(tmp_path / "one")
    one = str(tmp_path / "one")
    command = shlex.join([sys.executable, "-m", "runner.compare", one, one]) + (f" > {place}" if place else " >&-")
    ended = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, timeout=600)
    assert (ended.returncode, ended.stderr) == (0, "")


def attached(folder: Path, *steps: int, phase: str = "attach") -> Path:
    """A study of an attached script whose trials ended after so many steps; trainings of ours are evaluated then."""
    cell = Cell(make_cell().config | {"phase": phase})
    for record, count in zip((study := steady(folder, cell, rounds=len(steps))).records(), steps, strict=True):
        where = study.trial_folder(record.cell, record.number)
        series = study.series(record)
        assert series and record.digests and record.speed
        replace(series, **{name: getattr(series, name)[:count] for name in OF_STEPS}).write(series_file(where))
        kept = {step: bits for step, bits in record.digests.steps.items() if int(step) <= count}
        digests = replace(record.digests, steps=kept, final=digest("final", count), losses=digest("losses", count))
        if phase == "train":
            digests = replace(digests, predictions=digest("predictions", count))
        replace(record, digests=digests, speed=replace(record.speed, steps=count)).write(record_file(where))
    return folder


OF_STEPS = ("step_ms", "enqueue_ms", "wait_ms", "shape", "loss", "data")


def test_scripts_that_end_after_other_numbers_of_steps_got_no_other_data(tmp_path: Path) -> None:
    _, lines, _ = told(attached(tmp_path / "one", 3, 3), attached(tmp_path / "two", 5, 5))
    assert lines[1] == "likely cause: another number of steps: one training ends after step 3, another goes on"
    assert lines[2].startswith(
        "- default (F,F): goes on for more steps: data from step 4, losses from step 4; the same: "
    )
    assert "other data" not in "".join(lines) and "evaluation" not in lines[2]
    code, lines, _ = told(attached(tmp_path / "three", 3, 5), tmp_path / "three")
    assert (code, lines[1]) == (0, "settings and environment are the same")
    code, lines, _ = told(tmp_path / "one", tmp_path / "three")
    assert code == 1 and "does not repeat" not in "".join(lines)


def test_a_number_of_steps_is_no_cause_of_what_differs_before_one_ends(tmp_path: Path) -> None:
    attached(tmp_path / "one", 5, 5)
    study = Study.open(attached(tmp_path / "two", 3, 3))
    for record in study.records():
        assert record.digests
        digests = replace(record.digests, steps=record.digests.steps | {"1": digest("others")})
        other = replace(record, digests=digests, environment=record.environment | {"threads": 8})
        other.write(record_file(study.trial_folder(record.cell, record.number)))
    _, lines, _ = told(tmp_path / "one", tmp_path / "two")
    assert lines[1] == "likely cause: another number of threads: threads 16 in A, 8 in B"
    assert (
        "differs from step 1: weights after step 1; the same: initial weights, data of the 3 steps of both" in lines[2]
    )
    assert "losses of the 3 steps of both" in lines[2]


def test_the_chain_of_a_script_that_ends_early_names_no_data(tmp_path: Path) -> None:
    lines = why.told(Study.open(attached(tmp_path / "one", 3, 5)))
    assert "  steps       different numbers of them: none took fewer than 3, some took more" in lines
    assert lines[0].endswith(": different numbers of steps: compared in the first 3, equal in 2 of 2")
    assert "  data        equal in every step" in lines and not any("look at:" in line for line in lines)


def test_an_evaluation_after_other_numbers_of_steps_is_not_compared(tmp_path: Path) -> None:
    lines = why.told(Study.open(attached(tmp_path / "one", 3, 5, phase="train")))
    assert lines[0].endswith(": different numbers of steps: compared in the first 3, equal in 2 of 2")
    assert "  evaluation  not compared: it comes after different numbers of steps" in lines
    assert "look deeper" not in "".join(lines)
