"""Write docs/results/NAME.md from finished studies, and the README's table from the first of them.

    python scripts/publish_results.py main-job "the bare command" STUDY [TITLE STUDY ...]

The page holds what `python -m runner.report` derives from the studies, and the commands that made them; their
summaries go beside it, as docs/results/NAME/FOLDER.json.
"""

import argparse
import re
import shlex
from pathlib import Path
from typing import Any

from runner.jsonfile import write_json
from runner.report import write_report
from runner.report.markdown import markdown, table
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


def section(title: str, study: Study, summary: dict[str, Any]) -> str:
    """One study: what was asked, and its report two levels down."""
    asked = study.asked()
    words = [word for word in asked["command"] if not word.startswith(("study=", "tracking="))]
    report = re.sub(r"^#", "###", markdown(summary), flags=re.MULTILINE)
    return f"## {title}\n\nStarted {asked['started']}:\n\n    {shlex.join(words)}\n\n{report}"


def publish(name: str, measured: list[tuple[str, Study, dict[str, Any]]], root: Path) -> None:
    """Write page, summaries and table below `root` from titles, studies and their summaries."""
    results, readme = root / "docs" / "results", root / "README.md"
    (results / name).mkdir(parents=True, exist_ok=True)
    for _, study, summary in measured:
        write_json(results / name / f"{study.folder.name}.json", summary)
    page = "\n".join(["# Measured: the four modes\n", *(section(*one) for one in measured)])
    (results / f"{name}.md").write_text(page, encoding="utf-8")
    first = table(measured[0][2], without=("trials",))
    text = MARKS.sub(lambda found: f"{found[1]}{first}\n{found[2]}", readme.read_text(encoding="utf-8"))
    readme.write_text(text, encoding="utf-8")


def main() -> None:
    """Summarise each study once and publish them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="the page's file name without .md")
    parser.add_argument("studies", nargs="+", help="pairs of a title and a study folder")
    options = parser.parse_args()
    pairs = zip(options.studies[::2], options.studies[1::2], strict=True)
    opened = [(title, Study.open(Path(folder))) for title, folder in pairs]
    publish(options.name, [(title, study, published(write_report(study))) for title, study in opened], ROOT)


if __name__ == "__main__":
    main()
