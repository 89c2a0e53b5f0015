"""A layer of each kind alone: its own operation in the forward and the backward pass, and no other kind's."""

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from runner.models.layer import KINDS, layer
from runner.schema_models import LAYERS

# What PyTorch runs for each kind on a CPU, forward and backward; `mean` and `mul` are its own ways.
OPERATIONS = {
    "convolution": {"convolution", "convolution_backward"},
    "max_pooling": {"max_pool2d_with_indices", "max_pool2d_with_indices_backward"},
    "average_pooling": {"avg_pool2d", "avg_pool2d_backward"},
    "global_pooling": {"mean"},
    "batch_norm": {"native_batch_norm", "native_batch_norm_backward"},
    "layer_norm": {"native_layer_norm", "native_layer_norm_backward"},
    "instance_norm": {"native_batch_norm", "native_batch_norm_backward"},
    "relu": {"relu", "threshold_backward"},
    "sigmoid": {"sigmoid", "sigmoid_backward"},
    "tanh": {"tanh", "tanh_backward"},
}


class Names(TorchDispatchMode):
    """Notes the name of every operation."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        self.seen.add(func.overloadpacket.__name__)
        return func(*args, **(kwargs or {}))


def operations(kind: str) -> set[str]:
    """What a training step of the network runs."""
    network, images = layer(kind, True, channels=4, classes=3), torch.randn(2, 4, 6, 6)
    with Names() as names:
        network(images).sum().backward()
    return names.seen


def test_the_settings_allow_these_kinds() -> None:
    assert tuple(KINDS) == LAYERS


@pytest.mark.parametrize("kind", OPERATIONS)
def test_a_step_runs_the_operations_of_its_kind_and_of_no_other(kind: str) -> None:
    others = set().union(*OPERATIONS.values()) - OPERATIONS[kind] - {"mean"}
    assert operations(kind) & others == set()
    assert operations(kind) >= OPERATIONS[kind]


@pytest.mark.parametrize("kind", ["rnn", "lstm", "gru"])
def test_a_recurrent_layer_reads_the_rows_one_after_another(kind: str) -> None:
    network = layer(kind, True, channels=4, classes=3).layer
    images = torch.randn(2, 4, 5, 6)
    changed = images.clone()
    changed[:, :, 3] += 1
    before, after = network(images), network(changed)
    assert before.shape == (2, 4, 5, 1)
    assert torch.equal(before[:, :, :3], after[:, :, :3])
    assert not torch.equal(before[:, :, 3:], after[:, :, 3:])


def test_layer_normalisation_is_over_the_channels_of_a_pixel() -> None:
    normalised = layer("layer_norm", True, channels=16, classes=3).layer(torch.randn(2, 16, 5, 6))
    assert torch.allclose(normalised.mean(1), torch.zeros(2, 5, 6), atol=1e-5)
    assert torch.allclose(normalised.var(1, correction=0), torch.ones(2, 5, 6), atol=1e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_gives_logits_and_gradients_of_the_layer_and_leaves_the_images_alone(kind: str) -> None:
    network, images = layer(kind, True, channels=4, classes=3), torch.randn(2, 4, 6, 6)
    gradients: list[Tensor] = []
    network.layer.register_full_backward_hook(lambda module, given, taken: gradients.append(given[0]))
    logits = network(images)
    assert logits.shape == (2, 3)
    logits.square().sum().backward()
    assert gradients[0].shape == images.shape and gradients[0].any()
    assert all(parameter.grad is not None for parameter in network.parameters())
    assert not images.requires_grad and images.grad is None


def test_no_gradient_of_the_images_is_asked_for_while_answering() -> None:
    network = layer("relu", True, channels=4, classes=3).eval()
    seen: list[bool] = []
    network.layer.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].requires_grad))
    network(torch.randn(2, 4, 6, 6))
    assert seen == [False]
