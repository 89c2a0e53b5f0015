"""`python -m runner.why` and the report: the chain of evidence of planted studies, and the commands to try."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factory import Plant, make_cell, make_study
from made_traces import Machine, Memory, bits, training
from test_command import FLAGS, words

from runner import repro, why
from runner.analysis.summary import summarise
from runner.cell import Cell
from runner.kernel_use import KernelCall, KernelUse
from runner.layout import kernels_file, trace_file
from runner.report import write_report
from runner.report.__main__ import main as report_main
from runner.report.chain import chain
from runner.report.terminal import show
from runner.report.why import short_lines, why_lines
from runner.study import Study

PROBE = {"name": "ops", "steps": 2, "repeat": True}
DIFFERS = Plant(loss_step=2, weights_step=1)
ABOVE = "same start, same data, first loss difference at step 2, weights differ after step 1, same evaluation"


def traced_cell(mode: str = "default", probe: dict[str, Any] = PROBE, **settings: Any) -> Cell:
    return make_cell(mode, **{"probe": probe, "determinism": FLAGS, "device": "cuda"} | settings)


def traced_study(folder: Path, cell: Cell, plant: Plant = DIFFERS, level: str = "ops", **planted: Any) -> Study:
    """A study of three trials of a cell, with these things planted in their traces."""
    study = make_study(folder / "study", [(cell, plant)], rounds=3)
    for record in study.records():
        machine = training(Machine(record.number, repeat=True, **planted))
        trace = machine.trace(cell=cell.id, level=level)
        trace.write(trace_file(study.trial_folder(cell.id, record.number)))
    return study


UNSTEADY = {"unsteady": ["convolution_backward in conv at 1"]}


def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Exit code, output and errors of the command."""
    monkeypatch.setattr(sys, "argv", ["runner.why", *arguments])
    code = why.main()
    said = capsys.readouterr()
    return code, said.out, said.err


def test_the_summary_of_a_traced_cell_says_why(tmp_path: Path) -> None:
    (cell,) = summarise(traced_study(tmp_path, traced_cell(), **UNSTEADY))["cells"]
    found = cell["traces"]
    assert (found["level"], found["trials"], found["operations"]) == ("ops", 3, 26)
    assert (found["first_not_finite"], found["damaged"]) == (None, [])
    place = "aten.convolution_backward of conv (backward, step 1, net.py:7)"
    assert found["sentence"] == f"{ABOVE}; the first operation that differs: {place}, differs when repeated"
    (one,) = found["findings"]
    assert (one["rung"], one["name"], one["trials"]) == ("operation", "aten.convolution_backward", [0, 1, 2])
    assert [advice["change"] for advice in one["advice"]] == ["cudnn=deterministic", "cudnn=deterministic_benchmark"]


@pytest.mark.parametrize(
    ("cell", "plant"),
    [(make_cell(), DIFFERS), (traced_cell(), Plant()), (traced_cell(probe=PROBE | {"name": "kernels"}), DIFFERS)],
)
def test_without_a_probe_that_traces_or_a_difference_there_is_no_why(tmp_path: Path, cell: Cell, plant: Plant) -> None:
    assert summarise(traced_study(tmp_path, cell, plant))["cells"][0]["traces"] is None


def test_the_report_says_why_in_a_section_of_its_own(tmp_path: Path) -> None:
    study = traced_study(tmp_path, traced_cell(), **UNSTEADY)
    summary = write_report(study)
    section = study.report_markdown.read_text().partition("## Why they differ\n\n")[2].partition("\n\n")[0]
    (line,) = section.splitlines()
    assert "differs when repeated [4x4 float32, 4x4 float32]; when repeated by up to 3 units in the last place" in line
    assert "(2e-07 relative); try: cudnn=deterministic (let cuDNN choose among deterministic algorithms only)" in line
    first, command = short_lines(summary)
    assert first.startswith("default (F,F): the first operation that differs: aten.convolution_b")
    assert command == "why, and what to try: python -m runner.why STUDY, with the folder of this report for STUDY"
    opening = study.report_markdown.read_text().partition("\n|")[0]
    assert "- default (F,F): the first operation that differs: aten.convolution" in opening and command in opening


