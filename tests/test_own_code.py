"""A user's own code from the command line: a package outside of ours, known networks, and everything that is wrong."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from composed import settings
from conftest import TESTS, call, finals
from one_trial import one_trial

from runner.cell import Cell
from runner.layout import series_file
from runner.record import Record
from runner.series import Series
from runner.settings import cell_config
from runner.study import Study

SMALL = ["device=cpu", "threads=1", "train.batch_size=8", "train.steps=4"]
OURS = [
    "--config-dir",
    "my_conf",
    "-m",
    "model=spotter",
    "dataset=spots",
    *SMALL,
    "tracking=off",
    "study=s",
    "trials=2",
]


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A user's folder, with a package and configs of their own."""
    folder = tmp_path_factory.mktemp("outside") / "theirs"
    shutil.copytree(TESTS / "outside", folder, ignore=shutil.ignore_patterns("__pycache__"))
    return folder


def test_a_package_from_the_current_folder_is_studied_and_its_difference_is_named(outside: Path) -> None:
    done = call("runner", *OURS, "cudnn=default", "model.args.jitter=false,true", "probe=ops", folder=outside)
    assert done.returncode == 0, done.stdout + done.stderr
    study = Study.open(outside / "s")
    verdicts = {}
    for cell in study.cells():
        records = [record for record in study.records() if record.cell == cell.id]
        assert {frozenset(record.metrics) for record in records} == {frozenset({"loss", "count_accuracy", "heat_mae"})}
        verdicts[cell.config["model"]["args"]["jitter"]] = len(finals(records))
    assert verdicts == {False: 1, True: 2}
    (line,) = [number for number, text in enumerate(_source(outside), 1) if "the planted difference" in text]
    assert f"aten.mul.Tensor of gain (forward, step 1, spots/models.py:{line})" in done.stdout


def _source(folder: Path) -> list[str]:
    return (folder / "spots" / "models.py").read_text().splitlines()


