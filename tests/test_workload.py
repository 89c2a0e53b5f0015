"""What the machine decides where the settings leave it open."""

import pytest
from composed import settings

from runner.workload import CPU, GPU, device_of, many_rounds, settled


@pytest.mark.parametrize(
    ("asked", "gpus", "device"),
    [
        ("auto", (), "cpu"),
        ("auto", ("H200",), "cuda"),
        ("auto", ("H200", "H200"), "cuda"),
        ("cpu", ("H200",), "cpu"),
        ("cuda:1", (), "cuda:1"),
        ("mps", (), "mps"),
    ],
)
def test_auto_is_the_first_gpu_and_anything_else_is_taken_at_its_word(
    asked: str, gpus: tuple[str, ...], device: str
) -> None:
    assert device_of(asked, gpus) == device


@pytest.mark.parametrize(("device", "chosen"), [("cpu", CPU), ("cuda", GPU), ("cuda:1", GPU), ("mps", GPU)])
def test_open_values_are_decided_for_the_device(device: str, chosen: dict[str, int]) -> None:
    done = settled(settings(), device, 3)
    assert (done.device, done.threads, done.trials) == (device, 3, chosen["trials"])
    assert (done.train.steps, done.train.batch_size) == (chosen["steps"], chosen["batch_size"])
    assert done.dataset.size == chosen["size"]


def test_what_was_said_stays() -> None:
    said = ["train.steps=7", "train.batch_size=5", "threads=1", "trials=2", "dataset.size=9"]
    for device in ("cpu", "cuda"):
        done = settled(settings(*said), device, 3)
        assert (done.train.steps, done.train.batch_size, done.threads, done.trials, done.dataset.size) == (
            7,
            5,
            1,
            2,
            9,
        )


def test_epochs_take_the_place_of_steps() -> None:
    done = settled(settings("train.epochs=2"), "cpu", 1)
    assert (done.train.epochs, done.train.steps) == (2, None)


def test_only_the_digits_are_made_larger() -> None:
    done = settled(settings("dataset=image_folder", "dataset.root=pictures"), "cuda", 1)
    assert done.dataset.size is None


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_deciding_twice_changes_nothing(device: str) -> None:
    once = settled(settings(), device, 3)
    assert settled(once, device, 64) == once
    assert settled(once, device, 64).threads == 3


@pytest.mark.parametrize(
    ("asked", "many"),
    [
        ([["seeds=fixed"], ["seeds=all"]], True),
        ([["seeds=fixed"], ["seeds=init"], ["seeds=order"]], True),
        ([["seeds=init"], ["seeds=all"]], False),
        ([["seeds=fixed"], ["seeds=fixed", "cudnn=benchmark"]], False),
        ([["budget=10min"]], True),
    ],
)
def test_seeds_noise_beside_the_implementations_and_a_budget_take_many_rounds(
    asked: list[list[str]], many: bool
) -> None:
    assert many_rounds([settings(*words) for words in asked]) is many


def test_the_number_of_rounds_that_was_said_stays_whatever_the_question_needs() -> None:
    assert settled(settings(), "cpu", 1, rounds=20).trials == 20
    assert settled(settings("trials=3"), "cpu", 1, rounds=20).trials == 3
