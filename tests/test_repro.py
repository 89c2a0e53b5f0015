"""Repro files: they show the mismatch alone where there is one, none where there is none, and clean ones cannot be."""

import ast
import itertools
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from broken.sitecustomize import Broken
from captures import captured
from composed import planted_cell
from conftest import call
from factory import Plant, make_study
from tiny import PLAIN
from torch import Tensor

from runner.analysis.summary import summarise
from runner.captured import Captured
from runner.cell import Cell
from runner.errors import StudyError
from runner.layout import outputs_file, record_file, tensors_file, trace_file, trial_file
from runner.operation import Operation, Repeated, Value
from runner.record import Record
from runner.repro import _asked, _first_shown, _not_captured, write_repro
from runner.study import Study
from runner.trace import Trace
from runner.trial import Trial
from runner.worker import reproduce

ROOT = Path(__file__).resolve().parents[1]
BROKEN = {"PYTHONPATH": str(ROOT / "tests" / "broken")}
MM, RELU = "aten.mm.default", "aten.relu.default"
FLOAT = "float32"
PLAIN_STUDY = ["runner", "-m", *PLAIN, "tracking=off"]


def operation(index: int, name: str, out: str, **changes: Any) -> Operation:
    """An operation of a module, with inputs that are equal in all trials unless they are changed."""
    read, given = Value("in", (4, 4), FLOAT), Value(out, (4, 4), FLOAT)
    fields = {"kind": "computed", "module": f"net.{index}", "inputs": (read,)} | changes
    known = {"step": 1, "part": "forward", "name": name, "line": "net.py:12", "scalars": "", "outputs": (given,)}
    return Operation(index=index, **known | fields)  # type: ignore[arg-type]


def operations(number: int) -> tuple[Operation, ...]:
    """One trial's: 0 and 3 give other results in each trial, and 3 when repeated."""
    other, again = str(number), Repeated(False, 3, 2e-7)
    return (
        operation(0, MM, other),
        operation(1, RELU, "out", repeated=Repeated(True, 0, 0.0)),
        operation(2, RELU, other, inputs=(Value(other, (4, 4), FLOAT, source=0),)),
        operation(3, RELU, other, repeated=again),
        operation(4, "aten.t.default", "out", kind="view"),
        operation(5, RELU, "out"),
    )


def study_of(
    folder: Path, traced: Callable[[int], tuple[Operation, ...]] = operations, *words: str
) -> tuple[Study, Cell]:
    """A study of three trials of one cell with these traces."""
    cell = planted_cell("Plain", "probe=ops", *words)
    study = make_study(folder, [(cell, Plant(loss_step=1, weights_step=1))], rounds=3)
    for number in range(3):
        Trace("ops", cell.id, number, 1, traced(number)).write(trace_file(study.trial_folder(cell.id, number)))
    return study, cell


def add_capture(study: Study, cell: Cell, number: int, work: Callable[[], Any], index: int, **limits: int) -> Captured:
    """A capture in which this work was operation `index`."""
    folder = study.capture_folder(cell.id, number)
    folder.mkdir()
    trial = replace(Trial.of(cell, 0, 0, "cpu"), capture=(0, 1, 2, 3, 4))
    trial.write(trial_file(folder))
    environment = {"torch": torch.__version__, "platform": "Linux", "host": "secret-host", "gpu_uuid": "GPU-secret"}
    environment["code"] = str(folder)
    Record.of(trial, "finished", None, "2026-12-01T00:00:00+00:00", environment=environment).write(record_file(folder))
    return captured(folder, lambda: [work() for _ in range(index + 1)], [index], **limits)


def inputs() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randn(4, 6, generator=generator).t()[:4], torch.randn(4, 4, generator=generator)


def written(folder: Path, how: str = "repeated") -> Path:
    """A repro file of a matrix product that was captured on a broken PyTorch, twice."""
    study, cell = study_of(folder / "s")
    one, other = inputs()
    for number in range(2):
        with Broken(MM, how):
            add_capture(study, cell, number, lambda: torch.mm(one, other), 0)
    path = folder / "bug.py"
    write_repro(study, path, 0)
    return path


