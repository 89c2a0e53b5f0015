"""Write docs/results/NAME.md from finished studies, or the README's table from summaries that lie there.

    python scripts/publish_results.py page main-job "the bare command" STUDY [TITLE STUDY ...]
    python scripts/publish_results.py headline "ResNet-18, fp32" docs/results/main-job/resnet18.json [TITLE SUMMARY ...]

The page holds what `python -m runner.report` derives from the studies, and the commands that made them; their
summaries and plots go beside it, as docs/results/NAME/FOLDER.json and docs/results/NAME/FOLDER/*.png. The headline is
one table: a block of rows for each set of cells that differ in the mode alone.
"""

import argparse
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from runner.analysis.summary import SCHEMA
from runner.jsonfile import read_json, write_json
from runner.report import write_report
from runner.report.family import families, settings_of
from runner.report.markdown import escaped, grid, markdown
from runner.report.plots import alternative_text, draw
from runner.report.table import header, main_metric, rows
from runner.study import Study

ROOT = Path(__file__).resolve().parent.parent
MARKS = re.compile(r"(<!-- results: begin -->\n).*?(<!-- results: end -->)", re.DOTALL)
PRIVATE = ("hosts", "gpu_uuids")


def published(summary: dict[str, Any]) -> dict[str, Any]:
    """The summary without what names the machine on which it was measured."""
    environments = [
        {key: value for key, value in environment.items() if key not in PRIVATE}
        for environment in summary["environments"]
    ]
    return {**summary, "environments": environments, "damaged": []}  # damaged: paths


def section(title: str, study: Study, summary: dict[str, Any], plots: list[Path], root: Path) -> str:
    """One study: what was asked, its plots, linked from below `root`, and its report two levels down."""
    asked = study.asked()
    words = [word for word in asked["command"] if not word.startswith(("study=", "tracking="))]
    report = re.sub(r"^#", "###", markdown(summary), flags=re.MULTILINE)
    drawn = "".join(
        f"![{escaped(alternative_text(path.stem, summary))}]({path.relative_to(root)})\n\n" for path in plots
    )
    return f"## {title}\n\nStarted {asked['started']}:\n\n    {shlex.join(words)}\n\n{drawn}{report}"


def write_page(name: str, measured: list[tuple[str, Study, dict[str, Any]]], root: Path) -> None:
    """Write page, summaries and plots below `root` from titles, studies and their summaries."""
    results = root / "docs" / "results"
    (results / name).mkdir(parents=True, exist_ok=True)
    sections = []
    for title, study, summary in measured:
        write_json(results / name / f"{study.folder.name}.json", summary)
        plots = draw(study, summary, results / name / study.folder.name)
        sections.append(section(title, study, summary, plots, results))
    page = "\n".join(["# Measured: the four modes\n", *sections])
    (results / f"{name}.md").write_text(page, encoding="utf-8")


def write_headline(measured: list[tuple[str, dict[str, Any]]], root: Path) -> None:
    """Write the README's table below `root` from titles and summaries."""
    readme = root / "README.md"
    lines = [line for title, summary in measured for line in _blocks(title, summary)]
    names = list(dict.fromkeys(name for line in lines for name in line))
    table = grid([names, *([line.get(name, "") for name in names] for line in lines)])
    text = MARKS.sub(lambda found: f"{found[1]}{table}\n{found[2]}", readme.read_text(encoding="utf-8"))
    readme.write_text(text, encoding="utf-8")


def _blocks(title: str, summary: dict[str, Any]) -> Iterator[dict[str, str]]:
    """The rows of a summary by column, family after family; what is measured stands in the first row of each."""
    for family in families(summary):
        part, settings = {**summary, "cells": family}, settings_of(family)
        left_out = ("trials", main_metric(part))
        for index, row in enumerate(rows(part)):
            texts = {name: text for name, text in zip(header(part), row, strict=True) if name not in left_out}
            mode = ", ".join(words for words in texts["mode"].split(", ") if words not in settings)
            yield {"measured": "" if index else ", ".join([title, *settings]), **texts, "mode": mode}


def main() -> None:
    """Summarise each study once and publish them, or make the README's table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    page, headline = kinds.add_parser("page"), kinds.add_parser("headline")
    page.add_argument("name", help="the page's file name without .md")
    page.add_argument("pairs", nargs="+", help="pairs of a title and a study folder")
    headline.add_argument("pairs", nargs="+", help="pairs of a title and a summary.json")
    options = parser.parse_args()
    pairs = [(title, Path(path)) for title, path in zip(options.pairs[::2], options.pairs[1::2], strict=True)]
    if options.kind == "headline":
        write_headline([(title, read_json(path, SCHEMA)) for title, path in pairs], ROOT)
    else:
        opened = [(title, Study.open(path)) for title, path in pairs]
        write_page(options.name, [(title, study, published(write_report(study))) for title, study in opened], ROOT)


if __name__ == "__main__":
    main()
