"""Write docs/results/why.md from what scripts/gpu_why.sh, bench_probe.py and run_repros.py left in a folder.

    python scripts/publish_why.py keep FOLDER     # its figures to docs/results/why/*.json, then the page
    python scripts/publish_why.py                 # the page from what lies there

FOLDER holds the studies, bench_probe.json and repros*.jsonl as they were printed; what is missing is left out.
"""

import argparse
import json
import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from runner.analysis.summary import summarise
from runner.capture import differing
from runner.jsonfile import write_json
from runner.report.markdown import grid
from runner.report.why import change_lines
from runner.report.words import verdict_words
from runner.study import Study

ROOT = Path(__file__).resolve().parent.parent
RESULTS, PAGE = ROOT / "docs" / "results" / "why", ROOT / "docs" / "results" / "why.md"
FINDING = ("name", "module", "part", "step", "distinct", "trials", "repeats", "max_relative")
ENVIRONMENT = ("gpu_name", "torch", "cuda", "cudnn", "driver", "python")
Figures = dict[str, Any]


def kept(study: Study) -> Figures:
    """What the page says of a study: its question, where it was asked, each cell's verdict, findings and kernels."""
    summary = summarise(study)
    words = [word for word in study.asked()["command"] if not word.startswith(("study=", "tracking="))]
    environment = {name: summary["environments"][0].get(name) for name in ENVIRONMENT}
    return {
        "command": shlex.join(words),
        "started": study.asked()["started"],
        "environment": environment,
        "partial": summary["partial"],
        "cells": [_cell(cell) for cell in summary["cells"]],
        "changes": change_lines(summary),
    }


def _cell(cell: Figures) -> Figures:
    kernels = cell["kernels"] or {}
    return {
        "label": cell["label"],
        "verdict": verdict_words(cell),
        "findings": [{name: one[name] for name in FINDING} for one in differing(cell)],
        "choices": [{name: one[name] for name in ("name", "module", "further", "before")} for one in kernels["choices"]]
        if kernels
        else None,
    }


def operations(studies: dict[str, Figures]) -> Iterator[str]:
    """The table of operations that gave other results for equal inputs, a row a mode and an operation's name."""
    rows = []
    for name, study in studies.items():
        for cell in study["cells"]:
            lines = list(_by_name(cell["findings"])) or [("none", "", "", "")]
            for place, line in enumerate(lines):
                first = (name if cell is study["cells"][0] else "", cell["label"], cell["verdict"])
                rows.append([*(first if place == 0 else ("", "", "")), *line])
    heads = ["study", "mode", "repeats?", "operation", "places", "how it differs", "largest relative difference"]
    yield grid([heads, *rows])


def _by_name(findings: Iterable[Figures]) -> Iterator[tuple[str, str, str, str]]:
    """The findings of a cell by operation: its name, in how many modules, how it differs, and by how much at most."""
    found: dict[str, list[Figures]] = defaultdict(list)
    for one in findings:
        found[one["name"].removesuffix(".default")].append(one)
    for name, some in found.items():
        how = Counter(one["repeats"] or "differs between trials" for one in some)
        most = max((one["max_relative"] for one in some if one["max_relative"] is not None), default=None)
        ways = "; ".join(f"{words} ({count})" if len(how) > 1 else words for words, count in how.items())
        yield name, str(len({one["module"] for one in some})), ways, "not known" if most is None else f"{most:.2g}"


def kernels(studies: dict[str, Figures]) -> Iterator[str]:
    """For each mode how many places of the model ran other kernels in other processes, and one of them in full."""
    rows, examples = [], []
    for name, study in studies.items():
        for cell in study["cells"]:
            places = sum(1 + len(one["further"]) for one in cell["choices"])
            rows.append([name if cell is study["cells"][0] else "", cell["label"], cell["verdict"], str(places)])
            if cell["choices"]:
                examples.append(f"- {name}, {cell['label']}: {_choice(cell['choices'][0])}")
    yield grid([["study", "mode", "repeats?", "places where a process ran other kernels"], *rows])
    yield "One of them in each mode:\n\n" + "\n".join(examples)


def _choice(one: Figures) -> str:
    ran = [
        f"trial{'s' * (len(two['trials']) > 1)} {', '.join(map(str, two['trials']))} ran `{' + '.join(two['kernels'])}`"
        for two in one["before"]
    ]
    return f"{one['name']} of {one['module']}: {'; '.join(ran)}"


def costs(found: Figures) -> Iterator[str]:
    """What the probes cost."""
    steps, environment = found["steps"], found["steps"]["environment"]
    heads = ["probe", "step time / plain", "peak memory / plain"]
    rows = [[name, f"{one['step_ratio']:.2f}", f"{one['memory_ratio']:.2f}"] for name, one in steps["probes"].items()]
    yield f"`{' '.join(found['words'])}`, on {environment['gpu_name']}, torch {environment['torch']}:"
    yield grid([heads, *rows])


