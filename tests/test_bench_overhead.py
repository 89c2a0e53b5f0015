"""The scripts that measure the runner itself: what they compute, and that they measure what they say."""

import importlib.util
import json
import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runner import child
from runner.analysis.summary import summarise
from runner.layout import series_file
from runner.series import Series

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
sys.path.append(str(SCRIPTS))

import bench_overhead as bench  # noqa: E402 - found by the line above
import publish_overhead as page  # noqa: E402
from fresh import four_cells, merged  # noqa: E402
from synthetic_study import deep, wide  # noqa: E402

TINY = ["threads=1", "train.steps=10", "train.batch_size=8", "model.cifar_stem=false"]


def test_synthetic_studies_are_whole_and_every_trial_in_them_is_another(tmp_path: Path) -> None:
    summary = summarise(deep(tmp_path / "deep", 24))
    assert (summary["trials"], summary["damaged"]) == ({"asked": 24, "there": 24}, [])
    assert [cell["n"] for cell in summary["cells"]] == [6] * 4
    assert [cell["reproducibility"]["unique_weights"] for cell in summary["cells"]] == [6] * 4
    assert summary["cells"][1]["speed"]["ratio_to_baseline"]["value"] == pytest.approx(0.8, rel=0.01)


def test_wide_synthetic_studies_have_20_trials_a_cell_and_series_of_usual_size(tmp_path: Path) -> None:
    study = wide(tmp_path / "wide", 100)
    assert [cell["n"] for cell in summarise(study)["cells"]] == [20] * 5
    series = Series.read(series_file(study.trial_folder(study.cells()[4].id, 19)))
    assert (len(series.step_ms), len(series.predictions), len(series.sketch)) == (120, 512, 4096)


def test_the_ratio_is_that_of_the_runner_over_the_bare_loop() -> None:
    weights = [("a", "a"), ("b", "b"), ("c", "d")]
    times = [(10.2, 10.0), (20.6, 20.0), (5.15, 5.0)]
    found = bench.beside(
        [
            {"runner": {"step_ms": own, "weights": one}, "bare": {"step_ms": bare, "weights": other}}
            for (own, bare), (one, other) in zip(times, weights, strict=True)
        ]
    )
    logs = [math.log(1.02), math.log(1.03), math.log(1.03)]
    assert found["ratio"] == pytest.approx(math.exp(sum(logs) / 3))
    assert found["ci95"][0] < 1.02 and found["ci95"][1] > 1.03  # t of three: 4.3 standard errors each way
    assert (found["same_weights"], found["pairs"]) == (2, [list(pair) for pair in times])


def reports(*times: float) -> list[dict[str, float]]:
    return [{"trials": 10**count, "report_s": time, "peak_mb": 100 + time} for count, time in enumerate(times, start=2)]


def test_growth_is_beside_that_of_the_trials() -> None:
    assert bench.growth(reports(1, 2, 20), "report_s") == 1
    assert bench.growth(reports(1, 2, 200), "report_s") == 10


STEPS = {"modes": {"default (F,F)": {"ratio": 1.001}, "benchmark (F,T)": {"ratio": 1.009}}, "modes_apart": 0.002}
WRONG: list[tuple[str, dict[str, Any]]] = [
    ("step_ratio", {"steps": STEPS | {"modes": {"default (F,F)": {"ratio": 1.011}}}}),
    ("modes_equal", {"steps": STEPS | {"modes_apart": 0.004}}),
    ("beyond_training", {"trial": {"beyond_training_s": 1.1}}),
    ("wide_report", {"report": {"wide": reports(1, 2, 11)}}),
    ("wide_growth", {"report": {"wide": reports(1, 0.2, 9)}}),
]
GOOD = {"steps": STEPS, "trial": {"beyond_training_s": 0.9}, "report": {"wide": reports(1, 2, 9)}}


@pytest.mark.parametrize(("name", "changed"), WRONG)
def test_what_is_not_as_good_as_needed_is_said(name: str, changed: dict[str, Any]) -> None:
    assert all(bench.verdicts({"device": "cuda:0"} | GOOD).values())
    verdicts = bench.verdicts({"device": "cuda:0"} | GOOD | changed)
    assert [verdict for verdict, good in verdicts.items() if not good] == [name]


def test_a_cpu_is_held_to_its_own_bounds() -> None:
    slower = STEPS | {"modes": {"default (F,F)": {"ratio": 1.019}}, "modes_apart": 0.01}
    assert bench.verdicts({"device": "cpu", "steps": slower, "trial": {"beyond_training_s": 3.0}}) == {
        "step_ratio": True
    }


