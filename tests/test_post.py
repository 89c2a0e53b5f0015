"""The page that answers a post, and the scripts that measure recipes and write their pages, on planted studies."""

import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from conftest import TESTS
from factory import four_modes
from recipes import make_replication, make_row

from runner.jsonfile import write_json
from runner.recipe import Published
from runner.report import write_report
from runner.report.post import STATEMENTS, post_page
from runner.study import Study

SCRIPTS = TESTS.parent / "scripts"
SLOWER = {"claim": "(T,F) is slower", "quantity": "step_time_overhead", "unit": "%", "value": 18.5, "statement": "c"}


def planted(folder: Path, name: str, *rows: Published) -> Study:
    """The usual study as that of a recipe of this name; deterministic takes 1.2 times as long."""
    study = four_modes(folder / name)
    made = make_replication(*rows)
    found = replace(made, recipe=replace(made.recipe, name=name))
    write_json(study.folder / "study.json", study.asked() | {"recipe": asdict(found)})
    return study


def lines_of(page: str) -> dict[str, str]:
    """The line of each statement in the first table."""
    rows = [line for line in page.splitlines() if line.startswith("| (")]
    return {line[3]: line for line in rows if line[4] == ")"}


def page_of(folder: Path, **rows: list[Published]) -> str:
    found: dict[str, Any] = {name: write_report(planted(folder, name, *own)) for name, own in rows.items()}
    return post_page(found, {name: f"{name}.md" for name in found})


def test_every_statement_has_a_line_and_what_has_no_study_says_so(tmp_path: Path) -> None:
    page = page_of(tmp_path, post_timing_loop=[make_row(**SLOWER)])
    lines = lines_of(page)
    assert list(lines) == list(STATEMENTS) == list("abcdefghijklmn")
    assert "19.9 % [" in lines["c"] and "differs" in lines["c"] and "post_timing_loop" in lines["c"]
    assert [letter for letter, line in lines.items() if "not measured yet" in line] == list("abdefghijklmn")
    assert "## (c)" in page and "## (d)" not in page
    assert "NVIDIA H200" in page and "[post_timing_loop](post_timing_loop.md)" in page


def test_many_figures_of_a_statement_are_counted(tmp_path: Path) -> None:
    rows = [make_row(**SLOWER | {"value": value}) for value in (20, 18.5, 30, 40)]
    line = lines_of(page_of(tmp_path, post_timing_loop=rows))["c"]
    slower = "(T,F) is slower: 19.9 %"
    assert f"agrees in 1 of 4: {slower}. differs in 3 of 4: {slower}; {slower}; {slower} |" in line


def test_statements_are_answered_by_all_studies_that_speak_of_them(tmp_path: Path) -> None:
    page = page_of(tmp_path, post_b=[make_row(**SLOWER)], post_a=[make_row(**SLOWER | {"value": 20})])
    assert "post_a, post_b" in lines_of(page)["c"]


def test_the_advice_takes_its_figures_from_the_studies(tmp_path: Path) -> None:
    page = page_of(tmp_path, post_modes=[make_row(**SLOWER)])
    advice = page.partition("## What the advice is about")[2].partition("\n## ")[0]
    # planted: 40 ms a step and 500 ms for the first one; benchmark 0.8 of that and 2 s of tuning
    assert "12.5 s each, 0.500 s of it the first step" in advice
    assert "12.1 s each, 2.50 s of it the first step" in advice
    assert "bitwise, 5 of 5" in advice and "weights differ, 5 different of 5" in advice
    assert "## What the advice is about" not in page_of(tmp_path / "other", post_x=[make_row(**SLOWER)])


def script(name: str, *words: str | Path, folder: Path) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, str(SCRIPTS / name), *map(str, words)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=900)


def test_studies_are_published_each_on_its_page_with_the_posts(tmp_path: Path) -> None:
    study = planted(tmp_path, "post_timing_loop", make_row(**SLOWER))
    write_json(study.folder / "study.json", study.asked() | {"command": ["python"], "started": "2026-12-02"})
    pages = tmp_path / "pages"
    done = script("publish_recipes.py", study.folder, "--pages", pages, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page = (pages / "post_timing_loop.md").read_text()
    for words in ("A planted claim", "Started 2026-12-02", "Published beside measured", "Environment", "step_time.png"):
        assert words in page
    assert "node1" not in (pages / "post_timing_loop.json").read_text()
    assert "19.9 % [" in lines_of((pages / "post.md").read_text())["c"]
    first = (pages / "post.md").read_bytes()
    assert script("publish_recipes.py", study.folder, "--pages", pages, folder=tmp_path).returncode == 0
    assert (pages / "post.md").read_bytes() == first


def test_a_study_without_a_recipe_is_not_published(tmp_path: Path) -> None:
    study = four_modes(tmp_path / "study")
    done = script("publish_recipes.py", study.folder, "--pages", tmp_path / "pages", folder=tmp_path)
    assert done.returncode == 1 and "follows no recipe" in done.stderr


def test_a_recipe_that_is_not_there_is_named_before_anything_runs(tmp_path: Path) -> None:
    done = script("run_recipes.py", "--out", tmp_path, "post_modes", "nothing_*", folder=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("nothing_*: no such recipe; there are ")
    assert list(tmp_path.iterdir()) == []


def test_recipes_are_measured_and_published_by_one_command_that_goes_on(tmp_path: Path) -> None:
    words = ["--out", tmp_path / "out", "--pages", tmp_path / "pages", "--size", "smoke", "post_timing_loop"]
    few = ["device=cpu", "threads=1", "trials=1", "cudnn=deterministic", "calls.backward=false"]
    done = script("run_recipes.py", *words, *few, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    record = next((tmp_path / "out").rglob("record.json")).read_bytes()
    assert "no longer" not in (tmp_path / "pages" / "post_timing_loop.md").read_text()
    again = script("run_recipes.py", *words, *few, folder=tmp_path)
    assert again.returncode == 0
    assert next((tmp_path / "out").rglob("record.json")).read_bytes() == record


@pytest.mark.parametrize("letter", STATEMENTS)
def test_every_statement_of_the_post_has_a_row_in_a_recipe(letter: str) -> None:
    texts = [path.read_text() for path in (TESTS.parent / "conf" / "recipe").glob("post_*.yaml")]
    assert any(f"statement: {letter}\n" in text or f'statement: "{letter}"\n' in text for text in texts)
