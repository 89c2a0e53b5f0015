"""An output that is not read costs a second and keeps every word; one that is gone costs nothing."""

import io
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from runner.report import outlet
from runner.report.outlet import Outlet, print_lines

LINE = "x" * 99 + "\n"


@pytest.fixture(autouse=True)
def short_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outlet, "PATIENCE_S", 0.1)


def read_all(reader: int, found: list[bytes]) -> None:
    while content := os.read(reader, 65536):
        found.append(content)


def test_a_full_pipe_holds_nobody_up_and_loses_nothing() -> None:
    reader, writer = os.pipe()
    with open(writer, "w") as stream:
        out = Outlet(stream)
        for number in range(5000):  # half a megabyte into 64 KB
            out.write(f"{number} {LINE}")
            out.flush()
        assert out.behind
        found: list[bytes] = []
        reading = threading.Thread(target=read_all, args=(reader, found))
        reading.start()
        deadline = time.monotonic() + 600
        while out.behind:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        out.write("the end\n")
        out.flush()
    reading.join()
    os.close(reader)
    assert b"".join(found).decode() == "".join(f"{number} {LINE}" for number in range(5000)) + "the end\n"


def test_what_others_printed_before_stays_before() -> None:
    reader, writer = os.pipe()
    with open(writer, "w") as stream:
        out = Outlet(stream)
        for number in range(3):
            print(f"other {number}", file=stream)
            out.write(f"own {number}\n")
            out.flush()
    assert os.read(reader, 1000) == b"other 0\nown 0\nother 1\nown 1\nother 2\nown 2\n"
    os.close(reader)


def test_a_reader_that_is_gone_and_a_full_disk_cost_nothing() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    for place in (writer, "/dev/full"):
        with open(place, "w") as stream:
            out = Outlet(stream)
            for _ in range(3):
                out.write(LINE)
                out.flush()
            assert not out.behind
            print("what others print is dropped too", file=stream)


def test_characters_that_the_encoding_lacks_and_files_in_memory(tmp_path: Path) -> None:
    with open(tmp_path / "out", "w", encoding="ascii") as stream:
        out = Outlet(stream)
        out.write("a\u4e2d\udc80b")
        out.flush()
        assert (out.encoding, out.isatty(), out.fileno()) == ("ascii", False, stream.fileno())
    assert (tmp_path / "out").read_text() == "a??b"
    memory = io.StringIO()
    out = Outlet(memory)
    out.write("kept")
    out.flush()
    assert memory.getvalue() == "kept"


def test_an_answer_is_printed_in_whatever_encoding_the_terminal_has(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for encoding, shown in (("ascii", "b?, ?"), ("utf-8", "b\u00fc, ?")):
        with open(tmp_path / "out", "w", encoding=encoding) as stream:
            monkeypatch.setattr(sys, "stdout", stream)
            print_lines(["b\u00fc, \udcfc"])
        assert (tmp_path / "out").read_text(encoding) == f"{shown}\n"


SLOW = """
import sys
from runner.report.terminal import Terminal
console = Terminal(soft_wrap=True)
for number in range(3000):
    console.print(f"{number} " + "x" * 100)
open(sys.argv[1], "w").close()
"""


def test_a_process_goes_on_beside_a_full_pipe_and_ends_when_all_is_read(tmp_path: Path) -> None:
    marker = tmp_path / "worked"
    process = subprocess.Popen([sys.executable, "-c", SLOW, str(marker)], stdout=subprocess.PIPE)
    deadline = time.monotonic() + 600
    while not marker.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert process.poll() is None
    said, _ = process.communicate(timeout=600)
    assert process.returncode == 0
    assert said.decode() == "".join(f"{number} {'x' * 100}\n" for number in range(3000))
