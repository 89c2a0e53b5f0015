"""Advice: what removes a difference, never what the cell has already, and honest where nothing is known."""

from dataclasses import replace
from typing import Any

import pytest
from test_command import FLAGS, FULL, config
from test_ladder import EQUAL

from runner.analysis.advice import NOTHING_KNOWN, advice, advice_above
from runner.analysis.command import trying
from runner.analysis.finding import Finding, Repeats, Rung
from runner.analysis.remedies import TABLE

UNET = {"name": "unet", "width": 64, "depth": 4, "upsampling": "bilinear"}
AGAIN: Repeats = "differs when repeated"
BETWEEN: Repeats = "differs between processes"
ABOVE = {"start": replace(EQUAL, same_start=False), "data": replace(EQUAL, first_data_step=2)}


def found(name: str = "aten.relu.default", repeats: Repeats | None = None, rung: Rung = "operation") -> Finding:
    return Finding(rung, 1, 0, "backward", name, "conv", None, [], [0, 1], 2, repeats)


def changes(name: str, repeats: Repeats | None = None, rung: Rung = "operation", **settings: Any) -> list[str]:
    """The overrides that are advised, in order; "" for advice in words alone."""
    mode = settings.pop("mode", "default")
    return [one.change or "" for one in advice(found(name, repeats, rung), config(mode, **settings))]


CONVOLUTION = "aten.convolution_backward.default"
BILINEAR = "aten.upsample_bilinear2d_backward.default"


@pytest.mark.parametrize(
    ("mode", "repeats", "due"),
    [
        ("default", AGAIN, ["cudnn=deterministic", "cudnn=deterministic_benchmark"]),
        ("default", None, ["cudnn=deterministic", "cudnn=deterministic_benchmark"]),
        ("benchmark", AGAIN, ["cudnn=deterministic", "cudnn=deterministic_benchmark"]),
        ("benchmark", BETWEEN, ["cudnn=deterministic", "cudnn=default"]),
        ("deterministic_benchmark", BETWEEN, ["cudnn=deterministic"]),
        ("deterministic_benchmark", None, ["cudnn=deterministic"]),
        ("deterministic_benchmark", AGAIN, [""]),
        ("deterministic", AGAIN, [""]),
    ],
)
def test_convolutions_are_what_the_flags_are_for(mode: str, repeats: Repeats | None, due: list[str]) -> None:
    assert changes(CONVOLUTION, repeats, mode=mode) == due
    assert changes("aten.cudnn_convolution.default", repeats, mode=mode) == due


def test_strict_mode_makes_convolutions_deterministic_as_the_flag_does() -> None:
    assert changes(CONVOLUTION, AGAIN, determinism=FULL) == [""]
    assert changes(CONVOLUTION, BETWEEN, mode="benchmark", determinism=FULL) == ["cudnn=deterministic"]


@pytest.mark.parametrize("mode", ["default", "deterministic", "deterministic_benchmark"])
def test_bilinear_upsampling_needs_strict_mode_or_another_operation(mode: str) -> None:
    assert changes(BILINEAR, AGAIN, mode=mode, model=UNET) == ["determinism=full", "model.upsampling=transposed"]
    assert changes(BILINEAR, AGAIN, mode=mode) == ["determinism=full"]
    assert changes(BILINEAR, AGAIN, mode=mode, model=UNET, determinism=FULL) == ["model.upsampling=transposed"]


@pytest.mark.parametrize(
    ("name", "due"),
    [
        ("aten.nll_loss2d_forward.default", "determinism=full"),
        ("aten.index_put_.default", "determinism=full"),
        ("aten._index_put_impl_.default", "determinism=full"),
        ("aten._unsafe_index_put.default", "determinism=full"),
        ("aten.scatter_add_.default", "determinism=full"),
        ("aten.embedding_dense_backward.default", "determinism=full"),
        ("aten.replication_pad2d_backward.default", "determinism=full"),
        ("aten._scaled_dot_product_flash_attention_backward.default", "determinism=full"),
        ("aten.addmm.default", 'determinism.workspace=":4096:8"'),
        ("aten._cudnn_rnn_backward.default", 'determinism.workspace=":16:8"'),
    ],
)
def test_the_table_knows_the_operations_out_of_the_flags_reach(name: str, due: str) -> None:
    assert changes(name, AGAIN) == [due]
    assert changes(name, AGAIN, mode="deterministic") == [due]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("aten.upsample_bicubic2d_backward.default", "mode=nearest"),
        ("aten._upsample_bilinear2d_aa_backward.default", "mode=nearest"),
        ("aten._adaptive_avg_pool2d_backward.default", "AvgPool2d"),
        ("aten.reflection_pad2d_backward.default", "slices and cat"),
        ("aten.grid_sampler_2d_backward.default", "sampling from index"),
        ("aten.max_unpool2d.default", "fixed order"),
        ("aten._ctc_loss_backward.default", "int32 targets"),
        ("aten.bincount.default", "on the CPU"),
    ],
)
def test_where_strict_mode_refuses_another_operation_is_named(name: str, words: str) -> None:
    (one,) = advice(found(name, AGAIN), config())
    assert one.change is None and words in one.words


