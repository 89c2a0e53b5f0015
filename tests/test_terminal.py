"""What stands on a real terminal, in the middle of a study and at its end: wide and narrow, with colours or none."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import TESTS
from screen import Screen, screen

from runner.study import Study

COLOUR = re.compile(rb"\x1b\[[0-9;]*[34]\d")
WATCHED = [sys.executable, str(TESTS / "watched.py")]
MODEL = ["model=custom", "model._target_=planted.Held", "+model.args.folder=.", "+model.args.daemons=false"]
DATA = ["dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image", "dataset.classes=10"]
SMALL = ["train.steps=10", "train.batch_size=8", "threads=1", "device=cpu", "tracking=off", "trials=1", "study=s"]
REAL = [sys.executable, "-m", "runner", "-m", "cudnn=default,benchmark", *MODEL, *DATA, *SMALL]


def bars(one: Screen) -> list[str]:
    """The lines that belong to the bar."""
    return [line for line in one.text.splitlines() if re.search(r"^\d/\d  |\u2501|step \d+/\d", line)]


def settled(one: Screen) -> None:
    """Let the bar be drawn a few times more."""
    before = one.redrawn
    one.until(lambda: one.redrawn >= before + 3)


def test_half_a_drawing_does_not_count(tmp_path: Path) -> None:
    """Planted: the second drawing stops within its line, and goes on when a file is there."""
    lines = ["import pathlib, time", r"print('one\r\x1b[2Ktw', end='', flush=True)"]
    lines += ["while not pathlib.Path('on').exists():", "    time.sleep(0.01)", r"print('o\r\x1b[2Kthree', end='')"]
    with screen([sys.executable, "-c", "\n".join(lines)], tmp_path) as one:
        one.until(lambda: one.raw.endswith(b"tw"))
        assert one.lines == ["one"] and one.redrawn == 0
        (tmp_path / "on").touch()
        one.until(lambda: one.redrawn == 1)
        assert one.ended() == 0
        assert one.lines == ["three"]


@pytest.mark.parametrize("columns", [80, 40])
@pytest.mark.parametrize("variables", [{}, {"NO_COLOR": "1"}], ids=["colours", "no colours"])
def test_the_bar_stands_below_all_lines_and_leaves_nothing(
    columns: int, variables: dict[str, str], tmp_path: Path
) -> None:
    with screen([*WATCHED, str(tmp_path)], tmp_path, columns, 24, **variables) as one:
        one.until(lambda: "loss 0.4322" in one.text and " 16/16" in one.text)
        settled(one)
        first, second, last = one.lines[-3:]
        assert first.startswith("default (F,F)") and "7/16" in first and first.endswith("loss 0.4322")
        assert second.startswith("benchmark (F,T)") and second.endswith("16/16")
        assert last.startswith("0/3")
        (tmp_path / "fail").touch()
        one.until(lambda: "loss nan" in one.text and " 16/16" not in one.text)
        settled(one)
        assert "[1/3] round 1/1  benchmark (F,T) failed" in one.lines
        assert any(line.startswith("    failed: planted: \ufffd[31m") for line in one.lines)
        assert [line[:7] for line in one.lines[-3:-1]] == ["default", "determi"]
        assert one.lines[-1].startswith("1/3  \u2501") and one.lines[-1].endswith("to go")
        assert bool(COLOUR.search(one.raw)) is not bool(variables)
        (tmp_path / "end").touch()
        assert one.ended() == 1
        text = one.text
        assert not re.search(r"\d/16|^\d/3 |\u2501", text, re.MULTILINE)
        assert text.count("[2/3]") == text.count("[3/3]") == 1
        assert one.cursor_shown
        assert "1 of 3 trials failed" in text and "to go on: python -m runner -m" in text
        joined = text.replace("\n", "")
        assert "to see it again: python -m runner.report" in joined
        assert (
            f"study={tmp_path}/study" in joined and "mlflow ui --backend-store-uri 'sqlite:////tmp/my store" in joined
        )


def test_a_window_that_changes_its_size_keeps_one_bar(tmp_path: Path) -> None:
    with screen([*WATCHED, str(tmp_path)], tmp_path, 100) as one:
        one.until(lambda: "loss 0.4322" in one.text)
        for columns in (60, 100, 44):
            one.resize(columns, 24)
            settled(one)
            assert one.text.count("0.4322") == 1
            assert len(one.lines[-1]) <= columns
        (tmp_path / "fail").touch()
        (tmp_path / "end").touch()
        assert one.ended() == 1
        assert "0.4322" not in one.text


def test_a_dumb_terminal_gets_lines_without_any_control(tmp_path: Path) -> None:
    for name in ("fail", "end"):
        (tmp_path / name).touch()
    with screen([*WATCHED, str(tmp_path)], tmp_path, TERM="dumb") as one:
        assert one.ended() == 1
        assert "[3/3]" in one.text and "loss 0.4322" not in one.text
        assert b"\x1b" not in one.raw


def test_a_pipe_gets_the_plain_lines_and_no_control_character(tmp_path: Path) -> None:
    for name in ("fail", "end"):
        (tmp_path / name).touch()
    done = subprocess.run([*WATCHED, str(tmp_path)], capture_output=True, timeout=600, check=False)
    assert done.returncode == 1 and done.stderr == b""
    text = done.stdout.decode()
    assert {one for one in text if not one.isprintable()} == {"\n"}
    assert re.search(rf"^\[\d/3\] round 1/1  {re.escape('benchmark (F,T)'.ljust(36))} failed$", text, re.MULTILINE)
    assert "step 7/16" not in text


def test_ctrl_c_leaves_no_bar_and_a_closed_window_costs_nothing(tmp_path: Path) -> None:
    with screen([*WATCHED, str(tmp_path)], tmp_path) as one:
        one.until(lambda: "loss 0.4322" in one.text)
        one.press(b"\x03")
        assert one.ended() == 1
        assert "0.4322" not in one.text and "^C" not in one.text and one.cursor_shown
        assert "3 of 3" not in one.text and "3 missing" in one.text
    folder = tmp_path / "closed"
    folder.mkdir()
    with screen([*WATCHED, str(folder)], folder) as one:
        one.until(lambda: "loss 0.4322" in one.text)
        one.shut()
        assert one.ended() == 1  # as when it is interrupted: no signal has ended it, and no error of the output's
    assert Study.open(folder / "study").report_markdown.is_file()


def test_a_real_study_shows_its_steps_and_ends_with_what_comes_next(tmp_path: Path) -> None:
    (tmp_path / "hold").write_text("0 wait")
    with screen(REAL, tmp_path, 80, 50, PYTHONPATH=os.pathsep.join([str(TESTS), *_inherited()])) as one:
        one.until(lambda: bool(re.search(r"loss \d", one.text)))
        settled(one)
        row, last = one.lines[-2:]
        assert re.match(r"(default \(F,F\)|benchmark \(F,T\)), round 1 +step [12]/10 +loss \d\.\d+$", row)
        assert last.startswith("0/2  \u2501")
        (tmp_path / "hold").unlink()
        assert one.ended() == 0
        assert not bars(one)
        joined = one.text.replace("\n", "")
        assert joined.count("[1/2] round 1/1") == joined.count("[2/2] round 1/1") == 1
        assert "repeats?" in joined and f"report: {tmp_path}/s/report.md" in joined
        assert f"to send it: {tmp_path}/s/report.html" in joined
        assert f"python -m runner.report {tmp_path}/s" in joined
    assert not list(tmp_path.glob("s/cells/*/*/.reached*"))


def test_ctrl_c_in_a_real_study_leaves_a_clean_narrow_screen(tmp_path: Path) -> None:
    (tmp_path / "hold").write_text("0 wait")
    paths = os.pathsep.join([str(TESTS), *_inherited()])
    with screen(REAL, tmp_path, 40, 50, PYTHONPATH=paths, NO_COLOR="1") as one:
        one.until(lambda: bool(re.search(r"loss \d", one.text)))
        one.press(b"\x03")
        assert one.ended() == 130
        joined = one.text.replace("\n", "")
        assert "^C" not in joined and "Traceback" not in joined and not re.search(r"\d/10|\u2501", joined)
        assert one.cursor_shown
        assert "interrupted: interrupted from the keyboard" in joined
        assert "to go on: python -m runner -m" in joined and joined.count("study=") == 1
        assert not COLOUR.search(one.raw)


def _inherited() -> list[str]:
    return [path for path in [os.environ.get("PYTHONPATH")] if path]
