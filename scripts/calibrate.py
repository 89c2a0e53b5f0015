"""How often our verdicts are wrong: simulated studies of known truth, and real studies of one mode under four names.

    python scripts/calibrate.py --write docs [--rows noise-1 ...] [--studies 10000]
    python scripts/calibrate.py --write docs --aa 20 [model=... train.steps=...]

Everything that is judged is judged by the functions of runner.analysis that judge a real study. Prints JSON; --json
writes it to a file; --write keeps each row in FOLDER/results/calibration/ and makes FOLDER/calibration.md of all rows
that lie there.
"""

import argparse
import json
import os
import platform
import sys
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from calibration_page import page
from real_aa import real_studies
from simulated import LOOKS, Scenario, draw, judged

import runner
from runner.jsonfile import write_json

EFFECTS = (1.02, 1.03, 1.05)  # the first is the margin's edge
ROWS = [
    *(Scenario(f"noise-{noise}", noise / 100) for noise in (0.2, 1, 2, 3)),
    *(Scenario(f"effects-{noise}", noise / 100, EFFECTS) for noise in (0.2, 1, 2, 3)),
    Scenario("outliers", 0.01, outliers=0.05),
    Scenario("drift-0.1", 0.01, drift=0.001),
    Scenario("drift-0.5", 0.01, drift=0.005),
    Scenario("place-shuffled", 0.01, place=0.004, margin=0.0),
    Scenario("place-fixed", 0.01, place=0.004, margin=0.0, shuffled=False),
    Scenario("lottery-20", 0.01, gap=0.2),
    Scenario("lottery-10", 0.01, gap=0.1),
]
CHUNK = 50


def tally(scenario: Scenario, seed: int, studies: int) -> tuple[Counter[str], Counter[str]]:
    """How often each thing was so, and of how many."""
    rng, hits, of = np.random.default_rng([seed, *scenario.name.encode()]), Counter[str](), Counter[str]()
    for _ in range(studies):
        for name, value in judged(scenario, draw(scenario, max(LOOKS), rng)):
            hits[name] += bool(value)
            of[name] += 1
    return hits, of


def simulated_row(scenario: Scenario, studies: int, pool: ProcessPoolExecutor) -> dict[str, Any]:
    """One row: every count as a share with its Monte-Carlo standard error, the same whatever the number of cores."""
    began, hits, of = time.perf_counter(), Counter[str](), Counter[str]()
    sizes = [min(CHUNK, studies - done) for done in range(0, studies, CHUNK)]
    for chunk_hits, chunk_of in pool.map(tally, [scenario] * len(sizes), range(len(sizes)), sizes):
        hits += chunk_hits
        of += chunk_of
    print(f"{scenario.name}: {studies} studies in {time.perf_counter() - began:.0f} s", file=sys.stderr)
    shares = {name: share(hits[name], of[name]) for name in of}
    return {"row": scenario.name, "scenario": asdict(scenario), "studies": studies, "shares": shares}


def share(hits: int, of: int) -> dict[str, float]:
    """A share, its standard error and what it is a share of."""
    return {"share": hits / of, "se": float(np.sqrt(hits * (of - hits) / of**3)), "of": of}


def software() -> dict[str, Any]:
    """What the rows were computed with."""
    return {
        "runner": runner.__version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "machine": f"{platform.system()} {platform.machine()}",
        "cores": len(os.sched_getaffinity(0)),
    }


def keep(rows: Sequence[dict[str, Any]], folder: Path) -> None:
    """Each row as a file, and the page of all rows that are there."""
    results = folder / "results" / "calibration"
    results.mkdir(parents=True, exist_ok=True)
    for row in rows:
        write_json(results / f"{row['row']}.json", {"schema": 1, **row})
    there = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(results.glob("*.json"))]
    (folder / "calibration.md").write_text(page(there), encoding="utf-8")


def main() -> None:
    """Simulate or measure, and print or keep."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--studies", type=int, default=10_000, help="simulated studies a row")
    parser.add_argument("--rows", nargs="*", default=[row.name for row in ROWS], metavar="ROW", help="which rows")
    parser.add_argument("--aa", type=int, default=0, metavar="K", help="K real studies instead")
    parser.add_argument("--json", type=Path, help="write the rows to this file")
    parser.add_argument("--write", type=Path, metavar="FOLDER", help="keep the rows, and make the page, in this folder")
    parser.add_argument("words", nargs="*", help="settings of the real studies, as the runner takes them")
    asked = parser.parse_args()
    if asked.words and not asked.aa:
        parser.error("settings are for real studies: give --aa too")
    if asked.aa:
        rows = [real_studies(asked.aa, asked.words)]
    else:
        with ProcessPoolExecutor() as pool:
            rows = [simulated_row(row, asked.studies, pool) for row in ROWS if row.name in asked.rows]
    rows = [row | {"software": software()} for row in rows]
    if asked.json:
        write_json(asked.json, {"schema": 1, "rows": rows})
    if asked.write:
        keep(rows, asked.write)
    if not asked.json and not asked.write:
        print(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
