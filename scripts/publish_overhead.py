"""Write the figures in docs/overhead.md from what bench_overhead.py and bench_peers.py printed.

From the repository: python scripts/publish_overhead.py, after their JSON was put into docs/results/overhead/ as
NAME.json; each file becomes a section, in the order of their names.
"""

import json
import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "docs" / "results" / "overhead", ROOT / "docs" / "overhead.md"
MARKS = re.compile(r"(<!-- figures: begin -->\n).*?(<!-- figures: end -->)", re.DOTALL)
Figures = dict[str, Any]


def section(found: Figures) -> str:
    """One file's figures, under the name of the device."""
    environment = {name: value for name, value in found["environment"].items() if value is not None}
    device = environment.pop("gpu_name", None) or environment.pop("cpu", "reports")
    what = "Against what people use" if "images_per_s" in found else "Overhead"
    facts = ", ".join(f"{name} {value}" for name, value in environment.items())
    words = f"\n\n    {' '.join(found['words'])}" if "words" in found else ""
    parts = [f"## {what}: {device}\n\n{facts}.{words}"]
    makers = {"steps": steps, "trial": trial, "start": start, "report": report, "images_per_s": rates, "modes": modes}
    parts += [make(found) for name, make in makers.items() if name in found]
    return "\n\n".join(parts)


def steps(found: Figures) -> str:
    """Step time inside the runner over the bare loop's."""
    measured = found["steps"]
    rows = [
        [mode, interval(one["ratio"], one["ci95"], 4), f"{one['same_weights']} of {measured['pairs']}"]
        for mode, one in measured["modes"].items()
    ]
    told = f"The modes' ratios lie {measured['modes_apart']:.2%} apart."
    return f"{table(['mode', 'step time / bare loop', 'same final weights, bit by bit'], rows)}\n\n{told}"


def trial(found: Figures) -> str:
    """What a trial takes beyond training."""
    one = found["trial"]
    plain = ", ".join(f"{value:.1f}" for value in one["plain_to_first_step_s"])
    around, build_s = f"{one['beyond_training_s']:.2f} s beyond training and evaluation", one["of_it_build_s"]
    return (
        f"A trial takes {around} (median of {one['trials']}), of it {build_s:.2f} s to load data, build the model and "
        f"start the device. A plain program takes {plain} s to its first step. "
        f"The command line takes {one['to_first_trial_s']:.1f} s to its first trial."
    )


def start(found: Figures) -> str:
    """What --help takes."""
    one = found["start"]
    return f"`--help` takes {one['runner_s']:.2f} s, a bare Hydra app's {one['bare_s']:.2f} s."


def report(found: Figures) -> str:
    """What a report takes."""
    rows = [
        [
            shape.replace("_", " "),
            f"{one['trials']:,}",
            f"{one['report_s']:.1f}",
            f"{one['cpu_s']:.1f}",
            f"{one['peak_mb']:.0f}",
        ]
        for shape, reports in found["report"].items()
        for one in reports
    ]
    return table(["report over", "trials", "s", "of it processor s", "peak MB"], rows)


def rates(found: Figures) -> str:
    """Images per second by each."""
    return table(["", "images/s"], [[name, f"{value:,.0f}"] for name, value in found["images_per_s"].items()])


def modes(found: Figures) -> str:
    """What each says of the modes: step time, and over the default's."""
    names = list(found["runner"])
    rows = [
        [how, *(f"{times[mode]:.2f} ({times[mode] / times['default']:.3f})" for mode in names)]
        for how, times in found["modes"].items()
    ]
    said = [f"{interval(one['ratio'], one['ci95'], 3)}, {one['verdict']}" for one in found["runner"].values()]
    rows += [[f"runner's verdict, {found['rounds']} rounds", "the baseline", *said[1:]]]
    return f"Step time in ms, in brackets over the default's:\n\n{table(['', *names], rows)}"


def interval(value: float, ends: list[float] | None, digits: int) -> str:
    """A ratio with its interval."""
    return f"{value:.{digits}f}" + (f" [{ends[0]:.{digits}f}, {ends[1]:.{digits}f}]" if ends else "")


def table(names: list[str], rows: list[list[str]]) -> str:
    """A Markdown table."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (names, ["---"] * len(names), *rows))


def main() -> None:
    """Write the page."""
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(RESULTS.glob("*.json"))]
    figures = "\n\n".join(section(one) for one in found)
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(MARKS.sub(lambda mark: f"{mark[1]}\n{figures}\n\n{mark[2]}", page), encoding="utf-8")


if __name__ == "__main__":
    main()
