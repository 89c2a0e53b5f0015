"""The state of the device, from a library whose answers are set by hand."""

import os
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from composed import planted_cell
from one_trial import one_trial

from runner.worker import covariates
from runner.worker.covariates import READERS, Card, before, compute_processes, energy_reader, find_card, sample

CUDA = torch.device("cuda:1")


class NvmlError(Exception):
    """The library's own error."""


class Nvml:
    """Two cards; a card's handle is its UUID. `broken` names functions that raise, `missing` what is not there."""

    NVMLError = NvmlError
    NVML_CLOCK_SM, NVML_CLOCK_MEM, NVML_TEMPERATURE_GPU = 1, 2, 0
    NVML_PERF_POLICY_POWER, NVML_PERF_POLICY_THERMAL = 0, 1

    def __init__(self) -> None:
        self.processes = {"GPU-a": 0, "GPU-b": 3}
        self.reasons, self.joules = 0, 5.0
        self.broken: set[str] = set()
        self.missing: set[str] = set()

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("nvml"):
            if name in self.broken:
                return self._raise
            if name in self.missing:
                raise AttributeError(name)
        return object.__getattribute__(self, name)

    def _raise(self, *_: Any) -> None:
        raise NvmlError("Not Supported")

    def nvmlInit(self) -> None:  # noqa: N802
        pass

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802
        return len(self.processes)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:  # noqa: N802
        return list(self.processes)[index]

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:  # noqa: N802
        if uuid not in self.processes:
            raise NvmlError("Not Found")
        return uuid

    def nvmlDeviceGetUUID(self, handle: str) -> str:  # noqa: N802
        return handle

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[int]:  # noqa: N802
        return [0] * self.processes[handle]

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:  # noqa: N802
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetTemperature(self, handle: str, kind: int) -> int:  # noqa: N802
        return {0: 61}[kind]

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:  # noqa: N802
        return 412_500  # milliwatts

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(gpu=98, memory=40)

    def nvmlDeviceGetCurrentClocksEventReasons(self, handle: str) -> int:  # noqa: N802
        return self.reasons

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:  # noqa: N802
        return self.reasons

    def nvmlDeviceGetViolationStatus(self, handle: str, policy: int) -> SimpleNamespace:  # noqa: N802
        return SimpleNamespace(violationTime={1: 7_000, 0: 9_000}[policy], referenceTime=1)

    def nvmlDeviceGetTotalEnergyConsumption(self, handle: str) -> int:  # noqa: N802
        return int(self.joules * 1000)


@pytest.fixture
def nvml(monkeypatch: pytest.MonkeyPatch) -> Nvml:
    library = Nvml()
    monkeypatch.setattr(covariates, "pynvml", library)
    return library


@pytest.fixture
def called_b(monkeypatch: pytest.MonkeyPatch) -> None:
    """Torch has a device whose UUID is b."""
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda device: SimpleNamespace(uuid="b"))


CARD = Card("GPU-b", "GPU-b")
FIGURES = {
    "sm_clock_mhz": 1980,
    "memory_clock_mhz": 3201,
    "temperature_c": 61,
    "power_w": 412.5,
    "utilization_percent": 98,
    "throttle_reasons": "",
    "other_processes": 2,
    "thermal_violation_ns": 7_000,
    "power_violation_ns": 9_000,
    "energy_mj": 5_000,
}


def without_load(found: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in found.items() if name not in ("load_1min", "cores")}


def test_every_figure_has_its_name_and_unit(nvml: Nvml) -> None:
    assert without_load(sample(CARD)) == FIGURES


def test_a_cpu_has_the_load_of_its_host_and_nothing_else(capsys: pytest.CaptureFixture[str]) -> None:
    assert find_card(torch.device("cpu")) is None
    found = before(None, {})
    assert list(found) == ["load_1min", "cores"]
    assert found["load_1min"] >= 0  # type: ignore[operator]
    assert found["cores"] == os.cpu_count()
    assert capsys.readouterr().out == ""


CALLS = {
    "nvmlDeviceGetClockInfo": {"sm_clock_mhz", "memory_clock_mhz"},
    "nvmlDeviceGetTemperature": {"temperature_c"},
    "nvmlDeviceGetPowerUsage": {"power_w"},
    "nvmlDeviceGetUtilizationRates": {"utilization_percent"},
    "nvmlDeviceGetComputeRunningProcesses": {"other_processes"},
    "nvmlDeviceGetViolationStatus": {"thermal_violation_ns", "power_violation_ns"},
    "nvmlDeviceGetTotalEnergyConsumption": {"energy_mj"},
}


@pytest.mark.parametrize("how", ["broken", "missing"])
@pytest.mark.parametrize("call", CALLS)
def test_what_cannot_be_read_is_left_out_alone_and_named_once(
    call: str, how: str, nvml: Nvml, capsys: pytest.CaptureFixture[str]
) -> None:
    getattr(nvml, how).add(call)
    expected = {name: value for name, value in FIGURES.items() if name not in CALLS[call]}
    assert without_load(before(CARD, {})) == without_load(sample(CARD)) == expected
    (line,) = capsys.readouterr().out.splitlines()
    assert all((name in line) == (name in CALLS[call]) for name in FIGURES)


