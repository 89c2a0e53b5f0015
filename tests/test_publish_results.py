"""What is published: pages that name no machine, and one table made from several summaries."""

import importlib.util
from pathlib import Path

import pytest
from factory import Plant, make_cell, make_study
from markdown_it import MarkdownIt  # comes with rich
from summaries import make_summary

from runner.jsonfile import write_json
from runner.report import write_report
from runner.study import Study

ROOT = Path(__file__).parent.parent


@pytest.fixture
def publishing():
    spec = importlib.util.spec_from_file_location("publish_results", ROOT / "scripts" / "publish_results.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def readme(tmp_path):
    path = tmp_path / "README.md"
    path.write_text("a\n<!-- results: begin -->\nold\n<!-- results: end -->\nz\n")
    return path


def test_published_pages_nest_their_headings_and_name_no_machine(tmp_path, publishing):
    study = make_study(tmp_path / "one", [(make_cell(), Plant())])
    asked = {"rounds": 0, "command": ["python", "-m", "runner", "trials=5", "study=/home/me"], "started": "today"}
    empty = Study.ask(tmp_path / "two", asked, [make_cell()])
    summary = publishing.published(write_report(study))
    publishing.write_page("page", [("A title", empty, summary)], tmp_path)
    page = (tmp_path / "docs" / "results" / "page.md").read_text()
    heads = [line for line in page.splitlines() if line.startswith("#")]
    assert heads == [
        "# Measured: the four modes",
        "## A title",
        "### resnet on digits, precision fp32, NVIDIA H200",
        "#### More figures",
        "#### Repeatability",
        "#### Environment",
    ]
    assert "    python -m runner trials=5\n" in page
    for text in (page, (tmp_path / "docs" / "results" / "page" / "two.json").read_text()):
        assert "NVIDIA H200" in text
        assert "node1" not in text and "GPU-1" not in text


def test_published_pages_link_plots_with_their_figures_as_text(tmp_path, publishing):
    study = make_study(tmp_path / "one", [(make_cell("default"), Plant()), (make_cell("benchmark"), Plant(ratio=0.8))])
    asked = {"rounds": 5, "command": ["python", "-m", "runner"], "started": "today"}
    write_json(study.folder / "study.json", study.asked() | asked)
    publishing.write_page("page", [("A title", study, publishing.published(write_report(study)))], tmp_path)
    page = (tmp_path / "docs" / "results" / "page.md").read_text()
    images = [part for token in MarkdownIt().parse(page) for part in token.children or [] if part.type == "image"]
    assert [image.attrs["src"] for image in images] == [
        f"page/one/{name}.png" for name in ("step_time", "total_time", "ratios")
    ]
    assert "benchmark (F,T): 0.8" in images[2].content
    for image in images:
        assert (tmp_path / "docs" / "results" / image.attrs["src"]).read_bytes().startswith(b"\x89PNG")


def headline(readme):
    lines = readme.read_text().splitlines()
    assert (lines[0], lines[-1], "old" in lines) == ("a", "z", False)
    return [[text.strip() for text in line.strip("|").split("|")] for line in lines[2:-2]]


def test_the_headline_has_a_block_of_rows_for_each_summary(tmp_path, publishing, readme):
    first = make_summary(("default", {}), ("benchmark", {}))
    second = make_summary(("default", {}), ("deterministic", {}), settings={"precision": "bf16"})
    publishing.write_headline([("ResNet-18, fp32", first), ("ResNet-18, bf16", second)], tmp_path)
    names, _, *lines = headline(readme)
    assert names[:3] == ["measured", "mode", "step ms"]
    assert not {"trials", "accuracy"} & set(names)
    assert [line[:2] for line in lines] == [
        ["ResNet-18, fp32", "default (F,F)"],
        ["", "benchmark (F,T)"],
        ["ResNet-18, bf16", "default (F,F)"],
        ["", "deterministic (T,F)"],
    ]


def test_settings_within_a_summary_are_blocks_of_their_own(tmp_path, publishing, readme):
    summary = make_summary(("default", {}), ("default", {}), ("benchmark", {}), ("benchmark", {}))
    for cell, precision in zip(summary["cells"], ["fp32", "bf16"] * 2, strict=True):
        cell["config"] = cell["config"] | {"precision": precision}
        cell["label"] += f", precision={precision}"
    publishing.write_headline([("U-Net", summary)], tmp_path)
    assert [line[:2] for line in headline(readme)[2:]] == [
        ["U-Net, precision=fp32", "default (F,F)"],
        ["", "benchmark (F,T)"],
        ["U-Net, precision=bf16", "default (F,F)"],
        ["", "benchmark (F,T)"],
    ]


def test_what_a_summary_has_no_column_for_stays_empty(tmp_path, publishing, readme):
    sizes = make_summary(("default", {"shapes": 48, "steps_s": 5.9}))
    publishing.write_headline([("ResNet-18", make_summary(("default", {}))), ("48 sizes", sizes)], tmp_path)
    names, _, *lines = headline(readme)
    assert [line[names.index("all steps s")] for line in lines] == ["", "5.90"]
    assert [len(line) for line in lines] == [len(names)] * 2


def test_a_summary_of_before_there_were_plans_can_be_shown(tmp_path, publishing, readme):
    summary = make_summary(("default", {}))
    for name in ("plans", "shapes", "steps_s"):
        del summary["cells"][0]["speed"][name]
    del summary["cells"][0]["reproducibility"]["subject"]
    publishing.write_headline([("older", summary)], tmp_path)
    assert headline(readme)[2][:3] == ["older", "default (F,F)", "40.00 (sd 0.10) [39.90, 40.10]"]
