"""Where the records of an opened batch lie and what their keys are: all that compaction looks at.

Invariant: `starts` and `stops` of what comes out tile the bytes, in order. The cost is per record
(0.5 µs), so numbers of one byte are read in place. Caller: `logstore/compaction.py`, with batches
whose checksum holds.
"""

from appliance.base.errors import INVALID_RECORD, PeerError
from appliance.wire.record_walk import read_svarint
from appliance.wire.varint import svarint

Place = tuple[int, int, int, bytes | None, bool]
"""(start, stop, delta, key, has value) of one record in the bytes of an opened batch. start, stop:
its place, length included. delta: its offset less the batch's base offset. key: None for none."""


def places(data: bytes, count: int) -> list[Place]:
    """Every record of an opened batch. Raises PeerError(INVALID_RECORD) unless they fill it."""
    found: list[Place] = []
    note = found.append
    at, end = 0, len(data)
    try:
        for _ in range(count):
            start = at
            number = data[at]
            if number < 128:
                length, at = number >> 1, at + 1
            else:
                length, at = read_svarint(data, at, end)
            stop = at + length
            at += 1  # the attributes
            while data[at] > 127:
                at += 1
            at += 1  # the timestamp delta
            number = data[at]
            if number < 128:
                delta, at = number >> 1, at + 1
            else:
                delta, at = read_svarint(data, at, end)
            number = data[at]
            if number < 128:
                size, at = (number >> 1) ^ -(number & 1), at + 1
            else:
                size, at = read_svarint(data, at, end)
            if size < 0:
                key = None
            else:
                key = data[at : at + size]
                at += size
            note((start, stop, delta, key, not data[at] & 1))  # odd: negative, so there is none
            at = stop
    except IndexError:
        raise PeerError(INVALID_RECORD, f"record batch: it ends before {count} records") from None
    if at != end:
        raise PeerError(INVALID_RECORD, f"record batch: {end - at} bytes follow its records")
    return found


def timestamp_delta(data: bytes, place: Place) -> int:
    """The timestamp of a record less the batch's base timestamp, ms."""
    start, stop, *_ = place
    _, at = read_svarint(data, start, stop)
    return read_svarint(data, at + 1, stop, 10)[0]


def moved_in_time(data: bytes, place: Place, shift: int) -> bytes:
    """A record as it reads when the base timestamp of its batch is `shift` ms earlier."""
    start, stop, *_ = place
    _, at = read_svarint(data, start, stop)
    delta, after = read_svarint(data, at + 1, stop, 10)
    moved = data[at : at + 1] + svarint(delta + shift) + data[after:stop]
    return svarint(len(moved)) + moved
