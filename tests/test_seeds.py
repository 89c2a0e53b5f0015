"""The seeds of a trial: one for each stream, varying alone."""

from hypothesis import given
from hypothesis import strategies as st

from runner.seeds import STREAMS, stream_seeds

streams = st.lists(st.sampled_from(STREAMS), unique=True)
bases, numbers = st.integers(0, 2**63 - 1), st.integers(0, 10_000)


@given(bases, streams, numbers, numbers)
def test_only_named_streams_change_from_trial_to_trial(base: int, vary: list[str], one: int, other: int) -> None:
    first, second = stream_seeds(base, vary, one), stream_seeds(base, vary, other)
    assert list(first) == list(STREAMS)
    changed = {name for name in STREAMS if first[name] != second[name]}
    assert changed == (set(vary) if one != other else set())


@given(bases, streams, numbers)
def test_seeds_fit_every_generator(base: int, vary: list[str], number: int) -> None:
    assert all(0 <= seed < 2**63 for seed in stream_seeds(base, vary, number).values())


@given(bases, streams, numbers)
def test_streams_share_no_seed(base: int, vary: list[str], number: int) -> None:
    assert len(set(stream_seeds(base, vary, number).values())) == len(STREAMS)


@given(bases, bases)
def test_another_base_changes_every_stream(one: int, other: int) -> None:
    first, second = stream_seeds(one, [], 0), stream_seeds(other, [], 0)
    assert (one == other) == all(first[name] == second[name] for name in STREAMS)
    assert one == other or all(first[name] != second[name] for name in STREAMS)


def test_the_first_trial_has_the_same_seeds_whatever_varies() -> None:
    assert stream_seeds(3, list(STREAMS), 0) == stream_seeds(3, [], 0)


def test_seeds_are_the_same_in_every_version() -> None:
    assert stream_seeds(0, ["init"], 1) == {
        "init": 6826818891440556349,
        "order": 3955691223199900983,
        "augment": 3177512539365405927,
        "dropout": 4023325499779945388,
    }
