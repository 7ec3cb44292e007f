"""The one place that opens and makes compressed bytes: gzip, snappy, lz4 frames, zstd.

Invariant: what comes out is bounded by `cap` whatever a stream says about itself, comes in pieces
of at most PIECE bytes, and no codec gets a window of more than 8 MiB. A stream
that is cut, damaged, followed by other bytes or bigger than the cap is PeerError(CORRUPT_MESSAGE).
Callers: batch validation, record readers, `build_batch`.
"""

import zlib
from collections.abc import Callable, Iterator
from functools import cache
from struct import Struct
from typing import Final

from appliance.base.errors import (
    CORRUPT_MESSAGE,
    UNSUPPORTED_COMPRESSION_TYPE,
    MalformedRequest,
    PeerError,
)
from appliance.wire.varint import read_uvarint

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4
NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
IDS: Final = {**{name: codec for codec, name in enumerate(NAMES)}, "uncompressed": NONE}

PIECE: Final = 1 << 18
"""Bytes opened at a time: a cache-sized piece; most batches fit one."""
OUTPUT_CAP: Final = 64 << 20
"""Bytes that one batch may open to unless the caller says otherwise."""
WINDOW_MAX: Final = 8 << 20
"""Largest zstd window: what RFC 8878 asks every decoder to support; level 19 uses as much."""

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = (
    _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
)  # version 1, readable by 1
XERIAL_BLOCK: Final = 32 << 10
_I32: Final = Struct(">i")
_ZSTD_FRAME: Final = Struct("<IB")
_ZSTD_MAGIC: Final = 0xFD2FB528
_ZSTD_SKIPPABLE: Final = 0x184D2A5
_SNAPPY_RATIO: Final = 22
"""A snappy copy of 3 bytes makes at most 64: a stated length beyond this ratio cannot be true."""

Stream = bytes | memoryview

OPENED: Final = [0]
"""Bytes that have come out of all streams in this process."""


def decompress(codec: int, data: Stream, cap: int = OUTPUT_CAP) -> bytes:
    """All of `data` opened, at most `cap` bytes. Raises PeerError as `pieces` does."""
    return b"".join(pieces(codec, data, cap))


def pieces(codec: int, data: Stream, cap: int = OUTPUT_CAP) -> Iterator[bytes]:
    """Open `data` piece by piece, none of them empty.

    codec: attribute bits 0-2 of a batch. cap: bytes that may come out in all.
    Raises PeerError(CORRUPT_MESSAGE), and PeerError(UNSUPPORTED_COMPRESSION_TYPE) for codecs 5-7.
    """
    total = 0
    opened = _opener(codec)(data)
    if codec and not len(data):
        raise _corrupt(codec, "is empty")
    while True:
        try:
            piece = next(opened, None)
        except PeerError:
            raise
        except _codec_errors(codec) as cause:
            raise _corrupt(codec, f"cannot be opened: {cause}") from cause
        if piece is None:
            return
        total += len(piece)
        OPENED[0] += len(piece)
        if total > cap:
            raise _corrupt(codec, f"opens to more than {cap} bytes; send smaller batches")
        if len(piece) <= PIECE:
            yield piece
        else:  # a block of snappy
            for at in range(0, len(piece), PIECE):
                yield piece[at : at + PIECE]


def compress(codec: int, data: Stream) -> bytes:
    """`data` in the form that Kafka's clients write, at the library's default level."""
    if codec == GZIP:
        maker = zlib.compressobj(wbits=31)
        return maker.compress(data) + maker.flush()
    if codec == SNAPPY:
        return _make_snappy(data)
    if codec == LZ4:
        import lz4.frame

        return bytes(lz4.frame.compress(data, block_linked=False, store_size=False))
    if codec == ZSTD:
        import zstandard

        return bytes(zstandard.ZstdCompressor().compress(data))
    assert codec == NONE, codec
    return bytes(data)


def _opener(codec: int) -> Callable[[Stream], Iterator[bytes]]:
    if not 0 <= codec < len(_OPENERS):
        raise PeerError(
            UNSUPPORTED_COMPRESSION_TYPE,
            f"compression codec {codec} is not known; use none, gzip, snappy, lz4 or zstd (0-4)",
        )
    return _OPENERS[codec]


def _corrupt(codec: int, text: str) -> PeerError:
    return PeerError(CORRUPT_MESSAGE, f"the {NAMES[codec]} stream of the record batch {text}")


def _open_none(data: Stream) -> Iterator[bytes]:
    if len(data):
        yield bytes(data)


def _open_gzip(data: Stream) -> Iterator[bytes]:
    opener = zlib.decompressobj(wbits=31)
    rest: Stream = data
    while not opener.eof:
        piece = opener.decompress(rest, PIECE)
        rest = opener.unconsumed_tail
        if piece:
            yield piece
        elif not rest and not opener.eof:
            raise _corrupt(GZIP, "ends too early")
    if opener.unused_data:
        raise _corrupt(GZIP, f"is followed by {len(opener.unused_data)} other bytes")


