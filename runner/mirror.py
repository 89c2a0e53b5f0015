"""The study's mirror in MLflow, as its own process keeps it: what goes wrong there costs a line, never a trial."""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from runner.presence import leave
from runner.record import Record
from runner.study import Study


@dataclass
class Mirror:
    """Where a study is shown; `uri` is None with tracking=off. After a failure only the end is tried once more."""

    uri: str | None
    study: Study
    experiment: str | None
    failed: bool = False

    def end_leftovers(self) -> None:
        """End what killed studies left running in the same store."""
        self._guarded(lambda tracking: tracking.end_leftovers(self.uri))  # locks each study that it touches itself

    def show(self, records: list[Record]) -> None:
        """Show trials that have just been done."""
        if records and not self.failed:
            self._guarded(lambda tracking: self._show(tracking, records))

    def _show(self, tracking: Any, records: list[Record]) -> None:
        with tracking.writing(self.study):
            for record in records:
                tracking.send_trial(self._runs, self.study, record)

    def finish(self, summary: dict[str, Any], others: Callable[[], bool]) -> None:
        """Show what is not there yet, and the summary; `others` tells whether others still work on the study."""
        self._guarded(lambda tracking: self._finish(tracking, summary, others))

    def _finish(self, tracking: Any, summary: dict[str, Any], others: Callable[[], bool]) -> None:
        with tracking.writing(self.study):
            tracking.send_missing(self._runs, self.study, self.study.records())
            tracking.send_summary(self._runs, self.study, summary, others())
            leave(self.study)  # before the lock is given back: of two that end together one must be the last

    @cached_property
    def _runs(self) -> Any:
        from runner.tracking import open_study

        assert self.uri is not None
        return open_study(self.uri, self.study, self.experiment)

    def _guarded(self, send: Callable[[Any], Any]) -> None:
        if self.uri is None:
            return
        from runner import tracking

        try:
            send(tracking)
        except tracking.STORE_ERRORS as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0]
            everything = f"everything is in {self.study.folder}"
            if not self.failed:
                print(f"MLflow at {self.uri} does not take the study ({reason}); {everything}", file=sys.stderr)
            self.failed = True
        else:
            self.failed = False
