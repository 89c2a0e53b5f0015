"""`python -m runner.check`: a certificate of a user's own model, measured again in fresh processes."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from compared import called, told
from composed import settings
from conftest import call

from runner import certify, check
from runner.analysis.comparison import compare_sides
from runner.analysis.side import certified, side_at
from runner.certificate import Certificate
from runner.report.check import check_lines
from runner.settings import cell_config
from runner.study import Study

# A layer this wide is summed in other parts by two threads than by one.
MODEL = """
from torch import nn

class Net(nn.Module):
    def __init__(self, width: int, name: str):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))

    def forward(self, images):
        return self.net(images)
"""
WORDS = [
    *("model=custom", "model._target_=mine.Net", "+model.args.width=2048", "+model.args.name='a b'"),
    *("dataset=digits", "train.steps=12", "train.batch_size=32", "device=cpu", "threads=1", "isolation=spawn"),
]
LABEL = "deterministic (T,F)"


@pytest.fixture(scope="module")
def folder(module_folder: Path) -> Path:
    """A user's folder with a model, a study of it and the study's certificate."""
    (module_folder / "mine.py").write_text(MODEL)
    words = [*WORDS, "cudnn=deterministic", "trials=2", "tracking=off", "study=study"]
    done = call("runner", "-m", *words, folder=module_folder, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    code, lines, errors = called(certify.main, module_folder / "study", "--out", module_folder / "certificate.json")
    assert code == 0, errors
    assert "2 of 2 fresh processes bitwise equal, each a new start of Python" in lines[0]
    return module_folder


def checked(folder: Path, *words: str) -> tuple[int, list[str], str]:
    """Exit code, lines and errors of checking the certificate from the user's folder."""
    done = call("runner.check", "certificate.json", *words, folder=folder, timeout=600)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_in_the_same_environment_it_holds(folder: Path) -> None:
    code, lines, errors = checked(folder, "trials=1", "study=again")
    assert code == 0, errors
    assert lines == [
        f"{LABEL}: holds, 1 of 1 fresh processes gave the certificate's bits, each a new start of Python; "
        "chance that a further one differs below 95 % at 95 %, on this machine in this state"
    ]
    study = Study.open(folder / "again")
    assert [cell.id for cell in study.cells()] == [cell.id for cell in Study.open(folder / "study").cells()]
    assert told(folder / "study", folder / "again")[0] == 0


def test_with_another_number_of_threads_it_differs_and_the_cause_is_named(folder: Path) -> None:
    code, lines, errors = checked(folder, "trials=1", "threads=2", "study=threads")
    assert code == 1, errors
    assert lines[0].startswith(f"differs: {LABEL}: differs from step 1: ")
    assert "; the same: initial weights, data; step time here/certificate " in lines[0]
    assert lines[1] == "likely cause: another number of threads: threads 1 in the certificate, 2 here"
    _, compared, _ = told(folder / "study", folder / "threads")
    assert compared[1] == "likely cause: another number of threads: threads 1 in A, 2 in B"


def test_with_other_code_of_the_users_model_it_differs_and_that_is_the_cause(folder: Path) -> None:
    (folder / "mine.py").write_text(MODEL.replace("nn.ReLU()", "nn.GELU()"))
    try:
        code, lines, errors = checked(folder, "trials=1", "study=code")
    finally:
        (folder / "mine.py").write_text(MODEL)
    assert code == 1, errors
    assert "differs from step 1: losses from step 1" in lines[0] and "the same: initial weights, data" in lines[0]
    assert lines[1].startswith("likely cause: other code of the model or data set: code ")


def elsewhere(folder: Path, **changes: Any) -> list[str]:
    """What a check says if the certificate was made in another environment, with other bits from step 3 on."""
    certificate = Certificate.read(folder / "certificate.json")
    (cell,) = certificate.cells
    (bits,) = cell.bits
    losses = [loss if step < 3 else f"{int(loss, 16) ^ 1:08x}" for step, loss in enumerate(bits.losses, 1)]
    there = replace(
        cell,
        environment=cell.environment | changes,
        bits=[replace(bits, losses=losses, weights=bits.weights | dict.fromkeys(("4", "8", "12"), "0"))],
    )
    replace(certificate, cells=[there]).write(folder / "elsewhere.json")
    side = certified(Certificate.read(folder / "elsewhere.json"), "elsewhere.json")
    return check_lines(compare_sides(side, side_at(folder / "study")))


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"torch": "2.11.0", "host": "other"}, "another PyTorch: torch 2.11.0 in the certificate, "),
        ({"cpu": "Other CPU", "git_revision": "1"}, "another processor: cpu Other CPU in the certificate, "),
    ],
)
def test_with_another_torch_or_processor_that_is_the_cause(folder: Path, changes: dict[str, Any], cause: str) -> None:
    lines = elsewhere(folder, **changes)
    assert "differs from step 3: losses from step 3, weights after step 4 (equal after step 2)" in lines[0]
    assert lines[1].startswith(f"likely cause: {cause}")


