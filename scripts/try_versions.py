"""Try the newest and the lowest versions that pyproject.toml allows, and every interpreter that is found here.

    python scripts/try_versions.py --page docs/versions.md
    python scripts/try_versions.py --page docs/versions.md --whole

Each attempt has an environment of its own with a wheel of this checkout, and does a small study with MLflow in an empty
folder. Packages of this interpreter's environment are reached through a .pth file: so only what is tried is installed.
Another interpreter and another torch need whole environments of some gigabytes each, which --whole asks for; without it
they are listed as not tried.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
TRIED = ("hydra-core", "mlflow", "torch")
SHOWN = ("torch", "hydra-core", "omegaconf", "mlflow")
STUDY = "-m cudnn=default,deterministic trials=2 train.steps=4 train.batch_size=8 model.cifar_stem=false threads=1"
RUNS = 1 + 2 + 4  # in MLflow: the study, its cells, its trials
LIMIT_S = 3600

COUNT = """
import json, sys
from importlib.metadata import version
from mlflow.tracking import MlflowClient
client = MlflowClient("sqlite:///mlflow.db")
runs = client.search_runs([one.experiment_id for one in client.search_experiments()])
versions = {name: version(name) for name in sys.argv[1:]} | {"python": sys.version.split()[0]}
print(json.dumps({"runs": len(runs), "versions": versions}))
"""


@dataclass(frozen=True)
class Attempt:
    """What is tried: an interpreter, with what besides our wheel; `whole` without the packages of this environment."""

    what: str
    python: str
    requirements: tuple[str, ...] = ()
    whole: bool = False


@dataclass(frozen=True)
class Row:
    """What came out: the versions that worked together, seconds, or why not."""

    what: str
    outcome: str
    versions: dict[str, str]
    install_s: float | None = None
    study_s: float | None = None


def main() -> None:
    """Try everything and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--page", type=Path, help="write the table into this Markdown file")
    parser.add_argument("--whole", action="store_true", help="try what needs a whole environment too")
    parser.add_argument("--only", nargs="+", default=[], help="attempts whose description has one of these words")
    words = parser.parse_args()
    lines, known = [], kept(words.page)
    with tempfile.TemporaryDirectory(prefix="try-versions-") as temporary:
        wheel = built(Path(temporary))
        for number, attempt in enumerate(attempts()):
            left_out = why_not(attempt, words.whole, words.only)
            if left_out:
                lines.append(known.get(attempt.what) or line(Row(attempt.what, left_out, {})))
            else:
                lines.append(line(tried(attempt, wheel, Path(temporary, str(number)))))
            print(lines[-1], flush=True)
    if words.page:
        words.page.write_text(page(lines), encoding="utf-8")


def kept(path: Path | None) -> dict[str, str]:
    """The lines of an earlier page, by what was tried: what is not asked for now stays as it was."""
    there = path.read_text(encoding="utf-8").splitlines() if path and path.is_file() else []
    return {one.split("|")[1].strip(): one for one in there if one.startswith("|") and "not tried" not in one}


def attempts() -> Iterator[Attempt]:
    """The lowest and the newest of each package that is tried, then the other interpreters."""
    lowest = requirements()
    for name in TRIED:
        pair = [name, "torchvision"] if name == "torch" else [name]  # torchvision belongs to one torch
        yield Attempt(f"lowest {name}", sys.executable, tuple(f"{one}=={lowest[one]}" for one in pair), name == "torch")
        yield Attempt(f"newest {name}", sys.executable, tuple(pair))
    for python in interpreters():
        yield Attempt(f"Python {python[0]}", python[1], (), whole=True)


def requirements() -> dict[str, str]:
    """The lowest version of each package that pyproject.toml allows."""
    listed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    return dict(one.split(">=") for one in listed)


