"""The study's mirror in MLflow, as its own process keeps it: what goes wrong there costs a line, never a trial."""

import shlex
import sys
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.deadline import limited
from runner.presence import leave
from runner.record import Record
from runner.study import Study

# A server that hangs costs a study 15 s for the check and these: after it has failed once only the end is tried again.
# Limits of ours, because a request that is answered a byte at a time never exceeds MLflow's.
STEP_S, LAST_S = 10.0, 20.0


def own_store() -> str:
    """The address of the store that is used when nobody names one: a file in the current folder."""
    return f"sqlite:///{Path('mlflow.db').absolute()}"


@dataclass
class Mirror:
    """Where a study is shown; `uri` is None with tracking=off. After a failure only the end is tried once more.

    `runs` are those of MLflow, once they are found or made.
    """

    uri: str | None
    study: Study
    experiment: str | None
    failed: bool = False
    runs: Any = None

    def check(self) -> None:
        """Say before the first trial what would stop it from being shown, and end what killed studies left running."""
        self._guarded(self._check)

    def _check(self, tracking: Any) -> None:
        tracking.check(self.uri, self.study.cells(), self.experiment)
        doubt = tracking.doubt(self.uri)
        if doubt:
            print(f"warning: {doubt}", file=sys.stderr)
        with self._limited(tracking, STEP_S):
            tracking.end_leftovers(self.uri)  # locks each study that it touches itself

    def show(self, records: list[Record]) -> None:
        """Show trials that have just been done."""
        if records and not self.failed:
            self._guarded(lambda tracking: self._show(tracking, records))

    def _show(self, tracking: Any, records: list[Record]) -> None:
        with tracking.writing(self.study), self._limited(tracking, STEP_S) as step:
            runs = self._opened(tracking, step)
            for record in records:
                tracking.send_trial(runs, self.study, record)
                step()

    def finish(self, summary: dict[str, Any], others: Callable[[], bool]) -> None:
        """Show what is not there yet, and the summary; `others` tells whether others still work on the study."""
        self._guarded(lambda tracking: self._finish(tracking, summary, others))

    def _finish(self, tracking: Any, summary: dict[str, Any], others: Callable[[], bool]) -> None:
        with tracking.writing(self.study), self._limited(tracking, LAST_S) as more:
            # What has failed once gets so much time in all, else each trial does, however many there are.
            step = (lambda: None) if self.failed else more
            runs = self._opened(tracking, step)
            tracking.send_missing(runs, self.study, self.study.records(), step)
            tracking.send_summary(runs, self.study, summary, others(), step)
            leave(self.study)  # before the lock is given back: of two that end together one must be the last
            self._send_files(tracking, runs, step)

    def _send_files(self, tracking: Any, runs: Any, step: Callable[[], None]) -> None:
        """A server may take runs and no files: the files are in the study folder all the same."""
        try:
            tracking.send_files(runs, self.study, step)
        except tracking.STORE_ERRORS as error:
            reason = f"MLflow has everything but the report's files ({tracking.why(error)})"
            print(f"warning: {reason}; they are in {self.study.folder}; later: {self._later}", file=sys.stderr)

    def _limited(self, tracking: Any, seconds: float) -> AbstractContextManager[Callable[[], None]]:
        return limited(seconds if tracking.is_server(self.uri) else None)

    def _opened(self, tracking: Any, step: Callable[[], None]) -> Any:
        if self.runs is None:
            self.runs = tracking.open_study(self.uri, self.study, self.experiment, step)
        return self.runs

    @property
    def _later(self) -> str:
        """The command that sends what is missing."""
        words = ["python", "-m", "runner.upload", str(self.study.folder), f"tracking.uri={self.shown}"]
        experiment = [f"tracking.experiment={self.experiment}"] if self.experiment else []
        return shlex.join([*words, *experiment])

    @property
    def shown(self) -> str | None:
        """The address without a password."""
        if self.uri is None:
            return None
        from runner.tracking import masked

        return str(masked(self.uri))

    def _guarded(self, send: Callable[[Any], Any]) -> None:
        if self.uri is None:
            return
        from runner import tracking

        try:
            send(tracking)
        except tracking.STORE_ERRORS as error:
            if not self.failed:
                print(f"{self._said(tracking, error)}; the study does without, later: {self._later}", file=sys.stderr)
            self.failed = True
        else:
            self.failed = False

    def _said(self, tracking: Any, error: Exception) -> str:
        if isinstance(error, tracking.ConfigError):
            return f"MLflow cannot be used: {error}"
        return f"MLflow at {self.shown} does not take the study ({tracking.why(error)})"
