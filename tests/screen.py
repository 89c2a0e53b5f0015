"""A command in a real pseudo-terminal, and what stands on its screen."""

import fcntl
import os
import pty
import select
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyte

WAIT_S = 600.0
REDRAWN = b"\r\x1b[2K"  # rich begins with it whenever it draws anew what stands below all lines


class Screen:
    """A terminal of so many columns in which a command works; `raw` is everything that the command has sent.

    What is sent may arrive in pieces, at any place. Until the command has ended the screen shows it up to the last
    REDRAWN only, and so never half a drawing.
    """

    def __init__(self, command: list[str], folder: Path, columns: int, lines: int, environ: dict[str, str]):
        self._screen = pyte.HistoryScreen(columns, lines, history=10_000)
        self._stream = pyte.ByteStream(self._screen)
        self.raw = b""
        self._shown = 0  # bytes
        self.code: int | None = None
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            try:
                for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
                    signal.signal(number, signal.SIG_DFL)  # as in a terminal, however the tests were started
                os.chdir(folder)
                os.execvpe(command[0], command, environ)
            finally:
                os._exit(127)
        self.resize(columns, lines)

    def resize(self, columns: int, lines: int) -> None:
        """Give the window another size, once what stands at its end fits into it.

        What was on its way for a wider window would break in a narrower one, as it does in a terminal.
        """
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        if columns < self._screen.columns:
            self.until(lambda: len(self.lines[-1]) <= columns)
        self._screen.resize(lines, columns)

    @property
    def lines(self) -> list[str]:
        """What stands in the window, without empty lines at its end."""
        lines = [line.rstrip() for line in self._screen.display]
        while lines and not lines[-1]:
            lines.pop()
        return lines

    @property
    def text(self) -> str:
        """Everything that was printed and not erased, what has left the window at its top too."""
        above = ["".join(row[x].data for x in range(self._screen.columns)) for row in self._screen.history.top]
        return "\n".join([*(line.rstrip() for line in above), *self.lines])

    @property
    def redrawn(self) -> int:
        """How often what stands on the screen has been drawn anew."""
        return self.raw.count(REDRAWN, 0, self._shown)

    @property
    def cursor_shown(self) -> bool:
        """Whether the cursor can be seen."""
        return not self._screen.cursor.hidden

    def until(self, condition: Callable[[], bool], seconds: float = WAIT_S) -> None:
        """Read what the command sends until something is so."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, self.text
            if not self._read():
                assert condition(), self.text
                return

    def press(self, keys: bytes) -> None:
        """Press keys; the byte 3 is Ctrl-C."""
        os.write(self._terminal, keys)

    def shut(self) -> None:
        """Close the window."""
        os.close(self._terminal)
        self._terminal = -1

    def ended(self) -> int:
        """Read all that is still sent; returns the exit code."""
        deadline = time.monotonic() + WAIT_S
        while self._terminal >= 0 and self._read():
            assert time.monotonic() < deadline, self.text
        if self.code is None:
            self.code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        return self.code

    def _read(self) -> bool:
        """Read for a moment; False at the end."""
        if not select.select([self._terminal], [], [], 0.1)[0]:
            return True
        try:
            content = os.read(self._terminal, 65536)
        except OSError:  # nobody has the other end any more
            content = b""
        self.raw += content
        self._show(self.raw.rfind(REDRAWN) if content else len(self.raw))
        return bool(content)

    def _show(self, end: int) -> None:
        if end > self._shown:
            self._stream.feed(self.raw[self._shown : end])
            self._shown = end


@contextmanager
def screen(command: list[str], folder: Path, columns: int = 80, lines: int = 24, **variables: str) -> Iterator[Screen]:
    """A command in a terminal; variables are added to the environment. It is killed if it is left over."""
    kept = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS")}
    one = Screen(command, folder, columns, lines, {**kept, "TERM": "xterm-256color", **variables})
    try:
        yield one
    finally:
        if one.code is None:
            os.kill(one.pid, signal.SIGKILL)
            one.ended()
