"""What is taken down of every operation: bits, sources, scalars, random states."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from traced import Counting, named, seen, traced

from runner.operation import Operation, Repeated


def test_inputs_are_those_before_the_operation_and_outputs_those_after() -> None:
    tensor, added = torch.ones(3), torch.full((3,), 2.0)
    one = named(seen(lambda: tensor.add_(added)), "add_")
    plain = named(seen(lambda: torch.ones(3) + torch.full((3,), 2.0)), "add")
    assert one.inputs[0].digest != one.outputs[0].digest
    assert one.outputs[0].digest == plain.outputs[0].digest
    assert one.inputs[0].digest == plain.inputs[0].digest
    assert one.writes == (0,)
    assert plain.writes == ()


def test_the_order_of_elements_counts_and_strides_do_not() -> None:
    square = torch.arange(6.0).reshape(2, 3)
    turned = square.t().contiguous().t()  # the same numbers in another order of memory
    straight, other, reordered = (named(seen(lambda x=x: x * 2), "mul") for x in (square, turned, square.flip(1)))
    assert straight.inputs[0].digest == other.inputs[0].digest
    assert straight.inputs[0].digest != reordered.inputs[0].digest


def test_a_source_is_the_last_operation_that_wrote_the_memory() -> None:
    def do() -> None:
        made = torch.ones(4)  # 0
        half = made[:2]  # a view
        half.mul_(3)  # writes the memory of both
        made.add(1)

    operations = seen(do)
    multiplied, added = named(operations, "mul_"), named(operations, "add")
    assert named(operations, "slice").kind == "view"
    assert multiplied.inputs[0].source == named(operations, "ones").index
    assert added.inputs[0].source == multiplied.index


def test_a_view_that_denies_it_is_no_writer() -> None:
    made, *views = seen(lambda: [half.neg() for half in torch.unsafe_split(torch.ones(4), 2)])[-4:]
    split, first, second = views
    assert (split.name, split.kind) == ("aten.unsafe_split.Tensor", "view")
    assert first.inputs[0].source == second.inputs[0].source == made.index


def test_memory_that_is_freed_and_used_again_has_no_source_from_before() -> None:
    def do() -> None:
        for value in range(50):
            torch.full((64,), float(value))  # freed at once
            torch.from_numpy(np.full(64, value, np.float32)).mul(2)  # comes from elsewhere

    products = [one for one in seen(do) if one.name == "aten.mul.Tensor"]
    assert len(products) == 50
    assert {one.inputs[0].source for one in products} == {None}


def test_a_change_outside_of_aten_shows_in_the_next_input() -> None:
    def do(change: float) -> None:
        tensor = torch.zeros(3)
        tensor.numpy()[0] = change
        tensor.exp()

    untouched, changed = seen(lambda: do(0.0)), seen(lambda: do(1.0))
    assert named(untouched, "zeros").outputs == named(changed, "zeros").outputs
    assert named(untouched, "exp").inputs[0].digest != named(changed, "exp").inputs[0].digest
    assert named(changed, "exp").inputs[0].source == named(changed, "zeros").index


def test_uninitialised_memory_has_no_bits_until_it_is_written() -> None:
    def do() -> None:
        memory = torch.empty(3)
        memory.fill_(1).exp()
        torch.empty(3).copy_(torch.ones(3))

    operations = seen(do)
    empties = [one for one in operations if one.kind == "uninitialised"]
    assert [one.outputs[0].digest for one in empties] == [None, None]
    for name in ("fill_", "copy_"):
        assert named(operations, name).inputs[0].digest is None
        assert named(operations, name).inputs[0].source in {one.index for one in empties}
        assert named(operations, name).outputs[0].digest is not None
    assert named(operations, "exp").inputs[0].digest == named(operations, "fill_").outputs[0].digest


def test_what_is_read_of_uninitialised_memory_has_a_digest() -> None:
    operations = seen(lambda: torch.empty(3).exp())
    assert named(operations, "exp").inputs[0].digest is not None
    assert named(operations, "exp").inputs[0].source == named(operations, "empty").index


def test_a_random_operation_has_the_state_of_its_generator() -> None:
    def drawn(seed: int, generator: torch.Generator | None = None) -> Operation:
        torch.manual_seed(seed)
        return named(seen(lambda: torch.rand(3, generator=generator)), "rand")

    own = partial(torch.Generator().manual_seed, 7)
    assert drawn(1).kind == "random"
    assert drawn(1).random == drawn(1).random
    assert drawn(1).random != drawn(2).random
    assert drawn(1, own()).random == drawn(2, own()).random


def test_scalars_are_every_argument_that_is_no_tensor() -> None:
    tensor = torch.ones(4, 4)
    assert named(seen(lambda: tensor.add(tensor, alpha=0.1)), "add").scalars == "self=#0, other=#1, alpha=0.1"
    assert named(seen(lambda: tensor[1:]), "slice").scalars.endswith("dim=0, start=1, end=9223372036854775807")
    made = named(seen(lambda: torch.zeros(2, dtype=torch.long, device="cpu")), "zeros")
    assert made.scalars == "size=[2], device=cpu, dtype=torch.int64, pin_memory=False"
    assert named(seen(lambda: torch.cat([tensor, tensor])), "cat").scalars == "tensors=[#0..#1]"
    assert named(seen(lambda: tensor[torch.tensor([1]), None]), "index").scalars == "self=#0, indices=[#1]"


def test_batch_norm_writes_its_statistics_though_its_schema_does_not_say_so() -> None:
    model = nn.BatchNorm1d(4)
    first, second = (one for one in traced(model, steps=2) if one.name == "aten.native_batch_norm.default")
    assert first.writes == (3, 4)
    assert [value.shape for value in first.outputs] == [(2, 4), (4,), (4,), (4,), (4,)]
    assert [value.source for value in second.inputs[3:]] == [first.index, first.index]
    assert [value.digest for value in second.inputs[3:]] == [value.digest for value in first.outputs[3:]]


def test_what_lists_of_tensors_are_written() -> None:
    lists = [[torch.ones(2), torch.ones(3)] for _ in range(3)]
    added = named(seen(lambda: torch._foreach_add_(lists[0], lists[1])), "_foreach_add_")
    assert (added.writes, added.scalars) == ((0, 1), "self=[#0..#1], other=[#2..#3]")
    assert [value.shape for value in added.outputs] == [(2,), (3,)]
    assert added.outputs[0].digest != added.inputs[0].digest
    fused = seen(lambda: torch._fused_sgd_(*lists, weight_decay=0.0, momentum=0.9, lr=0.1, dampening=0.0,
                                           nesterov=False, maximize=False, is_first_step=True))  # fmt: skip
    assert named(fused, "_fused_sgd_").writes == (0, 1, 2, 3, 4, 5)
    assert len(named(fused, "_fused_sgd_").outputs) == 6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64])
def test_nan_and_infinity_are_seen_in_outputs(dtype: torch.dtype) -> None:
    def not_finite(*values: float) -> str | None:
        return named(seen(lambda: torch.tensor(values, dtype=dtype).clone()), "clone").outputs[0].not_finite

    assert not_finite(1.0, -2.0) is None
    assert not_finite(1.0, float("inf")) == "inf"
    assert not_finite(float("-inf"), 1.0) == "inf"
    assert not_finite(float("inf"), float("nan"), 1.0) == "nan"
    assert not_finite() is None


@pytest.mark.parametrize(
    "odd",
    [
        lambda: torch.eye(2).to_sparse() * 2,
        lambda: torch.quantize_per_tensor(torch.ones(2), 0.1, 0, torch.quint8).clone(),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)]) * 2,
        lambda: torch.ones(2, device="meta") * 2,
        lambda: torch.ones(2, 3, 4, 4).to_mkldnn().clone(),
        lambda: torch.view_as_complex(torch.ones(2, 2)).conj() * 2,
        lambda: torch.ones(0, 3) * 2,
    ],
    ids=["sparse", "quantised", "nested", "meta", "mkldnn", "conjugate", "empty"],
)
@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.filterwarnings("ignore::UserWarning")  # PyTorch announces changes to some of these kinds
def test_tensors_of_other_kinds_stay_in_the_trace(odd: Callable[[], Tensor], repeat: bool) -> None:
    operations = seen(odd, repeat)
    assert operations[-1].name in ("aten.mul.Tensor", "aten.clone.default")


def test_no_tensor_is_kept_alive() -> None:
    freed = []

    def do() -> None:
        tensor = torch.ones(100)
        memory = StorageWeakRef(tensor.exp().mul_(2).untyped_storage())
        freed.append(memory.expired())

    seen(do, repeat=True)
    assert freed == [True]


def test_a_random_operation_that_draws_nothing_is_repeated() -> None:
    heads = torch.ones(1, 1, 4, 8)

    def attention(dropout: float) -> Operation:
        name = "_scaled_dot_product_flash_attention_for_cpu"
        return named(seen(lambda: F.scaled_dot_product_attention(heads, heads, heads, dropout_p=dropout), True), name)

    assert attention(0.0).kind == "random"
    assert attention(0.0).repeated == Repeated(True, 0, 0.0)
    assert named(seen(lambda: torch.rand(3), repeat=True), "rand").repeated is None


def test_a_subclass_of_tensor_stays_in_the_trace() -> None:
    class Marked(Tensor):
        pass

    product = named(seen(lambda: torch.ones(2).as_subclass(Marked) * 2), "mul")
    assert product.inputs[0].shape == (2,)


@pytest.mark.parametrize("repeat", [False, True])
@pytest.mark.filterwarnings("ignore::UserWarning")  # nested tensors are said to be a prototype
def test_a_jagged_nested_tensor_is_traced_by_the_operations_that_it_is_made_of(repeat: bool) -> None:
    results = []

    def do() -> None:
        rows = torch.arange(12.0).view(6, 2).requires_grad_()
        nested = torch.nested.nested_tensor_from_jagged(rows * 2, torch.tensor([0, 2, 6]), min_seqlen=2, max_seqlen=4)
        padded = (nested * 3).to_padded_tensor(0.0)
        padded.square().sum().backward()
        results[:] = [padded.detach(), rows.grad]

    do()
    expected = list(results)
    operations = seen(do, repeat)
    assert all(map(torch.equal, results, expected))
    padded, back = (named(operations, f"_{one}_forward") for one in PADDING)
    assert (padded.outputs[0].shape, padded.part) == ((2, 4, 2), "forward")
    assert (back.outputs[0].shape, back.part) == ((6, 2), "backward")
    assert padded.inputs[0].digest is not None and padded.outputs[0].digest is not None


PADDING = ("jagged_to_padded_dense", "padded_dense_to_jagged")


def test_inference_is_divided_into_the_same_operations() -> None:
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.Flatten(), nn.Linear(8, 3)).eval()

    def names(context: Any) -> list[str]:
        with context:
            operations = seen(lambda: model(torch.ones(2, 1, 4, 4)).softmax(-1))
        return [one.name for one in operations if one.name != "aten.detach.default"]

    inferred = names(torch.inference_mode())
    assert inferred == names(torch.no_grad())
    assert "aten.addmm.default" in inferred and "aten.convolution.default" in inferred


def test_another_mode_around_it_does_not_see_the_looking() -> None:
    with Counting() as counting:
        operations = seen(lambda: torch.rand(3).exp().sum())
    assert counting.names == [one.name for one in operations]


def test_debug_mode_sees_the_same_operations() -> None:
    """PyTorch's own DebugMode, which has no bitwise digests, as a witness."""
    from torch.utils._debug_mode import DebugMode

    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(16, 3))

    def step() -> None:
        loss = F.cross_entropy(model(torch.ones(2, 1, 4, 4)), torch.tensor([0, 2]))
        loss.backward()
        model.zero_grad()

    with DebugMode() as debug:
        step()
    theirs = [line.split("(")[0].strip().replace("::", ".") for line in debug.debug_string().splitlines()]
    ours = [one.name.removesuffix(".default") for one in seen(step)]
    assert ours == theirs
    assert len(ours) > 25
