"""Producers of a partition on their way from its home into an answer of DescribeProducers: for each
the id (int64), epoch (int32), last sequence (int32), last timestamp (int64, ms), epoch of the
coordinator that ended its last transaction (int32), and where its open one began (int64); -1 where
there is none.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

Row = tuple[int, int, int, int, int, int]
"""Of one producer, in the order above."""

_ONE: Final = Struct(">qiiqiq")
SIZE: Final = _ONE.size
"""Bytes of one of them."""


def encode(rows: Iterable[Row]) -> bytes:
    """The bytes that `decode` takes."""
    return b"".join([_ONE.pack(*row) for row in rows])


def decode(payload: bytes) -> list[Row]:
    """What `encode` was given."""
    return list(_ONE.iter_unpack(payload))
