"""The first number that is none: the operation that made it is named, and what led to it."""

import pytest
from made_traces import Machine, Memory, bits

from runner.analysis.traces import compare
from runner.trace import Trace


def diverging(*steps: tuple[str, str | None, list[str]]) -> Trace:
    """A trace of operations, each with its name, what it gives, and the names of those that it reads."""
    machine, made = Machine(0), {"data": Memory(bits("data"))}
    for name, gives, reads in steps:
        made[name] = machine.do(f"aten.{name}", *(made[one] for one in reads), module=name, not_finite=gives)
    return machine.trace()


FINITE: tuple[str, str | None, list[str]] = ("exp", None, ["data"])


@pytest.mark.parametrize(
    ("trace", "words"),
    [
        (
            diverging(FINITE, ("log", "nan", ["exp"]), ("sum", "nan", ["log"])),
            "makes the first NaN of trial 0 from finite",
        ),
        (diverging(FINITE, ("log", "inf", ["exp"]), ("sum", "inf", ["log"])), "makes the first infinity of trial 0"),
        (diverging(("log", "nan", ["data"])), "unless its input from outside the trace held one"),
    ],
)
def test_the_maker_of_the_first_number_that_is_none_is_named(trace: Trace, words: str) -> None:
    found = compare([trace], not_finite=True).first_not_finite
    assert found is not None and (found.name, found.module) == ("aten.log", "log")
    assert words in found.words
    assert compare([trace]).first_not_finite is None


def test_a_nan_is_followed_to_its_infinity_and_a_mask_is_passed_over() -> None:
    mask = ("masked_fill", "inf", ["exp"])
    power, double = ("pow", "inf", ["exp"]), ("mul", "inf", ["pow"])
    trace = diverging(
        FINITE, mask, ("softmax", None, ["masked_fill"]), power, double, ("sub", "nan", ["mul", "softmax"])
    )
    found = compare([trace], not_finite=True).first_not_finite
    assert found is not None and found.name == "aten.sub"
    assert found.words.endswith("from an infinity, which aten.pow of pow (forward, step 1, net.py:7) made")
