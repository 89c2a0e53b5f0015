"""The name of a study's run: what is asked, short enough for a list."""

from collections.abc import Iterator
from typing import Any

from runner.cell import Cell, flatten, varying
from runner.mode import mode_text
from runner.tracking.names import cut

LIMIT, VALUES_NAMED = 200, 3


def question(cells: list[Cell], rounds: int) -> str:
    """As in "4 modes, 5 rounds, precision fp32 and bf16: resnet on digits": a list shows the beginning of a name."""
    subject = " on ".join(_named([cell.config[group] for cell in cells]) for group in ("model", "dataset"))
    asked = [_modes(cells), f"{rounds} round{'' if rounds == 1 else 's'}", *_others(cells)]
    return cut(f"{', '.join(asked)}: {subject}", LIMIT)


def _named(groups: list[dict[str, Any]]) -> str:
    return _listed([str(group.get("_target_") or group["name"]) for group in groups], "values")


def _modes(cells: list[Cell]) -> str:
    return _listed([mode_text(cell.config["cudnn"]) for cell in cells], "modes", named=1)


def _others(cells: list[Cell]) -> Iterator[str]:
    """What else varies, a group that varies as a whole by its name alone."""
    keys, flats = varying(cells), [flatten(cell.config) for cell in cells]
    whole = {key.removesuffix(".name") for key in keys if key.endswith(".name")}
    for key in keys:
        group = key.split(".")[0]
        if group not in whole or (key == f"{group}.name" and group not in ("model", "dataset")):
            yield f"{key.removesuffix('.name')} {_listed([str(flat.get(key)) for flat in flats], 'values')}"


def _listed(texts: list[str], kind: str, named: int = VALUES_NAMED) -> str:
    different = list(dict.fromkeys(texts))
    return " and ".join(different) if len(different) <= named else f"{len(different)} {kind}"
