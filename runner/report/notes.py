"""What a reader must know before using the figures, in words: doubts about the study and about single cells."""

from typing import Any

from runner.analysis.contention import CROWDED, PROBED
from runner.analysis.environment import ENVIRONMENT
from runner.cell import Cell
from runner.report.family import on_cuda
from runner.report.number import number
from runner.report.platform import platform_words
from runner.report.table import has_p99
from runner.report.words import groups_words, phase_of

STEADY_STEPS = 8  # that many besides the first of each input size make a steady figure
SPREAD_WORTH_A_NOTE = 1.05
LEAST_TRIALS = 5  # as for the answer to "reproducible"
ALL_LEFT_OUT = "no trial's speed counts, see below"


def notes(summary: dict[str, Any]) -> list[str]:
    """Of the study first, then of each cell."""
    cuda = on_cuda(summary)
    found = _study_notes(summary, cuda)
    said = [] if any(cell["speed"]["step_ms"] for cell in summary["cells"]) else [ALL_LEFT_OUT]  # by the answer
    for cell in summary["cells"]:
        own = _cell_notes(cell, cuda.get(cell["environment"], False))
        found += [f"{cell['label']}: {note}" for note in own if note not in said]
    return found


def _study_notes(summary: dict[str, Any], cuda: dict[str, bool]) -> list[str]:
    found = [*platform_words(summary), *_few(summary), *_environments(summary), *_p99(summary), *_crowded(summary)]
    if cuda and not any(cuda.values()):
        return [
            *found,
            "the flags cannot act here, no CUDA in use: differences between modes are noise, none is ranked",
        ]
    return [*found, *_looks(summary), *_power(summary)]


def _few(summary: dict[str, Any]) -> list[str]:
    """The least that an interval, and a verdict that a mode repeats, can stand on."""
    counts = [cell["n"] for cell in summary["cells"] if cell["n"]]
    if not counts or min(counts) >= LEAST_TRIALS:
        return []
    few = f"{min(counts)} finished trial{'s' if min(counts) > 1 else ''}"
    return [
        f"few trials: a cell has {few}; intervals are wide, and no mode is called reproducible below {LEAST_TRIALS}"
    ]


def _environments(summary: dict[str, Any]) -> list[str]:
    """That trials were done under different conditions, and which these are."""
    found = summary["environments"]
    differing = [key for key in ENVIRONMENT if len({str(one.get(key)) for one in found}) > 1]
    where = f"in {len(found)} environments, which are never pooled: {', '.join(differing)} differ"
    return [f"the trials were done {where}{'' if len(differing) > 1 else 's'}"] if differing else []


def _looks(summary: dict[str, Any]) -> list[str]:
    """Looks at 5, 10 and 20 rounds share the 5 % of false alarms, so that adding rounds does not add alarms."""
    at, share = summary["looks"]["at"], summary["looks"]["share"]
    ratios = [cell["speed"]["ratio_to_baseline"] for cell in summary["cells"]]
    compared = any(ratio["value"] is not None and not ratio["baseline"] for ratio in ratios)
    if not compared or at[-1] == 1 or (len(at) < 2 and share >= 1):
        return []
    return [
        "reports are planned at 5, 10 and 20 rounds and share 5 % of false alarms; "
        f"this one, at {at[-1]} rounds, has {_share(share)} of it{'' if share else _counting(summary['looks'])}"
    ]


def _counting(looks: dict[str, Any]) -> str:
    ahead = f"the next look is at {looks['next']}" if looks["next"] else "a new study is needed for another"
    return f": ratios are those of the look at {looks['counting']} rounds; {ahead}"


def _p99(summary: dict[str, Any]) -> list[str]:
    answered = any(phase_of(cell) == "infer" and cell["speed"]["step_ms"] for cell in summary["cells"])
    return ["a 99th percentile needs 100 steady steps"] if answered and not has_p99(summary) else []


def _crowded(summary: dict[str, Any]) -> list[str]:
    """What else ran on the host takes its time from a CPU's steps, and from those of a GPU that waits for the host."""
    crowded = sum(cell["speed"]["crowded"] for cell in summary["cells"])
    trials = sum(cell["n"] for cell in summary["cells"])
    busy = f"the machine was busy before {crowded} of {trials} trials, with a load above {CROWDED} a core"
    return [f"{busy}: their step times hold what else ran there"] if crowded else []


def _power(summary: dict[str, Any]) -> list[str]:
    capped = sum(cell["speed"]["power_capped"] for cell in summary["cells"])
    trials = sum(cell["n"] for cell in summary["cells"])
    held = f"the power limit held the clock down in {capped} of {trials} trials, as is usual at full load: they count"
    return [held] if capped else []


