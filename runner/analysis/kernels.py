"""Which kernels a cell's trials ran, where they chose different ones, and what changes from one cell to another.

Operations are paired by what they are: name, module, part, shapes, and the how-manieth of these in the step. Never by
their place in the list, which a single operation more would shift.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from runner.analysis.kernel_choice import Choice, Ran, operation_words, trials_words
from runner.kernel_use import KernelUse

_Key = tuple[str, str, str, tuple[str, ...], int]
_Kernels = tuple[str, ...]


@dataclass(frozen=True)
class Kernels:
    """The kernels of a cell's trials.

    `kernels` are all that any of them ran. `cudnn_convolution` says whether a convolution ran through cuDNN, None where
    no trial had one. `choices` are the operations for which trials ran different kernels, `unlike` tells in words which
    trials did other operations.
    """

    trials: int
    device: str
    kernels: list[str]
    cudnn_convolution: bool | None
    choices: list[Choice]
    unlike: list[str]

    @property
    def inert(self) -> bool:
        """Whether the flags of cuDNN could not act: no convolution ran through it."""
        return not self.cudnn_convolution


def kernels_of(uses: Sequence[KernelUse]) -> Kernels:
    """What the trials of one cell ran. Raises ValueError for none, for those of several cells, and for doubled ones."""
    _check(uses)
    by_trial = {use.number: _by_key(use) for use in uses}
    found = [use.cudnn_convolution for use in uses if use.cudnn_convolution is not None]
    return Kernels(
        trials=len(uses),
        device=uses[0].device,
        kernels=sorted({kernel for use in uses for call in use.operations for kernel in call.kernels}),
        cudnn_convolution=any(found) if found else None,
        choices=_merged(_choices(by_trial)),
        unlike=list(_unlike(by_trial)),
    )


def kernel_changes(before: Sequence[KernelUse], after: Sequence[KernelUse]) -> list[Choice]:
    """The operations for which no trial of one cell ran what a trial of the other ran; the same in both cells.

    Raises ValueError as `kernels_of` does.
    """
    sides = []
    for uses in (before, after):
        _check(uses)
        sides.append({use.number: _by_key(use) for use in uses})
    first, second = (_chosen(by_trial) for by_trial in sides)
    shared = [key for key in first if key in second]
    found = []
    for key in shared:
        if not {tuple(ran.kernels) for ran in first[key]} & {tuple(ran.kernels) for ran in second[key]}:
            found.append(_choice(key, first[key], second[key]))
    return _merged(found)


def _check(uses: Sequence[KernelUse]) -> None:
    if not uses:
        raise ValueError("no trial of the cell has kernels")
    cells, numbers = {use.cell for use in uses}, Counter(use.number for use in uses)
    if len(cells) > 1:
        raise ValueError(f"kernels of one cell can be compared, these are of {', '.join(sorted(cells))}")
    if doubled := [number for number, count in numbers.items() if count > 1]:
        raise ValueError(f"trial {doubled[0]} of cell {uses[0].cell} is there twice")


def _by_key(use: KernelUse) -> dict[_Key, _Kernels]:
    """A trial's kernels by operation."""
    seen: Counter[tuple[str, ...]] = Counter()
    found: dict[_Key, _Kernels] = {}
    for call in use.operations:
        same = (call.name, call.module, call.part, *call.shapes)
        found[call.name, call.module, call.part, call.shapes, seen[same]] = call.kernels
        seen[same] += 1
    return found


def _chosen(by_trial: dict[int, dict[_Key, _Kernels]]) -> dict[_Key, list[Ran]]:
    """What the trials ran for each operation, the most frequent first; of those that did the operation."""
    trials: dict[_Key, dict[_Kernels, list[int]]] = defaultdict(lambda: defaultdict(list))
    for number, calls in sorted(by_trial.items()):
        for key, kernels in calls.items():
            trials[key][kernels].append(number)
    return {
        key: sorted(
            (Ran(numbers, list(kernels)) for kernels, numbers in chosen.items()), key=lambda ran: -len(ran.trials)
        )
        for key, chosen in trials.items()
    }


def _choices(by_trial: dict[int, dict[_Key, _Kernels]]) -> list[Choice]:
    return [_choice(key, chosen) for key, chosen in _chosen(by_trial).items() if len(chosen) > 1]


def _choice(key: _Key, before: list[Ran], after: Sequence[Ran] = ()) -> Choice:
    name, module, part, shapes, _ = key
    return Choice(name, module, part, list(shapes), before, list(after), [])


def _merged(choices: Iterable[Choice]) -> list[Choice]:
    """The same choices of the same trials in several modules as one."""
    first: dict[str, Choice] = {}
    for one in choices:
        key = repr((one.name, one.part, one.before, one.after))
        same = first.setdefault(key, one)
        if same is not one:
            first[key] = replace(same, further=[*same.further, one.module])
    return list(first.values())


def _unlike(by_trial: dict[int, dict[_Key, _Kernels]]) -> Iterator[str]:
    """The trials that did other operations than the most of them, in words."""
    kinds: dict[frozenset[_Key], list[int]] = defaultdict(list)
    for number, calls in sorted(by_trial.items()):
        kinds[frozenset(calls)].append(number)
    usual = max(kinds, key=lambda keys: len(kinds[keys]))
    for keys, numbers in kinds.items():
        if keys == usual:
            continue
        calls = by_trial[numbers[0]]
        more = [operation_words(*key[:4]) for key in calls if key not in usual]
        fewer = [operation_words(*key[:4]) for key in by_trial[kinds[usual][0]] if key not in keys]
        said = [f"{what} {_some(places)}" for what, places in (("does", more), ("lacks", fewer)) if places]
        yield f"{trials_words(numbers)} {' and '.join(said)}, unlike {trials_words(kinds[usual])}"


def _some(places: Sequence[str]) -> str:
    further = len(places) - 1
    return f"{places[0]} and {further} further operation{'s' if further > 1 else ''}" if further else places[0]


def cudnn_words(found: Kernels) -> str:
    """Whether cuDNN's flags could act at all, as the kernels show it."""
    if found.cudnn_convolution is None:
        return "the step has no convolution: cuDNN's flags cannot act"
    if not found.cudnn_convolution:
        return f"no convolution ran through cuDNN (on {found.device}): its flags cannot act"
    return "convolutions ran through cuDNN"
