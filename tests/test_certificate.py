"""A certificate's file: what is read is what was written, and whatever else is refused in one line."""

import json
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from compared import steady
from factory import make_cell
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.analysis.certify import certificate_of
from runner.certificate import Certificate, _digest
from runner.errors import StudyError


@pytest.fixture(scope="module")
def certificate(module_folder: Path) -> Certificate:
    cells = [make_cell("deterministic"), make_cell(args={"path": "ä ${x}", "none": None, "list": [1, 2.5]})]
    return certificate_of(steady(module_folder / "study", *cells, rounds=2))


@pytest.fixture(scope="module")
def path(module_folder: Path, certificate: Certificate) -> Path:
    certificate.write(module_folder / "certificate.json")
    return module_folder / "certificate.json"


def refused(path: Path) -> str:
    """Why a file is refused, in one line that begins with its path."""
    with pytest.raises(StudyError) as caught:
        Certificate.read(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message


def test_what_is_read_is_what_was_written(certificate: Certificate, path: Path, tmp_path: Path) -> None:
    assert Certificate.read(path) == certificate
    Certificate.read(path).write(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@settings(max_examples=300, deadline=None)
@given(data=st.data())
def test_a_changed_byte_that_changes_the_meaning_is_refused(path: Path, data: st.DataObject) -> None:
    content = path.read_bytes()
    place = data.draw(st.integers(0, len(content) - 1))
    changed = content[:place] + data.draw(st.binary(max_size=2)) + content[place + data.draw(st.integers(0, 2)) :]
    other = path.with_name("changed.json")
    other.write_bytes(changed)
    try:
        same = json.dumps(json.loads(changed), sort_keys=True) == json.dumps(json.loads(content), sort_keys=True)
    except ValueError:
        same = False
    if same:
        assert Certificate.read(other) == Certificate.read(path)
    else:
        refused(other)


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value within a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in items:
        yield (*at, key)
        yield from places(one, (*at, key))


OTHER: dict[type, Any] = {str: "changed", int: 12345, float: 0.125, bool: "no", type(None): 0, list: [], dict: {}}


def test_every_single_value_is_covered(path: Path, tmp_path: Path) -> None:
    content = json.loads(path.read_text())
    ways = list(places(content))
    assert {"schema", "study", "version", "command", "statements", "cells", "digest"} == {way[0] for way in ways}
    for way in ways:
        changed = deepcopy(content)
        within = changed
        for key in way[:-1]:
            within = within[key]
        other = OTHER[type(within[way[-1]])]
        within[way[-1]] = other if within[way[-1]] != other else ["other"]
        (tmp_path / "changed.json").write_text(json.dumps(changed))
        refused(tmp_path / "changed.json")


def test_a_file_that_ends_anywhere_is_refused(certificate: Certificate, tmp_path: Path) -> None:
    bits = replace(certificate.cells[0].bits[0], data=["1"], losses=["2"], weights={"1": "3"}, seeds={})
    config = {"cudnn": {"deterministic": True, "benchmark": False}, "model": {"name": "m"}, "dataset": {"name": "d"}}
    cells = [replace(certificate.cells[0], bits=[bits], config=config, environment={})]
    replace(certificate, cells=cells, command=[], statements=[]).write(tmp_path / "whole.json")
    content = (tmp_path / "whole.json").read_bytes()
    for length in range(len(content.rstrip())):
        (tmp_path / "cut.json").write_bytes(content[:length])
        refused(tmp_path / "cut.json")


@pytest.mark.parametrize("content", ["", "no JSON", "[]", "null", '{"schema": 1}', '{"schema": 1, "digest": 3}'])
def test_what_is_no_certificate_is_refused(tmp_path: Path, content: str) -> None:
    (tmp_path / "other.json").write_text(content)
    refused(tmp_path / "other.json")


def test_a_key_that_is_there_twice_is_refused(path: Path, tmp_path: Path) -> None:
    """The digest is over what Python reads, the last of two; another reader may take the first."""
    content = path.read_text()
    (tmp_path / "twice.json").write_text(content.replace('"study":', '"study": "other",\n "study":', 1))
    assert "an object has the key 'study' twice" in refused(tmp_path / "twice.json")


def test_a_folder_is_told_how_a_certificate_is_made(tmp_path: Path) -> None:
    assert f"is a folder; make a certificate of a study with `python -m runner.certify {tmp_path}`" in refused(tmp_path)


def test_a_missing_file_and_another_schema_are_named(path: Path, tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "none.json")
    content = json.loads(path.read_text()) | {"schema": 2}
    (tmp_path / "later.json").write_text(json.dumps(content))
    assert "schema 2, this version reads schema 1" in refused(tmp_path / "later.json")


def resealed(path: Path, **changes: Any) -> Path:
    """A certificate with these fields replaced, whose digest was computed anew."""
    content = json.loads(path.read_text()) | changes
    del content["digest"]
    other = path.with_name("resealed.json")
    other.write_text(json.dumps(content | {"digest": _digest(content)}))
    return other


def test_fields_of_another_type_are_named_even_if_the_digest_fits(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert "cells is no list of cells" in refused(resealed(path, cells=[]))
    assert "study holds 3" in refused(resealed(path, study=3))
    assert "has unknown more" in refused(resealed(path, more=3))
    assert "cells.0.bits is no list of one training" in refused(resealed(path, cells=[cells[0] | {"bits": []}]))
    bits = [cells[0]["bits"][0] | {"losses": [1.5]}]
    assert "cells.0.bits.0.losses.0 holds 1.5" in refused(resealed(path, cells=[cells[0] | {"bits": bits}]))


IMPOSSIBLE: list[tuple[dict[str, Any], dict[str, Any], str]] = [
    ({"processes": 1}, {}, "1 processes from 1 interpreters"),
    ({"interpreters": 3}, {}, "2 processes from 3 interpreters"),
    ({"interpreters": -3}, {}, "2 processes from -3 interpreters"),
    ({"step_ms": [0.0]}, {}, "step_ms has times of 0 or less"),
    ({}, {"losses": [], "data": []}, "losses of 0 steps and data of 0"),
    ({}, {"data": ["1"]}, "and data of 1"),
    ({}, {"weights": {}}, "due are 16, the last, and earlier ones"),
    ({}, {"weights": {"16": "a", "x": "b"}}, "has the steps '16, x'"),
    ({}, {"weights": {"16": "a", "\u0663": "b"}}, "has the steps '16, \u0663'"),
    ({}, {"weights": {"16": "a", "17": "b"}}, "has the steps '16, 17'"),
    ({}, {"weights": {"16": "a", "9" * 5000: "b"}}, "has the steps '16, 999"),
    ({"config": {}}, {}, "cells.0.config.cudnn.deterministic holds None, should be true or false"),
    ({"config": {"cudnn": [1]}}, {}, "cells.0.config.cudnn.deterministic holds None, should be true or false"),
]


@pytest.mark.parametrize(("fields", "of_bits", "message"), IMPOSSIBLE)
def test_what_certify_never_writes_is_refused(
    path: Path, fields: dict[str, Any], of_bits: dict[str, Any], message: str
) -> None:
    cells = json.loads(path.read_text())["cells"]
    changed = cells[0] | {"interpreters": 1} | fields | {"bits": [cells[0]["bits"][0] | of_bits]}
    assert message in refused(resealed(path, cells=[changed]))


@pytest.mark.parametrize(("group", "value"), [("model", None), ("model", {"name": ["a"]}), ("dataset", {})])
def test_settings_without_a_name_are_no_cells(path: Path, group: str, value: Any) -> None:
    cell = json.loads(path.read_text())["cells"][0]
    changed = cell | {"config": cell["config"] | {group: value}}
    assert f"cells.0.config.{group}.name holds" in refused(resealed(path, cells=[changed]))


def test_a_cell_that_stands_there_twice_is_refused(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert "has one of them twice" in refused(resealed(path, cells=[*cells, cells[0]]))


def test_numbers_that_are_none_are_refused(path: Path, tmp_path: Path) -> None:
    for number in ("NaN", "Infinity", "1e999"):
        changed = path.read_text().replace('"none": null', f'"none": {number}')
        assert changed != path.read_text()
        (tmp_path / "nan.json").write_text(changed)
        assert "holds what no certificate has" in refused(tmp_path / "nan.json")


def test_a_figure_that_is_no_number_is_written_as_none(certificate: Certificate, tmp_path: Path) -> None:
    cell = replace(certificate.cells[0], metrics={"loss": float("nan")})
    replace(certificate, cells=[cell]).write(tmp_path / "certificate.json")
    assert asdict(Certificate.read(tmp_path / "certificate.json").cells[0])["metrics"] == {"loss": None}
