"""Write a page for each recipe's study under docs/results/recipes/, and the page that answers the post.

    python scripts/publish_recipes.py STUDY [STUDY ...] [--pages FOLDER] [--data WORDS]

A page begins with the published figures beside the measured ones, and holds the command, the date, the plots and the
rest of its study's report; its summary and plots go beside it. A folder of data is named as docs/recipes.md names it,
data/NAME, wherever it lay. The post's page, post.md, is made of all summaries that lie there: a study that is
published later is added to it, and what has none is "not measured yet".
"""

import argparse
import json
import re
from pathlib import Path
from typing import Any

from publish_results import ROOT, published, section

from runner.analysis.summary import SCHEMA
from runner.jsonfile import read_json, write_bytes, write_json
from runner.report import write_report
from runner.report.markdown import escaped
from runner.report.plots import draw
from runner.report.post import post_page
from runner.study import Study

PAGES = ROOT / "docs" / "results" / "recipes"
BESIDE = re.compile(r"^#### (Published beside measured\n.*?\n)(?=#### |\Z)", re.DOTALL | re.MULTILINE)


def publish(folders: list[Path], pages: Path, data: str | None = None) -> list[Path]:
    """Write the pages of these studies, and the post's once there is a study of it; return their paths.

    Studies without a recipe are refused.
    `data` are words about the folder that was read in the place of a recipe's data set: no study knows what is in it.
    """
    pages.mkdir(parents=True, exist_ok=True)
    written = [_page(Study.open(folder), pages, data) for folder in folders]
    found = {path.stem: read_json(path, SCHEMA) for path in sorted(pages.glob("post_*.json"))}
    links = {name: f"{name}.md" for name in found}
    if not found:
        return written  # a page of nothing but "not measured yet" would say nothing
    write_bytes(pages / "post.md", post_page(found, links).encode())
    return [*written, pages / "post.md"]


def _page(study: Study, pages: Path, data: str | None) -> Path:
    summary = published(write_report(study))
    if summary["recipe"] is None:
        raise SystemExit(f"{study.folder}: follows no recipe; run it with recipe=NAME")
    name, roots = summary["recipe"]["name"], _roots(summary)
    summary = json.loads(_moved(json.dumps(summary, ensure_ascii=False), roots))
    write_json(pages / f"{name}.json", summary)
    plots = draw(study, summary, pages / name)
    text = _moved(section("Measured", study, summary, plots, pages), roots)
    beside = BESIDE.search(text)
    first = f"## {beside[1].rstrip()}\n\n" if beside else ""
    about = f"Its data: {escaped(data)}.\n\n" if data else ""
    page = pages / f"{name}.md"
    write_bytes(page, f"# {escaped(summary['recipe']['title'])}\n\n{about}{first}{BESIDE.sub('', text)}".encode())
    return page


def _roots(summary: dict[str, Any]) -> set[str]:
    """The folders of data that the cells read, where they are named from the root of the machine's files."""
    found = {str(cell["config"]["dataset"].get("root")) for cell in summary["cells"] if "dataset" in cell["config"]}
    return {root for root in found if Path(root).is_absolute()}


def _moved(text: str, roots: set[str]) -> str:
    """The text without the places of these folders, which are those of one machine."""
    for root in sorted(roots, key=len, reverse=True):
        text = re.sub(rf"(?<![\w./-]){re.escape(root)}(?![\w-])", f"data/{Path(root).name}", text)
    return text


def main() -> None:
    """Publish the studies that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="+", type=Path, help="finished studies, each of a recipe")
    parser.add_argument("--pages", type=Path, default=PAGES, help="folder that takes the pages")
    parser.add_argument("--data", metavar="WORDS", help="what the folder holds that was read instead of a data set")
    options = parser.parse_args()
    for path in publish(options.studies, options.pages, options.data):
        print(path)


if __name__ == "__main__":
    main()
