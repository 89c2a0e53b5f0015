"""A real MLflow server with PostgreSQL behind it, which also keeps the files."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from factory import Plant, four_modes, make_cell, make_record, make_series, make_study
from mlflow.tracking import MlflowClient
from postgres import postgres
from proxy import proxy
from serving import mlflow_server
from tracked import CONTEXT, find, put, state

from runner import tracking
from runner.errors import ConfigError
from runner.study import Study
from runner.tracking.store import connect, open_experiment
from runner.upload import upload


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with postgres() as store, mlflow_server(store, tmp_path_factory.mktemp("server")) as uri:
        yield uri


def runs_of(client: MlflowClient, study: Study) -> list[Any]:
    return find(client, f"tags.study = '{study.asked()['id']}'")


def test_a_study_arrives_and_a_second_upload_changes_nothing(
    server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whatever of MLflow's settings the shell has."""
    for name, value in {"RUN_ID": "0" * 32, "EXPERIMENT_NAME": "elsewhere", "TRACKING_URI": "http://x.invalid"}.items():
        monkeypatch.setenv(f"MLFLOW_{name}", value)
    study = four_modes(tmp_path / "study", 2)
    assert upload(study, server) == 0
    client = connect(server)
    shown = runs_of(client, study)
    assert len(shown) == 1 + 4 + 4 * 2
    assert {run.info.status for run in shown} == {"FINISHED"}
    before = state(client)
    assert upload(study, server) == 0
    assert state(client) == before
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"8 trials are in MLflow at {server}, 8 of them sent now, in ")
    assert ", 0 of them sent now, in " in second
    (top,) = [run for run in shown if run.data.tags["level"] == "study"]
    assert top.info.artifact_uri.startswith("mlflow-artifacts:/")
    got = client.download_artifacts(top.info.run_id, "report.md", str(tmp_path))
    assert Path(got).read_bytes() == study.report_markdown.read_bytes()


def test_three_hundred_settings_and_five_thousand_points_all_arrive(server: str, tmp_path: Path) -> None:
    names, steps = ["a(b),c@d", "a(b),c@e", "plain"], 1000
    cell = make_cell(model={"name": "custom", "args": {f"{i}\u4e2d": "\u4e2d" * 2000 for i in range(300)}})
    series = replace(
        make_series(
            shape=np.zeros(steps, int),
            data=np.zeros((steps, 2), int),
            **dict.fromkeys(("step_ms", "enqueue_ms", "wait_ms", "loss"), np.ones(steps)),
        ),
        evaluated=np.arange(1, steps + 1),
        evaluations=np.ones((steps, 3)) * [1, 2, 3],
        evaluation_names=np.array(names),
    )
    study = Study.ask(tmp_path / "study", {"rounds": 1}, [cell])
    put(study, make_record(cell, metrics={}), series)
    assert upload(study, server) == 0
    client = connect(server)
    (run,) = [one for one in runs_of(client, study) if one.data.tags["level"] == "trial"]
    assert sum(key.startswith("model.args") for key in run.data.params) == 300
    curves = [name for name in run.data.metrics if name.startswith(("train/", "test/"))]
    points = {name: client.get_metric_history(run.info.run_id, name) for name in curves}
    assert [len(points[name]) for name in curves] == [steps] * 5
    assert {run.data.metrics[name] for name in curves if name.startswith("test/")} == {1, 2, 3}


def test_a_deleted_experiment_is_one_line_with_the_way_out(server: str) -> None:
    client = connect(server)
    client.delete_experiment(open_experiment(client, "gone"))
    with pytest.raises(ConfigError, match=r"tracking.experiment=gone: is deleted; .* experiments restore -x \d+\)"):
        tracking.check(server, [make_cell()], "gone")


def test_a_lost_answer_makes_no_run_twice(server: str, tmp_path: Path) -> None:
    study = make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=2)
    with proxy(server, fault="lost") as between:
        between.after = 6  # requests that get through first: how far this upload is does not matter
        assert upload(study, between.uri) == 1
        assert between.fault is None
        between.fault = "lost"
        assert upload(study, between.uri) in (0, 1)
    assert upload(study, server) == 0
    levels = [run.data.tags["level"] for run in runs_of(connect(server), study)]
    assert sorted(levels) == ["cell", "study", "trial", "trial"]


def test_two_runs_for_one_thing_become_one(server: str, tmp_path: Path) -> None:
    """As after a request that a server fulfilled long after nobody waited for it any more."""
    study = make_study(tmp_path / "study", [(make_cell(), Plant())], rounds=1)
    assert upload(study, server) == 0
    client = connect(server)
    for run in runs_of(client, study):
        tags = {key: value for key, value in run.data.tags.items() if not key.startswith("mlflow.runName")}
        client.create_run(run.info.experiment_id, run.info.start_time, tags)
    assert len(runs_of(client, study)) == 6
    assert upload(study, server) == 0
    shown = runs_of(client, study)
    assert sorted(run.data.tags["level"] for run in shown) == ["cell", "study", "trial"]
    assert {run.info.status for run in shown} == {"FINISHED"}


def send(uri: str, folder: Path) -> None:
    upload(Study.open(folder), uri)


@pytest.mark.parametrize("kills", [3, pytest.param(20, marks=pytest.mark.slow)])
def test_an_upload_that_is_killed_again_and_again_ends_complete(server: str, tmp_path: Path, kills: int) -> None:
    study, client = four_modes(tmp_path / "study", 2), connect(server)
    for number in range(kills):
        process = CONTEXT.Process(target=send, args=(server, study.folder))
        process.start()
        there = len(runs_of(client, study))
        while process.is_alive() and len(runs_of(client, study)) < min(there + 1 + number % 3, 13):
            pass
        process.kill()
        process.join()
    assert upload(study, server) == 0
    shown = runs_of(client, study)
    assert len(shown) == 13
    assert {run.info.status for run in shown} == {"FINISHED"}
    for run in shown:
        if run.data.tags["level"] == "trial":
            points = client.get_metric_history(run.info.run_id, "train/step_ms")
            assert [point.step for point in points] == list(range(1, 17))


def test_files_that_cannot_be_taken_cost_a_line_and_can_follow(
    server: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with a server that has files written into its own folder, where nobody else may."""
    client, study = connect(server), four_modes(tmp_path / "study", 1)
    (tmp_path / "closed").write_text("a file, no folder")
    client.create_experiment("closed", artifact_location=(tmp_path / "closed" / "files").as_uri())
    assert upload(study, server, "closed") == 1
    assert "the same command goes on" in capsys.readouterr().err
    shown = runs_of(client, study)
    assert len(shown) == 9
    assert {run.info.status for run in shown} == {"FINISHED"}
    (tmp_path / "closed").unlink()
    assert upload(study, server, "closed") == 0
    (top,) = [run for run in shown if run.data.tags["level"] == "study"]
    assert "report.md" in [item.path for item in client.list_artifacts(top.info.run_id)]


def test_a_database_of_another_version_is_refused_and_left_alone() -> None:
    import sqlalchemy

    with postgres() as uri:
        engine = sqlalchemy.create_engine(uri)
        with engine.begin() as connection:
            connection.execute(sqlalchemy.text("create table alembic_version (version_num varchar(32))"))
            connection.execute(sqlalchemy.text("insert into alembic_version values ('older')"))
        with pytest.raises(ConfigError, match=r"another version of MLflow; back it up and run `mlflow db up"):
            tracking.check(uri, [])
        with engine.connect() as connection:
            assert sqlalchemy.inspect(connection).get_table_names() == ["alembic_version"]
        engine.dispose()
