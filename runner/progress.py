"""What a study says while it works: a line when it starts, a line a trial, and what comes next at the end."""

from dataclasses import dataclass, field

from rich.console import Console

from runner.cell import labels
from runner.record import Record
from runner.study import Study, log_file


@dataclass
class Progress:
    """Lines on standard output, plain text when that is no terminal."""

    study: Study
    cells: int
    rounds: int
    done: int = 0
    failed: int = 0
    diverged: int = 0
    labels: dict[str, str] = field(default_factory=dict)
    console: Console = field(default_factory=lambda: Console(markup=False, highlight=False, soft_wrap=True))

    def __post_init__(self) -> None:
        self.labels = labels(self.study.cells())
        print_ = self.console.print
        print_(f"study {self.study.folder}")
        print_(f"{self.cells} cells x {self.rounds} rounds = {self.total} trials, each in a process of its own")

    @property
    def total(self) -> int:
        """How many trials were asked for."""
        return self.cells * self.rounds

    def show(self, records: list[Record | None]) -> None:
        """Say how these trials went."""
        for record in records:
            self.done += 1
            self.failed += record is None or record.failed
            if record is None:
                self.console.print(f"[{self.done}/{self.total}]  failed: a trial left no record")
                continue
            self.diverged += record.outcome == "diverged"
            place = f"[{self.done}/{self.total}] round {record.number + 1}/{self.rounds}"
            self.console.print(f"{place}  {self.labels[record.cell]:36} {_result(record)}")
            if record.outcome != "finished":
                folder = self.study.trial_folder(record.cell, record.number)
                self.console.print(f"    {record.outcome}: {record.reason}\n    log: {log_file(folder)}")

    def close(self, uri: str | None) -> int:
        """Say what comes next. Returns how many trials failed."""
        print_ = self.console.print
        if self.failed or self.diverged:
            print_(f"{self.failed} of {self.total} trials failed, {self.diverged} diverged")
        print_(f"report: {self.study.report_markdown}")
        print_(f"again:  python -m runner.report {self.study.folder}")
        if uri:
            print_(f"MLflow: {uri if uri.startswith('http') else f'mlflow ui --backend-store-uri {uri}'}")
        return self.failed


def _result(record: Record) -> str:
    if record.speed is None:
        return record.outcome
    step = "too few steps" if record.speed.step_ms is None else f"{record.speed.step_ms:.2f} ms a step"
    metrics = ", ".join(f"{name} {value:.4g}" for name, value in record.metrics.items() if value is not None)
    return f"{step}, first {record.speed.first_step_ms:.0f} ms, {metrics}"
