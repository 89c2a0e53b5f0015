"""Random changes to images: what they may do, that image and mask go together."""

import torch
from torch.nn import functional

from runner.data.augment import augmented, cropped, mirrored


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def test_a_crop_is_one_of_the_81_places_mirrored_or_not():
    images = torch.randn(200, 2, 5, 7, generator=generator())
    padded = functional.pad(images, [4] * 4)
    seen = set()
    for before, after in zip(padded, cropped(images, generator(1)), strict=True):
        fits = [
            (top, left, flip)
            for top in range(9)
            for left in range(9)
            for flip in (False, True)
            if torch.equal(after.flip(-1) if flip else after, before[:, top : top + 5, left : left + 7])
        ]
        assert fits
        seen.add(fits[0])
    assert len({top for top, _, _ in seen}) == len({left for _, left, _ in seen}) == 9
    assert {flip for _, _, flip in seen} == {False, True}


def test_the_result_lies_in_memory_as_the_input_did():
    assert cropped(torch.zeros(3, 2, 5, 7), generator()).is_contiguous()


def test_image_and_mask_are_mirrored_alike_in_four_ways():
    masks = torch.arange(64 * 6).reshape(64, 2, 3)
    images, after = mirrored(masks[:, None].float(), masks, generator())
    assert torch.equal(images[:, 0].long(), after)
    ways = [masks, masks.flip(-1), masks.flip(-2), masks.flip((-1, -2))]
    same = torch.stack([(after == way).all(2).all(1) for way in ways])
    assert (same.sum(0) == 1).all() and (same.sum(1) > 5).all()


def test_each_view_has_its_own_change():
    images, labels, masks = torch.randn(16, 1, 6, 6, generator=generator()), torch.arange(16), torch.zeros(16, 6, 6)
    (crop, kept), (mirror, _) = (
        next(augmented(iter([(images, targets)]), view, 5)) for view, targets in (("image", labels), ("mask", masks))
    )
    assert torch.equal(kept, labels) and (crop == 0).any()
    assert not (mirror == 0).any() and torch.equal(mirror.flatten(1).sort().values, images.flatten(1).sort().values)
