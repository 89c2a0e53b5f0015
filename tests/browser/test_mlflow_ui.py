"""MLflow's own pages, of a real server with real studies, in a real browser: what docs/mlflow.md walks through.

`SCREENSHOTS=docs/mlflow pytest tests/browser/test_mlflow_ui.py` makes that page's pictures anew.
"""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from conftest import call
from servers.serving import mlflow_server

from runner.mode import mode_text
from runner.study import Study

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.browser

TINY = ["model=custom", "dataset=digits", "train.steps=12", "train.batch_size=8", "threads=1", "tracking=off"]
STUDIES = {
    "four": ["model._target_=planted.NoisyUnlessDeterministic", "+model.args.step=5", "cudnn=glob(*)", "trials=3"],
    "diverged": ["model._target_=planted.Plain", "train.learning_rate=1e30", "trials=1"],
}
FOUR, DIVERGED = "planted.NoisyUnlessDeterministic on digits", "planted.Plain on digits"
CELLS = ["default (F,F)", "benchmark (F,T)", "deterministic (T,F)", "deterministic_benchmark (T,T)"]
HEADLINE = {"_cells": "4", "_cells_bitwise": "2", "_trials_finished": "12"}
VERDICTS = [verdict for verdict in ("weights differ, 3 different of 3", "bitwise, 3 of 3") for _ in range(2)]
TRIALS = [f"#{number} default (F,F)" for number in range(3)]
# The pages for trainings, not those for language models; without the assistant that opens by itself.
CHOSEN = """
localStorage["mlflow.workflowType_v1"] = '"machine_learning"'
localStorage["mlflow.assistant.fab.autoOpenedOnFirstLoad_v1"] = "true"
localStorage["mlflow.assistant.panelOpen_v1"] = "false"
"""
CURVES = "plot => plot.data.filter(one => one.name).map(one => [one.name, Array.from(one.x), Array.from(one.y)])"
DRAWN = "count => new Set(document.querySelector('.js-plotly-plot')?.data?.map(one => one.name)).size >= count"
PICTURE_BYTES = 200_000


@pytest.fixture(scope="module")
def server(module_folder: Path) -> Iterator[str]:
    """The address of a server that has both studies."""
    store = f"sqlite:///{module_folder}/mlflow.db"
    for name, words in STUDIES.items():
        done = call("runner", "-m", *TINY, *words, f"study={module_folder / name}", folder=module_folder)
        assert done.returncode == 0, done.stdout + done.stderr
        sent = call("runner.upload", name, f"tracking.uri={store}", folder=module_folder)
        assert sent.returncode == 0, sent.stdout + sent.stderr
    with mlflow_server(store, module_folder) as uri:
        yield uri


@pytest.fixture(scope="module")
def four(server: str, module_folder: Path) -> Study:
    """The study of four modes."""
    return Study.open(module_folder / "four")


@pytest.fixture
def pages(page: "Page") -> "Page":
    """A window wide enough for MLflow's tables, as its users have it after their first visit."""
    page.set_viewport_size({"width": 1400, "height": 900})
    page.add_init_script(CHOSEN)
    return page


def open_runs(page: "Page", server: str, experiment: str) -> None:
    page.goto(f"{server}/#/experiments")
    page.get_by_role("link", name=experiment, exact=True).first.click()
    page.get_by_text("matching run").wait_for()


def row(page: "Page", name: str) -> "Locator":
    """A run's row in the table, its part with the name."""
    named = page.get_by_role("link", name=name, exact=True)
    return page.locator(".ag-pinned-left-cols-container [role=row]").filter(has=named)


def unfold(page: "Page", name: str) -> None:
    row(page, name).locator("[data-component-id*=runnamecellrenderer]").first.click()


def compare(page: "Page", names: list[str]) -> None:
    for name in names:
        row(page, name).get_by_role("checkbox").check()
    page.get_by_test_id("runs-compare-button").click()
    page.get_by_text(f"Comparing {len(names)} Runs from 1 Experiment").wait_for()


def follow(link: "Locator", there: "Locator") -> None:
    """Click until what the link leads to is there: a page that is still being put together takes no click."""
    from playwright.sync_api import TimeoutError as TooLate

    for _ in range(20):
        with suppress(TooLate):
            if not there.is_visible():
                link.click(timeout=10_000)
            there.wait_for(timeout=20_000)
            return
    there.wait_for()


def switch_column(page: "Page", name: str) -> None:
    page.get_by_role("button", name="Columns").click()
    page.get_by_test_id("column-selector-tree").get_by_text(name, exact=True).first.click()
    page.keyboard.press("Escape")


def line_of(page: "Page", name: str) -> list[str]:
    """What the compare page says of one thing: the texts right of its name."""
    line = page.get_by_role("row").filter(has=page.get_by_text(name, exact=True)).first
    line.wait_for()
    return [text.strip() for text in line.locator("td, th, [role=cell]").all_inner_texts()][1:]


def metric_of(page: "Page", name: str) -> list[float]:
    """What the compare page says of one metric: its list is long and draws only the part that one looks at."""
    link = page.get_by_role("link", name=name, exact=True)
    for _ in range(100):
        if link.count():
            break
        page.get_by_role("grid").last.evaluate("grid => { grid.scrollTop += 200 }")
        page.wait_for_timeout(100)  # ms, for the part to be drawn
    top = link.locator("..").evaluate("cell => cell.style.top")
    cells = page.locator(f"[role=rowgroup] > div[style*=' top: {top};']")
    cells.nth(len(CELLS)).wait_for()  # the name and a value for each
    return [float(text) for text in cells.all_inner_texts() if text != name]


