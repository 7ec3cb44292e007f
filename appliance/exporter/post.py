"""What the supervisor hands to the process that tells how the appliance is: a listening socket and
the tables. It has no place in the process table and no ring: nobody asks it anything, and it asks
nobody."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass

from appliance.config.broker import BrokerConfig
from appliance.config.otlp import Target
from appliance.ring.tables import Tables


@dataclass(slots=True, frozen=True, kw_only=True)
class Post:
    """listener: bound, listening, non-blocking; None: nobody is to ask. target: to whom all is
    pushed. folders: every log folder, the one with the
    metadata first. addresses: (host, port) where clients are served, or else controllers.
    supervisor: its process id. started_ms: of the appliance, by the wall clock."""

    config: BrokerConfig
    folders: Sequence[str]
    tables: Tables
    listener: socket.socket | None
    target: Target | None
    addresses: Sequence[tuple[str, int]]
    supervisor: int
    started_ms: int
