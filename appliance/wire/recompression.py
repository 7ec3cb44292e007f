"""A batch under another codec, as the topic setting compression.type asks for, in steps.

Opening megabytes and compressing them again takes up to half a second, so a step takes STEP bytes.
Caller: the I/O process, whose other partitions are served between two steps.
"""

import zlib
from collections.abc import Callable
from typing import Final, Protocol

from appliance.base.crc import crc32c
from appliance.wire import compression
from appliance.wire.batch import BatchWalk, LongWalk, Walk
from appliance.wire.batch_header import (
    ATTRIBUTES_AT,
    CODEC_MASK,
    CRC_AT,
    INT16,
    INT32,
    LENGTH_PREFIX,
    RECORDS_AT,
    UINT32,
    read_header,
)

STEP: Final = 1 << 20
"""Opened bytes of one step: gzip takes 20 to 40 ms for them, the other codecs less."""
WEIGHT: Final = 3
"""A byte that is compressed counts as so many more that are opened: what a turn has room for is
counted in these (`ioproc/requests/postponed.py`)."""

_LENGTH_AT: Final = 8


class Compressor(Protocol):
    """Compresses a stream by pieces."""

    def compress(self, data: bytes, /) -> bytes:
        """Returns the bytes of the compressed stream that are ready."""
        ...

    def flush(self) -> bytes:
        """Returns the end of the compressed stream."""
        ...


class Recompression:
    """The way of one checked batch to another codec. It refers to the batch's bytes. batch_walk:
    over the records of the batch, at its end, for its next check; None: that needed none."""

    __slots__ = ("_compressor", "_out", "_pieces", "batch_walk", "codec")

    def __init__(self, batch: memoryview, codec: int, batch_walk: BatchWalk | None) -> None:
        header = read_header(batch)
        self.codec = codec
        self._pieces = compression.pieces(header.codec, batch[RECORDS_AT:])
        self._compressor = make_compressor(codec)
        self._out = bytearray(batch[:RECORDS_AT])
        self.batch_walk = batch_walk

    def advance(self) -> bool:
        """Go on for about STEP bytes; True at the end. Raises PeerError as `compression.pieces`
        does."""
        done, out, compressor = 0, self._out, self._compressor
        for piece in self._pieces:
            out += compressor.compress(piece)
            done += len(piece)
            if done >= STEP:
                compression.OPENED[0] += WEIGHT * done
                return False
        out += compressor.flush()
        compression.OPENED[0] += WEIGHT * done
        return True

    def recompressed(self) -> bytearray:
        """The batch under the other codec, once `advance` was True."""
        out = self._out
        (attributes,) = INT16.unpack_from(out, ATTRIBUTES_AT)
        INT32.pack_into(out, _LENGTH_AT, len(out) - LENGTH_PREFIX)
        INT16.pack_into(out, ATTRIBUTES_AT, attributes & ~CODEC_MASK | self.codec)
        UINT32.pack_into(out, CRC_AT, crc32c(memoryview(out)[ATTRIBUTES_AT:]))
        return out


def find_batch_walk(walk: Walk | None) -> BatchWalk | None:
    """The walk over the records that has come to its end, for `validate`."""
    if isinstance(walk, Recompression):
        return walk.batch_walk
    assert walk is None or isinstance(walk, BatchWalk)
    return walk


def recompress(batch: memoryview, codec: int, walk: Walk | None = None) -> memoryview:
    """The same batch under another codec. walk: of a LongWalk that this, or `validate`, raised for
    the batch, at its end. Raises LongWalk where it takes longer than a step, else PeerError as
    `compression.pieces` does."""
    if isinstance(walk, Recompression) and walk.codec == codec:
        return memoryview(walk.recompressed())
    made = Recompression(batch, codec, find_batch_walk(walk))
    if not made.advance():
        raise LongWalk(made)
    return memoryview(made.recompressed())


def make_compressor(codec: int) -> Compressor:
    """A compressor of a new stream. codec: one that is known, 0 to 4."""
    return _MAKERS[codec]()


class _Plain:
    """Compresses nothing."""

    def compress(self, data: bytes, /) -> bytes:
        return data

    def flush(self) -> bytes:
        return b""


class _Snappy:
    """Blocks of 32 KiB, framed as snappy-java does."""

    def __init__(self) -> None:
        self._rest = b""
        self._is_begun = False

    def compress(self, data: bytes, /) -> bytes:
        return self._blocks(self._rest + data, is_last=False)

    def flush(self) -> bytes:
        return self._blocks(self._rest, is_last=True)

    def _blocks(self, data: bytes, *, is_last: bool) -> bytes:
        size = compression.XERIAL_BLOCK
        whole = len(data) if is_last else len(data) // size * size
        self._rest = data[whole:]
        out = b"" if self._is_begun else compression.XERIAL_HEADER
        self._is_begun = True
        return out + compression.snappy_blocks(data[:whole])


class _Lz4:
    """One frame of independent blocks."""

    def __init__(self) -> None:
        import lz4.frame

        self._frame = lz4.frame.LZ4FrameCompressor(block_linked=False)
        self._is_begun = False

    def compress(self, data: bytes, /) -> bytes:
        return self._begun() + bytes(self._frame.compress(data))

    def flush(self) -> bytes:
        return self._begun() + bytes(self._frame.flush())

    def _begun(self) -> bytes:
        if self._is_begun:
            return b""
        self._is_begun = True
        return bytes(self._frame.begin())


def _make_zstd() -> Compressor:
    import zstandard

    made: Compressor = zstandard.ZstdCompressor().compressobj()
    return made


_MAKERS: Final[tuple[Callable[[], Compressor], ...]] = (
    _Plain,
    lambda: zlib.compressobj(wbits=31),
    _Snappy,
    _Lz4,
    _make_zstd,
)
