"""Messages: our codec agrees with kio's on all that we serve, and survives what kio's does not."""

import io
import random
import resource
import uuid
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map
from kio.serial import entity_reader, entity_writer

from appliance.base.errors import MalformedRequest
from appliance.wire import messages, request_head
from appliance.wire.fields import Field, StructLayout
from appliance.wire.varint import STRING_MAX

SERVED = [2, 3, 18, 19, 20, 21, 22, 23, 32, 33, 34, 35, 37, 43, 44, 45, 46, 55, 57, 60, 74, 75]
MOST = b"\x7f\xff\xff\xff"  # an int32 count of 2^31 - 1
MOST_COMPACT = b"\xff\xff\xff\xff\x0f"  # a varint of 2^32 - 1

FIXED = {
    "int8": (-(2**7), 2**7),
    "int16": (-(2**15), 2**15),
    "int32": (-(2**31), 2**31),
    "int64": (-(2**63), 2**63),
    "uint16": (0, 2**16),
}


def example(layout: StructLayout, rng: random.Random) -> Any:
    return layout.make(**{field.name: value(field, rng) for field in layout.fields})


def value(field: Field, rng: random.Random) -> Any:
    if field.nullable and rng.random() < 0.2:
        return None
    if field.tag >= 0 and rng.random() < 0.3:
        return field.default
    if field.array:
        return tuple(element(field, rng) for _ in range(rng.randrange(4)))
    return element(field, rng)


def element(field: Field, rng: random.Random) -> Any:
    if field.nested is not None:
        return example(field.nested, rng)
    if field.convert is not None:
        reads = field.convert[0]
        if field.kind == "uuid":
            return uuid.UUID(int=rng.getrandbits(128))
        if reads is ErrorCode:
            return rng.choice(list(ErrorCode))
        return timedelta(milliseconds=rng.randrange(2**31))
    if field.kind in FIXED:
        return rng.choice([rng.randrange(*FIXED[field.kind]), FIXED[field.kind][0], 0])
    if field.kind == "bool":
        return rng.random() < 0.5
    if field.kind == "float64":
        return rng.random()
    text = rng.choice(["", "a", "größer", "x" * 200, "y" * 20_000])
    return text if field.kind == "string" else text.encode()


def kio_bytes(entity: Any) -> bytes:
    out = io.BytesIO()
    entity_writer(type(entity))(out, entity)
    return out.getvalue()


@pytest.mark.parametrize("key", SERVED)
def test_our_codec_and_kios_agree(key: int) -> None:
    rng = random.Random(key)
    for version in messages.request_versions(key):
        for cls in (messages.request_type(key, version), messages.response_type(key, version)):
            for _ in range(5):
                entity = example(messages.layout_of(cls), rng)
                encoded = messages.encode_response(entity)
                assert encoded == kio_bytes(entity)
                assert entity_reader(cls)(encoded, 0) == (entity, len(encoded))
                if cls.__name__.endswith("Request"):
                    assert messages.decode_request(key, version, encoded) == entity
                else:
                    assert messages.decode_response(key, version, encoded) == entity


