"""Measure recipes one after another and write their pages.

    python scripts/run_recipes.py --out FOLDER [--size reduced] [--pages FOLDER] NAME [NAME ...] [KEY=VALUE ...]

Each recipe is a study FOLDER/NAME; the same command goes on where it was broken off. Words with "=" are overrides for
all of them (device=cpu, threads=1). A recipe that fails costs its page, not the others theirs. NAME may be a pattern
("post_*"); pages go to docs/results/recipes/ unless --pages says otherwise, "none" writes none.
"""

import argparse
import subprocess
import sys
import time
from fnmatch import filter as matching
from pathlib import Path

from publish_recipes import PAGES, publish
from publish_results import ROOT

from runner.recipe import SIZES

NAMES = sorted(path.stem for path in (ROOT / "conf" / "recipe").glob("*.yaml"))


def chosen(patterns: list[str]) -> list[str]:
    """The recipes that fit, each once, in the order of the patterns. Ends the process for a pattern that fits none."""
    found = {pattern: matching(NAMES, pattern) for pattern in patterns}
    if nothing := [pattern for pattern, names in found.items() if not names]:
        raise SystemExit(f"{nothing[0]}: no such recipe; there are {', '.join(NAMES)}")
    return list(dict.fromkeys(name for names in found.values() for name in names))


def measure(name: str, size: str, out: Path, overrides: list[str]) -> bool:
    """Do one recipe, or what is left of it; whether all of its trials are there."""
    words = [f"recipe={name}", f"recipe_size={size}", f"study={out / name}", "tracking=off", *overrides]
    print(f"== {name}", flush=True)
    start = time.perf_counter()
    status = subprocess.run([sys.executable, "-m", "runner", "-m", *words]).returncode
    print(f"== {name}: {time.perf_counter() - start:.0f} s, exit status {status}", flush=True)
    if status > 128:
        raise SystemExit(status)  # somebody wants to stop: Ctrl-C, SIGTERM, a closed terminal
    return status == 0


def main() -> None:
    """Measure what is asked for, then write the pages of what is there."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("words", nargs="+", help="recipes, and overrides for all of them")
    parser.add_argument("--out", type=Path, required=True, help="folder of the studies")
    parser.add_argument("--size", choices=SIZES, default="reduced")
    parser.add_argument("--pages", default=str(PAGES), help="folder that takes the pages, or none")
    options = parser.parse_args()
    overrides = [word for word in options.words if "=" in word]
    names = chosen([word for word in options.words if "=" not in word])
    done = {name: measure(name, options.size, options.out.absolute(), overrides) for name in names}
    if options.pages != "none":
        publish([options.out / name for name, well in done.items() if well], Path(options.pages))
    if failed := [name for name, well in done.items() if not well]:
        raise SystemExit(f"not done: {', '.join(failed)}; the same command goes on")


if __name__ == "__main__":
    main()
