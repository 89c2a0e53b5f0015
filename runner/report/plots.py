"""Plots of a study: of speed, of repeatability, and of the one against the other.

Everything comes from the study folder. A cell has one colour and one place in all plots; cells that differ in more
than the mode stand in panels of their own. Equal records give equal bytes.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from runner.analysis.evidence import Evidence
from runner.analysis.words import across_words
from runner.jsonfile import write_bytes
from runner.report.canvas import Frame, Picture, png, svg, usual_style
from runner.report.curves import Panel, left_out, panels_of, samples_in
from runner.report.drawing import pays_back, ratios, step_time, total_time
from runner.report.equality import equality
from runner.report.family import families
from runner.report.losses import losses
from runner.report.swept import swept
from runner.report.table import main_metric
from runner.report.text import one_line
from runner.report.tradeoff import tradeoff
from runner.report.trainings import groups_of
from runner.report.words import ratio_words, spread_words, step_words
from runner.study import Study

Plot = Callable[[dict[str, Any], list[Panel], Frame], Picture | None]
PLOTS: dict[str, Plot] = {"step_time": step_time, "total_time": total_time, "ratios": ratios, "swept": swept}
MOST_PANELS = 6  # higher pictures are no overview
MOST_ON_PAGE = 4  # there are more plots on a page, and it must stay light
MOST_CELLS = 12  # that a text beside a plot goes through


@dataclass(frozen=True)
class PagePlot:
    """A plot for a page: its name, title, how to read it, the figures of its cells in words, and the SVG text.

    `words` has (cell of the summary, text) for those cells of which there is anything to say.
    """

    name: str
    title: str
    told: str
    words: list[tuple[dict[str, Any], str]]
    svg: str

    @property
    def alternative(self) -> str:
        """The plot for those who do not see it."""
        return _told(self.title, self.words)


def page_plots(study: Study, summary: dict[str, Any], evidence: Evidence) -> tuple[list[PagePlot], list[str]]:
    """The plots of report.html, and a line for what is not drawn; `evidence` is what the summary is made of."""
    samples, frame = samples_in(evidence), Frame()
    panels = panels_of(study, summary, samples, MOST_ON_PAGE)
    groups = groups_of(study, summary, samples, MOST_ON_PAGE)
    plots: dict[str, Callable[[], Picture | None]] = {
        "tradeoff": partial(tradeoff, summary, MOST_ON_PAGE, frame),
        **{name: partial(plot, summary, panels, frame) for name, plot in PLOTS.items() if panels},
        "losses": partial(losses, groups, frame),
        "equality": partial(equality, groups, frame),
    }
    drawn: list[PagePlot] = []
    failed: list[str] = []
    for name, plot in plots.items() if panels or groups else ():
        try:
            drawn += _drawn(name, plot, summary)
        except Exception as error:  # whatever a plot stumbles over: the report is worth more than a plot
            failed.append(f"the plot {name} cannot be drawn ({type(error).__name__}: {error})")
    few = shown_words(summary, MOST_ON_PAGE).strip()
    return drawn, [few, *failed] if few and drawn else failed


def _drawn(name: str, plot: Callable[[], Picture | None], summary: dict[str, Any]) -> Iterator[PagePlot]:
    with usual_style():
        picture = plot()
        if picture:
            title = picture.title.split(": ")[0]  # the page is of one study, which it names
            yield PagePlot(name, title, picture.told, _words(name, summary), svg(picture.figure, name))


def draw(study: Study, summary: dict[str, Any], folder: Path) -> list[Path]:
    """Draw the plots of speed into `folder`, as PNG with all words; return the paths, none without figures of speed.

    Only trials whose speed counts are drawn; the small print names the others. Raises StudyError as `summarise`.
    """
    panels = panels_of(study, summary, samples_in(Evidence.of(study)), MOST_PANELS)
    if not panels:
        return []
    foot, few, paths = _foot(summary, panels), shown_words(summary, MOST_PANELS), []
    folder.mkdir(parents=True, exist_ok=True)
    with usual_style():
        for name, plot in PLOTS.items():
            # The swept number lies on an axis: that plot has not a panel a setting, and says itself what it leaves out.
            picture = plot(summary, panels, Frame(foot if plot is swept else f"{few}{foot}"))
            if picture:
                paths.append(folder / f"{name}.png")
                write_bytes(paths[-1], png(picture.figure))
    return paths


def shown_words(summary: dict[str, Any], most: int) -> str:
    """That only the first `most` settings are drawn, "" if there are no more."""
    settings = len(families(summary))
    return f"{most} of {settings} settings are drawn. " if settings > most else ""


def _foot(summary: dict[str, Any], panels: list[Panel]) -> str:
    """The small print: how many trials, which are not drawn, and where it was measured."""
    counts = sorted({len(curve.trials) for panel in panels for curve in panel.curves})
    trials = f"{counts[0]} to {counts[-1]} trials" if len(counts) > 1 else _trials(counts[0])
    absent = left_out(summary, panels)
    aside = f"\nNot drawn (missing, damaged, unfinished or disturbed): {', '.join(absent)}." if absent else ""
    return f"{trials} a mode. {' | '.join(dict.fromkeys(map(_place, summary['environments'])))}{aside}"


def _trials(count: int) -> str:
    return f"{count} trial{'s' if count > 1 else ''}"


def _place(environment: dict[str, Any]) -> str:
    device = environment.get("gpu_name") or environment.get("cpu") or environment.get("device")
    keys = {"driver": "driver", "cuda": "CUDA", "cudnn": "cuDNN", "torch": "torch"}
    versions = [f"{name} {environment[key]}" for key, name in keys.items() if environment.get(key) is not None]
    return ", ".join([str(device), *versions])


def alternative_text(name: str, summary: dict[str, Any]) -> str:
    """What a plot of this name shows, for those who do not see it: the figures of every cell."""
    titles = {
        "step_time": "Time of each step in ms",
        "total_time": "Time of all steps so far",
        "ratios": "Ratio to default (F,F)",
        "swept": "Ratio to default (F,F) against the number that was swept",
    }
    return _told(titles[name], _words(name, summary))


def _told(title: str, words: list[tuple[dict[str, Any], str]]) -> str:
    told = "; ".join(f"{one_line(cell['label'])}: {text}" for cell, text in words[:MOST_CELLS])
    more = f"; {len(words) - MOST_CELLS} more cells stand in the table" if len(words) > MOST_CELLS else ""
    return f"{title}. {told or 'No mode tunes, or none gains by it'}{more}"


def _words(name: str, summary: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """What a plot shows of each cell in which a trial finished, where there is anything to say."""
    says: dict[str, Callable[[dict[str, Any]], str]] = {
        "tradeoff": lambda cell: f"{_step_words(cell)}; {_spread_words(cell, summary)}",
        "step_time": _step_words,
        "total_time": pays_back,
        "ratios": lambda cell: ratio_words(cell, summary),
        "swept": lambda cell: ratio_words(cell, summary),
        "losses": _parting_words,
        "equality": lambda cell: across_words(cell["reproducibility"]),
    }
    return [(cell, text) for cell in summary["cells"] if cell["n"] and (text := says[name](cell))]


def _step_words(cell: dict[str, Any]) -> str:
    """With its unit, which plans have already."""
    words = step_words(cell)
    return f"{words} ms" if cell["speed"]["step_ms"] and not cell["speed"]["plans"] else words


def _spread_words(cell: dict[str, Any], summary: dict[str, Any]) -> str:
    return ", ".join(spread_words(cell, main_metric(summary))) or across_words(cell["reproducibility"])


def _parting_words(cell: dict[str, Any]) -> str:
    found = cell["reproducibility"]
    if found["trials"] < 2:
        return "one trial"
    step = found["first_loss_step"]
    return f"losses part at step {step}" if step else "equal losses in every step of every trial"
