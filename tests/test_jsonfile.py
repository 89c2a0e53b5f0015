"""JSON files: equal content is equal bytes, and no reader sees half of one."""

import json
import math
import os
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.errors import StudyError
from runner.jsonfile import canonical, of_fields, plain, read_fields, read_json, write_bytes, write_json

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
values = st.recursive(leaves, lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=8)


@given(values)
def test_what_has_no_place_in_json_becomes_null(value: Any) -> None:
    assert json.loads(canonical(value)) == plain(value)


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity_become_null_at_any_depth(number: float) -> None:
    assert plain({"a": [number, (1.5, {"b": number})]}) == {"a": [None, [1.5, {"b": None}]]}


def test_written_is_read_again(tmp_path: Path) -> None:
    value = {"schema": 1, "ä": [1, 0.1, 2**70, None, True, "line\nbreak"], "empty": {}}
    write_json(tmp_path / "file.json", value)
    assert read_json(tmp_path / "file.json", 1) == value


def test_equal_content_is_equal_bytes(tmp_path: Path) -> None:
    write_json(tmp_path / "one.json", {"a": 1, "b": {"c": 2, "d": 3}})
    write_json(tmp_path / "other.json", {"b": {"d": 3, "c": 2}, "a": 1})
    assert (tmp_path / "one.json").read_bytes() == (tmp_path / "other.json").read_bytes()


@pytest.mark.parametrize(
    "content", [b"", b'{"schema": 1', b"[1]", b"null", b'{"schema": 2}', b'{"a": 1}', b'{"schema": 1, "a": "\xff"}']
)
def test_damage_is_an_error_that_names_the_file(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(StudyError, match=str(path)):
        read_json(path, 1)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b'{"schema": 1, "a": {"b": 1, "b": 1}}', "cannot be read (an object has the key 'b' twice)"),
        (
            b'\xef\xbb\xbf{"schema": 1}',
            "cannot be read (a byte order mark comes first; save it as UTF-8 without one)",
        ),
        (b"null", "holds null, should be an object"),
        (b"[1]", "holds [1], should be an object"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_in_plain_words(content: bytes, said: str, tmp_path: Path) -> None:
    path = tmp_path / "file.json"
    path.write_bytes(content)
    with pytest.raises(StudyError) as caught:
        read_json(path, 1)
    assert str(caught.value) == f"{path}: {said}; restore it or set it aside"


def test_who_cannot_write_is_told_the_name_of_the_file_itself(tmp_path: Path) -> None:
    (tmp_path / "file.json").mkdir()
    for path in (tmp_path / "none" / "file.json", tmp_path / "file.json", tmp_path / ("x" * 300)):
        with pytest.raises(OSError, match=r"No such file|Is a directory|too long") as caught:
            write_bytes(path, b"x")
        assert (caught.value.filename, caught.value.filename2) == (str(path), None)


def test_a_missing_file_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=str(tmp_path / "none.json")):
        read_json(tmp_path / "none.json", 1)


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file.json"
    write_json(path, {"old": 1})
    before = path.read_bytes()

    def full(handle: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space left"):
        write_json(path, {"new": 2})
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_what_is_no_json_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        write_json(tmp_path / "file.json", {"a": {1, 2}})
    assert list(tmp_path.iterdir()) == []


def test_a_reader_sees_the_old_or_the_new_content_never_a_part(tmp_path: Path) -> None:
    path, contents = tmp_path / "file", [bytes([letter]) * 200_000 for letter in b"ab"]
    write_bytes(path, contents[0])
    done = threading.Event()

    def write() -> None:
        for number in range(40):
            write_bytes(path, contents[number % 2])
        done.set()

    writer = threading.Thread(target=write)
    writer.start()
    while not done.is_set():
        assert path.read_bytes() in contents
    writer.join()


def test_a_file_can_be_read_by_others(tmp_path: Path) -> None:
    write_bytes(tmp_path / "file", b"x")
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


@dataclass(frozen=True)
class Parcel:
    """Something to read."""

    name: str
    grams: float
    tags: list[str]
    broken: bool = False


WHOLE = {"name": "one", "grams": 1.5, "tags": ["a"], "broken": False}


def test_fields_make_the_dataclass() -> None:
    assert of_fields(Parcel, WHOLE) == Parcel("one", 1.5, ["a"])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ([], "holds [], should be an object"),
        ({"name": "one"}, "lacks broken, grams, tags"),
        (WHOLE | {"colour": 1}, "has unknown colour"),
        (WHOLE | {"grams": "2"}, "grams holds '2', should be a valid number"),
        (WHOLE | {"tags": ["a", 1]}, "tags.1 holds 1, should be a valid string"),
        (WHOLE | {"tags": ["a", {"x": "y" * 99}]}, f"tags.1 holds {{'x': '{'y' * 53} ..., should be a valid string"),
    ],
)
def test_what_does_not_fit_is_named(found: Any, said: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the whole message is compared
        of_fields(Parcel, found)
    assert str(caught.value) == said
    with pytest.raises(ValueError, match=r"^parcel"):
        of_fields(Parcel, found, "parcel")


def test_a_file_that_does_not_fit_is_named_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "parcel.json"
    write_json(path, {"schema": 1, **WHOLE, "broken": 0})
    with pytest.raises(StudyError) as caught:
        read_fields(path, 1, lambda fields: of_fields(Parcel, fields), "send it back")
    assert str(caught.value) == f"{path}: broken holds 0, should be a valid boolean; send it back"
