"""The four modes and their names."""

from itertools import product

import pytest

from runner.mode import MODES, mode_name, mode_text


def cudnn(deterministic: object, benchmark: object) -> dict[str, object]:
    return {"deterministic": deterministic, "benchmark": benchmark, "enabled": True, "benchmark_limit": 10}


@pytest.mark.parametrize(
    ("deterministic", "benchmark", "text"),
    [
        (False, False, "default (F,F)"),
        (False, True, "benchmark (F,T)"),
        (True, False, "deterministic (T,F)"),
        (True, True, "deterministic_benchmark (T,T)"),
    ],
)
def test_a_mode_is_named_after_its_pair(deterministic: bool, benchmark: bool, text: str) -> None:
    assert mode_text(cudnn(deterministic, benchmark)) == text
    assert mode_name(cudnn(deterministic, benchmark)) == text.split()[0]


def test_every_pair_has_a_name_of_its_own() -> None:
    assert set(MODES) == set(product([False, True], repeat=2))
    assert len(set(MODES.values())) == 4


def test_other_switches_do_not_change_the_name() -> None:
    assert mode_name({"deterministic": True, "benchmark": False, "enabled": False, "benchmark_limit": 0}) == (
        "deterministic"
    )
