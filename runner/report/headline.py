"""What a study is about, in one line."""

from typing import Any


def headline(summary: dict[str, Any]) -> str:
    """Model, dataset, precision and device of the study, every value that occurs."""
    configs = [cell["config"] for cell in summary["cells"]]
    model, dataset, precision = (_named(configs, key) for key in ("model", "dataset", "precision"))
    devices = dict.fromkeys(_device(environment) for environment in summary["environments"])
    return f"{model} on {dataset}, precision {precision}, {' and '.join(devices) or 'device unknown'}"


def _named(configs: list[dict[str, Any]], key: str) -> str:
    values = [config.get(key) for config in configs]
    names = dict.fromkeys(str(value.get("name")) if isinstance(value, dict) else str(value) for value in values)
    return " and ".join(names)


def _device(environment: dict[str, Any]) -> str:
    return str(environment["gpu_name"] or environment["cpu"] or environment["device"])
