"""What can be read of files that not every trial has, and of which one may be damaged."""

from collections.abc import Callable, Iterable
from typing import TypeVar

from runner.errors import StudyError
from runner.record import Record

Read = TypeVar("Read")


def readable(records: Iterable[Record], read: Callable[[Record], Read | None]) -> tuple[list[Read], list[str]]:
    """What `read` gives for each record, without None, and what the StudyErrors say that it raises instead."""
    found: list[Read] = []
    damaged: list[str] = []
    for record in records:
        try:
            one = read(record)
        except StudyError as error:
            damaged.append(str(error))
        else:
            found += [] if one is None else [one]
    return found, damaged
