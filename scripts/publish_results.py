"""Write docs/results/NAME.md from finished studies, and the README's table from the first of them.

    python scripts/publish_results.py main-job "the bare command" STUDY [TITLE STUDY ...]

The page holds what `python -m runner.report` derives from the studies, and the commands that made them; their
summaries go beside it, as docs/results/NAME/FOLDER.json.
"""

import argparse
import re
import shlex
from pathlib import Path

from runner.jsonfile import write_json
from runner.report import write_report
from runner.report.markdown import markdown
from runner.report.table import header, rows
from runner.study import Study

ROOT = Path(__file__).resolve().parent.parent
MARKS = re.compile(r"(<!-- results: begin -->\n).*?(<!-- results: end -->)", re.DOTALL)


def section(title: str, study: Study) -> str:
    """One study: what was asked and its report, a level down."""
    asked = study.asked()
    words = [word for word in asked["command"] if not word.startswith(("study=", "tracking="))]
    report = re.sub(r"^#", "##", markdown(write_report(study)), flags=re.MULTILINE)
    return f"## {title}\n\nStarted {asked['started']}:\n\n    {shlex.join(words)}\n\n{report}"


def readme_table(study: Study) -> str:
    """The table without the columns that a first look does not need."""
    summary = write_report(study)
    kept = [index for index, name in enumerate(header(summary)) if name != "trials"]
    lines = [header(summary), ["---"] * len(header(summary)), *rows(summary)]
    return "\n".join("| " + " | ".join(line[index] for index in kept) + " |" for line in lines) + "\n"


def main() -> None:
    """Write the page and the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", help="the page's file name without .md")
    parser.add_argument("studies", nargs="+", help="pairs of a title and a study folder")
    options = parser.parse_args()
    words = options.studies
    pairs = [(title, Study.open(Path(folder))) for title, folder in zip(words[::2], words[1::2], strict=True)]
    beside = ROOT / "docs" / "results" / options.name
    beside.mkdir(parents=True, exist_ok=True)
    for _, study in pairs:
        write_json(beside / f"{study.folder.name}.json", write_report(study))
    page = "\n".join(["# Measured: the four modes\n", *(section(title, study) for title, study in pairs)])
    (ROOT / "docs" / "results" / f"{options.name}.md").write_text(page, encoding="utf-8")
    readme = ROOT / "README.md"
    table = readme_table(pairs[0][1])
    readme.write_text(MARKS.sub(lambda found: found[1] + table + found[2], readme.read_text(encoding="utf-8")))


if __name__ == "__main__":
    main()
