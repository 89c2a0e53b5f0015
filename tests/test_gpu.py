"""What only an NVIDIA GPU can show. Each test skips without one."""

import json
import shutil
from pathlib import Path
from statistics import median
from typing import Any

import pytest
import torch
from conftest import call, study

from runner.data import load
from runner.data.batches import train_batches
from runner.data.residence import place
from runner.record import Record
from runner.worker.build import compiled
from runner.worker.contract import Task
from runner.worker.deferred import Deferred, in_one_pass
from runner.worker.digest import BLOCK, digest, lanes, text
from runner.worker.evaluate import evaluate
from runner.worker.train import train_model

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
DEVICE = torch.device("cuda")
SYNTHETIC = {
    "name": "synthetic",
    "view": "image",
    "items": 64,
    "test_items": 16,
    "channels": 3,
    "classes": 10,
    "size": 32,
    "sizes": [],
    "length": 32,
    "lengths": [],
    "resident": None,
    "workers": 0,
}
CONFIG = {
    "train": {
        "optimizer": "sgd",
        "learning_rate": 0.01,
        "momentum": 0.9,
        "weight_decay": 0.0,
        "schedule": "cosine",
        "evaluate_every": None,
    },
    "dataset": {"view": "image"},
    "precision": {"name": "fp32"},
}


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_nothing_waits_for_the_device_between_steps(precision: str, optimizer: str) -> None:
    from runner.models.resnet import resnet
    from runner.worker.clock import Clock, recorded_event

    data = place(load(SYNTHETIC), DEVICE)
    model = resnet(depth=10, cifar_stem=True, channels=3, classes=10).to(DEVICE)
    batches = train_batches(data, 16, 20, DEVICE, order_seed=1, augment_seed=1)

    def watched() -> object:
        for number, batch in enumerate(batches):
            if number == 1:  # the first step checks its targets, which waits once
                torch.cuda.set_sync_debug_mode("error")
            yield batch

    try:
        config = {**CONFIG, "train": {**CONFIG["train"], "optimizer": optimizer}, "precision": {"name": precision}}
        task, clock = Task("image", 10), Clock(recorded_event)
        trained = train_model(model, task, watched(), config, 20, clock, lambda: None)  # type: ignore[arg-type]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    assert len(trained.losses) == 20


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8])
def test_a_digest_is_the_same_on_both_devices(dtype: torch.dtype) -> None:
    tensors = [(torch.randn(3, 1001) * 100).to(dtype), (torch.randn(7) * 100).to(dtype)]
    there = [tensor.to(DEVICE) for tensor in tensors]
    assert digest(tensors) == digest(there) == text(lanes(there), there)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16, torch.float64, torch.int64])
