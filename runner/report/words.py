"""What a report says about one cell, in words. Takes the cells of summary.json, knows no statistics."""

from collections.abc import Callable, Sequence
from typing import Any

from runner.report.number import NONE, number, percent


def completeness_words(summary: dict[str, Any]) -> list[str]:
    """A line for each thing that the summary lacks: trials that were asked for, records that are damaged."""
    trials, damaged = summary["trials"], len(summary["damaged"])
    partial = [f"partial: {trials['there']} of {trials['asked']} trials are there"] if summary["partial"] else []
    aside = [f"{damaged} damaged {_plural(damaged, 'record was', 'records were')} set aside"] if damaged else []
    return [*partial, *aside]


def ratio_words(cell: dict[str, Any], summary: dict[str, Any]) -> str:
    """The ratio to the baseline with its interval and verdict, and what it lacks."""
    ratio = cell["speed"]["ratio_to_baseline"]
    value = ratio["value"]
    if value is None:
        return f"{NONE} {ratio['why']}"
    if ratio["baseline"]:
        return "1, the baseline" + (", inert" if ratio["verdict"] == "inert" else "")
    interval = f"[{_bound(ratio['ci95'][0])}, {_bound(ratio['ci95'][1])}]" if ratio["ci95"] else "no interval"
    unpaired = "" if ratio["paired"] else f", unpaired ({ratio['why']})"
    return f"{value:.3f} {interval}{unpaired}, {_verdict_words(ratio, summary)}"


def _bound(ratio: float) -> str:
    return "below 0.01" if ratio < 0.01 else "above 100" if ratio > 100 else f"{ratio:.3f}"


def _verdict_words(ratio: dict[str, Any], summary: dict[str, Any]) -> str:
    value = ratio["value"]
    change = f"{percent(abs(1 - value))} {'faster' if value < 1 else 'slower'}"
    if ratio["verdict"] == "equivalent":
        return f"equivalent within {percent(summary['margin'])}: {change}"
    if ratio["verdict"] == "undecided":
        return f"undecided{_settling(ratio, summary['most_rounds'])}"
    return "inert" if ratio["verdict"] == "inert" else change


def _settling(ratio: dict[str, Any], most: int) -> str:
    if not ratio["rounds"]:
        return f": {ratio['why']}" if ratio["why"] and ratio["paired"] else ""
    low, high = ratio["rounds"]
    if low is None:
        return f": more than {most} rounds would settle it"
    upper = f"more than {most}" if high is None else str(high)
    rounds = upper if low == high else f"{low} to {upper}"
    return f": {rounds} rounds in all would settle it"


def tuning_words(cell: dict[str, Any]) -> str:
    """The cost of tuning in seconds, as far as it is one."""
    speed = cell["speed"]
    return number(speed["autotune_s"]) if speed["autotune_s"] is None or speed["autotune_seen"] else "none seen"


def verdict_words(cell: dict[str, Any]) -> str:
    """The reproducibility verdict, never "bitwise" without n of n."""
    found = cell["reproducibility"]
    n = found["trials"]
    return {
        "bitwise": f"bitwise, {n} of {n}",
        "metric-only": f"weights bitwise equal, evaluation metrics differ (weights equal in {n} of {n})",
        "loss-only": f"weights bitwise equal, the logged training loss differs (weights equal in {n} of {n})",
        "differs": f"weights differ, {found['unique_weights']} different of {n}",
        "single": "one trial, nothing to compare",
        None: "no finished trial",
    }[found["verdict"]]


def bound_words(cell: dict[str, Any]) -> str:
    """How many processes from how many interpreters, and what n equal of n say about a further one."""
    found = cell["reproducibility"]
    n, m = found["trials"], found["interpreters"]
    counted = f"{n} {_plural(n, 'process', 'processes')} from {m} {_plural(m, 'interpreter', 'interpreters')}"
    if found["bound_95"] is None:
        return counted
    further = f"the chance that a further one differs is below {100 * found['bound_95']:.0f} % at 95 %"
    if m == n:
        return f"{counted}; {further}, a new start of Python included"
    start = found["bound_95_new_start"]
    if start is None:
        return f"{counted}; {further}; of a new start of Python this says nothing, use isolation=spawn for that"
    return f"{counted}; {further}, that a new start of Python does below {100 * start:.0f} %"


def spread_words(cell: dict[str, Any], metric: str | None) -> list[str]:
    """How far the trials end up from each other: churn, weights, the sd of the metric with its interval."""
    found, figure = cell["reproducibility"], cell["metrics"].get(metric)
    words = []
    if found["disagreement"]:
        churn = _interval(found["disagreement_ci95"], percent)
        words.append(f"two trials disagree on {percent(found['disagreement'])} of the predictions{churn}")
    if found["weight_l2"]:
        words.append(f"weights lie {number(found['weight_l2'])} apart{_interval(found['weight_l2_ci95'], number)}")
    if figure and figure["sd"]:
        words.append(f"sd of {metric} {number(figure['sd'])}{_interval(figure['sd_ci95'], number)}")
    return words


def _interval(ends: Sequence[float] | None, written: Callable[[float], str]) -> str:
    return f" [{written(ends[0])}, {written(ends[1])}]" if ends else ""


def cell_notes(cell: dict[str, Any], cuda: bool) -> list[str]:
    """What a reader must know before using a cell's figures."""
    speed, notes = cell["speed"], list(cell["flag_mismatch"])
    if cell["n"] and speed["step_ms"] is None:
        notes.append(f"too few steps for a steady figure ({speed['steps'] or 0} a trial): set train.steps to 9 or more")
    if cuda and speed["host_bound"]:
        notes.append(
            f"the step is bound by the host: handing it over takes {number(speed['enqueue_ms'])} ms of "
            f"{number(speed['step_ms']['mean'])} ms, so that the flags cannot matter and small differences are noise"
        )
    holes = [f"{name} in {figure['n']} of {cell['n']}" for name, figure in cell["metrics"].items() if _hole(figure)]
    if holes:
        notes.append(f"no mean over a hole: finite {', '.join(holes)} trials")
    return notes


def _hole(figure: dict[str, Any]) -> bool:
    return figure["mean"] is None


def _plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