def test_a_long_list_is_cut_in_the_report_and_whole_in_the_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ["convolution in conv", "relu in norm", "addmm in head", "mm in head", "nll_loss2d_forward in "]
    study = traced_study(tmp_path, traced_cell(), unsteady=[*names, "nll_loss2d_backward in ", "add_ in head"])
    write_report(study)
    section = study.report_markdown.read_text().partition("## Why they differ\n\n")[2].partition("\n\n")[0]
    assert len(section.splitlines()) == 5 + 1
    assert section.endswith("and 1 more, see python -m runner.why STUDY, with the folder of this report for STUDY")
    _, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert len(re.findall(r"^ +\d\. aten\.", said, re.MULTILINE)) == 6


def test_the_command_prints_the_ladder_and_what_to_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = traced_study(tmp_path, traced_cell(), **UNSTEADY)
    command = ["python", "-m", "runner", "-m", "cudnn=glob(*)", "study=x", "probe=ops", "trials=3"]
    monkeypatch.setattr(Study, "asked", _asked(Study.asked, command))
    code, said, _ = told(monkeypatch, capsys, str(study.folder))
    lines = said.splitlines()
    assert code == 0
    assert lines[:7] == [
        "default (F,F): weights differ, 3 different of 3",
        "  start       equal in 3 of 3",
        "  data        equal in every step",
        "  losses      differ first at step 2",
        "  weights     differ after step 1",
        "  evaluation  equal",
        "  operations  26 compared in 3 trials, 1 differs on equal inputs:",
    ]
    assert lines[7].startswith(
        "    1. aten.convolution_backward of conv (backward, step 1, net.py:7): equal inputs, 3 diff"
    )
    assert lines[8:10] == [
        "       tensors: 4x4 float32, 4x4 float32",
        "       size: when repeated by up to 3 units in the last place (2e-07 relative)",
    ]
    assert lines[10].startswith("       try: let cuDNN choose among deterministic algorithms only [PyTorch's notes")
    tried = [words(line.strip()) for line in lines if line.startswith("         python")]
    beside = f"study={study.folder}-try-cudnn-deterministic"
    assert tried[0] == ["-m", "cudnn=default,deterministic", "probe=none", "trials=5", beside]
    assert "cudnn=default,deterministic_benchmark" in tried[1]


def _asked(once: Any, command: list[str]) -> Any:
    return lambda study: once(study) | {"command": command}


def test_without_a_probe_the_command_that_looks_deeper_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plants = [(make_cell("benchmark"), Plant(loss_step=3, weights_step=3)), (make_cell("deterministic"), Plant())]
    study = make_study(tmp_path / "study", plants)
    code, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert code == 0
    assert "  losses      differ first at step 3\n  weights     equal after step 2, differ after step 4\n" in said
    (command,) = [line.strip() for line in said.splitlines() if line.startswith("         python")]
    beside = f"study={study.folder}-{make_cell('benchmark').id[:6]}-why"
    assert words(command) == ["probe=ops", "probe.steps=3", "probe.repeat=true", "train.steps=3", "trials=3", beside]
    assert short_lines(summarise(study), "a b") == ["why, and what to try: python -m runner.why 'a b'"]
    assert "\ndeterministic (T,F): bitwise, 5 of 5\n" in said


def test_a_study_that_repeats_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = traced_study(tmp_path, traced_cell(), Plant())
    assert told(monkeypatch, capsys, str(study.folder)) == (0, "default (F,F): bitwise, 3 of 3\n", "")
    assert short_lines(summarise(study), "s") == []


