"""Modules as the probe sees them: each with what it took and gave, the code between them, gradients and updates."""

import gc
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_sequence
from torch.optim import SGD
from torch.utils.checkpoint import checkpoint
from traced import trial_of

from runner.analysis.traces import compare
from runner.models.lstm import lstm
from runner.models.resnet import resnet
from runner.models.unet import unet
from runner.operation import Operation
from runner.study import trace_file
from runner.trace import Trace
from runner.worker.deferred import Deferred
from runner.worker.digest import digest, lanes
from runner.worker.modules import ModuleProbe

pytestmark = pytest.mark.usefixtures("one_thread")

CPU = torch.device("cpu")


def probe_for(model: nn.Module, steps: int = 1, number: int = 0, precision: str = "fp32") -> ModuleProbe:
    return ModuleProbe(trial_of("modules", steps, number, precision={"name": precision}), model, CPU)


def train(
    model: nn.Module,
    inputs: Tensor,
    probe: Any = None,
    steps: int = 1,
    dtype: torch.dtype | None = None,
    loss: Callable[[Any], Tensor] = lambda outputs: outputs.float().square().mean(),
    rate: float = 0.1,
) -> list[Tensor]:
    """Train as the runner does; the weights at the end."""
    torch.manual_seed(5)
    probe = probe or probe_for(model, steps=0)
    optimizer, scaler = (
        SGD(model.parameters(), rate, momentum=0.9),
        torch.amp.GradScaler("cpu", enabled=dtype is torch.float16),
    )
    for step in range(1, steps + 1):
        with probe.step(step):
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=dtype, enabled=dtype is not None):
                value = loss(model(inputs))
            scaler.scale(value).backward()
            with probe.optimizing():
                scaler.step(optimizer)
                scaler.update()
    return list(model.state_dict().values())


def traced(model: nn.Module, inputs: Any, steps: int = 1, number: int = 0, **how: Any) -> Trace:
    probe = probe_for(model, steps, number)
    train(model, inputs, probe, steps, **how)
    return written(probe)


def written(probe: ModuleProbe) -> Trace:
    """What the probe leaves, read again."""
    with TemporaryDirectory() as folder:
        probe.write(Path(folder))
        return Trace.read(trace_file(Path(folder)))


def forward(trace: Trace) -> list[tuple[str, str]]:
    return [(one.name, one.module) for one in trace.operations if one.part == "forward"]


def of(trace: Trace, module: str, part: str = "forward", step: int = 1) -> Operation:
    found = [one for one in trace.operations if (one.module, one.part, one.step) == (module, part, step)]
    assert len(found) == 1
    return found[0]


def hexed(tensor: Tensor) -> str:
    return lanes([tensor]).numpy().tobytes().hex()


