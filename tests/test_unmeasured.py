"""Studies in which no speed was measured, or none beside another: what repeats is their answer."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from factory import GPU, Plant, make_cell, make_study

from runner.analysis.contention import PROBED
from runner.analysis.summary import summarise
from runner.cell import Cell
from runner.layout import record_file
from runner.mode import MODES
from runner.report.answer import answer_to, answers, opening, sentence
from runner.report.markdown import markdown
from runner.report.notes import notes

ALONE = "ask again without exclusive=false"
SHARED = f"every trial shared the device: {ALONE}"
BUSY, HOT = {"other_processes": 3}, {"throttle_reasons": "hw_slowdown"}
DIFFERS, EQUAL, LOSS = Plant(loss_step=3, weights_step=3), Plant(), Plant(loss_step=4)
FOUR = dict(zip(MODES.values(), (DIFFERS, DIFFERS, LOSS, EQUAL), strict=True))
PROBE = {"probe": {"name": "ops", "steps": 2, "repeat": False}}
Plants = list[tuple[Cell, Plant]]


def studied(
    folder: Path, plants: Plants, seen: Callable[[Cell, int], dict[str, Any]], exclusive: bool = False
) -> dict[str, Any]:
    """The summary of five trials a cell, after the steps of each of which this was seen of the device."""
    study = make_study(folder, plants, 5, lambda *_: GPU | {"exclusive": exclusive})
    cells = {cell.id: cell for cell, _ in plants}
    for record in study.records():
        changed = replace(record, covariates={"after": seen(cells[record.cell], record.number)})
        changed.write(record_file(study.trial_folder(record.cell, record.number)))
    return summarise(study)


def plants_of(modes: dict[str, Plant] = FOUR, **settings: Any) -> Plants:
    return [(make_cell(mode, **settings), plant) for mode, plant in modes.items()]


def busy(cell: Cell, number: int) -> dict[str, Any]:
    return BUSY


def test_what_repeats_leads_and_one_line_says_why_there_is_no_speed(tmp_path: Path) -> None:
    summary = studied(tmp_path / "study", plants_of(), busy)
    repeats = (
        "epeats bit by bit: deterministic_benchmark (T,T) (5 of 5); "
        "weights repeat, the logged loss does not: deterministic (T,F) (5 of 5); "
        "differs: default (F,F), benchmark (F,T)"
    )
    assert sentence(summary) == f"R{repeats}. Speed was not measured."
    assert opening(summary) == [f"r{repeats}", f"speed was not measured: {SHARED}"]
    assert notes(summary) == []
    text = markdown(summary)
    assert "undecided" not in text and text.count(ALONE) == 1 and "does not count" not in text
    assert "- default (F,F), trials 0, 1, 2, 3, 4: 3 other processes on the device after its steps\n" in text
    assert [answer_to(name, summary) for name in ("fastest", "balanced")] == [f"undecided: {SHARED}"] * 2
    assert answer_to("reproducible", summary) == (
        "undecided: deterministic (T,F) (weights bitwise equal, 5 of 5, the logged training loss differs), "
        "deterministic_benchmark (T,T) (bitwise, 5 of 5) repeat; "
        f"which takes least time is not known: every trial shared the device, {ALONE}"
    )


@pytest.mark.parametrize(
    ("seen", "exclusive", "why"),
    [
        (busy, True, "every trial shared the device: ask again when nothing else runs on the device"),
        (lambda cell, number: HOT, False, "every trial was throttled: ask again when the device is cool"),
        (
            lambda cell, number: BUSY if number else HOT,
            False,
            f"every trial shared the device or was throttled: {ALONE}",
        ),
    ],
)
def test_how_to_measure_depends_on_what_was_seen(
    seen: Callable[[Cell, int], dict[str, Any]], exclusive: bool, why: str, tmp_path: Path
) -> None:
    summary = studied(tmp_path / "study", plants_of(), seen, exclusive)
    assert answers(summary)[-1] == f"speed was not measured: {why}"


def test_too_few_steps_are_one_line_and_the_notes_say_how_many(tmp_path: Path) -> None:
    few = {mode: replace(plant, steady=False) for mode, plant in FOUR.items()}
    summary = studied(tmp_path / "study", plants_of(few), lambda cell, number: {})
    assert answers(summary)[1:] == [
        "speed was not measured: no trial has enough steps for a steady step time that counts: "
        "set train.steps to more, see notes"
    ]
    assert all("set train.steps to 9 or more" in note for note in notes(summary)) and len(notes(summary)) == 4


def test_settings_have_a_line_each_that_names_them_once(tmp_path: Path) -> None:
    varied = {"seeds": {"base": 0, "vary": ["order"]}}
    plants = [*plants_of({"default": DIFFERS, "deterministic": EQUAL}), *plants_of({"default": DIFFERS}, **varied)]
    summary = studied(tmp_path / "study", plants, busy)
    assert answers(summary) == [
        "seeds.vary=[]: repeats bit by bit: deterministic (T,F) (5 of 5); differs: default (F,F)",
        "seeds.vary=[]: reproducible: deterministic (T,F)",
        'seeds.vary=["order"]: differs by design: default (F,F)',
        f"speed was not measured: {SHARED}",
    ]
    assert sentence(summary) == (
        "Repeats bit by bit: deterministic (T,F) (5 of 5) in 1 setting; differs: default (F,F) in 1 setting; "
        "differs by design: default (F,F) in 1 setting. Speed was not measured."
    )
    assert answer_to("fastest", summary) == f"undecided: {SHARED}"


def test_settings_without_a_speed_are_one_line_beside_others_with_one(tmp_path: Path) -> None:
    modes = {"default": DIFFERS, "benchmark": replace(DIFFERS, ratio=0.8)}
    plants = [*plants_of(modes), *plants_of(modes, model={"name": "unet", "depth": 18})]
    summary = studied(
        tmp_path / "study", plants, lambda cell, _: BUSY if cell.config["model"]["name"] == "unet" else {}
    )
    lines = opening(summary)
    assert lines[0] == "the speed of 10 trials does not count"
    assert lines[-1] == f"model=unet: differs: default (F,F), benchmark (F,T); speed was not measured: {SHARED}"
    assert lines[1].startswith("model=resnet: fastest: benchmark (F,T) (least time: ")
    assert "model=" not in lines[1].removeprefix("model=resnet")
    assert [line for line in lines if line.startswith("model=unet")] == lines[-1:]
    assert len([note for note in notes(summary) if note.endswith("no trial's speed counts, see below")]) == 2


def test_each_of_several_reasons_stands_with_its_settings(tmp_path: Path) -> None:
    plants = [*plants_of({"default": DIFFERS}), *plants_of({"default": DIFFERS}, **PROBE)]
    said = answers(studied(tmp_path / "study", plants, busy))
    assert [line.partition("; ")[2] for line in said] == [
        f"speed was not measured: {why}" for why in (SHARED, f"{PROBED}: ask again with probe=none")
    ]


def test_one_mode_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    summary = studied(tmp_path / "study", plants_of({"deterministic": EQUAL}), lambda cell, number: {})
    assert sentence(summary) == "Repeats bit by bit: deterministic (T,F) (5 of 5). Speed was not compared."
    first, second, third = answers(summary)
    assert (first, third) == (
        "repeats bit by bit: deterministic (T,F) (5 of 5)",
        "speed was not compared: needs a second mode to compare with",
    )
    assert second.startswith("reproducible: deterministic (T,F) (bitwise, 5 of 5; the only mode here that repeats: ")


def test_a_reason_against_all_settings_is_said_once(tmp_path: Path) -> None:
    failed = Plant(outcomes=dict.fromkeys(range(5), "failed"))
    plants = [(make_cell(model={"name": name}), failed) for name in ("lstm", "unet")]
    assert answers(studied(tmp_path / "study", plants, busy)) == ["no ranking: needs finished trials: there are none"]
