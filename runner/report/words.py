"""What a report says about one cell, in words. Takes the cells of summary.json, knows no statistics."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from runner.analysis.words import across_words, only_steps, percent, ratio_end
from runner.report.ensemble import ensemble_words
from runner.report.number import NONE, number, number_and_sd

REPEATS = {
    "bitwise": "repeats bit by bit",
    "loss-only": "{} repeat, the logged loss does not",
    "metric-only": "{} repeat, the evaluation does not",
    "differs": "differs",
    "single": "one trial, nothing to compare",
    None: "no finished trial",
}


def completeness_words(summary: dict[str, Any]) -> list[str]:
    """A line for each thing that the figures lack: trials that were asked for, damaged records."""
    trials, damaged = summary["trials"], len(summary["damaged"])
    there = f"partial: {trials['there']} of {trials['asked']} trials are there, so the verdicts are provisional"
    partial = [there] if summary["partial"] else []
    aside = [f"{damaged} damaged {_plural(damaged, 'record was', 'records were')} set aside"] if damaged else []
    return [*partial, *aside]


def left_out_words(summary: dict[str, Any]) -> list[str]:
    """In one line, how many trials' speed is doubtful; none where all of it counts."""
    left_out = sum(len(cell["speed"]["left_out"]) for cell in summary["cells"])
    return [f"the speed of {left_out} {_plural(left_out, 'trial', 'trials')} does not count"] if left_out else []


def repeats_words(cells: list[dict[str, Any]], short: Callable[[str], str]) -> str:
    """Which cells repeat, and then which do not: "repeats bit by bit: NAME (5 of 5); differs: NAME, NAME".

    `short` makes a name of a label; if cells share names, each stands once, with in how many settings it is so.
    """
    kinds: dict[str, Counter[str]] = {}
    shared = len({short(cell["label"]) for cell in cells}) < len(cells)
    for cell in sorted(cells, key=lambda one: [*REPEATS].index(one["reproducibility"]["verdict"])):
        found = cell["reproducibility"]
        equal = f" ({found['trials']} of {found['trials']})" if found["unique_weights"] == 1 < found["trials"] else ""
        kinds.setdefault(_kind(found), Counter())[f"{short(cell['label'])}{equal}"] += 1
    return "; ".join(f"{kind}: {', '.join(_counted(names) if shared else names)}" for kind, names in kinds.items())


def _counted(names: Counter[str]) -> list[str]:
    (first, count), *others = names.most_common()
    settings = f"{count} {_plural(count, 'setting', 'settings')}"
    return [f"{first} in {settings}", *(f"{name} in {n}" for name, n in others)]


def _kind(found: dict[str, Any]) -> str:
    """What the trials of a cell do, in a few words."""
    if found["verdict"] == "differs" and only_steps(found):
        return "ends after different numbers of steps, equal up to the fewest"
    by_design = found["verdict"] == "differs" and (found["seeds_varied"] or found.get("poked"))
    return f"{REPEATS[found['verdict']].format(found.get('subject', 'weights'))}{' by design' if by_design else ''}"


def phase_of(cell: dict[str, Any]) -> str:
    """What a step is: "train" a training step, "infer" one batch answered, "calls" one call of the module.

    That of an attached script is a training step too.
    """
    phase = str(cell["config"].get("phase", "train"))
    return "train" if phase == "attach" else phase


def figure_words(figure: dict[str, Any] | None) -> str:
    """A mean with its sd and interval."""
    return number_and_sd(figure["mean"], figure["sd"], figure["ci95"]) if figure else NONE


def step_words(cell: dict[str, Any]) -> str:
    """The steady step time; where processes drew several plans, each of these in place of a mean over them."""
    plans = cell["speed"].get("plans")
    if not plans:
        return figure_words(cell["speed"]["step_ms"])
    return f"draws {len(plans)} plans: {groups_words(plans)}"


def groups_words(groups: Sequence[dict[str, Any]]) -> str:
    """Trials in groups by their step time: "12.1 ms (6 of 10), 14.5 ms (4 of 10)"."""
    n = sum(group["trials"] for group in groups)
    return ", ".join(f"{number(group['step_ms'])} ms ({group['trials']} of {n})" for group in groups)


def ratio_words(cell: dict[str, Any], summary: dict[str, Any]) -> str:
    """The ratio to the baseline with its interval and verdict, and what it lacks."""
    ratio = cell["speed"]["ratio_to_baseline"]
    value = ratio["value"]
    if value is None:
        return f"{NONE} {ratio['why']}"
    if ratio["baseline"]:
        return "1, the baseline" + (", inert" if ratio["verdict"] == "inert" else "")
    interval = f"[{', '.join(map(ratio_end, ratio['ci95']))}]" if ratio["ci95"] else "no interval"
    unpaired = "" if ratio["paired"] else f", unpaired ({ratio['why']})"
    over = "over all plans " if cell["speed"].get("plans") else ""
    return f"{over}{value:.3f} {interval}{unpaired}, {_verdict_words(ratio, summary)}"


