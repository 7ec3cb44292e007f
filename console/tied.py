"""A command ends when its parent does, where that asks for it (`penstock/tied.py`): SIGKILL of a
parent tells its children nothing."""

import os
import signal
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import threading

_VARIABLE: Final = "PENSTOCK_ENDS_WITH"
_END_LIMIT_S: Final = 90.0
"""From SIGTERM to SIGKILL: more than the runner of jobs needs for its last batches."""
_watch: "tuple[threading.Thread, int] | None" = None
"""The thread that watches, and the eventfd that stops it."""


def watch_parent() -> None:
    """Ends this command as SIGTERM does once its parent has ended. Raises Failure (USAGE)."""
    global _watch
    if _VARIABLE not in os.environ or _watch is not None:
        return
    import threading

    from appliance.shell.tied import opened
    from console.model.asking.failure import usage

    try:
        parent = opened(os.environ)
    except ValueError as wrong:
        raise usage(str(wrong), f"unset {_VARIABLE}") from None
    if parent < 0:
        return
    stop = os.eventfd(0)
    thread = threading.Thread(target=_watch_until_end, args=(parent, stop), daemon=True)
    thread.start()
    _watch = thread, stop


def unwatch_parent() -> None:
    """Stops the watch: the supervisor watches the parent itself, because it forks without
    threads."""
    global _watch
    if _watch is None:
        return
    thread, stop = _watch
    os.eventfd_write(stop, 1)
    thread.join()
    os.close(stop)
    _watch = None


def _watch_until_end(parent: int, stop: int) -> None:
    import select

    bell = select.poll()  # select knows no descriptor above 1,023
    for fd in (parent, stop):
        bell.register(fd, select.POLLIN)
    found = bell.poll()
    if not any(fd == stop for fd, _ in found):
        os.kill(os.getpid(), signal.SIGTERM)
        bell.unregister(parent)
        if not bell.poll(_END_LIMIT_S * 1000):
            os.kill(os.getpid(), signal.SIGKILL)
    os.close(parent)
