"""What is known of a machine without torch."""

import pytest

from runner.worker.host import CPU_SWITCHES, host


def test_switches_of_the_processor_are_named_with_their_values(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in CPU_SWITCHES:
        monkeypatch.delenv(name, raising=False)
    assert host()["cpu_switches"] is None
    monkeypatch.setenv("MKL_CBWR", "COMPATIBLE")
    monkeypatch.setenv("ATEN_CPU_CAPABILITY", "default")
    assert host()["cpu_switches"] == "ATEN_CPU_CAPABILITY=default MKL_CBWR=COMPATIBLE"
