"""Making a log and opening one again, after an orderly end, the death of a process or a power cut.

Invariant of an opened log: every batch in it is whole, nothing below the recovery point was
dropped, and what lies above it was held against the medium (`renewal`), because the one before may
have seen a sync fail. An invalid batch above the recovery point is a torn tail: the log ends before
it. One below it is corruption: nothing is changed and StorageFailed says where; the caller fences
the partition. What is found is a `Start`. Called by `PartitionLog.create` and `PartitionLog.open`
only.
"""

import errno
from bisect import bisect_left, bisect_right
from contextlib import suppress
from dataclasses import field
from typing import Final, NamedTuple

from appliance.base.dataclass import dataclass
from appliance.base.disk import Disk, read_file
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.ids import NO_TIMESTAMP
from appliance.config.log_config import LogConfig
from appliance.logstore import aborted, files, truncation
from appliance.logstore.active import Tail
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.flush import Unsynced
from appliance.logstore.format_upgrade import upgrade_folder
from appliance.logstore.indexes import INDEX_WRITE
from appliance.logstore.journal import Continuation
from appliance.logstore.partition_metadata import write_metadata
from appliance.logstore.producer_snapshot import ProducerSnapshots
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.renewal import changed, renew, restore
from appliance.logstore.replay import Replay, producers_at
from appliance.logstore.scan import Scan
from appliance.logstore.segment import Segment
from appliance.logstore.unfinished_swaps import finish_swaps
from appliance.wire.batch_header import HEADER, HEADER_SIZE

_ANY: Final = 1 << 63


class RecoveryCut(NamedTuple):
    """The end of a log that recovery removed. offset: log end since then. segments: base offsets of
    those removed whole, oldest first. size: bytes in all. why: the fault found there.
    """

    offset: int
    segments: tuple[int, ...]
    size: int
    why: str


@dataclass(slots=True)
class Start:
    """The state of a log after recovery.

    segments: the last one is open for writing and has its indexes. end_offset: log end. unsynced:
    what the first flush must make durable. producers, epochs, snapshots: what is known of them at
    that end. tail, since_index: of the batches in the last segment. first_timestamp: of its first
    batch, in ms. now_ms: when it was looked at. saved: an orderly end left everything on the disk.
    cut: what was taken off the end.
    """

    segments: list[Segment]
    end_offset: int
    log_start_offset: int
    recovery_point: int
    snapshots: ProducerSnapshots
    unsynced: Unsynced
    producers: ProducerStates = field(default_factory=ProducerStates)
    epochs: LeaderEpochs = field(default_factory=LeaderEpochs)
    tail: Tail = field(default_factory=lambda: (0, [], []))
    since_index: int = 0
    first_timestamp: int = NO_TIMESTAMP
    now_ms: int = 0
    saved: bool = False
    cut: RecoveryCut | None = None


def create(disk: Disk, path: str, topic_id: bytes, start_offset: int) -> Start:
    """The folder and the first segment of a new log. Raises StorageFailed."""
    if disk.exists(path):
        _clear_leftovers(disk, path)
    else:
        disk.mkdir(path)
    start = _empty(disk, path, start_offset, ProducerSnapshots(disk, path))
    # Durable with the first records: without any the folder can be made again from nothing.
    start.unsynced.derived_changed(write_metadata(disk, path, topic_id, sync=False))
    return start


def _empty(disk: Disk, path: str, offset: int, snapshots: ProducerSnapshots) -> Start:
    """A log without records that begins at `offset`."""
    segment = Segment(path, offset, 0)
    segment.create(disk)
    if offset:  # its checkpoint says that something is there
        disk.sync_dir(path)
    unsynced = Unsynced()
    unsynced.folders_changed((path, path.rpartition("/")[0]))
    start = Start([segment], offset, offset, offset, snapshots, unsynced)
    start.tail = (offset, [], [])
    return start


def _clear_leftovers(disk: Disk, path: str) -> None:
    """A creation that was cut short left files without records; anything else is not ours to
    remove."""
    for name in disk.listdir(path):
        if name.endswith(files.LOG) and disk.size(f"{path}/{name}"):
            raise StorageFailed(
                path, errno.EEXIST, f"the folder of a new partition has records in {name}"
            )
    for name in disk.listdir(path):
        disk.unlink(f"{path}/{name}")


class LogHints(NamedTuple):
    """The caller's knowledge of a log before it is opened. See `PartitionLog.open`."""

    recovery_point: int
    log_start_offset: int
    clean: bool
    machine_lived: bool
    now_ms: int