def _share(share: float) -> str:
    thirds = {0: "nothing", 1: "one third", 2: "two thirds", 3: "all"}
    return thirds.get(round(3 * share), "") if abs(3 * share - round(3 * share)) < 1e-9 else f"{100 * share:.2g} %"


def _cell_notes(cell: dict[str, Any], cuda: bool) -> list[str]:
    found = [*cell["flag_mismatch"], *_not_deterministic(cell), *_unsteady(cell)]
    return [*found, *(_device_notes(cell["speed"]) if cuda else []), *_cold(cell), *_holes(cell), *_no_churn(cell)]


def _no_churn(cell: dict[str, Any]) -> list[str]:
    """That a user's own model and data say nothing that trials could disagree in."""
    custom = cell["config"].get("dataset", {}).get("view") == "custom"
    if not custom or cell["n"] < 2 or cell["reproducibility"]["disagreement"] is not None:
        return []
    lacking = "neither model nor training set has `predictions` that are classes"
    return [f"the share of predictions that differ is not known: {lacking}"]


def _not_deterministic(cell: dict[str, Any]) -> list[str]:
    """The operations that PyTorch refuses or warns about under strict algorithms."""
    trials = cell["n"] + cell["failed"] + cell["diverged"]
    named = [f"{name} in {count} of {trials}" for name, count in cell.get("not_deterministic", {}).items()]
    return [f"PyTorch calls not deterministic: {', '.join(named)} trials"] if named else []


def _unsteady(cell: dict[str, Any]) -> list[str]:
    """Why a cell with finished trials has no steady figure."""
    speed, probe = cell["speed"], Cell(cell["config"]).probe
    if probe != "none":
        return [f"{PROBED}: there are no figures of speed and memory with probe={probe}"]
    if not cell["n"] or speed["step_ms"] is not None:
        return []
    if len(speed["left_out"]) == cell["n"]:
        return [ALL_LEFT_OUT]
    needed = STEADY_STEPS + (speed["shapes"] or 1)
    return [f"too few steps for a steady figure ({speed['steps'] or 0} a trial): set train.steps to {needed} or more"]


def _device_notes(speed: dict[str, Any]) -> list[str]:
    found = []
    if speed["host_bound"]:
        found.append(
            f"the step is bound by the host: handing it over takes {number(speed['enqueue_ms'])} ms of "
            f"{number(speed['step_ms']['mean'])} ms, so that the flags cannot matter and small differences are noise"
        )
    if speed["synchronizing"]:
        often = "once" if speed["synchronizing"] == 1 else f"{speed['synchronizing']} times"
        found.append(
            f"the host waits for the device {often} within a step, by operations such as .item(), nonzero() or .cpu(), "
            "and the device then for the host: no flag shortens that"
        )
    if speed["plans"]:
        found.append(_plans(speed["plans"]))
    if speed["groups"]:
        found.append(f"the trials' step times fall into {len(speed['groups'])} groups: {groups_words(speed['groups'])}")
    if speed["spread"] is not None and speed["spread"] > SPREAD_WORTH_A_NOTE:
        found.append(f"the slowest trial's step takes {number(speed['spread'])} times the fastest's")
    return found


def _plans(plans: list[dict[str, Any]]) -> str:
    n = sum(plan["trials"] for plan in plans)
    ratios = [f", {plan['ratio']:.3f} of the default's" if plan["ratio"] is not None else "" for plan in plans]
    each = [
        f"{number(plan['step_ms'])} ms in {plan['trials']} of {n}{ratio}"
        for plan, ratio in zip(plans, ratios, strict=True)
    ]
    return f"which of {len(plans)} plans a process draws is chance: {'; '.join(each)}"


def _cold(cell: dict[str, Any]) -> list[str]:
    """The first processes after a machine's start read their kernels from the disk; no mode pays for going first.

    Only what they read proves it: a first step that took long for its host is called probably cold.
    """
    speed, count, by_time = cell["speed"], cell["speed"]["cold_trials"], cell["speed"]["cold_by_time"]
    if not count:
        return []
    counted = "the tuning figure holds for a cold start" if speed["autotune_cold"] else "not counted as tuning"
    trials = "every trial" if speed["first_step_cold"] else "1 trial" if count == 1 else f"{count} trials"
    seconds, probably = f"{number(speed['cold_first_step_ms'] / 1000)} s", "probably " if by_time == count else ""
    seen = "the first on its host" if by_time else "kernels read from disk"
    if 0 < by_time < count:
        seen = f"{by_time} of them only probably"
    return [f"the first step of {trials} was {probably}cold ({seconds}, {seen}), {counted}"]


def _holes(cell: dict[str, Any]) -> list[str]:
    metrics = cell["metrics"].items()
    holes = [f"{name} in {figure['n']} of {cell['n']}" for name, figure in metrics if figure["mean"] is None]
    return [f"no mean over a hole: finite {', '.join(holes)} trials"] if holes else []
