"""docs/calibration.md: the rows of scripts/calibrate.py as tables, and which bounds they keep."""

from collections.abc import Iterable, Sequence
from typing import Any

from simulated import LOOKS

from runner.report.markdown import grid

INTERVALS, EFFECTS = ("ratio", "mean", "sd"), ("1.02", "1.03", "1.05")
Row = dict[str, Any]
INTRODUCTION = """# How often our verdicts are wrong

Made by `python scripts/calibrate.py --write docs`; figures by hand would be lost. The step times are drawn from
scenarios whose truth is known; what is judged is judged by the functions of `runner.analysis` that judge a real
study. A study has a default and three other cells, so three comparisons. Its rounds are in the product's own shuffled
order. The margin is 2 %. Behind each share stands its Monte-Carlo standard error.

Scenarios: `noise-N`: the log step time of a trial has the sd N %, no cell differs. `effects-N`: the same noise, the
cells take 1.02 (the edge of the margin), 1.03 and 1.05 of the default's time. The others have a noise of 1 %.
`outliers`: one trial in twenty is 10 to 30 % slower. `drift-N`: everything becomes N % slower from round to round.
`place`: each position within a round costs 0.4 %, and there is no margin; `place-fixed` shows what would be without
shuffling. `lottery-N`: each trial of one cell draws one of two plans that lie N % apart, with equal chances.
"""
CLAIMS = """
## Wrong claims

The share of studies in which at least one of the three verdicts is wrong: "faster" or "slower" where that is not so,
"equivalent" where the true ratio is not within the margin. Asked at once with 5, 10 or 20 rounds, a study may have
1.7 %, 3.3 % and 5 % of them; one that grows from 5 to 10 to 20 rounds and is looked at each time, 5 % over all looks.
"""
COVERAGE = """
## Intervals

The share of 95 % intervals that hold the truth, after 5 / 10 / 20 rounds: of a ratio (one comparison that has the
whole 5 %), of the mean and of the sd of a cell's step time. Then all three ratios of a study at once, at the level of
its look (98.3 %, 96.7 %, 95 %), and over all looks of a study that grows (95 %): where an interval holds the truth no
claim can be wrong, whatever the margin.

Under drift an interval of a mean or an sd is wider than it need be, because the drift counts as spread of the trials;
the ratios are taken within rounds and do not feel it. Outliers that most samples of this size have few of, or none,
are what the intervals of means and sds miss; in a ratio they widen the interval.
"""
EDGE = """
"Equivalent" alone, where the cell takes 1.02 (the edge of the margin) or 1.03 of the default's time, and so is not:
shares of comparisons after 5 / 10 / 20 rounds asked at once.
"""
POWER = """
## What a study sees

The share of comparisons that end with "slower" after 5 / 10 / 20 rounds asked at once, where the cell takes 2, 3 or
5 % more time than the default. What is "faster" by as much is seen as often.
"""
EQUAL = """
And with "equivalent" where nothing differs:
"""
LOTTERY = """
## The lottery of tuning

After 5 / 10 / 20 rounds. "Recognised" and "counted right" (so many trials of each plan as there were) are among the
studies in which both plans were drawn at least twice; "false" is among cells with one plan.
"""


def page(rows: Sequence[Row]) -> str:
    """The page of these rows."""
    simulated, real = [row for row in rows if "shares" in row], [row for row in rows if "alarms" in row]
    tables = [
        INTRODUCTION,
        *_bounds(simulated),
        CLAIMS,
        _table(["scenario", *(f"{rounds} rounds" for rounds in LOOKS), "looks at 5, 10, 20"], map(_claims, simulated)),
        EDGE,
        _table(["noise", "1.02", "1.03"], _verdicts(simulated, "equivalent", ("1.02", "1.03"))),
        COVERAGE,
        _table(["scenario", "ratio", "mean", "sd", "three ratios", "at every look"], map(_coverage, simulated)),
        POWER,
        _table(["noise", "2 % slower", "3 % slower", "5 % slower"], _verdicts(simulated, "slower", EFFECTS)),
        EQUAL,
        _table(["noise", "equivalent"], _equal(simulated)),
        LOTTERY,
        _table(["scenario", "recognised", "counted right", "false"], map(_lottery, simulated)),
        *_real(real),
        *_software(rows),
    ]
    return "\n".join(tables)


