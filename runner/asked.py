"""What study.json holds of the question: whether a study can be continued by it, and how it gets longer."""

from typing import Any


def unusable(asked: dict[str, Any]) -> list[str]:
    """The names of those entries without which a study cannot be continued, and that do not hold what they should."""
    looks, cells, rounds = asked.get("looks", [1]), asked.get("cells"), asked.get("rounds")
    usable = {
        "id": isinstance(asked.get("id"), str),
        "rounds": type(rounds) is int and rounds > 0,
        "cells": isinstance(cells, list) and all(isinstance(cell, str) for cell in cells),
        "looks": isinstance(looks, list) and all(type(look) is int for look in looks),
        "plan": isinstance(asked.get("plan", {}), dict),
    }
    return [name for name, fine in usable.items() if not fine]


def looks_of(asked: dict[str, Any]) -> list[int]:
    """The numbers of rounds at which was looked, the present one too; none where there is no study yet."""
    return list(asked.get("looks", [asked["rounds"]])) if asked else []


def recipe_of(asked: dict[str, Any]) -> str | None:
    """The recipe that is followed and its size, as the command line has them; None without one."""
    found = asked.get("recipe")
    if not isinstance(found, dict) or not isinstance(found.get("recipe"), dict):
        return None
    return f"recipe={found['recipe'].get('name')} recipe_size={found.get('size')}"


def longer(asked: dict[str, Any], rounds: int, looked: list[int]) -> dict[str, Any]:
    """What is asked with so many rounds, if these are more, where it was looked at after `looked` before."""
    if rounds <= asked["rounds"]:
        return asked
    return asked | {"rounds": rounds, "looks": sorted({*looked, rounds})}
