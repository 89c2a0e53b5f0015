"""Shows that an operation of PyTorch gives different results for equal inputs."""  # to be filled in: docstring

import copy
import hashlib
import os
import subprocess
import sys
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

# to be filled in: variables
import torch
from torch import Tensor

# to be filled in: switches

OPERATION = torch.ops.aten.relu.default  # to be filled in: operation
SCRATCH: tuple[int, ...] = ()  # to be filled in: scratch

CALLS, SECONDS = 1000, 60.0
PROCESSES, AT_ONCE = 40, 4  # where an algorithm is chosen by its time, another one is rare: many, and under load
MORE_SECONDS, REPORT_SECONDS = 3.0, 5.0  # to go on after a first mismatch; between two lines of progress
TENSORS = Path(__file__).with_suffix(".pt")


def main() -> int:
    """Show the inputs, call the operation many times here and then in new processes. Returns 1 if results differed."""
    if not TENSORS.is_file():
        print(f"{TENSORS}: the tensors are missing; put them beside this file", file=sys.stderr)
        return 2
    saved = torch.load(TENSORS, map_location=on_first_device, weights_only=True)
    arguments = restored(saved["args"]), restored(saved["kwargs"])
    if sys.argv[1:] == ["--digest"]:
        print(digest(call(arguments)))
        return 0
    print(f"{__doc__}\n{saved['name']}, torch {torch.__version__}")
    for name, value in [*enumerate(arguments[0]), *arguments[1].items()]:
        print(f"  {name}: {described(value)}")
    return int(differs_when_repeated(arguments) or differs_between_processes())


def on_first_device(storage: Any, location: str) -> Any:
    """Put what lay on any CUDA device on the first one."""
    return storage.cuda(0) if location.startswith("cuda") else storage


def restored(value: Any) -> Any:
    """Memory formats are saved by their names."""
    if isinstance(value, list | tuple):
        return [restored(item) for item in value]
    if isinstance(value, dict):
        return {name: restored(item) for name, item in value.items()}
    return getattr(torch, value[6:]) if isinstance(value, str) and value.startswith("torch.") else value


def described(value: Any) -> str:
    """A tensor by its form, anything else as it is."""
    if isinstance(value, list | tuple) and any(isinstance(item, Tensor) for item in value):
        return "; ".join(described(item) for item in value)
    if not isinstance(value, Tensor):
        return repr(value)
    return f"{value.dtype} {tuple(value.shape)}, strides {value.stride()}, on {value.device}"


def call(arguments: Any) -> list[Tensor]:
    """Call the operation on copies of its arguments; what it returns, or what it changes if that is nothing."""
    args, kwargs = copy.deepcopy(arguments)
    returned = OPERATION(*args, **kwargs)
    several = returned if isinstance(returned, list | tuple) else [returned]
    results = tensors([one for place, one in enumerate(several) if place not in SCRATCH])
    return results or tensors([args, list(kwargs.values())])


def tensors(value: Any) -> list[Tensor]:
    """All tensors in nested lists and tuples."""
    if isinstance(value, list | tuple):
        return [tensor for item in value for tensor in tensors(item)]
    return [value] if isinstance(value, Tensor) else []


def raw(tensor: Tensor) -> Tensor:
    """The bytes of a tensor's elements."""
    return tensor.detach().resolve_conj().resolve_neg().reshape(-1).contiguous().view(torch.uint8)


def digest(results: list[Tensor]) -> str:
    """SHA-256 of all bits of the results."""
    return hashlib.sha256(b"".join(raw(tensor).cpu().numpy().tobytes() for tensor in results)).hexdigest()


def differs_when_repeated(arguments: Any) -> bool:
    """Call it again and again in this process, and say how many different results there were."""
    first, start_s, calls, largest = call(arguments), time.monotonic(), 1, 0.0
    end_s, report_s, different = start_s + SECONDS, start_s + REPORT_SECONDS, {digest(first)}
    while calls < CALLS and (now_s := time.monotonic()) < end_s:
        if now_s > report_s:
            print(f"  {calls} calls: {counted(different)} so far", flush=True)
            report_s = now_s + REPORT_SECONDS
        again = call(arguments)
        calls += 1
        if not all(torch.equal(raw(one), raw(other)) for one, other in zip(first, again, strict=True)):
            if len(different) == 1:
                end_s = min(end_s, time.monotonic() + MORE_SECONDS)
            different.add(digest(again))
            largest = max(largest, *(difference(one, other) for one, other in zip(first, again, strict=True)))
    size = f", by up to {largest:.3g}" if len(different) > 1 else ""
    print(f"{calls} calls in one process, on equal inputs: {counted(different)}{size}")
    return len(different) > 1


def counted(different: set[str]) -> str:
    """How many results there were."""
    return f"{len(different)} different results" if len(different) > 1 else "equal results"


def difference(one: Tensor, other: Tensor) -> float:
    """The largest absolute difference of two results."""
    wide = torch.complex128 if one.is_complex() else torch.float64
    return float((one.to(wide) - other.to(wide)).abs().nan_to_num().max()) if one.numel() else 0.0


def differs_between_processes() -> bool:
    """Call it once in each of several new processes until results differ, and say how many results there were."""
    different: set[str] = set()
    ended = 0
    with ThreadPoolExecutor(AT_ONCE) as pool:
        while ended < PROCESSES and len(different) < 2:
            group = range(min(AT_ONCE, PROCESSES - ended))
            different.update(pool.map(digest_of_process, group))
            ended += len(group)
            print(f"  {ended} processes: {counted(different)} so far", flush=True)
    print(f"a call in each of {ended} processes, on equal inputs: {counted(different)}")
    return len(different) > 1


def digest_of_process(_: int) -> str:
    """The digest that a new process prints last."""
    command = [sys.executable, __file__, "--digest"]
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1]


def failed(*error: Any) -> None:
    """End with 2 after an error (no file, no device, no such operation): 1 stands for the mismatch."""
    traceback.print_exception(*error)
    sys.stdout.flush()
    os._exit(2)


if __name__ == "__main__":
    sys.excepthook = failed
    sys.exit(main())