class Block(nn.Module):
    """A residual block with an in-place ReLU that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 2, 3, padding=1), nn.BatchNorm2d(2)
        self.relu = nn.ReLU(inplace=True)

    def forward(self, inputs: Tensor) -> Tensor:
        outputs = self.norm(self.relu(self.conv(inputs)))
        outputs += inputs
        return self.relu(outputs)


def images(size: int = 4) -> Tensor:
    return torch.randn(3, 2, size, size, generator=torch.Generator().manual_seed(1))


def seeded(make: Callable[[], nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return make()


def test_modules_and_the_code_between_them_stand_in_the_order_in_which_they_were_done() -> None:
    trace = traced(seeded(lambda: nn.Sequential(Block(), nn.Flatten(), nn.Linear(32, 2))), images())
    block = [("Conv2d", "0.conv"), ("ReLU", "0.relu"), ("BatchNorm2d", "0.norm"), ("Block", "0"), ("ReLU", "0.relu")]
    assert forward(trace) == [*block, ("Flatten", "1"), ("Linear", "2"), ("Sequential", "")]
    rest = [(one.part, one.name, one.module) for one in trace.operations[8:] if "through" not in one.name]
    backward = [("Linear", "2"), ("BatchNorm2d", "0.norm"), ("Conv2d", "0.conv")]
    assert rest[:3] == [("backward", f"gradient of {name}", module) for name, module in backward]
    assert rest[3:] == [("optimizer", f"update of {name}", module) for name, module in reversed(backward)]
    assert [one.index for one in trace.operations] == list(range(21))
    back = [(one.name.removeprefix("gradient through "), one.module) for one in trace.operations[8:15]]
    between = [("ReLU", "0.relu"), ("Block", "0"), ("BatchNorm2d", "0.norm"), ("ReLU", "0.relu")]
    assert back == [("the loss", ""), ("Linear", "2"), ("Flatten", "1"), *between]


def test_values_are_the_tensors_as_they_were_at_that_moment() -> None:
    model = seeded(lambda: nn.Sequential(Block()))
    twin = seeded(lambda: nn.Sequential(Block()))
    trace = traced(model, images())
    block: Any = twin[0]
    convolved = block.conv(images())
    normed = block.norm(convolved.relu())
    conv, relu, norm, code, last = trace.operations[:5]
    assert conv.outputs[0].digest == relu.inputs[0].digest == hexed(convolved)
    assert relu.outputs[0].digest == norm.inputs[0].digest == hexed(convolved.relu())
    assert norm.outputs[0].digest == hexed(normed)
    assert code.outputs[0].digest == last.inputs[0].digest == hexed(normed + images())
    assert {hexed(normed), hexed(images())} < {value.digest for value in code.inputs}
    assert [one.inputs[0].source for one in (conv, relu, norm, last)] == [None, 0, 1, 3]


def test_weights_and_buffers_are_inputs_and_gradients_and_new_weights_are_recorded() -> None:
    model = seeded(lambda: nn.Sequential(Block()))
    before = {name: hexed(value) for name, value in model.state_dict().items()}
    trace = traced(model, images(), steps=2)
    assert [value.digest for value in of(trace, "0.conv").inputs[1:]] == [
        before["0.conv.weight"],
        before["0.conv.bias"],
    ]
    norm, update = of(trace, "0.norm", step=2), of(trace, "0.norm", "optimizer")
    assert norm.inputs[1:] == tuple(replace(value, not_finite=None) for value in update.outputs)
    assert len(norm.inputs) == 1 + 2 + 3
    last = of(trace, "0.norm", "optimizer", step=2)
    assert [value.digest for value in last.outputs] == [hexed(model.state_dict()[f"0.norm.{name}"]) for name in NORM]
    gradient = of(trace, "0.conv", "backward", step=2)
    conv: Any = model[0].conv  # type: ignore[index,union-attr]
    assert [value.digest for value in gradient.outputs] == [hexed(conv.weight.grad), hexed(conv.bias.grad)]


NORM = ["weight", "bias", "running_mean", "running_var", "num_batches_tracked"]


def test_what_was_looked_at_and_has_not_changed_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[tuple[int, ...]] = []
    once = Deferred.digest

    def counted(self: Deferred, tensor: Tensor) -> int | None:
        looked_at.append(tuple(tensor.shape))
        return once(self, tensor)

    monkeypatch.setattr(Deferred, "digest", counted)
    traced(seeded(lambda: nn.Sequential(Block(), Block())), images())
    # The batch; of each block conv, norm, ReLU, sum, ReLU, and the gradients of these.
    assert len(looked_at) == 1 + 2 * 5 * 2


class Sly(nn.Module):
    """Changes its input behind PyTorch's back."""

    def forward(self, inputs: Tensor) -> Tensor:
        inputs.detach().numpy()[0, 0] = 7
        return inputs


