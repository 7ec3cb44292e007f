"""A Produce request in the middle of a larger buffer: nothing beyond its end is looked at."""

import pytest

from appliance.base.errors import MalformedRequest
from appliance.wire import produce

BEYOND = 1 << 20
LONG = [
    (7, b"\x7f\xff"),  # INT16: 32,767 bytes
    (9, b"\xff\xff\x3f"),  # UNSIGNED_VARINT: about a million bytes
]


@pytest.mark.parametrize(("version", "length"), LONG)
def test_a_transactional_id_stays_within_the_request(version, length):
    body = length + b"id"
    buffer = memoryview(body + bytes(BEYOND))
    with pytest.raises(MalformedRequest, match=r"transactional id of [0-9]+ bytes, 2 remain"):
        produce.parse(buffer, 0, len(body), version)


@pytest.mark.parametrize("where", ["id", "topic"])
def test_no_string_is_longer_than_kafka_takes(where):
    """32,768 bytes fit a compact length, and nobody's limit."""
    text = b"\x81\x80\x02" + bytes(32_768)
    body = text if where == "id" else b"\0" + bytes(6) + b"\2" + text
    with pytest.raises(MalformedRequest, match="32768 bytes"):
        produce.parse(memoryview(body + bytes(100)), 0, len(body) + 100, 9)
