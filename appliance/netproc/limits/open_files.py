"""The shares that connections and segment files have in a netproc's limit of open files.

Neither can take what the other one needs, and a reserve is left for everything else: files that are
opened for a moment (metadata, certificates, /proc) and connections to other nodes.
"""

import os
import resource
from typing import Final, NamedTuple

from appliance.netproc.limits.connection_limits import ConnectionLimits

RESERVE: Final = 64
"""Descriptors for what has no share."""
MOST_SEGMENTS: Final = 8192


class OpenFileShares(NamedTuple):
    """Descriptors of each kind."""

    connections: int
    segments: int


def divide(limit: int, used: int) -> OpenFileShares:
    """limit: of open files, RLIMIT_NOFILE. used: descriptors of the process before it serves."""
    rest = max(8, limit - used - RESERVE)
    segments = min(rest // 4, MOST_SEGMENTS)
    return OpenFileShares(rest - segments, segments)


def share_descriptors(limits: ConnectionLimits) -> int:
    """Bound the connections of this process, and return the share of segment files."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    shares = divide(soft, len(os.listdir("/proc/self/fd")))
    limits.room, limits.files = shares.connections, soft
    return shares.segments
