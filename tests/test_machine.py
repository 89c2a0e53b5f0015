"""What is known of the machine before the first trial."""

import os
import sys
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from composed import planted_config
from conftest import TESTS

from runner import isolate
from runner.child import ForkServer
from runner.errors import StudyError
from runner.machine import cuda_devices, physical_cores


def test_a_child_sees_the_devices_that_torch_sees() -> None:
    found = cuda_devices(isolate.server(planted_config(), str(TESTS)))
    assert found == tuple(torch.cuda.get_device_name(index) for index in range(torch.cuda.device_count()))


def test_a_torch_that_cannot_be_used_is_an_error_with_its_own_words() -> None:
    class Broken:
        def call(self, request: dict[str, str], timeout: float | None) -> None:
            Path(request["log"]).write_text("OSError: libcudart.so.12: cannot open shared object file\n")

    with pytest.raises(StudyError, match=r"torch cannot be used here: OSError: libcudart\.so\.12"):
        cuda_devices(cast(ForkServer, Broken()))


def with_processors(monkeypatch: pytest.MonkeyPatch, siblings: dict[int, str | None]) -> None:
    """Pretend that these processors are usable; each has these siblings, or says nothing of them."""

    def read_text(path: Path, *arguments: Any, **keywords: Any) -> str:
        found = siblings[int(path.parts[-3].removeprefix("cpu"))]
        if found is None:
            raise FileNotFoundError(path)
        return f"{found}\n"

    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(siblings), raising=False)
    monkeypatch.setattr(Path, "read_text", read_text)


@pytest.mark.parametrize(
    ("siblings", "cores"),
    [
        ({0: "0,2", 1: "1,3", 2: "0,2", 3: "1,3"}, 2),
        ({0: "0-1", 1: "0-1"}, 1),
        ({5: "5", 7: "7", 9: "9"}, 3),
        ({2: "0,2"}, 1),
        ({0: None, 1: None}, 2),
    ],
)
def test_two_threads_of_a_core_count_once(
    siblings: dict[int, str | None], cores: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_processors(monkeypatch, siblings)
    assert physical_cores() == cores


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux knows an affinity")
def test_no_more_cores_than_this_process_may_use() -> None:
    assert 1 <= physical_cores() <= len(os.sched_getaffinity(0))