def started(path: Path, processes: int = 2, **variables: str) -> "subprocess.CompletedProcess[str]":
    """Start a repro file with fewer calls and processes: every process loads torch."""
    text = path.read_text()
    assert "CALLS, SECONDS = 1000, 60.0\nPROCESSES, AT_ONCE = 40, 4 " in text
    changed = path.with_name(f"few_{path.name}")
    few = text.replace("CALLS, SECONDS = 1000,", "CALLS, SECONDS = 50,")
    changed.write_text(few.replace("PROCESSES, AT_ONCE = 40, 4 ", f"PROCESSES, AT_ONCE = {processes}, 4 "))
    if path.with_suffix(".pt").exists():
        shutil.copy(path.with_suffix(".pt"), changed.with_suffix(".pt"))
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")} | variables
    return subprocess.run([sys.executable, changed], cwd="/", env=environ, capture_output=True, text=True, timeout=900)


def test_a_mismatch_between_processes_is_shown_by_the_file_alone(tmp_path: Path) -> None:
    path = written(tmp_path, "process")
    done = started(path, **BROKEN, BROKEN_OPERATION=MM, BROKEN_HOW="process")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "50 calls in one process, on equal inputs: equal results" in done.stdout
    assert "a call in each of 2 processes, on equal inputs: 2 different results" in done.stdout
    assert "0: torch.float32 (4, 4), strides (1, 6), on cpu" in done.stdout


def test_a_sane_pytorch_shows_none(tmp_path: Path) -> None:
    done = started(written(tmp_path), processes=1)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "in each of 1 processes, on equal inputs: equal results" in done.stdout


def test_a_file_without_its_tensors_ends_with_another_status(tmp_path: Path) -> None:
    path = written(tmp_path)
    path.with_suffix(".pt").unlink()
    done = started(path)
    assert done.returncode == 2 and done.stderr.count("\n") == 1, done.stderr
    assert done.stderr.endswith("few_bug.pt: the tensors are missing; put them beside this file\n")


def test_a_mismatch_of_repeated_calls_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = written(tmp_path)
    monkeypatch.setattr(reproduce, "OPERATION", torch.ops.aten.mm.default)
    monkeypatch.setattr(reproduce, "TENSORS", path.with_suffix(".pt"))
    monkeypatch.setattr(reproduce, "MORE_SECONDS", 60.0)
    monkeypatch.setattr(sys, "argv", ["bug.py"])
    with Broken(MM, "repeated"):
        assert reproduce.main() == 1
    said = capsys.readouterr().out
    assert re.search("1000 calls in one process, on equal inputs: 2.. different results, by up to 0", said)
    monkeypatch.setattr(reproduce, "MORE_SECONDS", 0.0)
    with Broken(MM, "repeated"):
        assert reproduce.main() == 1
    calls = int(capsys.readouterr().out.partition(" calls in one process")[0].rpartition("\n")[2])
    assert calls < 100, "it ends with the first mismatch where no time is given for more"
    for name, value in (("PROCESSES", 0), ("REPORT_SECONDS", 0.0), ("CALLS", 3)):
        monkeypatch.setattr(reproduce, name, value)
    assert reproduce.main() == 0
    said = capsys.readouterr().out
    assert "  1 calls: equal results so far\n  2 calls: equal results so far\n3 calls in one process" in said


