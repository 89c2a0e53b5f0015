"""Published figures beside planted ones: the verdicts, and the words in which a report says them."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from factory import CPU, Plant, four_modes, make_cell, make_study
from recipes import make_replication, make_row

from runner.analysis.recipe import beside, replication_of
from runner.analysis.summary import summarise
from runner.errors import StudyError
from runner.jsonfile import write_json
from runner.recipe import Published, Replication
from runner.report import write_report
from runner.report.recipe import cell_words, measured_words, published_words, verdict_lines, verdict_words
from runner.study import Study

# Planted by four_modes: deterministic 1.2 times the default, benchmark 0.8 times and tuning 2 s, verdicts known.
TUNING = {"quantity": "autotune", "cell": {"cudnn": "benchmark"}, "over": {}, "unit": "s"}
VERDICT = {"quantity": "verdict", "over": {}, "unit": "words"}
FASTEST = {"quantity": "fastest", "cell": {}, "over": {}, "unit": "mode"}


def planted(folder: Path, replication: Replication, **changes: Any) -> Study:
    """The usual study as that of a recipe."""
    study = four_modes(folder / "study", **changes)
    write_json(study.folder / "study.json", study.asked() | {"recipe": asdict(replication)})
    return study


def judged(folder: Path, *rows: Published, study: dict[str, Any] | None = None, **changes: Any) -> list[dict[str, Any]]:
    """The rows of the summary of such a study."""
    found = summarise(planted(folder, make_replication(*rows, **changes), **(study or {})))["recipe"]
    return list(found["rows"])


def test_a_figure_agrees_if_what_it_may_be_meets_the_interval(tmp_path: Path) -> None:
    rows = [
        make_row(value=1.2),
        make_row(value=1.3),
        make_row(value=1.3, uncertainty=0.1),
        make_row(value=[1.15, 1.3]),
        make_row(value=[1.3, 1.5]),
        make_row(quantity="step_time_overhead", value=[15, 25], unit="%"),
        make_row(**TUNING | {"value": 2.0}),
        make_row(**TUNING | {"value": 0.0, "uncertainty": 0.05}),
    ]
    verdicts = [row["verdict"] for row in judged(tmp_path, *rows)]
    assert verdicts == ["agrees", "differs", "agrees", "agrees", "differs", "agrees", "agrees", "differs"]


def test_an_interval_that_holds_no_effect_too_does_not_agree_with_an_effect(tmp_path: Path) -> None:
    rows = [
        make_row(value=1.2),
        make_row(quantity="step_time_overhead", value=[15, 25], unit="%"),
        make_row(value=1.0),
        make_row(value=99.0),
    ]
    plants = [(make_cell("default"), Plant(noise=0.2)), (make_cell("deterministic"), Plant(noise=0.2, ratio=1.2))]
    study = make_study(tmp_path / "study", plants, rounds=3)
    write_json(study.folder / "study.json", study.asked() | {"recipe": asdict(make_replication(*rows))})
    found = summarise(study)["recipe"]["rows"]
    assert [row["verdict"] for row in found] == ["not comparable", "not comparable", "agrees", "differs"]
    assert "it takes more trials to tell" in verdict_words(found[0])


def test_words_agree_if_they_are_the_same(tmp_path: Path) -> None:
    rows = [
        make_row(**VERDICT | {"value": "bitwise"}),
        make_row(**VERDICT | {"value": "bitwise", "cell": {"cudnn": "default"}}),
        make_row(**FASTEST | {"value": "benchmark"}),
        make_row(**FASTEST | {"value": "deterministic"}),
    ]
    assert [row["verdict"] for row in judged(tmp_path, *rows)] == ["agrees", "differs", "agrees", "differs"]


def test_what_was_not_read_is_no_target_whatever_is_measured(tmp_path: Path) -> None:
    (row,) = judged(tmp_path, make_row(value=None, read=False))
    assert (row["verdict"], row["value"]) == ("no target", None)
    assert row["measured"] == pytest.approx(1.2, abs=0.02)


@pytest.mark.parametrize(
    ("row", "changes", "why"),
    [
        ({}, {"size": "reduced"}, "recipe_size=reduced is another protocol"),
        ({}, {"changed": ["train.epochs=3 (recipe: 100)"]}, "no longer the published protocol: train.epochs=3"),
        ({"cell": {"cudnn": "fast"}}, {}, "the study has no such cell"),
        ({}, {"study": {"rounds": 2}}, "it takes 3 trials, here are 2"),
        ({}, {"study": {"environment": lambda cell, number: CPU}}, "no CUDA in use"),
        ({"quantity": "accuracy_sd", "over": {}, "unit": "%"}, {}, "it takes 10 trials, here are 5"),
        ({"quantity": "pearson_correlation", "over": {}, "unit": "1"}, {}, "train.keep_logits=true"),
    ],
)
def test_what_cannot_be_compared_says_why(
    row: dict[str, Any], changes: dict[str, Any], why: str, tmp_path: Path
) -> None:
    (found,) = judged(tmp_path, make_row(**row), **changes)
    assert found["verdict"] == "not comparable"
    assert why in found["why"]
    assert why in verdict_words(found)


def test_all_reasons_are_told_and_none_where_nobody_read_the_figure(tmp_path: Path) -> None:
    changes: dict[str, Any] = {
        "size": "reduced",
        "changed": ["dataset=image_folder with 30,000 images (recipe: cifar10)"],
    }
    sd = {"quantity": "accuracy_sd", "over": {}, "unit": "%"}
    own, unread = judged(tmp_path, make_row(**sd), make_row(**sd | {"value": None, "read": False}), **changes)
    assert own["why"] == (
        "no longer the published protocol: dataset=image_folder with 30,000 images (recipe: cifar10); "
        "recipe_size=reduced is another protocol than that of this figure (full); it takes 10 trials, here are 5"
    )
    assert (unread["verdict"], unread["why"]) == ("no target", "not read: no figure")


def test_a_reduced_size_is_the_protocol_of_the_figures_that_say_so(tmp_path: Path) -> None:
    (row,) = judged(tmp_path, make_row(sizes=["full", "reduced"]), size="reduced")
    assert row["verdict"] == "agrees"


def test_fewer_trials_are_told_and_stay_comparable() -> None:
    found = beside(make_replication(trials=10), [], 5)
    assert found is not None and found["fewer_trials"] == "trials=5 (recipe: 10)"
    more = beside(make_replication(trials=5), [], 10)
    assert more is not None and more["fewer_trials"] is None


def test_a_study_without_a_recipe_has_no_section(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study")
    assert write_report(study)["recipe"] is None
    assert "Published beside measured" not in study.report_markdown.read_text()


def test_the_report_stands_on_the_study_folder_alone_and_says_it_all(tmp_path: Path) -> None:
    replication = make_replication(make_row(value=1.5), changed=["train.epochs=3 (recipe: 100)"], trials=9)
    study = planted(tmp_path, replication)
    write_report(study)
    first = study.report_markdown.read_bytes()
    write_report(Study.open(study.folder))
    assert study.report_markdown.read_bytes() == first
    section = first.decode().partition("## Published beside measured")[2].partition("\n## ")[0]
    for words in (
        *("no longer the published protocol: train.epochs=3 (recipe: 100)", "trials=5 (recipe: 9)"),
        *("Planted et al. 2020", "a GPU of 2020", "NVIDIA H200", "recipe=planted recipe_size=full"),
        *("cudnn=deterministic over cudnn=default", "it is slower: 1.5 (table 1)"),
    ):
        assert words in section


def test_a_damaged_recipe_is_named(tmp_path: Path) -> None:
    study = planted(tmp_path, make_replication(make_row()))
    asked = study.asked()
    asked["recipe"]["recipe"]["published"][0]["read"] = "yes"
    write_json(study.folder / "study.json", asked)
    with pytest.raises(StudyError, match=r"published\.0\.read holds 'yes'.*restore study\.json"):
        replication_of(study)


def words(**changes: Any) -> dict[str, Any]:
    """A row as summary.json has it."""
    seen = {"measured": 1.2345, "ci95": [1.21, 1.26], "measured_trials": 5, "verdict": "agrees", "why": None}
    return asdict(make_row()) | seen | changes


@pytest.mark.parametrize(
    ("changes", "published", "measured"),
    [
        ({}, "1.2", "1.234 [1.210, 1.260], 5 trials"),
        ({"value": [15, 20], "unit": "%", "measured": 31.7}, "15 to 20 %", "31.7 % [1.21, 1.26], 5 trials"),
        ({"value": 0.22, "uncertainty": 0.02, "unit": "%", "trials": 100}, "0.22 \u00b1 0.02 %, 100 trials", None),
        ({"value": None, "read": False}, "not read, so no figure", None),
        ({"value": "bitwise", "measured": "differs", "ci95": None}, "bitwise", "differs, 5 trials"),
        ({"measured": None, "ci95": None}, "1.2", "\u2013"),
        ({"trials": 1, "measured_trials": 1, "ci95": None}, "1.2, 1 trial", "1.234, 1 trial"),
    ],
)
def test_figures_in_words(changes: dict[str, Any], published: str, measured: str | None) -> None:
    row = words(**changes)
    assert published_words(row) == published
    assert measured is None or measured_words(row) == measured


def test_cells_in_words() -> None:
    assert cell_words(words()) == "cudnn=deterministic over cudnn=default"
    assert cell_words(words(over={})) == "cudnn=deterministic"
    assert cell_words(words(cell={}, over={})) == "all"
    typed = {"determinism.algorithms": False, "determinism.workspace": None, "train.poke_step": 1}
    assert cell_words(words(cell=typed, over={})) == (
        "determinism.algorithms=false determinism.workspace=null train.poke_step=1"
    )


def test_the_terminal_has_a_short_line_for_each_figure() -> None:
    rows = [words(verdict="differs"), words(verdict="not comparable", why="a long story", measured=None, ci95=None)]
    first, second = verdict_lines({"recipe": {"rows": rows}})
    where = "step time ratio, cudnn=deterministic over cudnn=default: "
    assert first == f"{where}1.234 [1.210, 1.260], 5 trials here, 1.2 published: differs"
    assert second == f"{where}1.2 published: not comparable"
    assert verdict_lines({}) == []


def test_of_very_many_figures_the_terminal_has_those_that_were_compared() -> None:
    many = [words(verdict="not comparable", why="size")] * 30
    lines = verdict_lines({"recipe": {"rows": [words(verdict="differs"), *many]}})
    assert len(lines) == 2 and lines[0].endswith("differs") and lines[1].startswith("30 published figures could not")
    assert len(verdict_lines({"recipe": {"rows": many[:16]}})) == 16


def test_a_measured_sd_has_its_bootstrap_error_beside_it() -> None:
    row = words(quantity="accuracy_sd", unit="%", measured=0.2512, ci95=[0.17, 0.46], bootstrap_se=0.0412)
    assert measured_words(row) == "0.251 \u00b1 0.0412 % [0.170, 0.460], 5 trials"
