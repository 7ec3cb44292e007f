"""Read a coordinator's partition from its beginning, in slices, while others are served.

Invariant: every record up to the high watermark comes once and in order, and so does every marker
of a transaction; the generator ends when that is the log end. What a new leader has in its log and
its followers have not is waited for: a decision that could still be lost must not be carried out.
Called by `host`, a slice a turn.
"""

import traceback
from collections import deque
from collections.abc import Iterator
from typing import Final, NamedTuple, Protocol

from appliance.base.clock import Clock
from appliance.base.disk import File
from appliance.base.errors import PeerError, StorageFailed
from appliance.coordinators.runtime.shard import NO_PRODUCER
from appliance.ioproc.coordination.coordinator_partition import LedCoordinator
from appliance.ioproc.partitions.partition import Partition
from appliance.logstore.files import LOG, stem
from appliance.shell.log import ERROR
from appliance.shell.log import Log as EventLog
from appliance.wire import markers
from appliance.wire.batch_header import HEADER_SIZE, BatchHeader, read_header
from appliance.wire.records import iter_records

CHUNK: Final = 256 << 10
FIRST_REST_MS: Final = 1
LONGEST_REST_MS: Final = 64
"""How long all are left alone that wait for their followers: twice as long each time."""


class Replayed(Protocol):
    """The receiver of a log's records."""

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int) -> None:
        """A record; producer_id: of its transaction, or NO_PRODUCER."""

    def ended(self, producer_id: int, *, committed: bool) -> None:
        """The marker of a transaction."""


def load(partition: Partition, replayed: Replayed) -> Iterator[bool]:
    """Replay the partition; yields after each batch, False: what follows is not committed yet.

    Raises StorageFailed, and PeerError for a batch that cannot be opened.
    """
    log = partition.log
    offset = log.log_start_offset
    at, file = (-1, -1), None
    try:
        while offset < log.end_offset:
            found = log.locate(offset, CHUNK, partition.high_watermark)
            if found is None:
                if partition.high_watermark == log.end_offset:
                    return  # of a compacted log the end may be missing
                yield False
                continue
            segment, position, length, _ = found
            if file is None or (segment, log.layout) != at:
                if file is not None:
                    file.close()
                at, file = (segment, log.layout), log.disk.open_file(stem(log.path, segment) + LOG)
            for after in _batches(file, position, length, replayed):
                offset = after
                yield True
    finally:
        if file is not None:
            file.close()


def _take(replayed: Replayed, header: BatchHeader, batch: memoryview) -> None:
    if header.is_control:
        marker = markers.read(batch)
        if marker is not None:
            replayed.ended(header.producer_id, committed=marker.committed)
        return
    producer_id = header.producer_id if header.is_transactional else NO_PRODUCER
    for offset, _, key, value, _ in iter_records(batch):
        replayed.replay(key, value, offset, producer_id)


def _batches(file: File, position: int, length: int, replayed: Replayed) -> Iterator[int]:
    """Replay the whole batches of a piece of a segment; gives the offset behind each of them."""
    data = memoryview(file.pread(length, position))
    at = 0
    while at + HEADER_SIZE <= len(data):
        header = read_header(data, at)
        if at + header.size > len(data):
            break
        _take(replayed, header, data[at : at + header.size])
        at += header.size
        yield header.last_offset + 1
    assert at, "the first batch of a range is whole"


class LoadResult(NamedTuple):
    """The end of a loading: success, or the failure."""

    led: LedCoordinator
    failure: Exception | None

    def why(self) -> str:
        """Says why it failed: of an exception nobody expected where it was raised."""
        if isinstance(self.failure, PeerError):
            return self.failure.message
        return "".join(traceback.format_exception(self.failure)) if self.failure else ""


class Loading:
    """The partitions that are still to be read, the one that is read now first. pause_ms: for how
    long there is nothing to read."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.pause_ms = 0
        self.queue: deque[LedCoordinator] = deque()
        self._waits = False  # the one that was read last, for its followers
        self._rest_ms = 0

    def begin_load(self, led: LedCoordinator, replayed: Replayed) -> None:
        """Read it when those before it are read."""
        led.loading = load(led.partition, replayed)
        self.queue.append(led)

    def stop(self, led: LedCoordinator) -> None:
        """Read it no more."""
        if led.loading is not None:
            led.loading = None
            self.queue.remove(led)

    def hurry(self, led: LedCoordinator) -> None:
        """Somebody waits for it: it is read first."""
        if self.queue[0] is not led:
            self.queue.remove(led)
            self.queue.appendleft(led)

    def load_slice(self, slice_ns: int) -> list[LoadResult]:
        """Read for so long; those that ended."""
        clock, ended, queue = self._clock, [], self.queue
        until_ns = clock.monotonic_ns() + slice_ns
        waiting = 0
        while queue and waiting < len(queue) and clock.monotonic_ns() < until_ns:
            try:
                loaded = self.read(queue[0], until_ns)
            except Exception as bug:  # it is not served here, and told by whoever asked for it
                led = queue.popleft()
                led.loading = None
                loaded = LoadResult(led, bug)
            if loaded is not None:
                ended.append(loaded)
            elif self._waits:
                queue.rotate(-1)
                waiting += 1
            else:
                waiting = 0
        self.pause_ms = 0
        if queue and waiting == len(queue):
            self._rest_ms = min(2 * self._rest_ms or FIRST_REST_MS, LONGEST_REST_MS)
            self.pause_ms = self._rest_ms
        else:
            self._rest_ms = 0
        return ended

    def read(self, led: LedCoordinator, until_ns: int) -> LoadResult | None:
        """Read one of them until then, a batch at least; None: there is more."""
        assert led.loading is not None
        failure: Exception | None = None
        self._waits = False
        try:
            for moved in led.loading:
                if not moved:
                    self._waits = True
                    return None
                if self._clock.monotonic_ns() >= until_ns:
                    return None
        except (StorageFailed, PeerError) as why:
            failure = why
        self.stop(led)
        return LoadResult(led, failure)


class Loads:
    """A shard that is loaded; what is no record is skipped and said in the log of events."""

    def __init__(self, led: LedCoordinator, skipped: str, events: EventLog) -> None:
        self._shard = led.shard
        self._where = str(led.partition)
        self._skipped = skipped
        self._events = events

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int) -> None:
        try:
            self._shard.replay(key, value, offset, producer_id)
        except PeerError as error:
            self._events.event_seldom(
                ERROR, self._skipped, partition=self._where, cause=error.message
            )

    def ended(self, producer_id: int, *, committed: bool) -> None:
        self._shard.ended(producer_id, committed=committed)
