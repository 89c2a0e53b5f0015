"""What PyTorch calls not deterministic under strict algorithms: each operation once, not a warning at every call.

With use_deterministic_algorithms(True) such an operation raises a RuntimeError, with warn_only it warns. The words are
PyTorch's own, from Context.cpp and cuda/attention_backward.cu of ATen in torch 2.11 to 2.14; those about CuBLAS are of
versions before PyTorch took that check out (its pull request 161749).
"""

import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

# The name is what stands before the first words that PyTorch has for all operations: "put_", "kthvalue CUDA".
NAMED = r"(?P<name>(?:\w|::|[. ])+?) does not have a deterministic implementation, but you set"
ATTENTION = r"(?P<name>[\w ]+ attention) defaults to a non-deterministic algorithm"
CUBLAS = r"Deterministic behavior was enabled with either .* it uses (?P<name>CuBLAS) and you have CUDA"
MESSAGES = [re.compile(words, re.DOTALL | re.IGNORECASE) for words in (NAMED, ATTENTION, CUBLAS)]
REMEDY = {"CuBLAS": "CuBLAS without CUBLAS_WORKSPACE_CONFIG (determinism.workspace)"}


def operation_of(message: str) -> str | None:
    """The name of the operation that PyTorch calls not deterministic in this message, None if it says no such thing."""
    for words in MESSAGES:
        found = words.search(message)
        if found:
            name = found["name"].strip()
            return REMEDY.get(name, name)
    return None


@contextmanager
def collecting(found: list[str]) -> Iterator[None]:
    """Add the operations that are warned about or refused meanwhile to `found`, and say them in one line at the end.

    All other warnings and errors pass as they would.
    """
    with warnings.catch_warnings():
        show_otherwise = warnings.showwarning

        def show(message: Any, *where: Any, **more: Any) -> None:
            name = operation_of(str(message))
            if name is None:
                show_otherwise(message, *where, **more)
            else:
                _add(name, found)

        warnings.showwarning = show
        for words in MESSAGES:  # shown once a line of code, also where all warnings are ignored or made errors
            warnings.filterwarnings("default", message=words.pattern)
        try:
            yield
        except Exception as error:
            _add(operation_of(str(error)), found)
            raise
        finally:
            if found:
                print(f"not deterministic, says PyTorch: {', '.join(found)}")


def _add(name: str | None, found: list[str]) -> None:
    if name and name not in found:
        found.append(name)
