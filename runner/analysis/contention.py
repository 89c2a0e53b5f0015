"""Contention: which trials' speed does not count, because the device was throttled or shared. Never by its value.

What was seen of the device before and after a trial's steps decides, and nothing else:

- Heat or hardware throttled the clock: a reason of HEAT was set, or the time that the driver counts as lost to heat
  grew by more than LEAST_LOST of the steps' time.
- Other processes computed on the device. `exclusive=false` alone proves nothing: others must have been seen.

A power cap does not count. It is the normal state of a card at full load, and how much of it there is depends on the
mode: leaving it out would leave out the heavier modes. It is counted beside the figures, see `power_capped`. So is
a busy host, to whose load the study itself adds: see `crowded`.

A probe looks into the steps while they are timed: no trial of such a cell has a speed that counts, and PROBED is the
one reason for all of them.

A trial left out here is left out of speed figures and of pairs. Reproducibility is judged over all finished trials.
"""

from collections.abc import Iterable

from runner.record import Record

HEAT = ("hw_slowdown", "sw_thermal_slowdown", "hw_thermal_slowdown", "hw_power_brake_slowdown")
POWER_CAP = "sw_power_cap"
# The driver samples: a share this small lies within what it counts on a cool card, and shifts a median by nothing.
LEAST_LOST = 0.01
# A load of one a core is a study's own where its trials use every core.
CROWDED = 1.5
PROBED = "a probe changes timing"


def timed(records: Iterable[Record]) -> list[Record]:
    """Those trials that finished and whose speed counts."""
    return [record for record in records if record.complete and not doubts(record)]


def doubts(record: Record) -> list[str]:
    """In words, why the speed of a trial does not count; empty where it does or where nothing could be read."""
    return [*throttled(record), *_shared(record)] if record.covariates else []


def power_capped(record: Record) -> bool:
    """Whether the power limit held the clock down before or after the steps, which is noted and nothing more."""
    return any(POWER_CAP in _reasons(record, moment) for moment in record.covariates)


def crowded(record: Record) -> bool:
    """Whether, before the steps, far more wanted to run on the host than it has cores; False where it was not read."""
    load, cores = (_number(record, "before", name) for name in ("load_1min", "cores"))
    return load is not None and cores is not None and load > CROWDED * cores


def throttled(record: Record) -> list[str]:
    """In words, what showed that heat or hardware held the clock down."""
    seen = {reason for moment in record.covariates for reason in _reasons(record, moment)}
    reasons = [reason for reason in HEAT if reason in seen]
    found = [f"the clock was throttled by heat or hardware ({', '.join(reasons)})"] if reasons else []
    lost_s, steps_s = _lost_s(record), record.speed.steps_s if record.speed else None
    if lost_s is not None and steps_s and lost_s > LEAST_LOST * steps_s:
        found.append(f"heat held the clock down for {lost_s:.3g} s of {steps_s:.3g} s of steps")
    return found


def _reasons(record: Record, moment: str) -> list[str]:
    return str(record.covariates[moment].get("throttle_reasons", "")).split(",")


def _lost_s(record: Record) -> float | None:
    """By how much the time that the driver counts as lost to heat grew, None where it cannot be read."""
    before, after = (_number(record, moment, "thermal_violation_ns") for moment in ("before", "after"))
    return None if before is None or after is None else (after - before) / 1e9


def _shared(record: Record) -> list[str]:
    others = {moment: _number(record, moment, "other_processes") or 0 for moment in ("before", "after")}
    return [
        f"{count:.0f} other process{'es' if count > 1 else ''} on the device {moment} its steps"
        for moment, count in others.items()
        if count > 0
    ]


def _number(record: Record, moment: str, name: str) -> float | None:
    value = record.covariates.get(moment, {}).get(name)
    return float(value) if isinstance(value, (int, float)) else None
