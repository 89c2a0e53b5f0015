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
    return " and ".join(dict.fromkeys(map(_name, values)))


def _name(group: Any) -> str:
    """What a user's own model or data set is called by, else the name of the setting."""
    return str(group.get("_target_") or group.get("name")) if isinstance(group, dict) else str(group)


def _device(environment: dict[str, Any]) -> str:
    return str(environment["gpu_name"] or environment["cpu"] or environment["device"])
