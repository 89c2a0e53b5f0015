"""The models that the runner trains: plain PyTorch modules, usable without the runner."""