def test_nothing_known_is_said_so() -> None:
    assert advice(found("aten.native_layer_norm_backward.default", AGAIN), config()) == [NOTHING_KNOWN]
    assert advice(found("mine.scan.default", BETWEEN), config()) == [NOTHING_KNOWN]
    assert "--repro" in NOTHING_KNOWN.words


def test_on_a_cpu_threads_are_the_first_suspect() -> None:
    assert changes("aten.addmm.default", AGAIN, device="cpu") == ["threads=1"]
    assert changes(CONVOLUTION, None, device="cpu")[-1] == "threads=1"
    assert changes("aten.addmm.default", AGAIN, device="cpu", threads=1) == [""]


def test_processes_of_one_interpreter_tell_whether_its_hashes_matter() -> None:
    assert changes("aten.relu.default", BETWEEN, isolation="spawn") == ["isolation=forkserver"]
    assert changes("aten.relu.default", AGAIN, isolation="spawn") == [""]


def test_a_module_is_looked_into() -> None:
    (one,) = advice(found("Conv2d"), config())
    assert "probe=ops" in one.words


@pytest.mark.parametrize("rung", ["random", "scalar", "outside", "uninitialised", "path"])
def test_every_rung_has_an_advice(rung: Rung) -> None:
    assert NOTHING_KNOWN not in advice(found(rung=rung), config())


def test_seeds_that_vary_by_design_are_fixed_and_others_looked_for() -> None:
    dropout = {"seeds": {"base": 0, "vary": ["dropout"]}}
    assert changes("aten.bernoulli_.float", rung="random", **dropout) == ["seeds=fixed"]
    assert changes("aten.bernoulli_.float", rung="random") == [""]
    assert changes("aten.add.Tensor", rung="uninitialised") == ["", "determinism=full"]
    assert changes("aten.add.Tensor", rung="uninitialised", determinism=FULL) == [""]


@pytest.mark.parametrize("rung", ["start", "data"])
def test_above_operations_it_is_seeds_or_code(rung: str) -> None:
    varied = advice_above(ABOVE[rung], config(seeds={"base": 0, "vary": ["init", "order", "augment", "dropout"]}))
    assert [one.change for one in varied] == ["seeds=fixed"]
    (code,) = advice_above(ABOVE[rung], config())
    assert code.change is None and "global generator" in code.words


def test_data_read_by_workers_are_read_without_them() -> None:
    read, _ = advice_above(ABOVE["data"], config(dataset={"name": "custom", "workers": 4}))
    assert read.change == "dataset.workers=0"
    without = advice_above(ABOVE["data"], config(dataset={"name": "custom", "workers": 0}))
    assert [one.change for one in without] == [None]
    assert advice_above(EQUAL, config(dataset={"name": "custom", "workers": 4})) == []


def test_no_advice_is_what_a_cell_has_already() -> None:
    """Whatever is found, each change leads to another cell, by a command that can be made."""
    for name in (CONVOLUTION, BILINEAR, "aten.mm.default", "aten.index_put_.default"):
        for mode in ("default", "benchmark", "deterministic", "deterministic_benchmark"):
            for determinism in (FLAGS, FULL):
                cell = config(mode, determinism=determinism, model=UNET)
                for one in advice(found(name), cell):
                    if one.change:
                        before, _, after = trying(["python", "-m", "runner"], cell, one.change).partition(",")
                        assert after and not before.endswith(f"={after.split()[0]}")


def test_every_row_has_a_source() -> None:
    assert all(row.source and not row.words.endswith(".") for row in TABLE)
