"""Commands whose files nobody but the user may read: records, settings, copies of them."""

import functools
import os
from collections.abc import Callable
from typing import Any, Final

_OTHERS: Final = 0o077


def private(command: Callable[..., Any]) -> Callable[..., Any]:
    """Gives what the command makes, and what its children make, to its user alone."""

    @functools.wraps(command)
    def wrapped(*args: object, **kwargs: object) -> object:
        before = os.umask(_OTHERS)
        try:
            return command(*args, **kwargs)
        finally:
            os.umask(before)

    return wrapped
