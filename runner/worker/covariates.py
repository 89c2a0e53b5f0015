"""The state of the device around the steps, from NVML: clocks, heat, power, throttling, other processes, energy.

What cannot be read is left out: a missing figure costs a line in the trial's log, never the trial. Nothing here may be
called inside a timed span.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import pynvml
import torch

from runner.record import Plain

Sample = dict[str, Plain]

# Bits of nvmlClocksEventReasons (nvml.h). Bit 0 is missing: an idle device is not held back by anything.
REASONS = {
    0x2: "applications_clocks_setting",
    0x4: "sw_power_cap",
    0x8: "hw_slowdown",
    0x10: "sync_boost",
    0x20: "sw_thermal_slowdown",
    0x40: "hw_thermal_slowdown",
    0x80: "hw_power_brake_slowdown",
    0x100: "display_clock_setting",
}


@dataclass(frozen=True)
class Card:
    """A device as NVML knows it."""

    handle: Any
    uuid: str


def compute_processes() -> dict[str, int]:
    """The number of compute processes on each card of this machine, by NVML's UUID.

    Ask before this process starts CUDA, and all of them are others': in a container NVML tells the host's process ids,
    and ours could not be found among them. Which card will be ours is not known then, so all are asked.
    """
    found: dict[str, int] = {}
    with suppress(Exception):  # a library boundary: without NVML find_card says so
        pynvml.nvmlInit()
        for index in range(pynvml.nvmlDeviceGetCount()):
            handle = pynvml.nvmlDeviceGetHandleByIndex(index)
            found[str(pynvml.nvmlDeviceGetUUID(handle))] = len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle))
    return found


def find_card(device: torch.device) -> Card | None:
    """NVML's card of a CUDA device, by its UUID: CUDA_VISIBLE_DEVICES may have renumbered the devices.

    None for another device, and, after a line in the log, where NVML is missing or does not know the device.
    """
    if device.type != "cuda":
        return None
    try:
        pynvml.nvmlInit()
        return _by_uuid(str(torch.cuda.get_device_properties(device).uuid))
    except Exception as error:  # a library boundary: a missing figure must not cost a trial
        print(f"no clocks, temperature, power or energy of {device}: NVML says {error}")
        return None


def _by_uuid(uuid: str) -> Card:
    """Torch leaves out what kind of UUID it is: a whole card's, or that of a part of one (MIG)."""
    try:
        name = f"GPU-{uuid}"
        return Card(pynvml.nvmlDeviceGetHandleByUUID(name), name)
    except pynvml.NVMLError:
        name = f"MIG-{uuid}"
        return Card(pynvml.nvmlDeviceGetHandleByUUID(name), name)


def before(card: Card | None, processes: dict[str, int]) -> Sample:
    """The state before the first step; `processes` as counted before CUDA was started."""
    found = sample(card)
    if card and card.uuid in processes:
        found["other_processes"] = processes[card.uuid]
    missing = [name for name in READERS if name not in found]
    if card and missing:
        print(f"NVML does not give {', '.join(missing)} of this device")
    return found


def sample(card: Card | None) -> Sample:
    """Everything that can be read now, by name; without a card the load of the host alone.

    sm_clock_mhz, memory_clock_mhz, temperature_c, power_w, utilization_percent as they are; throttle_reasons, comma
    separated; other_processes, this one left out; since the driver was loaded thermal_violation_ns,
    power_violation_ns, energy_mj; of the host its load_1min and how many cores it has.
    """
    found: Sample = {}
    for name, read in READERS.items() if card else ():
        with suppress(Exception):  # a library boundary: drivers and cards differ in what they know
            found[name] = read(card.handle)  # type: ignore[union-attr]
    with suppress(OSError):
        found |= {"load_1min": os.getloadavg()[0], "cores": os.cpu_count()}
    return found


def energy_reader(card: Card | None) -> Callable[[], float | None] | None:
    """A function that reads the joules the card has used so far; None where the card does not count them."""
    read = partial(_energy_j, card)
    return None if read() is None else read


def _energy_j(card: Card | None) -> float | None:
    try:
        return float(READERS["energy_mj"](card.handle)) / 1000  # type: ignore[union-attr]
    except Exception:  # a library boundary: no card, or one that does not count joules, costs the figure alone
        return None


def _throttle_reasons(handle: Any) -> str:
    try:
        bits = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    except (AttributeError, pynvml.NVMLError):  # an older library's or driver's name
        bits = pynvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)
    return ",".join(name for bit, name in REASONS.items() if bits & bit)


def _violation_ns(policy: int, handle: Any) -> int:
    return int(pynvml.nvmlDeviceGetViolationStatus(handle, policy).violationTime)


# In this order: what changes soonest after the last step comes first.
READERS: dict[str, Callable[[Any], Any]] = {
    "sm_clock_mhz": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM),
    "throttle_reasons": _throttle_reasons,
    "power_w": lambda handle: pynvml.nvmlDeviceGetPowerUsage(handle) / 1000,
    "temperature_c": lambda handle: pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU),
    "energy_mj": lambda handle: pynvml.nvmlDeviceGetTotalEnergyConsumption(handle),
    "thermal_violation_ns": partial(_violation_ns, pynvml.NVML_PERF_POLICY_THERMAL),
    "power_violation_ns": partial(_violation_ns, pynvml.NVML_PERF_POLICY_POWER),
    "memory_clock_mhz": lambda handle: pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_MEM),
    "utilization_percent": lambda handle: pynvml.nvmlDeviceGetUtilizationRates(handle).gpu,
    "other_processes": lambda handle: max(0, len(pynvml.nvmlDeviceGetComputeRunningProcesses(handle)) - 1),
}