def test_what_a_module_gives_is_looked_at_even_if_it_is_said_to_be_unchanged() -> None:
    trace = traced(nn.Sequential(nn.Conv2d(2, 2, 1), Sly()), images())
    sly = of(trace, "1")
    assert sly.inputs[0].digest != sly.outputs[0].digest
    assert of(trace, "").outputs[0].digest == sly.outputs[0].digest


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], Tensor]]] = {
    "resnet": (lambda: resnet(10, False, 1, 10), lambda: torch.randn(2, 1, 64, 64)),
    "unet": (lambda: unet(8, 2, "bilinear", 1, 3), lambda: torch.randn(2, 1, 16, 16)),
    "lstm": (lambda: lstm("lstm", 2, 16, False, 0.5, 10, 8, None, False), lambda: torch.randn(4, 6, 8)),
}


def seeded_data(data: Callable[[], Tensor]) -> Tensor:
    torch.manual_seed(4)
    return data()


@pytest.mark.parametrize("name", MODELS)
def test_traces_of_equal_trials_have_equal_bits(name: str) -> None:
    make, data = MODELS[name]
    one, other = (traced(seeded(make), seeded_data(data), 2, number) for number in range(2))
    assert one.operations == other.operations
    assert compare([one, other]).findings == []


class Noise(torch.autograd.Function):
    """Adds a little to a tensor in the forward pass, or to its gradient."""

    @staticmethod
    def forward(ctx: Any, inputs: Tensor, ahead: float, back: float) -> Tensor:
        ctx.back = back
        return inputs + ahead

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Any:
        return gradients[0] + ctx.back, None, None


class Faulty(nn.Module):
    """A module of which one trial computes something else, in one direction."""

    def __init__(self, inner: nn.Module, ahead: float = 0.0, back: float = 0.0):
        super().__init__()
        self.inner, self.noise = inner, (ahead, back)

    def forward(self, inputs: Tensor) -> Tensor:
        return Noise.apply(F.linear(inputs, self.inner.weight), *self.noise)  # type: ignore[no-any-return]


def three(ahead: float = 0.0, back: float = 0.0) -> nn.Module:
    linears = [nn.Linear(4, 4, bias=False) for _ in range(3)]
    return nn.Sequential(linears[0], nn.ReLU(), Faulty(linears[1], ahead, back), nn.ReLU(), linears[2])


def found(make: Callable[[float], nn.Module], **how: Any) -> list[tuple[str, str, int]]:
    """What is found between two trials of which one has a fault: part, module and step."""
    data = torch.randn(5, 4, generator=torch.Generator().manual_seed(2))
    models = [seeded(partial(make, fault)) for fault in (0.0, 1e-3)]
    traces = [traced(model, data, 2, number, **how) for number, model in enumerate(models)]
    return [(one.part, one.module, one.step) for one in compare(traces).findings]


def test_a_module_whose_forward_pass_differs_is_named_alone() -> None:
    assert found(lambda fault: three(ahead=fault)) == [("forward", "2", 1)]


def test_the_first_gradient_that_differs_is_named() -> None:
    assert found(lambda fault: three(back=fault)) == [("backward", "2", 1), ("backward", "2.inner", 1)]


class Between(nn.Module):
    """The gradient is changed by the model's own code between two modules."""

    def __init__(self, fault: float):
        super().__init__()
        self.stem, self.out, self.fault = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2), fault

    def forward(self, inputs: Tensor) -> Tensor:
        return self.out(Noise.apply(self.stem(inputs), 0.0, self.fault))  # type: ignore[no-any-return]


def test_no_module_is_named_for_a_gradient_that_is_made_between_modules() -> None:
    assert found(Between) == [("backward", "", 1)]
    assert found(lambda fault: nn.Sequential(nn.Linear(4, 4), Between(fault))) == [("backward", "1", 1)]


@pytest.mark.parametrize("precision", [None, torch.bfloat16])
def test_gradients_between_modules_are_those_that_autograd_has_and_stay_as_they_are(precision: Any) -> None:
    model, twin = (seeded(lambda: nn.Sequential(Block(), nn.Identity(), nn.Flatten(), nn.Linear(32, 2))) for _ in "12")
    trace = traced(model, images(), dtype=precision)
    train(twin, images(), dtype=precision)
    assert all(map(torch.equal, model.state_dict().values(), twin.state_dict().values()))
    block: Any = seeded(lambda: nn.Sequential(Block(), nn.Identity(), nn.Flatten(), nn.Linear(32, 2)))
    with torch.autocast("cpu", dtype=precision, enabled=precision is not None):
        rows = block[:3](images())
        outputs = block[3](rows)
    given = torch.autograd.grad(outputs.float().square().mean(), [outputs, rows])
    arrived = [one.outputs[0].digest for one in trace.operations if "through" in one.name]
    assert arrived[:2] == [hexed(one) for one in given]