@pytest.mark.parametrize("key", SERVED)
def test_a_request_cut_anywhere_is_malformed(key: int) -> None:
    version = messages.request_versions(key)[-1]
    entity = example(messages.layout_of(messages.request_type(key, version)), random.Random(1))
    encoded = messages.encode_request(entity)
    for size in range(0, len(encoded), 1 + len(encoded) // 500):
        with pytest.raises(MalformedRequest):
            messages.decode_request(key, version, encoded[:size])


def test_bytes_after_a_request_are_ignored_as_kafka_does() -> None:
    request = messages.decode_request(3, 1, b"\0\0\0\0tail")
    assert request.topics == ()


def test_unknown_tagged_fields_are_skipped() -> None:
    plain = messages.decode_request(3, 12, b"\1\1\0\0")
    assert messages.decode_request(3, 12, b"\1\1\0\2\x09\3abc\x2a\0") == plain
    assert messages.decode_request(3, 12, memoryview(b"\1\1\0\2\x2a\0\x09\3abc")) == plain


@pytest.mark.parametrize(
    ("key", "version", "body"),
    [
        (3, 1, MOST),
        (3, 1, MOST + bytes(1000)),
        (3, 12, MOST_COMPACT),
        (3, 12, MOST_COMPACT + bytes(1000)),
        (3, 12, b"\xff\xff\xff\xff\x7f"),  # more than 32 bits
        (3, 12, b"\xff\xff\xff\xff\xff\xff\x01"),  # more than 5 bytes
        (3, 1, b"\xff\xff\xff\xfe"),  # an array of -2
        (3, 1, b"\0\0\0\1\xff\xfe"),  # a name of -2 bytes
        (3, 1, b"\0\0\0\1\xff\xff"),  # a null name
        (3, 1, b"\0\0\0\1\0\2\xff\xfe"),  # not UTF-8
        (2, 1, b"\xff\xff\xff\xff\0\0\0\1\0\1t" + MOST),  # nested
        (19, 5, b"\2\2a" + bytes(6) + MOST_COMPACT),
        (3, 12, b"\1\1\0" + MOST_COMPACT),  # that many tagged fields
        (3, 12, b"\1\1\0\1\0" + MOST_COMPACT),  # a tagged field of that many bytes
        (3, 12, b"\1\1\0\1\5\4ab"),
        (36, 1, MOST + b"abc"),
        (36, 2, MOST_COMPACT + b"abc"),
        (18, 3, b"\0\2b\0"),  # null where there must be a string
        (22, 0, b""),
        (3, 99, b""),
        (3, -1, b""),
        (999, 0, b""),
        (-1, 0, b""),
    ],
)
def test_hostile_bodies_are_malformed(key: int, version: int, body: bytes) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(MalformedRequest):
        messages.decode_request(key, version, body)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB


def test_a_string_is_no_longer_in_compact_form_than_in_the_old_one() -> None:
    """Kafka's limit is that of an int16 length, whatever a varint could say."""
    name = b"n" * STRING_MAX
    longest = b"\2" + b"\x80\x80\2" + name + b"\0" + b"\1\0\0\0"
    assert messages.decode_request(3, 9, longest).topics[0].name == name.decode()
    longer = b"\2" + b"\x81\x80\2" + name + b"n\0" + b"\1\0\0\0"
    with pytest.raises(MalformedRequest, match="string of 32768 bytes, at most 32767"):
        messages.decode_request(3, 9, longer)


def test_more_elements_than_a_request_may_hold() -> None:
    count = messages.ELEMENTS_MAX + 1
    with pytest.raises(MalformedRequest, match="more in one message than are taken"):
        messages.decode_request(3, 1, count.to_bytes(4, "big") + bytes(2 * count))


@given(st.sampled_from(SERVED), st.integers(0, 13), st.binary(max_size=200))
def test_any_bytes_are_a_request_or_malformed(key: int, version: int, body: bytes) -> None:
    try:
        request = messages.decode_request(key, version, body)
    except MalformedRequest:
        return
    again = messages.encode_request(request)
    assert messages.decode_request(key, version, again) == request
    assert in_slices(key, version, again) == request


def in_slices(key: int, version: int, body: bytes) -> Any:
    steps = messages.decode_in_slices(key, version, body)
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value


def test_a_long_request_is_decoded_in_slices_as_at_once() -> None:
    """Arrays within arrays, null and tagged fields as in any other request."""
    name = b"\x02t"
    partition = bytes(12) + b"\0"
    topic = name + b"\xad\x02" + partition * 300 + b"\1\7\1x"
    body = bytes(4) + b"\x04" + topic * 3 + b"\0"
    steps = messages.decode_in_slices(23, 4, body)
    assert sum(1 for _ in steps) == 6
    assert in_slices(23, 4, body) == messages.decode_request(23, 4, body)


def test_tagged_fields_count_as_elements() -> None:
    count = messages.ELEMENTS_MAX + 1
    tags = b"\x81\x80\x02" + b"\0\0" * count
    assert count == 0x8001
    with pytest.raises(MalformedRequest, match="more in one message than are taken"):
        messages.decode_request(3, 9, b"\0\0\0\0" + tags)


@given(
    st.sampled_from([key for key in SERVED if key != 18]),
    st.integers(0, 2**32),
    st.integers(0, 2**20),
    st.integers(1, 255),
)
def test_a_changed_byte_is_a_request_or_malformed(key: int, seed: int, at: int, flip: int) -> None:
    version = messages.request_versions(key)[-1]
    entity = example(messages.layout_of(messages.request_type(key, version)), random.Random(seed))
    body = bytearray(messages.encode_request(entity))
    body[at % len(body)] ^= flip
    try:
        messages.decode_request(key, version, body)
    except MalformedRequest:
        return


def test_versions_of_a_request() -> None:
    assert messages.request_versions(3) == range(14)
    assert messages.request_versions(21) == range(3)
    assert messages.request_versions(4) == range(0)


# Heads --------------------------------------------------------------------------------------------


def test_heads_know_which_versions_are_flexible() -> None:
    for key in api_key_map:
        for version in messages.request_versions(key):
            flexible = messages.is_flexible(key, version)
            assert request_head.is_flexible(key, version) == flexible, (key, version)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        ("0003 0001 00000007 0004 74657374", (3, 1, 7, b"test")),
        ("0003 0001 ffffffff ffff", (3, 1, -1, None)),
        ("0003 000c 00000007 0000 00", (3, 12, 7, b"")),
        ("0003 000c 00000007 0001 78 01 05 02 abcd", (3, 12, 7, b"x")),
        ("0012 0003 00000000 0001 78 00", (18, 3, 0, b"x")),
        ("0012 7fff 00000000 0001 78 00", (18, 32767, 0, b"x")),
        ("7fff 0000 00000000 0001 78 00", (32767, 0, 0, b"x")),
        ("ffff 0000 00000000 0001 78 00", (-1, 0, 0, b"x")),
    ],
)
def test_request_head(head: str, expected: tuple[int, int, int, bytes | None]) -> None:
    frame = bytes.fromhex(head)
    memory = memoryview(b"before" + frame + b"body")
    parsed = request_head.parse(memory, 6, len(memory))
    assert parsed == (*expected, 6 + len(frame))
    for end in range(6, 6 + len(frame)):
        with pytest.raises(MalformedRequest):
            request_head.parse(memory, 6, end)


@given(st.binary(max_size=60), st.integers(0, 10))
def test_any_bytes_have_a_head_or_are_malformed(data: bytes, position: int) -> None:
    end = len(data)
    try:
        *_, body = request_head.parse(memoryview(data + MOST), position, end)
    except MalformedRequest:
        return
    assert position + 10 <= body <= end


def test_response_head_of_api_versions_never_has_tags() -> None:
    assert request_head.response_head(18, 3, 7, 100).hex() == "0000006800000007"
    assert request_head.response_head(3, 8, 7, 100).hex() == "0000006800000007"
    assert request_head.response_head(3, 9, 7, 100).hex() == "000000690000000700"
