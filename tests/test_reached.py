"""How far a trial has got: what is written can be read at any moment, and what cannot be read is nothing."""

import math
from pathlib import Path

import pytest

from runner.reached import LENGTH, Reached


def test_what_was_written_last_is_read(tmp_path: Path) -> None:
    path = tmp_path / "reached"
    with open(path, "wb") as file:
        for one in (Reached(123456789, 10**9, -1.2345678901234567e-300), Reached(2, 10, None)):
            one.write(file.fileno())
            assert Reached.read(path) == one
            assert path.stat().st_size == LENGTH
        Reached(3, 10, math.nan).write(file.fileno())
    found = Reached.read(path)
    assert found and found.step == 3 and found.loss is not None and math.isnan(found.loss)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"step": "x", "steps": 1, "loss": null}'])
def test_what_cannot_be_read_is_nothing(text: str, tmp_path: Path) -> None:
    (tmp_path / "reached").write_text(text)
    assert Reached.read(tmp_path / "reached") is None
    assert Reached.read(tmp_path / "nowhere") is None