def test_a_gradient_follows_from_those_of_all_calls_that_used_the_tensor_or_the_parameter() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4, bias=False), nn.ReLU()

        def forward(self, inputs: Tensor) -> Tensor:
            once = self.last(self.first(inputs))
            return F.linear(once, self.first.weight) + once

    trace = traced(seeded(Tied), torch.randn(3, 4))
    loss, relu, first = [one for one in trace.operations if "through" in one.name]
    assert [(one.name.split()[-1], one.module) for one in (loss, relu, first)] == [
        ("loss", ""), ("Tied", ""), ("ReLU", "last")]  # fmt: skip
    weight = next(one for one in trace.operations if one.name == "gradient of Linear")
    assert relu.inputs[0].source == loss.index and first.inputs[0].source == relu.index
    assert {value.source for value in weight.inputs} >= {loss.index, first.index}


def test_no_graph_is_kept_alive_by_a_step_without_a_gradient_pass() -> None:
    model, memory = seeded(lambda: nn.Sequential(Block(), nn.Linear(4, 2), nn.ReLU())), []

    def step() -> None:
        inputs = images().requires_grad_()
        memory.append(StorageWeakRef(inputs.untyped_storage()))
        model(inputs)

    with probe_for(model).step(1):
        step()
    gc.collect()
    assert memory[0].expired()


def test_modules_that_a_transform_of_functions_calls_are_passed_over() -> None:
    class Mapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, inputs: Tensor) -> Tensor:
            sines = torch.func.vmap(lambda row: torch.func.grad(lambda one: one.sin().sum())(row))(self.linear(inputs))
            weights = dict(self.linear.named_parameters())
            mapped = torch.func.vmap(lambda row: torch.func.functional_call(self.linear, weights, (row,)))(inputs)
            return sines + mapped  # type: ignore[no-any-return]

    trace = traced(seeded(Mapped), torch.randn(3, 4))
    assert [one.module for one in trace.operations if "through" in one.name] == ["", ""]
    assert [one.outputs[0].digest is None for one in trace.operations if one.name == "Linear"] == [False, True]


def test_code_between_modules_is_named_by_the_module_that_it_belongs_to() -> None:
    class Between(nn.Module):
        def __init__(self, fault: float):
            super().__init__()
            self.first, self.last, self.fault = nn.Linear(4, 4), nn.Linear(4, 4), fault

        def forward(self, inputs: Tensor) -> Tensor:
            return self.last(self.first(inputs) + self.fault)  # type: ignore[no-any-return]

    assert found(lambda fault: nn.Sequential(nn.ReLU(), Between(fault))) == [("forward", "1", 1)]


def disturbed(fault: float, weight: Tensor) -> None:
    weight.detach().add_(fault)


def test_an_update_that_differs_is_named() -> None:
    class Updated(nn.Linear):
        def __init__(self, fault: float):
            super().__init__(4, 4)
            self.weight.register_post_accumulate_grad_hook(partial(disturbed, fault))

    # The weights change after their gradient is done and before the optimizer: nobody sees it but in the update.
    assert found(lambda fault: nn.Sequential(nn.Linear(4, 4), Updated(fault))) == [("optimizer", "1", 1)]


