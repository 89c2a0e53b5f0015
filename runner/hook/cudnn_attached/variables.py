"""The environment variables that matter: who sets one, and when."""

import os
from typing import Any

from cudnn_attached.asked import Asked
from cudnn_attached.doctor import tell


def watch_variables(given: Asked) -> None:
    """Tell which of them the command has set before Python began, and tell of every later change."""
    watched = dict(given.variables)
    for name, before in given.variables.items():
        now = os.environ.get(name)
        if before != now:
            tell(f"the command sets {name}={now} before Python begins", where="")
            watched[name] = now
    kind = type(os.environ)
    set_otherwise = kind.__setitem__

    def set_item(self: Any, key: Any, value: Any) -> None:
        if self is os.environ and watched.get(key, value) != value:  # some take a variable away and put it back
            tell(f"sets {key}={value}")
            watched[key] = value
        set_otherwise(self, key, value)

    kind.__setitem__ = set_item  # type: ignore[method-assign]
