"""What a user can get wrong, as one message that says what to do."""

from typing import Any


class ConfigError(Exception):
    """A setting that cannot be used. The message names the key, the value and what is allowed."""

    def __init__(self, key: str, value: Any, allowed: str):
        super().__init__(key, str(value), allowed)  # all three, or a launcher's worker could not pickle it

    def __str__(self) -> str:
        return "{}={}: {}".format(*self.args)


class StudyError(Exception):
    """A study folder that cannot be read or used. The message names the path and the way out."""


class Refusal(Exception):
    """Settings that only the child could find impossible: the study ends, no cell is tried again."""