def _open_lz4(data: Stream) -> Iterator[bytes]:
    import lz4.frame

    opener = lz4.frame.LZ4FrameDecompressor()
    rest: Stream = data
    while not opener.eof:
        piece = opener.decompress(rest, PIECE)
        rest = b""
        if piece:
            yield piece
        elif opener.needs_input and not opener.eof:
            raise _corrupt(LZ4, "ends too early")
    if opener.unused_data:
        raise _corrupt(LZ4, f"is followed by {len(opener.unused_data)} other bytes")


def _open_zstd(data: Stream) -> Iterator[bytes]:
    import zstandard

    # The reader takes a cut stream for a finished one, so the frames are measured first.
    if _zstd_length(data) != len(data):
        raise _corrupt(ZSTD, "ends too early")
    opener = zstandard.ZstdDecompressor(max_window_size=WINDOW_MAX)
    read = opener.stream_reader(data, read_across_frames=True).read
    while piece := read(PIECE):
        yield piece


def _zstd_length(data: Stream) -> int:
    """Bytes that the frames in `data` need (RFC 8878, 3.1.1 and 3.1.2); too many if it is cut."""
    position, end = 0, len(data)
    while position < end:
        if end - position < 9:
            return end + 1
        magic, descriptor = _ZSTD_FRAME.unpack_from(data, position)
        if magic >> 4 == _ZSTD_SKIPPABLE:
            position += 8 + int.from_bytes(data[position + 4 : position + 8], "little")
            continue
        if magic != _ZSTD_MAGIC:
            raise _corrupt(ZSTD, f"has a frame that begins with {magic:#x}")
        single, size_code = descriptor >> 5 & 1, descriptor >> 6
        if not single:
            _check_window(data[position + 5])
        position += 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + (single, 2, 4, 8)[size_code]
        last = 0
        while not last:
            if end - position < 3:
                return end + 1
            head = data[position] | data[position + 1] << 8 | data[position + 2] << 16
            last = head & 1
            position += 3 + (1 if head >> 1 & 3 == 1 else head >> 3)
        position += 4 if descriptor & 4 else 0
    return position


def _check_window(descriptor: int) -> None:
    """Refused with a code that no client tries again on: the next attempt would be the same."""
    exponent, mantissa = descriptor >> 3, descriptor & 7
    window = (8 + mantissa) << (7 + exponent)
    if window > WINDOW_MAX:
        raise PeerError(
            UNSUPPORTED_COMPRESSION_TYPE,
            f"a zstd window of {window} bytes is larger than {WINDOW_MAX}; "
            "compress with level 19 or lower",
        )


def _open_snappy(data: Stream) -> Iterator[bytes]:
    """Blocks framed by snappy-java (Java, kafka-python), or one raw block (librdkafka)."""
    if bytes(data[:8]) != _XERIAL_MAGIC:
        yield _open_snappy_block(data)
        return
    position, end = len(XERIAL_HEADER), len(data)
    if position > end:
        raise _corrupt(SNAPPY, "ends inside its header")
    while position < end:
        if end - position < 4:
            raise _corrupt(SNAPPY, "ends inside a block length")
        (size,) = _I32.unpack_from(data, position)
        position += 4
        if not 0 < size <= end - position:
            raise _corrupt(SNAPPY, f"names a block of {size} bytes, {end - position} remain")
        yield _open_snappy_block(data[position : position + size])
        position += size


def _open_snappy_block(block: Stream) -> bytes:
    import snappy

    # The library makes room for the length that a block states, so that is looked at first.
    view = memoryview(block)
    try:
        stated, _ = read_uvarint(view, 0, len(view))
    except MalformedRequest:
        raise _corrupt(SNAPPY, "has a block without its length") from None
    if stated > len(block) * _SNAPPY_RATIO:
        raise _corrupt(SNAPPY, f"states {stated} bytes for a block of {len(block)}")
    if stated > OUTPUT_CAP:
        raise _corrupt(SNAPPY, f"opens to more than {OUTPUT_CAP} bytes; send smaller batches")
    opened: bytes = snappy.uncompress(block)
    assert len(opened) == stated, (len(opened), stated)
    return opened


def _make_snappy(data: Stream) -> bytes:
    return XERIAL_HEADER + snappy_blocks(data)


def snappy_blocks(data: Stream) -> bytes:
    """`data` in blocks as snappy-java frames them, without its header."""
    import snappy

    out = bytearray()
    for position in range(0, len(data), XERIAL_BLOCK):
        block = bytes(snappy.compress(data[position : position + XERIAL_BLOCK]))
        out += _I32.pack(len(block))
        out += block
    return bytes(out)


@cache
def _codec_errors(codec: int) -> tuple[type[Exception], ...]:
    """The exceptions of the codec's library for bytes that it cannot decompress."""
    if codec == GZIP:
        return (zlib.error,)
    if codec == SNAPPY:
        import snappy

        return (snappy.UncompressError,)
    if codec == LZ4:
        return (RuntimeError,)
    if codec == ZSTD:
        import zstandard

        return (zstandard.ZstdError,)
    return ()


_OPENERS: Final[tuple[Callable[[Stream], Iterator[bytes]], ...]] = (
    _open_none,
    _open_gzip,
    _open_snappy,
    _open_lz4,
    _open_zstd,
)
