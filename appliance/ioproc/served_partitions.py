"""Shared state of the parts of an I/O process: its partitions, its askers, and where it
publishes.

Invariant: `partitions` holds what is served, `refused` the rows of what could not be opened, and no
row is in both. Made first; the parts that work on it know each other only downwards.
"""

from collections.abc import Callable, Sequence
from typing import Final

from appliance.base import errors
from appliance.base.space import SpaceGuard
from appliance.ioproc.durability.group_commit import GroupCommit
from appliance.ioproc.netproc_peer import NetprocPeer
from appliance.ioproc.partitions.partition import Partition
from appliance.ioproc.partitions.partition_rows import Rows
from appliance.ioproc.partitions.purgatory import Purgatory

Reach = Callable[[str, str], None]
"""Told of a bound that was reached, and why."""

PARKED_READS: Final = 1 << 16
"""How many reads one netproc may have parked; each takes 300 bytes."""


class ServedPartitions:
    """partitions: by row. askers: by index of the netproc. siblings: the I/O processes whose
    coordinators end transactions here, this one among them, by index. spaces: by number of the log
    folder. starved: rows of followers that found no room. damaged: row → topic id and partition, of
    replicas that are fetched anew when others do without them. stirred: there is something for
    the chores, whatever the clock says. now_ms: the time of this turn. began_ns, now_ns: when it
    began, and when its writing does. fetched: another replica
    has, since that was looked at. isolated: this node is cut off from the others, it seems. reach:
    told of bounds."""

    __slots__ = (
        "askers",
        "began_ns",
        "damaged",
        "fetched",
        "isolated",
        "now_ms",
        "now_ns",
        "partitions",
        "purgatory",
        "reach",
        "refused",
        "rows",
        "siblings",
        "spaces",
        "starved",
        "stirred",
        "syncing",
        "watches",
    )

    def __init__(
        self,
        rows: Rows,
        syncing: GroupCommit,
        spaces: Sequence[SpaceGuard],
        reach: Reach = lambda _bound, _why: None,
    ) -> None:
        self.rows = rows
        self.reach = reach
        self.syncing = syncing
        self.spaces = spaces
        self.partitions: dict[int, Partition] = {}
        self.refused: dict[int, None] = {}
        self.starved: dict[int, None] = {}
        self.damaged: dict[int, tuple[bytes, int]] = {}
        self.askers: dict[int, NetprocPeer] = {}
        self.siblings: dict[int, NetprocPeer] = {}
        self.purgatory = Purgatory(PARKED_READS)
        self.watches = syncing.watches = rows.watches
        self.stirred = True
        self.fetched = self.isolated = False
        self.now_ms = self.began_ns = self.now_ns = 0

    def deserts(self, partition: Partition) -> bool:
        """True if another node seems to lead the partition by now: this one is isolated, and
        another replica is in sync.
        """
        return self.isolated and partition.shared and bool(partition.role.isr)

    def absent(self, handle: int) -> int:
        """The error for a partition that is not served here."""
        if handle in self.refused:
            return errors.KAFKA_STORAGE_ERROR
        return errors.UNKNOWN_TOPIC_OR_PARTITION

    def refuse_row(self, handle: int) -> None:
        """The partition of this row could not be opened."""
        assert handle not in self.partitions
        self.refused[handle] = None
        self.rows.offline(handle)