def outside(rows: Iterable[Row]) -> list[str]:
    """The bounds that are not kept, in words; `place-fixed` is there to break them."""
    found = []
    for row in rows:
        for name, low, high in _bounds_of(row):
            value = row["shares"][name]
            if not low <= value["share"] <= high:
                found.append(
                    f"`{row['row']}`, {name}: {_percent(value)}, should be {100 * low:.3g} to {100 * high:.3g} %"
                )
    return found


def _bounds_of(row: Row) -> list[tuple[str, float, float]]:
    kind, shares = row["row"].split("-")[0], row["shares"]
    honest = kind in ("noise", "effects", "outliers", "drift") or row["row"] == "place-shuffled"
    return [
        *((name, 0.0, 0.05) for name in shares if honest and "wrong claim" in name),
        *((name, 0.95, 1.0) for name in shares if honest and "all covered" in name),
        *(
            (f"{rounds} {what} covered", 0.94, 0.96)
            for rounds in LOOKS
            for what in INTERVALS
            if kind in ("noise", "drift")
        ),
        *((name, 0.95, 1.0) for name in shares if "recognised" in name),
    ]


def _bounds(rows: Sequence[Row]) -> list[str]:
    words = (
        "Bounds: at most 5 % wrong claims; 95 % intervals hold the truth in 94 to 96 % for noise and drift; a lottery"
    )
    words += " is recognised in at least 95 %."
    missed = outside(rows)
    if not missed:
        return [f"{words} All are kept."]
    return [f"{words} All are kept but:\n", *(f"- {line}" for line in missed)]


def _claims(row: Row) -> list[str]:
    names = [*(f"{rounds} wrong claim" for rounds in LOOKS), "wrong claim at any look"]
    return [row["row"], *(_percent(row["shares"][name]) for name in names)]


def _coverage(row: Row) -> list[str]:
    kinds = ("ratio covered", "mean covered", "sd covered", "all covered")
    every = _percent(row["shares"]["all covered at every look"])
    return [row["row"], *(_over_rounds(row, kind) for kind in kinds), every]


def _verdicts(rows: Sequence[Row], verdict: str, truths: Sequence[str]) -> Iterable[list[str]]:
    for row in rows:
        if row["row"].startswith("effects"):
            yield [_noise(row), *(_over_rounds(row, f"{verdict} at {truth}") for truth in truths)]


def _equal(rows: Sequence[Row]) -> Iterable[list[str]]:
    return ([_noise(row), _over_rounds(row, "equivalent at 1")] for row in rows if row["row"].startswith("noise"))


def _noise(row: Row) -> str:
    return f"{100 * row['scenario']['noise']:g} %"


def _lottery(row: Row) -> list[str]:
    names = ("lottery recognised", "plans counted right", "lottery where none is")
    return [row["row"], *(_over_rounds(row, name) for name in names)]


def _over_rounds(row: Row, name: str) -> str:
    found = [row["shares"].get(f"{rounds} {name}") for rounds in LOOKS]
    return " / ".join(_percent(one) for one in found if one)


def _percent(value: dict[str, float]) -> str:
    return f"{100 * value['share']:.1f} ± {100 * value['se']:.1f} %"


def _real(rows: Sequence[Row]) -> list[str]:
    if not rows:
        return []
    words = """
## Real studies

One mode under four names (`cudnn.benchmark_limit` differs, which cannot act while benchmark is off), so that every
claimed difference is false. Studies with a false claim as printed (at most 1.7 % at 5 rounds), and with the whole 5 %
and no margin.
"""
    names = [
        "device",
        "studies of 5 rounds",
        "noise of a trial",
        "false claims as printed",
        "with the whole 5 %, no margin",
    ]
    return [words, _table(names, map(_real_row, rows))]


def _real_row(row: Row) -> list[str]:
    place, alarms = row["environment"], row["alarms"]
    device = place["gpu_name"] or f"{place['device']}, threads: {place['threads']}"
    counts = [str(alarms[name]) for name in ("as_printed", "whole_5_percent_no_margin")]
    return [f"{device}, torch {place['torch']}", str(row["studies"]), f"{100 * row['noise']:.2f} %", *counts]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    return grid([list(line) for line in (head, *rows)])


def _software(rows: Sequence[Row]) -> list[str]:
    made = {", ".join(f"{name} {value}" for name, value in row["software"].items()): None for row in rows}
    studies = sorted({row["studies"] for row in rows if "shares" in row})
    count = f"Simulated studies a row: {' and '.join(f'{number:,}' for number in studies)}." if studies else ""
    return ["\n## Made with\n", count, *(f"- {line}" for line in made), ""]
