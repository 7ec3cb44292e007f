"""Varints of the protocol (KIP-482, record batches): unsigned LEB128 of at most 5 bytes, ZigZag on
top for signed ones."""

from appliance.base.errors import MalformedRequest

STRING_MAX = 32_767
"""Bytes of a string in any message. Compact lengths could say more, and Kafka refuses what does."""

SMALL = [bytes([value]) for value in range(128)]
"""What `uvarint` gives for small values, for who writes many of them."""


def uvarint(value: int) -> bytes:
    """Encode 0 ≤ value < 2^32 (larger values take more bytes, up to 10 for 64 bits)."""
    assert value >= 0
    if value < 128:
        return SMALL[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def svarint(value: int) -> bytes:
    """Encode a signed 64-bit value, ZigZag."""
    return uvarint((value << 1) ^ (value >> 63))


def read_uvarint(memory: memoryview, position: int, end: int) -> tuple[int, int]:
    """(value, next position) of an unsigned 32-bit varint at memory[position:end]; raises
    MalformedRequest."""
    if position < end:
        byte = memory[position]
        if byte < 128:
            return byte, position + 1
    value = shift = 0
    for at in range(position, min(end, position + 5)):
        byte = memory[at]
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, at + 1
        shift += 7
    raise MalformedRequest(f"varint at byte {position} does not end within 5 bytes or the request")


def skip_tagged_fields(memory: memoryview, position: int, end: int) -> int:
    """The position after a tagged-field section at `position`; raises MalformedRequest."""
    count, position = read_uvarint(memory, position, end)
    for _ in range(count):
        _, position = read_uvarint(memory, position, end)
        size, position = read_uvarint(memory, position, end)
        position += size
        if position > end:
            raise MalformedRequest(
                f"tagged field of {size} bytes goes {position - end} bytes beyond the request"
            )
    return position
