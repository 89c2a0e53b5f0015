"""Damaged studies: what is broken is named and set aside, everything else is shown, and nothing ends in a traceback."""

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from factory import Plant, four_modes, make_cell, make_record, make_study

from runner.analysis.summary import summarise
from runner.errors import StudyError
from runner.layout import record_file, series_file
from runner.report import write_report
from runner.study import Study


def trial(study: Study, cell: int = 0, number: int = 0) -> Path:
    return study.trial_folder(study.cells()[cell].id, number)


def change(path: Path, **fields: Any) -> Path:
    """Overwrite fields of a JSON file."""
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))
    return path


def half_a_record(study: Study) -> Path:
    path = record_file(trial(study))
    path.write_bytes(path.read_bytes()[:300])
    return path


def a_record_with_a_word_for_a_number(study: Study) -> Path:
    return change(record_file(trial(study)), metrics={"accuracy": "good"})


def a_series_cut_short(study: Study) -> Path:
    path = series_file(trial(study))
    path.write_bytes(path.read_bytes()[:1000])
    return path


def a_record_of_another_trial(study: Study) -> Path:
    path = record_file(trial(study))
    shutil.copy(record_file(trial(study, number=1)), path)
    return path


def an_empty_file(study: Study) -> Path:
    path = record_file(trial(study))
    path.write_bytes(b"")
    return path


HARM = [half_a_record, a_record_with_a_word_for_a_number, a_series_cut_short, a_record_of_another_trial, an_empty_file]


@pytest.mark.parametrize("harm", HARM)
def test_a_damaged_trial_is_named_and_left_out_and_all_others_are_there(
    harm: Callable[[Study], Path], tmp_path: Path
) -> None:
    study = four_modes(tmp_path / "study")
    whole = summarise(study)
    path = harm(study)
    summary = write_report(study)
    (message,) = summary["damaged"]
    assert str(path) in message and "; " in message
    assert summary["trials"] == {"asked": 20, "there": 19}
    assert summary["partial"] is True
    assert [(cell["n"], cell["missing"]) for cell in summary["cells"]] == [(4, 1), (5, 0), (5, 0), (5, 0)]
    assert [cell["reproducibility"] for cell in summary["cells"][1:]] == [
        cell["reproducibility"] for cell in whole["cells"][1:]
    ]
    assert summary["cells"][1]["speed"]["ratio_to_baseline"]["pairs"] == 4
    text = study.report_markdown.read_text()
    partial = "- partial: 19 of 20 trials are there, so the verdicts are provisional"
    assert f"\n{partial}\n- 1 damaged record was set aside\n" in text
    assert f"\n## Records set aside\n\n- {path}" in text
    assert "| 4, 1 missing |" in text


def test_an_environment_known_from_damaged_trials_alone_is_none(tmp_path: Path) -> None:
    def moved(cell: Any, number: int) -> dict[str, Any]:
        return {"device": "cuda", "driver": "580" if number else "590"}

    study = make_study(tmp_path / "study", [(make_cell(), Plant())], environment=moved)
    series_file(trial(study)).write_bytes(b"PK")
    (cell,) = summarise(study)["cells"]
    assert (cell["label"], cell["n"], cell["missing"]) == ("default (F,F)", 4, 1)


def test_what_is_missing_is_counted_once_with_the_first_environment(tmp_path: Path) -> None:
    def moved(cell: Any, number: int) -> dict[str, Any]:
        return {"device": "cuda", "driver": "580" if number < 3 else "590"}

    study = make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=7, environment=moved)
    shutil.rmtree(trial(study, number=6))
    record_file(trial(study, number=5)).unlink()
    summary = write_report(study)
    assert [(cell["n"], cell["missing"]) for cell in summary["cells"]] == [(3, 2), (2, 0)]
    assert (summary["trials"], summary["damaged"]) == ({"asked": 7, "there": 5}, [])
    assert "- partial: 5 of 7 trials are there, so the verdicts are provisional\n" in study.report_markdown.read_text()


def test_a_whole_study_says_nothing_of_it(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=2)
    summary = write_report(study)
    assert (summary["trials"], summary["partial"], summary["damaged"]) == ({"asked": 8, "there": 8}, False, [])
    assert not {"partial", "missing", "set aside"} & set(study.report_markdown.read_text().split())


