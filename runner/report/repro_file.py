"""The text of a repro file, which shows with PyTorch alone that an operation differs."""

import textwrap
from pathlib import PurePath
from typing import Any

from runner.captured import CapturedOperation

_ENVIRONMENT = ("platform", "python", "torch", "cpu", "threads", "gpu_name", "driver", "cuda", "cudnn", "hip")
# What of the flags is set by an assignment, by the names in runner.worker.flags.
_SWITCHES = {
    "deterministic": "torch.backends.cudnn.deterministic",
    "benchmark": "torch.backends.cudnn.benchmark",
    "benchmark_limit": "torch.backends.cudnn.benchmark_limit",
    "enabled": "torch.backends.cudnn.enabled",
    "conv_tf32": "torch.backends.cudnn.allow_tf32",
    "matmul_tf32": "torch.backends.cuda.matmul.allow_tf32",
    "fill_memory": "torch.utils.deterministic.fill_uninitialized_memory",
}


def repro_text(
    template: str,
    name: str,
    finding: dict[str, Any],
    operation: CapturedOperation,
    size: str,
    environment: dict[str, Any],
) -> str:
    """The template, with what is particular to this operation in its marked lines. No path of this machine is in it.

    The template is the text of runner.worker.reproduce; `name` is that of the file to be, `size` says how large the
    difference was.
    """
    parts = {
        "docstring": _docstring(name, finding, operation, size, environment),
        "variables": _variables(operation),
        "switches": _switches(operation),
        "operation": f"OPERATION = torch.ops.{operation.name}",
        "scratch": f"SCRATCH: tuple[int, ...] = {tuple(operation.scratch)}",
    }
    lines = (line.partition("# to be filled in: ") for line in template.splitlines())
    return "".join(f"{parts[part] if part else line}\n" for line, _, part in lines)


def own_name(name: str) -> str:
    """An operation's name without the overload that every operation has."""
    return name.removesuffix(".default")


def _variables(operation: CapturedOperation) -> str:
    """What must stand in the environment before torch is imported."""
    workspace = operation.flags.get("workspace")
    if workspace is None:
        return 'os.environ.pop("CUBLAS_WORKSPACE_CONFIG", None)\n'
    return f'os.environ["CUBLAS_WORKSPACE_CONFIG"] = "{workspace}"\n'


def _switches(operation: CapturedOperation) -> str:
    flags = operation.flags
    lines = [f"{target} = {flags[name]!r}" for name, target in _SWITCHES.items() if name in flags]
    algorithms, warn_only = flags.get("algorithms", False), flags.get("warn_only", False)
    lines.append(f"torch.use_deterministic_algorithms({algorithms!r}, warn_only={warn_only!r})")
    return "\n".join([*lines, f"torch.set_num_threads({operation.threads})"])


def _docstring(
    name: str, finding: dict[str, Any], operation: CapturedOperation, size: str, environment: dict[str, Any]
) -> str:
    """Title, what is expected and was observed, and the environment."""
    title = f"{own_name(finding['name'])} {_how(finding, operation)} on equal inputs, torch {environment.get('torch')}."
    several = f"{finding['distinct']} different results in {len(finding['trials'])} processes"
    seen = f"{several if finding['distinct'] > 1 else 'equal results in all processes'}; {size}"
    paragraphs = [
        "Expected: the same operation on the same inputs with the same settings gives the same bits.",
        f"Observed in trainings, {_where(finding)}: {seen}.",
        f"Start it with `python {name}`, with {PurePath(name).with_suffix('.pt')} beside it. It calls the operation "
        "many times in one process and, if all results are equal, once in each of up to 40 new processes, some side by "
        "side, until results differ. It ends with 1 if results differed, with 0 if not.",
    ]
    known = [f"    {key}: {environment[key]}" for key in _ENVIRONMENT if environment.get(key) is not None]
    parts = [title, *(textwrap.fill(one, 110) for one in paragraphs), "\n".join(["Environment:", *known])]
    return '"""{}\n"""'.format("\n\n".join(parts).replace("\\", "/").replace('"""', "..."))


def _how(finding: dict[str, Any], operation: CapturedOperation) -> str:
    """By the repeats in the traces, else by those in the capture."""
    if finding["repeats"] or operation.repeated is None:
        return str(finding["repeats"] or "differs between trainings")
    return "differs when repeated" if operation.repeated.differing else "differs between processes"


def _where(finding: dict[str, Any]) -> str:
    line = finding["line"] and PurePath(finding["line"])
    source = f", {line.name if line.is_absolute() else line}" if line else ""
    return f"in {finding['module'] or 'the model'} ({finding['part']}, step {finding['step']}{source})"
