"""Children of a forkserver and new interpreters, as real processes: how they end is what is reported, and all end."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import TESTS
from processes import alive, gone, within

from runner.child import Ended, ForkServer, call_in_new_interpreter, fork_server
from runner.errors import StudyError

Call = Callable[..., Ended]
KINDS = ["forkserver", "spawn"]


@pytest.fixture(scope="module")
def server() -> ForkServer:
    """A forkserver without torch: it starts at once."""
    return ForkServer(dict(os.environ), ["called"], str(TESTS))


@pytest.fixture(params=KINDS)
def call(request: pytest.FixtureRequest, server: ForkServer, tmp_path: Path) -> Call:
    """Have a child call a function of `called`, of either kind; its log is log.txt."""

    def of_server(function: str, argument: object = "", timeout: float | None = 30) -> Ended:
        return server.call(requested(function, argument, tmp_path), timeout)

    def of_interpreter(function: str, argument: object = "", timeout: float | None = 30) -> Ended:
        return call_in_new_interpreter(dict(os.environ), requested(function, argument, tmp_path), str(TESTS), timeout)

    return of_server if request.param == "forkserver" else of_interpreter


def requested(function: str, argument: object, folder: Path) -> dict[str, str]:
    return {"call": f"called:{function}", "argument": str(argument), "log": str(folder / "log.txt")}


def described(path: Path) -> dict[str, Any]:
    """What a child saw of itself."""
    return dict(json.loads(path.read_text()))


@pytest.mark.parametrize("status", [0, 1, 7, 255])
def test_the_exit_status_comes_through(status: int, call: Call) -> None:
    for function in ("status", "end_at_once"):
        ended = call(function, status)
        assert (ended.status, ended.timed_out) == (status, False)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSEGV, signal.SIGTERM])
def test_death_by_a_signal_is_a_negative_status(number: signal.Signals, call: Call) -> None:
    ended = call("kill_itself", int(number))
    assert (ended.status, ended.timed_out) == (-number, False)


def test_an_exception_is_status_1_and_lies_in_the_log(call: Call, tmp_path: Path) -> None:
    assert call("fail", "planted").status == 1
    log = (tmp_path / "log.txt").read_text()
    assert "Traceback" in log
    assert log.rstrip().endswith("ValueError: planted")


def test_a_function_that_is_not_there_is_status_1_and_a_message(call: Call, tmp_path: Path) -> None:
    assert call("nothing_of_this_name").status == 1
    assert "nothing_of_this_name" in (tmp_path / "log.txt").read_text()


def test_everything_a_child_prints_lies_in_its_log(
    call: Call, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    call("say", "hello")
    log = (tmp_path / "log.txt").read_text()
    assert sorted(log.splitlines()) == ["hello to file 1", "hello to stderr", "hello to stdout"]
    assert capfd.readouterr() == ("", "")


def test_a_child_that_dies_is_seen_before_its_time_is_over(server: ForkServer, tmp_path: Path) -> None:
    ended = server.call(requested("kill_itself", 9, tmp_path), timeout=600)
    assert (ended.status, ended.timed_out) == (-9, False)


def test_a_timeout_ends_the_child_and_what_it_started(call: Call, tmp_path: Path) -> None:
    ended = call("hang", tmp_path / "pids", timeout=3)
    _, child, grandchild = json.loads((tmp_path / "pids").read_text())
    assert (ended.pid, ended.status, ended.timed_out) == (child, -signal.SIGKILL, True)
    assert gone([child, grandchild])


def test_a_forkserver_goes_on_after_a_timeout(server: ForkServer, tmp_path: Path) -> None:
    server.call(requested("hang", tmp_path / "pids", tmp_path), timeout=0)
    assert server.call(requested("status", 5, tmp_path), timeout=30).status == 5


def test_a_forkserver_ends_with_an_interrupt_and_another_takes_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = tuple(os.environ.items()), ("called",), str(tmp_path)
    server = fork_server(*needs)

    def interrupted(timeout: float | None) -> bool:
        assert within(30, (tmp_path / "pids").exists)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(server, "_ready", interrupted)
        with pytest.raises(KeyboardInterrupt):
            server.call(requested("hang", tmp_path / "pids", tmp_path), timeout=30)
    assert gone(json.loads((tmp_path / "pids").read_text()))
    assert not server.alive
    assert fork_server(*needs).call(requested("status", 5, tmp_path), timeout=30).status == 5


def test_every_call_is_a_process_of_its_own_that_leads_its_group(call: Call, tmp_path: Path) -> None:
    ended = [call("describe", tmp_path / name) for name in "ab"]
    seen = [described(tmp_path / name) for name in "ab"]
    assert [one["pid"] for one in seen] == [one["group"] for one in seen] == [one.pid for one in ended]
    assert len({os.getpid(), *(one.pid for one in ended)}) == 3


def test_a_child_sees_the_folder_and_the_import_path_of_its_parent(call: Call, tmp_path: Path) -> None:
    call("describe", tmp_path / "seen")
    seen = described(tmp_path / "seen")
    assert seen["folder"] == str(TESTS)
    assert str(TESTS) in seen["path"]


def test_a_child_has_the_variables_that_it_was_given(tmp_path: Path) -> None:
    environ = {**os.environ, "PLANTED": "yes"}
    fork_server(tuple(environ.items()), (), str(tmp_path)).call(requested("describe", tmp_path / "a", tmp_path), 30)
    call_in_new_interpreter(environ, requested("describe", tmp_path / "b", tmp_path), str(tmp_path), 30)
    for name in "ab":
        assert described(tmp_path / name)["environ"]["PLANTED"] == "yes"
        assert described(tmp_path / name)["folder"] == str(tmp_path)
    assert "PLANTED" not in os.environ


def test_equal_needs_share_a_forkserver_and_others_do_not(tmp_path: Path) -> None:
    environ = tuple(os.environ.items())
    one = fork_server(environ, (), str(tmp_path))
    assert fork_server(environ, (), str(tmp_path)) is one
    assert fork_server((*environ, ("PLANTED", "yes")), (), str(tmp_path)) is not one


def test_what_modules_print_while_they_load_is_no_reply(tmp_path: Path) -> None:
    server = ForkServer(dict(os.environ), ["noisy", "called"], str(TESTS))
    for status in (3, 4):
        assert server.call(requested("status", status, tmp_path), timeout=30).status == status
    server.call(requested("describe", tmp_path / "seen", tmp_path), timeout=30)
    assert "noisy" in described(tmp_path / "seen")["modules"]


def test_a_module_that_cannot_be_loaded_beforehand_does_not_stop_the_others(tmp_path: Path) -> None:
    server = ForkServer(dict(os.environ), ["not_there", "called"], str(TESTS))
    server.call(requested("describe", tmp_path / "seen", tmp_path), timeout=30)
    assert "called" in described(tmp_path / "seen")["modules"]


def test_a_forkserver_that_cannot_start_is_an_error_with_its_own_words(tmp_path: Path) -> None:
    server = ForkServer({**os.environ, "PYTHONHOME": "/nowhere"}, [], str(TESTS))
    with pytest.raises(StudyError, match=r"(?s)ended with status 1: .*encodings"):
        server.call(requested("status", 0, tmp_path), timeout=30)


def test_a_forkserver_that_was_killed_is_an_error(tmp_path: Path) -> None:
    server = ForkServer(dict(os.environ), [], str(TESTS))
    server.call(requested("describe", tmp_path / "seen", tmp_path), timeout=30)
    os.kill(described(tmp_path / "seen")["parent"], signal.SIGKILL)
    with pytest.raises(StudyError, match="status -9"):
        server.call(requested("status", 0, tmp_path), timeout=30)


PARENT = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path[:0] = [{relative!r}, {tests!r}]
from runner.child import ForkServer, call_in_new_interpreter
os.chdir("/")
request = {request!r}
if {kind!r} == "spawn":
    call_in_new_interpreter(dict(os.environ), request, {folder!r}, None)
else:
    ForkServer(dict(os.environ), {modules!r}, {folder!r}).call(request, None)
"""


