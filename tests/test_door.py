"""Bad input is refused before any trial starts and before any MLflow run exists: one message, exit code not 0."""

from collections.abc import Callable
from pathlib import Path

import pytest
from composed import settings
from conftest import call
from mlflow.tracking import MlflowClient

from runner.door import plan_said
from runner.expand import Asked
from runner.study import Study

REFUSED = [
    (["cudnn=fast"], ["cudnn/fast", "default", "deterministic_benchmark"]),
    (["nonsense=1"], ["nonsense"]),
    (["+nonsense=1"], ["nonsense", "no such key", "trials"]),
    (["+steps=10"], ["steps=10", "did you mean probe.steps or train.steps or plan.steps?"]),
    (["+depth=18"], ["depth=18", "did you mean model.depth?"]),
    (["+number=3"], ["number=3: no such key; there are"]),
    (["train.nonsense=1"], ["nonsense"]),
    (["+train.nonsense=1"], ["train.nonsense", "no such key", "batch_size"]),
    (["cudnn.deterministic=maybe"], ["cudnn.deterministic", "maybe", "bool"]),
    (["cudnn.deterministic=2"], ["cudnn.deterministic", "2", "true or false"]),
    (["train.steps=many"], ["train.steps", "many", "Integer"]),
    (["trials=0"], ["trials", "0", "at least 1"]),
    (["trials=-3"], ["trials", "-3", "at least 1"]),
    (["trials=2,3"], ["trials"]),
    (["trials=1000000"], ["trials=1000000", "below 1000000"]),
    (["threads=5000"], ["threads=5000", "below 4097"]),
    (["cudnn=glob(nope*)"], ["cudnn", "matches nothing", "default"]),
    (["trials=range(0)"], ["trials", "matches nothing"]),
    (["cudnn=default,default"], ["cudnn=default", "same cell"]),
    (["cudnn=glob(*)", "cudnn=default"], ["cudnn", "more than once"]),
    (["cudnn=default,deterministic", "cudnn.deterministic=false"], ["same cell"]),
    (["dataset.size=null,8", "device=cpu"], ["same cell"]),
    (["model=lstm", "dataset=cifar10"], ["model=lstm", "sequence", "cifar10", "image"]),
    (["model=resnet", "dataset.view=mask"], ["resnet", "image", "mask"]),
    (["dataset=cifar10", "dataset.view=mask"], ["dataset.view=mask", "cifar10", "image"]),
    (["model=lstm", "dataset=text", "dataset.path=x.txt", "model.bidirectional=true"], ["model.bidirectional"]),
    (["dataset=image_folder", "dataset.root=nowhere"], ["dataset.root", "nowhere"]),
    (["dataset=cifar10"], ["cifar-10-batches-py", "download=true"]),
    (["model=lstm", "dataset=text", "dataset.path=nowhere.txt"], ["dataset.path", "nowhere.txt"]),
    (["model.depth=19"], ["model.depth", "19", "10, 18, 34, 50, 101"]),
    (["seeds.vary=[colour]"], ["seeds.vary", "colour", "init"]),
    (["device=cpu", "precision=fp8"], ["precision", "fp8"]),
    (["train.steps=5", "train.epochs=1"], ["train.epochs", "train.steps"]),
    (["model=custom"], ["model._target_"]),
    (["tracking=server"], ["tracking.uri"]),
    (["tracking.uri=file:///tmp/mlruns", "tracking.required=true"], ["tracking.uri", "sqlite"]),
    (["timeout=0"], ["timeout", "0"]),
    (["trial.number=3"], ["trial.number", "3", "trials=N"]),
    (["~train.momentum"], ["train.momentum", "needed"]),
    (["device=mps"], ["device", "mps", "auto, cpu, cuda"]),
    (["tracking=server", "tracking.uri=null"], ["tracking.uri", "HOST"]),
    (["device=abacus"], ["device", "abacus", "cuda"]),
    (["budget=10"], ["budget=10", "90s, 10min, 2h"]),
    (["budget=10min,2h"], ["budget=10min,2h", "study as a whole"]),
    (["plan.steps=100,200"], ["plan.steps=100,200", "study as a whole"]),
    (["plan.margin=0.01,0.02", "cudnn=glob(*)"], ["plan.margin=0.01,0.02", "study as a whole"]),
    (["plan.runs=0"], ["plan.runs", "at least 1"]),
    (["plan.steps=1000000000000"], ["plan.steps=1000000000000", "below 1000000000000"]),
    (["plan.runs=1000000000"], ["plan.runs=1000000000", "below 1000000000"]),
    (["plan.price_per_hour=1e9"], ["plan.price_per_hour=1000000000.0", "below 1000000000.0"]),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=lambda value: " ".join(value)[:60])
