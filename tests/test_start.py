"""How a command begins: Ctrl-C while it imports, and modules beside the user's that have others' names."""

from pathlib import Path

import pytest
from conftest import call

# Presses Ctrl-C as soon as a module of this name is imported.
PRESSED = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
pressed = []
def hear(event, arguments):
    if event == "import" and arguments[0] == "numpy" and not pressed:
        pressed.append(os.kill(os.getpid(), signal.SIGINT))
sys.addaudithook(hear)
"""
COMMANDS = {
    "runner": ["tracking=off"],
    "runner.attach": ["tracking=off", "--", "python"],
    "runner.why": ["s"],
    "runner.report": ["s"],
    "runner.compare": ["s", "s"],
    "runner.certify": ["s"],
    "runner.check": ["c"],
}


@pytest.mark.parametrize("module", COMMANDS)
def test_ctrl_c_while_a_command_imports_ends_it_with_130_and_without_a_traceback(module: str, tmp_path: Path) -> None:
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    (hooks / "sitecustomize.py").write_text(PRESSED)
    done = call(module, *COMMANDS[module], folder=tmp_path, PYTHONPATH=str(hooks))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("name", ["random", "queue", "numpy", "hydra"])
def test_a_module_in_the_working_folder_stands_in_for_nobody_elses(name: str, tmp_path: Path) -> None:
    (tmp_path / f"{name}.py").write_text("raise RuntimeError('planted')")
    done = call("runner", "--cfg", "job", folder=tmp_path)
    assert done.returncode == 0, done.stderr
