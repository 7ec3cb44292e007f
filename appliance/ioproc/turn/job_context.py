"""Shared dependencies of the background jobs on partition folders."""

from typing import NamedTuple

from appliance.base.disk import Disk
from appliance.ioproc.turn.core import Core
from appliance.metadata.log_dirs import LogDirs
from appliance.shell.log import Log


class JobContext(NamedTuple):
    """dirs: the log folders. core: what is served. events: where is said what people should
    know."""

    disk: Disk
    dirs: LogDirs
    core: Core
    events: Log
