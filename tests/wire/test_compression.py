"""Codecs: what clients write is opened; bombs, cuts and garbage end early, in bounded memory."""

import io
import struct
import tracemalloc
import zlib

import lz4.frame
import pytest
import snappy
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from appliance.base.errors import (
    CORRUPT_MESSAGE,
    NONE,
    UNSUPPORTED_COMPRESSION_TYPE,
    PeerError,
)
from appliance.wire.compression import (
    GZIP,
    LZ4,
    SNAPPY,
    ZSTD,
    compress,
    decompress,
    pieces,
)
from appliance.wire.varint import read_uvarint

CODECS = [GZIP, SNAPPY, LZ4, ZSTD]
MIB = 1 << 20


@pytest.mark.parametrize("codec", [0, *CODECS])
@pytest.mark.parametrize("size", [0, 1, 70_000, 3 * MIB])
def test_round_trip(codec: int, size: int) -> None:
    data = bytes(range(251)) * (size // 251 + 1)
    data = data[:size]
    assert decompress(codec, memoryview(compress(codec, data))) == data


def test_raw_snappy_as_librdkafka_writes_it() -> None:
    data = b"one raw block " * 100
    assert decompress(SNAPPY, snappy.compress(data)) == data


def test_frames_of_other_writers_are_opened() -> None:
    data = b"linked blocks, stated sizes, checksums " * 9000
    assert decompress(LZ4, lz4.frame.compress(data, content_checksum=True, block_size=7)) == data
    streamed = zstandard.ZstdCompressor(level=19, write_checksum=True).compressobj()
    assert decompress(ZSTD, streamed.compress(data) + streamed.flush()) == data
    small = zstandard.ZstdCompressor().compress(b"a")
    assert decompress(ZSTD, small + small) == b"aa"


@pytest.mark.parametrize("codec", CODECS)
def test_every_cut_and_any_tail_is_corrupt(codec: int) -> None:
    data = bytes(range(256)) * 4
    stream = compress(codec, data)
    for size in range(len(stream)):
        if codec == SNAPPY and size == 16:
            continue  # a frame of no blocks is whole
        with pytest.raises(PeerError) as caught:
            decompress(codec, stream[:size])
        assert caught.value.code == CORRUPT_MESSAGE
    with pytest.raises(PeerError) as caught:
        decompress(codec, stream + b"\x01\x02\x03")
    assert caught.value.code == CORRUPT_MESSAGE


def bomb(codec: int, size: int) -> bytes:
    """A stream of `size` zero bytes, made in little memory."""
    zeros = bytes(MIB)
    out = io.BytesIO()
    if codec == GZIP:
        maker = zlib.compressobj(9, wbits=31)
        for _ in range(size // MIB):
            out.write(maker.compress(zeros))
        out.write(maker.flush())
    elif codec == LZ4:
        context = lz4.frame.LZ4FrameCompressor(block_size=7)
        out.write(context.begin())
        for _ in range(size // MIB):
            out.write(context.compress(zeros))
        out.write(context.flush())
    elif codec == ZSTD:
        maker = zstandard.ZstdCompressor(level=1).compressobj()
        for _ in range(size // MIB):
            out.write(maker.compress(zeros))
        out.write(maker.flush())
    else:
        block = snappy.compress(zeros)
        out.write(compress(SNAPPY, b"")[:16])
        out.write((struct.pack(">i", len(block)) + block) * (size // MIB))
    return out.getvalue()


@pytest.mark.parametrize("codec", CODECS)
def test_bomb_ends_at_the_cap(codec: int) -> None:
    stream = bomb(codec, 256 * MIB)
    tracemalloc.start()
    with pytest.raises(PeerError) as caught:
        sum(len(piece) for piece in pieces(codec, stream, 8 * MIB))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert caught.value.code == CORRUPT_MESSAGE
    assert "more than 8388608 bytes" in caught.value.message
    assert peak < 4 * MIB


def test_snappy_block_that_lies_about_its_size_is_refused_before_it_is_opened() -> None:
    lie = b"\xff\xff\xff\xff\x07" + bytes(20)  # 2^31 - 1 bytes in 20
    for stream in (lie, compress(SNAPPY, b"")[:16] + struct.pack(">i", len(lie)) + lie):
        with pytest.raises(PeerError) as caught:
            decompress(SNAPPY, stream)
        assert caught.value.code == CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [b"", b"\x80", b"\xff" * 5, b"\xff\xff\xff\xff\x10"])
def test_snappy_block_without_a_length_is_refused(length: bytes) -> None:
    for stream in (length, compress(SNAPPY, b"")[:16] + struct.pack(">i", len(length)) + length):
        with pytest.raises(PeerError) as caught:
            decompress(SNAPPY, stream)
        assert caught.value.code == CORRUPT_MESSAGE


@given(data=st.binary(max_size=300), many=st.integers(1, 400))
def test_the_stated_length_of_a_snappy_block_is_what_the_library_makes(
    data: bytes, many: int
) -> None:
    block = snappy.compress(data * many)
    assert read_uvarint(memoryview(block), 0, len(block))[0] == len(data) * many
    assert decompress(SNAPPY, block) == data * many


@pytest.mark.parametrize("size", [-1, 0, 2**31 - 1, -(2**31)])
def test_snappy_block_length_is_held_against_what_remains(size: int) -> None:
    with pytest.raises(PeerError) as caught:
        decompress(SNAPPY, compress(SNAPPY, b"")[:16] + struct.pack(">i", size) + b"abc")
    assert caught.value.code == CORRUPT_MESSAGE


def test_zstd_window_beyond_the_limit_is_refused_with_a_remedy() -> None:
    parameters = zstandard.ZstdCompressionParameters.from_level(1, window_log=24)
    maker = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    stream = maker.compress(bytes(MIB)) + maker.flush()
    with pytest.raises(PeerError) as caught:
        decompress(ZSTD, stream)
    assert caught.value.code == UNSUPPORTED_COMPRESSION_TYPE
    assert "level 19 or lower" in caught.value.message


def test_zstd_frame_that_states_a_huge_content_is_not_believed() -> None:
    """Single segment, content size of 2^62 bytes: the window would be as large."""
    frame = struct.pack("<IBQ", 0xFD2FB528, 0xE0, 1 << 62) + b"\x01\x00\x00"
    with pytest.raises(PeerError) as caught:
        decompress(ZSTD, frame)
    assert caught.value.code == CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_unknown_codec(codec: int) -> None:
    with pytest.raises(PeerError) as caught:
        decompress(codec, b"anything")
    assert caught.value.code == UNSUPPORTED_COMPRESSION_TYPE


def test_two_streams_may_be_read_in_turns() -> None:
    streams = {codec: compress(codec, bytes([codec]) * 2 * MIB) for codec in CODECS}
    for codec, stream in streams.items():
        one, two = pieces(codec, stream), pieces(codec, stream)
        total = sum(len(a) + len(b) for a, b in zip(one, two, strict=True))
        assert total == 4 * MIB


@given(st.sampled_from(CODECS), st.binary(max_size=300))
def test_garbage_is_opened_or_refused(codec: int, data: bytes) -> None:
    assert code_of(codec, data) in (NONE, CORRUPT_MESSAGE, UNSUPPORTED_COMPRESSION_TYPE)


@given(st.sampled_from(CODECS), st.integers(0, 2**16), st.integers(1, 255))
def test_a_changed_byte_is_opened_or_refused(codec: int, at: int, flip: int) -> None:
    stream = bytearray(compress(codec, b"some bytes that repeat, some bytes that repeat" * 20))
    stream[at % len(stream)] ^= flip
    assert code_of(codec, bytes(stream)) in (NONE, CORRUPT_MESSAGE, UNSUPPORTED_COMPRESSION_TYPE)


def code_of(codec: int, stream: bytes) -> int:
    try:
        decompress(codec, stream)
    except PeerError as error:
        return error.code
    return NONE
