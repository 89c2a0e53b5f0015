"""The same command again does what is missing or failed, and nothing else."""

import json
import os
import re
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import call
from launching import PLAIN, TINY, at_work, contents, done, ended, finals, pids, set_aside, start, trials
from processes import within

from runner.layout import record_file, series_file
from runner.rounds import in_order
from runner.study import Study

CELLS = "cudnn=default,benchmark"
COMMAND = [CELLS, *PLAIN, "seeds=all", "trials=2", "study=s"]


@pytest.fixture(scope="module")
def whole(module_folder: Path) -> Path:
    """The folder of a complete study of two cells and two rounds."""
    code, said = done(*COMMAND, folder=module_folder)
    assert code == 0, said
    return module_folder / "s"


@pytest.fixture
def study(whole: Path, tmp_path: Path) -> Study:
    """A copy of it."""
    return Study(Path(shutil.copytree(whole, tmp_path / "s", symlinks=True)))


def summary(study: Study) -> dict[str, tuple[int, int, int]]:
    """Finished, failed and missing trials by the mode's name."""
    cells = json.loads(study.summary_json.read_text())["cells"]
    return {cell["label"].split()[0]: (cell["n"], cell["failed"], cell["missing"]) for cell in cells}


def test_a_complete_study_is_left_as_it_is(study: Study) -> None:
    before = {name: data for name, data in contents(study.folder).items() if not name.startswith("hydra/")}
    code, said = done(*COMMAND, folder=study.folder.parent)
    assert code == 0, said
    assert "4 trials, each in a process of its own; 4 of them are there" in said
    assert "[" not in said.partition("report:")[0].partition("there\n")[2].partition(", precision ")[0]
    assert {name: data for name, data in contents(study.folder).items() if not name.startswith("hydra/")} == before


def test_what_is_missing_is_done_and_what_is_finished_is_not_touched(study: Study) -> None:
    weights, gone = finals(study), trials(study)[1]
    shutil.rmtree(gone)
    kept = pids(study)
    assert len(kept) == 3
    words = [word for word in COMMAND if not word.startswith("trials")]  # which leaves the study as long as it is
    code, said = done(*words, folder=study.folder.parent)
    assert code == 0, said
    assert said.count("ms a step, first") == 1 and "[4/4]" in said
    assert pids(study).items() >= kept.items() and len(pids(study)) == 4
    assert finals(study) == weights
    assert set_aside(study) == []


def test_failed_trials_are_done_again_once_a_time_and_count_once(tmp_path: Path) -> None:
    (tmp_path / "bad").touch()
    model = ["model._target_=planted_share.FailsWhile", f"+model.args.path={tmp_path / 'bad'}"]
    words, study = [CELLS, *TINY, *model, "trials=2", "study=s"], Study(tmp_path / "s")
    code, said = done(*words, folder=tmp_path)
    assert (code, said.count("planted failure")) == (1, 2), said
    kept = pids(study)
    code, said = done(*words, "retry=none", folder=tmp_path)
    assert (code, said.count("failed: "), set_aside(study)) == (1, 0, []), said
    assert "2 of 4 trials failed" in said
    assert summary(study) == {"default": (2, 0, 0), "benchmark": (0, 2, 0)}
    code, said = done(*words, folder=tmp_path)
    assert (code, said.count("failed: "), len(set_aside(study))) == (1, 2, 2), said
    assert summary(study) == {"default": (2, 0, 0), "benchmark": (0, 2, 0)}
    (tmp_path / "bad").unlink()
    code, said = done(*words, folder=tmp_path)
    assert code == 0, said
    assert pids(study).items() >= kept.items()
    assert summary(study) == {"default": (2, 0, 0), "benchmark": (2, 0, 0)}
    assert len(set_aside(study)) == 4 and len(trials(study)) == 8
    assert all("planted failure" in record_file(path).read_text() for path in set_aside(study))


def test_what_was_interrupted_is_done_again_also_with_retry_none(tmp_path: Path) -> None:
    model = ["model._target_=planted_share.WaitsWhile", f"+model.args.path={tmp_path / 'wait'}"]
    words, study = [CELLS, *TINY, *model, "retry=none", "study=s"], Study(tmp_path / "s")
    code, said = done(*words, "trials=1", folder=tmp_path)
    assert code == 0, said
    kept = pids(study)
    (tmp_path / "wait").touch()
    process = start(*words, "trials=2", folder=tmp_path)
    assert within(600, lambda: bool(at_work(study.folder)) and (at_work(study.folder)[0] / "log.txt").exists())
    process.send_signal(signal.SIGINT)
    code, said = ended(process)
    assert code == 130, said
    assert [one.reason for one in study.records() if one.failed] == ["interrupted from the keyboard"]
    (tmp_path / "wait").unlink()
    code, said = done(*words, "trials=2", folder=tmp_path)
    assert code == 0, said
    assert pids(study).items() >= kept.items() and len(pids(study)) == 4
    assert len(set_aside(study)) == 1


def test_another_question_is_refused_with_the_difference_and_changes_nothing(study: Study) -> None:
    before = contents(study.folder)
    words = [word for word in COMMAND if not word.startswith("train.steps")]
    code, said = done(*words, "train.steps=11", folder=study.folder.parent)
    assert code == 2
    assert said.count("error:") == 1 and len(said.strip().splitlines()) == 1
    assert re.search(r"asks another question: train\.steps is 10 there, 11 here", said), said
    assert contents(study.folder) == before


