"""The lines below all others: every trial at work and the whole study, in terminals wide and narrow."""

import io

import pytest
from rich.console import Console

from runner.reached import Reached
from runner.report.bar import FREE_COLUMNS, AtWork, Standing, bar

TWO = [
    AtWork("deterministic_benchmark (T,T)", 2, Reached(120, 500, 0.43219)),
    AtWork("benchmark (F,T)\n\x1b[31m", 12, None),
]


def drawn(standing: Standing, width: int) -> list[str]:
    """The bar's lines in a terminal of so many columns."""
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None, legacy_windows=False)
    console.print(bar(standing, width))
    return [line.rstrip() for line in console.file.getvalue().splitlines()]  # type: ignore[attr-defined]


def test_each_trial_has_its_step_and_loss_and_the_study_its_time() -> None:
    first, second, last = drawn(Standing(3, 20, 250.0, TWO), 80)
    assert " ".join(first.split()) == "deterministic_benchmark (T,T), round 2 step 120/500 loss 0.4322"
    assert second.split("  ")[0] == "benchmark (F,T) \ufffd[31m, round 12"
    assert second.endswith("starting")
    assert last.startswith("3/20  ") and last.endswith("about 4 min to go")
    assert "\u2501" in last


@pytest.mark.parametrize("width", [20, 40, 59, 60, 80, 200])
def test_no_line_is_wider_than_the_terminal_without_what_ctrl_c_prints(width: int) -> None:
    lines = drawn(Standing(3, 20, 250.0, TWO), width)
    assert len(lines) == 3
    assert max(map(len, lines)) <= width - FREE_COLUMNS
    if width >= 40:
        assert "120/500" in lines[0] and "loss 0.4322" in lines[0]
        assert lines[0].startswith("determi")


def test_before_the_first_trial_no_time_is_told() -> None:
    assert drawn(Standing(0, 20, None, []), 80)[-1].strip("\u2501 ") == "0/20"
    assert drawn(Standing(0, 0, None, []), 80)[-1].strip("\u2501 ") == "0/0"
