"""Where trainings part, worked out by hand."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.analysis.parting import END, across, parting, within
from runner.certificate import Bits


def bits(losses: str = "abcd", seed: int = 0, **changes: Any) -> Bits:
    """A training with a letter for each step's loss."""
    fields: dict[str, Any] = {
        "seeds": {"init": seed},
        "initial": "0",
        "data": list("1234")[: len(losses)],
        "losses": list(losses),
        "weights": {"1": "w", "2": "w", "4": "w"},
        "metrics": "m",
        "predictions": "p",
    }
    return Bits(**fields | changes)


CASES = [
    (bits(), (None, None, None, 4, None, False), None),
    (bits("abXd"), (None, 3, None, 4, None, False), (3, 1)),
    (bits("abXd", weights={"1": "w", "2": "w", "4": "X"}), (None, 3, 2, 4, 4, False), (3, 1)),
    (bits(weights={"1": "X", "2": "X", "4": "X"}), (None, None, None, 4, 1, False), (1, 2)),
    (bits("Xbcd", data=list("X234")), (1, 1, None, 4, None, False), (1, 0)),
    (bits(metrics="X"), (None, None, None, 4, None, True), (END, 0)),
    (bits(initial="X"), (None, None, None, 4, None, False), (0, 0)),
    (bits("abc", weights={"1": "w", "2": "w", "3": "x"}), (4, 4, None, 3, None, False), (4, 0)),
]


@pytest.mark.parametrize(("other", "seen", "first"), CASES)
def test_the_first_difference_of_each_kind(other: Bits, seen: tuple[Any, ...], first: Any) -> None:
    found = parting([bits(), bits(), other])
    equal = found.equal_after if found.differ_after else None
    assert (found.data_step, found.loss_step, equal, found.steps, found.differ_after, found.evaluation) == seen
    assert found.first == first and found.initial == (other.initial == "X")


def test_trainings_of_other_seeds_are_not_held_against_each_other() -> None:
    here = [bits("abcd", seed=0), bits("efgh", seed=1)]
    assert within(here).first is None
    assert across(here, here).first is None
    assert across(here, [bits("efgX", seed=1), bits("zzzz", seed=2)]).first == (4, 1)
    assert across(here[:1], [bits("abXd", seed=5)]).first == (3, 1)  # none in common: all against all


@settings(max_examples=50, deadline=None)
@given(st.lists(st.text("ab", min_size=4, max_size=4), min_size=1, max_size=5), st.randoms())
def test_the_order_of_trainings_does_not_matter(losses: list[str], random: Any) -> None:
    trainings = [bits(one) for one in losses]
    mixed = random.sample(trainings, len(trainings))
    assert parting(trainings) == parting(mixed)
    expected = next((step for step in range(1, 5) if len({one[step - 1] for one in losses}) > 1), None)
    assert parting(trainings).loss_step == expected
