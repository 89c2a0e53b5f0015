"""Records: what was written is read again, and what is no record is an error."""

import json
import time
from pathlib import Path
from typing import Any, get_args

import pytest
from factory import Plant, make_cell, make_record

from runner.errors import StudyError
from runner.record import Outcome, Record


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_a_record_of_any_outcome_is_read_as_written(outcome: Outcome, tmp_path: Path) -> None:
    record = make_record(make_cell(), plant=Plant(outcomes={0: outcome}))
    record.write(tmp_path / "record.json")
    assert Record.read(tmp_path / "record.json") == record


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_only_a_finished_trial_is_complete(outcome: Outcome) -> None:
    assert make_record(make_cell(), plant=Plant(outcomes={0: outcome})).complete is (outcome == "finished")


def test_a_record_of_the_first_version_lacks_the_later_figures_alone(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    make_record(make_cell()).write(path)
    later = ("p99_ms", "steps_s", "compile_s", "first_step_read_bytes", "energy_j_per_sample")
    fields = json.loads(path.read_text())
    del fields["covariates"]
    for name in later:
        del fields["speed"][name]
    path.write_text(json.dumps(fields))
    record = Record.read(path)
    assert record.covariates == {}
    assert record.speed
    assert [getattr(record.speed, name) for name in later] == [None] * 5
    assert record.speed.steps == fields["speed"]["steps"]


def test_a_figure_that_is_no_number_comes_back_as_none(tmp_path: Path) -> None:
    make_record(make_cell(), metrics={"loss": float("nan")}).write(tmp_path / "record.json")
    assert Record.read(tmp_path / "record.json").metrics == {"loss": None}


def damaged(fields: dict[str, Any], how: str) -> dict[str, Any]:
    """A record's fields with one thing wrong."""
    if how == "other version":
        return fields | {"schema": 2}
    if how == "unknown field":
        return fields | {"colour": "red"}
    if how == "unknown figure":
        return fields | {"speed": fields["speed"] | {"colour": "red"}}
    if how == "missing figure":
        return fields | {"digests": {"initial": "0"}}
    if how == "missing digest":
        return fields | {"digests": {name: text for name, text in fields["digests"].items() if name != "steps"}}
    return {key: value for key, value in fields.items() if key != how}


MISSING = ["outcome", "digests", "speed", "metrics", "memory"]


@pytest.mark.parametrize(
    "how",
    ["other version", "unknown field", "unknown figure", "missing figure", "missing digest", *MISSING],
)
def test_what_is_no_record_of_this_version_is_an_error_that_names_the_file(how: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    make_record(make_cell()).write(path)
    path.write_text(json.dumps(damaged(json.loads(path.read_text()), how)))
    with pytest.raises(StudyError, match=str(path)):
        Record.read(path)


WRONG = {
    "number": ("1", "number holds '1', should be a valid integer"),
    "outcome": ("won", "outcome holds 'won', should be 'finished', 'failed', 'timed_out', 'diverged' or 'interrupted'"),
    "refused": (1, "refused holds 1, should be a valid boolean"),
    "reason": (7, "reason holds 7, should be a valid string"),
    "ended": ("yesterday", "Invalid isoformat string: 'yesterday'"),
    "seeds": ([], "seeds holds [], should be a valid dictionary"),
    "seeds.order": (1.5, "seeds.order holds 1.5, should be a valid integer"),
    "environment.host": (["a"], "environment.host"),
    "process.pid": ({}, "process.pid"),
    "flags.before": (None, "flags.before holds None, should be a valid dictionary"),
    "metrics.accuracy": (float("nan"), "metrics.accuracy holds nan, should be a finite number"),
    "memory.peak_resident_bytes": (True, "memory.peak_resident_bytes holds True, should be a valid integer"),
    "speed": ([], "speed holds [], should be an object"),
    "speed.steps": (True, "speed.steps holds True, should be a valid integer"),
    "speed.step_ms": ("fast", "speed.step_ms holds 'fast', should be a valid number"),
    "speed.enqueue_ms": ("", "speed.enqueue_ms holds '', should be a valid number"),
    "speed.train_s": (float("-inf"), "speed.train_s holds -inf, should be a finite number"),
    "speed.evaluate_s": (None, "speed.evaluate_s holds None, should be a valid number"),
    "speed.build_s": (10**400, f"speed.build_s holds 1{'0' * 59} ..., should be a valid number"),
    "digests.final": (None, "digests.final holds None, should be a valid string"),
    "digests.steps": ({"first": "0"}, "'first'"),
}


@pytest.mark.parametrize("field", WRONG)
def test_a_field_of_another_type_is_named_with_what_it_holds(field: str, tmp_path: Path) -> None:
    path, (value, said) = tmp_path / "record.json", WRONG[field]
    make_record(make_cell()).write(path)
    fields = json.loads(path.read_text())
    *outer, inner = field.split(".")
    (fields[outer[0]] if outer else fields)[inner] = value
    path.write_text(json.dumps(fields))
    with pytest.raises(StudyError) as caught:
        Record.read(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert said in str(caught.value)
    assert str(caught.value).endswith("; restore it or set it aside")


@pytest.mark.parametrize("step_ms", [0, 0.0, -1.5])
def test_no_step_takes_no_time(step_ms: float, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    make_record(make_cell()).write(path)
    fields = json.loads(path.read_text())
    path.write_text(json.dumps(fields | {"speed": fields["speed"] | {"step_ms": step_ms}}))
    with pytest.raises(StudyError, match=rf"speed.step_ms holds {float(step_ms)}, should be above 0"):
        Record.read(path)


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_what_json_calls_no_number_is_none_here(literal: str, tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    make_record(make_cell(), metrics={"accuracy": 0.123}).write(path)
    path.write_text(path.read_text().replace("0.123", literal))
    with pytest.raises(StudyError, match=r"metrics\.accuracy holds -?(nan|inf), should be a finite number"):
        Record.read(path)


def test_a_whole_number_is_a_number(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    make_record(make_cell(), metrics={"accuracy": 0.123}).write(path)
    path.write_text(path.read_text().replace("0.123", "1"))
    assert Record.read(path).metrics == {"accuracy": 1.0}


def test_text_that_is_no_unicode_comes_back(tmp_path: Path) -> None:
    record = make_record(make_cell(), reason="cannot open \udcff.png", environment={"host": "\udcff"})
    record.write(tmp_path / "record.json")
    assert Record.read(tmp_path / "record.json") == record


def test_thousands_of_records_are_read_in_a_second_or_so(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    make_record(make_cell()).write(path)
    Record.read(path)
    start = time.process_time()
    for _ in range(1000):
        Record.read(path)
    assert time.process_time() - start < 2  # 0.09 s where this was written
