"""The parts of a log, for helpers that `PartitionLog` calls with itself.

`PartitionLog` is the one implementation. See there for what each part means.
"""

from typing import Protocol

from appliance.base.errors import StorageFailed
from appliance.config.log_config import LogConfig
from appliance.logstore.active import ActiveSegment
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.flush import Unsynced
from appliance.logstore.producer_snapshot import ProducerSnapshots
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.segment import Segment
from appliance.logstore.segments import LogSegments


class LogParts(Protocol):
    """The parts of a log that may be changed, and what must be done through it."""

    path: str
    config: LogConfig
    order: LogSegments
    active: ActiveSegment
    epochs: LeaderEpochs
    producers: ProducerStates
    snapshots: ProducerSnapshots
    unsynced: Unsynced
    log_start_offset: int
    recovery_point: int
    saved_end: int
    layout: int
    cleaning: bool
    copied_end: int

    def activated(self, segment: Segment, end_offset: int) -> ActiveSegment:
        """`segment`, which is open for writing and has its indexes, as one that takes batches."""
        ...

    def roll(self, now_ms: int) -> None:
        """Commit what is staged and begin a new segment."""
        ...

    def advance_log_start(self, offset: int) -> None:
        """Records below `offset` are gone for readers."""
        ...

    def write_epochs(self) -> None:
        """The leader epochs into their file."""
        ...

    def commit(self) -> None:
        """Write what was staged."""
        ...

    def sync_now(self) -> None:
        """Sync all that is committed, here and now."""
        ...

    def let_go(self) -> None:
        """Close every file."""
        ...

    def fail(self, failure: StorageFailed) -> None:
        """A file of this log refused: the log is over."""
        ...
