"""What a study says while it works: a line when it starts, a line a trial, and what comes next at the end.

On a terminal a bar stands below them: the trials at work with their steps, and how much is done.
"""

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import psutil
from rich.live import Live
from rich.text import Text

from runner.cell import labels
from runner.duration import rough
from runner.errors import StudyError
from runner.layout import log_file, reached_file
from runner.owner import Owner
from runner.reached import Reached
from runner.record import Record
from runner.report.bar import AtWork, Standing, bar
from runner.report.following import following
from runner.report.terminal import Terminal
from runner.report.text import printable
from runner.study import Study

Key = tuple[str, int]
LOOK_S = 0.5
QUIET_S = 60.0  # nobody should have to wonder longer whether it still works
LABEL_COLUMNS = 36


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
    _ended: float = 0.0  # the last trial
    _live: Live | None = None
    _at_work: list[AtWork] = field(default_factory=list)
    _told: set[str] = field(default_factory=set)  # of what the doctor says of an attached script

    def __post_init__(self) -> None:
        of_study = self.study.cells()
        self.labels, self.probed = labels(of_study), {cell.id for cell in of_study if cell.probe != "none"}
        self.say(f"study {self.study.folder}")
        counts = f"{_counted(len(self.labels), 'cell')} x {_counted(self.rounds, 'round')}"
        before = f"; {self.there} of them are there" if self.there else ""
        self.say(f"{counts} = {_counted(self.total, 'trial')}, each in a process of its own{before}")

    @property
    def rounds(self) -> int:
        """How many rounds the study has by now, or will have: another invocation may have made it longer."""
        return max(int(self.study.asked()["rounds"]), self.planned)

    @property
    def total(self) -> int:
        """How many trials the study has in all."""
        return len(self.labels) * self.rounds

    def say(self, line: str, style: str | None = None) -> None:
        """Print a line."""
        self._said = self.now()
        self.console.print(Text(printable(line), style=style or ""))

    @contextmanager
    def shown(self) -> Iterator[None]:
        """Within, a bar stands below all lines, on a terminal that can redraw it; nothing of it stays."""
        if not self.console.redraws:
            yield
            return
        errors = sys.stderr is not None and sys.stderr.isatty()  # else they have another place to go to
        with Live(console=self.console, auto_refresh=False, transient=True, redirect_stderr=errors) as self._live:
            try:
                yield
            finally:
                self._live = None

    def _redraw(self) -> None:
        if self._live and not self.console.behind:
            standing = Standing(self.there + self.done, self.total, self._left_s(), self._at_work)
            self._live.update(bar(standing, self.console.width), refresh=True)

    def _left_s(self) -> float | None:
        """Seconds to go, by what a trial has taken until the last one was done."""
        if not self.done or self._began is None:
            return None
        rest = self.total - self.there - self.done
        return max(0.0, rest * (self._ended - self._began) / self.done - (self.now() - self._ended))

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
                begun = [key for key in sorted(open_) if self.study.trial_folder(*key).exists()]
                self._at_work = [self._reached(key) for key in begun]
                self._redraw()
            if not self._live and self.now() - self._said > QUIET_S:
                names = ", ".join(f"{one.label}, round {one.round}" for one in self._at_work)
                self.say(f"  {datetime.now():%H:%M} still at work on {names or 'nothing yet'}")

    def _look(self, open_: set[Key]) -> None:
        for key in sorted(open_):
            try:
                record = self.study.record(*key)
            except StudyError:  # damaged, at this moment at least: the end of the trial replaces it
                continue
            if record:
                open_.remove(key)
                self.show(record)

    def _reached(self, key: Key) -> AtWork:
        reached = Reached.read(reached_file(self.study.trial_folder(*key)))
        return AtWork(self.labels[key[0]], key[1] + 1, reached)

    def show(self, record: Record) -> None:
        """Say how a trial went."""
        self.done += 1
        self._ended = self.now()
        self.trained |= not record.refused
        good = record.outcome == "finished"
        place = f"[{self.there + self.done}/{self.total}] round {record.number + 1}/{self.rounds}"
        label = f"{self.labels[record.cell]:{LABEL_COLUMNS if self.console.wide else 0}}"
        self.say(f"{place}  {label} {_result(record, record.cell in self.probed)}", style=None if good else "red")
        if not good:
            folder = self.study.trial_folder(record.cell, record.number)
            self.say(f"    {record.outcome}: {record.reason}\n    log: {log_file(folder)}")
        for words in record.doctor:
            if words not in self._told:
                self._told.add(words)
                self.say(f"    doctor: {words}")
        rest = self.total - self.there - self.done
        if self.timed and not self._live and self.done == len(self.labels) and rest > 0:
            self.say(f"  about {rough(rest * self.trial_s)} to go")
        self._redraw()

    @property
    def trial_s(self) -> float:
        """Seconds that a trial has taken so far, everything around it included; 0 before the first one is done."""
        return (self.now() - self._began) / self.done if self.done and self._began is not None else 0.0

    def close(self, summary: dict[str, Any], uri: str | None) -> bool:
        """Say how many trials failed in the whole study, and what comes next after this summary of it.

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
        self.say(f"report: {self.study.report_markdown}")
        self.say(f"to send it: {self.study.report_html}")
        goes_on = bool(failed or broken_off or (missing and not at_work))
        for line in following(summary, self.study.folder, self.study.asked().get("command"), uri, goes_on):
            self.say(line)
        return not failed and not broken_off and (not missing or bool(at_work))


def others(study: Study) -> list[Owner]:
    """The living processes that work on a study: without this one, and a launcher's workers that it has started."""
    own = {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    return [owner for owner in study.owners() if owner.pid not in own or not owner.is_here]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _result(record: Record, probed: bool) -> str:
    """The figures of a trial; with a probe those that it leaves as they are."""
    if record.speed is None:
        return record.outcome
    what = "call" if record.calls else "step"
    step = f"too few {what}s" if record.speed.step_ms is None else f"{record.speed.step_ms:.2f} ms a {what}"
    metrics = ", ".join(f"{name} {value:.4g}" for name, value in record.metrics.items() if value is not None)
    if probed:
        return metrics
    figures = [step, f"first {record.speed.first_step_ms:.0f} ms", *filter(None, [metrics])]
    return ", ".join(figures)
