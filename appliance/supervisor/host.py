"""What the supervisor asks of the host, and says of it, before anything else."""

import os
import resource

from appliance.shell.log import WARNING, Log


def prepare(log: Log) -> None:
    """As many descriptors as we may have: connections and segments take one each. A machine that
    nobody has tested is named."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    if os.uname().machine != "x86_64":
        log.event(
            WARNING,
            "untested-machine",
            machine=os.uname().machine,
            cause="rings rely on the store order of x86-64",
        )