def test_refused_before_anything_exists(arguments: list[str], words: list[str], refused: Callable[..., str]) -> None:
    message = refused(*arguments)
    for word in words:
        assert word in message


def test_the_word_false_in_quotes_means_false(tmp_path: Path) -> None:
    words = [
        "cudnn=deterministic",
        "cudnn.deterministic='False'",
        "trials=1",
        "train.steps=1",
        "study=s",
        "tracking=off",
    ]
    done = call("runner", *words, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    (cell,) = Study.open(tmp_path / "s").cells()
    assert cell.config["cudnn"]["deterministic"] is False


CHILD_ONLY = [
    (["train.batch_size=5000"], ["train.batch_size=5000", "1438", "at most"]),
    pytest.param(["device=cuda:7"], ["device=cuda:7", "sees"], marks=pytest.mark.slow),
    (
        ["model=custom", "model._target_=planted.Plain", "dataset.size=16"],
        ["before the first step was done", "image data", "(1, 16, 16)", "10 classes", "32x256", "64x16"],
    ),
    pytest.param(
        ["model=custom", "model._target_=planted.Nothing"], ["model._target_=planted.Nothing"], marks=pytest.mark.slow
    ),
    (["model=custom", "model._target_=not_there.Net"], ["model._target_=not_there.Net", "not_there"]),
    pytest.param(
        ["model=custom", "model._target_=planted.Plain", "+model.args.depth=3"], ["depth"], marks=pytest.mark.slow
    ),
]


@pytest.mark.parametrize(("arguments", "words"), CHILD_ONLY, ids=lambda value: " ".join(value)[:60])
def test_what_only_a_child_knows_ends_the_first_round(arguments: list[str], words: list[str], tmp_path: Path) -> None:
    done = call("runner", "-m", "cudnn=default,benchmark", "trials=3", "study=s", *arguments, folder=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stderr.count("error:") == 1
    assert "Traceback" not in done.stdout + done.stderr
    for word in words:
        assert word in done.stderr
    assert len(Study.open(tmp_path / "s").records()) == 2


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], {}),
        (["cudnn=benchmark", "train.steps=6"], {}),
        (["plan.steps=5"], {"steps": 5}),
        (["plan={steps:5}"], {"steps": 5}),
        (["+plan={steps:5,margin:0.1}", "++plan.runs=3"], {"steps": 5, "margin": 0.1, "runs": 3}),
        (["plan={}"], {}),
        (["plan.price_per_hour=null"], {"price_per_hour": None}),
    ],
)
def test_of_a_plan_only_the_keys_that_are_named_are_said(words: list[str], said: dict[str, object]) -> None:
    assert plan_said(Asked(tuple(words), settings(*words))) == said


def test_seeds_noise_takes_20_rounds_and_a_plan_stays_but_for_what_is_said(tmp_path: Path) -> None:
    default = {"steps": 10_000, "runs": 1, "price_per_hour": None, "margin": 0.02}
    said = [[], ["plan.steps=7", "plan.price_per_hour=2"], ["plan={margin:0.05}"], []]
    plans = []
    for words in said:
        done = call("runner", "seeds=fixed,all", "device=cuda:7", "study=s", "tracking=off", *words, folder=tmp_path)
        assert done.returncode == 2 and "no estimate of the time: device=cuda:7" in done.stdout, done.stdout
        plans.append(Study.open(tmp_path / "s").asked()["plan"])
    second = default | {"steps": 7, "price_per_hour": 2.0}
    assert plans == [default, second, second | {"margin": 0.05}, second | {"margin": 0.05}]
    assert Study.open(tmp_path / "s").asked()["rounds"] == 20


def test_a_cell_that_cannot_work_does_not_stop_the_others_and_leaves_no_run_running(tmp_path: Path) -> None:
    models = "model._target_=planted.Plain,planted.Nothing"
    done = call("runner", "-m", "model=custom", models, "trials=2", "train.steps=2", "study=s", folder=tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "2 of 4 trials failed" in done.stdout
    outcomes = [record.outcome for record in Study.open(tmp_path / "s").records()]
    assert sorted(outcomes) == ["failed", "failed", "finished", "finished"]
    assert "planted.Nothing" in (tmp_path / "s" / "report.md").read_text()
    client = MlflowClient(f"sqlite:///{tmp_path / 'mlflow.db'}")
    experiments = [experiment.experiment_id for experiment in client.search_experiments()]
    statuses = [run.info.status for run in client.search_runs(experiments)]
    assert statuses.count("FINISHED") == 4  # two trials, their cell, and the study in this model's experiment
    assert "RUNNING" not in statuses
