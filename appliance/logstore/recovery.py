"""Making a log and opening one again, after an orderly end, the death of a process or a power cut.

Invariant of an opened log: every batch in it is whole, nothing below the recovery point was
dropped, and what lies above it was held against the medium (`renewal`), because the one before may
have seen a sync fail. An invalid batch above the recovery point is a torn tail: the log ends before
it. One below it is corruption: nothing is changed and StorageFailed says where; the caller fences
the partition. Called by `Log.create` and `Log.open` only.
"""

import errno
from base64 import urlsafe_b64decode, urlsafe_b64encode
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from appliance.base.disk import Disk, read_file, write_file
from appliance.base.errors import DiskFull, StorageFailed
from appliance.base.ids import NO_TIMESTAMP
from appliance.logstore import files
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.indexes import INDEX_WRITE
from appliance.logstore.log_state import LogState
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.renewal import renew, restore
from appliance.logstore.scan import Found, Scan
from appliance.logstore.segment import Segment
from appliance.logstore.swap import finish_swaps
from appliance.wire.batch_header import HEADER, HEADER_SIZE, LENGTH_PREFIX, MAGIC

TAIL: Final = 4096
"""How many of the newest batches a log finds without reading, at least."""

_REWIND: Final = 1 << 20
"""Bytes before a snapshot that are read again: it has one batch per producer, duplicates are
looked for in five."""

Tail = tuple[list[int], list[int]]
"""Base offsets of batches and their positions."""


def create(log: LogState, topic_id: bytes) -> None:
    """Give an empty Log its folder and its first segment."""
    disk, path = log.disk, log.path
    if disk.exists(path):
        _clear_leftovers(disk, path)
    else:
        disk.mkdir(path)
    log.begin_segment(log.log_start_offset)
    log.folders_changed(path, path.rpartition("/")[0])
    # Durable with the first records: without any the folder can be made again from nothing.
    log.derived_changed(write_metadata(disk, path, topic_id, sync=False))


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


def write_metadata(disk: Disk, path: str, topic_id: bytes, *, sync: bool = True) -> str:
    """The file that ties a folder to its topic, as Kafka writes it: its path. Raises
    StorageFailed."""
    text = f"version: 0\ntopic_id: {urlsafe_b64encode(topic_id).decode().rstrip('=')}"
    name = f"{path}/{files.PARTITION_METADATA}"
    write_file(disk, name, text.encode(), sync=sync)
    return name


def read_topic_id(disk: Disk, path: str) -> bytes | None:
    """Topic id of a partition's folder; None when it has no sound partition.metadata. Raises
    StorageFailed."""
    name = f"{path}/{files.PARTITION_METADATA}"
    if not disk.exists(name):
        return None
    fields = dict(
        line.split(": ", 1)
        for line in read_file(disk, name).decode("latin-1").splitlines()
        if ": " in line
    )
    try:
        topic_id = urlsafe_b64decode(fields["topic_id"].strip() + "==")
    except (KeyError, ValueError):
        return None
    return topic_id if len(topic_id) == 16 else None