@pytest.mark.parametrize(
    "call",
    [
        (torch.ops.aten.add_.Tensor, (torch.ones(3), torch.ones(3)), {}),
        (torch.ops.aten._foreach_add_.Scalar, ([torch.ones(3), torch.ones(2)], 2.0), {}),
        (torch.ops.aten.max.dim, (torch.ones(3, 2), 1), {}),
        (torch.ops.aten.clone.default, (torch.ones(1, 2, 3, 3),), {"memory_format": "torch.channels_last"}),
        (torch.ops.aten._to_copy.default, (torch.ones(2),), {"dtype": torch.complex64, "device": torch.device("cpu")}),
    ],
)
def test_calls_of_every_form_are_done_on_copies(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: tuple[Any, tuple[Any, ...], dict[str, Any]]
) -> None:
    operation, args, kwargs = call
    torch.save({"name": str(operation), "args": args, "kwargs": kwargs}, tmp_path / "x.pt")
    for name, value in (("OPERATION", operation), ("TENSORS", tmp_path / "x.pt"), ("CALLS", 3), ("PROCESSES", 0)):
        monkeypatch.setattr(reproduce, name, value)
    monkeypatch.setattr(sys, "argv", ["x.py"])
    assert reproduce.main() == 0
    assert reproduce.call((args, {key: reproduce.restored(value) for key, value in kwargs.items()}))


@pytest.mark.parametrize(
    ("other_at", "ended", "said"),
    [(None, 10, "10 processes, on equal inputs: equal results"), (5, 8, "8 processes, on equal inputs: 2 different")],
)
def test_processes_are_started_until_results_differ(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], other_at: int | None, ended: int, said: str
) -> None:
    started = itertools.count()
    monkeypatch.setattr(reproduce, "PROCESSES", 10)
    monkeypatch.setattr(reproduce, "digest_of_process", lambda _: "b" if next(started) == other_at else "a")
    assert reproduce.differs_between_processes() == (other_at is not None)
    assert next(started) == ended
    assert f"a call in each of {said}" in capsys.readouterr().out


def test_scratch_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reproduce, "OPERATION", torch.ops.aten.max.dim)
    monkeypatch.setattr(reproduce, "SCRATCH", (1,))
    assert len(reproduce.call(((torch.ones(3, 2), 1), {}))) == 1
    monkeypatch.setattr(reproduce, "OPERATION", torch.ops.aten.neg.default)
    monkeypatch.setattr(reproduce, "SCRATCH", (0,))  # one tensor alone, no tuple: what is left is the argument
    assert [one.tolist() for one in reproduce.call(((torch.ones(2),), {}))] == [[1, 1]]


def test_the_file_is_fit_for_a_bug_report(tmp_path: Path) -> None:
    path = written(tmp_path)
    text = path.read_text()
    assert text.startswith(f'"""aten.mm differs when repeated on equal inputs, torch {torch.__version__}.\n')
    for part in ("Expected: ", "Observed in trainings, in net.0 (forward, step 1, net.py:12): 3 different", "Linux"):
        assert part in text
    assert "units in the last place" in text
    assert "OPERATION = torch.ops.aten.mm.default\n" in text and "torch.backends.cudnn.benchmark = False\n" in text
    for secret in (tmp_path.name, str(ROOT), "secret", "capture-000", Path.home().name):
        assert secret not in text
    for isolated in ([], ["--config", str(ROOT / "pyproject.toml")]):
        done = subprocess.run(["ruff", "check", *isolated, path], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout
    loaded = {alias.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Import) for alias in node.names}
    loaded |= {str(node.module) for node in ast.walk(ast.parse(text)) if isinstance(node, ast.ImportFrom)}
    assert {name.split(".")[0] for name in loaded} <= {"torch", *sys.stdlib_module_names}


def test_what_must_stand_in_the_environment_stands_before_the_import(tmp_path: Path) -> None:
    study, cell = study_of(tmp_path / "s")
    one, other = inputs()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
        for number in range(2):
            add_capture(study, cell, number, lambda: torch.mm(one, other), 0)
    write_repro(study, tmp_path / "bug.py")
    before, _, after = (tmp_path / "bug.py").read_text().partition("\nimport torch\n")
    assert 'os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":16:8"\n' in before and "CUBLAS" not in after


@pytest.mark.parametrize("index", [1, 2, 4, 5, 17, -1])  # repeats, has other inputs, a view, equal, none there
def test_a_clean_operation_is_refused_with_the_reason(tmp_path: Path, index: int) -> None:
    study, _ = study_of(tmp_path / "s")
    with pytest.raises(StudyError) as error:
        write_repro(study, tmp_path / "bug.py", index)
    reason = f"operation {index}: no different results on equal inputs in 3 trials; those that differ are 0, 3, see "
    assert str(error.value).startswith(reason)
    assert list(tmp_path.glob("bug*")) == []


