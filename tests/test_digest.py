"""Digests: any change of a bit shows, and nothing but bits, types and shapes does."""

import hashlib
import math
from collections.abc import Iterator, Sequence
from functools import cache
from operator import mul

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from torch import Tensor

from runner.worker import digest as digests
from runner.worker.deferred import Deferred
from runner.worker.digest import BLOCK, digest, lanes, sketch, text

DTYPES = [
    *(torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.float8_e4m3fn),
    *(torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, torch.bool),
    *(torch.complex64, torch.complex128),
]


def from_bits(content: bytes, dtype: torch.dtype) -> Tensor:
    """A flat tensor with these bits; what does not fill an element is left out."""
    raw = torch.tensor(list(content), dtype=torch.uint8)
    if dtype is torch.bool:
        return raw % 2 == 1
    return raw[: len(content) // dtype.itemsize * dtype.itemsize].clone().view(dtype)


def bits(tensor: Tensor) -> bytes:
    """A tensor's raw bits in logical order."""
    flat = tensor.resolve_conj().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().tobytes() if flat.numel() else b""


tensors = st.builds(from_bits, st.binary(max_size=120), st.sampled_from(DTYPES))

MASK = 2**64 - 1


def splitmix(place: int) -> int:
    """What SplitMix64 draws from seed 0 at this place, from 0."""
    state = (place + 1) * 0x9E3779B97F4A7C15 & MASK
    state = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & MASK
    state = (state ^ state >> 27) * 0x94D049BB133111EB & MASK
    return state ^ state >> 31


@cache
def weight_table(level: int, block: int) -> list[list[int]]:
    """A level's weights, lane by lane."""
    first = 2 * block * level
    return [[splitmix(first + lane * block + place) for place in range(block)] for lane in range(2)]


def reference_level(words: Sequence[int], level: int, block: int) -> list[list[int]]:
    """Each block's two sums of weighted words."""
    table = weight_table(level, block)
    blocks = [words[start : start + block] for start in range(0, max(len(words), 1), block)]
    return [[sum(map(mul, one, weights)) & MASK for weights in table] for one in blocks]


def signed_words(content: bytes) -> list[int]:
    padded = content + bytes(-len(content) % 4)
    return [int.from_bytes(padded[at : at + 4], "little", signed=True) for at in range(0, len(padded), 4)]


def reference_lanes(listed: Sequence[Tensor], block: int = BLOCK) -> list[int]:
    """The definition, word by word in Python's own integers: types in order of appearance, each padded to 4 bytes."""
    kinds = [tensor.real.dtype if tensor.is_complex() else tensor.dtype for tensor in listed]
    level, sums = 0, []
    for kind in dict.fromkeys(kinds):
        content = b"".join(bits(tensor) for tensor, other in zip(listed, kinds, strict=True) if other == kind)
        sums += reference_level(signed_words(content), 0, block)
    while len(sums) > 1:
        level += 1
        content = b"".join(word.to_bytes(8, "little") for both in sums for word in both)
        sums = reference_level(signed_words(content), level, block)
    return sums[0] if sums else [0, 0]


def as_words(found: Tensor) -> list[int]:
    return [int(word) & MASK for word in found]


@given(st.lists(tensors, max_size=4))
def test_the_lanes_are_what_the_definition_says(listed: list[Tensor]) -> None:
    assert as_words(lanes(listed)) == reference_lanes(listed)


@pytest.mark.parametrize("words", [BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK, 9 * BLOCK + 1])
def test_blocks_and_the_number_that_is_summed_at_once_are_as_defined(words: int) -> None:
    one = torch.arange(words, dtype=torch.int32) * 2654435761
    other = torch.arange(5, dtype=torch.float64)
    assert as_words(lanes([one, other])) == reference_lanes([one, other])


@given(st.lists(tensors, max_size=6))
def test_each_of_several_tensors_has_the_lanes_that_it_has_alone(listed: list[Tensor]) -> None:
    assert digests_of_each(listed) == [hexed(lanes([one])) for one in listed]


def hexed(found: Tensor) -> str:
    return found.numpy().tobytes().hex()


def digests_of_each(listed: list[Tensor]) -> list[str]:
    """As the probe of modules asks for them."""
    looked_at = Deferred()
    places = looked_at.look_at_each(listed, finite=True)
    found, _ = looked_at.read()
    return [found[place] for place, _ in places if place is not None]


def test_so_have_many_tensors_and_those_larger_than_a_block() -> None:
    listed = [torch.arange(size, dtype=torch.float32) for size in (BLOCK, BLOCK + 1, 0, 1, *range(300), 3 * BLOCK)]
    listed += [one.bfloat16().view(-1, 1).expand(-1, 2) for one in listed[:30]]
    assert digests_of_each(listed) == [hexed(lanes([one])) for one in listed]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Blocks of 8 words, so that few words reach many levels; and weights for them."""
    monkeypatch.setattr(digests, "BLOCK", 8)
    digests.weights.cache_clear()
    yield 8
    digests.weights.cache_clear()


@pytest.mark.parametrize("words", [1, 8, 9, 17, 33, 65, 1000])
def test_every_level_has_weights_of_its_own(words: int, small_blocks: int) -> None:
    tensor = torch.arange(words, dtype=torch.int32) * 40503
    assert as_words(lanes([tensor])) == reference_lanes([tensor], small_blocks)


@pytest.mark.parametrize("words", [6, 40, 300])
def test_blocks_that_change_places_show_on_every_level(words: int, small_blocks: int) -> None:
    tensor = torch.arange(words * 8, dtype=torch.int32).view(words, 8)
    assert len({digest([tensor.roll(shift, 0)]) for shift in range(words)}) == words


def test_two_signs_that_flip_show_wherever_they_stand() -> None:
    """The worst case of the sums: a difference of which only the lowest bits of the weights are left."""
    found = {digest([torch.zeros(64)])}
    for one in range(64):
        for other in range(one, 64):
            flipped = torch.zeros(64)
            flipped[[one, other]] = -0.0
            found.add(digest([flipped]))
    assert len(found) == 1 + 64 + 64 * 63 // 2


def test_lazy_signs_and_conjugates_are_carried_out() -> None:
    tensor = torch.complex(torch.arange(3.0), torch.arange(1.0, 4.0))
    lazy = tensor.conj()
    assert lazy.is_conj() and lazy.imag.is_neg()
    assert digest([lazy]) == digest([lazy.resolve_conj()]) != digest([tensor])
    assert digest([lazy.imag]) == digest([-tensor.imag]) != digest([tensor.imag])


@pytest.mark.parametrize("dtype", DTYPES)
def test_every_type_and_shape_has_a_digest(dtype: torch.dtype) -> None:
    content = bytes(range(1, 113))
    shapes: list[tuple[int, ...]] = [(), (0,), (1,), (3,), (7,), (2, 3), (0, 4), (1, 1, 1)]
    found = [digest([from_bits(content, dtype)[: math.prod(shape)].reshape(shape)]) for shape in shapes]
    assert len(set(found)) == len(shapes)
    assert all(len(one) == 32 and int(one, 16) >= 0 for one in found)


def test_a_digest_is_the_same_in_every_version() -> None:
    assert (
        digest([torch.arange(5, dtype=torch.float32), torch.tensor([[True], [False]])])
        == "4571c3bbe13476033b4deb6868fda174"
    )


@given(st.lists(tensors, min_size=1, max_size=4), st.data())
def test_any_single_bit_shows(listed: list[Tensor], data: st.DataObject) -> None:
    assume(any(tensor.numel() for tensor in listed))
    index = data.draw(st.sampled_from([index for index, tensor in enumerate(listed) if tensor.numel()]))
    changed, before = listed[index].clone(), digest(listed)
    if changed.dtype is torch.bool:
        place = data.draw(st.integers(0, changed.numel() - 1))
        changed[place] = ~changed[place]
    else:
        raw = changed.view(torch.uint8)
        place, bit = data.draw(st.integers(0, raw.numel() - 1)), data.draw(st.integers(0, 7))
        raw[place] ^= 1 << bit
    assert digest([*listed[:index], changed, *listed[index + 1 :]]) != before
    assert (lanes([*listed[:index], changed, *listed[index + 1 :]]) != lanes(listed)).all()


@given(tensors, st.data())
def test_swapped_elements_show(tensor: Tensor, data: st.DataObject) -> None:
    assume(tensor.numel() > 1)
    places = st.integers(0, tensor.numel() - 1)
    one, other = data.draw(places), data.draw(places)
    swapped = tensor.clone()
    swapped[one], swapped[other] = tensor[other].clone(), tensor[one].clone()
    assert (digest([swapped]) == digest([tensor])) == (bits(swapped) == bits(tensor))


@given(tensors, st.data())
def test_a_moved_boundary_between_tensors_shows(tensor: Tensor, data: st.DataObject) -> None:
    places = st.integers(0, tensor.numel())
    one, other = data.draw(places), data.draw(places)
    assume(one != other)
    assert digest([tensor[:one], tensor[one:]]) != digest([tensor[:other], tensor[other:]])


def test_another_order_type_or_shape_of_the_same_bits_shows() -> None:
    one, other = torch.zeros(4), torch.ones(4)
    same_bits = [one, one.view(2, 2), one.view(torch.int32), torch.zeros(2, dtype=torch.float64), torch.zeros(3)]
    assert len({digest([tensor]) for tensor in same_bits}) == len(same_bits)
    assert digest([one, other]) != digest([other, one])
    assert digest([one]) != digest([one, torch.zeros(0)])


@given(st.lists(tensors, max_size=3))
def test_equal_bits_have_equal_digests_whatever_they_mean(listed: list[Tensor]) -> None:
    assert digest([tensor.clone() for tensor in listed]) == digest(listed)


def test_nan_equals_itself_and_differs_from_another_nan() -> None:
    payloads = torch.tensor([0x7FC00000, 0x7FC00001, -0x3FFFFF], dtype=torch.int32).view(torch.float32)
    assert payloads.isnan().all()
    assert digest([payloads]) == digest([payloads.clone()])
    assert len({digest([payload]) for payload in payloads}) == 3


def test_minus_zero_is_not_zero() -> None:
    assert digest([torch.tensor([0.0])]) != digest([torch.tensor([-0.0])])


@pytest.mark.parametrize("dtype", DTYPES)
def test_how_a_tensor_lies_in_memory_does_not_show(dtype: torch.dtype) -> None:
    base = from_bits(bytes(range(256)) * 8, dtype)[:96].reshape(2, 3, 4, 4)
    apart = torch.empty(2, 3, 4, 8, dtype=dtype)[..., ::2]
    apart.copy_(base)
    shifted = torch.cat([base.reshape(-1)[:1], base.reshape(-1)])[1:].view(base.shape)
    laid = [
        base.contiguous(memory_format=torch.channels_last),
        base.permute(3, 2, 1, 0).contiguous().permute(3, 2, 1, 0),
        apart,
        shifted,
    ]
    assert all(bits(tensor) == bits(base) for tensor in laid)
    assert {digest([tensor]) for tensor in laid} == {digest([base])}
    assert not any(tensor.is_contiguous() for tensor in laid[:3])


def test_an_expanded_tensor_counts_every_element() -> None:
    assert digest([torch.tensor([3.0]).expand(5)]) == digest([torch.full((5,), 3.0)])


def test_gradients_and_parameters_do_not_matter() -> None:
    assert digest([torch.nn.Parameter(torch.ones(3))]) == digest([torch.ones(3)])


def test_the_text_is_a_hash_of_lanes_and_forms() -> None:
    tensor = torch.ones(2, 3)
    said = lanes([tensor]).numpy().tobytes() + b"torch.float32(2, 3)"
    assert text(lanes([tensor]), [tensor]) == digest([tensor]) == hashlib.sha256(said).hexdigest()[:32]


def distance(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    return float(np.linalg.norm(sketch(one).double().numpy() - sketch(other).double().numpy()))


def exact(one: Sequence[Tensor], other: Sequence[Tensor]) -> float:
    return math.sqrt(sum(float((a.double() - b.double()).square().sum()) for a, b in zip(one, other, strict=True)))


STANDARD_ERROR = math.sqrt(2 / 4096) / 2  # of a distance; a squared one has twice that


def changes() -> dict[str, list[Tensor]]:
    """Weights of several tensors, changed in ways that a sum without signs or with repeated signs would hide."""
    generator = torch.Generator().manual_seed(1)
    shapes = [(300, 400), (70_001,), (33, 3, 3)]
    base = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    noise = [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]
    alternating = [torch.ones(shape, dtype=torch.float64).flatten() for shape in shapes]
    for tensor in alternating:
        tensor[::2] *= -1
    return {
        "noise": [one + 1e-3 * other for one, other in zip(base, noise, strict=True)],
        "shift": [one + 0.5 for one in base],
        "alternating": [one + other.view(one.shape) for one, other in zip(base, alternating, strict=True)],
        "period": [one + (torch.arange(one.numel()) % 4096 == 7).view(one.shape) for one in base],
        "none": base,
    }


@pytest.mark.parametrize("kind", ["noise", "shift", "alternating"])
def test_the_distance_of_sketches_is_that_of_the_weights(kind: str) -> None:
    found = changes()
    assert distance(found[kind], found["none"]) == pytest.approx(
        exact(found[kind], found["none"]), rel=5 * STANDARD_ERROR
    )


def test_a_change_that_meets_in_one_place_of_the_sketch_does_not_vanish_or_add_up() -> None:
    found = changes()
    true = exact(found["period"], found["none"])
    assert 0 < distance(found["period"], found["none"]) < 4 * true


def test_equal_weights_have_no_distance() -> None:
    found = changes()["none"]
    assert distance(found, [tensor.clone() for tensor in found]) == 0


def test_few_weights_have_their_exact_distance() -> None:
    one, other = [torch.tensor([1.0, 2.0]), torch.tensor([[3.0]])], [torch.tensor([1.0, 5.0]), torch.tensor([[7.0]])]
    assert distance(one, other) == 5


def test_many_small_tensors_are_told_apart_as_well_as_a_large_one() -> None:
    noise = torch.randn(2000, 64, generator=torch.Generator().manual_seed(2))
    one, other = list(noise), [torch.zeros(64)] * 2000
    assert distance(one, other) == pytest.approx(exact(one, other), rel=5 * STANDARD_ERROR)


def test_a_sketch_covers_every_floating_tensor_and_no_counter() -> None:
    found = sketch([torch.ones(3), torch.tensor(9), torch.full((2,), 2.0, dtype=torch.bfloat16)])
    assert found[found != 0].abs().tolist() == [1, 1, 1, 2, 2]
    assert sketch([torch.tensor(9)]).abs().sum() == 0


def test_a_sketch_sees_the_logical_order_only() -> None:
    weights = torch.randn(8, 6, 3, 3, generator=torch.Generator().manual_seed(0))
    assert torch.equal(sketch([weights]), sketch([weights.contiguous(memory_format=torch.channels_last)]))


def test_a_default_device_of_the_script_changes_nothing() -> None:
    weights = [torch.arange(20_000, dtype=torch.float32), torch.ones(3)]
    expected, sketched = [digest(weights), digest([])], sketch(weights)
    torch.set_default_device("meta")
    try:
        found, again = [digest(weights), digest([])], sketch(weights)
    finally:
        torch.set_default_device(None)
    assert found == expected
    assert torch.equal(again, sketched)