class Recovery:
    """One opening of one log."""

    def __init__(
        self, log: LogState, recovery_point: int, clean: bool, machine_lived: bool
    ) -> None:
        self.log = log
        self.disk = log.disk
        self.path = log.path
        self.recovery_point = recovery_point
        self.clean = clean
        self.machine_lived = machine_lived
        self.segments: list[Segment] = []
        self.bases: list[int] = []
        self.producers = ProducerStates()
        self.unsynced: list[Segment] = []
        self.doubtful: list[
            tuple[Segment, int, int]
        ] = []  # with position and offset where it begins
        self.first_timestamp = NO_TIMESTAMP
        self.tail: Tail = ([], [])
        self.since_index = 0
        self.epochs = LeaderEpochs()
        self.epochs_as_read = b""
        self.now_ms = 0
        self.saved = False  # an orderly end wrote all of the active segment's index

    def run(self, now_ms: int) -> None:
        """Find the end, repair what may be repaired, hand everything to the log. Raises
        StorageFailed."""
        log = self.log
        self.now_ms = now_ms
        self._list_files()
        if not self.segments:
            if self.recovery_point > log.log_start_offset:
                raise self._corrupt(log.log_start_offset, "there is no segment")
            self._begin_empty()
            return
        self._read_epochs()
        first, position, next_offset = self._start()
        self._read_producers(first, position)
        end = self._replay(first, position, next_offset)
        if end < self.recovery_point:
            raise self._corrupt(end, "the log ends")
        if end < log.log_start_offset:
            self._begin_anew()
        else:
            self._settle(first, end)

    def _corrupt(self, offset: int, text: str) -> StorageFailed:
        return StorageFailed(
            self.path,
            errno.EBADMSG,
            f"corrupt at offset {offset}, below the recovery point {self.recovery_point}: {text}; "
            "restore the partition's folder from a copy, or move it away to begin anew",
        )

    # What is there --------------------------------------------------------------------------------

    def _list_files(self) -> None:
        names = finish_swaps(self.disk, self.path)
        bases = [files.offset_of(name, files.LOG) for name in names if name.endswith(files.LOG)]
        self.bases = sorted(base for base in bases if base >= 0)
        known = set(self.bases)
        for name in names:
            stray = any(
                name.endswith(suffix) and files.offset_of(name, suffix) not in known
                for suffix in (files.INDEX, files.TIME_INDEX, files.TXN_INDEX)
            )
            if stray or name.endswith((files.DELETED, ".tmp")):
                self.disk.unlink(f"{self.path}/{name}")
        for base in self.bases:
            size = self.disk.size(f"{files.stem(self.path, base)}{files.LOG}")
            self.segments.append(Segment(self.path, base, size))
        offsets = [files.offset_of(name, files.SNAPSHOT) for name in names]
        self.log.snapshots.offsets = sorted(offset for offset in offsets if offset >= 0)

    def _read_epochs(self) -> None:
        path = f"{self.path}/{files.LEADER_EPOCHS}"
        if self.disk.exists(path):
            self.epochs_as_read = read_file(self.disk, path)
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

    def _trusted(self, segment: Segment, start: int, end: int) -> Iterator[list[Found]]:
        """Batches of a part of a segment whose headers alone are looked at."""
        scan = Scan(segment.reader(self.disk), start, end, segment.base, trust_position=end)
        yield from scan.chunks()
        if scan.problem:
            raise self._corrupt(scan.next_offset, scan.problem)

    def _entry(self, segment: Segment, count: int) -> tuple[int, int]:
        """Position and base offset of the batch that the last of `count` index entries names.

        The start of the segment when there is none or it names something else.
        """
        index, _ = segment.read_indexes(self.disk)
        if count:
            position, last = index.positions[count - 1], segment.base + index.offsets[count - 1]
            data = segment.reader(self.disk).pread(HEADER_SIZE, position)
            if len(data) == HEADER_SIZE:
                header = HEADER.unpack(data)
                if header[3] == MAGIC and header[0] + header[6] == last:
                    return position, header[0]
        return 0, segment.base

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
                # What was written last to the indexes may be torn; see LogState.indexes_changed.
                count = max(count - INDEX_WRITE, 0)
        position, next_offset = self._entry(segment, count)
        return number, position, next_offset

    def _read_producers(self, number: int, position: int) -> None:
        """Producer states as of the place where the replay begins."""
        snapshots = self.log.snapshots
        usable = snapshots.offsets
        if not self.clean:
            usable = [offset for offset in usable if offset <= self.recovery_point]
        begin = (0, 0)
        for offset in reversed(usable):
            states = snapshots.read(offset, self.now_ms)
            if states is not None:
                self.producers = states
                begin = self._place_before(offset, _REWIND if states.producers else 0)
                break
        first, start = begin
        for at in range(first, number + 1):
            segment = self.segments[at]
            end = position if at == number else segment.size
            for chunk in self._trusted(segment, start, end) if start < end else ():
                for _, header in chunk:
                    if header[9] >= 0:
                        self.producers.replay(header, self.now_ms)
            if at != number:
                segment.rest()
            start = 0

    def _place_before(self, offset: int, rewind: int) -> tuple[int, int]:
        """Segment number and position of a batch at least `rewind` bytes before `offset`, if there
        are as many."""
        number = bisect_right(self.bases, offset) - 1
        if rewind and number > 0 and self.bases[number] == offset:
            number -= 1
        if number < 0:
            return 0, 0
        segment = self.segments[number]
        index, _ = segment.read_indexes(self.disk)
        count = bisect_right(index.offsets, offset - segment.base)
        if rewind and count:
            count = bisect_right(index.positions, index.positions[count - 1] - rewind)
        return number, self._entry(segment, count)[0]

    # Step over the rest ---------------------------------------------------------------------------

    def _replay(self, first: int, position: int, next_offset: int) -> int:
        """Check and note every batch from there on, cut a torn tail off; returns the log end
        offset."""
        if not self.clean:
            self.epochs.cut_end(next_offset)
        number = first
        while number < len(self.segments):
            segment = self.segments[number]
            gap = segment.base - next_offset if number > first else 0
            if gap < 0 or (gap and not self.log.config.compact):
                text = f"segment {segment.base} does not follow offset {next_offset}"
                self._cut(number, next_offset, self.segments[number - 1].size, text)
                break
            scan = self._scan(number, position, max(next_offset, segment.base))
            self._note(segment, scan)
            next_offset, position = scan.next_offset, 0
            number += 1
            if scan.problem:
                self._cut(number, next_offset, scan.position, scan.problem)
                break
        return next_offset

    def _scan(self, number: int, position: int, next_offset: int) -> Scan:
        segment = self.segments[number]
        return Scan(
            segment.reader(self.disk),
            position,
            segment.size,
            next_offset,
            trust_offset=self.recovery_point,
            trust_position=segment.size if self.clean else 0,
            gaps=self.log.config.compact,
        )

    def _note(self, segment: Segment, scan: Scan) -> None:
        """Take what the batches say into indexes, producers, epochs and the tail."""
        index, times = segment.read_indexes(self.disk)
        base_offset = segment.base
        kept = bisect_right(index.positions, scan.position) if scan.position else 0
        index.keep(kept)
        times.keep_to(index.offsets[-1] if kept else -1)
        newest, newest_offset = times.newest()
        producers, epochs, epoch = self.producers, self.epochs, self.epochs.latest
        interval = self.log.config.index_interval_bytes
        offsets: list[int] = []
        positions: list[int] = []
        since = 0
        start = scan.position, scan.next_offset
        for chunk in scan.chunks():
            for position, header in chunk:
                base, length, batch_epoch, _, _, _, delta, _, timestamp, producer_id, _, _, _ = (
                    header
                )
                relative = base + delta - base_offset
                if timestamp > newest:
                    newest, newest_offset = timestamp, relative
                if since > interval:
                    index.append(relative, position)
                    times.append(newest, newest_offset)
                    since = 0
                since += length + LENGTH_PREFIX
                if batch_epoch > epoch:
                    epochs.assign(batch_epoch, base)
                    epoch = batch_epoch
                if producer_id >= 0:
                    producers.replay(header, self.now_ms)
                offsets.append(base)
                positions.append(position)
            del offsets[:-TAIL], positions[:-TAIL]
        segment.newest, segment.newest_offset = newest, base_offset + newest_offset
        self.tail = offsets, positions
        self.since_index = since
        if scan.next_offset > self.recovery_point and not self.clean and offsets:
            at = bisect_right(offsets, self.recovery_point) - 1
            begin = (positions[at], offsets[at]) if at >= 0 else start
            self.doubtful.append((segment, *begin))

    def _cut(self, number: int, end: int, position: int, problem: str) -> None:
        """End the log at `position` of the segment before `number`."""
        segment = self.segments[number - 1]
        if self.clean or end < self.recovery_point:
            raise self._corrupt(end, problem)
        if position < segment.size:
            segment.rest_file()
            file = self.disk.open(segment.path, write=True)
            segment.file = file
            file.truncate(position)
            file.sync()  # or the torn bytes come back under what is appended elsewhere
            segment.size = position
        self._drop(number)

    def _drop(self, number: int) -> None:
        """Remove the segments from `number` on, durably: they must never come back."""
        dropped = self.segments[number:]
        for segment in dropped:
            segment.rest()
            for suffix in files.SEGMENT_SUFFIXES:
                if self.disk.exists(segment.stem + suffix):
                    self.disk.unlink(segment.stem + suffix)
        if dropped:
            self.disk.sync_dir(self.path)
        del self.segments[number:]

    def _begin_anew(self) -> None:
        """What is left lies below the log start, which outlived the records behind it."""
        log = self.log
        self._drop(0)
        log.snapshots.keep_to(-1)
        self._begin_empty()

    def _begin_empty(self) -> None:
        log = self.log
        log.begin_segment(log.log_start_offset)
        self._sync_names()
        log.epochs.changed = True

    def _settle(self, first: int, end: int) -> None:
        """Write what was built again and hand over."""
        log, disk = self.log, self.disk
        dirty = max(bisect_right(self.bases, self.recovery_point) - 1, 0)
        if self.clean or self.recovery_point >= end:
            dirty = len(self.segments)
        for number, segment in enumerate(self.segments[:-1]):
            if number >= first:
                assert segment.times is not None
                segment.times.append(segment.newest, segment.newest_offset - segment.base)
                segment.write_indexes(disk)
            if number >= dirty:
                segment.reader(disk)
                segment.read_indexes(disk)
                self.unsynced.append(segment)
            else:
                segment.rest()
        active = self.segments[-1]
        index, _ = active.read_indexes(disk)
        self.saved = self.clean and index.written == len(index.offsets)
        with suppress(DiskFull):  # it has them in memory, and writes them with the next ones
            active.write_indexes(disk)
        active.rest_file()
        active.file = disk.open(active.path, write=True)
        for segment, position, offset in self.doubtful:
            renew(disk, segment, position, offset, gaps=log.config.compact)
        name = f"{self.path}/{files.PARTITION_METADATA}"
        if self.doubtful and not self.recovery_point and disk.exists(name):
            restore(disk, name)  # nor was its first sync seen to end
        if active.size:
            self.first_timestamp = HEADER.unpack(active.file.pread(HEADER_SIZE, 0))[8]
        log.snapshots.keep_to(end)
        self.epochs.cut_end(end + 1 if self.clean else end)
        self.epochs.changed = self.epochs.encode() != self.epochs_as_read
        if not self.clean:  # whoever wrote here may have died before its first sync
            self._sync_names()
        log.resume(self, end)

    def _sync_names(self) -> None:
        """The folder, its name and what ties it to its topic reach the disk with the next flush."""
        name = f"{self.path}/{files.PARTITION_METADATA}"
        self.log.folders_changed(self.path, self.path.rpartition("/")[0])
        if self.disk.exists(name):
            self.log.derived_changed(name)
