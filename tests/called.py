"""What tests have a child do: each function takes the request's argument and returns the exit status."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path


def status(argument: str) -> int:
    """Return this number."""
    return int(argument)


def end_at_once(argument: str) -> int:
    """End with this exit status, with nothing said."""
    os._exit(int(argument))


def kill_itself(argument: str) -> int:
    """Die by this signal."""
    os.kill(os.getpid(), int(argument))
    time.sleep(60)
    return 0


def fail(argument: str) -> int:
    """Raise an error with this message."""
    raise ValueError(argument)


def say(argument: str) -> int:
    """Print to both streams, and past Python's buffers."""
    print(f"{argument} to stdout")
    print(f"{argument} to stderr", file=sys.stderr)
    os.write(1, f"{argument} to file 1\n".encode())
    return 0


def hang(argument: str) -> int:
    """Leave the pids of the parent, of this process and of a process started by it in this file, and stay."""
    grandchild = subprocess.Popen(["sleep", "600"])
    aside = Path(f"{argument}.aside")
    aside.write_text(json.dumps([os.getppid(), os.getpid(), grandchild.pid]))
    aside.replace(argument)
    time.sleep(600)
    return 0


def describe(argument: str) -> int:
    """Leave what this process sees of itself in this file."""
    seen = {
        "path": sys.path,
        "folder": os.getcwd(),
        "environ": dict(os.environ),
        "group": os.getpgrp(),
        "pid": os.getpid(),
        "parent": os.getppid(),
        "modules": list(sys.modules),
    }
    Path(argument).write_text(json.dumps(seen))
    return 0


def apply_flags(argument: str) -> int:
    """Set the switches for the settings in this file; leave what was asked, and what is read before and after."""
    from runner.worker import flags

    config = json.loads(Path(argument).read_text())
    before = flags.read()
    asked = flags.apply(config)
    Path(argument).write_text(json.dumps({"before": before, "asked": asked, "after": flags.read()}))
    return 0