def refused(*arguments: object) -> str:
    """Why the command could not measure, in one line."""
    code, lines, errors = called(check.main, *arguments)
    assert (code, lines, errors.count("\n")) == (2, [], 1)
    return errors


def test_a_changed_or_truncated_certificate_is_refused_before_anything_is_measured(
    folder: Path, tmp_path: Path
) -> None:
    content = (folder / "certificate.json").read_text()
    for changed in (content.replace('"threads": 1', '"threads": 2'), content[:-20], ""):
        assert changed != content
        (tmp_path / "certificate.json").write_text(changed)
        assert str(tmp_path / "certificate.json") in refused(tmp_path / "certificate.json", f"study={tmp_path / 's'}")
    assert "no such file" in refused(tmp_path / "none.json")
    assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("words", [["seeds.base=3"], ["trials"], ["tracking=off"], ["+model.args.width=3"], ["b.json"]])
def test_only_what_says_where_and_how_often_can_be_given(folder: Path, words: list[str]) -> None:
    message = refused(folder / "certificate.json", *words)
    assert message.startswith(f"{words[-1]}: a check takes one certificate and these keys: trials=..., study=...")


def test_a_key_is_given_once(folder: Path) -> None:
    assert refused(folder / "certificate.json", "trials=1", "trials=2").startswith("trials=2: trials is there already")


def test_a_study_that_has_trials_is_no_new_measurement(folder: Path) -> None:
    assert "has trials already" in refused(folder / "certificate.json", f"study={folder / 'study'}")


def test_a_folder_of_other_files_is_left_alone(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine")
    assert "holds other files" in refused(folder / "certificate.json", f"study={tmp_path}")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_script_of_its_own_cannot_be_checked(folder: Path, tmp_path: Path) -> None:
    certificate = Certificate.read(folder / "certificate.json")
    cells = [replace(cell, config=cell.config | {"phase": "attach"}) for cell in certificate.cells]
    replace(certificate, cells=cells).write(tmp_path / "attached.json")
    assert "`python -m runner.attach`" in refused(tmp_path / "attached.json")


LACKING = [
    (("threads", "train"), {}, "cells.0.config lacks threads, train"),
    ((), {"hydra": {"launcher": {"_target_": "mine.Net"}}}, "cells.0.config has hydra, no part of a cell"),
    (("seeds",), {"study": "x", "defaults": []}, "lacks seeds and has defaults, study, no part of a cell"),
]


@pytest.mark.parametrize(("gone", "more", "message"), LACKING)
def test_what_is_no_whole_cell_is_not_measured(
    folder: Path, tmp_path: Path, gone: tuple[str, ...], more: dict[str, Any], message: str
) -> None:
    """What is missing would be filled up, and what is no part of a cell would steer the study."""
    certificate = Certificate.read(folder / "certificate.json")
    config = {key: value for key, value in certificate.cells[0].config.items() if key not in gone} | more
    replace(certificate, cells=[replace(certificate.cells[0], config=config)]).write(tmp_path / "forged.json")
    assert message in refused(tmp_path / "forged.json", f"study={tmp_path / 's'}")
    assert not (tmp_path / "s").exists()


def test_data_that_are_not_here_end_with_2(folder: Path, tmp_path: Path) -> None:
    words = ["dataset=mnist", "model=resnet", "device=cpu", "threads=1", "train.steps=2", "train.batch_size=8"]
    certificate = Certificate.read(folder / "certificate.json")
    cells = [replace(cell, config=cell_config(settings(*words))) for cell in certificate.cells]
    replace(certificate, cells=cells).write(tmp_path / "certificate.json")
    code, lines, errors = checked(tmp_path, "trials=1", "study=s", "dataset.root=nowhere")
    assert (code, lines) == (2, [])
    assert "dataset.root=nowhere" in errors
    assert errors.splitlines()[-1].startswith("cannot be measured: the study ended with 2, see above")
