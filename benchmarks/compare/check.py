"""Is what was produced what can be consumed? Reads a topic back and counts.

Every batch's CRC32C is checked and offsets must go on without a gap. Called by loads after their
clock has stopped.
"""

from struct import unpack_from

import crc32c

from benchmarks import requests
from benchmarks.fetch import Data, FetchRow, Reader
from benchmarks.peer import Peer, WrongAnswer

MOST_BYTES = 64 << 20
_AT_ONCE = 4 << 20


def end_offset(peer: Peer, topic: str, partition: int) -> int:
    """The log end of a partition. Raises WrongAnswer."""
    with peer.connect() as wire:
        answer = wire.call(requests.end_offset(topic, partition))
    code, _, end = requests.END_FIELDS.unpack_from(answer, len(answer) - requests.END_FIELDS.size)
    if code:
        raise WrongAnswer(f"ListOffsets of {topic}-{partition} answered error {code}")
    return int(end)


def whole(peer: Peer, topic: str, partitions: int, records: int) -> None:
    """The partitions hold exactly `records`, and their first MOST_BYTES read back sound.

    Raises WrongAnswer.
    """
    ends = [end_offset(peer, topic, partition) for partition in range(partitions)]
    if sum(ends) != records:
        raise WrongAnswer(f"{records:,} records were acknowledged, the log has {sum(ends):,}")
    left = MOST_BYTES
    for partition, end in enumerate(ends):
        if end and left > 0:
            left -= _read(peer, topic, partition, end, left)


def _read(peer: Peer, topic: str, partition: int, end: int, most: int) -> int:
    """Read from offset 0 to the end or for `most` bytes. Returns the bytes read."""
    row, offset, total = FetchRow(_AT_ONCE, version=12), 0, 0
    wire = peer.connect(_AT_ONCE + (2 << 20))
    try:
        reader = Reader(wire, row, Data(topic, 1, 0, 0), partition)
        while offset < end and total < most:
            reader.offset = offset
            length = reader.once()
            offset = batches(reader.last(length), offset)
            total += length
    finally:
        wire.close()
    return total


def batches(data: memoryview, offset: int) -> int:
    """Step over whole batches from `offset` on. Returns the offset behind. Raises WrongAnswer."""
    at = 0
    while at + 61 <= len(data):
        base, length = unpack_from(">qi", data, at)
        if at + 12 + length > len(data):
            break
        (crc,) = unpack_from(">I", data, at + 17)
        (delta,) = unpack_from(">i", data, at + 23)
        if base != offset:
            raise WrongAnswer(f"offset {offset} should be next, {base} is")
        if crc32c.crc32c(data[at + 21 : at + 12 + length]) != crc:
            raise WrongAnswer(f"the batch at offset {base} is damaged")
        offset, at = base + delta + 1, at + 12 + length
    if not at:
        raise WrongAnswer(f"no whole batch at offset {offset}")
    return offset