def test_a_word_replaces_the_one_for_the_same_key() -> None:
    assert merged(["train.steps=60", "model.depth=18"], ["train.steps=9"]) == ["train.steps=9", "model.depth=18"]


def test_the_runner_and_the_bare_loop_do_the_same_work_bit_by_bit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A forkserver of its own that finds the scripts: one that another test has started may not.
    monkeypatch.setattr(child, "IMPORT_PATHS", [*child.IMPORT_PATHS, str(SCRIPTS)])
    monkeypatch.setenv("PLANTED_SCRIPTS", "1")
    found = bench.bench_steps(four_cells(TINY, "cpu")[:1], pairs=1, device="cpu", folder=tmp_path, seed=0)
    mode = found["modes"]["default (F,F)"]
    assert mode["same_weights"] == 1
    assert [len(pair) for pair in mode["pairs"]] == [2] and mode["ci95"] is None


def test_the_cost_of_a_trial_is_found_in_a_study(tmp_path: Path) -> None:
    cells = four_cells(TINY, "cpu")
    found = bench.bench_trials(TINY, rounds=1, plain=1, cell=cells[0], device="cpu", folder=tmp_path)
    assert found["trials"] == 3  # from each of four trials to the next
    assert found["beyond_training_s"] > found["of_it_build_s"] > 0
    assert len(found["plain_to_first_step_s"]) == 1


def test_a_report_is_measured_in_a_process_of_its_own_and_the_page_shows_it(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPTS / "bench_overhead.py"), "--json", "--part", "d", "--records", "20,40"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stderr == ""
    found = json.loads(done.stdout)
    shapes = found["report"]
    assert [[one["trials"] for one in shapes[shape]] for shape in shapes] == [[20, 40], [20, 40]]
    text = page.section(found)
    assert re.search(r"\| trials over 20 cells \| 40 \| \d+\.\d \| \d+\.\d \| \d+ \|", text), text


def test_the_page_says_what_was_measured_of_steps_and_peers() -> None:
    steps = {"pairs": 5, "modes_apart": 0.0012, "modes": {"default (F,F)": {"ratio": 1.0021, "ci95": [0.999, 1.005]}}}
    steps["modes"]["default (F,F)"]["same_weights"] = 5  # type: ignore[index]
    text = page.section({"environment": {"gpu_name": "NVIDIA H200", "torch": "2.11"}, "steps": steps})
    assert "| default (F,F) | 1.0021 [0.9990, 1.0050] | 5 of 5 |" in text
    assert "0.12% apart" in text and text.startswith("## Overhead: NVIDIA H200\n\ntorch 2.11.")
    verdicts = {
        "default": {"ratio": 1.0, "ci95": [1.0, 1.0], "verdict": "equivalent"},
        "benchmark": {"ratio": 0.8, "ci95": [0.79, 0.81], "verdict": "faster"},
    }
    modes = {"Timer": {"default": 10.0, "benchmark": 10.01}, "runner": {"default": 10.0, "benchmark": 8.0}}
    peers = {"images_per_s": {"bare loop": 52400.4}, "modes": modes, "runner": verdicts, "rounds": 3}
    text = page.section({"environment": {"cpu": "X"}, **peers})
    assert "| bare loop | 52,400 |" in text
    assert "| Timer | 10.00 (1.000) | 10.01 (1.001) |" in text
    assert "| runner's verdict, 3 rounds | the baseline | 0.800 [0.790, 0.810], faster |" in text


@pytest.mark.skipif(not importlib.util.find_spec("pytorch_lightning"), reason="the extra `peers` is not installed")
@pytest.mark.slow
def test_the_peers_train_and_say_what_they_think_of_the_modes() -> None:
    sizes = [*TINY, "dataset.items=80", "dataset.test_items=16", "--rounds", "2", "--workers", "1", "--skip", "2"]
    command = [sys.executable, str(SCRIPTS / "bench_peers.py"), "--json", "--device", "cpu", *sizes]
    found = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    assert set(found["images_per_s"]) == {"bare loop", "Lightning, 0 workers", "Lightning, 1 workers", "runner"}
    assert all(value > 0 for value in found["images_per_s"].values())
    for times in found["modes"].values():
        assert set(times) == {"default", "benchmark", "deterministic", "deterministic_benchmark"}
    assert page.section(found).count("\n| ") > 8