def test_in_fp16_an_infinite_gradient_explains_that_no_weight_was_updated() -> None:
    traces = []
    for number, fault in enumerate([0.0, float("inf")]):
        model = seeded(partial(three, 0.0, fault))
        probe = probe_for(model, 1, number, "fp16")
        train(model, torch.ones(5, 4), probe, dtype=torch.float16)
        traces.append(written(probe))
    assert traces[0].operations[-1].outputs != traces[1].operations[-1].outputs  # of the layer after the fault
    named = [("gradient through Faulty", "2"), ("gradient of Linear", "2.inner")]
    assert [(one.name, one.module) for one in compare(traces).findings] == named


class Odd(nn.Module):
    """Everything that a module may take and give."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm, self.both, self.nothing, self.named = nn.LSTM(3, 3), Both(), Nothing(), Named()

    def forward(self, inputs: Tensor) -> Tensor:
        packed, (hidden, _) = self.lstm(pack_sequence([inputs[:4], inputs[:2]]))
        self.nothing("word", 3, rate=0.5)
        pair = self.both({"first": packed.data, "rest": [hidden, None]})
        return self.named(scale=pair["sum"].sum()) + self.named(scale=hidden.sum(), twice=True)  # type: ignore[no-any-return]


class Both(nn.Module):
    def forward(self, tensors: dict[str, Any]) -> dict[str, Any]:
        return {"sum": tensors["first"].sum() + tensors["rest"][0].sum(), "why": "text"}


class Nothing(nn.Module):
    def forward(self, *_: Any, **__: Any) -> None:
        return None


class Named(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3))

    def forward(self, *, scale: Tensor, twice: bool = False) -> Tensor:
        return self.weight * scale * (2 if twice else 1)


def test_tensors_are_found_in_whatever_modules_take_and_give() -> None:
    trace = traced(seeded(Odd), torch.randn(5, 3, generator=torch.Generator().manual_seed(1)))
    recurrent = next(one for one in trace.operations if one.name == "LSTM")
    assert [value.shape for value in recurrent.inputs][:2] == [(6, 3), (4,)]
    assert [value.shape for value in recurrent.outputs][2:] == [(1, 2, 3), (1, 2, 3)]
    nothing = of(trace, "nothing")
    assert (nothing.inputs, nothing.outputs, nothing.scalars) == ((), (), "[['word', 3], {rate: 0.5}]")
    both = of(trace, "both")
    assert [value.shape for value in both.inputs] == [(6, 3), (1, 2, 3)]
    assert both.outputs[0].shape == ()
    named = [one for one in trace.operations if one.name == "Named"]
    assert [one.scalars for one in named] == ["[[], {scale: %}]", "[[], {scale: %, twice: True}]"]
    assert all(len(one.inputs) == 2 for one in named)


def test_a_weight_that_a_module_uses_without_calling_its_owner_is_among_its_inputs() -> None:
    class Attending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(4, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.attention(inputs, inputs, inputs)[0]  # type: ignore[no-any-return]

    model = seeded(Attending)
    weight = hexed(model.state_dict()["attention.out_proj.weight"])
    trace = traced(model, torch.randn(3, 2, 4))
    attention = of(trace, "attention")
    assert weight in {value.digest for value in attention.inputs}
    gradients = [one for one in trace.operations if one.name.startswith("gradient of")]
    assert [one.module for one in gradients] == ["attention.out_proj", "attention"]


def test_the_first_nan_and_the_first_infinity_are_told() -> None:
    class Grown(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            return inputs * 1e38 * 1e38

    trace = traced(nn.Sequential(nn.Linear(4, 4), Grown(), nn.Softmax(1)), torch.randn(2, 4))
    said = {one.module: one.outputs[0].not_finite for one in trace.operations if one.part == "forward"}
    assert said == {"0": None, "1": "inf", "2": "nan", "": "nan"}
    assert of(trace, "0", "backward").outputs[0].not_finite == "nan"


def test_a_module_that_draws_is_random_and_told_by_the_state_that_it_draws_from() -> None:
    class Drawn(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(4, 4)

        def forward(self, inputs: Tensor) -> Tensor:
            return F.dropout(self.linear(inputs))

    trace = traced(nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.0), Drawn()), torch.randn(2, 4))
    kinds = {(one.name, one.module): one.kind for one in trace.operations if one.part == "forward"}
    assert kinds == {
        ("Dropout", "0"): "random",
        ("Dropout", "1"): "computed",
        ("Linear", "2.linear"): "computed",
        ("Drawn", "2"): "random",
        ("Sequential", ""): "computed",
    }
    drawn = [one.random for one in trace.operations if one.random]
    assert len(set(drawn)) == 2 and all(len(one) == 32 for one in drawn)


def test_a_compiled_model_is_one_entry_with_the_gradients_of_its_modules() -> None:
    model = seeded(lambda: nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)))
    trace = traced(torch.compile(model, backend="eager"), torch.randn(2, 4))
    assert forward(trace) == [("Sequential", "")]
    assert [one.module for one in trace.operations if one.part == "backward"] == ["", "2", "0"]
    assert len(trace.operations[0].inputs) == 1 + 4
    assert trace.note is not None and "compiled" in trace.note
    torch.compiler.reset()


def test_activations_that_are_computed_again_stand_in_the_backward_pass() -> None:
    class Checkpointed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner, self.last = nn.Sequential(nn.Linear(4, 4), nn.ReLU()), nn.Linear(4, 2)

        def forward(self, inputs: Tensor) -> Tensor:
            return self.last(checkpoint(self.inner, inputs, use_reentrant=False))  # type: ignore[no-any-return]

    trace = traced(seeded(Checkpointed), torch.randn(2, 4))
    again = [one.module for one in trace.operations if one.part == "backward" and "through" not in one.name]
    assert again[-2:] == ["last", "inner.0"]
    assert again[:-2][:1] == ["inner.0"]
    ahead, back = (
        next(one for one in trace.operations if one.module == "inner.0" and one.part == part) for part in PARTS
    )
    assert ahead.outputs[0].digest == back.outputs[0].digest


PARTS = ("forward", "backward")


def test_a_step_that_fails_leaves_what_was_done_and_no_hook() -> None:
    class Failing(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            raise ValueError("planted")

    model = nn.Sequential(nn.Linear(4, 4), nn.Sequential(nn.ReLU(), Failing()))
    probe = probe_for(model)
    with pytest.raises(ValueError, match="planted"):
        train(model, torch.randn(2, 4), probe)
    trace = written(probe)
    assert forward(trace)[:2] == [("Linear", "0"), ("ReLU", "1.0")]
    assert trace.operations[2].name == "Failing" and trace.operations[2].outputs == ()
    assert not any(one._forward_hooks or one._forward_pre_hooks for one in model.modules())


def test_inference_takes_the_same_path_with_and_without_hooks() -> None:
    model = seeded(lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)).eval()
    inputs = torch.randn(3, 5, 8, generator=torch.Generator().manual_seed(1))
    probe = probe_for(model)
    with torch.inference_mode():
        plain = model(inputs)
        with probe.step(1):
            looked_at = model(inputs)
    assert digest([plain]) == digest([looked_at])
    assert forward(written(probe)) == [("TransformerEncoder", "")]


def test_tensors_that_count_no_changes_are_looked_at_whenever_they_are_used() -> None:
    model = seeded(lambda: nn.Sequential(Block())).eval()
    probe = probe_for(model)
    with torch.inference_mode(), probe.step(1):
        model(images())
    trace = written(probe)
    relu = [one for one in trace.operations if one.name == "ReLU"]
    assert relu[0].outputs[0].digest != relu[1].inputs[0].digest
    assert all(one.inputs for one in trace.operations)


def test_a_model_in_torchscript_gives_gradients_and_no_calls() -> None:
    model = nn.Sequential(torch.jit.script(nn.Linear(4, 4)), nn.Linear(4, 2))
    trace = traced(model, torch.randn(2, 4))
    assert forward(trace) == [("Sequential", ""), ("Linear", "1"), ("Sequential", "")]
    assert [one.module for one in trace.operations if one.part == "optimizer"] == ["0", "1"]
