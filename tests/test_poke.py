"""One weight is changed, as little as is asked, and nothing else notices."""

import numpy as np
import pytest
import torch
from composed import planted_config
from planted import Plain
from test_train import trained
from torch import Tensor, nn

from runner.errors import Refusal
from runner.models.lstm import lstm
from runner.models.resnet9 import resnet9
from runner.worker.digest import digest
from runner.worker.poke import poke
from runner.worker.train import weights


def network() -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.BatchNorm2d(2), nn.Conv2d(2, 8, 3), nn.Flatten(), nn.LazyLinear(5))


def changed(kind: str, number: int, factor: float = 1.001) -> tuple[Tensor, Tensor, Tensor]:
    """The first convolution's weights before and after a poke, and where they differ."""
    model = network()
    before = model[1].weight.detach().clone()
    poke(model, kind, factor, number)  # type: ignore[arg-type]
    after = model[1].weight.detach()
    return before, after, (before != after).nonzero()


@pytest.mark.parametrize("number", range(8))
def test_one_weight_of_the_first_convolution_moves_to_a_neighbouring_number(number: int) -> None:
    before, after, places = changed("ulp", number)
    assert len(places) == 1
    old, new = before[tuple(places[0])].numpy(), after[tuple(places[0])].numpy()
    assert new in (np.nextafter(old, np.float32(np.inf)), np.nextafter(old, np.float32(-np.inf)))


def test_up_and_down_and_other_weights_by_the_number_alone() -> None:
    found = [changed("ulp", number) for number in range(20)]
    assert {bool((after - before).sum() > 0) for before, after, _ in found} == {True, False}
    assert len({tuple(places[0].tolist()) for _, _, places in found}) > 10
    torch.manual_seed(99)
    assert torch.equal(changed("ulp", 4)[1], found[4][1])


@pytest.mark.parametrize("factor", [1.001, 2.0, 0.0])
def test_one_weight_is_multiplied(factor: float) -> None:
    before, after, places = changed("scale", 5, factor)
    assert len(places) == 1
    assert after[tuple(places[0])] == before[tuple(places[0])] * factor
    assert torch.equal(places, changed("ulp", 5)[2])


def test_random_numbers_drawn_later_are_the_same() -> None:
    model = network()
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    poke(model, "ulp", 1.001, number=6)
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("model", [resnet9(3, 10), lstm("lstm", 1, 8, False, 0.0, 3, 4, None, False)])
def test_weights_in_any_layout_and_of_other_networks(model: nn.Module) -> None:
    before = [parameter.detach().clone() for parameter in model.parameters()]
    poke(model, "scale", 2.0, number=1)
    differing = [int((old != new).sum()) for old, new in zip(before, model.parameters(), strict=True)]
    assert differing == [1] + [0] * (len(before) - 1)


def final(*words: str, number: int = 0) -> str:
    """The digest of the weights after some steps of a training with these settings."""
    torch.manual_seed(3)
    model = Plain(64)
    trained(model, *words, steps=6, number=number)
    return digest(weights(model))


def test_a_training_is_poked_before_the_step_that_is_asked_for() -> None:
    seen = []
    for words in ([], ["train.poke=scale", "train.poke_step=3"]):
        torch.manual_seed(3)
        found = trained(Plain(64), *words, steps=4).weights
        seen.append({step: lanes.tolist() for step, lanes in found.items()})
    plain, poked = seen
    assert (plain[1], plain[2]) == (poked[1], poked[2])
    assert plain[4] != poked[4]


def test_another_trial_pokes_another_weight() -> None:
    words = ["train.poke=ulp", "train.learning_rate=0"]  # so that only the poke is left to be seen
    assert len({final(*words, number=number) for number in range(5)} | {final("train.learning_rate=0")}) == 6
    assert final(*words, number=2) == final(*words, number=2)


def test_no_poke_is_the_default() -> None:
    assert planted_config()["train"]["poke"] == "none"
    assert final() == final(number=7) == final("train.poke_factor=5", "train.poke_step=2")


def test_a_poke_after_the_last_step_is_refused() -> None:
    with pytest.raises(Refusal, match=r"train\.poke_step=7: this training has 6 steps; choose at most 6"):
        final("train.poke=ulp", "train.epochs=1", "train.steps=null", "train.poke_step=7")
