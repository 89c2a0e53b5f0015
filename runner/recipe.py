"""A recipe: what was published, and what a study that measures it again keeps of it in study.json."""

from dataclasses import dataclass, field
from math import isfinite
from typing import Any

from runner.errors import ConfigError
from runner.jsonfile import of_fields
from runner.mode import MODES

SIZES = ("full", "reduced", "smoke")


def sized(full: Any, reduced: Any, smoke: Any, *, _root_: Any) -> Any:
    """The resolver `${sized:FULL,REDUCED,SMOKE}`: the value for the recipe_size of the config that it stands in."""
    return dict(zip(SIZES, (full, reduced, smoke), strict=True)).get(_root_.get("recipe_size"), full)


@dataclass(frozen=True)
class Quantity:
    """What a published figure can be of: its unit, the words it can be instead of a number, and what it takes.

    two_cells: it compares `cell` with `over`. least_trials: with fewer, nothing is said about the published value.
    needs_cuda: without it the flags cannot act, and nothing is said either. no_effect: the number that says that the
        two cells do not differ.
    """

    unit: str
    words: tuple[str, ...] = ()
    two_cells: bool = False
    least_trials: int = 3
    needs_cuda: bool = True
    no_effect: float | None = None


RATIO = Quantity("ratio", two_cells=True, no_effect=1.0)
OVERHEAD = Quantity("%", two_cells=True, no_effect=0.0)

# The sd of a figure over so many trials has a relative standard error of 24 %; over fewer it tells next to nothing.
LEAST_FOR_SD = 10

SPEEDS = ("faster", "slower", "equivalent")
YES_NO = ("yes", "no")
VERDICTS = ("bitwise", "metric-only", "loss-only", "differs")

QUANTITIES = {
    "step_time_ratio": RATIO,
    "step_time_overhead": OVERHEAD,
    "training_time_ratio": RATIO,
    "autotune": Quantity("s"),
    "first_step": Quantity("ms"),
    "accuracy_mean": Quantity("%"),
    "accuracy_sd": Quantity("%", least_trials=LEAST_FOR_SD),
    "accuracy_range": Quantity("%"),
    "cross_entropy_sd": Quantity("nats", least_trials=LEAST_FOR_SD),
    "disagreement": Quantity("%"),
    "disagreement_with": Quantity("%", two_cells=True),
    "weight_distance": Quantity("1"),
    "unit_weight_distance": Quantity("1"),
    "ensemble_gain": Quantity("%"),
    "independent_errors_sd": Quantity("%"),
    "pearson_correlation": Quantity("1"),
    "spearman_correlation": Quantity("1"),
    "within_process": Quantity("words", VERDICTS),
    "distinct_weights": Quantity("of n", ("1 of n", "some of n", "n of n")),
    "verdict": Quantity("words", VERDICTS),
    "call_time": Quantity("ms"),
    "loop_cold": Quantity("s"),
    "loop_warm": Quantity("s"),
    "loop_done": Quantity("s"),
    "loop_cold_ratio": RATIO,
    "loop_cold_overhead": OVERHEAD,
    "loop_warm_overhead": OVERHEAD,
    "loop_done_ratio": RATIO,
    "loop_verdict": Quantity("words", SPEEDS, two_cells=True),
    "step_verdict": Quantity("words", SPEEDS, two_cells=True),
    "first_call": Quantity("s"),
    "new_shape_call": Quantity("ms"),
    "tunes_shapes": Quantity("words", YES_NO, two_cells=True),
    "repeats": Quantity("words", ("bitwise", "differs")),
    "distinct_results": Quantity("of n", ("1 of n", "some of n", "n of n")),
    "ulp_difference": Quantity("ulp"),
    "relative_difference": Quantity("1"),
    "float64_error": Quantity("1"),
    "float64_error_ratio": RATIO,
    "ran_cudnn": Quantity("words", YES_NO, least_trials=1),
    "same_kernels": Quantity("words", YES_NO),
    "same_bits": Quantity("words", YES_NO, two_cells=True, least_trials=2),
    "default_mode": Quantity("mode", tuple(MODES.values()), least_trials=1, needs_cuda=False),
    "most_exact": Quantity("mode", tuple(MODES.values())),
    "fastest": Quantity("mode", tuple(MODES.values())),
    "slowest": Quantity("mode", tuple(MODES.values())),
}


