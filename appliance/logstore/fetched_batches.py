"""Validates a leader's fetch response before a follower appends it.

Invariant: what comes out are whole batches of format 2 whose CRC32C is right, in the order of their
offsets and leader epochs, behind the end of the log, and of no epoch after the leader's own.
Called by `PartitionLog.follow`.
"""

from appliance.base.crc import crc32c
from appliance.base.errors import (
    CORRUPT_MESSAGE,
    FENCED_LEADER_EPOCH,
    OFFSET_OUT_OF_RANGE,
    PeerError,
)
from appliance.wire.batch_header import (
    ATTRIBUTES_AT,
    HEADER_SIZE,
    LENGTH_PREFIX,
    MAGIC,
    BatchHeader,
    read_header,
)


def batches(
    data: memoryview, end_offset: int, epoch: int, leader_epoch: int
) -> list[tuple[memoryview, BatchHeader]]:
    """The whole batches of `data`, which the leader may have cut anywhere, with their headers.

    end_offset, epoch: log end and newest leader epoch of the follower. leader_epoch: in which it
    asked. Raises PeerError: CORRUPT_MESSAGE for what is no sound batch, OFFSET_OUT_OF_RANGE for
    offsets and FENCED_LEADER_EPOCH for an epoch that would go backwards. Then none of them is to be
    taken. The CRC32C does not cover a batch's epoch: one that no leader had yet would have every
    later fetch refused as divergent (KAFKA-18723).
    """
    found: list[tuple[memoryview, BatchHeader]] = []
    at = 0
    while len(data) - at >= HEADER_SIZE:
        header = read_header(data, at)
        base, length, batch_epoch, magic, crc, _, last_delta = header[:7]
        size = length + LENGTH_PREFIX
        if size < HEADER_SIZE or magic != MAGIC or last_delta < 0:
            raise PeerError(
                CORRUPT_MESSAGE,
                f"there is no batch of format 2 at byte {at} of the leader's answer "
                f"(magic {magic}, length {length}); fetch again from offset {end_offset}",
            )
        if size > len(data) - at:
            break
        batch = data[at : at + size]
        if crc32c(batch[ATTRIBUTES_AT:]) != crc:
            raise PeerError(
                CORRUPT_MESSAGE,
                f"the CRC32C of the batch at offset {base} does not match its bytes; "
                f"fetch again from offset {end_offset}",
            )
        if base < end_offset:
            raise PeerError(
                OFFSET_OUT_OF_RANGE,
                f"the batch at offset {base} lies before the log end {end_offset}: "
                "truncate the log to where leader and follower part, or fetch from the log end",
            )
        if not 0 <= batch_epoch <= leader_epoch:
            raise PeerError(
                CORRUPT_MESSAGE,
                f"the batch at offset {base} has leader epoch {batch_epoch}, and its leader is in "
                f"epoch {leader_epoch}; fetch again from offset {end_offset}",
            )
        if batch_epoch < epoch:
            raise PeerError(
                FENCED_LEADER_EPOCH,
                f"the batch at offset {base} has leader epoch {batch_epoch}, before it came "
                f"{epoch}: truncate the log to where leader and follower part",
            )
        found.append((batch, header))
        end_offset, epoch = base + last_delta + 1, batch_epoch
        at += size
    return found