def test_the_figures_that_can_be_lost_are_all_of_them() -> None:
    assert set.union(*CALLS.values()) | {"throttle_reasons"} == set(READERS) == set(FIGURES)


@pytest.mark.parametrize("how", ["broken", "missing"])
def test_an_older_driver_or_library_gives_its_reasons_under_another_name(how: str, nvml: Nvml) -> None:
    nvml.reasons = 0x4
    getattr(nvml, how).add("nvmlDeviceGetCurrentClocksEventReasons")
    assert sample(CARD)["throttle_reasons"] == "sw_power_cap"
    getattr(nvml, how).add("nvmlDeviceGetCurrentClocksThrottleReasons")
    assert "throttle_reasons" not in sample(CARD)


@pytest.mark.parametrize(
    ("bits", "words"),
    [
        (0x1, ""),  # idle
        (0x8, "hw_slowdown"),
        (0x20, "sw_thermal_slowdown"),
        (0x40 | 0x8 | 0x1, "hw_slowdown,hw_thermal_slowdown"),
        (0x80 | 0x10, "sync_boost,hw_power_brake_slowdown"),
    ],
)
def test_reasons_are_words(bits: int, words: str, nvml: Nvml) -> None:
    nvml.reasons = bits
    assert sample(CARD)["throttle_reasons"] == words


def test_the_bits_are_the_librarys_own() -> None:
    import pynvml

    bits = {name: bit for bit, name in covariates.REASONS.items()}
    assert bits["sw_power_cap"] == pynvml.nvmlClocksThrottleReasonSwPowerCap
    assert bits["hw_slowdown"] == pynvml.nvmlClocksThrottleReasonHwSlowdown
    assert bits["sync_boost"] == pynvml.nvmlClocksThrottleReasonSyncBoost
    assert bits["sw_thermal_slowdown"] == pynvml.nvmlClocksThrottleReasonSwThermalSlowdown
    assert bits["hw_thermal_slowdown"] == pynvml.nvmlClocksThrottleReasonHwThermalSlowdown
    assert bits["hw_power_brake_slowdown"] == pynvml.nvmlClocksThrottleReasonHwPowerBrakeSlowdown
    assert 0x1 not in covariates.REASONS and pynvml.nvmlClocksThrottleReasonGpuIdle == 0x1


@pytest.mark.usefixtures("called_b")
def test_the_card_is_found_by_torchs_uuid_and_not_by_its_place(nvml: Nvml) -> None:
    assert find_card(CUDA) == CARD
    nvml.processes = {"GPU-a": 0, "MIG-b": 1}
    assert find_card(CUDA) == Card("MIG-b", "MIG-b")


@pytest.mark.usefixtures("called_b")
@pytest.mark.parametrize("spoil", [lambda nvml: nvml.broken.add("nvmlInit"), lambda nvml: nvml.processes.clear()])
def test_a_card_that_the_library_does_not_know_costs_one_line(
    spoil: Callable[[Nvml], None], nvml: Nvml, capsys: pytest.CaptureFixture[str]
) -> None:
    spoil(nvml)
    assert compute_processes() == {}
    card = find_card(CUDA)
    assert (card, energy_reader(card), list(before(card, {}))) == (None, None, ["load_1min", "cores"])
    assert len(capsys.readouterr().out.splitlines()) == 1


def test_before_others_are_all_that_were_counted_and_after_all_but_this_one(nvml: Nvml) -> None:
    counted = compute_processes()
    assert counted == {"GPU-a": 0, "GPU-b": 3}
    nvml.processes["GPU-b"] = 4  # this process has started CUDA
    assert before(CARD, counted)["other_processes"] == 3
    assert before(CARD, {"GPU-a": 7})["other_processes"] == sample(CARD)["other_processes"] == 3
    nvml.processes["GPU-b"] = 0  # hidden by a container
    assert sample(CARD)["other_processes"] == 0


def test_energy_is_read_in_joules_as_long_as_it_can_be(nvml: Nvml) -> None:
    read = energy_reader(CARD)
    assert read is not None
    nvml.joules = 7.5
    assert read() == 7.5
    nvml.broken.add("nvmlDeviceGetTotalEnergyConsumption")
    assert read() is None
    assert energy_reader(CARD) is None


def test_a_trial_that_fails_in_a_step_leaves_the_state_before_and_after(tmp_path: Path) -> None:
    record, _ = one_trial(planted_cell("Fails", "+model.args.step=3", "+model.args.how=raise"), tmp_path)
    assert record.outcome == "failed"
    assert {moment: list(found) for moment, found in record.covariates.items()} == {
        "before": ["cores", "load_1min"],
        "after": ["cores", "load_1min"],
    }
