"""The detector: torchvision's Faster R-CNN on images with boxes, its figure, its refusals and its recipe."""

from pathlib import Path
from typing import Any

import pytest
import torch
from composed import settings
from conftest import study as done
from one_trial import one_trial
from test_advice import changes, found
from test_command import FULL
from test_recipe import asked
from torch import nn
from torchvision.models.detection import fasterrcnn_mobilenet_v3_large_fpn

from runner.analysis.advice import advice
from runner.analysis.quantity import settings_of
from runner.analysis.summary import summarise
from runner.cell import Cell
from runner.data.boxes import listed, load
from runner.errors import ConfigError
from runner.models.faster_rcnn import faster_rcnn, metrics
from runner.report.post import post_page
from runner.settings import cell_config
from runner.study import Study

pytestmark = pytest.mark.usefixtures("one_thread")

DATA = ["dataset=boxes", "dataset.items=4", "dataset.test_items=3", "dataset.size=64"]
DETECTOR = ["model=faster_rcnn", "model.backbone=mobilenet_v3_large", "model.min_size=64"]
SHORT = ["train.steps=2", "train.batch_size=2", "train.learning_rate=0.0001", "device=cpu", "threads=1"]


def cell(*words: str) -> Cell:
    return Cell(cell_config(settings(*DETECTOR, *DATA, *SHORT, *words)))


@pytest.mark.parametrize(("backbone", "parameters"), [("resnet50", 41_755_286), ("mobilenet_v3_large", 19_386_354)])
def test_every_backbone_has_its_published_number_of_parameters(backbone: Any, parameters: int) -> None:
    with torch.device("meta"):
        network = faster_rcnn(backbone, min_size=800, classes=90)  # of COCO's labels, as torchvision counts them
    # Those of its normalisations are frozen in what torchvision publishes, and not counted.
    learning = [module for module in network.modules() if not isinstance(module, nn.BatchNorm2d)]
    assert sum(one.numel() for module in learning for one in module.parameters(recurse=False)) == parameters


def test_it_is_torchvisions_own_and_every_weight_learns() -> None:
    torch.manual_seed(0)
    ours = faster_rcnn("mobilenet_v3_large", min_size=64, classes=3)
    torch.manual_seed(0)
    theirs = fasterrcnn_mobilenet_v3_large_fpn(
        weights=None, weights_backbone=None, num_classes=4, min_size=64, max_size=106
    )
    data = {"size": 48, "boxes": 4, "classes": 3, "items": 2, "test_items": 1, "resident": None, "workers": 0}
    images, targets = listed(list(load(data).train))  # type: ignore[call-overload]
    losses = []
    for network in (ours, theirs):
        torch.manual_seed(1)  # of the proposals, and of what is compared with the boxes, a part is drawn
        losses.append(network(images, targets))
    assert losses[0].keys() == losses[1].keys() and len(losses[0]) == 4
    assert all(torch.equal(losses[0][name], losses[1][name]) for name in losses[0])
    assert all(parameter.requires_grad for parameter in ours.parameters())


def detected(*rows: tuple[list[float], int, float]) -> dict[str, torch.Tensor]:
    boxes, labels, scores = zip(*rows, strict=True) if rows else ([], [], [])
    return {
        "boxes": torch.tensor(boxes).reshape(-1, 4),
        "labels": torch.tensor(labels, dtype=torch.int64),
        "scores": torch.tensor(scores),
    }


THERE = detected(([0, 0, 10, 10], 1, 1), ([20, 20, 30, 30], 2, 1))
WHOLE, HALF, LESS = [0.0, 0, 10, 10], [0.0, 0, 10, 5], [0.0, 0, 10, 4.9]
SHARES: list[tuple[list[tuple[list[float], int, float]], float]] = [
    ([], 0),
    ([(WHOLE, 1, 0.9)], 0.5),
    ([(HALF, 1, 0.5)], 0.5),
    ([(LESS, 1, 0.9)], 0),
    ([(WHOLE, 2, 0.9)], 0),
    ([(WHOLE, 1, 0.49)], 0),
    ([(WHOLE, 1, 0.9), (HALF, 1, 0.9)], 0.5),
    ([(WHOLE, 1, 0.9), ([20, 20, 30, 30], 2, 0.9), ([40, 40, 50, 50], 1, 0.9)], 1),
]


@pytest.mark.parametrize(("rows", "share"), SHARES)
def test_a_box_is_found_by_its_label_its_place_and_a_score(
    rows: list[tuple[list[float], int, float]], share: float
) -> None:
    assert float(metrics([detected(*rows)], [THERE])["boxes_found"]) == share