def keep(page: "Page", name: str, folder: Path) -> None:
    """Take a picture of what the window shows."""
    path = Path(os.environ.get("SCREENSHOTS", folder)).absolute() / f"{name}.png"
    path.parent.mkdir(parents=True, exist_ok=True)
    assert len(page.screenshot(path=path, animations="disabled")) <= PICTURE_BYTES


def test_the_table_opens_from_study_to_cell_to_trial(server: str, pages: "Page", tmp_path: Path) -> None:
    title = f"4 modes, 3 rounds: {FOUR}"
    open_runs(pages, server, FOUR)
    row(pages, title).wait_for()
    assert row(pages, CELLS[0]).count() == 0
    for name in ("Dataset", "Source", "Models", *HEADLINE, "_step_ms", "_distinct_weights"):
        switch_column(pages, name)
    pages.reload()  # which columns were chosen is remembered
    study = row(pages, title).get_attribute("row-id")
    for name, value in HEADLINE.items():
        assert pages.locator(f"[row-id='{study}'] [col-id='metrics.`{name}`']").inner_text() == value
    unfold(pages, title)
    for name in CELLS:
        row(pages, name).wait_for()
    assert row(pages, TRIALS[0]).count() == 0
    unfold(pages, CELLS[0])
    for name in TRIALS:
        row(pages, name).wait_for()
    keep(pages, "tree", tmp_path)


def test_four_cells_compared_show_speed_and_variance_by_name(
    server: str, four: Study, pages: "Page", tmp_path: Path
) -> None:
    cells = sorted(
        json.loads((four.folder / "summary.json").read_text())["cells"], key=lambda one: CELLS.index(one["label"])
    )
    figures = {
        "_accuracy_sd": [one["metrics"]["accuracy"]["sd"] for one in cells],
        "_distinct_weights": [one["reproducibility"]["unique_weights"] for one in cells],
        "_ratio_to_default": [one["speed"]["ratio_to_baseline"]["value"] for one in cells],
        "_step_ms": [one["speed"]["step_ms"]["mean"] for one in cells],
    }
    open_runs(pages, server, FOUR)
    unfold(pages, f"4 modes, 3 rounds: {FOUR}")
    compare(pages, CELLS)
    assert line_of(pages, "_mode") == CELLS
    assert line_of(pages, "_verdict_of_3_trials") == VERDICTS
    assert line_of(pages, "cudnn.benchmark") == ["false", "true", "false", "true"]
    for part in ("Visualizations", "Run details"):
        pages.get_by_text(part).click()
    pages.get_by_role("switch", name="Parameters - Show diff only").click()
    pages.get_by_role("rowheader", name="threads", exact=True).wait_for(state="hidden")
    keep(pages, "compare", tmp_path)
    for name, said in figures.items():  # the page shows 9.142, 10.14, 100.1
        assert metric_of(pages, name) == pytest.approx(said, rel=6e-4, abs=6e-4), name


def test_the_curves_of_a_cell_lie_over_each_other(server: str, four: Study, pages: "Page", tmp_path: Path) -> None:
    (default,) = [cell.id for cell in four.cells() if mode_text(cell.config["cudnn"]) == CELLS[0]]
    open_runs(pages, server, FOUR)
    unfold(pages, f"4 modes, 3 rounds: {FOUR}")
    unfold(pages, CELLS[0])
    compare(pages, TRIALS)
    link = pages.get_by_role("link", name="train/loss", exact=True)
    follow(link, pages.get_by_text(f"{TRIALS[0]} (train/loss)"))
    for name in TRIALS:
        pages.get_by_text(f"{name} (train/loss)").wait_for()
    pages.wait_for_function(DRAWN, arg=len(TRIALS))
    curves = pages.locator(".js-plotly-plot").first.evaluate(CURVES)
    drawn = {name: (steps, losses) for name, steps, losses in curves}
    assert sorted(drawn) == TRIALS
    for record in four.records():
        series = four.series(record)
        if record.cell == default:
            assert series and drawn[TRIALS[record.number]] == (list(range(1, 13)), series.loss.tolist())
    keep(pages, "curves", tmp_path)


def test_the_page_of_a_diverged_trial_opens(server: str, pages: "Page", tmp_path: Path) -> None:
    open_runs(pages, server, DIVERGED)
    unfold(pages, f"default (F,F), 1 round: {DIVERGED}")
    unfold(pages, CELLS[0])
    follow(row(pages, TRIALS[0]).get_by_role("link"), pages.get_by_role("heading", name=TRIALS[0]))
    pages.get_by_text("the loss is nan at step 2").wait_for()
    pages.get_by_role("link", name=CELLS[0], exact=True).wait_for()  # the run above it
    assert "outcome : diverged" in " ".join(pages.inner_text("body").split())
    assert pages.get_by_text("Failed", exact=True).count()
    keep(pages, "diverged", tmp_path)


def test_one_search_finds_a_mode_and_a_page_shows_the_table(server: str, four: Study, pages: "Page") -> None:
    open_runs(pages, server, FOUR)
    box = pages.get_by_test_id("search-box")
    box.fill(f"tags.study = '{four.asked()['id']}' and tags.mode = 'benchmark'")
    box.press("Enter")
    pages.get_by_text("5 matching runs").wait_for()  # with the study's own, above them
    unfold(pages, f"4 modes, 3 rounds: {FOUR}")
    row(pages, "benchmark (F,T)").wait_for()
    assert row(pages, CELLS[0]).count() == 0
    unfold(pages, "benchmark (F,T)")
    row(pages, "#2 benchmark (F,T)").wait_for()
    link = row(pages, f"4 modes, 3 rounds: {FOUR}").get_by_role("link")
    follow(link, pages.get_by_role("columnheader", name="distinct weights"))