def test_a_users_configs_join_the_groups(outside: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(outside, tmp_path / "theirs", ignore=shutil.ignore_patterns("s"))
    words = ["cudnn=default,disabled", "trials=1", "dataset.args.loss=plain", "+dataset.resident=false"]
    done = call("runner", *[word for word in OURS if word != "trials=2"], *words, folder=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    study = Study.open(folder / "s")
    assert sorted(cell.config["cudnn"]["enabled"] for cell in study.cells()) == [False, True]
    assert {cell.config["model"]["_target_"] for cell in study.cells()} == {"spots.models.Spotter"}
    assert [record.outcome for record in study.records()] == ["finished"] * 2


def cell(*words: str) -> Cell:
    return Cell(cell_config(settings("model=custom", *SMALL, *words)))


def custom(target: str) -> list[str]:
    return ["dataset=custom", f"dataset._target_={target}", "dataset.view=custom"]


DETECTION = "torchvision.models.detection.ssdlite320_mobilenet_v3_large"
SEGMENTATION = "torchvision.models.segmentation.lraspp_mobilenet_v3_large"
UNTRAINED = ["+model.args.weights=null", "+model.args.weights_backbone=null"]
PICTURES = ["dataset=synthetic", "dataset.channels=3", "dataset.size=32", "dataset.items=16", "dataset.test_items=6"]
NETWORKS = {
    "detection": [f"model._target_={DETECTION}", *UNTRAINED, "+model.args.num_classes=2", *custom("brought.boxes")],
    "segmentation": [f"model._target_={SEGMENTATION}", *UNTRAINED, "+model.args.num_classes=10", *PICTURES],
    "timm": ["model._target_=timm.create_model", "+model.args.model_name=resnet10t", "+model.args.num_classes=10"],
    "lstm": ["model._target_=brought.PackedLstm", *custom("brought.sequences")],
}
NETWORKS["segmentation"] += ["dataset.view=mask", "train.batch_size=4"]
NETWORKS["detection"] += ["train.batch_size=2", "train.steps=2", "train.learning_rate=0.0001"]
NETWORKS["timm"] += [*PICTURES, "dataset.view=image"]
FIGURES = {
    "detection": set(),
    "segmentation": {"loss", "pixel_accuracy", "mean_iou"},
    "timm": {"loss", "accuracy"},
    "lstm": {"loss"},
}


def trained(folder: Path, *words: str) -> tuple[list[Record], list[Series]]:
    """Two trials of a cell."""
    done = [one_trial(cell(*words), folder / str(number)) for number in range(2)]
    assert [record.outcome for record, _ in done] == ["finished"] * 2, [record.reason for record, _ in done]
    return [record for record, _ in done], [Series.read(series_file(trial)) for _, trial in done]


KNOWN = [pytest.param(name, marks=() if name == "segmentation" else pytest.mark.slow) for name in NETWORKS]


@pytest.mark.parametrize("name", KNOWN)
def test_known_networks_train_twice_alike(name: str, tmp_path: Path) -> None:
    if name == "timm":
        pytest.importorskip("timm")
    records, series = trained(tmp_path, *NETWORKS[name])
    assert len(finals(records)) == 1
    assert records[0].digests == records[1].digests
    assert set(records[0].metrics) == FIGURES[name]
    assert np.isfinite(series[0].loss).all() and len(set(series[0].loss)) > 1
    counted = {"detection": 0, "segmentation": 6 * 32 * 32, "timm": 6, "lstm": 6}
    assert series[0].predictions.size == counted[name]


@pytest.mark.parametrize("words", [["phase=infer"], ["precision=bf16"], ["dataset.workers=2"], ["probe=modules"]])
def test_sequences_of_different_lengths_in_other_ways(words: list[str], tmp_path: Path) -> None:
    record, _ = one_trial(cell(*NETWORKS["lstm"], *words), tmp_path)
    assert record.outcome == "finished", record.reason
    plain, _ = one_trial(cell(*NETWORKS["lstm"]), tmp_path / "plain")
    assert record.digests and plain.digests
    same_weights = words in (["dataset.workers=2"], ["probe=modules"])
    assert (record.digests.final == plain.digests.final) is same_weights


def refusal(folder: Path, *words: str) -> str:
    """Why a trial was refused before its first step, in one line."""
    record, _ = one_trial(cell(*words), folder)
    assert (record.outcome, record.refused) == ("failed", True), record.reason
    assert record.reason and "\n" not in record.reason
    return record.reason


PLAIN_DATA = ["dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image", "dataset.classes=10"]
PLAIN = "model._target_=planted.Plain"


def bad(kind: str) -> list[str]:
    return ["model._target_=brought.Bad", f"+model.args.kind={kind}", *PLAIN_DATA]


def bad_data(kind: str) -> list[str]:
    data = ["dataset=custom", "dataset._target_=brought.bad_data", f"+dataset.args.kind={kind}"]
    return [PLAIN, *data, "dataset.view=image", "dataset.classes=10"]


WRONG: dict[str, tuple[list[str], list[str]]] = {
    "no such package": (
        ["model._target_=no_such.net.Net", *PLAIN_DATA],
        ["=no_such.net.Net: there is no module no_such"],
    ),
    "arguments": (
        [PLAIN, "+model.args.depth=3", *PLAIN_DATA],
        ["=planted.Plain", "'depth'", "it takes (width: int = 16)"],
    ),
    "no parameters": (
        ["model=custom", "model._target_=torch.nn.Flatten", *PLAIN_DATA],
        ["the model has no parameters: there is nothing to train"],
    ),
    "constructor": (bad("raises"), ["model._target_=brought.Bad: ValueError: width must be even"]),
    "outputs": (bad("outputs"), ["the model gives (8, 7)", "(8, 10)"]),
    "loss": (bad("vector"), ["the loss is float32 (8,)", "one element is needed"]),
    "metric": (bad("metric_text"), ["metrics give a str for 'top'"]),
    "clash": (bad("metric_clash"), ["metrics name 'accuracy'", "rename it"]),
    "empty": (bad_data("empty"), ["dataset._target_=brought.bad_data", "found one of length 0"]),
    "ragged": (bad_data("ragged"), ["float32 (1, 8, 8)", "float32 (1, 8, 9)", "in one batch", "one shape"]),
    "ragged for workers": (
        [*bad_data("ragged"), "dataset.workers=2"],
        ["dataset._target_=brought.bad_data", "in one batch"],
    ),
    "one set": (bad_data("one"), ["a pair (training set, test set)", "found Ragged"]),
    "data raise": (bad_data("raises"), ["dataset._target_=brought.bad_data: ZeroDivisionError"]),
    "resident": (
        [*bad_data("ragged"), "dataset.resident=true"],
        ["item 1 is", "(1, 8, 9)", "the first is", "(1, 8, 8)"],
    ),
    "no loss": ([PLAIN, *custom("brought.nested")], ["nothing gives a loss", "neither Plain nor the training set"]),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_told_in_one_line_before_the_first_step(name: str, tmp_path: Path) -> None:
    words, said = WRONG[name]
    reason = refusal(tmp_path, *words)
    for word in said:
        assert word in reason


@pytest.mark.parametrize("kind", ["cuda", "moves"])
def test_a_model_that_needs_cuda_is_told_so_on_a_cpu(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("CUDA is here")
    assert "model._target_=brought.Bad" in refusal(tmp_path, *bad(kind))
    assert refusal(tmp_path / "again", *bad(kind)).endswith("asks for CUDA, and this trial has device=cpu")


def test_a_missing_package_of_a_users_module_ends_the_study_in_its_first_round(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("import a_package_that_is_missing\n\n\ndef Net(): ...\n")
    words: list[Any] = ["model=custom", "model._target_=net.Net", *SMALL, "trials=3", "study=s", "tracking=off"]
    done = call("runner", "-m", "cudnn=default,benchmark", *words, folder=tmp_path)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "error: model._target_=net.Net: net needs the module a_package_that_is_missing" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr
    assert len(Study.open(tmp_path / "s").records()) == 2
