"""Kernels of several trials side by side: who chose another one, for what, and what another mode changes."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from factory import Plant, make_cell, make_study

from runner.analysis.kernel_choice import choice_words, lines
from runner.analysis.kernels import cudnn_words, kernel_changes, kernels_of
from runner.analysis.summary import summarise
from runner.kernel_use import KernelCall, KernelUse
from runner.layout import kernels_file

A = "sm80_xmma_wgrad_implicit_gemm_f32f32_f32f32_f32_nhwckrsc_nhwc_tilesize128x32x16_stage4_warpsize2x1x1_g1_ffma"
B = "cutlass_80_wgrad_simt_s_128x64_8x5_nchw_align1"
RELU_4 = "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::relu>(int, float)"
RELU_8 = "void at::native::vectorized_elementwise_kernel<8, at::native::(anonymous namespace)::relu>(int, float)"
SHAPES = ("64x512x7x7", "512x512x3x3")


def conv(module: str, *kernels: str, name: str = "aten::convolution_backward") -> KernelCall:
    return KernelCall(name, module, "backward", SHAPES, tuple(sorted(kernels)))


def use(number: int, *calls: KernelCall, cell: str = "cell", **what: Any) -> KernelUse:
    known = {"step": 3, "device": "NVIDIA H200", "cudnn_convolution": True} | what
    return KernelUse(cell, number, operations=calls, **known)


def cell_of(choices: Sequence[str], module: str = "conv", cell: str = "cell") -> list[KernelUse]:
    """A trial for each kernel."""
    return [use(number, conv(module, "common", kernel), cell=cell) for number, kernel in enumerate(choices)]


def test_trials_that_ran_the_same_have_no_choices() -> None:
    found = kernels_of(cell_of([A, A, A]))
    assert (found.trials, found.choices, found.unlike) == (3, [], [])
    assert found.kernels == ["common", A]
    assert found.cudnn_convolution and not found.inert


def test_the_trial_that_chose_another_kernel_is_named_with_the_operation() -> None:
    found = kernels_of(cell_of([A, A, A, B], "layer4.1.conv2"))
    assert lines(found.choices) == [
        f"trial 3 ran {B} where trials 0-2 ran {A}, for "
        "aten::convolution_backward of layer4.1.conv2 (backward; 64x512x7x7, 512x512x3x3)"
    ]
    assert asdict(found.choices[0])["before"][1] == {"trials": [3], "kernels": ["common", B]}


def test_every_trial_may_have_its_own_and_the_most_frequent_is_told_last() -> None:
    (choice,) = kernels_of(cell_of(["x", "y", "z", "y", "y", "w"])).choices
    said = choice_words(choice)
    assert said.startswith("trial 0 ran x; trial 2 ran z; trial 5 ran w where trials 1, 3-4 ran y, for ")


def test_the_same_choice_in_many_layers_is_one_line() -> None:
    layers = [f"layer{number}" for number in range(13)]
    chosen = [use(number, *(conv(layer, kernel) for layer in layers)) for number, kernel in enumerate([A, A, B])]
    (line,) = lines(kernels_of(chosen).choices)
    assert line.endswith("of layer0 (backward; 64x512x7x7, 512x512x3x3), the same in 12 further modules")


def test_layers_whose_trials_chose_differently_are_not_one() -> None:
    first, second = use(0, conv("one", A), conv("two", A)), use(1, conv("one", A), conv("two", B))
    third = use(2, conv("one", B), conv("two", A))
    assert [choice.module for choice in kernels_of([first, second, third]).choices] == ["one", "two"]


def test_operations_are_paired_by_what_they_are_and_never_by_their_place() -> None:
    first = use(0, conv("one", A), conv("two", B))
    second = use(1, conv("two", B), conv("one", A))
    assert kernels_of([first, second]).choices == []


def test_the_second_call_of_a_module_is_paired_with_the_second() -> None:
    twice = [use(number, conv("one", A), conv("one", kernel)) for number, kernel in enumerate([A, B])]
    (choice,) = kernels_of(twice).choices
    assert [run.kernels for run in choice.before] == [[A], [B]]


def test_a_trial_with_other_operations_is_named_and_the_rest_is_compared() -> None:
    usual = [use(number, conv("one", A), conv("two", A)) for number in range(3)]
    other = use(3, conv("one", B), conv("two", A, name="aten::mm"), conv("three", A))
    found = kernels_of([*usual, other])
    assert [choice.module for choice in found.choices] == ["one"]
    shapes = "(backward; 64x512x7x7, 512x512x3x3)"
    assert found.unlike == [
        f"trial 3 does aten::mm of two {shapes} and 1 further operation and lacks "
        f"aten::convolution_backward of two {shapes}, unlike trials 0-2"
    ]


def test_kernels_that_differ_in_their_template_alone_are_told_apart() -> None:
    (choice,) = kernels_of(cell_of([RELU_4, RELU_8])).choices
    assert f"trial 1 ran {RELU_8} where trial 0 ran {RELU_4}" in choice_words(choice)
    plain = "void at::native::reduce_kernel<512, float>(int)"
    (choice,) = kernels_of(cell_of([RELU_4, plain])).choices
    said = "trial 1 ran at::native::reduce_kernel where trial 0 ran at::native::vectorized_elementwise_kernel, for "
    assert choice_words(choice).startswith(said)


def test_a_kernel_more_is_told() -> None:
    more = [use(0, conv("one", A)), use(1, conv("one", A, "Memset (Device)"))]
    (choice,) = kernels_of(more).choices
    assert choice_words(choice).startswith("trial 1 ran Memset where trial 0 ran nothing more, for ")


def test_what_another_mode_runs_is_told_with_both_kernels() -> None:
    before = [use(0, conv("one", A), conv("two", A)), use(1, conv("one", A), conv("two", A))]
    after = [use(0, conv("one", B), conv("two", B), cell="other"), use(1, conv("one", B), conv("two", B), cell="other")]
    (change,) = kernel_changes(before, after)
    where = "aten::convolution_backward of one (backward; 64x512x7x7, 512x512x3x3)"
    assert choice_words(change) == f"{A} becomes {B}, for {where}, the same in 1 further module"


def test_a_cell_whose_trials_draw_has_changed_only_where_no_trial_agrees() -> None:
    drawn = cell_of(["x", "y"])
    assert kernel_changes(drawn, cell_of(["y", "y"], cell="other")) == []
    (change,) = kernel_changes(drawn, cell_of(["z", "w", "z"], cell="other"))
    said = choice_words(change)
    assert said.startswith("x (trial 0) or y (trial 1) becomes z (trials 0, 2) or w (trial 1), for ")


def test_operations_of_one_cell_alone_are_no_change_of_kernels() -> None:
    assert kernel_changes([use(0, conv("one", A))], [use(0, conv("two", B), cell="other")]) == []


def test_a_wall_of_choices_is_cut_and_counted() -> None:
    calls = [[conv(f"layer{layer}", f"{kernel}{layer}") for layer in range(30)] for kernel in "xy"]
    found = kernels_of([use(number, *some) for number, some in enumerate(calls)])
    assert len(found.choices) == 30
    said = lines(found.choices)
    assert len(said) == 6 and said[-1] == "and 25 more operations"
    assert lines(found.choices[:6])[-1] == "and 1 more operation"


@pytest.mark.parametrize(
    ("by_cudnn", "inert", "words"),
    [
        ([None, None], True, "the step has no convolution: cuDNN's flags cannot act"),
        ([False, False], True, "no convolution ran through cuDNN (on NVIDIA H200): its flags cannot act"),
        ([False, True], False, "convolutions ran through cuDNN"),
        ([None, True], False, "convolutions ran through cuDNN"),
    ],
)
def test_whether_the_flags_could_act_is_measured(by_cudnn: list[bool | None], inert: bool, words: str) -> None:
    found = kernels_of([use(number, cudnn_convolution=one) for number, one in enumerate(by_cudnn)])
    assert (found.inert, cudnn_words(found)) == (inert, words)


def test_kernels_of_none_of_two_cells_and_of_one_trial_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="no trial"):
        kernels_of([])
    with pytest.raises(ValueError, match="these are of cell, other"):
        kernels_of([use(0), use(1, cell="other")])
    with pytest.raises(ValueError, match="trial 1 of cell cell is there twice"):
        kernel_changes([use(0)], [use(1), use(1)])


@pytest.mark.parametrize("changes", [{"probe": {"name": "kernels"}}, {"phase": "calls"}])
def test_kernels_of_a_probe_and_of_calls_are_in_the_summary(changes: dict[str, Any], tmp_path: Path) -> None:
    cell = make_cell(**changes)
    study = make_study(tmp_path, [(cell, Plant())], rounds=2)
    for number, kernel in enumerate((A, B)):
        use(number, conv("conv", kernel), cell=cell.id).write(kernels_file(study.trial_folder(cell.id, number)))
    (found,) = summarise(study)["cells"]
    assert found["kernels"]["trials"] == 2 and len(found["kernels"]["choices"]) == 1