def equal(number: int) -> tuple[Operation, ...]:
    return (operation(0, MM, "out"),)


def other_scalar(number: int) -> tuple[Operation, ...]:
    return (operation(0, MM, str(number), scalars=f"alpha={number}"),)


@pytest.mark.parametrize(
    ("traced", "reason"),
    [
        (equal, "found that differs .* no operation differs on equal inputs among the 1 traced"),
        (other_scalar, "found that differs .* the first argument that differs: aten.mm"),
    ],
)
def test_rungs_above_operations_are_refused(
    tmp_path: Path, traced: Callable[[int], tuple[Operation, ...]], reason: str
) -> None:
    study, _ = study_of(tmp_path / "s", traced)
    with pytest.raises(StudyError, match=reason):
        write_repro(study, tmp_path / "bug.py")


def test_data_that_differ_and_studies_without_a_trace_are_refused(tmp_path: Path) -> None:
    cell = planted_cell("Plain", "probe=ops")
    study = make_study(tmp_path / "s", [(cell, Plant(data_step=2, loss_step=2))], rounds=2)
    for number in range(2):
        Trace("ops", cell.id, number, 1, equal(number)).write(trace_file(study.trial_folder(cell.id, number)))
    with pytest.raises(StudyError, match=r"found that differs .* data differ first at step 2"):
        write_repro(study, tmp_path / "bug.py")
    plain = make_study(tmp_path / "t", [(planted_cell("Plain"), Plant(loss_step=2))], rounds=2)
    with pytest.raises(StudyError, match="were not traced; do the study with probe=ops"):
        write_repro(plain, tmp_path / "bug.py")


def test_equal_trials_are_refused_by_their_number(tmp_path: Path) -> None:
    cell = planted_cell("Plain", "probe=ops")
    study = make_study(tmp_path / "s", [(cell, Plant())], rounds=3)
    with pytest.raises(StudyError, match=r"found that differs .*\(default .* bitwise, 3 of 3; same start"):
        write_repro(study, tmp_path / "bug.py")


def test_tensors_that_were_not_saved_are_refused_with_the_reason(tmp_path: Path) -> None:
    study, cell = study_of(tmp_path / "s")
    one, other = inputs()
    for number in range(2):
        add_capture(study, cell, number, lambda: torch.mm(one, other), 0, limit_bytes=100)
    with pytest.raises(StudyError, match="operation 0 was not captured: inputs not saved: they take"):
        write_repro(study, tmp_path / "bug.py", 0)
    with pytest.raises(StudyError, match=r"operation 3 was not captured: the captures of default \(F,F\) failed, see"):
        write_repro(study, tmp_path / "bug.py", 3)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: path.write_bytes(path.read_bytes()[:-9])])
@pytest.mark.parametrize("file", [lambda folder: tensors_file(folder, 0), record_file])
def test_a_capture_that_lost_a_file_gives_way_to_the_other_one(
    tmp_path: Path, file: Callable[[Path], Path], damage: Callable[[Path], Any]
) -> None:
    study, cell = study_of(tmp_path / "s")
    one, other = inputs()
    captures = [add_capture(study, cell, number, lambda: torch.mm(one, other), 0) for number in range(2)]
    damage(file(captures[0].folder))
    shown = _first_shown(study, summarise(study)["cells"], 0)
    assert shown and shown.capture.folder == captures[1].folder
    damage(file(captures[1].folder))
    (summary,) = summarise(study)["cells"]
    assert _first_shown(study, [summary], 0) is None
    said = _not_captured(study, [summary], 0)
    assert said.startswith(f"operation 0 was not captured: {file(captures[0].folder)}: ")


