"""A choice of kernels: an operation for which not all trials, or not both of two cells, ran the same; and its words."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

MOST_LINES = 5
_LONGEST = 140


@dataclass(frozen=True)
class Ran:
    """The trials that ran the same kernels for an operation, and these kernels."""

    trials: list[int]
    kernels: list[str]


@dataclass(frozen=True)
class Choice:
    """An operation for which not all ran the same kernels: the trials of a cell, or two cells.

    `before` are the choices of the trials, the most frequent first, of the first cell where there are two; `after`
    those of the second cell. `further` are the modules in which the same was chosen in the same way.
    """

    name: str
    module: str
    part: str
    shapes: list[str]
    before: list[Ran]
    after: list[Ran]
    further: list[str]


def choice_words(choice: Choice) -> str:
    """One line: which trials ran which kernels, or what one cell ran in place of the other's, and for what."""
    apart = _apart([*choice.before, *choice.after])
    before = [(ran, apart[place]) for place, ran in enumerate(choice.before)]
    after = [(ran, apart[len(before) + place]) for place, ran in enumerate(choice.after)]
    if after:
        said = f"{_either(before)} becomes {_either(after)}"
    else:
        (usual, kernels), *others = before
        chose = "; ".join(f"{trials_words(ran.trials)} ran {other}" for ran, other in others)
        said = f"{chose} where {trials_words(usual.trials)} ran {kernels}"
    where = operation_words(choice.name, choice.module, choice.part, choice.shapes)
    count = len(choice.further)
    more = f", the same in {count} further {'module' if count == 1 else 'modules'}" if count else ""
    return f"{said}, for {where}{more}"


def lines(choices: Sequence[Choice]) -> list[str]:
    """The choices in words, the first ones of many; the last line counts the rest."""
    told = [choice_words(one) for one in choices[:MOST_LINES]]
    rest = sum(1 + len(one.further) for one in choices[MOST_LINES:])
    return [*told, f"and {rest} more operation{'s' if rest > 1 else ''}"] if rest else told


def operation_words(name: str, module: str, part: str, shapes: Sequence[str]) -> str:
    """An operation in words: "aten::convolution_backward of layer4.1.conv2 (backward; 64x512x7x7, 512x512x3x3)"."""
    of = f" of {module}" if module else ""
    return f"{name}{of} ({'; '.join(filter(None, (part, ', '.join(dict.fromkeys(shapes)))))})"


def _either(several: Sequence[tuple[Ran, str]]) -> str:
    if len(several) == 1:
        return several[0][1]
    return " or ".join(f"{kernels} ({trials_words(ran.trials)})" for ran, kernels in several)


def trials_words(numbers: Sequence[int]) -> str:
    """Numbers in words: "trial 3", "trials 0-2, 5"."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and spans[-1][-1] == number - 1:
            spans[-1].append(number)
        else:
            spans.append([number])
    said = [f"{span[0]}-{span[-1]}" if len(span) > 1 else f"{span[0]}" for span in spans]
    return f"{'trial' if len(numbers) == 1 else 'trials'} {', '.join(said)}"


def _apart(several: Sequence[Ran]) -> list[str]:
    """The kernels of each in words: those that not all of them have, by short names if these tell them apart."""
    counts = [Counter(ran.kernels) for ran in several]
    common = counts[0].copy()
    for count in counts[1:]:
        common &= count
    own = [list((count - common).elements()) for count in counts]
    for shorten in (_short, _cut, str):
        told = [" + ".join(map(shorten, kernels)) or "nothing more" for kernels in own]
        if len(set(told)) == len({tuple(ran.kernels) for ran in several}):
            break
    return told


def _short(kernel: str) -> str:
    """A kernel's name without its return type, template arguments and parameters."""
    name = kernel.removeprefix("void ").replace("(anonymous namespace)::", "")
    return _cut(re.split(r"[<(]", name, maxsplit=1)[0].rstrip())


def _cut(kernel: str) -> str:
    return kernel if len(kernel) <= _LONGEST else f"{kernel[:_LONGEST]} ..."
