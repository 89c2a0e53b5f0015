"""The bits of a tensor's elements: which tensors have any, and how they are read."""

from functools import cache

import numpy as np
import torch
from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from runner.size import Output
from runner.worker.digest import as_real as as_real  # it stands there because that module needs torch alone

_INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
_DTYPES = {
    *(torch.bool, torch.uint8, torch.uint16, torch.uint32, torch.uint64),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64),
    *(torch.complex32, torch.complex64, torch.complex128),
    *(torch.float8_e4m3fn, torch.float8_e4m3fnuz, torch.float8_e5m2, torch.float8_e5m2fnuz),
}


def has_bits(tensor: Tensor) -> bool:
    """Whether a tensor lies in memory as plain numbers: it is not sparse, quantised, nested, on meta or a subclass.

    Nor within a transform of functions, as torch.func.vmap, where a tensor stands for many.
    """
    if type(tensor) not in (Tensor, torch.nn.Parameter) or tensor.is_nested or tensor.is_meta:
        return False
    if is_functorch_wrapped_tensor(tensor):
        return False
    return tensor.layout is torch.strided and tensor.dtype in _DTYPES


def raw(tensor: Tensor) -> Tensor:
    """The bits of the elements as integers of their size, in logical order; complex ones as two numbers."""
    real = as_real(tensor)
    return real.contiguous().view(_INTEGERS[real.element_size()])


def output_of(tensor: Tensor) -> Output:
    """A copy of a tensor's bits, also where it lies on the CPU: training goes on in its memory."""
    bits = raw(tensor).to("cpu", copy=True).numpy()
    return Output(bits.view(np.dtype(f"u{bits.itemsize}")), dtype_name(as_real(tensor).dtype))


@cache
def dtype_name(dtype: torch.dtype) -> str:
    """The name of a type of numbers, as "float32"."""
    return str(dtype).removeprefix("torch.")