def test_more_trials_add_rounds_and_fewer_or_none_take_nothing_away(study: Study) -> None:
    kept, places = pids(study), {(one.number, one.position): one.cell for one in study.records()}
    words = [word for word in COMMAND if not word.startswith("trials")]
    code, said = done(*words, "trials=6", folder=study.folder.parent)
    assert code == 0, said
    assert (study.asked()["rounds"], study.asked()["looks"]) == (6, [2, 6])
    assert pids(study).items() >= kept.items() and len(pids(study)) == 12
    after = {(one.number, one.position): one.cell for one in study.records()}
    assert after.items() >= places.items()
    ids = [cell.id for cell in study.cells()]
    for number in range(6):
        expected = in_order(ids, study.asked()["id"], number)  # type: ignore[arg-type]
        assert [after[number, position] for position in range(2)] == expected
    folder = trials(study)[5]
    shutil.rmtree(folder)
    for trials_given in (["trials=3"], []):
        code, said = done(*words, *trials_given, folder=study.folder.parent)
        assert code == 0, said
        assert (study.asked()["rounds"], study.asked()["looks"]) == (6, [2, 6])
        assert len(pids(study)) == 12 and folder.exists()
        assert "2 cells x 6 rounds = 12 trials" in said


def truncated(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:200])


def no_json(path: Path) -> None:
    path.write_bytes(b"\x00\xff no json")


def another_schema(path: Path) -> None:
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 99'))


def a_nan(path: Path) -> None:
    path.write_text(re.sub(r'"first_step_ms": [0-9.e-]+', '"first_step_ms": NaN', path.read_text()))


def test_damaged_records_are_named_and_their_trials_done_again(study: Study) -> None:
    harms: list[Callable[[Path], None]] = [truncated, no_json, another_schema, a_nan]
    weights, paths = finals(study), [record_file(path) for path in trials(study)]
    for harm, path in zip(harms, paths, strict=True):
        before = path.read_bytes()
        harm(path)
        assert path.read_bytes() != before
    reported = call("runner.report", str(study.folder), folder=study.folder.parent)
    assert reported.returncode == 1
    assert all(str(path) in reported.stderr for path in paths)
    code, said = done(*COMMAND, folder=study.folder.parent)
    assert code == 0, said
    assert finals(study) == weights
    assert len(set_aside(study)) == 4 and study.found().damaged == []
    assert all(summary(study)[mode] == (2, 0, 0) for mode in ("default", "benchmark"))


def test_a_damaged_series_is_done_again_too(study: Study) -> None:
    weights, path = finals(study), series_file(trials(study)[0])
    path.write_bytes(path.read_bytes()[:100])
    code, said = done(*COMMAND, folder=study.folder.parent)
    assert code == 0, said
    assert finals(study) == weights
    assert len(set_aside(study)) == 1
    assert json.loads(study.summary_json.read_text())["damaged"] == []


@pytest.mark.parametrize("harm", ["rounds", "id", "cells", "truncated"])
def test_a_damaged_question_is_refused_in_one_line(harm: str, study: Study) -> None:
    path = study.folder / "study.json"
    if harm == "truncated":
        truncated(path)
    else:
        path.write_text(
            json.dumps({name: value for name, value in json.loads(path.read_text()).items() if name != harm})
        )
    before = contents(study.folder)
    code, said = done(*COMMAND, "retry=none", folder=study.folder.parent)
    assert code == 2, said
    assert said.count("error:") == 1 and str(study.folder) in said
    assert contents(study.folder) == before


def test_a_folder_of_others_files_is_refused_and_left_alone(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "thesis.tex").write_text("mine")
    code, said = done(*COMMAND, folder=tmp_path)
    assert code == 2 and "holds other files" in said, said
    assert os.listdir(tmp_path / "s") == ["thesis.tex"]


def multiplied(study: Study, rounds: int) -> None:
    """Give a study many rounds: copies of its first one's records, in the places that they would have."""
    path = study.folder / "study.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"rounds": rounds, "looks": [2, rounds]}))
    ids = [cell.id for cell in study.cells()]
    for number in range(2, rounds):
        order = in_order(ids, study.asked()["id"], number)  # type: ignore[arg-type]
        for position, cell in enumerate(order):
            folder = study.trial_folder(str(cell), number)
            shutil.copytree(study.trial_folder(str(cell), 0), folder)
            record = json.loads(record_file(folder).read_text())
            record |= {"number": number, "position": position}
            record["process"]["pid"] += number
            record_file(folder).write_text(json.dumps(record))


def test_1200_trials_are_counted_and_a_complete_study_of_them_is_left_as_it_is(study: Study) -> None:
    multiplied(study, 600)
    reported = call("runner.report", str(study.folder), folder=study.folder.parent)
    assert reported.returncode == 0, reported.stderr
    assert json.loads(study.summary_json.read_text())["trials"] == {"asked": 1200, "there": 1200}
    assert summary(study) == {"default": (600, 0, 0), "benchmark": (600, 0, 0)}
    before = pids(study)
    words = [word for word in COMMAND if not word.startswith("trials")]
    code, said = done(*words, "trials=600", folder=study.folder.parent)
    assert code == 0 and "1200 of them are there" in said, said
    assert pids(study) == before and set_aside(study) == []
