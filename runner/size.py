"""How far two results of one operation lie apart: from the raw bits of what came out."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

_FLOATS = {"float16": np.float16, "float32": np.float32, "float64": np.float64}
_PART = 1 << 22  # elements at a time: in float64 all at once could need ten times the memory of what is compared


@dataclass(frozen=True, eq=False)
class Output:
    """One tensor that came out: its raw bits as unsigned integers in logical order, and the name of its type.

    A complex tensor is saved as its real and imaginary parts.
    """

    bits: np.ndarray
    dtype: str


@dataclass(frozen=True)
class Size:
    """How far two results lie apart over all their elements.

    `differing` elements have other bits. `max_ulp` is the largest difference in units in the last place of the type,
    counted as floating-point numbers between the two, so that 0 and -0 are none apart; `max_relative` the largest
    relative to the larger of the two values. Both are None where nothing can be told so: no floating-point numbers.
    `one_nan` elements are NaN in one alone and count in neither figure, infinite ones not in `max_relative`.
    """

    elements: int
    differing: int
    max_ulp: int | None
    max_relative: float | None
    one_nan: int = 0

    @property
    def words(self) -> str:
        """As a reader sees it: "3 of 1,024 elements differ, by up to 2 units in the last place (1.2e-07 relative)"."""
        if not self.differing:
            return "all elements equal"
        parts = [f"{self.differing:,} of {self.elements:,} elements differ"]
        if self.max_ulp is not None:
            relative = f" ({self.max_relative:.2g} relative)" if self.max_relative is not None else ""
            units = "unit" if self.max_ulp == 1 else "units"
            parts.append(f"by up to {self.max_ulp:,} {units} in the last place{relative}")
        if self.one_nan:
            parts.append(f"{self.one_nan:,} of them NaN on one side alone")
        return ", ".join(parts)


def ulp_distance(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """How many floating-point numbers two lie apart, from their raw bits as unsigned integers: uint64, of one shape.

    Without its sign bit a number's bits are an integer that grows with it; NaN has no place in this order.
    """
    one, other = _ordered(first), _ordered(second)
    # As unsigned: the two ends of float64 lie further apart than any int64 tells.
    distance: np.ndarray = np.maximum(one, other).view(np.uint64) - np.minimum(one, other).view(np.uint64)
    return distance


def _ordered(bits: np.ndarray) -> np.ndarray:
    signed = bits.view(np.dtype(f"i{bits.itemsize}"))
    least = np.iinfo(signed.dtype).min
    return np.where(signed < 0, least - signed, signed).astype(np.int64)


def size_of(first: Sequence[Output], second: Sequence[Output]) -> Size:
    """The size of the difference between two results of one operation, which are alike in number, shapes and types.

    Raises ValueError if they are not: then they are no results of one operation.
    """
    forms = [[(one.dtype, one.bits.shape) for one in outputs] for outputs in (first, second)]
    if forms[0] != forms[1]:
        raise ValueError(f"results of other forms cannot be compared: {forms[0]} and {forms[1]}")
    return _together(
        _size(one.bits.reshape(-1)[start : start + _PART], other.bits.reshape(-1)[start : start + _PART], one.dtype)
        for one, other in zip(first, second, strict=True)
        for start in range(0, one.bits.size, _PART)
    )


def _together(sizes: Iterable[Size]) -> Size:
    parts = list(sizes)
    different = [part for part in parts if part.differing] or parts  # what is equal tells no figure beside what is not
    return Size(
        elements=sum(part.elements for part in parts),
        differing=sum(part.differing for part in parts),
        max_ulp=max((part.max_ulp for part in different if part.max_ulp is not None), default=None),
        max_relative=max((part.max_relative for part in different if part.max_relative is not None), default=None),
        one_nan=sum(part.one_nan for part in parts),
    )


def _size(first: np.ndarray, second: np.ndarray, dtype: str) -> Size:
    differ = first != second
    differing = int(np.count_nonzero(differ))
    if dtype != "bfloat16" and dtype not in _FLOATS:
        return Size(first.size, differing, None, None)
    if not differing:
        return Size(first.size, 0, 0, 0.0)
    first, second = first[differ], second[differ]
    one, other = _values(first, dtype), _values(second, dtype)
    numbers = ~(np.isnan(one) | np.isnan(other))
    distances = ulp_distance(first[numbers], second[numbers])
    finite = np.isfinite(one) & np.isfinite(other)
    return Size(
        elements=int(differ.size),
        differing=differing,
        max_ulp=int(distances.max()) if distances.size else None,
        max_relative=_max_relative(one[finite], other[finite]),
        one_nan=int(np.count_nonzero(np.isnan(one) != np.isnan(other))),
    )


def _values(bits: np.ndarray, dtype: str) -> np.ndarray:
    """The numbers with these bits, as float64."""
    # bfloat16 is the upper half of a float32.
    values = (bits.astype(np.uint32) << 16).view(np.float32) if dtype == "bfloat16" else bits.view(_FLOATS[dtype])
    with np.errstate(invalid="ignore"):  # a NaN that would raise an exception is a NaN here
        return values.astype(np.float64)


def _max_relative(one: np.ndarray, other: np.ndarray) -> float | None:
    larger = np.maximum(np.abs(one), np.abs(other))
    some = larger > 0  # else 0 and -0
    if not one.size:
        return None
    scale = np.where(larger > 1, 0.5, 1.0)[some]  # the two ends of float64 lie further apart than its largest number
    return float(np.max(np.abs(one[some] * scale - other[some] * scale) / (larger[some] * scale), initial=0.0))