def interpreters() -> list[tuple[str, str]]:
    """The other interpreters of this machine that pyproject.toml allows, one a version: (version, path)."""
    paths = [shutil.which(f"python3.{minor}") for minor in range(11, 21)]
    paths += map(str, sorted(Path.home().glob(".pyenv/versions/*/bin/python3")))
    found: dict[str, str] = {}
    for path in filter(None, paths):
        command = [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        said = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        if re.fullmatch(r"3\.\d+", said) and int(said[2:]) >= 11:
            found.setdefault(said, path)
    found.pop("{}.{}".format(*sys.version_info), None)
    return sorted(found.items(), key=lambda one: int(one[0][2:]))


def why_not(attempt: Attempt, whole: bool, only: list[str]) -> str:
    """Why this is left out, "" if it is not."""
    if attempt.whole and not whole:
        return "not tried: needs a whole environment of some gigabytes (--whole)"
    return "not tried: not asked for" if only and not any(word in attempt.what for word in only) else ""


def built(folder: Path) -> Path:
    """A wheel, from a copy: building leaves files behind."""
    source = folder / "source"
    for name in ("runner", "models", "conf"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip(sys.executable, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    return next(folder.glob("*.whl"))


def pip(python: str, *words: str) -> None:
    """Call pip; what it says goes into the error if it fails."""
    command = [python, "-m", "pip", *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    if done.returncode:
        raise RuntimeError(last_line(done.stderr))


def tried(attempt: Attempt, wheel: Path, folder: Path) -> Row:
    """Install and do the study."""
    try:
        start = time.monotonic()
        python = installed(attempt, wheel, folder / "environment")
        ready = time.monotonic()
        versions = studied(python, folder / "work")
        return Row(attempt.what, "works", versions, ready - start, time.monotonic() - ready)
    except (RuntimeError, subprocess.SubprocessError) as error:
        return Row(attempt.what, f"fails: {last_line(str(error))}", {})
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def installed(attempt: Attempt, wheel: Path, folder: Path) -> str:
    """The interpreter of a new environment with our wheel."""
    if attempt.whole:
        subprocess.run([attempt.python, "-m", "venv", str(folder)], check=True, timeout=LIMIT_S)
        pip(str(folder / "bin" / "python"), "install", str(wheel), *attempt.requirements)
        return str(folder / "bin" / "python")
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    libraries = [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n", encoding="utf-8")
    python = str(folder / "bin" / "python")
    pip(python, "install", "--upgrade", *attempt.requirements)
    # Ours may be installed as editable among the libraries: this one stands before it.
    pip(python, "install", "--no-deps", "--ignore-installed", str(wheel))
    return python


def studied(python: str, folder: Path) -> dict[str, str]:
    """Do the study in an empty folder; returns the versions it was done with."""
    folder.mkdir()
    environ = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYTHONSAFEPATH")}
    program = str(Path(python).with_name("cudnn-runner"))
    for command in ([program, *STUDY.split()], [python, "-c", COUNT, *SHOWN]):
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
        if done.returncode:
            raise RuntimeError(f"exit code {done.returncode}: {last_line(done.stderr or done.stdout)}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    if found["runs"] != RUNS:
        raise RuntimeError(f"{found['runs']} runs in MLflow, {RUNS} are due")
    return {str(name): str(version) for name, version in found["versions"].items()}


def last_line(text: str) -> str:
    """The last line that says something."""
    return next((one.strip() for one in reversed(text.splitlines()) if one.strip()), "nothing was said")


def line(row: Row) -> str:
    """A row of the table."""
    seconds = ["-" if one is None else f"{one:.0f}" for one in (row.install_s, row.study_s)]
    versions = [row.versions.get(name, "-") for name in ("python", *SHOWN)]
    when = "-" if row.install_s is None else f"{datetime.now(UTC):%Y-%m-%d}"
    return f"| {' | '.join([row.what, row.outcome.replace('|', '/'), *versions, *seconds, when])} |"


def page(lines: list[str]) -> str:
    """The Markdown page."""
    names = ["tried", "outcome", "Python", *SHOWN, "install s", "study s", "when"]
    head = [f"| {' | '.join(names)} |", f"|{' --- |' * len(names)}"]
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} processors"
    return "\n".join(
        [
            "# Versions that were tried",
            "",
            f"Made by `python scripts/try_versions.py` ({machine}). Each row is an environment of its own with a wheel",
            "of this checkout, and a study of two modes and two rounds on a CPU with MLflow, started by `cudnn-runner`",
            "in an empty folder. Times depend on the machine, on what else it did and on what was fetched before.",
            "",
            *head,
            *lines,
            "",
        ]
    )


if __name__ == "__main__":
    main()
