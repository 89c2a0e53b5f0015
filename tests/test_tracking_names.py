"""Names as MLflow takes them: every name gets one, no two names the same."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlflow.utils.validation import _validate_metric_name, _validate_param_name

from runner.tracking import names

ANY = st.text(st.characters(), max_size=300)  # also what is no text, as in names of files


@given(st.lists(ANY, unique=True, max_size=8))
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


@given(st.lists(ANY, unique=True, max_size=8))
def test_any_title_is_one_line_that_a_search_can_quote(given_names: list[str]) -> None:
    titles = [names.title(name) for name in given_names]
    assert len(set(titles)) == len(given_names)
    for title in titles:
        assert title.isprintable() and 0 < len(title) <= names.NAME_LIMIT
        assert not {"'", '"'} <= set(title)


@given(ANY)
def test_any_folder_stays_in_its_place(name: str) -> None:
    path = Path(names.folder(name))
    assert not path.is_absolute() and ".." not in path.parts
    assert all(0 < len(part.encode()) <= 255 for part in path.parts)


@given(ANY, st.integers(20, 100))
def test_any_text_can_be_stored(text: str, limit: int) -> None:
    for cut in (names.cut(text, limit), names.line(text, limit)):
        assert len(cut.encode().decode()) <= limit
        assert all(one.isprintable() or ord(one) > 0x9F or one in "\n\t" for one in cut)


@pytest.mark.parametrize(
    "name", ["resnet on digits", "it's", '"mine"', "mine-0123456789ab", "<script>", "models.mine.Net"]
)
def test_a_good_title_stays_as_it_is(name: str) -> None:
    assert names.title(name) == name
