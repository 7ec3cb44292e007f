"""Walks over the records inside a batch: do their lengths add up, is every one well formed?

Two walks. `walk_lengths` looks at nothing but each record's length (0.1 µs per record; runs of
equal lengths go at memory speed); it proves that the declared count of records fills the batch
exactly. `walk_fields` also reads every field of every record, and finds the oldest and the newest
timestamp. Both stop before a record that is not whole yet, so that compressed batches can be walked
piece by piece. A record that cannot be is PeerError(INVALID_RECORD). Callers: batch validation and
record readers.
"""

from collections.abc import Iterator
from typing import Final

from appliance.base.errors import INVALID_RECORD, PeerError

SMALLEST_RECORD: Final = 7
"""Bytes: length, attributes, timestamp delta, offset delta, null key, null value, no headers."""

HEADERS_MAX: Final = 1 << 16
"""Headers of one record: two bytes are one, and a record cannot be checked in steps."""

FIELDS_COST: Final = 32
"""Reading every field of a byte costs as much as stepping over so many."""

RECORD_COST: Final = 32
"""Stepping over a record of its own length costs as much as so many bytes of one record."""

FAR: Final = 1 << 61
"""Beyond every timestamp; compiled code compares it without an object."""

_PROBES: Final = 8
"""Runs shorter than RUN that a batch may show before we stop looking for runs in it."""
_RUN: Final = 16

Bytes = bytes | bytearray | memoryview


