"""Which cells of two sides stand for each other."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from runner.analysis.match import Matched, match
from runner.certificate import Facts

MODEL = {"model": {"name": "resnet", "depth": 18}, "cudnn": {"deterministic": True, "benchmark": False}}


def cell(label: str, environment: dict[str, Any] | None = None, **settings: Any) -> Facts:
    config = MODEL | {"threads": 1, "seeds": {"base": 0}} | settings
    return Facts(label, config, environment or {}, 3, 3, [], {}, [])


def names(found: Matched) -> tuple[list[str], str, str]:
    """Pairs as "a-b", cells alone and ambiguous ones."""
    places = (found.alone, found.ambiguous)
    alone, ambiguous = (" ".join(one.label for side in sides for one in side) for sides in places)
    return [f"{one.label}-{other.label}" for one, other in found.pairs], alone, ambiguous


def test_the_same_cells_are_paired_before_nearer_ones_are_looked_for() -> None:
    here = [cell("a1"), cell("a2", threads=2), cell("a4", threads=4)]
    there = [cell("b2", threads=2), cell("b4", threads=4), cell("b8", threads=8)]
    assert names(match(here, there)) == (["a1-b8", "a2-b2", "a4-b4"], "", "")


def test_what_a_machine_decides_weighs_less_than_what_was_asked() -> None:
    here = [cell("a", threads=1)]
    there = [cell("seed", seeds={"base": 1}), cell("machine", threads=8, device="cuda", isolation="spawn")]
    assert names(match(here, there))[0] == ["a-machine"]


def test_of_the_same_cells_the_one_in_the_same_environment_is_nearer() -> None:
    there = [cell("old", {"torch": "1"}), cell("new", {"torch": "2"})]
    assert names(match([cell("a", {"torch": "2"})], there)) == (["a-new"], "old", "")


def test_cells_of_other_models_and_modes_are_not_paired_unless_they_are_alone() -> None:
    other = cell("b", model={"name": "lstm"})
    mode = cell("c", cudnn={"deterministic": False, "benchmark": False})
    assert names(match([cell("a")], [other])) == (["a-b"], "", "")
    assert names(match([cell("a")], [other, mode])) == ([], "a b c", "")


def test_what_fits_several_is_not_guessed() -> None:
    there = [cell("b2", threads=2), cell("b4", threads=4)]
    assert names(match([cell("a")], there)) == ([], "", "a b2 b4")
    assert names(match([], there)) == ([], "b2 b4", "")


@settings(max_examples=60, deadline=None)
@given(*[st.lists(st.tuples(st.integers(1, 3), st.integers(0, 2)), max_size=5, unique=True) for _ in range(2)])
def test_every_cell_ends_in_one_place_and_order_does_not_matter(
    here: list[tuple[int, int]], there: list[tuple[int, int]]
) -> None:
    sides = [
        [cell(f"{side}{key}", threads=key[0], seeds={"base": key[1]}) for key in keys]
        for side, keys in (("a", here), ("b", there))
    ]
    found = match(*sides)
    placed = [one.label for pair in found.pairs for one in pair]
    placed += [one.label for sides in (*found.alone, *found.ambiguous) for one in sides]
    assert sorted(placed) == sorted(one.label for side in sides for one in side)
    again = match(*(list(reversed(side)) for side in sides))
    assert sorted(names(again)[0]) == sorted(names(found)[0])
    assert {f"a{key}-b{key}" for key in set(here) & set(there)} <= set(names(found)[0])
