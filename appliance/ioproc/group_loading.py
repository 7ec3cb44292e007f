"""Read a partition of `__consumer_offsets` from its beginning, in slices, while others are served.

Invariant: every record up to the high watermark comes once and in order; the generator ends when
that is the log end. Called by `coordinating`, a slice a turn.
"""

from collections.abc import Callable, Iterator
from typing import Final

from appliance.base.disk import File
from appliance.ioproc.partition import Partition
from appliance.logstore.files import LOG, stem
from appliance.wire.batch_header import HEADER_SIZE, read_header
from appliance.wire.records import iter_records

CHUNK: Final = 256 << 10

Replay = Callable[[bytes | None, bytes | None, int], None]
"""Takes key, value and offset of a record."""


def load(partition: Partition, replay: Replay) -> Iterator[None]:
    """Replay the partition; yields after each batch.

    Raises StorageFailed, and PeerError for a batch that cannot be opened.
    """
    log = partition.log
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
            for after in _batches(file, position, length, replay):
                offset = after
                yield
    finally:
        if file is not None:
            file.close()


def _batches(file: File, position: int, length: int, replay: Replay) -> Iterator[int]:
    """Replay the whole batches of a piece of a segment; gives the offset behind each of them."""
    data = memoryview(file.pread(length, position))
    at = 0
    while at + HEADER_SIZE <= len(data):
        header = read_header(data, at)
        if at + header.size > len(data):
            break
        if not header.is_control:
            for record in iter_records(data[at : at + header.size]):
                replay(record.key, record.value, record.offset)
        at += header.size
        yield header.last_offset + 1
    assert at, "the first batch of a range is whole"
