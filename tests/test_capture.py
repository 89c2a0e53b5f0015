"""Captures: what they keep of an operation, and what they find out about it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from broken.sitecustomize import Broken
from captures import captured
from torch import Tensor, nn
from traced import Counting

from runner.errors import StudyError
from runner.layout import tensors_file
from runner.size import Size
from runner.worker.capture import REPEATS


def saved(folder: Path, index: int = 0) -> dict[str, Any]:
    loaded: dict[str, Any] = torch.load(tensors_file(folder, index), weights_only=True)
    return loaded


def given(*size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(*size, generator=torch.Generator().manual_seed(3)).to(dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_the_error_is_that_of_these_results_against_float64(tmp_path: Path, dtype: torch.dtype) -> None:
    one, other = given(16, 32, dtype=dtype), given(32, 8, dtype=dtype)
    kept = captured(tmp_path, lambda: torch.mm(one, other)).operations[0]
    exact = one.double().numpy() @ other.double().numpy()
    off = torch.mm(one, other).double().numpy() - exact
    assert kept.relative_error == pytest.approx(np.linalg.norm(off) / np.linalg.norm(exact), rel=1e-6)
    assert kept.repeated == Size(16 * 8, 0, 0, 0.0) and kept.left_out == []


def test_noise_shows_in_repeats_and_in_the_error(tmp_path: Path) -> None:
    inputs = given(64)
    with Broken("aten.relu.default", "repeated"):
        found = captured(tmp_path, lambda: torch.relu(inputs))
    repeated = found.operations[0].repeated
    assert repeated and 20 < repeated.differing <= repeated.elements == 64
    assert repeated.max_ulp and 1e-5 < (repeated.max_relative or 0) < 1
    assert 1e-5 < (found.operations[0].relative_error or 0) < 1


def test_inputs_are_kept_as_they_were_before_the_call(tmp_path: Path) -> None:
    target, addend = torch.ones(3), torch.full((3,), 2.0)
    found = captured(tmp_path, lambda: target.add_(addend))
    assert torch.equal(saved(tmp_path)["args"][0], torch.ones(3)) and torch.equal(target, torch.full((3,), 3.0))
    assert found.outputs(0)[0].bits.tolist() == target.numpy().view(np.uint32).tolist()
    assert found.operations[0].repeated is None and found.operations[0].relative_error == 0


def test_statistics_that_a_kernel_changes_silently_are_kept_as_they_were(tmp_path: Path) -> None:
    norm, inputs = nn.BatchNorm2d(2), given(4, 2, 3, 3)
    found = captured(tmp_path, lambda: norm(inputs), indices=range(3))
    (index,) = [index for index, one in found.operations.items() if "batch_norm" in one.name]
    assert torch.equal(saved(tmp_path, index)["args"][3], torch.zeros(2)) and norm.running_mean.abs().sum() > 0
    assert found.operations[index].repeated == Size(4 * 2 * 9 + 4 + 4, 0, 0, 0.0)


@pytest.mark.parametrize(
    "view",
    [
        lambda one: one.t(),
        lambda one: one[2:4, 3:5],
        lambda one: one[0].expand(7, -1),
        lambda one: one[5, 3],
        lambda one: one[:0],
        lambda one: one.view(10, 2, 5).permute(2, 0, 1)[1:3],
    ],
)
def test_strides_and_alignment_are_kept_and_no_more_memory_than_needed(
    tmp_path: Path, view: Callable[[Tensor], Tensor]
) -> None:
    tensor = view(given(100, 100)[:10, :10].contiguous())
    captured(tmp_path, lambda: torch.relu(tensor))
    copy = saved(tmp_path)["args"][0]
    assert (copy.size(), copy.stride()) == (tensor.size(), tensor.stride()) and torch.equal(copy, tensor)
    assert (copy.storage_offset() - tensor.storage_offset()) % 16 == 0
    assert copy.untyped_storage().nbytes() <= 4 * (100 + 16)
    assert tensor.numel() == 0 or copy.untyped_storage().nbytes() < tensor.untyped_storage().nbytes() + 64


def test_a_list_that_is_changed_in_place_is_the_result(tmp_path: Path) -> None:
    weights = [torch.ones(2), torch.ones(3)]
    found = captured(tmp_path, lambda: torch._foreach_mul_(weights, 3.0))
    assert [one.bits.view(np.float32).tolist() for one in found.outputs(0)] == [[3.0] * 2, [3.0] * 3]
    assert [one.tolist() for one in saved(tmp_path)["args"][0]] == [[1.0] * 2, [1.0] * 3]


def test_what_can_only_be_named_is_loaded_without_pickled_code(tmp_path: Path) -> None:
    captured(tmp_path, lambda: given(1, 2, 3, 3).clone(memory_format=torch.channels_last).to(torch.bfloat16), (0, 1, 2))
    kinds = {saved(tmp_path, index)["name"]: saved(tmp_path, index)["kwargs"] for index in (1, 2)}
    assert kinds["aten.clone.default"] == {"memory_format": "torch.channels_last"}
    assert kinds["aten._to_copy.default"]["dtype"] is torch.bfloat16


def test_random_operations_are_named_and_not_kept(tmp_path: Path) -> None:
    torch.manual_seed(1)
    expected = nn.functional.dropout(torch.ones(50), 0.5), torch.rand(1)
    torch.manual_seed(1)
    seen: list[Tensor] = []
    found = captured(tmp_path, lambda: seen.append(nn.functional.dropout(torch.ones(50), 0.5)), range(20))
    assert torch.equal(seen[0], expected[0]) and torch.equal(torch.rand(1), expected[1])
    drawn = [one for one in found.operations.values() if one.left_out == ["nothing saved: it draws random numbers"]]
    assert [one.name for one in drawn] == ["aten.bernoulli_.float"]
    assert not drawn[0].tensors and not tensors_file(tmp_path, drawn[0].index).exists()


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (lambda: given(5).double().relu_(), "it works in float64 itself"),
        (lambda: given(5).argmax(), "it gives no floating-point numbers"),
    ],
)
def test_no_error_against_float64_has_a_reason(tmp_path: Path, work: Callable[[], Tensor], reason: str) -> None:
    found = captured(tmp_path, work, range(9)).operations
    last = found[max(found)]
    assert last.relative_error is None and last.left_out == [f"not done in float64: {reason}"]


def test_what_is_too_large_is_looked_at_and_not_saved(tmp_path: Path) -> None:
    found = captured(tmp_path, lambda: torch.mm(given(40, 40), given(40, 2)), range(3), limit_bytes=1000)
    large = found.operations[2]
    assert (large.tensors, large.outputs) == (False, True) and large.relative_error is not None
    assert large.left_out == ["inputs not saved: they take 6.72 kB, more than 1 kB"]
    assert not tensors_file(tmp_path, 2).exists() and len(found.outputs(2)) == 1


@pytest.mark.parametrize(
    ("make", "form"),
    [
        (lambda: torch.eye(3).to_sparse(), "torch.sparse_coo, torch.float32, cpu"),
        (lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]), "nested"),
        (lambda: torch.ones(2, device="meta"), "torch.strided, torch.float32, meta"),
    ],
)
@pytest.mark.filterwarnings("ignore::UserWarning")  # nested tensors are said to be a prototype
def test_tensors_of_other_kinds_are_named_and_not_kept(tmp_path: Path, make: Callable[[], Tensor], form: str) -> None:
    odd = make()
    found = captured(tmp_path, lambda: odd * 2)
    assert found.operations[0].left_out == [f"nothing saved: an input is a Tensor ({form})"]


def test_the_looking_is_seen_by_nobody(tmp_path: Path) -> None:
    inputs = given(4)
    with Counting() as counting:
        captured(tmp_path, lambda: torch.relu(inputs))
    assert counting.names == ["aten.relu.default"] * (1 + REPEATS + 1), "the operation, its repeats, and in float64"


def test_inputs_are_told_apart_by_bits_and_by_scalars(tmp_path: Path) -> None:
    works = {"a": (1.0, 2.0), "b": (1.0, 2.0), "c": (1.5, 2.0), "d": (1.0, 3.0)}
    found = {
        name: captured(tmp_path / name, lambda pair=pair: torch.ones(2).mul(pair[0]).add(pair[1]), (2,))
        for name, pair in works.items()
    }
    digests = {name: one.operations[2].inputs for name, one in found.items()}
    assert digests["a"] == digests["b"] and len(set(digests.values())) == 3


def test_scratch_among_the_inputs_is_passed_over(tmp_path: Path) -> None:
    def work(scratch: int, weight: float) -> None:
        alpha = torch.ops.aten._ctc_loss(torch.zeros(3, 1, 2), torch.tensor([[1]]), [3], [1])[1]
        alpha.numpy()[:] = scratch  # behind PyTorch's back, as what a kernel leaves there
        torch.ops.aten.mul(torch.full((3,), weight), alpha)

    works = {"one": (3, 1.0), "other": (7, 1.0), "weight": (3, 2.0)}
    found = {name: captured(tmp_path / name, lambda how=how: work(*how), range(9)) for name, how in works.items()}
    products = {
        name: next(operation for operation in one.operations.values() if operation.name == "aten.mul.Tensor")
        for name, one in found.items()
    }
    assert products["one"].inputs == products["other"].inputs != products["weight"].inputs


@pytest.mark.parametrize("keep", [None, 0, 100, -1])
def test_tensors_that_are_missing_or_damaged_are_told_without_pytorch(tmp_path: Path, keep: int | None) -> None:
    found = captured(tmp_path, lambda: torch.relu(given(50)), (0, 1))
    path = tensors_file(tmp_path, 1)
    assert found.tensors(1) == path
    content = path.read_bytes()
    if keep is None:
        path.unlink()
    else:
        path.write_bytes(content[:keep])
    with pytest.raises(StudyError, match=rf"operation-1\.pt: the tensors .*{'missing' if keep is None else 'damaged'}"):
        found.tensors(1)
    path.write_bytes(bytes(reversed(content)))
    with pytest.raises(StudyError, match="damaged; remove its folder"):
        found.tensors(1)


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_gradient_on_a_gpu_is_kept_with_its_device(tmp_path: Path, dtype: torch.dtype) -> None:
    layer = nn.Conv2d(64, 64, 3, padding=1, device="cuda", dtype=dtype).to(memory_format=torch.channels_last)
    images = given(8, 64, 16, 16, dtype=dtype).cuda().contiguous(memory_format=torch.channels_last).requires_grad_()
    found = captured(tmp_path, lambda: layer(images).sum().backward(), range(99)).operations
    (gradient,) = [one for one in found.values() if one.name == "aten.convolution_backward.default"]
    assert gradient.tensors and gradient.outputs
    assert 0 < (gradient.relative_error or 0) < 0.01
    loaded = saved(tmp_path, gradient.index)["args"]
    assert loaded[1].is_cuda and loaded[1].stride() == images.stride() and torch.equal(loaded[1], images)


def test_an_output_that_should_be_zero_does_not_make_the_error(tmp_path: Path) -> None:
    inputs = given(1001)
    centred = inputs - inputs.mean()
    mean = float(centred.mean())  # 0 but for rounding, as the gradient of a bias before a batch norm is
    assert abs(mean / float(centred.double().mean()) - 1) > 1e-3
    found = captured(tmp_path, lambda: torch.ops.aten.var_mean.correction(centred, [0], correction=0))
    assert 0 < (found.operations[0].relative_error or 0) < 1e-6
