"""From the command line to cells: Hydra's sweep words, and overrides that say what they mean."""

from typing import Any

import pytest
from composed import settings
from hydra import initialize_config_module
from hydra.core.global_hydra import GlobalHydra
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.types import RunMode
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import ConfigError
from runner.expand import Asked, assignment, assignments, distinct, expand
from runner.workload import settled


def expanded(*words: str) -> list[Asked]:
    """The cells that these words are for the sweeper."""
    with initialize_config_module(version_base="1.3", config_module="runner.conf"):
        loader = GlobalHydra.instance().config_loader()
        config = loader.load_configuration("config", [], run_mode=RunMode.MULTIRUN)
        return expand(list(words), config, loader)


def parsed(override: str) -> Any:
    """The value that Hydra reads from an override."""
    return OverridesParser.create().parse_override(override).value()


def modes(cells: list[Asked]) -> list[tuple[bool, bool]]:
    return [(asked.settings.cudnn.deterministic, asked.settings.cudnn.benchmark) for asked in cells]


def test_no_words_are_one_cell() -> None:
    (asked,) = expanded()
    assert (asked.overrides, modes([asked])) == ((), [(False, False)])


def test_a_pattern_is_every_file_of_the_group() -> None:
    cells = expanded("cudnn=glob(*)")
    assert sorted(modes(cells)) == [(False, False), (False, True), (True, False), (True, True)]
    assert len({asked.cell.id for asked in cells}) == 4


def test_sweeps_multiply_and_single_values_go_to_every_cell() -> None:
    cells = expanded("model.depth=10,18", "train.steps=range(1,4)", "threads=2")
    found = [(asked.settings.model.depth, asked.settings.train.steps, asked.settings.threads) for asked in cells]
    assert found == [(depth, steps, 2) for depth in (10, 18) for steps in (1, 2, 3)]


def test_a_job_composed_from_its_overrides_is_the_same_cell() -> None:
    for asked in expanded("model=resnet,lstm", "seeds.vary=[init],[order,dropout]", "++train.optimizer=sgd"):
        assert expanded(*asked.overrides)[0].cell == asked.cell


def test_a_list_is_one_value_not_a_sweep() -> None:
    (asked,) = expanded("seeds.vary=[init,order]")
    assert asked.settings.seeds.vary == ["init", "order"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["trials=1", "trials=2"], "trials=1: is given more than once"),
        (["cudnn=default", "cudnn=benchmark"], "cudnn=default: is given more than once"),
        (["cudnn=glob(nope*)"], "benchmark, default, deterministic, deterministic_benchmark"),
        (["train.steps=range(0)"], "train.steps=range(0): matches nothing"),
        (["train.learning_rate=interval(0,1)"], "train.learning_rate=interval(0,1): list the values"),
        (["train.steps=0,1"], "train.steps=0: must be at least 1"),
    ],
)
def test_words_that_mean_no_cells_are_refused(words: list[str], said: str) -> None:
    with pytest.raises(ConfigError) as refused:
        expanded(*words)
    assert said in str(refused.value)


def test_a_cell_reached_by_different_words_is_refused_with_both() -> None:
    cells = expanded("dataset.view=null,image")
    with pytest.raises(ConfigError, match=r"dataset\.view=image.*dataset\.view=null"):
        distinct(cells)


def test_different_cells_pass() -> None:
    distinct(expanded("cudnn=glob(*)", "seeds=fixed,all"))


@given(st.text())
def test_any_text_is_read_by_hydra_as_it_is(value: str) -> None:
    assert parsed(assignment("study", value)) == value


@given(st.text(alphabet="\\\"'$={}[](),: a\n\t#~@é\u2028"))
def test_text_full_of_grammar_is_read_by_hydra_as_it_is(value: str) -> None:
    assert parsed(assignment("study", value)) == value


@pytest.mark.parametrize(
    "value",
    ["", "\\", "a\\", "\\\\", 'a"', '\\"', "it's", "a,b", "a=b", "1", "null", "true", "[a]", " a ", "a\\\n", 'é\\"\\'],
)
def test_awkward_text_is_read_by_hydra_as_it_is(value: str) -> None:
    assert parsed(assignment("study", value)) == value


@given(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_any_other_value_keeps_value_and_type(value: Any) -> None:
    found = parsed(assignment("key", value))
    assert (found, type(found)) == (value, type(value))


def test_what_the_machine_decided_is_said_in_overrides_that_lead_there() -> None:
    before = settings("train.batch_size=16")
    after = settled(before, "cpu", 3)
    words = assignments(before, after)
    assert sorted(word.partition("=")[0] for word in words) == [
        *("dataset.size", "device", "threads", "train.steps", "trials")
    ]
    (asked,) = expanded("train.batch_size=16", *(word for word in words if not word.startswith("study")))
    assert (asked.settings.train, asked.settings.threads, asked.settings.dataset.size) == (after.train, 3, 8)


def test_nothing_decided_is_nothing_said() -> None:
    one = settings("study=here")
    assert assignments(one, one) == []
