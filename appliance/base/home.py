"""Which ioproc owns a partition: decided by everyone alone, from its identity."""

from zlib import crc32


def home_of(topic_id: bytes, partition: int, ioprocs: int) -> int:
    """The index of the owning ioproc, 0 ≤ index < ioprocs; stable as long as their number is."""
    return crc32(topic_id + partition.to_bytes(4, "big")) % ioprocs
