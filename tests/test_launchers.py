"""A study gives the same under every Hydra launcher: this process, a pool's processes, or jobs of their own."""

import pickle
from pathlib import Path

import pytest
from conftest import call, finals, study
from omegaconf import OmegaConf

from runner.errors import ConfigError
from runner.study import Study

# With its default n_jobs=-1 joblib works on as many trials at a time as there are processors, whatever their threads.
LAUNCHERS = {
    "basic": [],
    "joblib": ["hydra/launcher=joblib"],
    "submitit": ["hydra/launcher=submitit_local"],
}
SMALL = ["cudnn=default,deterministic", "model.cifar_stem=false", "train.steps=4", "train.batch_size=8", "threads=1"]


@pytest.fixture(scope="module")
def studies(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Study]:
    """The same small study under each launcher."""
    return {
        name: study(*SMALL, "trials=2", *words, folder=tmp_path_factory.mktemp(name))
        for name, words in LAUNCHERS.items()
    }


def test_weights_and_cells_are_the_same_under_every_launcher(studies: dict[str, Study]) -> None:
    digests = {name: finals(done.records()) for name, done in studies.items()}
    assert len(digests["basic"]) == 1
    assert digests["joblib"] == digests["submitit"] == digests["basic"]
    cells = [{cell.id for cell in done.cells()} for done in studies.values()]
    assert cells[0] == cells[1] == cells[2]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_trial_has_a_process_of_its_own(studies: dict[str, Study], launcher: str) -> None:
    records = studies[launcher].records()
    assert [record.outcome for record in records] == ["finished"] * 4
    assert len({record.process["pid"] for record in records}) == 4
    assert {record.environment["threads"] for record in records} == {1}
    assert sorted((record.number, record.position) for record in records) == [(0, 0), (0, 1), (1, 0), (1, 1)]


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_every_job_is_told_one_study_folder(studies: dict[str, Study], launcher: str) -> None:
    folder = studies[launcher].folder
    assert [path.name for path in folder.parent.iterdir()] == ["study"]
    (invocation,) = (folder / "hydra").iterdir()
    configs = sorted(invocation.glob("*/config/config.yaml"))
    assert [path.parents[1].name for path in configs] == ["0", "1", "2", "3"]
    assert {OmegaConf.load(path).study for path in configs} == {str(folder)}


def test_loader_workers_work_in_a_pools_process(studies: dict[str, Study], tmp_path: Path) -> None:
    workers = ["dataset.workers=2", "dataset.resident=false"]
    done = study(*SMALL, "trials=1", *LAUNCHERS["joblib"], *workers, folder=tmp_path)
    assert [record.outcome for record in done.records()] == ["finished"] * 2
    assert finals(done.records()) == finals(studies["basic"].records())


def test_paths_mean_the_folder_of_the_command_also_when_jobs_change_it(tmp_path: Path) -> None:
    (tmp_path / "letters.txt").write_text("to be, or not to be, that is the question\n" * 50)
    text = ["model=lstm", "model.hidden_size=16", "dataset=text", "dataset.path=letters.txt", "dataset.length=16"]
    size = ["trials=2", "train.steps=4", "train.batch_size=4"]
    done = call("runner", "hydra.job.chdir=True", "study=kept/mine", *text, *size, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    records = Study.open(tmp_path / "kept" / "mine").records()
    assert [record.outcome for record in records] == ["finished"] * 2
    assert {path.name for path in tmp_path.iterdir()} == {"letters.txt", "kept", "mlflow.db", "mlartifacts"}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_job_that_raises_ends_the_study_with_its_message(tmp_path: Path, launcher: str) -> None:
    model = ["model=custom", "model._target_=planted.LosesStudy", f"+model.args.folder={tmp_path / 'study'}"]
    words = ["trials=2", "train.steps=2", "tracking=off", "study=study", *LAUNCHERS[launcher]]
    done = call("runner", *model, *words, folder=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "study.json: cannot be read" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_error_about_a_setting_survives_the_way_back_from_a_job() -> None:
    error = pickle.loads(pickle.dumps(ConfigError("train.steps", 0, "must be at least 1")))
    assert str(error) == "train.steps=0: must be at least 1"
