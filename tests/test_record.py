"""Records: what was written is read again, and what is no record is an error."""

import json
import time
from dataclasses import asdict, replace
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
    for name in ("covariates", "again", "not_deterministic"):
        del fields[name]
    for name in later:
        del fields["speed"][name]
    path.write_text(json.dumps(fields))
    record = Record.read(path)
    assert (record.covariates, record.again, record.not_deterministic) == ({}, [], [])
    assert record.speed
    assert [getattr(record.speed, name) for name in later] == [None] * 5
    assert record.speed.steps == fields["speed"]["steps"]


def test_further_trainings_are_read_as_written(tmp_path: Path) -> None:
    digests = make_record(make_cell()).digests
    assert digests
    record = make_record(make_cell(), again=[digests, replace(digests, final="0" * 32)], not_deterministic=["put_"])
    record.write(tmp_path / "record.json")
    assert Record.read(tmp_path / "record.json") == record


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
    "again": ({}, "again holds {}, should be a valid list"),
    "not_deterministic": ([1], "not_deterministic.0 holds 1, should be a valid string"),
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


def read_with(path: Path, field: str, value: Any) -> Record:
    """A record whose figure with this dotted name is replaced, or added, read from the file."""
    make_record(make_cell(), covariates={"before": {}, "after": {}}).write(path)
    fields = json.loads(path.read_text())
    *outer, inner = field.split(".")
    part = fields
    for name in outer:
        part = part[name]
    part[inner] = value
    path.write_text(json.dumps(fields))
    return Record.read(path)


HUGE = f"1{'0' * 59} ..."
IMPOSSIBLE = [
    ("speed.step_ms", 0, "0.0, should be at least 1e-06"),
    ("speed.step_ms", 9.9e-7, "9.9e-07, should be at least 1e-06"),
    ("speed.step_ms", -1.5, "-1.5, should be at least 0"),
    ("speed.train_s", -0.1, "-0.1, should be at least 0"),
    ("speed.p99_ms", -1e-9, "-1e-09, should be at least 0"),
    ("speed.steps", -1, "-1, should be at least 0"),
    ("speed.first_step_read_bytes", -1, "-1, should be at least 0"),
    ("speed.energy_j_per_sample", 1e15, "1000000000000000.0, should be below 1e+15 in size"),
    ("speed.steps", 10**15, "1000000000000000, should be below 1e+15 in size"),
    ("speed.first_step_ms", 1e308, "1e+308, should be below 1e+15 in size"),
    ("speed.first_step_read_bytes", 10**400, f"{HUGE}, should be below 1e+15 in size"),
    ("memory.peak_resident_bytes", -1, "-1, should be at least 0"),
    ("memory.peak_resident_bytes", 10**400, f"{HUGE}, should be below 1e+18 in size"),
    ("covariates.before.power_w", 1e18, "1e+18, should be below 1e+18 in size"),
    ("covariates.after.energy_mj", -(10**18), "-1000000000000000000, should be below 1e+18 in size"),
    ("covariates.after.energy_mj", 10**400, f"{HUGE}, should be below 1e+18 in size"),
    ("process.pid", 10**400, f"{HUGE}, should be below 1.79769e+308 in size"),
    ("environment.gpu_memory_bytes", 10**400, f"{HUGE}, should be below 1.79769e+308 in size"),
    ("flags.before", {"threads": -(10**400)}, None),
    ("seeds.init", 10**400, f"{HUGE}, should be below 1.79769e+308 in size"),
    ("position", 10**400, f"{HUGE}, should be below 1.79769e+308 in size"),
]


@pytest.mark.parametrize(("field", "value", "said"), IMPOSSIBLE)
def test_a_figure_that_cannot_be_is_named_with_what_it_holds(
    field: str, value: Any, said: str | None, tmp_path: Path
) -> None:
    path = tmp_path / "record.json"
    with pytest.raises(StudyError) as caught:
        read_with(path, field, value)
    assert str(caught.value).startswith(f"{path}: {field}")
    assert said is None or f"{path}: {field} holds {said}; " in str(caught.value)


def test_every_new_shape_takes_a_time(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"speed\.new_shapes_ms\.1 holds -0\.5, should be at least 0"):
        read_with(tmp_path / "record.json", "speed.new_shapes_ms", [2.0, -0.5])


POSSIBLE = [
    ("speed.step_ms", 1e-6),
    ("speed.step_ms", None),
    ("speed.wait_ms", 0.0),
    ("speed.steps_s", 9.9e14),
    ("memory.peak_resident_bytes", 0),
    ("covariates.before.temperature_c", -5),
    ("covariates.before.energy_mj", 10**17),
    ("covariates.before.throttle_reasons", ""),
    ("metrics.loss", 1e300),
    ("seeds.init", 2**64 - 1),
    ("environment.deterministic", True),
]


@pytest.mark.parametrize(("field", "value"), POSSIBLE)
def test_a_figure_at_its_bounds_is_read(field: str, value: Any, tmp_path: Path) -> None:
    found: Any = asdict(read_with(tmp_path / "record.json", field, value))
    for name in field.split("."):
        found = found[name]
    assert found == value


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
