"""Training again in one process: from the same state, and apart from what differs between processes."""

from dataclasses import replace
from pathlib import Path

import pytest
from composed import planted_cell
from factory import Plant, make_cell, make_record
from one_trial import one_trial
from summaries import make_summary

from runner.analysis.divergence import divergence
from runner.cell import Cell
from runner.record import Record
from runner.report.words import bound_words, verdict_words


def repeating(target: str, *words: str, times: int = 3, module: str = "strict_models", **args: object) -> Cell:
    """The cell of a planted model that trains so often in its process."""
    cell = planted_cell("Plain", f"repeat_in_process={times}", *words)
    model = cell.config["model"] | {"_target_": f"{module}.{target}", "args": args}
    return Cell(cell.config | {"model": model})


def done(cell: Cell, folder: Path, number: int = 0) -> Record:
    record, trial_folder = one_trial(cell, folder, number)
    assert record.outcome == "finished", (trial_folder / "log.txt").read_text()
    return record


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["train.optimizer=sgd", "train.schedule=cosine", "train.evaluate_every=2"],
        pytest.param(["train.compile=default"], marks=pytest.mark.slow),
        ["dataset.workers=1", "dataset.resident=false"],
    ],
)
def test_everything_begins_anew(words: list[str], tmp_path: Path) -> None:
    """Weights, moments of the optimizer, order of data, dropout and running statistics: all digests are the same."""
    record = done(repeating("Drops", *words), tmp_path)
    assert record.again == [record.digests, record.digests]


def test_usual_trials_train_once(tmp_path: Path) -> None:
    assert done(repeating("Drops", times=1), tmp_path).again == []


def test_what_a_model_keeps_in_globals_is_found_within_a_process(tmp_path: Path) -> None:
    record = done(repeating("Remembers", free=6), tmp_path)  # the first training has six steps
    assert record.digests
    first, second = record.again
    assert {record.digests.initial, first.initial, second.initial} == {record.digests.initial}
    assert len({record.digests.final, first.final, second.final}) == 3
    found = divergence([record, replace(record, number=1)], [])
    assert (found.verdict, found.within_process, found.repeats, found.within_differing) == ("bitwise", "differs", 3, 2)


def test_what_each_process_settles_for_itself_differs_between_processes_alone(tmp_path: Path) -> None:
    cell = repeating("Settles", times=2)
    records = [done(cell, tmp_path / str(number)) for number in range(2)]
    found = divergence(records, [])
    assert (found.verdict, found.within_process, found.within_differing) == ("differs", "bitwise", 0)


def planted(n: int = 3, parted: dict[int, str] | None = None, plant: Plant | None = None) -> list[Record]:
    """Records of two trainings a process; in those of `parted` the second has another digest of this name."""
    records = []
    for number in range(n):
        record = make_record(make_cell(), number, plant)
        assert record.digests
        name = (parted or {}).get(number)
        again = replace(record.digests, **{name: f"{number:032x}"}) if name else record.digests
        records.append(replace(record, again=[again]))
    return records


@pytest.mark.parametrize(
    ("parted", "verdict", "differing"),
    [
        ({}, "bitwise", 0),
        ({1: "final"}, "differs", 1),
        ({0: "losses", 2: "losses"}, "loss-only", 2),
        ({0: "predictions"}, "metric-only", 1),
        ({0: "metrics", 1: "losses", 2: "final"}, "differs", 3),
    ],
)
def test_the_worst_process_gives_the_verdict_within(parted: dict[int, str], verdict: str, differing: int) -> None:
    found = divergence(planted(parted=parted), [])
    assert (found.within_process, found.within_differing, found.repeats) == (verdict, differing, 2)
    assert found.verdict == "bitwise"


def test_older_records_and_single_trainings_have_no_verdict_within() -> None:
    found = divergence([make_record(make_cell(), number) for number in range(3)], [])
    assert (found.within_process, found.repeats) == (None, 1)


def words_of(mode: str, **found: object) -> tuple[str, str]:
    """The table's words and the report's sentence of a cell of five trials with this in its reproducibility."""
    (cell,) = make_summary((mode, {}))["cells"]
    cell["reproducibility"] = cell["reproducibility"] | {"repeats": 2} | found
    return verdict_words(cell), bound_words(cell).split("; 5 processes")[0]


DIFFERS = {"verdict": "differs", "unique_weights": 5, "bound_95": None}


def test_both_verdicts_are_said_in_one_sentence() -> None:
    within = {"within_process": "bitwise"}
    table, sentence = words_of("deterministic_benchmark", **DIFFERS, **within)
    assert table == "weights differ, 5 different of 5; bitwise within each process, 5 of 5"
    assert sentence == (
        "bitwise within each process, 5 of 5, differs between processes: another algorithm is chosen in each"
    )
    _, sentence = words_of("deterministic", **DIFFERS, **within)
    assert sentence.endswith("differs between processes: something is settled anew in each")
    assert "other data" in words_of("benchmark", **DIFFERS, **within, first_data_step=3)[1]
    assert "other weights" in words_of("benchmark", **DIFFERS, **within, same_start=False)[1]
    assert "by their seeds" in words_of("benchmark", **DIFFERS, **within, seeds_varied=["init"])[1]
    assert words_of("default", **within)[1] == "bitwise within each process, 5 of 5, and across processes"


def test_a_difference_within_a_process_is_told_with_its_count() -> None:
    table, sentence = words_of("default", **DIFFERS, within_process="differs", within_differing=3)
    assert table == "weights differ, 5 different of 5; weights differ within a process in 3 of 5"
    assert sentence == f"{table.split('; ')[1]}: the same process gives other results when it trains again"
    table, _ = words_of("default", within_process="loss-only", within_differing=1)
    assert table == "bitwise, 5 of 5; the logged training loss differs within a process in 1 of 5, weights do not"


def test_without_repetition_nothing_is_added() -> None:
    table, sentence = words_of("default", repeats=1)
    assert table == "bitwise, 5 of 5"
    assert sentence.startswith("5 processes from 1 interpreter; ")
