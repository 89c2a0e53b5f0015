"""report.html in a real browser: of real small studies and of planted ones, on a telephone and on a wide screen."""

import io
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from conftest import call
from factory import Plant, four_modes, make_cell, make_study
from PIL import Image
from recipes import make_replication, make_row

from browser.looking import Seen, grave_faults, wider_than_the_window
from runner.jsonfile import write_json
from runner.report import write_report
from runner.report.canvas import DARK, LIGHT
from runner.study import Study

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

TINY = ["model=custom", "dataset=digits", "train.steps=12", "train.batch_size=8", "threads=1", "tracking=off"]
# What is done for real: trainings that part at step 5, trainings that fail and that diverge, and answers.
REAL = {
    "noisy": ["model._target_=planted.NoisyFrom", "+model.args.step=5", "cudnn=glob(*)", "trials=3"],
    "broken": ["model._target_=planted.Fails", "+model.args.step=6", "+model.args.how=raise,diverge", "trials=2"],
    "infer": ["model._target_=planted.Plain", "cudnn=default,deterministic", "phase=infer", "trials=2"],
}


def with_a_recipe(folder: Path) -> Study:
    """The usual study on a GPU, as that of a recipe."""
    study = four_modes(folder)
    write_json(folder / "study.json", study.asked() | {"recipe": asdict(make_replication(make_row(value=1.2)))})
    return study


def with_long_names(folder: Path) -> Study:
    """Two settings, one of them a word that fits into no telephone."""
    cells = [make_cell(mode, precision="p" * size) for size in (4, 90) for mode in ("default", "benchmark")]
    return make_study(folder, [(cell, Plant(weights_step=2)) for cell in cells], rounds=3)


PLANTED: dict[str, Callable[[Path], Study]] = {
    "recipe": with_a_recipe,
    "names": with_long_names,
    "empty": lambda folder: Study.ask(folder, {"rounds": 5, "version": "0.1.0"}, [make_cell()]),
}


@pytest.fixture(scope="module", params=[*REAL, *PLANTED])
def study(request: Any, module_folder: Path) -> Study:
    """Each study once, with the report that its end wrote, or that is written of it."""
    folder = module_folder / request.param
    if request.param in REAL:
        done = call("runner", "-m", *TINY, *REAL[request.param], f"study={folder}", folder=module_folder, timeout=600)
        assert done.returncode == (1 if request.param == "broken" else 0), done.stdout + done.stderr
        return Study.open(folder)
    planted = PLANTED[request.param](folder)
    write_report(planted)
    return planted


@pytest.mark.parametrize(("width", "scheme"), [(380, "light"), (1400, "dark")])
def test_the_page_is_quiet_fits_and_has_no_grave_fault(
    study: Study, width: int, scheme: Any, page: "Page", seen: Seen
) -> None:
    page.emulate_media(color_scheme=scheme)
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(study.report_html.as_uri())
    assert page.locator("img").evaluate_all("all => all.every(one => one.complete && one.naturalWidth > 0)")
    assert (seen.errors, seen.outside) == ([], [])
    assert wider_than_the_window(page) == 0
    assert grave_faults(page) == []
    if page.locator("img").count():
        assert corner(page.locator("img").first.screenshot()) == (LIGHT if scheme == "light" else DARK)["card"]


def corner(picture: bytes) -> str:
    """The colour of the first pixel of a PNG, near its corner, as CSS has it."""
    with Image.open(io.BytesIO(picture)) as image:
        return "#{:02x}{:02x}{:02x}".format(*image.convert("RGB").getpixel((3, 3)))  # type: ignore[misc]
