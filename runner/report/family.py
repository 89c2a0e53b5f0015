"""Families: the cells of a summary that differ in the mode alone, which is what a reader compares."""

from typing import Any

from runner.jsonfile import canonical

MODE = ("deterministic", "benchmark", "benchmark_limit")  # a limit cannot act without benchmark


def families(summary: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """The cells in the study's order, grouped by environment and by everything in their settings but the mode."""
    groups: dict[str, list[dict[str, Any]]] = {}
    for cell in summary["cells"]:
        groups.setdefault(canonical([cell["environment"], _less_the_mode(cell["config"])]), []).append(cell)
    return list(groups.values())


def _less_the_mode(config: dict[str, Any]) -> dict[str, Any]:
    return config | {"cudnn": {key: value for key, value in config["cudnn"].items() if key not in MODE}}


def settings_of(family: list[dict[str, Any]]) -> list[str]:
    """What the labels of all cells of a family say after the mode: ["precision=bf16"]."""
    first, *others = [cell["label"].split(", ") for cell in family]
    return [part for part in first[1:] if all(part in other for other in others)]


def on_cuda(summary: dict[str, Any]) -> dict[str, bool]:
    """For each environment's id whether CUDA was in use there."""
    return {environment["id"]: environment["device"] == "cuda" for environment in summary["environments"]}