def repros(found: list[Figures]) -> Iterator[str]:
    """What each repro file showed when it was started alone."""
    rows = [[one["study"], one["cell"], one["operation"], _shown(one)] for one in found]
    shown = sum(one.get("status") == 1 for one in found)
    yield f"{shown} of {sum('refused' not in one for one in found)} files showed their mismatch. {LOTTERY}"
    yield grid([["study", "mode", "operation", "what it said"], *rows])


def _shown(one: Figures) -> str:
    return one.get("refused") or "; ".join(line for line in one["printed"] if "on equal inputs:" in line) or "nothing"


def page(folder: Path) -> str:
    """The page, from the files in this folder."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.json"))}
    studies = {name: one for name, one in found.items() if "cells" in one}
    traced = {name: one for name, one in studies.items() if name.endswith("-ops")}
    seen = {name: one for name, one in studies.items() if name.endswith("-kernels")}
    tried = [words for name, one in studies.items() if "-try-" in name for words in one["changes"]]
    parts = ["# Measured: why trials differ", INTRODUCTION, *_where(studies)]
    parts += ["## Operations", ASIDE, *operations(traced)]
    parts += ["## Kernels", *kernels(seen)] if seen else []
    parts += ["## What was advised", *tried] if tried else []
    parts += ["## What the probes cost", *costs(found["bench_probe"])] if "bench_probe" in found else []
    parts += ["## Repro files, started alone", *repros(found["repros"]["files"])] if "repros" in found else []
    return "\n\n".join(parts) + "\n"


INTRODUCTION = (
    "Made by `scripts/gpu_why.sh`, `scripts/bench_probe.py` and `scripts/run_repros.py`, written by\n"
    "`scripts/publish_why.py` from [their figures](why/). The words are those of [why two trainings differ](../why.md)."
)
ASIDE = (
    "Studies with `probe=ops` were done side by side on one card. Where a mode tunes, what it chose may have hung on\n"
    'that; the studies of kernels, below, had the card for themselves. A place is a module; "none" says that nothing\n'
    "differed in these trials. The LSTM's row is no cause: what `_cudnn_init_dropout_state` made agreed in all\n"
    "trials, and was other memory when it was made again; such states are no longer compared."
)

LOTTERY = (
    "They come from studies of\n"
    "their own, of 2 to 4 trials. Where no call differed from another, what differs is an algorithm that each process\n"
    "chooses by its own timings: a choice that few processes make need not be among as many as a file starts."
)


def _where(studies: dict[str, Figures]) -> Iterator[str]:
    """Environments, and the commands."""
    where = {", ".join(f"{name} {value}" for name, value in one["environment"].items()) for one in studies.values()}
    yield f"Environment: {'; '.join(sorted(where))}."
    yield "\n".join(f"    {one['command']}  # {name}, {one['started'][:10]}" for name, one in studies.items())


def keep(folder: Path) -> None:
    """Put the figures of a folder to the results."""
    RESULTS.mkdir(parents=True, exist_ok=True)
    for path in sorted(folder.glob("*/study.json")):
        write_json(RESULTS / f"{path.parent.name}.json", kept(Study.open(path.parent)))
    if (cost := folder / "bench_probe.json").is_file():
        write_json(RESULTS / "bench_probe.json", json.loads(cost.read_text(encoding="utf-8")))
    printed = [path.read_text(encoding="utf-8").splitlines() for path in sorted(folder.glob("repros*.jsonl"))]
    if files := [json.loads(line) for lines in printed for line in lines]:
        keep_repros(RESULTS / "repros.json", files)


def keep_repros(path: Path, files: list[Figures]) -> None:
    """Put what repro files showed in the place of what those of the same studies showed before."""
    before = json.loads(path.read_text(encoding="utf-8"))["files"] if path.is_file() else []
    again = {one["study"] for one in files}
    files = files + [one for one in before if one["study"] not in again]
    write_json(path, {"files": sorted(files, key=lambda one: (one["study"], one["cell"], one["operation"]))})


def main() -> None:
    """Keep what a folder holds, if one is given, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("keep", nargs="?", choices=["keep"])
    parser.add_argument("folder", nargs="?", type=Path)
    asked = parser.parse_args()
    if asked.keep and asked.folder is None:
        parser.error("keep FOLDER: name the folder with the studies")
    if asked.keep:
        keep(asked.folder)
    PAGE.write_text(page(RESULTS), encoding="utf-8")


if __name__ == "__main__":
    main()