@pytest.mark.parametrize("size", [1, BLOCK, 3 * BLOCK + 5, 1100 * BLOCK + 3])
def test_the_one_pass_over_a_tensor_finds_the_digest_and_what_is_not_finite(dtype: torch.dtype, size: int) -> None:
    pytest.importorskip("triton")
    assert in_one_pass(DEVICE) is not None
    tensor = torch.arange(size, device=DEVICE).remainder(1000).to(dtype)
    looked_at = Deferred()
    said: list[str | None] = [None]
    looked_at.look(tensor, finite=True)
    if dtype.is_floating_point:
        for number, name in (("inf", "inf"), ("nan", "nan")):
            tensor = tensor.clone()
            tensor[size // 2] = float(number)
            looked_at.look(tensor, finite=True)
            said.append(name)
    digests, finite = looked_at.read()
    assert digests[-1] == lanes([tensor.cpu()]).numpy().tobytes().hex()
    assert finite == (said if dtype.is_floating_point else [])


def test_the_flags_matter_for_a_convolutional_network(tmp_path: Path) -> None:
    words = ["trials=3", "train.steps=30", "train.optimizer=sgd", "train.learning_rate=0.01"]
    done = study("cudnn=glob(*)", *words, folder=tmp_path)
    cells = json.loads(done.summary_json.read_text())["cells"]
    verdicts = {cell["label"].split(" ")[0]: cell["reproducibility"]["verdict"] for cell in cells}
    assert verdicts["deterministic"] == "bitwise"
    assert verdicts["default"] == "differs"
    assert "inert" not in {cell["speed"]["ratio_to_baseline"]["verdict"] for cell in cells}
    assert all(record.environment["gpu_uuid"] for record in done.records())
    assert all(record.speed and record.speed.wait_ms < 5 for record in done.records())  # type: ignore[operator]


WORDS = ["train.optimizer=sgd", "train.learning_rate=0.01"]
CUSTOM = ["model=custom", "model._target_=planted_gpu.Stopwatch", "dataset=synthetic", "dataset.view=image"]


def test_an_outside_stopwatch_agrees_with_the_steady_step(tmp_path: Path) -> None:
    """From forward to forward: what lies between two steps (a batch, its digest) is beside 70 ms next to nothing."""
    sizes = ["dataset.items=2048", "dataset.test_items=256", "dataset.size=32", "dataset.channels=3"]
    words = [f"+model.args.path={tmp_path}/outside", "precision=fp32", "train.batch_size=512", "train.steps=140"]
    done = study(*CUSTOM, *sizes, *words, *WORDS, "trials=1", folder=tmp_path)
    (record,) = done.records()
    assert record.speed
    outside_ms = float((tmp_path / "outside").read_text())
    assert outside_ms > 20  # long beside what lies between the steps
    assert record.speed.step_ms == pytest.approx(outside_ms, rel=0.005)


def test_a_full_launch_queue_is_told_from_a_host_that_is_too_slow(tmp_path: Path) -> None:
    """A DenseNet has more launches a step than CUDA queues; on one small image the device waits for each of them."""
    images = ["dataset=synthetic", "dataset.items=256", "dataset.test_items=64", "dataset.size=224"]
    wide = ["model=torchvision", "model.architecture=densenet121", *images, "train.batch_size=64", "precision=fp32"]
    few = ["train.steps=20", "trials=2", *WORDS]
    (dense,) = cells_of(study(*wide, *few, folder=tmp_path / "wide"))
    assert dense["speed"]["enqueue_ms"] > 0.9 * dense["speed"]["step_ms"]["mean"]  # or it shows nothing
    assert dense["speed"]["lag_ms"] > 0.1 * dense["speed"]["step_ms"]["mean"]
    assert (dense["speed"]["host_bound"], dense["speed"]["synchronizing"]) == (False, 0)
    narrow = ["model=torchvision", "model.architecture=densenet121", *images, "train.batch_size=1", "dataset.size=64"]
    (small,) = cells_of(study(*narrow, *few, folder=tmp_path / "narrow"))
    assert small["speed"]["lag_ms"] < 0.1 * small["speed"]["step_ms"]["mean"]
    assert (small["speed"]["host_bound"], small["speed"]["synchronizing"]) == (True, 0)


def test_a_model_that_waits_for_its_own_results_is_not_called_bound_by_the_host(tmp_path: Path) -> None:
    custom = ["model=custom", "model._target_=planted_gpu.Waits", "dataset=digits"]
    (cell,) = cells_of(study(*custom, "phase=infer", "train.steps=20", "trials=2", folder=tmp_path))
    assert cell["speed"]["enqueue_ms"] > 0.9 * cell["speed"]["step_ms"]["mean"]  # or it shows nothing
    assert (cell["speed"]["host_bound"], cell["speed"]["synchronizing"]) == (None, 2)


def cells_of(done: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.summary_json.read_text())["cells"]
    return found


def convolution(*benchmark: bool, folder: Path) -> list[tuple[float, float]]:
    """The first step under each flag and the median of the others, of flags that follow one another in a process."""
    done = call("planted_gpu", *map(str, benchmark), folder=folder)
    assert done.returncode == 0, done.stderr
    return [(first, median(others)) for first, *others in json.loads(done.stdout)]


def test_in_one_process_the_benchmark_flag_is_without_effect_and_in_fresh_ones_it_is_not(tmp_path: Path) -> None:
    (_, off), (then_on_first, then_on) = convolution(False, True, folder=tmp_path)
    (_, on), (_, then_off) = convolution(True, False, folder=tmp_path)
    assert then_on_first == pytest.approx(off, rel=0.02)  # nothing was tuned
    assert then_on == pytest.approx(off, rel=0.02)
    assert then_off == pytest.approx(on, rel=0.02)  # the tuned plan stays in use
    assert on < 0.95 * off


def test_answers_are_timed_one_by_one_and_in_a_stream(tmp_path: Path) -> None:
    words = ["cudnn=default,deterministic", "phase=infer", "train.batch_size=1,64", "train.steps=200"]
    done = study(*words, "trials=2", folder=tmp_path)
    throughputs: dict[int, list[float]] = {1: [], 64: []}
    sizes = {cell.id: cell.config["train"]["batch_size"] for cell in done.cells()}
    for record in done.records():
        speed = speed_of(record)
        assert speed.p99_ms >= speed.step_ms >= speed.enqueue_ms * 0.5 > 0
        throughputs[sizes[record.cell]].append(speed.samples_per_s)
    assert {size: len(found) for size, found in throughputs.items()} == {1: 4, 64: 4}
    assert min(throughputs[64]) > 5 * max(throughputs[1])
    cells = json.loads(done.summary_json.read_text())["cells"]
    assert {cell["reproducibility"]["verdict"] for cell in cells if "deterministic" in cell["label"]} == {"bitwise"}


def speed_of(record: Record) -> Any:
    assert (record.outcome, record.reason) == ("finished", None)
    return record.speed


needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="torch.compile needs a C compiler and Triton"
)


