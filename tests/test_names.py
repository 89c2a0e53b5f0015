"""Ours is found although users have folders of the same names, theirs can be named, and a wheel has all of it."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from conftest import call, study

from runner.study import Study

ROOT = Path(__file__).resolve().parent.parent
TINY = ["trials=1", "train.steps=2", "train.batch_size=8", "threads=1"]
THEIRS = ["model=custom", "model._target_=models.mine.Net", "+model.args.width=4"]
NET = """
from torch import nn

class Net(nn.Sequential):
    def __init__(self, width):
        super().__init__(nn.Flatten(), nn.Linear(64, width), nn.Linear(width, 10))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A user's folder with packages of the names that we have too; theirs alone has models.mine."""
    for name in ("models", "conf", "tests"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
    (tmp_path / "models" / "mine.py").write_text(NET)
    (tmp_path / "conf" / "config.yaml").write_text("theirs: true\n")
    return tmp_path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from a copy: building leaves files behind."""
    pytest.importorskip("setuptools", minversion="77")
    source, target = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in ("runner", "models", "conf"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    pip("wheel", "--no-build-isolation", "--wheel-dir", str(target), str(source))
    return next(target.glob("*.whl"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of an environment with the wheel installed over the libraries of this one.

    They are named in a .pth file, in which the .pth file of an editable installation does not count.
    """
    root = tmp_path_factory.mktemp("environment")
    venv.create(root, symlinks=True)
    (site,) = root.glob("lib/python*/site-packages")
    libraries = [entry for entry in sys.path if Path(entry).name in ("site-packages", "dist-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n")
    pip("install", "--target", str(site), str(wheel))
    script = site / "bin" / "cudnn-runner"  # made for the interpreter that ran pip
    script.write_text(script.read_text().replace(sys.executable, str(root / "bin" / "python")))
    return Path(shutil.copy(script, root / "bin")).parent


def pip(*arguments: str) -> None:
    """Call pip without letting it fetch anything."""
    command = [sys.executable, "-m", "pip", arguments[0], "--no-deps", "--no-index", *arguments[1:]]
    subprocess.run(command, check=True, capture_output=True)


def run(*command: str | Path, folder: Path) -> str:
    """Run a command of the installed environment, without any other path to look for modules."""
    environ = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def outcomes(folder: Path) -> list[str]:
    """How the trials of the study in a folder went."""
    return [record.outcome for record in Study.open(folder / "study").records()]


def test_a_users_folders_of_our_names_do_no_harm_and_their_model_is_found(folder: Path) -> None:
    done = study(*THEIRS, *TINY, folder=folder)
    (cell,) = done.cells()
    assert cell.config["model"] == {"name": "custom", "_target_": "models.mine.Net", "args": {"width": 4}}
    assert cell.config["cudnn"]["benchmark_limit"] == 10
    assert outcomes(folder) == ["finished"]


@pytest.mark.parametrize("launcher", ["basic", "submitit_local"])
def test_the_console_script_finds_ours_beside_a_users_runner(installed: Path, folder: Path, launcher: str) -> None:
    (folder / "runner").mkdir()
    for name in ("__init__", "__main__", "job", "child"):
        (folder / "runner" / f"{name}.py").write_text("raise ImportError('theirs')\n")
    words = [*THEIRS, *TINY, "tracking=off", "study=study", f"hydra/launcher={launcher}"]
    run(installed / "cudnn-runner", *words, folder=folder)
    assert outcomes(folder) == ["finished"]


def test_an_installed_wheel_works_in_an_empty_folder(installed: Path, tmp_path: Path) -> None:
    where = run(installed / "python", "-c", "import runner.models; print(runner.models.__file__)", folder=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    run(installed / "python", "-m", "runner", *TINY, "tracking=off", "study=study", folder=tmp_path)
    assert outcomes(tmp_path) == ["finished"]


def test_the_installed_command_takes_a_users_package_and_their_configs(installed: Path, tmp_path: Path) -> None:
    theirs = shutil.copytree(ROOT / "tests" / "outside", tmp_path / "theirs")
    words = ["--config-dir", "my_conf", "-m", "cudnn=disabled", "model=spotter", "dataset=spots", *TINY]
    run(installed / "cudnn-runner", *words, "tracking=off", "study=study", folder=theirs)
    assert outcomes(theirs) == ["finished"]


def test_the_wheel_has_every_file(installed: Path) -> None:
    (package,) = installed.parent.glob("lib/python*/site-packages/runner")
    ours = {path.relative_to(ROOT / "runner") for path in ROOT.glob("runner/**/*.py")}
    ours |= {path.relative_to(ROOT) for name in ("models", "conf") for path in ROOT.glob(f"{name}/**/*.*")}
    ours = {path for path in ours if path.suffix in (".py", ".yaml")}
    assert {path.relative_to(package) for path in package.rglob("*") if path.suffix in (".py", ".yaml")} == ours


def test_a_users_own_mode_joins_the_others(tmp_path: Path) -> None:
    (tmp_path / "my_conf" / "cudnn").mkdir(parents=True)
    mine = "deterministic: false\nbenchmark: true\nenabled: true\nbenchmark_limit: 5\n"
    (tmp_path / "my_conf" / "cudnn" / "mine.yaml").write_text(mine)
    words = ["tracking=off", "study=study", "cudnn=glob(*)", *TINY]
    done = call("runner", "-m", "--config-dir", "my_conf", *words, folder=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert outcomes(tmp_path) == ["finished"] * 5
    assert 5 in {cell.config["cudnn"]["benchmark_limit"] for cell in Study.open(tmp_path / "study").cells()}


def test_the_sweeper_stays_importable_when_the_import_path_changes() -> None:
    code = "import runner, sys; sys.path.append('elsewhere'); import hydra_plugins.study_sweeper"
    run(sys.executable, "-c", code, folder=ROOT)