def test_how_trials_ended_stands_above_and_the_list_follows_its_announcement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = traced_cell()
    study = make_study(tmp_path / "study", [(cell, replace(DIFFERS, outcomes={0: "diverged"}))], rounds=4)
    for record in study.records():
        machine = training(Machine(record.number, **UNSTEADY, repeat=True))
        machine.do("aten.log", Memory(bits("x")), not_finite="nan")
        machine.trace(cell=cell.id).write(trace_file(study.trial_folder(cell.id, record.number)))
    trace_file(study.trial_folder(cell.id, 2)).unlink()
    _, said, _ = told(monkeypatch, capsys, str(study.folder))
    names = [line[:13].strip() for line in said.splitlines()[1:]]
    assert names[0] == "trials" and "  trials      1 diverged, 3 finished: " in said
    place = names.index("operations")
    assert names[place - 2 : place] == ["left out", "not finite"] and names[place + 1].startswith("1.")


def test_a_cell_whose_trials_all_failed_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    plant = Plant(outcomes=dict.fromkeys(range(3), "failed"))
    study = make_study(tmp_path / "study", [(traced_cell(), plant)], rounds=3)
    reason = study.records()[0].reason
    _, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert f"  trials      3 failed, 0 finished: {reason or 'no reason given'}"[:60] in said


