"""Aborted transactions on their way from the home of a partition into the answer to a fetch: for
each the producer id and the first offset, int64 each, as a Fetch response of version 4 to 11 has
them.
"""

from collections.abc import Iterable
from struct import Struct
from typing import Final

from appliance.wire.varint import uvarint

_ONE: Final = Struct(">qq")
SIZE: Final = _ONE.size
"""Bytes of one of them."""


def encode(transactions: Iterable[tuple[int, int]]) -> bytes:
    """(producer id, first offset) of each."""
    return b"".join([_ONE.pack(producer, first) for producer, first in transactions])


def decode(payload: bytes) -> list[tuple[int, int]]:
    """Decodes the bytes of `encode`."""
    return [(producer, first) for producer, first in _ONE.iter_unpack(payload)]


def array(payload: bytes) -> bytes:
    """As an array of a Fetch response with a count of four bytes."""
    return (len(payload) // SIZE).to_bytes(4, "big") + payload


def compact_array(payload: bytes) -> bytes:
    """As one of version 12 and later: each with its (no) tagged fields."""
    rows = [payload[at : at + SIZE] + b"\0" for at in range(0, len(payload), SIZE)]
    return uvarint(len(rows) + 1) + b"".join(rows)