@pytest.mark.parametrize(("place", "said"), [("nowhere/bug.py", "there is no folder"), ("bug.py", "cannot be written")])
def test_a_file_that_cannot_be_written_is_refused_in_a_sentence(tmp_path: Path, place: str, said: str) -> None:
    study, cell = study_of(tmp_path / "s")
    one, other = inputs()
    for number in range(2):
        add_capture(study, cell, number, lambda: torch.mm(one, other), 0)
    (tmp_path / "bug.py").mkdir()
    with pytest.raises(StudyError, match=f"--repro {tmp_path / place}: {said}"):
        write_repro(study, tmp_path / place, 0)


def test_the_cell_is_chosen_by_its_id_or_the_beginning_of_its_label() -> None:
    cells: list[dict[str, Any]] = [{"cell": f"{n}f", "label": label} for n, label in enumerate(["default", "bench, x"])]
    assert _asked(cells, None) == cells
    assert _asked(cells, "1f") == _asked(cells, "bench") == [cells[1]]
    with pytest.raises(
        StudyError, match=r"--cell f: no cell has .* begins so; there are 0f \(default\); 1f \(bench, x\)"
    ):
        _asked(cells, "f")


def test_the_operations_that_differ_are_told_of_the_cell_that_was_asked_for(tmp_path: Path) -> None:
    study, cell = study_of(tmp_path / "s")
    with pytest.raises(StudyError, match=r"operation 7: no different results .* those that differ are 0, 3, see"):
        write_repro(study, tmp_path / "bug.py", 7, cell.id)
    with pytest.raises(StudyError, match="--cell other: no cell has this id"):
        write_repro(study, tmp_path / "bug.py", 0, "other")


def test_damaged_outputs_cost_the_size_and_not_the_file(tmp_path: Path) -> None:
    study, cell = study_of(tmp_path / "s")
    one, other = inputs()
    for number in range(2):
        capture = add_capture(study, cell, number, lambda: torch.mm(one, other), 0)
        outputs_file(capture.folder, 0).unlink()
    write_repro(study, tmp_path / "bug.py", 0)
    text = (tmp_path / "bug.py").read_text()
    assert "OPERATION = torch.ops.aten.mm.default" in text and "the difference is not known" in text.replace("\n", " ")
    assert cell.id not in text


def test_only_python_files_are_written(tmp_path: Path) -> None:
    study, _ = study_of(tmp_path / "s")
    with pytest.raises(StudyError, match=r"bug.pt: is to be a Python file; name one that ends in .py"):
        write_repro(study, tmp_path / "bug.pt")


PLANTED = ("aten.addmm", "aten.relu", "aten._log_softmax", "aten.nll_loss_forward", "aten.mm")


@pytest.mark.slow
def test_five_faults_of_a_study_are_shown_by_their_files_alone(tmp_path: Path) -> None:
    names = ",".join(f"{name}.default" for name in PLANTED)
    paths = os.pathsep.join([BROKEN["PYTHONPATH"], str(ROOT / "tests")])
    broken = {"PYTHONPATH": paths, "BROKEN_OPERATION": names, "BROKEN_HOW": "repeated"}
    done = call(*PLAIN_STUDY, "study=s", "probe=ops", "probe.repeat=true", "trials=2", folder=tmp_path, **broken)
    assert done.returncode == 0, done.stdout + done.stderr
    found = Trace.read(next(tmp_path.glob("s/cells/*/trial-000/ops.jsonl.gz"))).operations
    for name in PLANTED:
        index = next(one.index for one in found if one.name == f"{name}.default")
        path = tmp_path / f"{name}.py"
        done = call("runner.why", "s", "--repro", str(path), "--operation", str(index), folder=tmp_path, **broken)
        assert done.returncode == 0, done.stdout + done.stderr
        assert path.read_text().startswith(f'"""{name} differs when repeated')
        assert started(path, **broken).returncode == 1
        assert started(path, processes=1).returncode == 0
    done = call("runner.why", "s", "--repro", "x.py", "--operation", "0", folder=tmp_path, **broken)
    assert done.returncode == 2 and "operation 0: no different results" in done.stderr
