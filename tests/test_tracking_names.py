"""Names as MLflow takes them: every name gets one, no two names the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name, _validate_param_name

from runner.tracking import names


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=300), unique=True, max_size=8))
def test_any_name_becomes_one_that_is_taken_and_stays_its_own(given_names: list[str]) -> None:
    cleaned = [names.clean(name) for name in given_names]
    assert len(set(cleaned)) == len(given_names)
    for name in cleaned:
        assert len(name) <= names.NAME_LIMIT
        _validate_metric_name(name)  # type: ignore[no-untyped-call]
        _validate_param_name(name)  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("name", ["test/accuracy", "model.args.width", "step_ms", "a b-c"])
def test_a_good_name_stays_as_it_is(name: str) -> None:
    assert names.clean(name) == name


@pytest.mark.parametrize("name", ["", ".", "..", "../z", "a//b", "/a", "a/", "a/./b", "a:b", "a\n", "x" * 300])
def test_a_bad_name_is_marked(name: str) -> None:
    cleaned = names.clean(name)
    _validate_param_name(cleaned)  # type: ignore[no-untyped-call]
    assert cleaned != name
    assert names.clean(cleaned) != cleaned