def test_the_figure_is_the_mean_over_images_of_which_one_may_have_no_box() -> None:
    outputs = [detected((WHOLE, 1, 0.9)), detected((WHOLE, 1, 0.9)), detected()]
    assert float(metrics(outputs, [THERE, detected(), THERE])["boxes_found"]) == 0.5


def trained(folder: Path, *words: str) -> Any:
    """The record of a trial."""
    return one_trial(cell(*words), folder)[0]


def test_two_trials_are_equal_bit_by_bit_and_another_seed_is_not(tmp_path: Path) -> None:
    records = [trained(tmp_path / str(number)) for number in range(2)]
    other = trained(tmp_path / "other", "seeds.base=1")
    assert [record.outcome for record in (*records, other)] == ["finished"] * 3, records[0].reason
    assert records[0].digests == records[1].digests and records[0].digests.final != other.digests.final
    assert set(records[0].metrics) == {"boxes_found"} and 0 <= records[0].metrics["boxes_found"] <= 1


@pytest.mark.parametrize("word", ["phase=infer", "precision=bf16", "probe=modules", "probe=ops"])
def test_it_works_in_other_ways(word: str, tmp_path: Path) -> None:
    record = trained(tmp_path, word)
    assert record.outcome == "finished", record.reason


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["model=faster_rcnn", "dataset=digits"], "model=faster_rcnn: needs data with the view custom"),
        (["model=resnet", "dataset=boxes"], "dataset=boxes offers custom"),
        (
            ["model=faster_rcnn", "dataset=custom", "dataset._target_=brought.boxes"],
            "dataset.classes=None: is needed by model=faster_rcnn in the view custom: dataset.classes=N",
        ),
        ([*DETECTOR, *DATA, "phase=calls"], "phase=calls: needs inputs that are one tensor"),
    ],
)
def test_what_does_not_go_together_is_refused(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        settings(*words)
    assert said in str(refused.value)


def test_a_users_own_boxes_are_taken(tmp_path: Path) -> None:
    own = ["dataset=custom", "dataset._target_=brought.boxes", "dataset.classes=1"]
    record, _ = one_trial(Cell(cell_config(settings(*DETECTOR, *SHORT, *own))), tmp_path)
    assert record.outcome == "finished", record.reason
    assert "boxes_found" in record.metrics


ROI_ALIGN = "torchvision._roi_align_backward.default"


@pytest.mark.parametrize("mode", ["default", "benchmark", "deterministic", "deterministic_benchmark"])
def test_what_no_flag_reaches_is_removed_by_strict_mode(mode: str) -> None:
    assert changes(ROI_ALIGN, mode=mode) == ["determinism=full"]
    assert changes(ROI_ALIGN, mode=mode, determinism=FULL) == [""]
    assert changes("torchvision._roi_pool_backward.default", mode=mode) == [""]


def test_of_what_strict_mode_refuses_the_way_out_is_told() -> None:
    (one,) = advice(found("torchvision._deform_conv2d_backward.default"), cell_config(settings("device=cuda")))
    assert "strict mode refuses it" in one.words


def test_the_recipe_asks_for_the_four_modes_at_every_size() -> None:
    for size, backbone in (("full", "resnet50"), ("reduced", "resnet50"), ("smoke", "mobilenet_v3_large")):
        cells, kept = asked("recipe=post_detector", f"recipe_size={size}")
        found = [settings_of(one.cell.config) for one in cells]
        assert sorted(one["cudnn"] for one in found) == [
            *("benchmark", "default"),
            *("deterministic", "deterministic_benchmark"),
        ]
        assert {(one["model.backbone"], one["dataset"], one["precision"]) for one in found} == {
            (backbone, "boxes", "default")
        }
        assert all(one["model.min_size"] == one["dataset.size"] for one in found)
        assert {row["statement"] for row in kept["recipe"]["published"]} == {"n"}


def test_the_recipe_ends_with_its_rows_and_the_posts_page_has_them(tmp_path: Path) -> None:
    words = ["recipe=post_detector", "recipe_size=smoke", "cudnn=default,deterministic", "trials=2", "train.steps=2"]
    made: Study = done(*words, "device=cpu", "threads=1", folder=tmp_path)
    assert [record.outcome for record in made.records()] == ["finished"] * 4
    summary = summarise(made)
    assert {one["reproducibility"]["verdict"] for one in summary["cells"]} == {"bitwise"}
    rows = {row["quantity"]: row for row in summary["recipe"]["rows"]}
    assert set(rows) == {"step_time_overhead", "fastest", "verdict"}
    (line,) = [one for one in post_page({"post_detector": summary}, {}).splitlines() if one.startswith("| (n)")]
    assert line.count("Faster R-CNN") >= 4 and line.endswith("| post_detector |")