@dataclass(frozen=True, kw_only=True)
class Published:
    """One published figure or statement, and where a study finds its own.

    claim: what the source says, in words. cell: what selects a cell, {key or group: value or name}; over: the same for
        the cell that it is compared with. `fastest` and `slowest` are among all cells selected.
    value: a number, [low, high] or one of the quantity's words; None if and only if it was not `read` at the source.
    uncertainty: that the source states, in the same unit; for a statement in words, what counts as such here.
    trials: that the figure is over. ddof: of an sd, 0 divides by n and 1 by n - 1. sizes: the sizes of the recipe at
        which it does what this figure was measured with.
    statement: the letter of the source's statement that the row is about, where it makes many.
    """

    quantity: str = field(metadata={"one_of": tuple(QUANTITIES)})
    claim: str
    cell: dict[str, Any]
    over: dict[str, Any] = field(default_factory=dict)
    value: Any
    unit: str
    source: str
    read: bool
    uncertainty: float | None = field(default=None, metadata={"least": 0.0})
    trials: int | None = field(default=None, metadata={"least": 1})
    ddof: int = field(default=1, metadata={"one_of": (0, 1)})
    sizes: list[str] = field(default_factory=lambda: ["full"], metadata={"one_of": SIZES})
    statement: str | None = None


_ADDED = {"statement": None}  # what the rows of older studies do not have


def check_row(row: Published, prefix: str) -> None:
    """Refuse a row that does not fit its quantity, or that carries a number nobody read. Raises ConfigError."""
    quantity, value = QUANTITIES[row.quantity], row.value
    if row.unit != quantity.unit:
        raise ConfigError(f"{prefix}unit", row.unit, f"{row.quantity} has the unit {quantity.unit}")
    if bool(row.over) != quantity.two_cells:
        due = "compares two cells: say which the other is" if quantity.two_cells else "is of one cell: leave it out"
        raise ConfigError(f"{prefix}over", row.over, f"{row.quantity} {due}")
    if not row.read:
        if value is not None:
            raise ConfigError(f"{prefix}value", value, "was not read at its source (read: false); set it to null")
    elif quantity.words and value not in quantity.words:
        raise ConfigError(f"{prefix}value", value, f"choose one of {', '.join(quantity.words)}")
    elif not quantity.words and not _is_number_or_range(value):
        raise ConfigError(f"{prefix}value", value, "a number or [low, high] is needed, or read: false and null")


def _is_number_or_range(value: Any) -> bool:
    numbers = value if isinstance(value, list) and len(value) == 2 else [value]
    return all(type(one) in (int, float) and isfinite(one) for one in numbers) and numbers == sorted(numbers)


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """What was published: where, what was measured, on what hardware and software, and how we measure it again."""

    name: str
    title: str
    citation: str
    measured: str
    measured_on: str
    protocol: str
    published: list[Published]


@dataclass(frozen=True, kw_only=True)
class Replication:
    """A recipe as one study carries it out: at a size, with so many rounds, and with what was changed in it."""

    recipe: Recipe
    size: str
    trials: int | None
    changed: list[str]

    @classmethod
    def of(cls, found: Any) -> "Replication":
        """What study.json holds of it. Raises ValueError naming the field and what it holds."""
        recipe = found.get("recipe") if isinstance(found, dict) else None
        if not isinstance(recipe, dict) or not isinstance(recipe.get("published"), list):
            raise ValueError("recipe holds no published rows")
        rows = [
            of_fields(Published, _ADDED | row if isinstance(row, dict) else row, f"recipe.published.{index}")
            for index, row in enumerate(recipe["published"])
        ]
        whole = of_fields(Recipe, recipe | {"published": rows}, "recipe.recipe")
        return of_fields(cls, found | {"recipe": whole}, "recipe")
