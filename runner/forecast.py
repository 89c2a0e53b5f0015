"""What is said before the first trial: how long the study will take, and with a budget how many rounds fit into it."""

import math
import time
from dataclasses import dataclass
from typing import Any

import psutil

from runner.analysis.looks import Looks
from runner.budget import RESERVE, Budget
from runner.door import rounds_of
from runner.duration import rough, seconds_of
from runner.errors import ConfigError
from runner.estimate import Estimate, NoEstimate, estimated
from runner.expand import Asked
from runner.progress import others
from runner.record import Record
from runner.report.terminal import Terminal
from runner.rounds import left_to_do
from runner.study import Study

# A study of fewer trials is soon done: a pilot would be a good part of it.
LEAST_TRIALS = 12


@dataclass(frozen=True)
class Forecast:
    """What is said, if anything, and whether it tells a time.

    With a budget that too, and the rounds that the study is expected to have in the end.
    """

    line: str | None = None
    timed: bool = False
    budget: Budget | None = None
    rounds: int = 0


def forecast(study: Study, before: dict[str, Any], cells: list[Asked], given: bool, cards: int) -> Forecast:
    """The forecast for a study, on so many cards at once; `given`: trials were. `before` is what study.json holds.

    Raises ConfigError for a budget into which no round fits, or without an estimate of what a round takes.
    """
    records = study.records() if before else []
    if cells[0].settings.budget:
        return _within_budget(study, before, cells, records)
    rounds = max(rounds_of(cells) if given or not before else 0, before.get("rounds", 0))
    return _of_all(study, cells, records, rounds, cards)


def _of_all(study: Study, cells: list[Asked], records: list[Record], rounds: int, cards: int) -> Forecast:
    """Nothing is said of few trials, nor where others are at work: whoever began was told."""
    trials = left_to_do(records, cells, rounds, cells[0].settings.retry)
    if trials < LEAST_TRIALS or others(study):
        return Forecast()
    try:
        found = estimated(cells, records, _say)
    except NoEstimate as error:
        return Forecast(f"no estimate of the time: {str(error).splitlines()[0]}")
    return Forecast(_about(found, trials, cards), timed=True)


def _within_budget(study: Study, before: dict[str, Any], cells: list[Asked], records: list[Record]) -> Forecast:
    settings, there, most = cells[0].settings, int(before.get("rounds", 0)), rounds_of(cells)
    given, end_s = str(settings.budget), _process_began_s() + seconds_of(str(settings.budget))
    trials = left_to_do(records, cells, there, settings.retry)
    begun, new = math.ceil(trials / len(cells)), max(0, most - there)
    if not begun + new:
        return Forecast(f"budget={given}: all {there} rounds are there; trials=N allows more", rounds=there)
    try:
        found = estimated(cells, records, _say, end_s)
    except NoEstimate as error:
        raise ConfigError("budget", given, f"what a round takes cannot be told: {error}") from error
    looked = study.looks if before and study.summary_json.exists() else []  # else nobody has looked at it
    budget = Budget(given, end_s, max(most, there), looked, found.trial_s * len(cells))
    fitting = min(budget.room, begun + new)
    if not fitting:
        passed_s = seconds_of(given) - (end_s - time.monotonic())
        takes = f"a round of {len(cells)} trials takes about {rough(budget.round_s)} (from {found.source})"
        least = math.ceil(passed_s + RESERVE * budget.round_s)
        raise ConfigError("budget", given, f"{takes}, and {rough(passed_s)} have passed; give at least {least}s")
    added = max(0, fitting - begun)
    line = _about(found, min(trials, fitting * len(cells)) + added * len(cells), 1)
    return Forecast(f"{line}: what fits into budget={given}", True, budget, there + added)


def without_share(looked: list[int], rounds: int) -> str | None:
    """What is said before rounds whose look has no share of the 5 %; None where it has one, or none are added.

    `looked` are the numbers of rounds at which the study was looked at before; `rounds` is what it will have.
    """
    looks = Looks.of([*looked, rounds])
    if not looked or rounds <= max(looked) or looks.share:
        return None
    stay = f"verdicts stay those of {looks.counting.at[-1]} rounds"
    later = f" until {looks.next_at}" if looks.next_at else "; ask a new study for others"
    return f"a look at {rounds} rounds has no share of the 5 %: {stay}{later}"


def _about(found: Estimate, trials: int, cards: int) -> str:
    seconds = found.trial_s * trials / max(cards, 1)
    return f"about {rough(seconds)} for {trials} trials (from {found.source})"


def _process_began_s() -> float:
    """When this process began, by time.monotonic."""
    return time.monotonic() - (time.time() - psutil.Process().create_time())


def _say(line: str) -> None:
    Terminal(soft_wrap=True).print(line)
