"""Finding what a user names."""

import sys

import pytest

from runner.errors import Refusal
from runner.target import blaming, call, locate, source_digest

KEY = "model._target_"


def describe(width: int, depth: int = 2) -> str:
    return f"{width}x{depth}"


def test_a_function_is_called_with_its_arguments():
    assert call(KEY, "test_target.describe", {"width": 3}) == "3x2"


@pytest.mark.parametrize("args", [{}, {"widht": 3}, {"width": 3, "more": 1}])
def test_arguments_that_do_not_fit_are_refused_with_the_signature(args):
    with pytest.raises(Refusal, match=rf"{KEY}=test_target\.describe: .*it takes \(width: int, depth: int = 2\)"):
        call(KEY, "test_target.describe", args)


def test_a_builtin_without_a_known_signature_is_called():
    assert call(KEY, "builtins.int", {}) == 0


def test_an_error_inside_the_call_comes_through():
    with pytest.raises(ZeroDivisionError):
        call(KEY, "test_target.fails", {})


def fails() -> None:
    1 / 0  # noqa: B018


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("name", "give it as package.module.name"),
        ("nowhere.at.all", "there is no module nowhere$"),
        ("json.nowhere.load", r"there is no module json\.nowhere$"),
        ("json.laod", "json has no function or class laod"),
        ("json.__name__", "json has no function or class __name__"),
    ],
)
def test_what_is_not_there_is_named(target, message):
    with pytest.raises(Refusal, match=message):
        locate(KEY, target)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import a_missing_package", "brought needs the module a_missing_package, which is missing"),
        ("from json import no_such_name", "brought cannot be imported: cannot import name 'no_such_name'"),
        ("def broken(:", r"brought cannot be imported: .*line 1"),
        ("1 / 0", "brought cannot be imported: ZeroDivisionError: division by zero"),
        ("raise SystemExit(3)", "brought cannot be imported: SystemExit: 3"),
    ],
)
def test_what_a_users_module_lacks_is_named(tmp_path, monkeypatch, source, message):
    (tmp_path / "brought.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "brought", raising=False)
    with pytest.raises(Refusal, match=message):
        locate(KEY, "brought.make")


def test_a_users_module_behind_another_of_its_name_is_named(tmp_path, monkeypatch):
    (tmp_path / "json.py").write_text("def make(): pass")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    with pytest.raises(Refusal, match=rf"json has no function or class make; .*{tmp_path}/json\.py: rename yours"):
        locate(KEY, "json.make")


def test_whose_code_it_was_is_told_in_one_line() -> None:
    with pytest.raises(Refusal) as told, blaming("their loss"):
        raise KeyError("first\nsecond")
    assert str(told.value) == "their loss: KeyError: 'first\\nsecond'"
    with pytest.raises(Refusal) as told, blaming("their loss"):
        raise ValueError("\nfirst\nsecond")
    assert str(told.value) == "their loss: ValueError: first"
    with pytest.raises(Refusal) as told, blaming("their loss"):
        raise SystemExit("enough")
    assert str(told.value) == "their loss: SystemExit: enough"


@pytest.mark.parametrize("error", [Refusal("known"), MemoryError()])
def test_what_is_no_fault_of_a_users_code_passes(error: BaseException) -> None:
    with pytest.raises(type(error)) as passed, blaming("their loss"):
        raise error
    assert passed.value is error


def test_a_ctrl_c_that_a_users_code_raises_is_its_own() -> None:
    with pytest.raises(Refusal, match="their loss: KeyboardInterrupt: planted"), blaming("their loss"):
        raise KeyboardInterrupt("planted")


def test_a_change_in_what_a_user_brought_changes_its_digest(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "changing.py").write_text("def make(): pass")
    config = {"model": {"name": "custom", "_target_": "changing.make"}, "dataset": {"name": "digits"}}
    before = source_digest(config)
    assert before == source_digest(config)
    (tmp_path / "changing.py").write_text("def make(): return 1")
    assert source_digest(config) != before
    (tmp_path / "passing.py").write_text("from defining import Net")
    (tmp_path / "defining.py").write_text("import based\nclass Net(based.Base): pass")
    (tmp_path / "based.py").write_text("class Base: pass")
    config["model"]["_target_"] = "passing.Net"
    passed_on = source_digest(config)
    for name in ("passing", "defining", "based"):
        with (tmp_path / f"{name}.py").open("a") as file:
            file.write("\n# changed")
        changed = source_digest(config)
        assert changed != passed_on, name
        passed_on = changed
    assert source_digest({"model": {"name": "resnet"}, "dataset": {"name": "digits"}}) is None