def test_an_evaluation_that_differs_alone_is_not_looked_for_in_the_training(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = make_study(tmp_path / "study", [(make_cell(), Plant(evaluation=True))], rounds=3)
    _, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert "  evaluation  differs with equal weights; probes trace training alone" in said and "look deeper" not in said


def test_what_the_study_has_tried_is_not_to_be_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fixed, varied = ({"base": 0, "vary": list[str](vary)} for vary in ((), ("init", "order", "augment", "dropout")))
    plants = [(make_cell(seeds=fixed), Plant()), (make_cell(seeds=varied), Plant(data_step=1, loss_step=1))]
    study = make_study(tmp_path / "study", plants, rounds=3)
    _, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert "is in this study: default (F,F)" in said and ": bitwise, 3 of 3\n" in said
    assert "seeds=all,fixed" not in said


def test_trainings_that_differ_within_a_process_are_a_rung(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = summarise(make_study(tmp_path / "study", [(make_cell(), DIFFERS)], rounds=3))
    (cell,) = summary["cells"]
    cell["reproducibility"] |= {"within_process": "differs", "within_differing": 2}
    assert "  in process  weights differ within a process in 2 of 3" in chain(summary, ["python", "-m", "runner"])


def test_initial_weights_that_differ_are_told_with_what_reads_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    summary = summarise(traced_study(tmp_path, traced_cell(), **UNSTEADY))
    (cell,) = summary["cells"]
    cell["reproducibility"]["same_start"] = False
    cell["traces"]["start_readers"] = ["aten.convolution of conv (forward, step 1)"]
    said = chain(summary, ["python", "-m", "runner"])
    assert "  start       initial weights differ, first read by aten.convolution of conv (forward, step 1)" in said


def test_what_no_setting_changes_is_to_be_looked_at(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", [(cell := traced_cell(), DIFFERS)], rounds=3)
    for number in range(3):
        machine = training(Machine(number))
        machine.do("aten.mul.Tensor", Memory(bits("x")), scalars=f"other={number}")
        machine.trace(cell=cell.id).write(trace_file(study.trial_folder(cell.id, number)))
    summary = summarise(study)
    (line,) = [line for line in chain(summary, ["python", "-m", "runner"]) if "a Python number" in line]
    assert line.startswith("       look at: a Python number that this line computes or is given: from os.urandom,")
    assert "; look at: a Python number" in why_lines(summary)[0]


def test_a_training_shorter_than_the_probe_was_asked_for_is_told(tmp_path: Path) -> None:
    enough = summarise(traced_study(tmp_path / "a", traced_cell(), **UNSTEADY))["cells"][0]["traces"]
    fewer = summarise(traced_study(tmp_path / "b", traced_cell(probe=PROBE | {"steps": 5}), **UNSTEADY))
    assert enough["notes"] == []
    assert fewer["cells"][0]["traces"]["notes"] == ["the training ends after step 2: probe.steps=5 saw no more"]


def test_what_a_change_did_is_said_on_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = make_study(tmp_path / "a study", [(make_cell(threads=4), DIFFERS), (make_cell(threads=1), Plant())])
    show(summarise(study), study.folder)
    said = capsys.readouterr().out
    assert "- what the change did: from default (F,F), threads=4 to default (F,F), threads=1: weights differ, 5" in said
    assert f"- why, and what to try: python -m runner.why '{study.folder}'\n" in said


def test_seeds_that_vary_by_design_need_no_why(tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", [(make_cell(seeds={"base": 0, "vary": ["init"]}), DIFFERS)], rounds=3)
    (cell,) = (summary := summarise(study))["cells"]
    assert cell["reproducibility"]["verdict"] == "differs"
    cell["reproducibility"]["seeds_varied"] = ["init"]
    assert short_lines(summary, "s") == []


def test_data_that_differ_are_told_as_data_with_what_to_try(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = traced_cell(dataset={"name": "custom", "workers": 2})
    study = traced_study(tmp_path, cell, Plant(data_step=2, loss_step=2, weights_step=2), noise=["mm in head at 2"])
    _, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert "  data        differ first at step 2\n" in said
    assert "  operations  13 compared in 3 trials, none differs on equal inputs\n" in said
    assert "dataset.workers=2,0" in said and "look deeper" not in said
    write_report(study)
    assert "default (F,F): try: dataset.workers=0 (load in" in study.report_markdown.read_text()


def test_a_difference_beyond_the_trace_is_looked_for_further_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = traced_study(tmp_path, traced_cell(), Plant(loss_step=10, weights_step=9))
    _, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert "none differs on equal inputs\n  look deeper, into the first 10 steps:\n" in said
    assert "probe.steps=10" in said


def test_nothing_found_within_the_steps_traced_is_not_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study = traced_study(tmp_path, traced_cell())
    _, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert "none differs on equal inputs" in said and "look deeper" not in said


def test_modules_lead_to_operations_unless_the_model_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    probe = PROBE | {"name": "modules", "repeat": False}
    for name, compiled, deeper in (("a", "off", True), ("b", "default", False)):
        cell = traced_cell(probe=probe, train={"compile": compiled})
        study = traced_study(tmp_path / name, cell, level="modules", noise=["mm in head"])
        _, said, _ = told(monkeypatch, capsys, str(study.folder))
        assert "  modules     26 compared in 3 trials, 1 differs on equal inputs:" in said
        assert ("probe=ops probe.steps=1" in said) is deeper


def test_a_damaged_trace_is_named_and_the_others_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = traced_cell()
    study = traced_study(tmp_path, cell, **UNSTEADY)
    path = trace_file(study.trial_folder(cell.id, 1))
    path.write_bytes(path.read_bytes()[:-40])
    code, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert code == 0
    assert f"  left out    {path}: " in said
    assert "26 compared in 2 trials, 1 differs" in said
    write_report(study)
    assert "default (F,F): left out: " in study.report_markdown.read_text()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"number": 0}, "is of trial 0 of cell {cell}; it was moved here"),
        ({"number": True}, ""),
        ({"cell": "another"}, "is of trial 1 of cell another"),
        ({"level": "modules"}, "holds modules of 2 steps, due are ops of at most 2"),
        ({"level": "kernels"}, ""),
        ({"steps": 99}, "holds ops of 99 steps, due are ops of at most 2"),
        (None, "is missing; remove the trial's folder"),
    ],
)
def test_a_trace_that_is_not_of_its_folder_is_named_and_left_out(
    fields: dict[str, Any] | None, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    cell = traced_cell()
    study = traced_study(tmp_path, cell, **UNSTEADY)
    path = trace_file(study.trial_folder(cell.id, 1))
    path.unlink()
    if fields is not None:
        machine = training(Machine(1, repeat=True, **UNSTEADY))
        machine.trace(**{"cell": cell.id, "number": 1} | fields).write(path)
    code, printed, _ = told(monkeypatch, capsys, str(study.folder))
    assert code == 0 and "26 compared in 2 trials, 1 differs" in printed
    (line,) = [line for line in printed.splitlines() if "left out" in line]
    assert line.startswith(f"  left out    {path}: {said.format(cell=cell.id)}")
    monkeypatch.setattr(sys, "argv", ["runner.report", str(study.folder)])
    assert report_main() == 1 and str(path) in capsys.readouterr().err


def test_the_maker_of_a_nan_is_named_for_trials_that_diverged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = traced_cell()
    study = make_study(tmp_path / "study", [(cell, Plant(outcomes=dict.fromkeys(range(3), "diverged")))], rounds=3)
    for record in study.records():
        machine = training(Machine(record.number))
        machine.do("aten.log", machine.do("aten.exp"), module="head.log", not_finite="nan")
        machine.trace(cell=cell.id).write(trace_file(study.trial_folder(cell.id, record.number)))
    _, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert "  not finite  aten.log of head.log (optimizer, step 2, net.py:7) makes the first NaN of trial 0" in said


def test_kernels_that_trials_chose_are_told_with_what_changes_from_mode_to_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cells = [traced_cell(mode, PROBE | {"name": "kernels"}) for mode in ("default", "deterministic_benchmark")]
    study = make_study(tmp_path / "study", [(cells[0], Plant()), (cells[1], DIFFERS)], rounds=3)
    for record in study.records():
        tuned = record.cell == cells[1].id
        kernel = f"tuned_{'AB'[record.number // 2]}" if tuned else "usual"
        call = KernelCall("aten::cudnn_convolution", "conv", "forward", ("4x4",), (kernel,))
        use = KernelUse(record.cell, record.number, 3, "cuda", (call,), True)
        use.write(kernels_file(study.trial_folder(record.cell, record.number)))
    kernels_file(study.trial_folder(cells[0].id, 1)).write_text("{")
    summary = write_report(study)
    chose = "trial 2 ran tuned_B where trials 0-1 ran tuned_A, for aten::cudnn_convolution of conv (forward; 4x4)"
    assert summary["cells"][1]["kernels"]["words"] == ["convolutions ran through cuDNN", chose]
    (change,) = summary["kernel_changes"]
    assert change["words"][0].startswith("usual becomes tuned_A (trials 0-1) or tuned_B (trial 2), for aten::cudnn")
    section = study.report_markdown.read_text().partition("## Kernels\n\n")[2].partition("\n\n")[0]
    assert "default (F,F) to deterministic" in section and "left out: " in section and "kernels.json" in section
    _, said, _ = told(monkeypatch, capsys, str(study.folder))
    assert f"  kernels     {chose}\n" in said


@pytest.mark.parametrize("name", ["", "nowhere"])
def test_what_is_no_study_is_refused_in_a_line(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, said, refusal = told(monkeypatch, capsys, str(tmp_path / name))
    assert (code, said) == (2, "")
    assert "no study here" in refusal and refusal.count("\n") == 1


def test_a_repro_is_asked_for_by_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    study, asked = traced_study(tmp_path, traced_cell(), **UNSTEADY), []
    monkeypatch.setattr(repro, "write_repro", lambda *given: asked.append(given))
    code, said, _ = told(monkeypatch, capsys, str(study.folder), "--repro", "f.py", "--operation", "10")
    assert (code, said, asked) == (0, "wrote f.py\n", [(study, Path("f.py"), 10, None)])
    told(monkeypatch, capsys, str(study.folder), "--repro", "f.py", "--cell", "default")
    assert asked[1:] == [(study, Path("f.py"), None, "default")]


def test_an_operation_without_a_file_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        told(monkeypatch, capsys, "study", "--operation", "10")
    assert "--operation and --cell are for --repro FILE" in capsys.readouterr().err
