"""The config tree that Hydra composes; every key has its type in runner/schema*.py."""
