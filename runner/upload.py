"""`python -m runner.upload STUDY [tracking.uri=URI] [tracking.experiment=NAME]`: send to MLflow what it does not have.

Any number of times, also after an upload that was broken off: nothing is sent twice.
"""

import argparse
import sys
import time
from pathlib import Path

from runner.command import command
from runner.errors import ConfigError
from runner.mirror import own_store
from runner.report.outlet import print_lines
from runner.report.text import one_line
from runner.start import ordinary_ctrl_c
from runner.study import Study

UNSENT = 1
KEYS = ("tracking.uri", "tracking.experiment")


@command
def main() -> int:
    """Send, and say what; 1 if something is not there now, 2 if study or store cannot be used."""
    ordinary_ctrl_c()
    parser = argparse.ArgumentParser(prog="python -m runner.upload", description=__doc__)
    parser.add_argument("study", type=Path, help="the folder of a study")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help=" or ".join(KEYS))
    asked = parser.parse_args()
    settings = _settings(asked.settings)
    uri, experiment = settings.get("tracking.uri") or own_store(), settings.get("tracking.experiment")
    return upload(Study.open(asked.study), uri, experiment)


def _settings(words: list[str]) -> dict[str, str]:
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if key not in KEYS or not equals:
            raise ConfigError(
                key, value, f"is no setting of an upload; give {' or '.join(f'{one}=...' for one in KEYS)}"
            )
        found[key] = value
    return found


def upload(study: Study, uri: str, experiment: str | None = None) -> int:
    """Send a study to the store at `uri` and print what was sent; the exit code. Raises ConfigError and StudyError."""
    from runner import tracking  # MLflow takes its time, for which a misspelt word should not wait
    from runner.report import write_report

    began, shown = time.monotonic(), tracking.masked(uri)
    tracking.check(uri, study.cells(), experiment)
    with study.lock("report"):
        summary = write_report(study)
    records = study.records()
    try:
        with tracking.writing(study):
            runs = tracking.open_study(uri, study, experiment)
            sent = tracking.send_missing(runs, study, records)
            tracking.send_summary(runs, study, summary, bool(study.owners()))
            lacking = bool(tracking.kept(runs, study, records))
            if not lacking:
                tracking.send_files(runs, study)
    except tracking.STORE_ERRORS as error:
        print(f"error: MLflow at {shown}: {tracking.why(error)}; the same command goes on", file=sys.stderr)
        return UNSENT
    took = f"in {time.monotonic() - began:.1f} s"
    there = "1 trial is" if len(records) == 1 else f"{len(records)} trials are"
    print_lines([f"{there} in MLflow at {shown}, {sent} of them sent now, {took}"])
    if lacking:
        said = "lacks trials that MLflow shows as finished; the runs above them are left as they are"
        print_lines([one_line(f"{study.folder}: {said}")])
    for message in summary["damaged"]:
        print(one_line(message), file=sys.stderr)
    return UNSENT if summary["damaged"] else 0


if __name__ == "__main__":
    sys.exit(main())
