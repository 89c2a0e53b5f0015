"""A server that fails while a study works: it costs a line and little time, no trial, and everything can follow."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from conftest import call, finals
from factory import four_modes
from proxy import black_hole, proxy
from serving import mlflow_server
from tiny import PLAIN
from tracked import find, new_store

from runner import mirror as mirroring
from runner.analysis.summary import summarise
from runner.mirror import Mirror
from runner.study import Study
from runner.tracking import store
from runner.tracking.store import connect
from runner.upload import upload


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("server")
    with mlflow_server(new_store(folder / "store"), folder) as uri:
        yield uri


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return four_modes(tmp_path / "study", 2)


def work(mirror: Mirror) -> None:
    """What a study does with its mirror, without the trainings."""
    mirror.check()
    for record in mirror.study.records():
        mirror.show([record])
    mirror.finish(summarise(mirror.study), lambda: False)


def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same limits, shorter."""
    monkeypatch.setattr(store, "CHECK_S", 1.5)
    monkeypatch.setattr(mirroring, "STEP_S", 1.0)
    monkeypatch.setattr(mirroring, "LAST_S", 2.0)
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_TIMEOUT", "1")


def test_the_limits_together_are_below_a_minute() -> None:
    check, leftovers, trial, end = store.CHECK_S, mirroring.STEP_S, mirroring.STEP_S, mirroring.LAST_S
    assert check + leftovers + trial + end < 60


@pytest.mark.parametrize("fault", ["hangs", "drips", "500", "401", "stopped", "black hole"])
def test_a_server_that_is_no_use_from_the_start_is_said_once(
    study: Study, fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    quick(monkeypatch)
    with proxy(fault=fault) as bad, black_hole() as nowhere:
        mirror = Mirror(nowhere if fault == "black hole" else bad.uri, study, None)
        work(mirror)
    assert mirror.failed
    said = capsys.readouterr().err
    assert said.startswith(f"MLflow cannot be used: tracking.uri={mirror.uri}: ")
    assert said.endswith(f"later: python -m runner.upload {study.folder} tracking.uri={mirror.uri}\n")
    assert said.count("\n") == 1
    if fault not in ("drips", "black hole"):
        assert bad.requests + 2 * (fault == "stopped") == 2  # one before the first trial, one at the end


@pytest.mark.parametrize("fault", ["hangs", "drips", "500", "stopped", "lost"])
def test_a_server_that_fails_half_way_is_asked_once_more_and_gets_everything_later(
    study: Study, server: str, fault: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with proxy(server, fault=fault) as between:
        between.after = 30
        mirror = Mirror(between.uri, study, fault)
        mirror.check()
        for record in study.records()[:3]:
            mirror.show([record])
        quick(monkeypatch)
        for record in study.records()[3:]:
            mirror.show([record])
        mirror.finish(summarise(study), lambda: False)
        assert mirror.failed or fault == "lost"
    monkeypatch.undo()
    said = capsys.readouterr().err
    assert said.startswith(f"MLflow at {between.uri} does not take the study (") and said.count("\n") == 1
    assert upload(study, server, fault) == 0
    complete(study, server)


def complete(study: Study, server: str, trials: int = 8) -> None:
    """All of a study of four cells is there, and nothing twice."""
    client = connect(server)
    runs = find(client, f"tags.study = '{study.asked()['id']}'")
    assert {run.info.status for run in runs} == {"FINISHED"}
    levels = [run.data.tags["level"] for run in runs]
    assert (levels.count("study"), levels.count("cell"), levels.count("trial")) == (1, 4, trials)
    for run in runs:
        if run.data.tags["level"] == "trial":
            steps = [point.step for point in client.get_metric_history(run.info.run_id, "train/loss")]
            assert steps == list(range(1, len(steps) + 1))


WORDS = [*PLAIN, "cudnn=glob(*)", "trials=1", "study=s"]


def trained(folder: Path, uri: str | None) -> tuple[Study, str, float]:
    """A study at the command line: the study, what it said on standard error, the seconds."""
    began, tracking = time.monotonic(), ["tracking=server", f"tracking.uri={uri}"] if uri else ["tracking=off"]
    done = call("runner", "-m", *WORDS, *tracking, folder=folder, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return Study.open(folder / "s"), done.stderr, time.monotonic() - began


@pytest.mark.parametrize(
    "fault", ["stopped", *(pytest.param(one, marks=pytest.mark.slow) for one in ("hangs", "500", "drips"))]
)
def test_trainings_know_nothing_of_a_server_that_fails_half_way(server: str, tmp_path: Path, fault: str) -> None:
    with proxy(server, fault=fault) as between:
        between.after = 32  # in the midst of the first trials
        disturbed, said, _ = trained(tmp_path, between.uri)
        assert between.requests > 32
    assert said.count("MLflow at ") == 1
    assert said.count("Traceback") == 0
    assert upload(disturbed, server) == 0
    complete(disturbed, server, 4)
    (tmp_path / "quiet").mkdir()
    quiet, _, _ = trained(tmp_path / "quiet", None)
    assert finals(disturbed.records()) == finals(quiet.records())
    assert len(finals(quiet.records())) == 1


@pytest.mark.slow
def test_a_black_hole_costs_a_study_less_than_a_minute(tmp_path: Path) -> None:
    (tmp_path / "quiet").mkdir()
    quiet, _, usual_s = trained(tmp_path / "quiet", None)
    with black_hole() as uri:
        study, said, took_s = trained(tmp_path, uri)
    print(f"{took_s:.1f} s, without {usual_s:.1f} s")
    assert took_s - usual_s < 60
    assert said.count("MLflow cannot be used") == 1
    assert finals(study.records()) == finals(quiet.records())
