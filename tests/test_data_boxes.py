"""Images with boxes: always the same, the rectangles where the targets say, each kind told from its colours."""

import hashlib
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch
from data_files import settings
from torchvision.ops import box_iou

from runner.data import Data, load
from runner.data.batches import test_batches, train_batches
from runner.errors import Refusal

CPU = torch.device("cpu")


def small(**changes: Any) -> Data:
    return load(settings("boxes", "custom", **{"items": 24, "test_items": 8, "size": 48} | changes))


def every(data: Data) -> list[Any]:
    return [data.train[index] for index in range(24)] + [data.test[index] for index in range(8)]


def digest(data: Data) -> str:
    tensors = [tensor for image, target in every(data) for tensor in (image, target["boxes"], target["labels"])]
    return hashlib.sha256(b"".join(tensor.numpy().tobytes() for tensor in tensors)).hexdigest()


def test_items_are_as_torchvisions_detectors_take_them() -> None:
    data = small(boxes=5, classes=7)
    assert (data.view, data.input_shape, data.classes) == ("custom", (3, 48, 48), 7)
    assert [len(part) for part in (data.train, data.test)] == [24, 8]  # type: ignore[arg-type]
    for image, target in every(data):
        assert (image.dtype, tuple(image.shape)) == (torch.float32, (3, 48, 48))
        assert image.min() >= 0 and image.max() <= 1
        assert set(target) == {"boxes", "labels"}
        assert (target["boxes"].dtype, target["labels"].dtype) == (torch.float32, torch.int64)
        assert 1 <= len(target["labels"]) <= 5 and target["boxes"].shape == (len(target["labels"]), 4)
        assert target["labels"].min() >= 1 and target["labels"].max() <= 7


@pytest.mark.parametrize(("boxes", "rows"), [(1, 1), (2, 2), (4, 2), (5, 3), (9, 3)])
def test_boxes_lie_within_the_image_at_half_a_cell_or_more_and_none_over_another(boxes: int, rows: int) -> None:
    data, counts = small(boxes=boxes), set()
    for _, target in every(data):
        found = target["boxes"]
        sides = found[:, 2:] - found[:, :2]
        assert found.min() >= 0 and found.max() <= 48
        assert sides.min() >= 48 // rows // 2 and sides.max() <= 48 // rows
        assert torch.equal(box_iou(found, found) > 0, torch.eye(len(found), dtype=torch.bool))
        counts.add(len(found))
    assert counts == set(range(1, boxes + 1))


def test_what_lies_in_no_box_is_dark_and_every_kind_has_colours_of_its_own() -> None:
    colours: dict[int, list[torch.Tensor]] = {}
    for image, target in every(small(classes=3)):
        outside = torch.ones(48, 48, dtype=torch.bool)
        for box, label in zip(target["boxes"].int().tolist(), target["labels"].tolist(), strict=True):
            left, top, right, bottom = box
            outside[top:bottom, left:right] = False
            colours.setdefault(label, []).append(image[:, top : top + 4, left : left + 4])
        assert image[:, outside].max() < 0.25 < image.max()
    means = {label: torch.stack(seen).mean(0) for label, seen in colours.items()}
    assert sorted(means) == [1, 2, 3]
    for label, seen in colours.items():
        for patch in seen:
            assert min(means, key=lambda other: float((patch - means[other]).square().sum())) == label


def test_the_same_whatever_the_global_generators_hold() -> None:
    digests = set()
    for seed in (1, 2):
        random.seed(seed), np.random.seed(seed), torch.manual_seed(seed)
        digests.add(digest(small()))
    assert len(digests) == 1


def test_the_same_in_another_process() -> None:
    code = "import sys; sys.path.insert(0, 'tests'); from test_data_boxes import *; print(digest(small()))"
    other = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert other.strip() == digest(small())


def test_an_item_depends_on_its_number_alone_and_the_test_set_is_another() -> None:
    few, many = small(items=2), small(items=24)
    assert torch.equal(few.train[1][0], many.train[1][0])
    assert not torch.equal(many.train[0][0], many.train[1][0])
    assert not torch.equal(many.train[0][0], many.test[0][0])


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_are_lists_in_an_order_of_the_seed(workers: int) -> None:
    data = small(workers=workers)
    taken = [list(train_batches(data, 3, 4, CPU, seed, 0)) for seed in (1, 1, 2)]
    images, targets = taken[0][0]
    assert isinstance(images, list) and isinstance(targets, list) and len(images) == len(targets) == 3
    sums = [[float(image.sum()) for images, _ in batches for image in images] for batches in taken]
    assert sums[0] == sums[1] != sums[2]
    assert [len(images) for images, _ in test_batches(data, 3, CPU)] == [3, 3, 2]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"size": 23, "boxes": 9}, r"dataset\.size=23: dataset\.boxes=9 rectangles need at least 24 pixels"),
        ({"resident": True}, r"dataset\.resident=True: images with boxes are streamed"),
    ],
)
def test_what_cannot_be_made_is_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(Refusal, match=words):
        small(**changes)


def test_the_smallest_image_for_so_many_boxes_is_taken() -> None:
    assert len(small(size=24, boxes=9).train) == 24  # type: ignore[arg-type]
