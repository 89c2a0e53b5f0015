"""Write a page for each recipe's study under docs/results/recipes/, and the page that answers the post.

    python scripts/publish_recipes.py STUDY [STUDY ...] [--pages FOLDER]

A page holds the command, the date, the plots and the report of its study, in which published figures stand beside the
measured ones; its summary and plots go beside it. The post's page, post.md, is made of all summaries that lie there:
a study that is published later is added to it, and what has none is "not measured yet".
"""

import argparse
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


def publish(folders: list[Path], pages: Path) -> list[Path]:
    """Write the pages of these studies and the post's; return their paths. Studies without a recipe are refused."""
    pages.mkdir(parents=True, exist_ok=True)
    written = [_page(Study.open(folder), pages) for folder in folders]
    found = {path.stem: read_json(path, SCHEMA) for path in sorted(pages.glob("post_*.json"))}
    links = {name: f"{name}.md" for name in found}
    write_bytes(pages / "post.md", post_page(found, links).encode())
    return [*written, pages / "post.md"]


def _page(study: Study, pages: Path) -> Path:
    summary = published(write_report(study))
    recipe: dict[str, Any] | None = summary["recipe"]
    if recipe is None:
        raise SystemExit(f"{study.folder}: follows no recipe; run it with recipe=NAME")
    name = recipe["name"]
    write_json(pages / f"{name}.json", summary)
    plots = draw(study, summary, pages / name)
    text = section("Measured", study, summary, plots, pages)
    page = pages / f"{name}.md"
    write_bytes(page, f"# {escaped(recipe['title'])}\n\n{text}".encode())
    return page


def main() -> None:
    """Publish the studies that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("studies", nargs="+", type=Path, help="finished studies, each of a recipe")
    parser.add_argument("--pages", type=Path, default=PAGES, help="folder that takes the pages")
    options = parser.parse_args()
    for path in publish(options.studies, options.pages):
        print(path)


if __name__ == "__main__":
    main()
