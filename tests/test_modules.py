"""Modules as the probe sees them: each with what it took and gave, the code between them, gradients and updates."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
import torch
from module_traces import Block, forward, hexed, images, of, probe_for, seeded, traced, train, written
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_sequence

from runner.analysis.traces import compare
from runner.models.lstm import lstm
from runner.models.resnet import resnet
from runner.models.unet import unet
from runner.worker.deferred import Deferred, Places
from runner.worker.digest import digest

pytestmark = pytest.mark.usefixtures("one_thread")


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
    once = Deferred.look

    def counted(self: Deferred, tensor: Tensor, finite: bool) -> Places:
        looked_at.append(tuple(tensor.shape))
        return once(self, tensor, finite)

    monkeypatch.setattr(Deferred, "look", counted)
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
