"""Standard output that holds nobody up: a reader that stopped reading costs a second, one that is gone nothing."""

import os
import sys
import threading
from collections.abc import Iterable
from typing import TextIO

PATIENCE_S = 1.0


class Outlet:
    """A text file over another one. What is written goes out in the background, in order.

    `flush` waits for that, at most PATIENCE_S, and not again before the reader has caught up. Until then the rest stays
    in memory: the process ends when all of it was taken. Once the file is closed or its disk full, the rest is dropped.
    A character that the encoding lacks goes out as "?".
    """

    def __init__(self, stream: TextIO):
        self._stream = stream
        self._handle = _handle(stream)
        self._waiting: list[str] = []
        self._lock = threading.Lock()
        self._writer: threading.Thread | None = None
        self.behind = False

    @property
    def encoding(self) -> str:
        """The encoding of the file itself."""
        return self._stream.encoding or "utf-8"

    def isatty(self) -> bool:
        """Whether the file itself is a terminal."""
        return self._stream.isatty()

    def fileno(self) -> int:
        """The number of the file itself."""
        return self._stream.fileno()

    def write(self, text: str) -> int:
        """Have the text written."""
        if self._handle is None:
            return self._stream.write(text)
        with self._lock:
            self._waiting.append(text)
            if self._writer is None:
                writer = threading.Thread(target=self._drain, args=(self._handle,))
                writer.start()
                self._writer = writer
        return len(text)

    def flush(self) -> None:
        """Wait until all is written, for a while."""
        writer = self._writer
        if writer and not self.behind:
            writer.join(PATIENCE_S)
            with self._lock:
                self.behind = self._writer is writer
        elif self._handle is None:
            self._stream.flush()

    def _drain(self, handle: int) -> None:
        while content := self._taken():
            try:
                self._stream.flush()  # what others have printed before
                while content:
                    content = content[os.write(handle, content) :]
            except (OSError, ValueError):  # ValueError: Python's own file was closed
                _drop_from_now_on(handle)

    def _taken(self) -> bytes:
        with self._lock:
            content = "".join(self._waiting).encode(self.encoding, errors="replace")
            self._waiting.clear()
            if not content:
                self._writer, self.behind = None, False
        return content


def print_lines(lines: Iterable[str]) -> None:
    """Print an answer. To a reader that is gone, as `head` is, the rest is not said: the answer stays the same.

    A character that the encoding lacks goes out as "?".
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # there is no file where Python was started without
    try:
        for line in lines:
            print(line.encode(encoding, errors="replace").decode(encoding))
        print(end="", flush=True)
    except OSError:
        _drop_from_now_on(sys.stdout.fileno())


def _handle(stream: TextIO) -> int | None:
    """The number of a file that is written to past Python's buffer; None for one that lies in memory."""
    try:
        stream.flush()
        return stream.fileno()
    except (OSError, ValueError):
        return None


def _drop_from_now_on(handle: int) -> None:
    """Have all that still goes to this file lead nowhere, what others have in Python's buffer too."""
    with open(os.devnull, "wb") as nowhere:
        os.dup2(nowhere.fileno(), handle)