def walk_lengths(data: Bytes, position: int, end: int, count: int) -> tuple[int, int, int]:
    """Step over up to `count` whole records in data[position:end].

    Returns (position of the first one not stepped over, how many remain, bytes of the last one that
    was stepped over).
    """
    probes, width, previous, start = _PROBES, _RUN, 0, position
    try:
        while count:
            start = position
            first = data[position]
            if first < 128:
                stride = 1 + (first >> 1)
            elif (second := data[position + 1]) < 128:
                stride = (second << 6) + (first >> 1) - 62
            else:
                stride = _long_stride(data, position, end)
            if first & 1 or stride < SMALLEST_RECORD:
                raise _bad(f"a record states a length of {stride - 1} bytes, at least 6 are needed")
            position += stride
            if position > end:
                return start, count, previous
            count -= 1
            if stride == previous and probes and stride < 8194:
                run = min(count, width, (end - position) // stride)
                equal = _equal_lengths(data, position, stride, run)
                position += equal * stride
                count -= equal
                if equal == run:
                    width <<= 2
                elif equal < _RUN:
                    probes -= 1
            previous = stride
    except IndexError:
        return start, count, previous
    return position, count, previous


def _equal_lengths(data: Bytes, position: int, stride: int, run: int) -> int:
    """How many of the next `run` records state the same length as the record before them.

    Slices with a step pick the length bytes out at C speed.
    """
    if run < 2:
        return 0
    before, stop = position - stride, position + (run - 1) * stride + 1
    column = bytes(data[position:stop:stride])
    equal = run - len(column.lstrip(bytes((data[before],))))
    if data[before] > 127 and equal:
        stop = position + (equal - 1) * stride + 2
        column = bytes(data[position + 1 : stop : stride])
        equal -= len(column.lstrip(bytes((data[before + 1],))))
    return equal


def _long_stride(data: Bytes, position: int, end: int) -> int:
    length, after = read_svarint(data, position, min(end, len(data)))
    return after - position + length


def read_svarint(data: Bytes, position: int, end: int, width: int = 5) -> tuple[int, int]:
    """(value, next position) of a ZigZag varint of at most `width` bytes.

    Raises IndexError when data[position:end] ends first, PeerError when the varint does not end.
    """
    if position >= end:
        raise IndexError
    byte = data[position]
    if byte < 128:
        return (byte >> 1) ^ -(byte & 1), position + 1
    value, shift = byte & 127, 7
    for at in range(position + 1, position + width):
        if at >= end:
            raise IndexError
        byte = data[at]
        value |= (byte & 127) << shift
        if byte < 128:
            return (value >> 1) ^ -(value & 1), at + 1
        shift += 7
    raise _bad(f"a number in a record does not end within {width} bytes")


def walk_fields(
    data: Bytes, position: int, end: int, count: int, index: int, key_needed: bool
) -> tuple[int, int, int, int]:
    """As `walk_lengths`, and reads every field: offset deltas count up from `index`, sizes fit.

    Returns (position of the first one not stepped over, how many remain, smallest timestamp delta,
    largest one). Without a record these are FAR and -FAR.
    """
    start, low, high = position, FAR, -FAR
    for remaining in range(count, 0, -1):
        start = position
        try:
            length, position = read_svarint(data, position, end)
        except IndexError:
            return start, remaining, low, high
        if length < SMALLEST_RECORD - 1:
            raise _bad(f"a record states a length of {length} bytes, at least 6 are needed")
        stop = position + length
        if stop > end:
            return start, remaining, low, high
        time = _check_record(data, position, stop, index, key_needed)
        if time < low:
            low = time
        if time > high:
            high = time
        position = stop
        index += 1
    return position, 0, low, high


def _check_record(data: Bytes, position: int, stop: int, index: int, key_needed: bool) -> int:
    """Returns the timestamp delta. One-byte numbers are read in place: most are, and a call costs
    as much as the rest.

    Reads may go beyond `stop`, never beyond the data; the last comparison finds that out.
    """
    try:
        time, position = _check_deltas(data, position + 1, index)
        key = data[position]
        if key < 128:
            key, position = (key >> 1) ^ -(key & 1), position + 1
        else:
            key, position = read_svarint(data, position, stop)
        if key < 0:
            if key_needed:
                raise _bad(
                    f"record {index} has no key; a compacted topic needs one in every record"
                )
            key = 0
        value, position = read_svarint(data, position + key, stop)
        if value > 0:
            position += value
        if data[position]:
            position = _check_headers(data, position, stop, index)
        else:
            position += 1
    except IndexError:
        raise _bad(f"record {index} ends inside a field") from None
    if position != stop:
        raise _bad(f"record {index}: its fields and its length differ by {stop - position} bytes")
    return time


def check_ends(data: Bytes, position: int, end: int, index: int) -> int:
    """The timestamp delta of record `index`, which lies at data[position:end]; its offset delta
    must be `index`."""
    try:
        _, position = read_svarint(data, position, end)
        return _check_deltas(data, position + 1, index)[0]
    except IndexError:
        raise _bad(f"record {index} ends inside a field") from None


def _check_deltas(data: Bytes, position: int, index: int) -> tuple[int, int]:
    """Read the timestamp delta, hold the offset delta against `index`; (timestamp delta, position
    behind both)."""
    time = data[position]
    if time < 128:
        time, position = (time >> 1) ^ -(time & 1), position + 1
    else:
        time, position = read_svarint(data, position, len(data), 10)
    delta = data[position]
    if delta < 128:
        delta, position = (delta >> 1) ^ -(delta & 1), position + 1
    else:
        delta, position = read_svarint(data, position, len(data))
    if delta != index:
        raise _bad(f"record {index} has offset delta {delta}; deltas must count up from 0")
    return time, position


def _check_headers(data: Bytes, position: int, stop: int, index: int) -> int:
    headers, position = read_svarint(data, position, stop)
    if headers < 0 or headers * 2 > stop - position:
        raise _bad(f"record {index} states {headers} headers in {stop - position} bytes")
    if headers > HEADERS_MAX:
        raise _bad(f"record {index} has {headers} headers, at most {HEADERS_MAX} are taken")
    for _ in range(headers):
        size, position = read_svarint(data, position, stop)
        if size < 0:
            raise _bad(f"record {index} has a header without a key")
        size, position = read_svarint(data, position + size, stop)
        if size > 0:
            position += size
    return position


class PiecesWalk:
    """A walk over the records of a decompressed batch as its pieces come, in steps.

    fields: read every field; else lengths, and the deltas of the first record and of one in each
    piece. low, high: the smallest and the largest timestamp delta that were read. Holds one piece
    and one record.
    """

    __slots__ = ("_count", "_fields", "_held", "_key_needed", "_pieces", "_total", "high", "low")

    def __init__(self, pieces: Iterator[bytes], count: int, fields: bool, key_needed: bool) -> None:
        self._pieces = pieces
        self._count = self._total = count
        self._fields = fields
        self._key_needed = key_needed
        self._held = bytearray()
        self.low = FAR
        self.high = -FAR

    def advance(self, most: int) -> bool:
        """Walk on for about `most` bytes, fewer where every field is read; True at the end. Raises
        PeerError(INVALID_RECORD) unless the pieces hold exactly the declared records."""
        held, total, fields = self._held, self._total, self._fields
        count = self._count
        for piece in self._pieces:
            held += piece
            done = total - count
            if fields:
                at, count, lowest, highest = walk_fields(
                    held, 0, len(held), count, done, self._key_needed
                )
                most -= len(piece) + FIELDS_COST * at
            else:
                at, count, size = walk_lengths(held, 0, len(held), count)
                lowest, highest = FAR, -FAR
                if at:
                    lowest = highest = check_ends(held, at - size, at, total - count - 1)
                    if not done:
                        first = check_ends(held, 0, at, 0)
                        lowest, highest = min(first, lowest), max(first, highest)
                most -= len(piece) + RECORD_COST * (total - done - count)
            self.low, self.high = min(self.low, lowest), max(self.high, highest)
            del held[:at]
            if not count and held:
                break
            if most < 0 and (count or held):
                self._count = count
                return False
        if count or held:
            raise _bad(
                f"{total - count} of {total} declared records are there, {len(held)} bytes over"
            )
        return True


def find_record(
    pieces: Iterator[bytes], count: int, time: int, delta: int
) -> tuple[int, int] | None:
    """The first record with at least this timestamp delta and this offset delta, as both of its
    deltas; None: there is none. Reads no other field. Raises PeerError(INVALID_RECORD) for a record
    that ends too early."""
    held = bytearray()
    for piece in pieces:
        held += piece
        position, start, size = 0, 0, len(held)
        try:
            while count:
                start = position
                length, position = read_svarint(held, position, size)
                stop = position + length
                if length < SMALLEST_RECORD - 1:
                    raise _bad(f"a record states a length of {length} bytes, at least 6 are needed")
                if stop > size:
                    break
                found, position = read_svarint(held, position + 1, stop, 10)
                at, _ = read_svarint(held, position, stop)
                if found >= time and at >= delta:
                    return found, at
                position = start = stop
                count -= 1
        except IndexError:
            pass  # the rest of it is in the next piece
        if not count:
            return None
        del held[:start]
    raise _bad("the records end too early")


def _bad(text: str) -> PeerError:
    return PeerError(INVALID_RECORD, f"record batch: {text}")
