"""Where trainings part: the first bits that are not the same in all of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from runner.certificate import Bits
from runner.jsonfile import canonical

END = 10**12  # the evaluation comes after every step


@dataclass(frozen=True)
class Parting:
    """What differs between trainings; steps count from 1, None where nothing differs.

    `steps` is how many steps all of them took: where one took more, data and losses differ from the step after these.
    `equal_after` is the last checkpoint before the first at which weights differ (`differ_after`).
    """

    steps: int
    initial: bool
    data_step: int | None
    loss_step: int | None
    equal_after: int | None
    differ_after: int | None
    evaluation: bool

    @property
    def first(self) -> tuple[int, int] | None:
        """The step of the first difference (0: before the first step) and its place within the step; None for none."""
        places = ((self.data_step, 0), (self.loss_step, 1), (self.differ_after, 2))
        found = [(step, place) for step, place in places if step is not None]
        found += [(0, 0)] if self.initial else []
        found += [(END, 0)] if self.evaluation else []
        return min(found, default=None)

    @property
    def within(self) -> bool:
        """Whether something differs that all have come to: before the first step, or in one that all took."""
        return self.first is not None and self.first[0] <= self.steps

    @property
    def by_end(self) -> bool:
        """Whether nothing differs up to the end of the shortest training, and others go on."""
        return self.data_step == self.steps + 1 and self.first == (self.data_step, 0)


def parting(trainings: Sequence[Bits]) -> Parting:
    """Compare trainings, at least one."""
    equal_after, differ_after = _weights(trainings)
    return Parting(
        steps=min(len(one.losses) for one in trainings),
        initial=len({one.initial for one in trainings}) > 1,
        data_step=_first([one.data for one in trainings]),
        loss_step=_first([one.losses for one in trainings]),
        equal_after=equal_after,
        differ_after=differ_after,
        evaluation=len({(one.metrics, one.predictions) for one in trainings}) > 1,
    )


def across(first: Sequence[Bits], second: Sequence[Bits]) -> Parting:
    """Where the trainings of two sides part: those of equal seeds, if both sides have such; the earliest of all."""
    by_seeds = [_by_seeds(first), _by_seeds(second)]
    shared = [key for key in by_seeds[0] if key in by_seeds[1]]
    if not shared:
        return parting([*first, *second])
    return _earliest(parting([*by_seeds[0][key], *by_seeds[1][key]]) for key in shared)


def within(trainings: Sequence[Bits]) -> Parting:
    """Where the trainings of one side part among themselves: those of equal seeds, the earliest of all."""
    return _earliest(map(parting, _by_seeds(trainings).values()))


def _by_seeds(trainings: Sequence[Bits]) -> dict[str, list[Bits]]:
    found: dict[str, list[Bits]] = {}
    for one in trainings:
        found.setdefault(canonical(one.seeds), []).append(one)
    return found


def _earliest(partings: Iterator[Parting]) -> Parting:
    return min(partings, key=lambda one: one.first or (END, 1))


def _first(series: Sequence[Sequence[str]]) -> int | None:
    """The first step (from 1) at which not all are the same; the one after the common ones, if one has more."""
    common = min(map(len, series))
    different = (step for step, bits in enumerate(zip(*series, strict=False), 1) if len(set(bits)) > 1)
    return next(chain(different, [common + 1] if len({len(one) for one in series}) > 1 else []), None)


def _weights(trainings: Sequence[Bits]) -> tuple[int | None, int | None]:
    """Over the checkpoints that all have: the last one with the same weights before the first with others, and that."""
    equal: int | None = None
    for step in sorted(set.intersection(*(set(map(int, one.weights)) for one in trainings))):
        if len({one.weights[str(step)] for one in trainings}) > 1:
            return equal, step
        equal = step
    return equal, None
