"""Checks of the host, and their warnings, before the start."""

import os
import resource

from appliance.base.clock import VARIABLE, clock_here
from appliance.shell.log import WARNING, Log
from appliance.supervisor.layout import CannotStart


def prepare(log: Log) -> None:
    """As many descriptors as we may have: connections and segments take one each. A machine that
    nobody has tested is named, and a clock that tests turn. Raises CannotStart when the environment
    names one that is not there."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if os.uname().machine != "x86_64":
        log.event(
            WARNING,
            "untested-machine",
            machine=os.uname().machine,
            cause="rings rely on the store order of x86-64",
        )
    try:
        turned = clock_here().is_turned
    except (OSError, ValueError) as problem:
        raise CannotStart(f"{VARIABLE} in the environment: {problem}; unset it") from None
    if turned:
        log.event(WARNING, "clock-of-a-test", file=os.environ[VARIABLE])
