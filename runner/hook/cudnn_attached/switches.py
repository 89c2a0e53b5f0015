"""The switches that matter: every write is told with its line, and the mode's own may be held against it."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import torch
from cudnn_attached.doctor import tell
from cudnn_attached.place import called_by_torch

CUDNN = ("deterministic", "benchmark", "enabled", "benchmark_limit", "allow_tf32", "fp32_precision")
HELD = "; held as the cell has it"


def watch_switches(held: frozenset[str]) -> None:
    """Tell of every change from now on; those of the switches in `held` are not made."""
    backend = torch.backends.cudnn
    for name in CUDNN:
        switch: Any = vars(type(backend)).get(name)
        if hasattr(switch, "setter"):  # a CPU build has no limit
            switch.setter = _setter(f"torch.backends.cudnn.{name}", switch.getter, switch.setter, name in held)
    inner = backend.m  # type: ignore[attr-defined]
    inner.flags = _flags(inner.flags, held)
    whole: Any = vars(type(torch.backends)).get("fp32_precision")
    if hasattr(whole, "setter"):
        whole.setter = _setter("torch.backends.fp32_precision", whole.getter, whole.setter, False)
    _watch_attributes(type(torch.backends.cuda.matmul), lambda one: "torch.backends.cuda.matmul")
    _watch_attributes(type(backend.conv), lambda one: f"torch.backends.{one.backend}.{one.op}")  # type: ignore[attr-defined]
    _watch_strict(held)
    _wrap(torch, "set_float32_matmul_precision", torch.get_float32_matmul_precision)


def _setter(name: str, read: Callable[[], Any], write: Callable[[Any], None], held: bool) -> Callable[[Any], None]:
    def setter(value: Any) -> None:
        if value != read() or not called_by_torch():
            tell(f"sets {name} = {value!r}{HELD if held else ''}")
        if not held:
            write(value)

    return setter


def _flags(flags: Callable[..., Any], held: frozenset[str]) -> Callable[..., Any]:
    """torch.backends.cudnn.flags(...), which sets the flags that it is not given as well."""
    signature = inspect.signature(flags)

    @functools.wraps(flags)
    def watched(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        for name in ("deterministic", "benchmark", "enabled"):
            now = getattr(torch.backends.cudnn, name)
            if bound.arguments[name] != now:
                within = "within torch.backends.cudnn.flags()"
                tell(f"sets {name} = {bound.arguments[name]} {within}{HELD if name in held else ''}")
                if name in held:
                    bound.arguments[name] = now
        return flags(*bound.args, **bound.kwargs)

    return watched


def _watch_attributes(kind: type, owner: Callable[[Any], str]) -> None:
    """Tell of attributes that are set on objects of a kind whose __setattr__ passes them on to PyTorch's core."""
    write: Any = kind.__setattr__

    def set_attribute(self: Any, name: str, value: Any) -> None:
        if name.endswith(("tf32", "precision")) and (value != getattr(self, name) or not called_by_torch()):
            tell(f"sets {owner(self)}.{name} = {value!r}")
        write(self, name, value)

    kind.__setattr__ = set_attribute  # type: ignore[method-assign, assignment]


def _watch_strict(held: frozenset[str]) -> None:
    """Strict algorithms, which make cuDNN deterministic whatever the mode is."""
    use, debug = torch.use_deterministic_algorithms, torch.set_deterministic_debug_mode
    held_here = "algorithms" in held
    note = HELD if held_here else ""

    def strict(mode: bool) -> str:
        return "" if held_here or not mode else ": cuDNN is deterministic then in every mode"

    @functools.wraps(use)
    def use_watched(mode: bool, *, warn_only: bool = False) -> None:
        now = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
        if (mode, warn_only) != now:
            tell(f"calls torch.use_deterministic_algorithms({mode}){strict(mode)}{note}")
        if not held_here:
            use(mode, warn_only=warn_only)

    @functools.wraps(debug)
    def debug_watched(debug_mode: int | str) -> None:
        tell(f"calls torch.set_deterministic_debug_mode({debug_mode!r}){note}")
        if not held_here:
            debug(debug_mode)

    torch.use_deterministic_algorithms = use_watched
    torch.set_deterministic_debug_mode = debug_watched


def _wrap(owner: Any, name: str, read: Callable[[], Any]) -> None:
    """Tell of calls of a function that sets one value, where that is another than `read` gives."""
    function = getattr(owner, name)

    @functools.wraps(function)
    def watched(value: Any) -> Any:
        if value != read():
            tell(f"calls {owner.__name__}.{name}({value!r})")
        return function(value)

    setattr(owner, name, watched)
