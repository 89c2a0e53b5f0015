"""Reports of a study, all derived from its folder: summary.json, summary.csv, report.md, report.html and its plots."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from runner.jsonfile import write_bytes, write_json
from runner.report.content import content_of
from runner.report.html import page
from runner.report.markdown import markdown
from runner.report.sheet import sheet
from runner.study import Study

if TYPE_CHECKING:
    from runner.report.plots import PagePlot


@contextmanager
def _uncollected() -> Iterator[None]:
    """Look for no circles of objects: records have none, and among those of 10,000 trials it takes a tenth of a report.

    What plots leave is collected afterwards.
    """
    wanted = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if wanted:
            gc.enable()


@_uncollected()
def write_report(study: Study) -> dict[str, Any]:
    """Write summary.json, summary.csv, report.md, report.html and plots from the records; return the summary.

    Equal records give equal bytes; a damaged one is named in the summary and left out. Raises StudyError if what was
    asked is damaged itself.
    """
    from runner.analysis.evidence import Evidence
    from runner.analysis.summary import summarise  # scipy.stats takes 1.5 s, which no start of a sweep should pay
    from runner.report.plots import page_plots

    evidence = Evidence.of(study)
    summary, asked = summarise(study, evidence), study.asked()
    write_json(study.summary_json, summary)
    write_bytes(study.summary_csv, sheet(summary).encode(errors="backslashreplace"))
    write_bytes(study.report_markdown, markdown(summary, asked).encode())
    plots, notes = page_plots(study, summary, evidence)
    _write_plots(study, plots)
    write_bytes(study.report_html, page(content_of(summary, asked), plots, notes).encode())
    return summary


def _write_plots(study: Study, plots: "list[PagePlot]") -> None:
    """The plots as files, and none that was drawn once and is no more."""
    paths = {study.plot(plot.name): plot for plot in plots}
    if plots:
        study.plots.mkdir(exist_ok=True)
    for path, plot in paths.items():
        write_bytes(path, plot.svg.encode())
    for path in set(study.plots.glob("*.svg")) - paths.keys():
        path.unlink()
