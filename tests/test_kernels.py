"""Kernels by operation and module: from lists of events as a GPU gives them, and from a real profile on the CPU."""

from collections import Counter
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import DeviceType
from torch.nn import functional as F
from torch.optim import SGD
from torch.utils.checkpoint import checkpoint
from traced import trial_of

from runner.errors import StudyError
from runner.kernel_use import KernelCall, KernelUse
from runner.layout import kernels_file
from runner.worker.kernels import MODULE, OPTIMIZER, Event, KernelProbe, cudnn_convolution, events_of, kernel_calls

pytestmark = pytest.mark.usefixtures("one_thread")

FPROP = "sm80_xmma_fprop_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x128x8_stage3_warpsize2x2x1_g1_ffma"
WGRAD = "cutlass_80_wgrad_simt_s_128x64_8x5_nchw_align1"
DIRECT = "void cudnn::cnn::wgrad2d_grouped_direct_kernel<float, float, int, float, float, true, false, 1, 0, 3>(...)"
DGRAD = "sm80_xmma_dgrad_implicit_gemm_f32f32_f32f32_f32_nchwkcrs_nchw_tilesize128x64x8_stage3_warpsize2x2x1_g1_ffma"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, std::array<char*, 3ul> >"
GEMM = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x32_8x5_nn_align1>(cutlass_80_simt_sgemm_128x32_8x5_nn::Params)"
DEPTHWISE = "void at::native::(anonymous namespace)::conv_depthwise2d_grad_weight_kernel<float, float>(...)"
BACKWARD, USER = 1, 7
SHAPES = ("64x512x7x7", "512x512x3x3")


def one_layer() -> list[Event]:
    """A convolution of layer4.1.conv2 forward and backward, and the optimizer, on a GPU: backward in its own thread."""
    return [
        Event(f"{MODULE}", scope=USER),
        Event(f"{MODULE}layer4.1.conv2", 0, scope=USER),
        Event("aten::conv2d", 1, sequence=8, shapes=SHAPES),
        Event("aten::convolution", 2, sequence=8, shapes=SHAPES),
        Event("aten::_convolution", 3, shapes=SHAPES),
        Event("aten::cudnn_convolution", 4, shapes=SHAPES, kernels=(FPROP,)),
        Event("cudaLaunchKernel", 5),
        Event("aten::add_", 0, sequence=9, shapes=("64x512x7x7", "64x512x7x7"), kernels=(ADD,)),
        Event("autograd::engine::evaluate_function: ConvolutionBackward0", None, 2, 1, 8),
        Event("ConvolutionBackward0", 8, 2, 1, 8, BACKWARD, ("64x512x7x7",)),
        Event("aten::convolution_backward", 9, 2, 0, -1, 0, (SHAPES[0], *SHAPES), (DGRAD, WGRAD)),
        Event("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", None, 2),
        Event("torch::autograd::AccumulateGrad", 11, 2, 1, -1, BACKWARD, ("512x512x3x3",)),
        Event("aten::add_", 12, 2, 0, -1, 0, ("512x512x3x3", "512x512x3x3"), (ADD,)),
        Event(OPTIMIZER, scope=USER),
        Event("Optimizer.step#SGD.step", 14, scope=USER),
        Event("aten::_foreach_add_", 15, kernels=("void at::native::multi_tensor_apply_kernel<...>",) * 2),
    ]


def test_kernels_have_the_operation_that_started_them_its_part_and_its_module() -> None:
    assert kernel_calls(one_layer(), on_gpu=True) == [
        KernelCall("aten::cudnn_convolution", "layer4.1.conv2", "forward", SHAPES, (FPROP,)),
        KernelCall("aten::add_", "", "forward", ("64x512x7x7",) * 2, (ADD,)),
        KernelCall("aten::convolution_backward", "layer4.1.conv2", "backward", (SHAPES[0], *SHAPES), (DGRAD, WGRAD)),
        KernelCall("aten::add_", "", "backward", ("512x512x3x3",) * 2, (ADD,)),
        KernelCall(
            "aten::_foreach_add_", "", "optimizer", (), ("void at::native::multi_tensor_apply_kernel<...>",) * 2
        ),
    ]