def test_a_study_that_does_not_say_how_many_rounds_it_has_is_not_partial(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=2)
    path = study.folder / "study.json"
    path.write_text(json.dumps({key: value for key, value in json.loads(path.read_text()).items() if key != "rounds"}))
    shutil.rmtree(trial(study))
    summary = write_report(study)
    assert (summary["trials"], summary["partial"]) == ({"asked": None, "there": 7}, False)
    assert {cell["missing"] for cell in summary["cells"]} == {0}


def test_a_record_of_a_cell_that_the_study_does_not_have_is_set_aside(tmp_path: Path) -> None:
    study, stranger = four_modes(tmp_path / "study", rounds=2), make_cell(precision="bf16")
    folder = study.trial_folder(stranger.id, 0)
    folder.mkdir(parents=True)
    make_record(stranger).write(record_file(folder))
    summary = summarise(study)
    (message,) = summary["damaged"]
    assert message.startswith(f"{record_file(folder)}: the study has no cell {stranger.id}")
    assert (summary["trials"], summary["partial"]) == ({"asked": 8, "there": 8}, False)


ASKED_WRONG = [
    ("cells", {"cells": 5}),
    ("cells.1", {"cells": ["a", 7]}),
    ("rounds", {"rounds": "many"}),
    ("rounds", {"rounds": True}),
    ("id", {"id": None}),
]


@pytest.mark.parametrize(("field", "wrong"), ASKED_WRONG)
def test_a_damaged_question_is_an_error_that_names_the_field(field: str, wrong: dict[str, Any], tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=1)
    change(study.folder / "study.json", **wrong)
    with pytest.raises(StudyError, match=rf"{study.folder}.* {field} holds"):
        summarise(study)


@pytest.mark.parametrize("config", [None, 5, {}, {"cudnn": {}}, make_cell(precision="tf32").config])
def test_changed_settings_of_a_cell_are_an_error_that_names_it(config: Any, tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=1)
    cell = study.cells()[2].id
    change(study.folder / "cells" / cell / "cell.json", config=config)
    with pytest.raises(StudyError, match=f"the settings of cell {cell} were changed; restore its cell.json"):
        summarise(study)


def command(study: Path, **variables: str) -> "subprocess.CompletedProcess[str]":
    line = [sys.executable, "-m", "runner.report", str(study)]
    return subprocess.run(line, env=os.environ | variables, capture_output=True, text=True, check=False)


def test_the_command_shows_the_rest_names_each_damage_and_ends_with_1(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=3)
    paths = [record_file(trial(study)), series_file(trial(study, 2, 1)), record_file(trial(study, 3, 2))]
    for path in paths:
        path.write_bytes(path.read_bytes()[:50])
    done = command(study.folder)
    assert done.returncode == 1
    assert sorted(line.partition(": ")[0] for line in done.stderr.splitlines()) == sorted(map(str, paths))
    assert "partial: 9 of 12 trials are there" in done.stdout
    assert "3 damaged records were set aside" in done.stdout
    assert "deterministic (T,F)" in done.stdout and "2, 1 missing" in done.stdout
    assert all(f"\n- {path}: " in study.report_markdown.read_text() for path in paths)
    assert len(study.summary_csv.read_text().splitlines()) == 5


def test_the_command_says_in_one_line_that_there_is_no_study_or_that_its_question_is_damaged(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study", rounds=1)
    (study.folder / "cells" / study.cells()[0].id / "cell.json").write_text("{")
    for folder, named in ((tmp_path / "none", "none"), (study.folder, "cell.json")):
        done = command(folder)
        assert (done.returncode, done.stdout) == (2, "")
        assert named in done.stderr and len(done.stderr.splitlines()) == 1


LEAVES = [None, True, -1, 0, 0.0, -1e300, 1e300, 5e-324, 2**70, "", "word", "9", [], {}, [[]], float("nan")]


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container within a value with each of its keys."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


@pytest.mark.parametrize("seed", range(3))
def test_whatever_stands_in_a_record_the_report_is_written(seed: int, tmp_path: Path) -> None:
    dice, study = random.Random(seed), four_modes(tmp_path / "study", rounds=2)
    path = record_file(trial(study, dice.randrange(4), dice.randrange(2)))
    content = path.read_text()
    for _ in range(20):
        fields = json.loads(content)
        holder, key = dice.choice(list(places(fields)))
        if isinstance(holder, dict) and dice.random() < 0.1:
            holder[f"{key}s"] = holder.pop(key)
        else:
            holder[key] = dice.choice(LEAVES)
        path.write_text(json.dumps(fields))
        summary = write_report(study)
        assert summary["trials"]["there"] + len(summary["damaged"]) == 8, (key, fields)
