"""Who may import whom: read from the source, and looked at in a running process."""

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from omegaconf import OmegaConf

ROOT = Path(__file__).resolve().parents[1]

NAMES = (
    "errors",
    "duration",
    "jsonfile",
    "mode",
    "cell",
    "seeds",
    "trial",
    "plan",
    "recipe",
    "calls",
    "record",
    "arrays",
    "logits",
    "series",
    "owner",
    "claim",
    "reached",
    "operation",
    "size",
    "trace",
    "kernel_use",
    "captured",
    "certificate",
)
NOUNS = {f"runner.{name}" for name in (*NAMES, "asked", "layout", "log", "ownership", "study")}
PURE = {"runner.analysis", "runner.report"}
EFFECTS = {
    "runner.cards",
    "runner.child",
    "runner.deadline",
    "runner.device_lock",
    "runner.fetch",
    "runner.interrupt",
    "runner.isolate",
    "runner.machine",
    "runner.presence",
    "runner.tracking",
}
CHILD = {"runner.worker", "runner.hook", "runner.data", "runner.models", "runner.target"}
# What data sets need on disk: the door asks before, the child while it loads. How a process ends with its parent. What
# an attached script is to be given. How every command begins.
SHARED = {"runner.dataset_files", "runner.process_end", "runner.schema_attach", "runner.start"}
NOT_IN_PARENT = {"torch", "torchvision", "torchmetrics"} | CHILD
NOT_IN_CHILD = {"mlflow", "hydra", "omegaconf", "runner.tracking", "runner.report", "runner.analysis"}


def modules() -> Iterator[tuple[str, Path]]:
    """Every module of ours by the name under which it is imported."""
    for folder, prefix in (("runner", "runner"), ("models", "runner.models")):
        for path in sorted((ROOT / folder).rglob("*.py")):
            parts = path.relative_to(ROOT / folder).with_suffix("").parts
            yield ".".join([prefix, *(part for part in parts if part != "__init__")]), path


PATHS = dict(modules())


@cache
def imports(module: str) -> frozenset[str]:
    """What a module imports, on any level, also inside functions and for types; our own names as full modules."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(PATHS[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports are not looked through"
            assert node.module is not None
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name for name in full if name in PATHS} or {node.module}
    return frozenset(found)


def within(name: str, packages: set[str]) -> bool:
    """Whether a module is one of these or lies in one of them."""
    return any(name == package or name.startswith(f"{package}.") for package in packages)


def ours(module: str) -> set[str]:
    return {name for name in imports(module) if within(name, {"runner"})}


def of(packages: set[str]) -> list[str]:
    """Our modules that are in these packages."""
    return [module for module in PATHS if within(module, packages)]


PARENT = [module for module in PATHS if not within(module, CHILD)]


def test_the_named_layers_exist() -> None:
    assert set(PATHS) >= NOUNS
    for package in (PURE | EFFECTS | CHILD | SHARED) - {"runner.models"}:
        assert package in PATHS
    assert len(of({"runner.models"})) > 3


@pytest.mark.parametrize("module", sorted(NOUNS))
def test_nouns_import_nouns_only(module: str) -> None:
    assert ours(module) <= NOUNS


@pytest.mark.parametrize("module", of(PURE))
def test_pure_modules_import_nouns_and_each_other_only(module: str) -> None:
    wiring = {"runner.command"} if module == "runner.report.__main__" else set()
    assert {name for name in ours(module) if not within(name, NOUNS | PURE | wiring)} == set()
    assert {name for name in imports(module) if within(name, {"torch", "mlflow", "hydra", "omegaconf"})} == set()


@pytest.mark.parametrize("module", of({"runner.analysis"}))
def test_analysis_knows_no_report(module: str) -> None:
    assert {name for name in ours(module) if within(name, {"runner.report"})} == set()


@pytest.mark.parametrize("module", of(EFFECTS))
def test_effects_know_no_wiring(module: str) -> None:
    assert {name for name in ours(module) if not within(name, NOUNS | PURE | EFFECTS | SHARED)} == set()


@pytest.mark.parametrize("module", PARENT)
def test_the_parent_never_imports_the_childs_side_or_torch(module: str) -> None:
    assert {name for name in imports(module) if within(name, NOT_IN_PARENT)} == set()


def reached(module: str) -> set[str]:
    """Everything that a module imports, directly or through other modules of ours."""
    seen: set[str] = set()
    ahead = {module}
    while ahead:
        name = ahead.pop()
        seen.add(name)
        ahead |= {one for one in imports(name) if one not in seen} if name in PATHS else set()
    return seen


@pytest.mark.parametrize("module", of(CHILD))
def test_the_childs_side_reaches_no_mlflow_no_hydra_and_no_report(module: str) -> None:
    assert {name for name in reached(module) if within(name, NOT_IN_CHILD)} == set()


@pytest.mark.parametrize("module", of(CHILD - {"runner.models"}))
def test_the_childs_side_shares_only_nouns_with_the_parent(module: str) -> None:
    assert {name for name in ours(module) if not within(name, NOUNS | CHILD | SHARED)} == set()


@pytest.mark.parametrize("module", of({"runner.models"}))
def test_models_import_torch_and_nothing_of_ours(module: str) -> None:
    allowed = {"torch", "torchvision", *sys.stdlib_module_names}
    assert {name for name in imports(module) if not within(name, allowed)} == set()


@pytest.mark.parametrize("module", of({"runner.hook"}))
def test_an_attached_script_needs_torch_and_nothing_of_ours(module: str) -> None:
    """The hook runs in the script's interpreter, and reads from their files what it shares with the trials."""
    shared = {"runner.worker.digest", "runner.worker.flags"}
    allowed = {"torch", "cudnn_attached", *sys.stdlib_module_names}
    for one in (module, *shared):
        assert {name for name in imports(one) if not within(name, allowed)} == set()


def test_one_module_knows_the_names_of_a_studys_files() -> None:
    names = {"study.json", "trial.json", "record.json", "series.npz", "logits.npz"}
    names |= {"summary.json", "summary.csv", "report.md", "report.html"}
    names |= {"ops.jsonl.gz", "kernels.json", "operations.json", "operation-", "capture-", "trial-", ".reached.json"}
    knowing = set()
    for module, path in PATHS.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and node.value in names:
                knowing.add(module)
    assert knowing == {"runner.layout"}


LOOK = """
import atexit, json, runpy, sys
atexit.register(lambda: print("MODULES", json.dumps(sorted(sys.modules))))
sys.argv = ["runner", "--help"]
runpy.run_module("runner", run_name="__main__", alter_sys=True)
"""


def test_help_loads_nothing_heavy(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOOK], cwd=tmp_path, env=dict(os.environ), capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    said, _, loaded = done.stdout.partition("MODULES ")
    assert "cudnn: benchmark, default, deterministic, deterministic_benchmark" in said
    assert "hydra" in json.loads(loaded)
    heavy = {"torch", "torchvision", "mlflow", "scipy", "pandas", "sklearn", "numpy", "matplotlib"}
    assert set(json.loads(loaded)) & heavy == set()
    assert list(tmp_path.iterdir()) == []


def test_a_user_brings_code_of_their_own_in_two_groups_only() -> None:
    with_target = {
        str(path.relative_to(ROOT / "conf").parent)
        for path in (ROOT / "conf").rglob("*.yaml")
        if "_target_" in list(OmegaConf.load(path))
    }
    assert with_target == {"model", "dataset", "hydra/sweeper"}
    sweepers = list((ROOT / "conf" / "hydra" / "sweeper").iterdir())
    assert [path.name for path in sweepers] == ["study.yaml"]
