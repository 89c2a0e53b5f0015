"""What n equal trainings say: the sentence that holds, with the chance that it leaves of a further one that differs."""

from runner.analysis.divergence import equality_bound
from runner.analysis.words import percent
from runner.certificate import Facts

HERE = "on this machine in this state"


def fixed_bound(n: int) -> float:
    """1 - 0.05^(1/n): n trainings equal to digests fixed beforehand leave this chance of a difference (95 %)."""
    return float(1 - 0.05 ** (1 / n))


def certified_words(cell: Facts) -> str:
    """The statement of a certificate about one cell, whose trainings are all equal; at least two processes."""
    n, starts = cell.processes, cell.interpreters
    said = f"{cell.label}: {n} of {n} fresh processes bitwise equal, {_origin(n, starts)}; chance that a further"
    if starts == n:
        return f"{said} one differs below {_below(equality_bound(n))}, {HERE}"
    start = equality_bound(starts)
    return f"{said} process differs below {_below(equality_bound(n))}, {HERE}; {_of_a_start(start)}"


def held_words(cell: Facts) -> str:
    """The statement of a check about one cell, all of whose trainings have a certificate's bits."""
    n, starts = cell.processes, cell.interpreters
    said = f"{cell.label}: holds, {n} of {n} fresh processes gave the certificate's bits, {_origin(n, starts)}"
    if starts == n:
        return f"{said}; chance that a further one differs below {_below(fixed_bound(n))}, {HERE}"
    bounds = f"chance that a further process differs below {_below(fixed_bound(n))}"
    return f"{said}; {bounds}, {HERE}; {_of_a_start(fixed_bound(starts))}"


def _below(bound: float | None) -> str:
    assert bound is not None
    return f"{percent(bound)} at 95 %"


def _origin(processes: int, starts: int) -> str:
    if starts == processes:
        return "each a new start of Python"
    return "all from one interpreter" if starts == 1 else f"from {starts} interpreters"


def _of_a_start(bound: float | None) -> str:
    """What is said of a new start of Python: it counts interpreters, not processes."""
    if bound is None:
        return "a new start of Python was not tried: isolation=spawn does"
    return f"that a new start of Python does, below {_below(bound)} (isolation=spawn makes each process one)"