def recover(
    disk: Disk, path: str, config: LogConfig, known: LogHints, continuation: Continuation
) -> Start:
    """Find the end, repair what may be repaired. See `PartitionLog.open`. Raises StorageFailed."""
    found = Recovery(disk, path, config, known, continuation)
    try:
        return found.run()
    except StorageFailed:
        for segment in found.segments:
            segment.rest()
        raise


class Recovery:
    """One opening of one log."""

    def __init__(
        self,
        disk: Disk,
        path: str,
        config: LogConfig,
        known: LogHints,
        continuation: Continuation,
    ) -> None:
        self.disk = disk
        self.path = path
        self.config = config
        self.recovery_point = known.recovery_point
        self.log_start_offset = known.log_start_offset
        self.clean = known.clean
        self.machine_lived = known.machine_lived
        self.now_ms = known.now_ms
        self.continuation = continuation
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.names: set[str] = set()
        self.snapshots = ProducerSnapshots(disk, path)
        self.producers = ProducerStates()
        self.unsynced = Unsynced()
        self.doubtful: list[
            tuple[Segment, int, int]
        ] = []  # with position and offset where it begins
        self.tail: Tail = (0, [], [])
        self.since_index = 0
        self.epochs = LeaderEpochs()
        self.epochs_as_read = b""
        self.cut: RecoveryCut | None = None

    def run(self) -> Start:
        """Find the end, repair what may be repaired. Raises StorageFailed."""
        self._list_files()
        if not self.segments:
            if self.recovery_point > self.log_start_offset:
                raise self._corrupt(self.log_start_offset, "there is no segment")
            return self._begin_empty()
        self._read_epochs()
        first, position, next_offset = self._start()
        self.producers = producers_at(
            self.disk,
            self.segments,
            self.snapshots,
            _ANY if self.clean else self.recovery_point,
            (first, position),
            self.now_ms,
            self._corrupt,
        )
        end = self._replay(first, position, next_offset)
        if end < self.recovery_point:
            raise self._corrupt(end, "the log ends")
        if end < self.log_start_offset:
            return self._begin_anew()
        return self._settle(first, end)

    def _corrupt(self, offset: int, text: str) -> StorageFailed:
        return StorageFailed(
            self.path,
            errno.EBADMSG,
            f"corrupt at offset {offset}, below the recovery point {self.recovery_point}: {text}; "
            "penstock storage repair, behind its end, sets aside what is damaged; or "
            "restore the partition's folder from a copy",
        )

    # What is there --------------------------------------------------------------------------------

    def _list_files(self) -> None:
        names = finish_swaps(self.disk, self.path)
        bases = [files.offset_of(name, files.LOG) for name in names if name.endswith(files.LOG)]
        self.bases = sorted(base for base in bases if base >= 0)
        if self._upgrade_segments():
            names = self.disk.listdir(self.path)
        self.names = set(names)
        known = set(self.bases)
        for name in names:
            stray = any(
                name.endswith(suffix) and files.offset_of(name, suffix) not in known
                for suffix in (files.INDEX, files.TIME_INDEX, files.TXN_INDEX)
            )
            if stray or name.endswith((files.DELETED, ".tmp")):
                self.disk.unlink(f"{self.path}/{name}")
                self.names.discard(name)
        for base in self.bases:
            size = self.disk.size(f"{files.stem(self.path, base)}{files.LOG}")
            self.segments.append(Segment(self.path, base, size))
        offsets = [files.offset_of(name, files.SNAPSHOT) for name in names]
        self.snapshots.offsets = sorted(offset for offset in offsets if offset >= 0)

    def _upgrade_segments(self) -> bool:
        """Writes segments of old message formats anew. False: there are none."""
        certain = _ANY if self.clean else self.recovery_point
        interval = self.config.index_interval_bytes
        done = upgrade_folder(self.disk, self.path, self.bases, interval, certain)
        if done and done[-1].cut:
            last = done[-1]
            self.cut = RecoveryCut(last.end, (), last.cut, last.why)
        return bool(done)

    def _read_epochs(self) -> None:
        if files.LEADER_EPOCHS in self.names:
            self.epochs_as_read = read_file(self.disk, f"{self.path}/{files.LEADER_EPOCHS}")
            read = LeaderEpochs.decode(self.epochs_as_read)
            if read is not None:
                self.epochs = read
                return
        # Nothing else remembers the epochs of old batches; behind a torn one there are none.
        for segment in self.segments:
            size = segment.size
            scan = Scan(segment.reader(self.disk), 0, size, segment.base, trust_position=size)
            for chunk in scan.chunks():
                for _, header in chunk:
                    self.epochs.assign(header[2], header[0])
            if scan.problem:
                return

    # Where to begin -------------------------------------------------------------------------------

    def _start(self) -> tuple[int, int, int]:
        """Segment number, position and offset of the first batch to step over: an index entry
        before all doubt."""
        point = self.recovery_point
        number = len(self.segments) - 1
        if not self.clean:
            number = max(bisect_right(self.bases, point) - 1, 0)
        segment = self.segments[number]
        index, _ = segment.read_indexes(self.disk)
        if self.clean:
            count = len(index.offsets)
        else:
            count = bisect_left(index.offsets, point - segment.base)
            if not self.machine_lived:
                # What was written last to them may be torn: see ActiveSegment.indexes_changed.
                count = max(count - INDEX_WRITE, 0)
        position, next_offset = segment.entry(self.disk, count) or (0, segment.base)
        return number, position, next_offset

    # Step over the rest ---------------------------------------------------------------------------

    def _replay(self, first: int, position: int, next_offset: int) -> int:
        """Check and note every batch from there on, cut a torn tail off; returns the log end
        offset."""
        if not self.clean:
            self.epochs.cut_end(next_offset)
        replay = Replay(self.producers, self.epochs, self.config.index_interval_bytes, self.now_ms)
        number = first
        while number < len(self.segments):
            segment = self.segments[number]
            gap = segment.base - next_offset if number > first else 0
            if gap < 0 or (gap and not self.config.compact):
                text = f"segment {segment.base} does not follow offset {next_offset}"
                self._cut(number, next_offset, self.segments[number - 1].size, text)
                break
            begin = position, max(next_offset, segment.base)
            if self.continuation and not self.clean:
                self._go_on(number, *begin)
            scan = self._scan(number, *begin)
            self._note(segment, scan, replay)
            next_offset, position = scan.next_offset, 0
            number += 1
            if scan.problem:
                self._cut(number, next_offset, scan.position, scan.problem)
                break
        return next_offset

    def _go_on(self, number: int, position: int, next_offset: int) -> None:
        """Where the sound batches of the segment end before the next one begins, a journal may
        have more of them, which were acknowledged."""
        scan = self._scan(number, position, next_offset)
        epoch = self.epochs.latest
        for chunk in scan.chunks():
            epoch = max(epoch, chunk[-1][1][2])
        end = scan.next_offset
        if number + 1 < len(self.segments) and end >= self.bases[number + 1]:
            return
        more = self.continuation.after(end)
        if more and HEADER.unpack_from(more)[2] >= epoch:  # or it was cut off since
            segment = self.segments[number]
            segment.rest_file()
            file = self.disk.open_file(segment.path, write=True)
            try:
                file.truncate(scan.position)
                file.pwritev([more], scan.position)
            finally:
                file.close()
            segment.size = scan.position + len(more)

    def _scan(self, number: int, position: int, next_offset: int) -> Scan:
        segment = self.segments[number]
        return Scan(
            segment.reader(self.disk),
            position,
            segment.size,
            next_offset,
            trust_offset=self.recovery_point,
            trust_position=segment.size if self.clean else 0,
            gaps=self.config.compact,
        )

    def _note(self, segment: Segment, scan: Scan, replay: Replay) -> None:
        """Take what the batches say into indexes, producers, epochs and the tail."""
        segment.read_indexes(self.disk)
        begin = scan.position, scan.next_offset
        self.tail, self.since_index, ended = replay.replay_scan(segment, scan)
        if not self.clean:
            self._note_aborted(segment, ended)
        if scan.next_offset > self.recovery_point and not self.clean and self.tail[1]:
            self.doubtful.append((segment, *self._first_doubtful(*begin)))

    def _note_aborted(self, segment: Segment, ended: list[aborted.Aborted]) -> None:
        """Below the recovery point the transaction index is whole; above it the batches say, and
        what they say is on the disk before anybody counts on it."""
        point, path = self.recovery_point, segment.stem + files.TXN_INDEX
        again = [one for one in ended if one[2] >= point]
        if not again and path.rpartition("/")[2] not in self.names:
            return
        aborted.rewrite(self.disk, path, point, again)
        self.unsynced.derived_changed(path)  # also when another opening cut it, and never synced
        if again:
            restore(self.disk, path)
            if aborted.rewrite(self.disk, path, point, again):
                raise changed(path, "aborted transactions are gone")

    def _first_doubtful(self, position: int, offset: int) -> tuple[int, int]:
        """Position and offset of the first batch above the recovery point, no later than that; of
        where the scan began if it is not in the tail."""
        start, ends, positions = self.tail
        at = bisect_right(ends, self.recovery_point)
        if self.recovery_point < start or not at:
            return position, offset
        return positions[at], ends[at - 1]

    def _cut(self, number: int, end: int, position: int, problem: str) -> None:
        """End the log at `position` of the segment before `number`."""
        segment = self.segments[number - 1]
        if self.clean or end < self.recovery_point:
            raise self._corrupt(end, problem)
        dropped = self.segments[number:]
        size = segment.size - position + sum(one.size for one in dropped)
        self.cut = RecoveryCut(end, tuple(one.base for one in dropped), size, problem)
        truncation.drop(self.disk, self.path, dropped)
        del self.segments[number:]
        if position < segment.size:
            truncation.cut(self.disk, segment, position)

    def _begin_anew(self) -> Start:
        """Starts an empty log: all segments lie below the log start, which outlived the records
        behind it.
        """
        self.snapshots.keep_to(-1)
        truncation.drop(self.disk, self.path, self.segments)
        self.segments.clear()
        return self._begin_empty()

    def _begin_empty(self) -> Start:
        start = _empty(self.disk, self.path, self.log_start_offset, self.snapshots)
        for name in self._metadata():
            start.unsynced.derived_changed(name)
        start.epochs.changed = True
        start.cut = self.cut
        return start

    def _metadata(self) -> list[str]:
        """The path of partition.metadata, which ties the folder to its topic, if it exists."""
        name = files.PARTITION_METADATA
        return [f"{self.path}/{name}"] if name in self.names else []

    def _settle(self, first: int, end: int) -> Start:
        """Write what was built again and hand over."""
        disk = self.disk
        self._let_rest(first, end)
        active = self.segments[-1]
        index, _ = active.read_indexes(disk)
        saved = self.clean and index.written == len(index.offsets)
        with suppress(DiskFull):  # it has them in memory, and writes them with the next ones
            active.write_indexes(disk)
        transactions = active.stem + files.TXN_INDEX
        if self.clean and aborted.rewrite(disk, transactions, end):
            self.unsynced.derived_changed(transactions)  # what was held at the end was never there
        active.rest_file()
        active.file = disk.open_file(active.path, write=True)
        for segment, position, offset in self.doubtful:
            renew(disk, segment, position, offset, gaps=self.config.compact)
        metadata = self._metadata()
        if self.doubtful and not self.recovery_point and metadata:
            restore(disk, metadata[0])  # nor was its first sync seen to end
        self.snapshots.keep_to(end)
        self.epochs.cut_end(end + 1 if self.clean else end)
        # Without a file the epochs are read from the batches: an empty log needs none.
        is_empty = end == self.segments[0].base and not self.epochs_as_read
        self.epochs.changed = not is_empty and self.epochs.encode() != self.epochs_as_read
        if self.epochs.changed or not (is_empty or self.clean):
            self.epochs.keep_file(disk, self.path, self.unsynced)
        # Whoever wrote here may have died before its first sync; an orderly end syncs nothing of
        # an empty log.
        if is_empty or not self.clean:
            self.unsynced.folders_changed((self.path, self.path.rpartition("/")[0]))
            for name in (*metadata, *active.index_paths()):
                # There may have been no room for an index.
                if name.rpartition("/")[2] in self.names or disk.exists(name):
                    self.unsynced.derived_changed(name)
        if is_empty and metadata:  # whoever saw its first sync fail would not have it anew
            self.unsynced.metadata = (metadata[0], read_file(disk, metadata[0]))
        point = end if self.clean else self.recovery_point
        if point == end:
            self.unsynced.synced = self.unsynced.appended + active.size
        return Start(
            self.segments,
            end,
            max(self.log_start_offset, self.segments[0].base),
            point,
            self.snapshots,
            self.unsynced,
            self.producers,
            self.epochs,
            self.tail,
            self.since_index,
            HEADER.unpack(active.file.pread(HEADER_SIZE, 0))[8] if active.size else NO_TIMESTAMP,
            self.now_ms,
            saved and self.snapshots.offsets[-1:] == [end],
            self.cut,
        )

    def _let_rest(self, first: int, end: int) -> None:
        """Full segments: their indexes written if they were built again, closed if synced."""
        dirty = max(bisect_right(self.bases, self.recovery_point) - 1, 0)
        if self.clean or self.recovery_point >= end:
            dirty = len(self.segments)
        for number, segment in enumerate(self.segments[:-1]):
            if number >= first:
                assert segment.times is not None
                segment.times.append(segment.newest, segment.newest_offset - segment.base)
                segment.write_indexes(self.disk)
            if number >= dirty:
                segment.reader(self.disk)
                segment.read_indexes(self.disk)
                self.unsynced.rolled_over(segment)
            else:
                segment.rest()
