"""The forkserver: an interpreter that has torch loaded, has never touched CUDA, and forks a child on request.

Our own rather than multiprocessing's: several can run side by side, each with its own environment variables; each is
told sys.path; and it, its child and whatever that has started end when the study's process is killed.

Requests arrive on standard input, one JSON object a line: {"call": "module:function", "argument": text, "log": path},
and, if need be, "modules": [names] to be loaded beforehand.
Replies go to standard output: {"pid": n} when the child has started, {"status": n} when it has ended (negative: the
signal). One child at a time; end of input ends the server and its child, and so does SIGTERM.
"""

import contextlib
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import sys
from typing import Any, NoReturn

import psutil

from runner.process_end import end_group, end_with, outlive_parent

PR_SET_CHILD_SUBREAPER = 36
_children: list[int] = []  # the child at work, for the signal handler


def serve(parent: int, modules: list[str]) -> None:
    """Load the modules, then serve until the input ends."""
    end_with(parent)
    requests, replies = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)  # what modules print while they load must not look like a reply
    _preload(modules)
    wakeup, _signal_end = os.pipe()
    os.set_blocking(_signal_end, False)
    signal.set_wakeup_fd(_signal_end)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.signal(signal.SIGTERM, _terminate)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal's Ctrl-C is for the study's process
    _adopt_orphans()
    outlive_parent()  # killed at once it could not end what its child has started; the end of the input tells as well
    with os.fdopen(requests, "rb", buffering=0) as incoming:
        for line in incoming:
            request = json.loads(line)
            missing = [name for name in request.get("modules", []) if name not in sys.modules]
            if missing:
                _preload(missing)
            child = _fork(request, incoming.fileno(), replies)
            _reply(replies, {"pid": child})
            _reply(replies, {"status": _wait(child, incoming.fileno(), wakeup)})


def _preload(modules: list[str]) -> None:
    """Import what trials will need, and freeze all that is there.

    What cannot be imported will fail in the trial, with its own message.
    """
    for name in modules:
        try:
            importlib.import_module(name)
        except Exception as error:  # any import may fail in any way; the trial that needs it will say so
            print(f"{name} was not loaded beforehand: {error}", file=sys.stderr)
    gc.freeze()  # the children share these pages as long as nobody counts references on them


def _adopt_orphans() -> None:
    """Become the parent of what a child leaves behind: what went into a group of its own is found that way."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _terminate(*_: Any) -> None:
    for child in _children:
        end_group(child)
    _end_children()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    os.kill(os.getpid(), signal.SIGTERM)


def _fork(request: dict[str, Any], requests: int, replies: int) -> int:
    server = os.getpid()
    child = os.fork()
    if child == 0:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        os.close(requests)
        os.close(replies)
        os.setsid()  # a process group of its own: it can be ended with everything that it started
        run_child(request, server)
    _children[:] = [child]
    return child


def run_child(request: dict[str, Any], parent: int) -> NoReturn:
    """Be the child: output into the log, one call, then the end of the process."""
    status = 1
    try:
        end_with(parent)
        log = os.open(request["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(log, 1)
        os.dup2(log, 2)
        module, function = request["call"].split(":")
        status = getattr(importlib.import_module(module), function)(request["argument"])
    finally:
        with contextlib.suppress(Exception):  # the trial may have closed the streams, or have replaced them
            _print_exception()
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _print_exception() -> None:
    if sys.exc_info()[0] is not None:
        sys.excepthook(*sys.exc_info())


def _wait(child: int, requests: int, wakeup: int) -> int:
    """Wait for the child's end; if the input ends first, the study's process is gone: end the child and this one."""
    while True:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            _children.clear()
            with contextlib.suppress(ProcessLookupError):  # what it left behind
                os.killpg(child, signal.SIGKILL)
            _end_children()
            return os.waitstatus_to_exitcode(status)
        ready, _, _ = select.select([requests, wakeup], [], [])
        if wakeup in ready:
            os.read(wakeup, 512)
        elif not os.read(requests, 1):
            end_group(child)
            _end_children()
            os._exit(1)


def _end_children() -> None:
    """End every child of this process, until none is left: with each one its own become ours."""
    with contextlib.suppress(ChildProcessError):
        while True:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                for child in psutil.Process().children():
                    with contextlib.suppress(psutil.NoSuchProcess):
                        child.kill()
                os.waitpid(-1, 0)


def _reply(replies: int, message: dict[str, Any]) -> None:
    os.write(replies, json.dumps(message).encode() + b"\n")