@pytest.fixture
def parent(tmp_path: Path) -> Iterator[Callable[..., "subprocess.Popen[bytes]"]]:
    """Start a process that starts a child which calls a function; it is ended with the test."""
    started = []

    def start(kind: str, function: str, argument: object, *modules: str) -> "subprocess.Popen[bytes]":
        code = PARENT.format(
            relative="beside", tests=str(TESTS), request=requested(function, argument, tmp_path), kind=kind,
            modules=[*modules], folder=str(tmp_path),
        )  # fmt: skip
        environ = {**os.environ, "SLOW_TO_LOAD": str(tmp_path / "loading")}
        process = subprocess.Popen([sys.executable, "-c", code], cwd=tmp_path, env=environ, stderr=subprocess.DEVNULL)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.mark.parametrize("kind", KINDS)
def test_no_process_outlives_a_parent_that_is_killed(
    kind: str, parent: Callable[..., "subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    process = parent(kind, "hang", tmp_path / "pids")
    assert within(30, (tmp_path / "pids").exists)
    server, child, grandchild = json.loads((tmp_path / "pids").read_text())
    assert alive(server)
    assert alive(child)
    process.kill()
    assert gone([process.pid, server, child, grandchild])


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_what_a_child_started_does_not_outlive_a_forkserver_that_is_ended(
    number: signal.Signals, parent: Callable[..., "subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    process = parent("forkserver", "hang", tmp_path / "pids")
    assert within(30, (tmp_path / "pids").exists)
    pids = json.loads((tmp_path / "pids").read_text())
    os.kill(pids[0], number)
    assert gone(pids)
    assert process.wait(10) == 1  # the error of the parent, which was not asked to catch it


def test_a_forkserver_that_is_still_loading_does_not_outlive_its_parent(
    parent: Callable[..., "subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    process = parent("forkserver", "status", 0, "slow_to_load")
    assert within(30, lambda: (tmp_path / "loading").exists() and (tmp_path / "loading").read_text() != "")
    server = int((tmp_path / "loading").read_text())
    assert alive(server)
    process.kill()
    assert gone([server])


@pytest.mark.parametrize("kind", KINDS)
def test_an_interrupt_ends_the_child_and_what_it_started(
    kind: str, parent: Callable[..., "subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    process = parent(kind, "hang", tmp_path / "pids")
    assert within(30, (tmp_path / "pids").exists)
    pids = json.loads((tmp_path / "pids").read_text())
    process.send_signal(signal.SIGINT)
    assert process.wait(10) == -signal.SIGINT
    assert gone([pids[1], pids[2]])


@pytest.mark.parametrize("kind", KINDS)
def test_a_relative_import_path_means_the_folder_where_the_parent_began(
    kind: str, parent: Callable[..., "subprocess.Popen[bytes]"], tmp_path: Path
) -> None:
    assert parent(kind, "describe", tmp_path / "seen").wait(30) == 0
    assert described(tmp_path / "seen")["path"][0] == str(tmp_path / "beside")
