"""Counting the operations that make the host wait, with PyTorch's warnings of them made by hand."""

import warnings

import pytest
import torch

from runner.worker.synchronizing import Synchronizing

CALLED = "called a synchronizing CUDA operation (Triggered internally at CUDAFunctions.cpp:146.)"
NOT_ALL = "Synchronization debug mode is a prototype feature and does not yet detect all synchronizing operations"


@pytest.fixture(autouse=True)
def modes(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The modes that were set, the last one last; setting one warns as PyTorch does."""
    found: list[object] = [0]

    def set_mode(mode: object) -> None:
        found.append(mode)
        warnings.warn(NOT_ALL, stacklevel=2)

    monkeypatch.setattr(torch.cuda, "get_sync_debug_mode", lambda: found[-1])
    monkeypatch.setattr(torch.cuda, "set_sync_debug_mode", set_mode)
    return found


def test_each_of_them_counts_also_where_warnings_are_ignored_or_errors(modes: list[object]) -> None:
    for action in ("ignore", "error", "default"):
        one = Synchronizing()
        with warnings.catch_warnings():
            warnings.simplefilter(action)  # type: ignore[arg-type]
            with one.counting():
                for _ in range(3):
                    warnings.warn(CALLED, stacklevel=1)
        assert one.count == 3
    assert modes == [0, *["warn", 0] * 3]


def test_nothing_is_shown_of_them_and_everything_of_others() -> None:
    one = Synchronizing()
    with warnings.catch_warnings(record=True) as shown:
        warnings.simplefilter("always")
        with one.counting():
            warnings.warn(CALLED, stacklevel=1)
            warnings.warn("a warning of the model's own", stacklevel=1)
    assert [str(warning.message) for warning in shown] == ["a warning of the model's own"]
    assert one.count == 1


def test_a_step_that_fails_leaves_the_mode_as_it_was(modes: list[object]) -> None:
    modes[:] = [2]
    with pytest.raises(ZeroDivisionError), Synchronizing().counting():
        1 / 0  # noqa: B018
    assert modes == [2, "warn", 2]


def test_before_it_counts_there_is_no_figure() -> None:
    assert Synchronizing().count is None
    quiet = Synchronizing()
    with quiet.counting():
        pass
    assert quiet.count == 0
