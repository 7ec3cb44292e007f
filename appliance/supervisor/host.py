"""Checks of the host, and their warnings, before the start."""

import os
import resource

from appliance.base.clock import VARIABLE, clock_here
from appliance.shell.log import WARNING, Log
from appliance.supervisor.layout import CannotStart


def check_processor() -> None:
    """Raises CannotStart on a processor that shows stores in another order than x86-64 does."""
    machine = os.uname().machine
    if machine != "x86_64":
        raise CannotStart(
            f"this processor is {machine}, and penstock serves on x86_64 alone: its processes share"
            " memory and rely on the order in which x86-64 shows stores; run it on an x86-64 host"
        )


def prepare(log: Log) -> None:
    """As many descriptors as we may have: connections and segments take one each. A clock that
    tests turn is named. Raises CannotStart when the environment names one that is not there."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        turned = clock_here().is_turned
    except (OSError, ValueError) as problem:
        raise CannotStart(f"{VARIABLE} in the environment: {problem}; unset it") from None
    if turned:
        log.event(WARNING, "clock-of-a-test", file=os.environ[VARIABLE])
