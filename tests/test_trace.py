"""The file of a trace: everything comes back, and every kind of damage is named with the file."""

import gzip
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from runner.errors import StudyError
from runner.operation import Operation, Repeated, Value
from runner.trace import Trace

CONVOLUTION = Operation(
    index=0,
    step=1,
    part="forward",
    kind="computed",
    name="aten.convolution.default",
    module="layer1.0.conv1",
    line="net.py:12",
    scalars="input=#0, weight=#1, stride=[1, 1]",
    inputs=(Value("ab" * 16, (8, 3, 32, 32), "float32", None), Value("cd" * 16, (64, 3, 3, 3), "float32", None)),
    outputs=(Value("ef" * 16, (8, 64, 32, 32), "float32", None, "nan"),),
    repeated=Repeated(False, 3, 2.4e-7),
)
DROPOUT = Operation(
    index=1,
    step=2,
    part="optimizer",
    kind="random",
    name="aten.bernoulli_.float",
    module="",
    line=None,
    scalars='self=#0, note="é\\n"',
    inputs=(Value(None, (), "bfloat16", 0),),
    outputs=(Value("01" * 16, (), "bfloat16"),),
    writes=(0,),
    random="23" * 16,
)
TRACE = Trace("ops", "0123456789ab", 3, 2, (CONVOLUTION, DROPOUT), note="the model is compiled")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A trace of two operations."""
    TRACE.write(tmp_path / "ops.jsonl.gz")
    return tmp_path / "ops.jsonl.gz"


def test_what_was_written_comes_back(path: Path) -> None:
    assert Trace.read(path) == TRACE


def test_a_trace_without_operations_comes_back(tmp_path: Path) -> None:
    empty = Trace("modules", "0123456789ab", 0, 1, ())
    empty.write(tmp_path / "ops.jsonl.gz")
    assert Trace.read(tmp_path / "ops.jsonl.gz") == empty


def test_equal_traces_are_equal_files(path: Path, tmp_path: Path) -> None:
    TRACE.write(tmp_path / "again.gz")
    assert path.read_bytes() == (tmp_path / "again.gz").read_bytes()


def test_the_file_is_compressed_json_lines(path: Path) -> None:
    header, first, second, count = gzip.decompress(path.read_bytes()).decode().splitlines()
    assert header.startswith('{"schema":1,"level":"ops"')
    assert first.startswith('[1,"forward","computed","aten.convolution.default"')
    assert second.startswith("[2,")
    assert count == '{"operations":2}'


Damage = Callable[[list[str]], list[str]]
DAMAGES: dict[str, tuple[Damage, str]] = {
    "the last line is missing": (lambda lines: lines[:-1], r"ends after 1 operations"),
    "an operation is missing": (lambda lines: [*lines[:1], *lines[2:]], r"ends after 1 operations with .*2"),
    "only the header is there": (lambda lines: lines[:1], r"ends after 0 operations"),
    "nothing is there": (lambda _: [], r"no header"),
    "a line is no JSON": (lambda lines: [lines[0], lines[1][:40], *lines[2:]], r"operation 0 cannot be read"),
    "a line is something else": (lambda lines: [*lines[:2], "[1]", lines[3]], r"operation 1 cannot be read"),
    "a value is something else": (
        lambda lines: [*lines[:2], lines[2].replace("[[", "[[[["), lines[3]],
        r"operation 1 ",
    ),
    "the header is no object": (lambda lines: ["[]", *lines[1:]], r"no header"),
    "the header lacks a field": (lambda lines: [lines[0].replace("steps", "stops"), *lines[1:]], r"its header holds"),
    "a field is of another type": (
        lambda lines: [lines[0].replace('"number":3', '"number":"3"'), *lines[1:]],
        r"header",
    ),
    "the level is unknown": (
        lambda lines: [lines[0].replace('"level":"ops"', '"level":"kernels"'), *lines[1:]],
        r"level kernels, ops or modules is due",
    ),
    "a number is true": (lambda lines: [lines[0].replace('"number":3', '"number":true'), *lines[1:]], r"its header"),
    "a step is none of the header's": (
        lambda lines: [lines[0].replace('"steps":2', '"steps":1'), *lines[1:]],
        r"counts 1 steps, step 2 is there",
    ),
    **{
        f"{name} is of another type": (
            lambda lines, old=old, new=new: [*(line.replace(old, new) for line in lines[:3]), lines[3]],
            rf"operation {index} cannot be read",
        )
        for name, index, old, new in (
            ("a name", 0, '"aten.convolution.default"', "null"),
            ("a module", 0, '"layer1.0.conv1"', "7"),
            ("a line", 0, '"net.py:12"', "[]"),
            ("the scalars", 0, '"input=#0, weight=#1, stride=[1, 1]"', "5"),
            ("a dtype", 0, '"float32",null', "32,null"),
            ("a digest", 0, '"' + "ab" * 16 + '"', "1.5"),
            ("a size", 0, "[64,3,3,3]", '[64,"3",3,3]'),
            ("a source", 1, '"bfloat16",0', '"bfloat16","0"'),
            ("a repeat", 0, "[false,3,", '["no",3,'),
            ("a place that is written", 1, ",[0],", ",[77],"),
            ("a state", 1, '"' + "23" * 16 + '"', "23"),
        )
    },
    "it is of another version": (lambda lines: [lines[0].replace('"schema":1', '"schema":9'), *lines[1:]], r"schema 9"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_named_with_the_file(path: Path, name: str) -> None:
    damage, message = DAMAGES[name]
    lines = damage(gzip.decompress(path.read_bytes()).decode().splitlines())
    path.write_bytes(gzip.compress("".join(f"{line}\n" for line in lines).encode()))
    with pytest.raises(StudyError, match=message) as raised:
        Trace.read(path)
    assert str(path) in str(raised.value)


@pytest.mark.parametrize("keep", [0, 5, 30, 0.5, -1])
def test_a_truncated_file_is_named(path: Path, keep: float) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(keep * len(content)) if isinstance(keep, float) else keep])
    with pytest.raises(StudyError, match=r"ops\.jsonl\.gz.*(cannot be read|no header)"):
        Trace.read(path)


def test_a_flipped_bit_is_found(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 4
    path.write_bytes(content)
    with pytest.raises(StudyError, match=r"ops\.jsonl\.gz"):
        Trace.read(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match=r"ops\.jsonl\.gz: cannot be read"):
        Trace.read(tmp_path / "ops.jsonl.gz")


def test_place_covers_everything_but_bits_and_numbers() -> None:
    other = replace(CONVOLUTION, scalars="stride=[2, 2]", outputs=(replace(CONVOLUTION.outputs[0], digest="0" * 32),))
    assert other.place == CONVOLUTION.place
    assert replace(CONVOLUTION, line="net.py:13").place != CONVOLUTION.place
    assert replace(CONVOLUTION, outputs=(Value(None, (8, 64, 32), "float32"),)).place != CONVOLUTION.place
