"""Message sets of formats 0 and 1, written as plainly as they can be: what tests read back."""

import gzip
import struct
import zlib
from random import Random
from typing import NamedTuple

from appliance.wire.compression import GZIP, LZ4, SNAPPY, compress

APPEND_TIME = 8
CODECS = (GZIP, SNAPPY, LZ4)


class Plain(NamedTuple):
    """A message as a consumer sees it."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None


def sized(data: bytes | None) -> bytes:
    return struct.pack(">i", -1) if data is None else struct.pack(">i", len(data)) + data


def message(one: Plain, magic: int, attributes: int = 0) -> bytes:
    """A message, or the frame of a wrapper."""
    body = bytes((magic, attributes))
    if magic:
        body += struct.pack(">q", one.timestamp)
    body += sized(one.key) + sized(one.value)
    framed = struct.pack(">I", zlib.crc32(body)) + body
    return struct.pack(">qi", one.offset, len(framed)) + framed


def wrapper(inside: list[Plain], magic: int, codec: int, append_time: int | None = None) -> bytes:
    """A compressed set: relative offsets in format 1, absolute ones in format 0."""
    base = inside[0].offset if magic else 0
    body = b"".join(message(one._replace(offset=one.offset - base), magic) for one in inside)
    packed = gzip.compress(body) if codec == GZIP else compress(codec, body)
    if codec == LZ4 and not magic:
        packed = packed[:6] + bytes((packed[6] ^ 0x5A,)) + packed[7:]  # the old wrong checksum
    time = max(one.timestamp for one in inside) if append_time is None else append_time
    flags = codec | (0 if append_time is None else APPEND_TIME)
    return message(Plain(inside[-1].offset, time, None, packed), magic, flags)


def random_set(
    rng: Random, start: int, count: int, magic: int, *, gaps: bool = False
) -> tuple[bytes, list[Plain]]:
    """About `count` messages from offset `start` on, and what a consumer must see of them."""
    told: list[Plain] = []
    out = bytearray()
    offset = start
    while len(told) < count:
        some = []
        for _ in range(rng.randint(1, 5)):
            offset += rng.randint(0, 3) if gaps else 0
            time = 1_500_000_000_000 + rng.randint(0, 1000) if magic else -1
            key = rng.choice((None, b"", rng.randbytes(rng.randint(1, 9))))
            value = rng.choice((None, b"", rng.randbytes(30), b"same " * rng.randint(1, 300)))
            some.append(Plain(offset, time, key, value))
            offset += 1
        codec = rng.choice((0, *CODECS))
        late = rng.choice((None, 1_600_000_000_000 + offset)) if magic else None
        if late is not None:
            some = [one._replace(timestamp=late) for one in some]
        if codec:
            out += wrapper(some, magic, codec, late)
        else:
            flags = 0 if late is None else APPEND_TIME
            out += b"".join(message(one, magic, flags) for one in some)
        told += some
    return bytes(out), told
