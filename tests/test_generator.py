"""Which generator an operation draws from: the one given, or that of the device it works on."""

import pytest
import torch

from runner.worker.generator import default_generator, generator_for, state_digest

CARDS = tuple(torch.Generator().manual_seed(card) for card in range(2))


@pytest.fixture(autouse=True)
def two_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "default_generators", CARDS)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 1)


def test_a_generator_that_is_given_comes_first_wherever_it_stands() -> None:
    own = torch.Generator()
    assert generator_for((torch.ones(2), 0.5, own), {}) is own
    assert generator_for(([2, 3],), {"generator": own, "device": torch.device("cuda", 0)}) is own


def test_without_one_it_is_that_of_the_device() -> None:
    assert generator_for(([2, 3],), {"device": torch.device("cuda", 0)}) is CARDS[0]
    assert generator_for(([2, 3],), {"device": torch.device("cuda")}) is CARDS[1]
    assert generator_for((torch.ones(2),), {"device": torch.device("cuda", 0)}) is CARDS[0], "of what is made"
    assert generator_for((torch.ones(2), [1]), {"pin_memory": False}) is torch.default_generator
    assert default_generator(torch.device("cpu")) is torch.default_generator


def test_a_state_is_told_by_its_digest() -> None:
    one, other = torch.Generator().manual_seed(1), torch.Generator().manual_seed(1)
    assert state_digest(one) == state_digest(other)
    torch.rand(1, generator=other)
    assert state_digest(one) != state_digest(other)
