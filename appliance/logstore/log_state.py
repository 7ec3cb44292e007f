"""What a log is, apart from what it does: segments, limits of the active one, the dense tail, ends.

Invariant: see `log`; this file holds the fields and how a segment becomes the active one. Recovery
fills it in, `Log` builds on it, lookups read it.
"""

from bisect import bisect_left, bisect_right
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

from appliance.base.disk import Disk, write_file
from appliance.base.errors import DiskFull, StorageFailed
from appliance.config.log_config import LogConfig
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.files import LEADER_EPOCHS
from appliance.logstore.flush import Unsynced
from appliance.logstore.indexes import OffsetIndex, TimeIndex
from appliance.logstore.producer_snapshot import Snapshots
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.segment import Segment

if TYPE_CHECKING:
    from appliance.logstore.recovery import Recovery

NEVER: Final = 1 << 63


class Mark(NamedTuple):
    """The active segment of a log, and what is known of the newest batch in it."""

    base: int
    newest: int
    newest_offset: int
    since_index: int
    roll_size: int
    roll_time: int


_FARTHEST: Final = (1 << 31) - 1


class LogState:
    """end_offset: log end offset, what the next record gets. (active_base, active_size): where the
    log ends. failure: why nothing works any more, or None.
    layout: moves when full segments are written anew: positions in them hold for one layout.
    cleaning: its full segments are being compacted, so none of them is dropped."""

    __slots__ = (
        "_closed_size",
        "_committed_end",
        "_disk",
        "_index",
        "_interval",
        "_newest",
        "_newest_offset",
        "_position",
        "_roll_offset",
        "_roll_size",
        "_roll_time",
        "_saved_end",
        "_since_index",
        "_stamps",
        "_tail_offsets",
        "_tail_positions",
        "_times",
        "_told",
        "_unsynced",
        "_views",
        "active",
        "active_base",
        "active_size",
        "cleaning",
        "config",
        "end_offset",
        "epochs",
        "failure",
        "latest_epoch",
        "layout",
        "log_start_offset",
        "path",
        "producers",
        "recovery_point",
        "resting",
        "segments",
        "snapshots",
    )

    def __init__(self, disk: Disk, path: str, config: LogConfig, log_start_offset: int) -> None:
        """An empty shell; use `Log.create` or `Log.open`."""
        self._disk = disk
        self.path = path
        self.log_start_offset = log_start_offset
        self.recovery_point = self.end_offset = self._committed_end = log_start_offset
        self.segments: list[Segment] = []
        self.resting: list[Segment] = []
        self.epochs = LeaderEpochs()
        self.latest_epoch = -1
        self.producers = ProducerStates()
        self.snapshots = Snapshots(disk, path)
        self.failure: StorageFailed | None = None
        self.layout = 0
        self.cleaning = False
        self.active_base = self.active_size = self._position = self._closed_size = 0
        self._newest = self._newest_offset = -1
        self._since_index = self._roll_offset = self._roll_size = 0
        self._roll_time = NEVER
        self._views: list[memoryview] = []
        self._told = 0  # bytes of the active segment whose writing was begun
        self._tail_offsets: list[int] = []
        self._tail_positions: list[int] = []
        self._unsynced = Unsynced()
        self._saved_end = -1  # with which an orderly end left everything on the disk
        self._index, self._times = OffsetIndex(), TimeIndex()
        self.set_config(config)

    def set_config(self, config: LogConfig) -> None:
        """The topic's settings changed; they hold from the next batch on."""
        self.config = config
        self._stamps = config.message_timestamp_type == "LogAppendTime"
        self._interval = config.index_interval_bytes
        if self.segments:
            self._set_limits()

    def mark(self) -> Mark:
        """What `take_back` needs to know, before something is staged."""
        return Mark(
            self.active_base,
            self._newest,
            self._newest_offset,
            self._since_index,
            self._roll_size,
            self._roll_time,
        )

    def take_back(self, mark: Mark) -> None:
        """Forget what was staged since `mark` and is held: a log of which nothing may come late.
        Not for batches of idempotent producers."""
        self._views.clear()
        self.end_offset = end = self._committed_end
        self._position = self.active_size
        keep = bisect_left(self._tail_offsets, end)
        del self._tail_offsets[keep:], self._tail_positions[keep:]
        self._index.keep(bisect_left(self._index.positions, self.active_size))
        self._times.keep_to(end - 1 - self.active_base)
        if mark.base == self.active_base:
            self._newest, self._newest_offset = mark.newest, mark.newest_offset
            self._since_index = mark.since_index
            self._roll_size, self._roll_time = mark.roll_size, mark.roll_time
        else:  # what was staged began a segment
            self._newest = self._newest_offset = -1
            self._since_index, self._roll_time = 0, NEVER
            self._set_limits()
        self.epochs.cut_end(end + 1)
        assert not self.producers.producers

    @property
    def disk(self) -> Disk:
        return self._disk

    @property
    def size(self) -> int:
        """Bytes of all segments."""
        return self._closed_size + self.active_size

    @property
    def unsynced_bytes(self) -> int:
        """Committed bytes that a power cut may take."""
        return self._unsynced.appended + self.active_size - self._unsynced.synced

    def _segment_ms(self) -> int:
        """How long a segment takes batches; its jitter is drawn from its name."""
        config = self.config
        most = config.segment_ms
        if config.compact:  # what is in the active segment is not compacted
            most = min(most, config.max_compaction_lag_ms)
        jitter = min(config.segment_jitter_ms, most)
        if jitter <= 0:
            return most
        return most - crc32(self.active.stem.encode()) % jitter

    def _set_limits(self) -> None:
        """What a batch must not exceed to go into the active segment."""
        self._roll_size = self.config.segment_bytes
        self._roll_offset = self.active_base + _FARTHEST

    def close_times(self) -> None:
        """The last entry of a time index is the newest timestamp of the segment."""
        self._times.append(self._newest, max(self._newest_offset - self.active_base, 0))

    def begin_segment(self, base: int) -> None:
        """Make the files of a new active segment. Raises StorageFailed."""
        segment = Segment(self.path, base, 0)
        segment.create(self._disk)
        self.segments.append(segment)
        self.activate(segment, base)
        self.folders_changed(self.path)

    def activate(self, segment: Segment, end_offset: int) -> None:
        """From now on `segment` takes the batches; it is open for writing and has its indexes."""
        assert segment.index is not None and segment.times is not None
        self.active = segment
        self.active_base = segment.base
        self.active_size = self._position = self._told = segment.size
        self.end_offset = self._committed_end = end_offset
        self._index, self._times = segment.index, segment.times
        self._newest, self._newest_offset = segment.newest, segment.newest_offset
        self._roll_time = NEVER
        self._since_index = 0
        self._tail_offsets, self._tail_positions = [], []
        self._set_limits()

    def resume(self, found: "Recovery", end_offset: int) -> None:
        """Take over what recovery found: everything but the first StorageFailed."""
        self.segments = found.segments
        self.log_start_offset = max(self.log_start_offset, self.segments[0].base)
        self.recovery_point = end_offset if found.clean else found.recovery_point
        self.epochs, self.latest_epoch = found.epochs, found.epochs.latest
        self.producers = found.producers
        self._closed_size = sum(segment.size for segment in self.segments[:-1])
        self.activate(self.segments[-1], end_offset)
        self._tail_offsets, self._tail_positions = found.tail
        if found.saved and self.snapshots.offsets[-1:] == [end_offset]:
            self._saved_end = end_offset
        self._since_index = found.since_index
        if not found.clean or self.epochs.changed:
            with suppress(DiskFull):  # the next flush tries again
                self.epochs.changed = True
                self.write_epochs()
        if not found.clean:
            self.indexes_changed()
        if found.first_timestamp >= 0:
            self._roll_time = found.first_timestamp + self._segment_ms()
        for segment in found.unsynced:
            self._unsynced.rolled_over(segment)
        if self.recovery_point == end_offset:
            self._unsynced.synced = self._unsynced.appended + self.active_size

    def write_epochs(self) -> None:
        """The leader epochs into their file: at once for readers, durably by the next flush.

        Only the owner of the log writes it: a flush job would put an older one over a newer one.
        """
        path = f"{self.path}/{LEADER_EPOCHS}"
        write_file(self._disk, path, self.epochs.encode(), sync=False)
        self.epochs.changed = False
        self._unsynced.derived_changed(path)
        self.folders_changed(self.path)

    def indexes_changed(self) -> None:
        """The active segment's index files have new entries; the next flush makes them durable.

        So only the last INDEX_WRITE entries below the recovery point may be missing after a cut.
        """
        for path in self.active.index_paths():
            self._unsynced.derived_changed(path)

    def derived_changed(self, path: str) -> None:
        """This small file was written; the next flush must make it durable."""
        self._unsynced.derived_changed(path)

    @property
    def untouched(self) -> bool:
        """Nothing was ever appended: a start makes such a log again if a power cut takes it."""
        return not (self.end_offset or self.size or len(self.segments) > 1)

    @property
    def as_it_was_opened(self) -> bool:
        """An orderly end left it, and nothing in its files has changed since: there is nothing to
        write or to sync."""
        changed = self.epochs.changed or self._unsynced.pending
        return self._saved_end == self.end_offset and not changed

    def folders_changed(self, *paths: str) -> None:
        """These folders have new names in them that the next flush must make durable."""
        self._unsynced.folders_changed(paths)

    def tail_position(self, offset: int) -> int:
        """Where the batch with `offset` begins in the active segment, -1 when it must be read."""
        if offset >= self._committed_end:
            return self.active_size
        at = bisect_right(self._tail_offsets, offset) - 1
        return self._tail_positions[at] if at >= 0 else -1

    @property
    def newest(self) -> int:
        """The newest timestamp in the active segment, -1 when its records have none."""
        return self._newest

    def fail(self, failure: StorageFailed) -> None:
        """A file of this log refused: the log is over. What was staged is forgotten."""
        if self.failure is None:
            self.failure = failure
        self._views.clear()
        self.end_offset = self._committed_end
        self._position = self.active_size

    def drop_oldest(self) -> Segment:
        """Forget the first segment, which is synced and not the active one."""
        segment = self.segments.pop(0)
        assert segment is not self.active and segment not in self._unsynced.rolled
        if segment in self.resting:
            self.resting.remove(segment)
        segment.rest()
        self._closed_size -= segment.size
        return segment

    def exchange(self, first: int, old: list[Segment], new: Segment) -> None:
        """`new` takes the place of `old`, from number `first` on; all are synced."""
        for segment in old:
            assert segment is not self.active and segment not in self._unsynced.rolled
            if segment in self.resting:
                self.resting.remove(segment)
            segment.rest()
        self.segments[first : first + len(old)] = [new]
        self._closed_size += new.size - sum(segment.size for segment in old)

    def is_synced(self, segment: Segment) -> bool:
        """Whether a full segment is on the disk with all that belongs to it."""
        return segment is not self.active and segment not in self._unsynced.rolled

    def let_go(self) -> None:
        """Close every file; every later call raises StorageFailed."""
        if self.failure is None:
            assert self._unsynced.job is None, "a sync is under way"
            self.failure = StorageFailed(self.path, 0, "the log is closed")
        for segment in (*self.segments, *self._unsynced.rolled):
            segment.rest()
        self.resting.clear()
