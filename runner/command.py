"""How a command beside the study's own ends: in one line, whatever stops it, and with a code that says so."""

import errno
import sys
from collections.abc import Callable
from functools import wraps

from runner.errors import ConfigError, StudyError, reason
from runner.interrupt import Terminated, reason_of, signals_raised
from runner.report.text import one_line
from runner.start import INTERRUPTED

REFUSED = 2


def command(main: Callable[[], int]) -> Callable[[], int]:
    """The main of a command whose errors end it with 2, a signal with 128 and its number, each after one line."""

    @wraps(main)
    def ended() -> int:
        try:
            with signals_raised():
                return main()
        except (StudyError, ConfigError) as error:
            return _said(str(error), REFUSED)
        except OSError as error:
            full = error.errno in (errno.ENOSPC, errno.EDQUOT)
            way_out = "make room" if full else "see to it that it can be read and written, or name another one"
            return _said(f"{error.filename or 'input or output'}: {reason(error)}; {way_out}", REFUSED)
        except KeyboardInterrupt as error:
            code = 128 + error.signal if isinstance(error, Terminated) else INTERRUPTED
            return _said(f"broken off ({reason_of(error)}); give the same command again", code)

    return ended


def _said(text: str, code: int) -> int:
    print(one_line(text), file=sys.stderr)
    return code
