"""From the host to the training device without waiting for it."""

import torch
from torch import Tensor


def handed_over(tensor: Tensor, device: torch.device) -> Tensor:
    """The tensor on the device. On CUDA the copy is queued from pinned memory.

    A plain copy would wait for everything queued so far: the host could not run ahead, every step would start with
    an idle device, and the wait would look like slow data.
    """
    if device.type != "cuda" or tensor.is_cuda:
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)