def test_a_backward_node_belongs_to_the_last_operation_before_its_number_was_taken_in_its_own_thread() -> None:
    events = [
        Event(f"{MODULE}norm", scope=USER),
        Event("aten::add_", 0, sequence=3),  # makes no node: the next one gets the number
        Event(f"{MODULE}linear", scope=USER),
        Event("aten::addmm", 2, sequence=3, kernels=(GEMM,)),
        Event(f"{MODULE}again", thread=2, scope=USER),
        Event("aten::addmm", 4, thread=2, sequence=3, kernels=(GEMM,)),  # another thread counts for itself
        Event("AddmmBackward0", None, 2, 1, 3, BACKWARD),
        Event("aten::mm", 6, 2, kernels=(GEMM,)),
        Event("AddmmBackward0", None, 2, 2, 3, BACKWARD),
        Event("aten::mm", 8, 2, kernels=(GEMM,)),
    ]
    found = [(call.part, call.module) for call in kernel_calls(events, on_gpu=True)]
    assert found == [("forward", "linear"), ("forward", "again"), ("backward", "linear"), ("backward", "again")]


def test_kernels_without_an_operation_are_told_and_the_profilers_own_cost_is_not() -> None:
    events = [
        Event(f"{MODULE}custom", scope=USER, kernels=("my_kernel",)),
        Event("Lazy Function Loading", kernels=(FPROP,)),
        Event("triton_poi_fused_relu_0", 0, kernels=("triton_poi_fused_relu_0",)),
        Event("MyFunctionBackward", None, 2, 1, 5, BACKWARD, (), ("my_backward_kernel",)),
    ]
    assert [(call.name, call.module, call.kernels) for call in kernel_calls(events, on_gpu=True)] == [
        ("kernels of no operation", "custom", ("my_kernel",)),
        ("triton_poi_fused_relu_0", "custom", ("triton_poi_fused_relu_0",)),
        ("MyFunctionBackward", "", ("my_backward_kernel",)),
    ]


def call(name: str, *kernels: str) -> KernelCall:
    return KernelCall(name, "conv", "backward", SHAPES, kernels)


@pytest.mark.parametrize(
    ("calls", "by_cudnn"),
    [
        ([call("aten::cudnn_convolution", FPROP)], True),
        ([call("aten::cudnn_convolution_transpose", DGRAD)], True),
        ([call("aten::convolution_backward", WGRAD)], True),
        ([call("aten::convolution_backward", ADD, DIRECT)], True),
        ([call("aten::convolution_backward", DEPTHWISE), call("aten::_conv_depthwise2d", ADD)], False),
        ([call("aten::slow_conv_dilated2d", GEMM)], False),
        ([call("aten::mkldnn_convolution"), call("aten::convolution_backward")], False),
        ([call("aten::mm", GEMM), call("aten::_cudnn_rnn", "cudnn_infer_kernel")], None),
        ([], None),
    ],
)
def test_whether_cudnn_did_a_convolution(calls: list[KernelCall], by_cudnn: bool | None) -> None:
    assert cudnn_convolution(calls) is by_cudnn


def profiled(name: str, start: int, parent: Any = None, **what: Any) -> Any:
    """An event as the profiler gives it, with what is read of it alone."""
    usual = {"device_type": DeviceType.CPU, "is_async": False, "thread": 1, "fwd_thread": None, "sequence_nr": -1}
    usual |= {"scope": 0, "input_shapes": [], "kernels": [], "cpu_parent": parent}
    return SimpleNamespace(name=name, start=start, **usual | what)


def test_events_are_read_from_the_profilers() -> None:
    ranges = profiled(f"{MODULE}conv", 0, scope=USER, kernels=[SimpleNamespace(name=f"{MODULE}conv")])
    shapes = [[64, 3, 7, 7], [], [4], [[1, 2], [3]], None]
    kernels = [SimpleNamespace(name=name) for name in (FPROP, ADD)]
    operation = profiled("aten::cudnn_convolution", 1, ranges, input_shapes=shapes, kernels=kernels, fwd_thread=3)
    on_device = profiled(FPROP, 2, device_type=DeviceType.CUDA)
    waiting = profiled("aten::async", 3, is_async=True)
    assert events_of([ranges, operation, on_device, waiting]) == [
        Event(f"{MODULE}conv", scope=USER),
        Event("aten::cudnn_convolution", 0, forward_thread=3, shapes=("64x3x7x7", "4"), kernels=(FPROP, ADD)),
    ]


