"""`python -m runner.upload`: the command, and what it says."""

import shutil
import sqlite3
from pathlib import Path

import pytest
from compared import called
from conftest import call
from factory import Plant, four_modes, make_cell, make_study
from tracked import find, new_store

from runner import upload as command
from runner.layout import record_file
from runner.study import Study
from runner.tracking.store import connect
from runner.upload import upload


@pytest.fixture
def four(tmp_path: Path) -> Study:
    return four_modes(tmp_path / "four", 1)


def test_the_bare_command_makes_a_store_here(tmp_path: Path, four: Study) -> None:
    done = call("runner.upload", "four", folder=tmp_path, timeout=600)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"4 trials are in MLflow at sqlite:///{tmp_path}/mlflow.db, 4 of them sent now, in ")
    client = connect(f"sqlite:///{tmp_path}/mlflow.db")
    (run,) = find(client, "tags.level = 'study'")
    names = {item.path for item in client.list_artifacts(run.info.run_id)}
    assert {"report.md", "summary.json", "summary.csv"} <= names


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["nowhere"], "nowhere: no study here"),
        (["four", "tracking.url=http://x"], "tracking.url=http://x: is no setting of an upload; give tracking.uri=..."),
        (["four", "tracking.uri=mlruns"], "tracking.uri=mlruns: MLflow keeps nothing in plain folders; use sqlite:///"),
    ],
)
def test_what_cannot_be_done_is_one_line(
    tmp_path: Path, four: Study, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: object
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["upload", *words])
    assert command.main() == 2
    assert isinstance(capsys, pytest.CaptureFixture)
    said = capsys.readouterr()
    assert said.err.startswith(message) and said.err.count("\n") == 1
    assert not (tmp_path / "mlflow.db").exists()


def test_a_damaged_record_is_named_and_the_rest_is_sent(
    tmp_path: Path, four: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    uri, lost = new_store(tmp_path / "store"), four.records()[0]
    record_file(four.trial_folder(lost.cell, lost.number)).write_text("{")
    assert upload(four, uri) == 1
    said = capsys.readouterr()
    assert said.out.startswith("3 trials are in MLflow")
    assert "record.json" in said.err
    assert len(find(connect(uri), "tags.level = 'trial'")) == 3


def test_a_trial_that_nobody_may_look_into_is_named_and_the_rest_is_sent(
    tmp_path: Path, four: Study, capsys: pytest.CaptureFixture[str]
) -> None:
    lost = four.records()[0]
    folder = four.trial_folder(lost.cell, lost.number)
    shutil.rmtree(folder)
    folder.write_text("no folder")
    assert upload(four, new_store(tmp_path / "store")) == 1
    said = capsys.readouterr()
    assert said.out.startswith("3 trials are in MLflow")
    assert said.err.startswith(f"{record_file(folder)}: cannot be read (Not a directory)")


def test_a_study_folder_that_cannot_be_written_is_one_line(
    tmp_path: Path, four: Study, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    four.lock_file("report").mkdir()
    code, lines, errors = called(command.main, "four", f"tracking.uri={new_store(tmp_path / 'store')}")
    assert (code, lines, errors.count("\n")) == (2, [], 1)
    assert errors.startswith(f"{four.lock_file('report')}: Is a directory; see to it that it can be read and written")


def test_one_trial_is_no_trials(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    study = make_study(tmp_path / "one", [(make_cell(), Plant())], 1)
    assert upload(study, new_store(tmp_path / "store")) == 0
    assert capsys.readouterr().out.startswith("1 trial is in MLflow at ")


def test_another_form_of_a_number_in_a_run_that_was_half_sent_is_no_error(tmp_path: Path, four: Study) -> None:
    """A later version may write 1.0 where an earlier one wrote 1: MLflow refuses to change a param."""
    uri = new_store(tmp_path / "store")
    assert upload(four, uri) == 0
    with sqlite3.connect(uri.removeprefix("sqlite:///")) as database:
        database.execute("update params set value = value || '.0' where key = 'cudnn.benchmark_limit'")
        database.execute("update runs set status = 'RUNNING'")
    assert upload(four, uri) == 0
    client = connect(uri)
    assert len(find(client, "attributes.status = 'FINISHED'")) == 1 + 4 + 4
    for run in find(client, "tags.level = 'trial'"):
        assert run.data.params["cudnn.benchmark_limit"] == "10.0"
        points = client.get_metric_history(run.info.run_id, "train/loss")
        assert [point.step for point in points] == list(range(1, 17))
