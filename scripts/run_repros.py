"""Write and start a repro file for the operations that differ in studies with probe=ops, and say what each one showed.

From the repository: python scripts/run_repros.py FOLDER STUDY ... [--processes 40] [--at-once 6]
Prints JSON lines, each as its file ends: for each cell with findings its first operations of different names, and of
each the file's exit status (1: it showed the mismatch, 0: it did not) and what it printed. The files stay in FOLDER.
"""

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from runner.analysis.summary import summarise
from runner.capture import captured_indices, differing
from runner.errors import StudyError
from runner.repro import write_repro
from runner.study import Study

LIMIT_S = 300.0
COUNTS = re.compile(r"(PROCESSES, AT_ONCE) = \d+,")


def written(study: Study, folder: Path, processes: int) -> Iterator[dict[str, Any]]:
    """Write the files for one study, with so many processes each, and say of what; or why one cannot be written."""
    for cell in summarise(study)["cells"]:
        names: set[str] = set()
        for one in differing(cell):
            if one["index"] not in captured_indices(cell) or one["name"] in names:
                continue
            names.add(one["name"])
            path = folder / f"{study.folder.name}_{cell['cell']}_{one['index']}.py"
            found = {"study": study.folder.name, "cell": cell["label"], "operation": one["name"], "file": path.name}
            try:
                write_repro(study, path, one["index"], cell["cell"])
                path.write_text(COUNTS.sub(rf"\1 = {processes},", path.read_text(encoding="utf-8")), encoding="utf-8")
            except StudyError as error:
                found["refused"] = str(error)
            yield found


def started(found: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Start one file alone, without this project in its path."""
    if "refused" in found:
        return found
    command = [sys.executable, "-I", found["file"]]
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)
    except subprocess.TimeoutExpired:
        return found | {"status": None, "printed": [f"was not done after {LIMIT_S:.0f} s"]}
    return found | {"status": done.returncode, "printed": (done.stdout + done.stderr).splitlines()}


def main() -> int:
    """Write, start and print; 1 if a file that was written did not show its mismatch."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="for the files")
    parser.add_argument("studies", nargs="+", type=Path)
    parser.add_argument("--processes", type=int, default=40, help="that each file starts, at most")
    parser.add_argument("--at-once", type=int, default=6, help="files started side by side")
    asked = parser.parse_args()
    asked.folder.mkdir(parents=True, exist_ok=True)
    printed = sys.stdout

    def shown(one: dict[str, Any]) -> bool:
        found = started(one, asked.folder)
        print(json.dumps(found), file=printed, flush=True)
        return "refused" in found or found["status"] == 1

    with ThreadPoolExecutor(asked.at_once) as pool, redirect_stdout(sys.stderr):  # what a capture says
        studies = [written(Study.open(folder), asked.folder, asked.processes) for folder in asked.studies]
        good = [pool.submit(shown, one) for study in studies for one in study]
    return 0 if all(one.result() for one in good) else 1


if __name__ == "__main__":
    sys.exit(main())
