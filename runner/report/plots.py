"""Plots of a study: step time over the steps, total time with its break-even, ratios to the default.

Everything comes from the study folder. A cell has one colour and one place in all plots; cells that differ in more
than the mode stand in panels of their own. Equal records give equal bytes.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from runner.jsonfile import write_bytes
from runner.report.canvas import png, usual_style
from runner.report.curves import Panel, left_out, panels_of
from runner.report.drawing import pays_back, ratios, step_time, total_time
from runner.report.words import ratio_words, step_words
from runner.study import Study

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Plot = Callable[[dict[str, Any], list[Panel], str], "Figure | None"]
PLOTS: dict[str, Plot] = {"step_time": step_time, "total_time": total_time, "ratios": ratios}
MOST_PANELS = 6  # higher pictures are no overview


def draw(study: Study, summary: dict[str, Any], folder: Path) -> list[Path]:
    """Draw what there is to draw into `folder`, as PNG; return the paths, none for a study without figures of speed.

    Only trials whose speed counts are drawn; the small print names the others. Raises StudyError as `summarise`.
    """
    panels = panels_of(study, summary)
    if not panels:
        return []
    foot, paths = _foot(summary, panels), []
    folder.mkdir(parents=True, exist_ok=True)
    with usual_style():
        for name, plot in PLOTS.items():
            figure = plot(summary, panels[:MOST_PANELS], foot)
            if figure:
                paths.append(folder / f"{name}.png")
                write_bytes(paths[-1], png(figure))
    return paths


def _foot(summary: dict[str, Any], panels: list[Panel]) -> str:
    """The small print: how many trials, which are not drawn, and where it was measured."""
    counts = sorted({len(curve.trials) for panel in panels for curve in panel.curves})
    trials = f"{counts[0]} to {counts[-1]} trials" if len(counts) > 1 else _trials(counts[0])
    more = f"{MOST_PANELS} of {len(panels)} settings are drawn. " if len(panels) > MOST_PANELS else ""
    absent = left_out(summary, panels)
    aside = f"\nNot drawn (missing, damaged, unfinished or disturbed): {', '.join(absent)}." if absent else ""
    return f"{more}{trials} a mode. {' | '.join(map(_place, summary['environments']))}{aside}"


def _trials(count: int) -> str:
    return f"{count} trial{'s' if count > 1 else ''}"


def _place(environment: dict[str, Any]) -> str:
    device = environment.get("gpu_name") or environment.get("cpu") or environment.get("device")
    keys = {"driver": "driver", "cuda": "CUDA", "cudnn": "cuDNN", "torch": "torch"}
    versions = [f"{name} {environment[key]}" for key, name in keys.items() if environment.get(key) is not None]
    return ", ".join([str(device), *versions])


def alternative_text(path: Path, summary: dict[str, Any]) -> str:
    """What a plot that `draw` made shows, for those who do not see it: the figures of every cell."""
    shown: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
        "step_time": ("Time of each step in ms", step_words),
        "total_time": ("Time of all steps so far", pays_back),
        "ratios": ("Ratio to default (F,F)", lambda cell: ratio_words(cell, summary)),
    }
    title, words = shown[path.stem]
    texts = [(cell["label"], words(cell)) for cell in summary["cells"] if cell["n"]]
    told = "; ".join(f"{label}: {text}" for label, text in texts if text)
    return f"{title}. {told or 'No mode tunes, or none gains by it'}"