class Net(nn.Module):
    """A convolution, a residual sum, a block that is computed again, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm, self.relu = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2), nn.ReLU(inplace=True)
        self.again, self.last = nn.Sequential(nn.Flatten(), nn.Linear(32, 4)), nn.Linear(4, 3)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs = self.relu(self.norm(self.conv(inputs)) + inputs)
        return self.last(checkpoint(self.again, outputs, use_reentrant=False))  # type: ignore[no-any-return]


def traced(model: nn.Module, steps: int = 2, fails: bool = False, taken: int = 3) -> KernelProbe:
    """The probe after a training on the CPU in which step `steps` was profiled."""
    trial, optimizer = trial_of("kernels", steps, number=4), SGD(model.parameters(), 0.1)
    probe = KernelProbe(trial, model, torch.device("cpu"))
    for step in range(1, taken + 1):
        with probe.step(step):
            optimizer.zero_grad()
            loss = F.cross_entropy(model(torch.ones(3, 2, 4, 4)), torch.arange(3))
            if fails:
                raise ValueError("planted")
            loss.backward()
            with probe.optimizing():
                optimizer.step()
    return probe


def test_a_step_on_the_cpu_is_told_by_its_operations(tmp_path: Path) -> None:
    model = Net()
    traced(model).write(tmp_path)
    use = KernelUse.read(kernels_file(tmp_path))
    assert (use.cell, use.number, use.step, use.device, use.cudnn_convolution) == ("cell", 4, 2, "cpu", False)
    assert not any(one.kernels for one in use.operations)
    found = [(one.part, one.name, one.module) for one in use.operations]
    convolution = next(one for one in use.operations if one.module == "conv" and one.part == "forward")
    assert "convolution" in convolution.name and convolution.shapes[:2] == ("3x2x4x4", "2x2x3x3")
    for expected in [
        ("forward", "aten::native_batch_norm", "norm"),
        ("forward", "aten::add", ""),
        ("forward", "aten::addmm", "again.1"),
        ("forward", "aten::nll_loss_forward", ""),
        ("backward", "aten::native_batch_norm_backward", "norm"),
        ("backward", "aten::convolution_backward", "conv"),
        ("backward", "aten::addmm", "again.1"),
    ]:
        assert expected in found
    assert Counter(name for part, name, module in found if part == "backward" and module == "last")["aten::mm"] == 2
    assert {name for part, name, _ in found if part == "optimizer"} == {"aten::add_"}
    assert not any(name in ("aten::empty", "aten::view", "aten::detach", "aten::t") for _, name, _ in found)
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())


def test_the_same_training_twice_gives_equal_lists(tmp_path: Path) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        traced(Net()).write(tmp_path / name)
    assert len({kernels_file(tmp_path / name).read_bytes() for name in ("one", "other")}) == 1


def test_a_step_that_fails_and_one_that_never_comes_leave_nothing(tmp_path: Path) -> None:
    model = Net()
    with pytest.raises(ValueError, match="planted"):
        traced(model, steps=1, fails=True)
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())
    traced(model, steps=4).write(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_damaged_file_is_named_with_what_is_wrong(tmp_path: Path) -> None:
    path = tmp_path / "kernels.json"
    use = KernelUse("cell", 1, 3, "NVIDIA H200", (call("aten::mm", GEMM),), None)
    use.write(path)
    assert KernelUse.read(path) == use
    text = path.read_text()
    for wrong, right, said in [
        ('"aten::mm"', "7", "operations.0.name holds 7"),
        ('"backward"', '"sideways"', "operations.0.part holds 'sideways'"),
        ('"step": 3', '"step": "3"', "step holds '3'"),
        ('"schema": 1', '"schema": 2', "schema 2"),
        ('"cell": "cell",\n', "", "lacks cell"),
    ]:
        path.write_text(text.replace(wrong, right))
        with pytest.raises(StudyError, match=said) as raised:
            KernelUse.read(path)
        assert str(path) in str(raised.value)
    replace(use, operations=()).write(path)
    assert KernelUse.read(path).operations == ()
