"""Which ioproc owns a partition: decided by everyone alone, from its identity."""

from zlib import crc32


def home_of(topic_id: bytes, partition: int, ioprocs: int) -> int:
    """The index of the owning ioproc, 0 ≤ index < ioprocs; stable as long as their number is. The
    partitions of a topic go round: a hash of them has its lowest bits from few of theirs."""
    return (crc32(topic_id) + partition) % ioprocs
