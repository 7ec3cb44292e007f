"""Read a coordinator's partition from its beginning, in slices, while others are served.

Invariant: every record up to the high watermark comes once and in order, those of a transaction
with the marker that commits it; the generator ends when that is the log end. Called by `host`, a
slice a turn.
"""

from collections import deque
from collections.abc import Callable, Iterator
from time import monotonic_ns
from typing import Final, NamedTuple

from appliance.base.disk import File
from appliance.base.errors import PeerError, StorageFailed
from appliance.coordinators.runtime.pending import Found, Pending
from appliance.ioproc.coordinating.led import Led
from appliance.ioproc.partition import Partition
from appliance.logstore.files import LOG, stem
from appliance.wire import markers
from appliance.wire.batch_header import HEADER_SIZE, BatchHeader, read_header
from appliance.wire.records import iter_records

CHUNK: Final = 256 << 10

Replay = Callable[[bytes | None, bytes | None, int], None]
"""Takes key, value and offset of a record."""


def load(partition: Partition, replay: Replay) -> Iterator[None]:
    """Replay the partition; yields after each batch.

    Raises StorageFailed, and PeerError for a batch that cannot be opened.
    """
    log = partition.log
    replayed = _Replayed(replay)
    offset = log.log_start_offset
    at, file = (-1, -1), None
    try:
        while offset < log.end_offset:
            found = log.locate(offset, CHUNK, partition.high_watermark)
            if found is None:
                yield  # what follows is not committed yet
                continue
            segment, position, length, _ = found
            if file is None or (segment, log.layout) != at:
                if file is not None:
                    file.close()
                at, file = (segment, log.layout), log.disk.open(stem(log.path, segment) + LOG)
            for after in _batches(file, position, length, replayed):
                offset = after
                yield
    finally:
        if file is not None:
            file.close()


class _Replayed:
    """What counts of the batches that come. An open transaction waits for its marker."""

    def __init__(self, replay: Replay) -> None:
        self._replay = replay
        self._pending = Pending()

    def take(self, header: BatchHeader, batch: memoryview) -> None:
        """The next batch."""
        if header.is_control:
            marker = markers.read(batch)
            if marker is not None:
                ended = self._pending.end(header.producer_id, committed=marker.committed)
                for record in ended:
                    self._one(record)
            return
        for offset, _, key, value, _ in iter_records(batch):
            if header.is_transactional:
                self._pending.hold(header.producer_id, (offset, key, value))
            else:
                if self._pending:
                    self._pending.counts(offset, key)
                self._one((offset, key, value))

    def _one(self, record: Found) -> None:
        offset, key, value = record
        self._replay(key, value, offset)


def _batches(file: File, position: int, length: int, replayed: _Replayed) -> Iterator[int]:
    """Replay the whole batches of a piece of a segment; gives the offset behind each of them."""
    data = memoryview(file.pread(length, position))
    at = 0
    while at + HEADER_SIZE <= len(data):
        header = read_header(data, at)
        if at + header.size > len(data):
            break
        replayed.take(header, data[at : at + header.size])
        at += header.size
        yield header.last_offset + 1
    assert at, "the first batch of a range is whole"


class Loaded(NamedTuple):
    """What became of a loading: it ended, or why it cannot."""

    led: Led
    failure: StorageFailed | PeerError | None


class Loading:
    """The partitions that are still to be read, the one that is read now first."""

    def __init__(self) -> None:
        self.queue: deque[Led] = deque()

    def begin(self, led: Led, replay: Replay) -> None:
        """Read it when those before it are read."""
        led.loading = load(led.partition, replay)
        self.queue.append(led)

    def stop(self, led: Led) -> None:
        """Read it no more."""
        if led.loading is not None:
            led.loading = None
            self.queue.remove(led)

    def hurry(self, led: Led) -> None:
        """Somebody waits for it: it is read first."""
        if self.queue[0] is not led:
            self.queue.remove(led)
            self.queue.appendleft(led)

    def go_on(self, until_ns: int) -> list[Loaded]:
        """Read until then; those that ended."""
        ended = []
        while self.queue and monotonic_ns() < until_ns:
            loaded = self.read(self.queue[0], until_ns)
            if loaded is not None:
                ended.append(loaded)
        return ended

    def read(self, led: Led, until_ns: int) -> Loaded | None:
        """Read one of them until then, a batch at least; None: there is more."""
        assert led.loading is not None
        failure: StorageFailed | PeerError | None = None
        try:
            for _ in led.loading:
                if monotonic_ns() >= until_ns:
                    return None
        except (StorageFailed, PeerError) as why:
            failure = why
        self.stop(led)
        return Loaded(led, failure)
