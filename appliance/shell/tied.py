"""The process that this one ends with, where the environment names one: PID:START, as
`penstock/tied.py` writes it for what it starts."""

import os
from collections.abc import Mapping
from typing import Final

from appliance.base.proc import start_ticks

VARIABLE: Final = "PENSTOCK_ENDS_WITH"


def opened(environment: Mapping[str, str]) -> int:
    """A descriptor that is readable as soon as that process has ended, -1 where none is named.
    Raises ValueError when the variable names no process."""
    named = environment.get(VARIABLE)
    if not named:
        return -1
    number, _, start = named.partition(":")
    if not (number.isdecimal() and start.isdecimal()) or not int(number):
        raise ValueError(f"{VARIABLE}={named} is not PID:START")
    try:
        pidfd = os.pidfd_open(int(number))
    except ProcessLookupError:
        return _ended()
    if start_ticks(int(number)) == int(
        start
    ):  # after it was opened: it is that process, or it has ended
        return pidfd
    os.close(pidfd)
    return _ended()


def _ended() -> int:
    """Readable from the beginning."""
    ours, theirs = os.pipe2(os.O_CLOEXEC)
    os.close(theirs)
    return ours