@needs_compiler
@pytest.mark.parametrize("phase", ["train", "infer"])
@pytest.mark.parametrize("mode", ["default", "max-autotune"])
def test_compiling_is_told_apart(mode: str, phase: str, tmp_path: Path) -> None:
    # A model of matrix products alone: the longest tuning takes seconds, and every kind of compiled code is in it.
    data = ["dataset=custom", "dataset._target_=planted.plain_data", "dataset.view=image", "dataset.classes=10"]
    model = ["model=custom", "model._target_=planted.Plain"]
    words = [*data, *model, f"train.compile={mode}", f"phase={phase}", "train.steps=30", "train.batch_size=24"]
    done = study(*words, *WORDS, "trials=2", folder=tmp_path)
    for record in done.records():
        speed = speed_of(record)
        assert 0 < speed.compile_s < speed.steps_s
        assert speed.compile_s > 0.3 * speed.steps_s
        assert speed.step_ms < speed.first_step_ms / 100


@needs_compiler
def test_predictions_of_a_cuda_graph_are_kept() -> None:
    torch.manual_seed(0)
    model = torch.nn.Linear(64, 64).to(DEVICE)
    batches = [(torch.randn(size, 64, device=DEVICE), torch.randn(size, 64, device=DEVICE)) for size in (32, 32, 32, 7)]
    models = [compiled(model, mode) for mode in ("off", "max-autotune")]
    found = [evaluate(one, Task("forecast", 64), batches, DEVICE, None) for one in models]
    torch.testing.assert_close(*(torch.from_numpy(one.predictions) for one in found), rtol=0.01, atol=0.01)
    assert found[0].metrics["mae"] == pytest.approx(found[1].metrics["mae"], rel=0.01)


def test_the_state_of_the_device_is_recorded(tmp_path: Path) -> None:
    words = ["model.depth=18", "precision=fp32", "train.batch_size=256", "train.steps=120"]
    done = study(*words, *WORDS, "trials=1", folder=tmp_path)
    (record,) = done.records()
    before, after = record.covariates["before"], record.covariates["after"]
    for name, least, most in (
        ("sm_clock_mhz", 100, 5000),
        ("memory_clock_mhz", 100, 20_000),
        ("temperature_c", 10, 110),
        ("power_w", 10, 2000),
        ("utilization_percent", 0, 100),
    ):
        assert all(least <= found[name] <= most for found in (before, after)), name  # type: ignore[operator]
    assert before["other_processes"] == after["other_processes"] == 0
    assert isinstance(after["throttle_reasons"], str)
    used_j = (after["energy_mj"] - before["energy_mj"]) / 1000  # type: ignore[operator]
    speed = speed_of(record)
    assert speed.steps_s > 1
    # The steps after the first, idle never: some of what was used between the two looks, at a power that cards have.
    of_steps_j = speed.energy_j_per_sample * 256 * 119
    assert 0.3 * used_j < of_steps_j <= used_j
    assert 50 < of_steps_j / speed.steps_s < 1500
    assert speed.p99_ms >= speed.step_ms
