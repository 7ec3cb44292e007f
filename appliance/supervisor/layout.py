"""How an appliance is cut into processes and memory; the only sizes the supervisor knows.

Everything here is decided before the first fork and stays until the end.
"""

import os
from typing import Final

from appliance.base.dataclass import dataclass
from appliance.config.broker import BrokerConfig
from appliance.ring.partition_table import DEFAULT_ROWS
from appliance.ring.push_table import DEFAULT_ROWS as PUSH_ROWS
from appliance.ring.quota_table import DEFAULT_ROWS as QUOTA_ROWS
from appliance.ring.ring import DEFAULT_CAPACITY
from appliance.shell import patience

MIB: Final = 1024 * 1024
_MOST: Final = 4


class CannotStart(Exception):
    """Something about this host or folder is in the way; the text names it and the remedy."""


def default_processes(cpus: int) -> int:
    """Netprocs, and as many ioprocs, for a host: one of each on two CPUs or less, at most four."""
    return max(1, min(_MOST, cpus // 2))


def online_cpus() -> int:
    """CPUs this process may run on."""
    return len(os.sched_getaffinity(0))


@dataclass(slots=True, frozen=True, kw_only=True)
class Layout:
    """Processes, listeners, sizes in bytes and patience in seconds."""

    netprocs: int = 1
    ioprocs: int = 1
    listeners: tuple[tuple[str, int], ...] = (("127.0.0.1", 9092),)
    """(host, port) of each configured listener; port 0 takes a free one."""
    names: tuple[str, ...] = ()
    """Of each listener; nobody asks for them where they are not told."""
    backlog: int = 1024
    metrics: tuple[str, int] | None = None
    """(host, port) at which the appliance tells how it is; None: nowhere, and no process for it."""
    arena_bytes: int = 256 * MIB
    """Receive arena of one netproc. Only touched pages take memory."""
    ring_slots: int = DEFAULT_CAPACITY
    payload_bytes: int = MIB
    """Payload area of each ring to and from control."""
    group_payload_bytes: int = MIB // 4
    """Payload area of each ring between a netproc and an ioproc: requests for groups, answers.
    Rings between ioprocs have none."""
    partition_rows: int = DEFAULT_ROWS
    quota_windows: int = 11
    """Windows in which the rates of clients are counted: one region for each netproc, the last one
    for control."""
    quota_rows: int = QUOTA_ROWS
    """Clients that each of them counts."""
    push_rows: int = PUSH_ROWS
    """Client instances whose metrics each netproc keeps."""
    spin_us: int = 50
    """How long a loaded loop looks again before it sleeps; 0 never. About what a wake-up takes."""
    confirm_seconds: float = patience.CONFIRM_S
    wedged_seconds: float = patience.WEDGED_S
    crash_window_seconds: float = 10.0
    crash_limit: int = 5
    """A process that dies this many times within the window is not started again."""
    leave_seconds: float = patience.LEFT_S
    netproc_drain_seconds: float = patience.NETPROC_DRAIN_S
    ioproc_drain_seconds: float = patience.IOPROC_DRAIN_S
    control_drain_seconds: float = patience.CONTROL_DRAIN_S

    @staticmethod
    def of(config: BrokerConfig) -> "Layout":
        """The layout by the broker's settings; 0 processes means as many as suit this host."""
        suited = default_processes(online_cpus())
        metrics = config.endpoint("penstock.metrics.listener")
        netprocs = config.int("penstock.net.processes") or suited
        ioprocs = config.int("penstock.io.processes") or suited
        return Layout(  # a controller alone hears a few nodes, and has no partitions
            netprocs=netprocs if config.is_broker else 1,
            ioprocs=ioprocs if config.is_broker else 0,
            listeners=tuple((one.host, one.port) for one in config.opened()),
            names=tuple(one.name for one in config.opened()),
            backlog=config.int("socket.listen.backlog.size"),
            metrics=None if metrics is None else (metrics.host, metrics.port),
            arena_bytes=config.int("penstock.arena.bytes"),
            partition_rows=config.int("penstock.partitions.max"),
            quota_windows=config.int("quota.window.num"),
            quota_rows=config.int("penstock.quota.clients.max"),
            push_rows=config.int("penstock.client.metrics.instances.max"),
            spin_us=config.int("penstock.spin.us") if online_cpus() > 1 else 0,
        )

    def __post_init__(self) -> None:
        assert 1 <= self.netprocs <= 64, "1 to 64 network processes"
        assert 0 <= self.ioprocs <= 64, "up to 64 I/O processes; none where there are no partitions"
        assert self.listeners, "at least one listener"
        assert len(self.names) in (0, len(self.listeners)), "each has a name, or none has"
