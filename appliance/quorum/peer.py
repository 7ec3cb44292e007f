"""A replica's view: its log, and as a leader the other replicas."""

from collections.abc import Mapping
from typing import Protocol

from appliance.quorum.voters import ANY


class QuorumLog(Protocol):
    """The log as a replica sees it."""

    @property
    def start_offset(self) -> int:
        """Its first offset."""

    @property
    def start_epoch(self) -> int:
        """Leader epoch of the record before its first one, 0 when there is none."""

    @property
    def end_offset(self) -> int:
        """The offset of the next record."""

    @property
    def last_epoch(self) -> int:
        """Leader epoch of the last record, 0 when there is none."""

    @property
    def newest_snapshot(self) -> tuple[int, int]:
        """(end, epoch) of what a log that begins later than at 0 has a snapshot of."""

    def end_of(self, epoch: int) -> tuple[int, int]:
        """The largest epoch up to `epoch` that it has, and the offset behind its last record
        (KIP-279)."""


def parting(
    log: QuorumLog, end: int, last_epoch: int
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Checks whether a log that ends at `end` in `last_epoch` is a prefix of this one. Returns
    (epoch, end) of the divergence and (end, epoch) of a snapshot to fetch; each None where it is
    not needed.

    Whose last record is older than what the snapshot ends with may have others than the snapshot
    has, in epochs of which this log knows nothing any more: it fetches the snapshot (KIP-630).
    """
    start, start_epoch = log.start_offset, log.start_epoch
    if end < start or last_epoch < start_epoch:
        return None, log.newest_snapshot
    if (end, last_epoch) != (start, start_epoch):
        epoch, its_end = log.end_of(last_epoch)
        if epoch != last_epoch or its_end < end:
            return (epoch, its_end), None
    return None, None


def key_of(voters: Mapping[int, bytes], replica: int, directory: bytes) -> tuple[int, bytes]:
    """Under which its leader keeps a replica: the directory id is ANY where that of a voter is."""
    return replica, ANY if voters.get(replica) == ANY else directory


class ReplicaPeer:
    """Another replica as its leader sees it. held: what it has on its disk, -1 when it never
    fetched. fetched_ms: when it last did. level_ms: when it last had all that the leader had, -1:
    never."""

    __slots__ = ("_goal", "fetched_ms", "held", "level_ms")

    def __init__(self, now_ms: int) -> None:
        self.held = self.level_ms = -1
        self.fetched_ms = now_ms
        self._goal = -1  # where the leader's log ended at its last fetch

    def has(self, end: int, leaders_end: int, now_ms: int) -> None:
        """It fetches from `end` on, so it has what is below."""
        if end >= leaders_end:
            self.level_ms = now_ms
        elif 0 <= self._goal <= end:
            self.level_ms = max(self.level_ms, self.fetched_ms)
        self.held, self._goal, self.fetched_ms = end, leaders_end, now_ms
