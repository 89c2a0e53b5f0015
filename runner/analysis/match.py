"""Which cells of two sides stand for each other: the same cell, or the nearest one that differs by what was changed."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from runner.cell import flatten
from runner.certificate import Facts
from runner.jsonfile import canonical

# Cells that differ in these are about different things, unless each side has a single one.
IDENTITY = (
    *("model.name", "model._target_", "dataset.name", "dataset._target_", "dataset.view", "phase"),
    *("cudnn.deterministic", "cudnn.benchmark"),
)
# What a machine decides, or how it is looked at: of two cells that differ as much, the one that differs here is nearer.
OF_A_MACHINE = {
    *("device", "threads", "isolation", "repeat_in_process"),
    *("dataset.root", "dataset.path", "dataset.download", "dataset.resident", "dataset.workers"),
}


@dataclass(frozen=True)
class Matched:
    """The pairs of cells, those of either side without a counterpart, and those with several that are as near."""

    pairs: list[tuple[Facts, Facts]]
    alone: tuple[list[Facts], list[Facts]]
    ambiguous: tuple[list[Facts], list[Facts]]


def match(first: Sequence[Facts], second: Sequence[Facts]) -> Matched:
    """Pair the nearest cells, those that differ in the fewest settings, then those that are left.

    A cell with several counterparts that are as near is not guessed: it is ambiguous, as are these.
    """
    single = len(first) == len(second) == 1
    distances = {
        (here, there): _distance(one, other)
        for here, one in enumerate(first)
        for there, other in enumerate(second)
        if single or _identity(one) == _identity(other)
    }
    pairs: list[tuple[int, int]] = []
    unclear: list[tuple[int, int]] = []
    while distances:
        least = min(distances.values())
        near = [key for key, distance in distances.items() if distance == least]
        counts = [Counter(key[side] for key in near) for side in (0, 1)]
        clear = [key for key in near if counts[0][key[0]] == counts[1][key[1]] == 1]
        pairs += clear
        unclear += [key for key in near if key not in clear]
        distances = {key: one for key, one in distances.items() if not any(_touch(key, other) for other in near)}
    sides = (first, second)
    taken, tied = ([{key[side] for key in keys} for side in (0, 1)] for keys in (pairs, unclear))
    alone = [[one for place, one in enumerate(sides[at]) if place not in taken[at] | tied[at]] for at in (0, 1)]
    ambiguous = [[sides[at][place] for place in sorted(tied[at])] for at in (0, 1)]
    return Matched(
        pairs=[(first[here], second[there]) for here, there in sorted(pairs)],
        alone=(alone[0], alone[1]),
        ambiguous=(ambiguous[0], ambiguous[1]),
    )


def _touch(key: tuple[int, int], other: tuple[int, int]) -> bool:
    return key[0] == other[0] or key[1] == other[1]


def _identity(facts: Facts) -> list[str]:
    flat = flatten(facts.config)
    return [canonical(flat.get(key)) for key in IDENTITY]


def _distance(one: Facts, other: Facts) -> tuple[int, int, int]:
    """How many settings differ, how many of those that a machine decides, and how much of the environment."""
    here, there = flatten(one.config), flatten(other.config)
    keys = differing(here, there)
    machine = sum(key in OF_A_MACHINE or key.startswith("probe.") for key in keys)
    return len(keys) - machine, machine, len(differing(one.environment, other.environment))


def differing(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    """The keys whose value is not the same on both sides; one that a side lacks is null there."""
    keys = dict.fromkeys((*before, *after))
    return [key for key in keys if canonical(before.get(key)) != canonical(after.get(key))]
