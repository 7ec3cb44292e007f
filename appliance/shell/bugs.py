"""The `bug` event: an exception that nobody expected, told once with its traceback.

A cause is where an exception was caught, its type and the line that raised it. The first event of a
cause has the traceback. Later ones have the last line of it, at most one a second. Called by the
barriers of netprocs, I/O processes and control.
"""

import traceback
from collections.abc import Callable
from typing import Final

from appliance.shell.log import ERROR, Log

_MOST_CAUSES: Final = 256


class Bugs:
    """The causes that one process has told."""

    __slots__ = ("_log", "_told")

    def __init__(self, log: Log) -> None:
        self._log = log
        self._told: dict[str, None] = {}

    def report(self, where: str, bug: BaseException, **fields: object) -> None:
        """where: what the process was doing. fields: more of the event, `peer` for example."""
        frames = traceback.extract_tb(bug.__traceback__)
        line = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else ""
        cause = f"{where} {type(bug).__name__} {line}"
        if cause in self._told:
            text = "".join(traceback.format_exception_only(bug)).strip()
        else:
            if len(self._told) >= _MOST_CAUSES:
                del self._told[next(iter(self._told))]
            self._told[cause] = None
            text = "".join(traceback.format_exception(bug))
        self._log.event_of(ERROR, "bug", cause, **fields, cause=f"{where}: {text}")

    def guard(self, where: str, chore: Callable[[], object]) -> None:
        """Run one chore of a turn. An exception skips the rest of it until its next time."""
        try:
            chore()
        except Exception as bug:
            self.report(where, bug)
