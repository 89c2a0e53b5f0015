"""Reports of a study: summary.json, summary.csv, report.md and the table, all derived from the study folder."""

from typing import Any

from runner.jsonfile import write_bytes, write_json
from runner.report.markdown import markdown
from runner.report.sheet import sheet
from runner.study import Study


def write_report(study: Study) -> dict[str, Any]:
    """Write summary.json, summary.csv and report.md from the records; return the summary.

    Equal records give equal bytes; a damaged one is named in the summary and left out. Raises StudyError if what was
    asked is damaged itself.
    """
    from runner.analysis.summary import summarise  # scipy.stats takes 1.5 s, which no start of a sweep should pay

    summary = summarise(study)
    write_json(study.summary_json, summary)
    write_bytes(study.summary_csv, sheet(summary).encode(errors="backslashreplace"))
    write_bytes(study.report_markdown, markdown(summary).encode())
    return summary
