"""What people see on MLflow's pages before they click: names, headline figures, notes, data."""

import re
from pathlib import Path
from typing import Any

import pytest
from factory import Plant, four_modes, make_cell, make_study
from tracked import find, upload

from runner.analysis.summary import summarise
from runner.study import Study
from runner.tracking.question import question
from runner.tracking.store import experiment_name

ROUNDS = 2


@pytest.fixture
def four(tmp_path: Path) -> Study:
    return four_modes(tmp_path / "four", ROUNDS)


def test_the_row_of_the_study_has_the_headline_figures(uri: str, tmp_path: Path) -> None:
    plants = [(make_cell("default"), Plant()), (make_cell("benchmark"), Plant(ratio=0.8, weights_step=4))]
    study = make_study(tmp_path / "study", plants, rounds=5)
    client, cells = upload(uri, study).client, summarise(study)["cells"]
    (run,) = find(client, "tags.level = 'study'")
    shown, ratio = run.data.metrics, cells[1]["speed"]["ratio_to_baseline"]["value"]
    assert shown["_fastest_ratio_to_default"] == shown["_lowest_ratio_to_default"] == ratio
    assert shown["_fastest_step_ms"] == cells[1]["speed"]["step_ms"]["mean"]
    assert shown["_reproducible_step_ms"] == cells[0]["speed"]["step_ms"]["mean"]
    assert (shown["_cells"], shown["_cells_bitwise"], shown["_trials_finished"]) == (2, 1, 10)


def test_what_differs_between_cells_stands_first_among_their_params(uri: str, four: Study) -> None:
    for run in find(upload(uri, four).client, "tags.level = 'cell'"):
        pair = "T" if run.data.tags["mode"].startswith("deterministic") else "F"
        first, second = sorted(run.data.params)[:2]
        assert (first, run.data.params[first][:-3].endswith(f"({pair}")) == ("_mode", True)
        assert (second, run.data.params[second]) == (f"_verdict_of_{ROUNDS}_trials", run.data.tags["verdict"])


def test_pages_link_to_the_report_and_list_the_data(uri: str, four: Study) -> None:
    client = upload(uri, four).client
    (top,) = find(client, "tags.level = 'study'")
    link = f"(#/experiments/{top.info.experiment_id}/runs/{top.info.run_id}/artifacts)"
    data = {record.digests.data for record in four.records() if record.digests}
    runs = find(client, "tags.study != ''")
    assert len(runs) == 13
    for run in runs:
        if run.data.tags["level"] != "trial":
            assert link in run.data.tags["mlflow.note.content"]
        (seen,) = run.inputs.dataset_inputs
        assert (seen.dataset.name, {seen.dataset.digest}) == ("digits", data)
        assert seen.tags[0].value == "training"


def test_the_name_of_a_study_grows_with_it(uri: str, tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", [(make_cell(), Plant())], 1)
    upload(uri, study)
    Study.ask(study.folder, {"rounds": 2}, study.cells())
    (run,) = find(upload(uri, study).client, "tags.level = 'study'")
    assert run.info.run_name == "default (F,F), 2 rounds: resnet on digits"


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ([{}], "default (F,F), 3 rounds: resnet on digits"),
        (
            [{"precision": "fp32"}, {"precision": "bf16"}],
            "default (F,F), 3 rounds, precision fp32 and bf16: resnet on digits",
        ),
        ([{"note": str(i)} for i in range(9)], "default (F,F), 3 rounds, note 9 values: resnet on digits"),
        ([{"model": {"name": "unet"}}, {}], "default (F,F), 3 rounds: unet and resnet on digits"),
        ([{"note": "x" * 500}, {}], f"default (F,F), 3 rounds, note {'x' * 160} ... (cut)"),
    ],
)
def test_the_name_of_a_study_says_its_question(settings: list[dict[str, Any]], name: str) -> None:
    asked = question([make_cell(**one) for one in settings], 3)
    assert asked == name and len(asked) < 250


def test_a_slash_stands_only_in_a_name_that_was_given(uri: str) -> None:
    """MLflow's pages make folders of it."""
    cell = make_cell(dataset={"name": "a/b"})
    assert "/" not in experiment_name(cell) and experiment_name(cell) != experiment_name(
        make_cell(dataset={"name": "a_b"})
    )
    assert experiment_name(cell, "team/flags") == "team/flags"


def test_the_search_strings_of_the_documentation_find_what_they_say(uri: str, four: Study) -> None:
    client, page = upload(uri, four).client, (Path(__file__).parents[1] / "docs" / "mlflow.md").read_text()
    strings = re.findall(r"\| `{1,2}((?:tags|params)\..*?)`{1,2} \|", page)
    assert len(strings) == 8
    examples = {"ID": four.asked()["id"], "CELL": four.cells()[0].id, '"3"': '"1"'}
    examples |= {"train.batch_size": "model.depth", '"64"': '"18"'}
    for example, value in examples.items():
        strings = [one.replace(example, value) for one in strings]
    assert [len(find(client, one)) for one in strings] == [13, 4, 1, ROUNDS, 0, 0, 2, 4 + 4 * ROUNDS]
