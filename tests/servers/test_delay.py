"""Whether a slow server shows in the figures of speed: what is sent is sent between trials."""

from pathlib import Path
from statistics import mean, stdev

import pytest
from conftest import call
from proxy import proxy
from serving import mlflow_server
from tiny import PLAIN
from tracked import find, new_store

from runner.study import Study
from runner.tracking.store import connect

DELAY_S, TRIALS = 0.2, 20
WORDS = [*(word for word in PLAIN if word != "train.steps=10"), "train.steps=400", "cudnn=default,benchmark"]


def is_late(created: int) -> bool:
    """By turns two trials are sent late and two at once: what else happens on a machine meets both alike."""
    return created // 2 % 2 == 1


@pytest.mark.slow
def test_a_server_delayed_by_200_ms_a_request_changes_no_figure_of_speed(tmp_path: Path) -> None:
    with mlflow_server(new_store(tmp_path / "store"), tmp_path) as uri:
        with proxy(uri, delay_s=lambda created: DELAY_S * is_late(created)) as server:
            words = [*WORDS, f"trials={TRIALS // 2}", "study=s", "tracking=server", f"tracking.uri={server.uri}"]
            done = call("runner", "-m", *words, folder=tmp_path, timeout=1800)
        assert done.returncode == 0 and done.stderr == "", done.stdout + done.stderr
        assert len(find(connect(uri), "tags.level = 'trial'")) == TRIALS
    records = sorted(Study.open(tmp_path / "s").records(), key=lambda record: record.started)
    times = [record.speed.step_ms or 0.0 for record in records if record.speed]
    # Three runs stand above the trials; a trial comes after those of all trials before it were created.
    late, usual = ([time for i, time in enumerate(times) if i and is_late(3 + i) == wanted] for wanted in (True, False))
    print(f"{len(late)} trials after late answers: {mean(late):.4f} ms a step, sd {stdev(late):.4f}")
    print(f"{len(usual)} trials after usual ones: {mean(usual):.4f} ms a step, sd {stdev(usual):.4f}")
    assert min(len(late), len(usual)) >= TRIALS // 2 - 2
    assert abs(mean(late) - mean(usual)) < stdev(times)
