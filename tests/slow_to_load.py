"""A module that is still being loaded when the test is over; it leaves its pid first."""

import os
import time
from pathlib import Path

Path(os.environ["SLOW_TO_LOAD"]).write_text(str(os.getpid()))
time.sleep(600)