def change_words(ratio: float) -> str:
    """A ratio of step times as a change: "20 % faster"."""
    return f"{percent(abs(1 - ratio))} {'faster' if ratio < 1 else 'slower'}"


def _verdict_words(ratio: dict[str, Any], summary: dict[str, Any]) -> str:
    change = change_words(ratio["value"])
    if ratio["verdict"] == "equivalent":
        return f"equivalent within {percent(summary['margin'])}: {change}"
    if ratio["verdict"] == "undecided":
        return f"undecided{_settling(ratio, summary['most_rounds'])}"
    return "inert" if ratio["verdict"] == "inert" else change


def _settling(ratio: dict[str, Any], most: int) -> str:
    why = f": {ratio['why']}" if ratio["why"] and ratio["paired"] else ""
    if not ratio["rounds"]:
        return why
    lead = f"{why}; " if why else ": "
    low, high = ratio["rounds"]
    where = " of a new study" if ratio.get("new_study") else ""
    if low is None:
        return f"{lead}more than {most} rounds{where} would settle it"
    upper = f"more than {most}" if high is None else str(high)
    rounds = upper if low == high else f"{low} to {upper}"
    return f"{lead}{rounds} rounds{where or ' in all'} would settle it"


def tuning_words(cell: dict[str, Any]) -> str:
    """The cost of tuning in seconds, as far as it is one."""
    speed = cell["speed"]
    return number(speed["autotune_s"]) if speed["autotune_s"] is None or speed["autotune_seen"] else "none seen"


def verdict_words(cell: dict[str, Any]) -> str:
    """The reproducibility verdict across processes, and within each where it was asked."""
    within = within_words(cell)
    return f"{across_words(cell['reproducibility'])}{f'; {within}' if within else ''}"


def within_words(cell: dict[str, Any]) -> str:
    """The verdict over the trainings from the same state within each process, "" if each did one."""
    found = cell["reproducibility"]
    n, subject = found["trials"], found.get("subject", "weights")
    differing = f"{found.get('within_differing')} of {n}"
    return {
        "bitwise": f"bitwise within each process, {n} of {n}",
        "metric-only": f"evaluation metrics differ within a process in {differing}, {subject} do not",
        "loss-only": f"the logged training loss differs within a process in {differing}, {subject} do not",
        "differs": f"{subject} differ within a process in {differing}",
    }.get(found.get("within_process") or "", "")


def both_words(cell: dict[str, Any]) -> list[str]:
    """In a sentence, what the verdicts within and across processes say together; none without both."""
    found, within = cell["reproducibility"], within_words(cell)
    if not within or found["verdict"] in (None, "single"):
        return []
    if found["within_process"] != "bitwise":
        return [f"{within}: the same process gives other results when it trains again"]
    if found["verdict"] == "bitwise":
        return [f"{within}, and across processes"]
    if found["seeds_varied"]:
        return [f"{within}; processes differ by their seeds"]
    return [f"{within}, differs between processes: {_chosen_anew(cell)}"]


def _chosen_anew(cell: dict[str, Any]) -> str:
    """What differs from process to process where nothing does within one."""
    found, config = cell["reproducibility"], cell["config"]
    if not found["same_start"]:
        return "each starts from other weights"
    if found["first_data_step"]:
        return "each gets other data"
    benchmarks = config["cudnn"]["benchmark"] and config["cudnn"]["enabled"]
    tunes = benchmarks or config.get("train", {}).get("compile") == "max-autotune"
    return "another algorithm is chosen in each" if tunes else "something is settled anew in each"


def bound_words(cell: dict[str, Any]) -> str:
    """How many processes from how many interpreters, and what n equal of n say about a further one.

    Before it stands what the trainings within each process say, where there were several.
    """
    return "; ".join([*both_words(cell), _bound(cell["reproducibility"])])


def _bound(found: dict[str, Any]) -> str:
    n, m = found["trials"], found["interpreters"]
    counted = f"{n} {_plural(n, 'process', 'processes')} from {m} {_plural(m, 'interpreter', 'interpreters')}"
    if found["bound_95"] is None or n == 2:  # "below 95 %" tells nothing
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
    return [*words, *ensemble_words(cell)]


def _interval(ends: Sequence[float] | None, written: Callable[[float], str]) -> str:
    return f" [{written(ends[0])}, {written(ends[1])}]" if ends else ""


def _plural(count: int, one: str, many: str) -> str:
    return one if count == 1 else many
