"""What a study says while it works: a line when it starts, a line a trial, and what comes next at the end."""

import os
import shlex
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime

import psutil

from runner.cell import labels
from runner.duration import rough
from runner.errors import StudyError
from runner.owner import Owner
from runner.record import Record
from runner.report.terminal import Terminal
from runner.study import Study, log_file

Key = tuple[str, int]
LOOK_S = 0.5
QUIET_S = 60.0  # nobody should have to wonder longer whether it still works


@dataclass
class Progress:
    """Lines on standard output, plain text when that is no terminal.

    `there` are the trials that were done before; trials are named by their cell's id and their round's number.
    `planned` are the rounds that a budget is expected to have room for, where the study gets longer by one at a time.
    With `timed` the rest of the time is told after a round's worth of trials.
    """

    study: Study
    there: int
    planned: int = 0
    timed: bool = False
    done: int = 0
    trained: bool = False
    labels: dict[str, str] = field(default_factory=dict)
    probed: set[str] = field(default_factory=set)
    console: Terminal = field(default_factory=lambda: Terminal(soft_wrap=True))
    now: Callable[[], float] = time.monotonic
    _said: float = 0.0
    _began: float | None = None

    def __post_init__(self) -> None:
        of_study = self.study.cells()
        self.labels, self.probed = labels(of_study), {cell.id for cell in of_study if cell.probe != "none"}
        self.say(f"study {self.study.folder}")
        cells, before = len(self.labels), f"; {self.there} of them are there" if self.there else ""
        self.say(f"{cells} cells x {self.rounds} rounds = {self.total} trials, each in a process of its own{before}")

    @property
    def rounds(self) -> int:
        """How many rounds the study has by now, or will have: another invocation may have made it longer."""
        return max(int(self.study.asked()["rounds"]), self.planned)

    @property
    def total(self) -> int:
        """How many trials the study has in all."""
        return len(self.labels) * self.rounds

    def say(self, line: str) -> None:
        """Print a line."""
        self._said = self.now()
        self.console.print(line)

    @contextmanager
    def watching(self, trials: Collection[Key]) -> Iterator[None]:
        """Say how each of these trials went as soon as its record is there, whoever does it."""
        if self._began is None:
            self._began = self.now()
        open_, ended = set(trials), threading.Event()
        thread = threading.Thread(target=self._watch, args=(open_, ended), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            self._look(open_)

    def _watch(self, open_: set[Key], ended: threading.Event) -> None:
        while not ended.wait(LOOK_S):
            with suppress(StudyError):  # the study was damaged: the one who works on it will say so
                self._look(open_)
            if self.now() - self._said > QUIET_S:
                begun = [key for key in sorted(open_) if self.study.trial_folder(*key).exists()]
                self.say(
                    f"  {datetime.now():%H:%M} still at work on {', '.join(map(self._name, begun)) or 'nothing yet'}"
                )

    def _look(self, open_: set[Key]) -> None:
        for key in sorted(open_):
            try:
                record = self.study.record(*key)
            except StudyError:  # damaged, at this moment at least: the end of the trial replaces it
                continue
            if record:
                open_.remove(key)
                self.show(record)

    def _name(self, key: Key) -> str:
        return f"{self.labels[key[0]]}, round {key[1] + 1}"

    def show(self, record: Record) -> None:
        """Say how a trial went."""
        self.done += 1
        self.trained |= not record.refused
        place = f"[{self.there + self.done}/{self.total}] round {record.number + 1}/{self.rounds}"
        self.say(f"{place}  {self.labels[record.cell]:36} {_result(record, record.cell in self.probed)}")
        if record.outcome != "finished":
            folder = self.study.trial_folder(record.cell, record.number)
            self.say(f"    {record.outcome}: {record.reason}\n    log: {log_file(folder)}")
        rest = self.total - self.there - self.done
        if self.timed and self.done == len(self.labels) and rest > 0:
            self.say(f"  about {rough(rest * self.trial_s)} to go")

    @property
    def trial_s(self) -> float:
        """Seconds that a trial has taken so far, everything around it included; 0 before the first one is done."""
        return (self.now() - self._began) / self.done if self.done and self._began is not None else 0.0

    def close(self, uri: str | None) -> bool:
        """Say how many trials failed in the whole study, and what comes next.

        Returns whether none failed, and none lacks that others are not at work on.
        """
        total = len(self.labels) * int(self.study.asked()["rounds"])  # what a budget had no room for was never asked
        outcomes = Counter(record.outcome for record in self.study.records())
        failed, broken_off = outcomes["failed"] + outcomes["timed_out"], outcomes["interrupted"]
        missing = max(total - outcomes.total(), 0)
        if failed or outcomes["diverged"] or broken_off or missing:
            counts = {"diverged": outcomes["diverged"], "interrupted": broken_off, "missing": missing}
            also = "".join(f", {count} {what}" for what, count in counts.items() if count)
            self.say(f"{failed} of {total} trials failed{also}")
        at_work = others(self.study)
        for owner in at_work:
            self.say(f"  at work: {owner}")
        if failed or broken_off or (missing and not at_work):
            self.say(f"to go on: the same command with {shlex.quote(f'study={self.study.folder}')}")
        self.say(f"report: {self.study.report_markdown}")
        self.say(f"to see it again: python -m runner.report {shlex.quote(str(self.study.folder))}")
        if uri:
            self.say(f"MLflow: {uri if uri.startswith('http') else f'mlflow ui --backend-store-uri {uri}'}")
        return not failed and not broken_off and (not missing or bool(at_work))


def others(study: Study) -> list[Owner]:
    """The living processes that work on a study: without this one, and a launcher's workers that it has started."""
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    return [owner for owner in study.owners() if owner.pid not in own or not owner.is_here]


def _result(record: Record, probed: bool) -> str:
    """The figures of a trial; with a probe those that it leaves as they are."""
    if record.speed is None:
        return record.outcome
    step = "too few steps" if record.speed.step_ms is None else f"{record.speed.step_ms:.2f} ms a step"
    metrics = ", ".join(f"{name} {value:.4g}" for name, value in record.metrics.items() if value is not None)
    if probed:
        return metrics
    return f"{step}, first {record.speed.first_step_ms:.0f} ms, {metrics}"
