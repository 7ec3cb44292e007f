"""Rebuilds from the batches of a log the state kept beside them: indexes, the newest timestamp,
leader epochs, producers and their transactions.

An opening learns it of what no file knows yet, a truncation of what is left. Called by `recovery`
and by `truncation`.
"""

from bisect import bisect_right
from collections.abc import Callable
from typing import Final, NamedTuple

from appliance.base.disk import Disk, File
from appliance.base.errors import StorageFailed
from appliance.logstore.aborted import Aborted
from appliance.logstore.active import TAIL, Tail
from appliance.logstore.epochs import LeaderEpochs
from appliance.logstore.producer_snapshot import ProducerSnapshots
from appliance.logstore.producer_state import ProducerStates
from appliance.logstore.scan import HeaderFields, Scan
from appliance.logstore.segment import Segment
from appliance.wire import markers
from appliance.wire.batch_header import CONTROL_BIT, LENGTH_PREFIX

_REWIND: Final = 1 << 20
"""Bytes before a snapshot that are read again: it has one batch per producer, duplicates are
looked for in five."""

Corrupt = Callable[[int, str], StorageFailed]
"""(offset, what is wrong there): what to raise."""


class ReplayedBatches(NamedTuple):
    """tail: the newest batches that were stepped over. since_index: bytes of batches since the last
    index entry. aborted: the transactions that markers among them aborted."""

    tail: Tail
    since_index: int
    aborted: list[Aborted]


class Replay:
    """producers, epochs: are brought up to date. interval: bytes between two index entries."""

    __slots__ = ("_interval", "_now_ms", "epochs", "producers")

    def __init__(
        self, producers: ProducerStates, epochs: LeaderEpochs, interval: int, now_ms: int
    ) -> None:
        self.producers = producers
        self.epochs = epochs
        self._interval = interval
        self._now_ms = now_ms

    def replay_scan(self, segment: Segment, scan: Scan) -> ReplayedBatches:
        """Step over what `scan` finds, which begins with the batch that the last usable index entry
        names; later entries go and are made again. Raises StorageFailed."""
        index, times = segment.index, segment.times
        assert index is not None and times is not None
        base_offset = segment.base
        kept = bisect_right(index.positions, scan.position) if scan.position else 0
        index.keep_entries(kept)
        times.keep_to(index.offsets[-1] if kept else -1)
        newest, newest_offset = times.newest()
        producers, epochs, epoch = self.producers, self.epochs, self.epochs.latest
        interval, now_ms = self._interval, self._now_ms
        start = scan.next_offset
        ends: list[int] = []
        positions: list[int] = []
        aborted: list[Aborted] = []
        since = 0
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
                    ended = _replay(producers, header, scan.file, position, now_ms)
                    if ended is not None:
                        aborted.append(ended)
                ends.append(base + delta + 1)
                positions.append(position)
            if len(ends) > TAIL:
                start = ends[-TAIL - 1]
                del ends[:-TAIL], positions[:-TAIL]
        segment.newest, segment.newest_offset = newest, base_offset + newest_offset
        return ReplayedBatches((start, ends, positions), since, aborted)


def _replay(
    states: ProducerStates, header: HeaderFields, file: File, position: int, now_ms: int
) -> Aborted | None:
    """A batch of a producer, which may be part of the state already; what it aborted. Raises
    StorageFailed."""
    if not header[5] & CONTROL_BIT:
        states.replay(header, now_ms)
        return None
    marker = markers.read(file.pread(header[1] + LENGTH_PREFIX, position))
    return states.end_transaction(header, header[0], now_ms, marker)


def producers_at(
    disk: Disk,
    segments: list[Segment],
    snapshots: ProducerSnapshots,
    limit: int,
    place: tuple[int, int],
    now_ms: int,
    corrupt: Corrupt,
) -> ProducerStates:
    """Producer states as of a place: segment number and position.

    From the newest sound snapshot up to the offset `limit`, and the batches from a little before it
    on. Segments that were at rest are so again. Raises StorageFailed, and what `corrupt` makes of a
    batch that cannot be stepped over.
    """
    number, position = place
    states = ProducerStates()
    asleep = [segment.file is None for segment in segments]
    first, start = 0, 0
    for offset in reversed(snapshots.offsets):
        read = snapshots.read(offset, now_ms) if offset <= limit else None
        if read is not None:
            states = read
            first, start = _place_before(disk, segments, offset, _REWIND if read.producers else 0)
            break
    for at in range(first, number + 1):
        segment = segments[at]
        end = position if at == number else segment.size
        if start < end:
            scan = Scan(segment.reader(disk), start, end, segment.base, trust_position=end)
            for chunk in scan.chunks():
                for at_byte, header in chunk:
                    if header[9] >= 0:
                        _replay(states, header, scan.file, at_byte, now_ms)
            if scan.problem:
                raise corrupt(scan.next_offset, scan.problem)
        if asleep[at] and at != number:
            segment.rest()
        start = 0
    return states


def _place_before(disk: Disk, segments: list[Segment], offset: int, rewind: int) -> tuple[int, int]:
    """Segment number and position of a batch at least `rewind` bytes before `offset`, if there are
    as many."""
    number = bisect_right([segment.base for segment in segments], offset) - 1
    if number < 0:
        return 0, 0
    index, _ = segments[number].read_indexes(disk)
    count = bisect_right(index.offsets, offset - segments[number].base)
    position = index.positions[count - 1] if count else 0
    while position < rewind and number > 0:  # segments may be small
        rewind -= position
        number -= 1
        position = segments[number].size
    index, _ = segments[number].read_indexes(disk)
    found = segments[number].entry(disk, bisect_right(index.positions, max(position - rewind, 0)))
    return number, found[0] if found else 0
