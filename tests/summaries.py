"""Summaries written by hand, for tests of the words that people read: what is in them is known."""

from typing import Any

from factory import make_cell

from runner.cell import labels

FIGURE = {"n": 5, "mean": 40.0, "sd": 0.1, "ci95": [39.9, 40.1], "sd_ci95": [0.06, 0.3], "min": 39.8, "max": 40.2}
RATIO = {
    "value": 1.25,
    "ci95": [1.24, 1.26],
    "verdict": "slower",
    "level": 0.95,
    "pairs": 5,
    "paired": True,
    "baseline": False,
    "rounds": None,
    "new_study": False,
    "why": None,
}
SPEED: dict[str, Any] = {
    "steps": 120,
    "shapes": 1,
    "step_ms": FIGURE,
    "p99_ms": None,
    "steps_s": 4.8,
    "samples_per_s": 6400.0,
    "evaluate_samples_per_s": None,
    "first_step_ms": 500.0,
    "first_step_cold": False,
    "cold_first_step_ms": None,
    "cold_trials": 0,
    "cold_by_time": 0,
    "new_shape_ms": None,
    "new_shapes_s": None,
    "compile_s": None,
    "autotune_s": None,
    "autotune_s_ci95": None,
    "autotune_cold": False,
    "autotune_seen": False,
    "break_even_steps": None,
    "plans": [],
    "groups": [],
    "spread": 1.01,
    "wait_ms": 0.1,
    "enqueue_ms": 12.0,
    "lag_ms": 0.25,
    "synchronizing": 0,
    "host_bound": False,
    "energy_j_per_sample": None,
    "peak_memory_bytes": 2_300_000_000,
    "peak_memory_kind": "allocated",
    "peak_reserved_bytes": 2_500_000_000,
    "left_out": [],
    "power_capped": 0,
    "crowded": 0,
    "expected_s": None,
    "ratio_to_baseline": RATIO,
}
REPRODUCIBILITY: dict[str, Any] = {
    "subject": "weights",
    "trials": 5,
    "interpreters": 1,
    "verdict": "bitwise",
    "unique_weights": 1,
    "seeds_varied": [],
    "poked": False,
    "same_start": True,
    "fewest_steps": None,
    "evaluated": True,
    "first_data_step": None,
    "first_loss_step": None,
    "weights_equal_after": None,
    "weights_differ_after": None,
    "same_evaluation": True,
    "repeats": 1,
    "within_process": None,
    "within_differing": 0,
    "bound_95": 0.527,
    "bound_95_new_start": None,
    "first_diverging_step": None,
    "sentence": "same start, same data, same losses, same weights, same evaluation",
    "disagreement": 0.0,
    "disagreement_ci95": None,
    "weight_l2": 0.0,
    "weight_l2_ci95": None,
    "unit_weight_l2": 0.0,
    "unit_weight_l2_ci95": None,
}


def make_summary(*cells: tuple[str, dict[str, Any]], settings: dict[str, Any] | None = None) -> dict[str, Any]:
    """A summary of one environment with CUDA from modes and what differs from SPEED; `settings` go into every cell."""
    made = [make_cell(mode, **(settings or {})) for mode, _ in cells]
    names = labels(made)
    subject = "outputs" if (settings or {}).get("phase") == "infer" else "weights"
    sentence = f"same start, same data, same losses, same {subject}, same evaluation"
    one = {"undecided": "planted"}
    answers = {"fastest": {"undecided": "planted first"}, "reproducible": one, "balanced": one}
    return {
        "schema": 1,
        "study": "planted",
        "plan": {"steps": 10_000, "runs": 1, "price_per_hour": None, "margin": 0.02},
        "looks": {"at": [20], "share": 1.0, "counting": 20, "next": None},
        "margin": 0.02,
        "most_rounds": 1000,
        "trials": {"asked": 5 * len(cells), "there": 5 * len(cells)},
        "partial": False,
        "damaged": [],
        "environments": [{"id": "e", "trials": 5, "device": "cuda", "gpu_name": "NVIDIA H200", "hip": None}],
        "cells": [
            {
                "cell": cell.id,
                "label": names[cell.id],
                "config": cell.config,
                "environment": "e",
                "n": 5,
                "failed": 0,
                "diverged": 0,
                "missing": 0,
                "unfinished": [],
                "flag_mismatch": [],
                "not_deterministic": {},
                "reproducibility": REPRODUCIBILITY | {"subject": subject, "sentence": sentence},
                "speed": SPEED | changes,
                "metrics": {"accuracy": {**FIGURE, "mean": 0.9, "sd": 0.0, "ci95": [0.9, 0.9]}},
                "traces": None,
                "gradients_differ_in": None,
                "kernels": None,
                "ensemble": None,
                "advice_above": [],
            }
            for cell, (_, changes) in zip(made, cells, strict=True)
        ],
        "recommendation": answers,
        "recommendations": [{"settings": "", "cells": [cell.id for cell in made], **answers}],
        "noise": [],
        "modes_noise": [],
        "changes": [],
        "doctor": [],
        "kernel_changes": [],
        "accuracy": [],
        "recipe": None,
    }
